"""Published rows apart from ours; every question has its pairs and its own correction."""

from dataclasses import replace

import numpy as np
import pytest

from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.metrics.retrieval import evaluate
from lib.metrics.significance import corrected
from lib.papers.hyp_vit import heads, networks, retrieval
from lib.papers.hyp_vit.heads import BALL, BEFORE, END, HEAD, HYP, LINEAR, NONE, SPH, UNTRAINED, Kind
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
def answers():
    kinds = {NONE: (Settings(), 0.1), HYP: (Settings(), 0.1), SPH: (spherical(Settings()), 2.0)}
    kinds |= {LINEAR: (Settings(), 4.0)}
    return {name: [answer(name, *kind, repeat) for repeat in range(3)] for name, kind in kinds.items()}


def test_recall_is_the_share_of_queries_with_a_hit(answers):
    rows = retrieval.recall(answers).set_index(["method", "k"])
    hits = [one.per_query.values["hit_rate", 1].mean() for one in answers[SPH]]
    assert rows.loc[(SPH, 1), "ours"] == pytest.approx(100 * np.mean(hits))
    assert rows.loc[(HYP, 1), "dim"] == 3 and rows.loc[(NONE, 1), "dim"] == 8


def test_trainings_that_kept_step_0_have_no_last_loss(answers):
    health = [Health(loss, 0.0, steps) for loss, steps in ((0.5, 20), (3, 0), (4, 0))]
    kept = [replace(one, health=of) for one, of in zip(answers[HYP], health, strict=True)]
    rows = retrieval.recall({HYP: kept})
    assert rows["loss"].unique().tolist() == [0.5] and rows["steps_each"][0] == "20 / 0 / 0"
    assert retrieval.recall({HYP: kept[1:]})["loss"].isna().all()


def test_published_rows_stand_first_and_say_so(answers):
    lines = retrieval.layout(retrieval.of_dataset(2, "cub"))(retrieval.recall(answers)).splitlines()
    whose = [line.split("|")[2].strip() for line in lines[2:]]
    assert whose == ["published"] * 10 + ["ours"] * 4 + ["–"]  # four earlier methods, six versions of the paper
    assert any(line.startswith("| Hyp-ViT (ViT-S) | published | 128 | 84.0 | 90.2 |") for line in lines)


def test_categories_are_the_units_and_every_question_has_its_own_correction(answers):
    rows = retrieval.tests(answers, NAMES, [1], {HYP: 1e-3, SPH: 1e-4})
    pairs = [[HEAD, HYP, NONE], [HEAD, HYP, LINEAR], [BALL, HYP, SPH]]
    assert rows[["question", "first", "second"]].values.tolist() == pairs
    assert set(rows["n_units"]) == {10} and set(rows["n_seeds"]) == {3} and rows["n_tests"].tolist() == [2, 2, 1]
    first, second = (np.mean([one.per_query.values["hit_rate", 1].mean() for one in answers[n]]) for n in (HYP, SPH))
    assert rows.loc[2, "difference"] == pytest.approx(100 * (first - second))
    assert rows.loc[2, "p_holm"] == rows.loc[2, "p_value"] < corrected(rows["p_value"])[2]
    assert retrieval.marked(rows)["second"].tolist() == [NONE, LINEAR, "Sph (rate 0.0001)"]
    places = {f"{name}{END}head": answers[name] for name in (HYP, SPH)}
    rates = retrieval.tests(places, NAMES, [1], {f"{HYP}, end to end": 3.0})[["first_rate", "second_rate"]]
    assert rates["first_rate"].tolist() == [3.0] and rates["second_rate"].isna().all()


def test_a_head_that_is_declared_is_drawn_and_tested_and_what_is_not_is_refused(answers, monkeypatch):
    new = "Hyp, on paper"
    several = {name: answers[name] for name in (NONE, HYP)} | {new: answers[SPH]}
    with pytest.raises(InputError, match=r"no question compares 'Hyp, on paper' with another method: declare it"):
        retrieval.tests(several, NAMES, [1], {})
    kind = Kind(lambda paper: replace(paper, geometry=PoincareBall(1.0)), BALL, heads.TRAINED)
    monkeypatch.setitem(heads.HEADS, new, kind)
    assert retrieval.tests(several, NAMES, [1], {})["second"].tolist() == [NONE, new]
    colours = {retrieval.colour(name) for name in (HYP, SPH, new, f"{new}{END}head")}
    assert len(colours) == 3 and retrieval.colour(f"small, {SPH}, τ and rate of Hyp") == retrieval.colour(SPH)
    with pytest.raises(InputError, match="'Hyper' is no head of Table 2: add it to HEADS"):
        retrieval.colour("Hyper")
    plan, _ = networks.plans(Settings(), None, [])[0]
    assert list(plan) == [HYP, SPH, new] and plan[new].geometry == PoincareBall(1.0)
    together = [f"{name}{END}head" for name in (HYP, SPH, new)]
    assert retrieval.pairs(dict.fromkeys(together))[BALL] == [(together[0], together[1]), (together[0], together[2])]


def test_end_to_end_is_compared_with_end_to_end_and_controls_and_networks_with_themselves():
    names = [NONE, HYP, SPH, *(f"{name}{END}{place}" for name in (HYP, SPH) for place in ("head", "encoder")), BEFORE]
    everything = [f"{prefix}{name}" for prefix in ("", UNTRAINED, "net, ") for name in names]
    pairs = retrieval.pairs(dict.fromkeys(everything))
    assert pairs[HEAD] == [(HYP, NONE), ("net, Hyp", "net, no head")]
    both = ("head", "encoder")
    heads_of = [(f"{net}Hyp{END}{place}", f"{net}Sph{END}{place}") for net in ("", "net, ") for place in both]
    assert pairs[BALL] == [(HYP, SPH), ("net, Hyp", "net, Sph"), *heads_of]
    kinds = [(net, kind) for net in ("", "net, ") for kind in (HYP, SPH)]
    assert pairs[heads.END_TO_END] == [(f"{net}{kind}{END}encoder", f"{net}{BEFORE}") for net, kind in kinds]
    own = [NONE, HYP, f"{HYP}{END}head", f"{HYP}{END}encoder"]
    assert pairs[heads.PRETRAINED] == [(name, f"{UNTRAINED}{name}") for name in own]
    control = [(HYP, NONE), (HYP, SPH), (f"{HYP}{END}encoder", BEFORE)]
    assert pairs[heads.ALONE] == [(f"{UNTRAINED}{first}", f"{UNTRAINED}{second}") for first, second in control]


def test_where_points_rest_is_shown_of_the_ball_only_each_with_its_own_bound(answers):
    again = [replace(one, method=by) for one in answers[HYP] for by in heads.by_cosine([one.method])]
    wider = [replace(one, method=replace(one.method, head=Settings(PoincareBall(1.0)))) for one in answers[HYP]]
    of = {name: answers[name] for name in (NONE, HYP, SPH)} | {f"{HYP}, by D_cos": again, "Hyp, on paper": wider}
    rows, bounds = retrieval.rest(of), retrieval.bounds(of)
    assert list(rows["method"].unique()) == [HYP, "Hyp, on paper"]  # the same points are not drawn twice
    assert rows[rows["method"] == HYP]["share"].max() == pytest.approx(100 * 0.1**0.5 * 1.9)
    assert [bounds[name] for name in (HYP, "Hyp, on paper")] == pytest.approx([62.1, 98.0], abs=0.1)
