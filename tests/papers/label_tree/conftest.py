"""Ninety-six images of four classes in two branches, with twelve patients: features in which the tree can be seen."""

import numpy as np
import pytest

from lib.papers.label_tree.experiment import Images
from lib.taxonomy import from_paths

TREE = from_paths("toy", ["a/1", "a/2", "b/3", "b/4"])


@pytest.fixture(scope="session")
def seen() -> Images:
    random = np.random.default_rng(0)
    leaves = np.arange(96) % 4
    groups = np.array([f"p{number // 8:02d}" for number in range(96)])
    centres = np.array([[3, 0, 1, 0], [3, 0, -1, 0], [-3, 0, 0, 1], [-3, 0, 0, -1]], dtype=float)
    views = centres[leaves] + 0.8 * random.normal(size=(2, 96, 4))
    return Images(views.astype(np.float32), leaves, TREE, groups)
