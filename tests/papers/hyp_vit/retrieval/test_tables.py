"""Rows in the paper's layout, published ones apart from ours; categories are the units of the tests."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib.datasets.categories import Halves
from lib.geometry import PoincareBall
from lib.metrics.retrieval import evaluate
from lib.papers.hyp_vit.names import END, HYP, NONE, SPH, UNCLIPPED, UNTRAINED
from lib.papers.hyp_vit.published import recall
from lib.papers.hyp_vit.retrieval import figures, frozen, tables
from lib.results.store import Run
from lib.training.hyp_vit import Settings, spherical
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

LABELS = np.repeat(np.arange(10), 4)
NAMES = np.array([f"c{number}" for number in LABELS])
ROWS = np.arange(40)


def answer(name: str, settings: Settings, noise: float, repeat: int, dim: int = 3) -> Answer:
    """Ten categories of four images, scattered by ``noise``."""
    rng = np.random.default_rng((repeat, int(10 * noise)))
    points = (rng.normal(size=(10, dim))[LABELS] + noise * rng.normal(size=(40, dim))).astype(np.float32)
    values = evaluate(points, points, LABELS, LABELS, "euclidean", (1, 2), ROWS, ROWS)
    method = Method(name, Recipe("raw", 8, 0 if name == NONE else dim), settings)
    health = Health() if name == NONE else Health(0.5, 0.0, 30)
    return Answer(method, Split(0, ROWS, ROWS, repeat, repeat=repeat), health, [], np.linspace(0, 1.9, 40), values)


@pytest.fixture(scope="module")
def found():
    kinds = {NONE: (Settings(), 0.1), HYP: (Settings(), 0.1), SPH: (spherical(Settings()), 2.0)}
    return {name: [answer(name, *kind, repeat) for repeat in range(3)] for name, kind in kinds.items()}


def test_recall_is_the_share_of_queries_with_a_hit(found):
    rows = tables.recall(found).set_index(["method", "k"])
    hits = [one.per_query.values["hit_rate", 1].mean() for one in found[SPH]]
    assert rows.loc[(SPH, 1), "ours"] == pytest.approx(100 * np.mean(hits))
    assert rows.loc[(SPH, 1), "seeds_spread"] == pytest.approx(100 * np.std(hits, ddof=1))
    assert rows.loc[(HYP, 1), "dim"] == 3 and rows.loc[(NONE, 1), "dim"] == 8
    assert rows.loc[(HYP, 1), "chance"] == pytest.approx(100 * 3 / 39)


def test_published_rows_stand_first_and_say_so(found):
    lines = tables.layout(tables.recall(found), recall(2).query("dataset == 'cub'")).splitlines()
    whose = [line.split("|")[2].strip() for line in lines[2:]]
    # Four earlier methods have numbers for CUB, and the six versions of the paper.
    assert whose == ["published"] * 10 + ["ours"] * 3 + ["–"]
    (hyp_vit,) = [line for line in lines if line.startswith("| Hyp-ViT (")]
    assert "| 84.0 | 90.2 |" in hyp_vit
    ours = tables.layout(tables.recall(found), recall(2).head(0))
    assert next(line for line in lines if line.startswith("| no head ")).count("| – ") == 4  # ± and health
    assert "published" not in ours and ours.splitlines()[-1].startswith("| chance ")


def test_where_points_rest_is_said_of_the_ball_alone(found):
    again = [replace(one, method=by) for one in found[HYP] for by in frozen.by_cosine([one.method])]
    rows = tables.rest(found | {f"{HYP}, by D_cos": again})  # the same points, which are not drawn twice
    assert set(rows["method"]) == {HYP} and len(rows) == 40
    assert rows["share"].max() == pytest.approx(100 * 0.1**0.5 * 1.9)
    bound, said = tables.rest_sentences(rows, Settings())
    assert "62.1 %" in bound and said.startswith("Hyp: median 30.0 %, largest 60.1 %") and "; 0 % of the images" in said
    outside = rows.assign(share=70.0)
    assert "100 % of the images" in tables.rest_sentences(outside, Settings())[1]


def test_trainings_that_kept_step_0_are_counted_and_have_no_last_loss(found):
    name = f"{HYP}{END}encoder"
    kept = [
        replace(one, health=Health(loss, 0.0, steps))
        for one, loss, steps in zip(found[HYP], (0.5, 3, 4), (20, 0, 0), strict=True)
    ]
    rows = tables.recall({name: kept})
    assert rows["loss"].unique().tolist() == [0.5] and rows["steps_each"][0] == "20 / 0 / 0"
    (line,) = tables.untrained(rows)
    assert line.startswith(f"{name}: 2 of 3 trainings kept step 0") and tables.untrained(tables.recall(found)) == []
    none = tables.recall({name: [replace(one, health=Health(3.0, 0.0, 0)) for one in found[HYP]]})
    assert none["loss"].isna().all() and "3 of 3 trainings" in tables.untrained(none)[0]
    head = tables.recall({f"untrained encoder, {HYP}{END}head": kept})
    assert tables.untrained(head)[0].endswith(
        "2 of 3 trainings kept step 0, a random projection that has learnt nothing"
    )


def test_what_the_encoder_loses_to_the_step_of_the_head_is_told():
    rows = {"step": [0, 10, 20], "head": [50.0, 60.0, 60.0], "encoder": [55.0, 58.0, 62.0], "loss": np.nan}
    several = [pd.DataFrame(rows).assign(method="Hyp, end to end", repeat=repeat) for repeat in range(2)]
    (line,) = tables.course_sentences(pd.concat(several))
    assert "58.00 at the steps that the heads chose (10 / 10), 62.00 at its own best (20 / 20)" in line


def test_trainings_that_were_best_at_their_last_step_are_counted():
    rows = {"step": [0, 10, 20], "head": [50.0, 60.0, 61.0], "encoder": [55.0, 58.0, 62.0], "loss": np.nan}
    course = pd.DataFrame(rows).assign(method="Hyp, end to end", repeat=0)
    level = course.assign(repeat=1, head=[50.0, 60.0, 60.0])  # of equal steps the first is kept
    *_, line = tables.course_sentences(pd.concat([course, level, level.assign(method="Sph, end to end", repeat=0)]))
    assert line == (
        "best at the last step, where the budget ended them and more steps may give more: Hyp, end to end, 1 of 2 "
        "trainings"
    )
    assert tables.budget(level) == []


RATES = pd.DataFrame(
    {
        "method": [HYP, HYP, SPH, SPH, UNCLIPPED, f"{UNTRAINED}{HYP}", f"{UNTRAINED}{SPH}"],
        "lr": [1e-4, 1e-3, 1e-4, 1e-3, 1e-4, 1e-3, 1e-3],
        "chosen": [False, True, False, True, True, True, True],
    }
)


def test_heads_at_another_rate_than_hyp_are_named():
    first, second = tables.rates_apart(RATES)
    said = "and so different from it in that as well"
    assert first == f"trained at another rate than Hyp (0.001), {said}: Hyp, not clipped (rate 0.0001)"
    assert second == f"trained at another rate than untrained encoder, Hyp (0.001), {said}: none"


def test_choices_at_an_end_of_their_own_candidates_are_named():
    rows = pd.DataFrame(
        {
            "method": ["Hyp"] * 2 + ["Sph"] * 3 + ["classifier"] * 2 + ["fixed"],
            "lr": [1e-4, 1e-3, 1e-4, 3e-4, 1e-3, 0.01, 0.1, 1e-3],
            "chosen": [False, True, False, True, False, True, False, True],
        }
    )
    smallest, largest = tables.edges(rows)
    assert smallest.startswith("chosen at the smallest of") and smallest.endswith(": classifier (0.01)")
    assert largest.startswith("chosen at the largest of") and largest.endswith(": Hyp (0.001)")
    assert tables.edges(rows[rows["method"] == "Sph"]) == []


def test_a_table_says_where_its_rows_come_from(found):
    run = Run("22_hyp_vit_retrieval", "sample", "cub", "40 images", "abc", "a network")
    table = tables.numbered(run, tables.recall(found), recall(3), "Table 3", "About.")
    assert "no yardstick for ours" in table.caption and "| Hyp-ViT (" in table.markdown
    parts = Halves(NAMES, LABELS, ROWS[:20], ROWS[20:], ROWS[20:], 0)
    assert tables.asking(parts) == "20 images of 5 categories ask, 4 to 4 of each (median 4)."
    assert tables.asking(replace(parts, left_out=3)).endswith("Left out, as alone in their category: 3 images.")


def test_figures_draw_their_rows(found):
    rows = tables.recall(found)
    left, right = figures.recall(rows).axes
    assert [tick.get_text() for tick in left.get_yticklabels()] == [NONE, HYP, SPH]
    assert "Recall@1" in left.get_xlabel() and "Recall@2" in right.get_xlabel() and "chance" in left.get_xlabel()
    control = rows[rows["method"] == HYP].assign(method=f"{UNTRAINED}{HYP}", ours=1.0, class_mean=1.0, seeds_spread=0.1)
    _, _, below, _ = figures.recall(pd.concat([rows, control])).axes
    assert [tick.get_text() for tick in below.get_yticklabels()] == [f"{UNTRAINED}{HYP}"]
    assert below.get_xlim()[1] < left.get_xlim()[1] / 2
    course = pd.DataFrame(
        {"method": "Hyp, end to end", "repeat": 0, "step": [0, 1, 2], "loss": [np.nan, 3.0, 2.0]}
        | {"head": [50.0, np.nan, 60.0], "encoder": [55.0, np.nan, 58.0]}
    )
    names = ("Hyp", "Sph", f"{UNTRAINED}Hyp")
    several = pd.concat([course.assign(method=f"{name}, end to end") for name in names])
    above, below = figures.course(several).subfigs
    assert [axis.get_title() for axis in above.axes] == list(names)
    assert above.axes[0].lines[0].get_xydata().tolist() == [[1, 3.0], [2, 2.5]]
    scores, of_control = below.axes
    head, encoder, ringed, of_sph = scores.lines[:4]
    assert head.get_xydata().tolist() == [[0, 50], [2, 60]] and ringed.get_xydata().tolist() == [[2, 60]]
    assert head.get_linestyle() != encoder.get_linestyle() and head.get_marker() != of_sph.get_marker()
    assert len(scores.lines) == 6 and len(of_control.lines) == 3
    many = pd.concat([course.assign(method=f"Hyp at rate {n}, end to end") for n in range(8)])
    assert len(figures.course(many).subfigs[0].axes) == 8  # more than there are markers
    axis = figures.rest(tables.rest(found), tables.bound(Settings(PoincareBall(0.1)))).axes[0]
    assert axis.get_xlim()[1] > 100 and any(line.get_linestyle() == "--" for line in axis.lines)
    plt.close("all")
