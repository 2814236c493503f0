"""Bytes are what an archive stores, tests find what was planted, and the picture draws what it is given."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from lib.losses.hashing import CSQ
from lib.metrics.retrieval import PerQuery
from lib.papers.beyond.factors import costs, experiment, heads
from lib.papers.beyond.factors.experiment import BALL, NONE, PROBABILITY
from lib.papers.beyond.factors.heads import ACIR, CENTRES, HYPERBOLIC, AsMany
from lib.training import hashing, hyper_dino
from lib.training.fit import Schedule
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import repeated, splits

N = 120
GROUPS = np.array([f"p{i}" for i in np.arange(N) // 10])
CODE = hashing.Settings(loss=CSQ(4, 64))
HEADS = {
    NONE: (0.5, Method(NONE, Recipe("raw", 1280, 0), hyper_dino.Settings())),
    PROBABILITY: (0.8, Method(PROBABILITY, Recipe("PCA", 128, 8), hyper_dino.Settings())),
    BALL: (0.8, Method(BALL, Recipe("PCA", 128, 32), hyper_dino.Settings())),
    HYPERBOLIC: (0.9, Method(HYPERBOLIC, Recipe("PCA", 128, 32), hyper_dino.Settings())),
    ACIR: (0.895, Method(ACIR, Recipe("PCA", 128, 64), CODE)),
    CENTRES: (0.6, Method(CENTRES, Recipe("PCA", 128, 60), CODE)),
}
ARCHIVES = ["closed, by patient", "open, by patient"]


def answered(level: float, method: Method) -> list[Answer]:
    """Every query's AP is about ``level`` at 1 and half of it at 5, by hits a quarter."""
    done = []
    for split in repeated(splits(np.arange(N) // 10 % 3, 0), 3):
        values = level + np.random.default_rng([split.seed, round(100 * level)]).normal(0, 0.01, size=len(split.test))
        columns = pd.MultiIndex.from_product([["ap_min", "ap_hits"], [1, 5]], names=["metric", "k"])
        frame = pd.DataFrame(np.stack([values, values / 2, values, values / 4], axis=1), columns=columns)
        few = np.full(len(split.test), 10)
        per_query = PerQuery(frame, np.zeros(len(split.test), dtype=int), few, 4 * few)
        done.append(Answer(method, split, Health(0.1, np.nan, 30), [], few, per_query))
    return done


@pytest.fixture(scope="module")
def found():
    each = {name: answered(*one) for name, one in HEADS.items()}
    first = {f"net, {name}": each[name] for name in (NONE, PROBABILITY, BALL)} | {"bare, " + NONE: each[NONE]}
    other = {name: each[name] for name in (HYPERBOLIC, ACIR, CENTRES)}
    return costs.of_encoder(dict.fromkeys(ARCHIVES, first), "net", dict.fromkeys(ARCHIVES, other))


@pytest.fixture(scope="module")
def rows(found):
    return costs.rows(found)


def test_only_the_leading_encoder_is_there_without_its_name(found):
    assert list(found["open, by patient"]) == [NONE, PROBABILITY, BALL, HYPERBOLIC, ACIR, CENTRES]


def test_numbers_take_two_bytes_and_eight_bits_one(rows):
    sizes = rows.drop_duplicates("method").set_index("method")["bytes"].to_dict()
    assert sizes == {NONE: 2560, PROBABILITY: 16, BALL: 64, HYPERBOLIC: 64, ACIR: 8, CENTRES: 8}
    continuous = hashing.Settings(loss=CSQ(4, 64), binary=False)
    assert costs.stored(Method("", Recipe("PCA", 128, 64), continuous)) == 128


def test_what_was_planted_is_found_and_what_was_not_trained_is_not_tested(found):
    tests = costs.tested(found, GROUPS, (1, 5))
    assert set(zip(tests["first"], tests["second"], strict=True)) == {
        (HYPERBOLIC, PROBABILITY),
        (ACIR, PROBABILITY),
        (CENTRES, PROBABILITY),
        (HYPERBOLIC, BALL),
        (ACIR, CENTRES),
        (ACIR, NONE),
    }
    told = {line.split(":")[0]: line for line in costs.came_out(tests)}
    assert ": of 4 tests 4 better, 0 worse (" in told[f"{HYPERBOLIC} against {BALL}"]
    assert ": of 4 tests 0 better, 4 worse (" in told[f"{CENTRES} against {PROBABILITY}"]


def test_the_cheapest_is_the_smallest_that_comes_near_the_best(rows):
    line = costs.cheapest(rows, ARCHIVES[0], 1)
    assert line.startswith(f"MAP@1, {ARCHIVES[0]}: highest is {HYPERBOLIC} (") and f"is {ACIR} (" in line
    assert "8 bytes" in line
    assert costs.cheapest(rows, ARCHIVES[0], 1, within=0.1).endswith("nothing smaller comes within 0.1 point of it")


def test_the_table_goes_from_the_largest_to_the_smallest_and_ends_with_chance(rows):
    first, *lines = (line.split(" | ") for line in costs.layout(rows).splitlines() if "---" not in line)
    assert first[1] == "bytes per image" and lines[0][0].endswith(NONE) and lines[-1][0].endswith("chance")
    assert [line[1] for line in lines[:-1]] == ["2560", "64", "64", "16", "8", "8"]


def test_the_picture_draws_every_method_at_its_bytes_with_a_sign_of_its_own(rows):
    figure = costs.drawn(rows, ARCHIVES)
    assert len(figure.axes) == 4
    for axis, k in zip(figure.axes, (1, 5, 1, 5), strict=True):
        points = [container.lines[0] for container in axis.containers]
        signs = {(point.get_marker(), str(point.get_markerfacecolor())) for point in points}
        assert len(signs) == len(HEADS)
        places = {c.get_label(): c.lines[0].get_xdata()[0] for c in axis.containers}
        heights = {c.get_label(): c.lines[0].get_ydata()[0] for c in axis.containers}
        assert places[BALL] < places[HYPERBOLIC] < places[NONE] == max(places.values())
        assert heights[NONE] == pytest.approx(50 if k == 1 else 25, abs=0.5)
    assert [label.get_text() for label in figure.axes[-1].get_xticklabels()] == ["8", "16", "64", "2560"]
    figure.canvas.draw()
    axis = figure.axes[0]
    near = sorted(axis.transData.transform((c.lines[0].get_xdata()[0], 50))[0] for c in axis.containers)
    assert min(np.diff(near)) > 5 * figure.dpi / 72  # a sign of 5 points covers no other
    assert SimpleNamespace(**vars(costs.figure_costs(rows, ARCHIVES))).title.startswith("what an image costs")
    assert "bands go from the fewest bytes to the most, not to scale" in costs.figure_costs(rows, ARCHIVES).caption


def test_a_method_looks_the_same_whichever_others_are_there(rows):
    fewer = rows[rows["method"].ne(NONE)]
    looks = [
        {c.get_label(): (c.lines[0].get_color(), c.lines[0].get_marker(), c.lines[0].get_markerfacecolor()) for c in of}
        for of in (costs.drawn(part, ARCHIVES).axes[0].containers for part in (rows, fewer))
    ]
    assert len(looks[1]) == len(HEADS) - 1 and looks[1].items() <= looks[0].items()


def test_every_method_has_a_sign_of_its_own_that_can_be_seen_in_grey():
    factors = experiment.methods(64, 8, 4, 3, hyper_dino.Settings(), Schedule(), 2, 0.01)
    others = heads.methods(Recipe("PCA", 8, 4), Schedule(), 0.01, AsMany(), 3, (0, 0, 1), 8, 16)
    assert set(costs.LOOKS) == {method.name for method in (*factors, *others)}
    signs = {(look["marker"], look["markerfacecolor"] == "white") for look in costs.LOOKS.values()}
    assert len(signs) == len(costs.LOOKS)
    band = luminance("0.93")
    assert all((band + 0.05) / (luminance(look["color"]) + 0.05) > 3 for look in costs.LOOKS.values())


def luminance(color) -> float:
    """Of WCAG: a contrast of 3 is the least that a sign needs."""
    parts = np.array(to_rgb(color))
    return float(np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


def test_sizes_that_are_near_each_other_have_bands_apart(rows):
    near = rows.assign(bytes=rows["bytes"].replace({16: 72}))
    axis = costs.drawn(near, ARCHIVES).axes[-1]
    spans = sorted((patch.get_x(), patch.get_x() + patch.get_width()) for patch in axis.patches)
    assert len(spans) == 4 and all(left[1] < right[0] for left, right in itertools.pairwise(spans))
    places = {c.get_label(): c.lines[0].get_xdata()[0] for c in axis.containers}
    inside = {name: [low < place < high for low, high in spans].index(True) for name, place in places.items()}
    assert inside == {ACIR: 0, CENTRES: 0, BALL: 1, HYPERBOLIC: 1, PROBABILITY: 2, NONE: 3}
    assert [label.get_text() for label in axis.get_xticklabels()] == ["8", "64", "72", "2560"]
