"""What a mistake counts, made-up classifiers, and the walk to the mean, against plain definitions."""

import numpy as np
import pytest
import torch

from lib.datasets import trees
from lib.geometry.means import frechet_mean
from lib.metrics import hierarchy
from lib.papers.label_tree.taxonomies import tables
from lib.taxonomy import from_nested

UNEVEN = from_nested("uneven", {"a": {"aa": ["aaa", "aab"], "ab": None}, "b": ["ba", "bb"], "c": None})
BREAST, EYE = trees.load("breakhis", "tumour"), trees.load("odir", "site")


def kind(tree, right, answer):
    """Right or not, the two depths in any order, and how many ancestors are shared."""
    if right == answer:
        return "right"
    ways = tree.ancestors(right), tree.ancestors(answer)
    return (*sorted(map(len, ways)), len(set(ways[0]) & set(ways[1])))


@pytest.mark.parametrize("tree", [UNEVEN, BREAST, EYE], ids=str)
def test_every_kind_of_answer_is_there_once(tree):
    rows = tables.mistakes([tree])
    found = [kind(tree, row.right, row.answer) for row in rows.itertuples()]
    all_kinds = [kind(tree, right, answer) for right in tree.leaves for answer in tree.leaves]
    assert found[0] == "right" and len(found) == len(set(found)) and set(found) == set(all_kinds)
    assert rows["pairs"].tolist() == [all_kinds.count(one) for one in found]
    for row in rows.itertuples():
        ways = [tree.ancestors(leaf) for leaf in (row.right, row.answer)]
        assert row.edges == len(set(ways[0]) ^ set(ways[1]))
        assert row.common == max(set(ways[0]) & set(ways[1]), key=tree.depth_of)
        assert row.hf1 == pytest.approx(2 * len(set(ways[0]) & set(ways[1])) / (len(ways[0]) + len(ways[1])))
    assert (np.diff(rows["h_acc"][1:]) <= 0).all()


def test_breakhis_knows_three_kinds_of_answers():
    rows = tables.mistakes([BREAST])
    assert rows["pairs"].tolist() == [8, 24, 32]
    assert rows["h_acc"].tolist() == rows["hf1_below_root"].tolist() == [1, 0.5, 0]
    assert rows["hf1"].tolist() == pytest.approx([1, 2 / 3, 1 / 3])


def test_the_layout_names_each_tree_once():
    lines = tables.mistakes_layout(tables.mistakes([BREAST, EYE])).splitlines()
    assert sum(line.startswith("| BreakHis, tumour |") for line in lines) == 1
    assert len(lines) == 2 + 3 + 5 and "| 0.667 |" in lines[3]


def test_made_up_classifiers_are_of_all_kinds_and_the_same_every_time():
    rows = tables.classifiers([BREAST, UNEVEN], n=40, images=200)
    assert rows.groupby("tree").size().tolist() == [40, 40]
    assert rows["top1"].min() < 0.35 and rows["top1"].max() > 0.85
    assert (rows["hf1_below_root"] >= rows["top1"]).all()
    even = rows[rows["balanced"]]
    assert np.allclose(even["hf1_below_root"], even["h_acc"])
    odd = rows[~rows["balanced"]]
    assert (odd["hf1_below_root"] - odd["h_acc"]).abs().max() > 0.05
    inside = 2 * (even["h_acc"] - even["top1"]) / (1 - even["top1"])
    assert inside.min() < 0.25 and inside.max() > 0.75, "careful ones and careless ones"
    assert rows.equals(tables.classifiers([BREAST, UNEVEN], n=40, images=200))


def test_five_points_are_judged_as_drawn():
    z, centres, rows = tables.beside_parents()
    assert centres.tolist() == [[-1.5, 0], [1.5, 0]]
    for row, point in zip(rows.itertuples(), z, strict=True):
        own, other = (centres[0], centres[1]) if row.group == "benign" else (centres[1], centres[0])
        assert row.to_own == pytest.approx(float((point - own).norm()))
        assert row.to_other == pytest.approx(float((point - other).norm()))
        tied = row.to_own == row.to_other
        assert row.order == (0.5 if tied else row.to_own < row.to_other)
        assert row.violation == (row.to_own >= row.to_other)
    assert (rows["order"] == 0.5).sum() == 1 and set(rows["order"]) == {0, 0.5, 1}


def test_the_walk_of_equation_3_is_the_one_of_the_paper():
    """In two dimensions with complex numbers: the Möbius sum is (x + y) / (1 + x̄y)."""
    rows = tables.steps([1.0, 3.0], n_steps=4, n=20, dim=2)
    directions = torch.randn(20, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64).numpy()
    directions = (directions[:, 0] + 1j * directions[:, 1]) / np.linalg.norm(directions, axis=1)
    for length, part in rows.groupby("length"):
        local = np.tanh(length / 2) * directions
        points = (0.3 + local) / (1 + 0.3 * local)
        mean = frechet_mean(torch.tensor(np.stack([points.real, points.imag], axis=1)), 1.0).numpy() @ [1, 1j]
        at = 0j
        for left in part["left"]:
            apart = abs((mean - at) / (1 - np.conj(at) * mean))
            assert left == pytest.approx(2 * np.arctanh(apart), abs=1e-7)
            seen = (points - at) / (1 - np.conj(at) * points)
            step = (2 * np.arctanh(abs(seen)) * seen / abs(seen)).mean()
            move = np.tanh(abs(step) / 2) * step / abs(step)
            at = (at + move) / (1 + np.conj(at) * move)


def test_near_points_are_walked_to_and_far_ones_are_not():
    rows = tables.steps([0.5, 2.5], n_steps=6).pivot(index="step", columns="length", values="left")
    assert rows[0.5].is_monotonic_decreasing and rows[2.5].is_monotonic_increasing


def test_rows_of_a_tree_make_the_tree_again():
    rows = tables.tree_rows([UNEVEN])
    assert dict(rows[rows["parent"] != ""][["node", "parent"]].to_numpy().tolist()) == UNEVEN.parents
    assert rows.loc[rows["leaf"], "node"].tolist() == sorted(
        UNEVEN.leaves, key=lambda leaf: (UNEVEN.depth_of(leaf), leaf)
    )


def test_rows_of_the_matrices_hold_every_pair():
    rows = tables.matrix_rows([BREAST]).set_index(["one", "other"])
    assert len(rows) == 64
    assert rows.loc[("adenosis", "fibroadenoma"), ["rho", "edges"]].tolist() == [0.5, 2]
    assert rows.loc[("adenosis", "ductal carcinoma"), ["rho", "edges"]].tolist() == [0, 4]


def test_the_stars_are_table_1():
    rows = tables.printed_breakhis()
    assert len(rows) == 9 and rows.iloc[0].tolist() == ["SimCLR (Euclidean)", 0.662, 0.660, 0.671]


def test_chance_is_what_many_guesses_give():
    rows = tables.chance([BREAST, UNEVEN], images=3, k=2).set_index("tree")
    rng = np.random.default_rng(0)
    for tree in (BREAST, UNEVEN):
        right, answer = rng.integers(len(tree.leaves), size=(2, 40000))
        means = hierarchy.of_predictions(right, answer, tree).mean()
        groups = rng.random((40000, len(tree.level(1))))
        beside = hierarchy.parent_order(groups, rng.integers(len(tree.level(1)), size=40000))
        found = rows.loc[tree.name]
        for name in ("top1", *tables.MEASURES):
            assert found[name] == pytest.approx(means[name], abs=0.01)
        assert found["order"] == pytest.approx(beside.order.mean(), abs=0.01)
        assert found["violation"] == pytest.approx(beside.violation.mean(), abs=0.01)
        n = 3 * len(tree.leaves)
        assert found["hit_rate"] == pytest.approx(1 - (n - 3) * (n - 4) / (n * (n - 1)))
    assert tables.chance_layout(rows.reset_index(), k=2).splitlines()[0].endswith("| R@2 |")
