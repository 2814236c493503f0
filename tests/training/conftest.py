"""Seventy-two images of three classes and twelve patients, and the queries of two of four folds."""

import numpy as np
import pytest

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
