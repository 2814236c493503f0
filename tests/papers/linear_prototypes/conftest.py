"""Ninety-six images of three classes and sixteen patients, and the queries of two of four folds."""

import numpy as np
import pytest

from lib.datasets import folds
from lib.datasets.queries import balanced
from lib.training.splits import Split, query_splits

RANDOM = np.random.default_rng(1)
LABELS = np.tile(np.arange(3), 32)
GROUPS = np.repeat([f"patient {i}" for i in range(16)], 6)
X = (RANDOM.normal(size=(3, 6))[LABELS] + 0.7 * RANDOM.normal(size=(96, 6))).astype(np.float32)


@pytest.fixture(scope="session")
def where() -> list[Split]:
    fold_of = folds.assign(LABELS.astype(str), GROUPS, 4, "group", 0)
    return query_splits({f: balanced(LABELS.astype(str), GROUPS, fold_of, f, 4, 0) for f in range(2)}, seed=0)
