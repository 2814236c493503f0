"""What is said about the space follows from the values of its images."""

import numpy as np
import pandas as pd
import pytest

from lib.papers.linear_prototypes import space
from lib.papers.linear_prototypes.measures import IMAGES, MEASURES, Measured


def space_of(level: float, repeat: int = 0, fold: int = 0, noise: float = 2.0) -> Measured:
    """A space whose images of ten groups all have about this value, a fold and a training a little more each."""
    rng = np.random.default_rng([fold, repeat])
    groups = [f"fold {fold}, patient {i // 4}" for i in range(40)]
    shared = level + 10 * fold + repeat + noise * rng.normal(size=40)
    values = {name: shared + (name == "kernel") * noise * rng.normal(size=40) for name in IMAGES}
    images = pd.DataFrame({"label": np.arange(40) % 2, "group": groups, **values})
    return Measured(fold, repeat, {name: level + 10 * fold + repeat for name in MEASURES}, images)


def spaces(**levels: float) -> dict[str, list[Measured]]:
    return {
        name: [space_of(level, repeat, fold) for repeat in range(2) for fold in range(3)]
        for name, level in levels.items()
    }


def test_rows_are_means_and_both_spreads():
    rows = space.rows(spaces(frozen=40.0)).set_index("measure")
    assert len(rows) == len(MEASURES) and set(rows["n_seeds"]) == {2}
    one = rows.loc["silhouette"]
    assert one["ours"] == pytest.approx(50.5)
    assert one["spread"] == pytest.approx(10.0) and one["seeds_spread"] == pytest.approx(0.5**0.5)


def test_the_claims_are_tested_on_the_same_images_over_groups_and_trainings():
    tests = space.tests(spaces(frozen=40.0, head=50.0, linear=50.0))
    assert tests["first"][0] == "head, silhouette" and tests["second"][1] == "frozen, linear classifier"
    assert tests["difference"][:2].tolist() == pytest.approx([10, 10])
    assert set(tests["n_units"]) == {30} and set(tests["n_seeds"]) == {2} and len(tests) == 5
