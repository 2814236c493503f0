"""Seventy-two images of three classes and twelve patients, and the queries of two of four folds; a loss that stops."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from lib.datasets import folds
from lib.datasets.queries import balanced
from lib.training.splits import Split, query_splits

LABELS = np.tile(np.arange(3), 24)
GROUPS = np.repeat([f"patient {i}" for i in range(12)], 6)


@pytest.fixture(scope="session")
def where() -> list[Split]:
    """Twelve queries of the three patients of a fold, who have eighteen images together."""
    fold_of = folds.assign(LABELS.astype(str), GROUPS, 4, "group", 0)
    drawn = {fold: balanced(LABELS.astype(str), GROUPS, fold_of, fold, 4, 0) for fold in range(2)}
    return query_splits(drawn, seed=7)


class Stopping(torch.nn.Module):
    """A loss, what becomes of its value from one of its calls on, and how many calls are left until then."""

    def __init__(self, loss: Callable, call: float, then: Callable) -> None:
        super().__init__()
        self.loss, self.left, self.then = loss, call, then

    def forward(self, *batch, **options):
        self.left -= 1
        value = self.loss(*batch, **options)
        return self.then(value) if self.left < 0 else value


def killed(value: torch.Tensor) -> None:
    raise KeyboardInterrupt
