"""Published rows apart from ours; every question has its pairs and its own correction."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib.metrics.retrieval import evaluate
from lib.metrics.significance import corrected
from lib.papers.hyp_vit.names import BEFORE, END, HYP, LINEAR, NONE, SPH, UNTRAINED
from lib.papers.hyp_vit.retrieval import figures, frozen, tables
from lib.papers.hyp_vit.retrieval.tables import ALONE, BALL, END_TO_END, HEAD, PRETRAINED
from lib.training.hyp_vit import Settings, spherical
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

LABELS, ROWS = np.repeat(np.arange(10), 4), np.arange(40)
NAMES = np.array([f"c{number}" for number in LABELS])


def answer(name: str, settings: Settings, noise: float, repeat: int) -> Answer:
    """Ten categories of four images, scattered by ``noise``."""
    rng = np.random.default_rng((repeat, int(10 * noise)))
    points = (rng.normal(size=(10, 3))[LABELS] + noise * rng.normal(size=(40, 3))).astype(np.float32)
    values = evaluate(points, points, LABELS, LABELS, "euclidean", (1, 2), ROWS, ROWS)
    method = Method(name, Recipe("raw", 8, 0 if name == NONE else 3), settings)
    health = Health() if name == NONE else Health(0.5, 0.0, 30)
    return Answer(method, Split(0, ROWS, ROWS, repeat, repeat=repeat), health, [], np.linspace(0, 1.9, 40), values)


@pytest.fixture(scope="module")
def found():
    kinds = {NONE: (Settings(), 0.1), HYP: (Settings(), 0.1), SPH: (spherical(Settings()), 2.0)}
    kinds |= {LINEAR: (Settings(), 4.0)}
    return {name: [answer(name, *kind, repeat) for repeat in range(3)] for name, kind in kinds.items()}


def test_recall_is_the_share_of_queries_with_a_hit(found):
    rows = tables.recall(found).set_index(["method", "k"])
    hits = [one.per_query.values["hit_rate", 1].mean() for one in found[SPH]]
    assert rows.loc[(SPH, 1), "ours"] == pytest.approx(100 * np.mean(hits))
    assert rows.loc[(SPH, 1), "seeds_spread"] == pytest.approx(100 * np.std(hits, ddof=1))
    assert rows.loc[(HYP, 1), "dim"] == 3 and rows.loc[(NONE, 1), "dim"] == 8
    assert rows.loc[(HYP, 1), "chance"] == pytest.approx(100 * 3 / 39)


def test_trainings_that_kept_step_0_have_no_last_loss(found):
    health = [Health(loss, 0.0, steps) for loss, steps in ((0.5, 20), (3, 0), (4, 0))]
    kept = [replace(one, health=of) for one, of in zip(found[HYP], health, strict=True)]
    rows = tables.recall({HYP: kept})
    assert rows["loss"].unique().tolist() == [0.5] and rows["steps_each"][0] == "20 / 0 / 0"
    assert tables.recall({HYP: kept[1:]})["loss"].isna().all()


def test_published_rows_stand_first_and_say_so(found):
    lines = tables.layout(tables.recall(found), tables.of_dataset(2, "cub")).splitlines()
    whose = [line.split("|")[2].strip() for line in lines[2:]]
    assert whose == ["published"] * 10 + ["ours"] * 4 + ["–"]  # four earlier methods, six versions of the paper
    assert any(line.startswith("| Hyp-ViT (ViT-S) | published | 128 | 84.0 | 90.2 |") for line in lines)
    ours = tables.layout(tables.recall(found), tables.of_dataset(2, "tissue"))
    assert next(line for line in ours.splitlines() if line.startswith("| no head ")).count("| – ") == 4
    assert "published" not in ours and ours.splitlines()[-1].startswith("| chance ")


def test_categories_are_the_units_and_every_question_has_its_own_correction(found):
    rows = tables.tests(found, NAMES, [1], {HYP: 1e-3, SPH: 1e-4})
    assert rows[["question", "first", "second"]].values.tolist() == [
        [HEAD, HYP, NONE],
        [HEAD, HYP, LINEAR],
        [BALL, HYP, SPH],
    ]
    assert set(rows["n_units"]) == {10} and set(rows["n_seeds"]) == {3}
    gain, loss = (np.mean([one.per_query.values["hit_rate", 1].mean() for one in found[name]]) for name in (HYP, SPH))
    assert rows.loc[2, "difference"] == pytest.approx(100 * (gain - loss))
    assert rows.loc[2, "p_holm"] == rows.loc[2, "p_value"] < corrected(rows["p_value"])[2]
    assert rows["n_tests"].tolist() == [2, 2, 1]
    assert tables.marked(rows)["second"].tolist() == [NONE, LINEAR, "Sph (rate 0.0001)"]
    places = {f"{name}{END}head": found[name] for name in (HYP, SPH)} | {f"{SPH}, by D_cos": found[SPH]}
    trained = tables.tests(places, NAMES, [1], {f"{HYP}, end to end": 3.0})
    assert trained["first_rate"].tolist() == [3.0] and trained["second_rate"].isna().all()


def test_end_to_end_is_compared_with_end_to_end_and_the_control_with_itself():
    names = [NONE, HYP, SPH, "Hyp, end to end, head", "Sph, end to end, head", "Hyp, end to end, encoder", BEFORE]
    pairs = tables.pairs(dict.fromkeys([*names, *(f"{UNTRAINED}{name}" for name in names)]))
    assert pairs[BALL] == [(HYP, SPH), tuple(names[3:5])] and pairs[HEAD] == [(HYP, NONE)]
    assert pairs[END_TO_END] == [("Hyp, end to end, encoder", BEFORE)]
    assert pairs[PRETRAINED] == [(name, f"{UNTRAINED}{name}") for name in (NONE, HYP, names[3], names[5])]
    assert pairs[ALONE] == [
        ("untrained encoder, Hyp", "untrained encoder, no head"),
        ("untrained encoder, Hyp", "untrained encoder, Sph"),
        ("untrained encoder, Hyp, end to end, encoder", f"{UNTRAINED}{BEFORE}"),
    ]


def test_a_further_network_answers_the_questions_of_the_first():
    names = [NONE, HYP, SPH, "Hyp, end to end, encoder", "Sph, end to end, encoder", BEFORE]
    pairs = tables.pairs(dict.fromkeys([*names, *(f"net, {name}" for name in names)]))
    assert pairs[HEAD] == [(HYP, NONE), ("net, Hyp", "net, no head")] and ("net, Hyp", "net, Sph") in pairs[BALL]
    assert pairs[END_TO_END][2:] == [(f"net, {kind}, end to end, encoder", f"net, {BEFORE}") for kind in (HYP, SPH)]


def test_where_points_rest_is_said_of_the_ball_only(found):
    again = [replace(one, method=by) for one in found[HYP] for by in frozen.by_cosine([one.method])]
    rows = tables.rest({name: found[name] for name in (NONE, HYP, SPH)} | {f"{HYP}, by D_cos": again})
    assert set(rows["method"]) == {HYP} and len(rows) == 40  # the same points are not drawn twice
    assert rows["share"].max() == pytest.approx(100 * 0.1**0.5 * 1.9)
    axis = figures.rest(rows, tables.bound(Settings())).axes[0]
    assert axis.get_xlim()[1] > 100 and any(line.get_linestyle() == "--" for line in axis.lines)
    plt.close("all")


def test_a_course_shows_every_training_and_rings_the_step_of_the_head():
    course = {"repeat": 0, "step": [0, 1, 2], "loss": [np.nan, 3.0, 2.0], "head": [50.0, np.nan, 60.0]}
    course = pd.DataFrame(course | {"encoder": [55.0, np.nan, 58.0]})
    names = ("Hyp", "Sph", f"{UNTRAINED}Hyp")
    above, below = figures.course(pd.concat([course.assign(method=f"{name}, end to end") for name in names])).subfigs
    assert [axis.get_title() for axis in above.axes] == list(names)
    assert above.axes[0].lines[0].get_xydata().tolist() == [[1, 3.0], [2, 2.5]]
    scores, of_control = below.axes
    head, _, ringed, of_sph = scores.lines[:4]
    assert head.get_xydata().tolist() == [[0, 50], [2, 60]] and ringed.get_xydata().tolist() == [[2, 60]]
    assert head.get_marker() != of_sph.get_marker() and (len(scores.lines), len(of_control.lines)) == (6, 3)
    many = pd.concat([course.assign(method=f"Hyp at rate {n}, end to end") for n in range(8)])
    assert len(figures.course(many).subfigs[0].axes) == 8  # more than there are markers
    plt.close("all")
