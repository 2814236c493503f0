"""Twelve categories of six images, half of which teach, with features that tell them apart in part."""

from types import SimpleNamespace

import numpy as np
import pytest

from lib.datasets.categories import Halves


@pytest.fixture(scope="session")
def toy() -> SimpleNamespace:
    random, codes, rows = np.random.default_rng(0), np.repeat(np.arange(12), 6), np.arange(72)
    names = np.array([f"c{code:02d}" for code in codes])
    x = (random.normal(size=(72, 8)) + 2 * random.normal(size=(12, 8))[codes]).astype(np.float32)
    parts = Halves(names, codes, rows[:36], rows[36:], rows[36:], 0)
    return SimpleNamespace(x=x, codes=codes, names=names, parts=parts)
