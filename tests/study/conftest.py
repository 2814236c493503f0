"""Answers that are made up: every query has the value that the test says."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from lib.metrics.retrieval import PerQuery
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

METHOD = Method("ball", Recipe("PCA", 4, 2), Settings())
METRICS = pd.MultiIndex.from_product([["ap_min", "ap_hits", "precision"], [1, 20]], names=["metric", "k"])


@pytest.fixture(scope="session")
def answer() -> Callable[..., Answer]:
    """One split: the queries ``test`` of two classes, even and odd, each with its value in every metric."""

    def made(
        test: list[int], values: list[float], health: Health | None = None, fold: int = 0, repeat: int = 0
    ) -> Answer:
        table = np.array(values, dtype=float)
        frame = pd.DataFrame(table if table.ndim == 2 else np.repeat(table[:, None], 6, axis=1), columns=METRICS)
        relevant, size = np.where(frame.iloc[:, 0].isna(), 0, 5), np.full(len(test), 10)
        per_query = PerQuery(frame, np.array(test) % 2, relevant, size)
        split = Split(fold, np.arange(20, 30), np.array(test), 0, repeat=repeat)
        return Answer(METHOD, split, health or Health(), [], np.zeros(10), per_query)

    return made
