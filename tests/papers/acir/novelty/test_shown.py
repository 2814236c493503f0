"""Figures, tables and the board show what the numbers say."""

import numpy as np
import pytest

from lib.errors import InputError
from lib.metrics import novelty
from lib.papers.acir.novelty import figures, rules, scores, tables
from lib.papers.acir.novelty.experiment import ACIR, L1, RESIDUAL
from lib.papers.acir.novelty.rules import Rule
from lib.papers.acir.novelty.scene import ASIDE, FAR, KNOWN, NEAR


@pytest.fixture(scope="module")
def found(scene, coders, decoders):
    return scores.of_all(scene, coders, decoders, workers=1)


def test_kept_neighbours_are_counted_as_a_loop_does():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 5)), rng.normal(size=(40, 2))

    def nearest(points, i, k):
        return set(np.argsort([np.inf if j == i else np.linalg.norm(points[i] - points[j]) for j in range(40)])[:k])

    loop = np.mean([len(nearest(x, i, 7) & nearest(y, i, 7)) / 7 for i in range(40)])
    assert figures.kept(x, y, k=7) == pytest.approx(loop)
    assert figures.kept(x, x, k=7) == 1.0


def test_a_page_is_the_same_for_the_same_seed_and_too_few_points_are_refused():
    x = np.random.default_rng(0).normal(size=(60, 4))
    first, again = figures.page(x, 0, perplexity=10), figures.page(x, 0, perplexity=10)
    np.testing.assert_array_equal(first.points, again.points)
    assert 0 < first.chance < first.kept < 1 and first.trust <= 1
    with pytest.raises(InputError, match="too few for a perplexity of 30"):
        figures.page(x, 0)


def test_sliders_count_what_lies_beyond_both_limits(scene, found):
    board = figures.sliders(scene, found, bits=8)
    error = found[L1][0]
    assert board.values == {"sigmas": 3.0, "radius": 3}
    limit = novelty.threshold(error[scene.rows(ASIDE)], 3.0)
    assert f"limit {limit:.3f}, radius 3 bits" in board.text
    board.sliders["radius"].value = 0
    outside = 100 * (found[ACIR][0, scene.rows(FAR)] > 0).mean()
    assert f"{'OOD':16}{outside:7.1f}%" in board.text


def test_table_3_has_the_published_rows_first_and_the_sizes_those_of_the_scene(scene, coders, found):
    rows = rules.table_3(scene, coders, found, 8, [Rule("CSQ"), Rule(ACIR)])
    lines = tables.table_3(rows).splitlines()
    assert len(lines) == 2 + 6 + 2 and "| published: CSQ, 8 bits | 84.90 | 86.00 | 16.0 % | – | – |" in lines
    sizes = tables.parts(scene).set_index("part")["n_images"]
    assert sizes[NEAR] == len(scene.rows(NEAR)) and sizes.sum() == len(scene.rows(*sizes.index))


def test_figures_are_drawn_of_all_that_they_show(scene, coders, found):
    kinds = scores.by_kind(scene, found, [ACIR, RESIDUAL], 8)
    assert len(figures.kinds(kinds).axes) == 2
    rows = figures.confusion_rows({"ACIR": rules.total(scene, coders, found, Rule(ACIR), 8)}, scene.classes)
    assert rows.groupby("query_class")["share"].sum().round(6).eq(100).all()
    axis = figures.confusions(rows, scene.classes).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == [*scene.classes, *figures.ODD]
    picked = figures.examples(scene, found[RESIDUAL][0])
    assert scene.part[picked].tolist() == [KNOWN, KNOWN, NEAR, NEAR, FAR, FAR]
    page = figures.Page(scene.features()[:, :2], 0.5, 0.9, 0.1)
    shown = figures.pages({"stem": page}, scene.kind, scene.part, scene.classes)
    counts = [len(points.get_offsets()) for points in shown.axes[0].collections]
    assert counts[-3:] == [(scene.part == NEAR).sum(), *((scene.kind == name).sum() for name in ("fog", "noise"))]
