"""What is said about the space follows from the values of its images."""

import numpy as np
import pandas as pd
import pytest

from lib.figures import style
from lib.papers.linear_prototypes import space
from lib.papers.linear_prototypes.measures import IMAGES, MEASURES, Measured

CLASSES = ["fat", "gland", "muscle"]


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


def test_components_are_a_row_per_method_with_their_share_of_variance():
    xyz = np.random.default_rng(0).normal(size=(30, 3))
    labels = np.array(CLASSES)[np.arange(30) % 3]
    figure = space.figure_4({"PT": (xyz, [50.0, 30.0, 10.0]), "TL": (xyz, [60.0, 20.0, 5.0])}, labels)
    assert len(figure.axes) == 4
    assert figure.axes[3].get_ylabel() == "component 3 (5 %)"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == CLASSES
    assert sum(len(points.get_offsets()) for points in figure.axes[0].collections) == 30
    for points in figure.axes[
        0
    ].collections:  # opaque signs with an edge, so that a pale colour does not vanish in grey
        assert points.get_facecolor()[0, 3] == 1 and points.get_alpha() is None
        assert points.get_linewidth()[0] > 0 and points.get_edgecolor()[0].tolist() == [0, 0, 0, 1]


def test_the_commonest_class_covers_no_other_one():
    counts = {"fat": 20, "gland": 60, "muscle": 10}
    labels = np.repeat(list(counts), list(counts.values()))
    xyz = np.random.default_rng(0).normal(size=(90, 3))
    figure = space.figure_4({"PT": (xyz, [50.0, 30.0, 10.0])}, labels)
    drawn = {points.get_label(): points for points in figure.axes[0].collections}
    assert {name: len(points.get_offsets()) for name, points in drawn.items()} == counts
    assert sorted(drawn, key=lambda name: drawn[name].get_zorder()) == ["gland", "fat", "muscle"]
    assert drawn["gland"].get_sizes()[0] < drawn["fat"].get_sizes()[0] == drawn["muscle"].get_sizes()[0]
    assert (drawn["gland"].get_facecolor()[0, :3] > np.array(style.PALETTE[1])).all()  # pale, and not transparent
    assert drawn["gland"].get_facecolor()[0, 3] == 1
