"""Every question has its pairs and its own correction; heads at unlike rates are told."""

import numpy as np
import pytest

from lib.metrics.retrieval import evaluate
from lib.metrics.significance import corrected
from lib.papers.hyp_vit import verdicts
from lib.papers.hyp_vit.names import BEFORE, HYP, LINEAR, NONE, SPH, UNCLIPPED, UNTRAINED
from lib.papers.hyp_vit.retrieval import comparisons, frozen
from lib.papers.hyp_vit.retrieval.comparisons import ALONE, BALL, END_TO_END, HEAD, PRETRAINED
from lib.results import paired
from lib.training.hyp_vit import Settings, spherical
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

LABELS = np.repeat(np.arange(10), 4)
NAMES = np.array([f"c{number}" for number in LABELS])
ROWS = np.arange(40)

RATES = {HYP: 1e-3, SPH: 1e-4, "Hyp, end to end": 3.0}


def answer(name: str, settings: Settings, noise: float, repeat: int) -> Answer:
    """Ten categories of four images, scattered by ``noise``."""
    rng = np.random.default_rng((repeat, int(10 * noise)))
    points = (rng.normal(size=(10, 3))[LABELS] + noise * rng.normal(size=(40, 3))).astype(np.float32)
    values = evaluate(points, points, LABELS, LABELS, "euclidean", (1, 2), ROWS, ROWS)
    method = Method(name, Recipe("raw", 8, 3), settings)
    return Answer(method, Split(0, ROWS, ROWS, repeat, repeat=repeat), Health(0.5, 0.0, 30), [], ROWS / 21, values)


@pytest.fixture(scope="module")
def found():
    kinds = {NONE: (Settings(), 0.1), HYP: (Settings(), 0.1), SPH: (spherical(Settings()), 2.0)}
    kinds |= {LINEAR: (Settings(), 4.0)}
    return {name: [answer(name, *kind, repeat) for repeat in range(3)] for name, kind in kinds.items()}


def test_categories_are_the_units_and_every_question_has_its_own_correction(found):
    rows = comparisons.tests(found, NAMES, [1], RATES)
    asked = rows[["question", "first", "second"]].values.tolist()
    assert asked == [[HEAD, HYP, NONE], [HEAD, HYP, LINEAR], [BALL, HYP, SPH]]
    assert set(rows["n_units"]) == {10} and set(rows["n_seeds"]) == {3}
    gain, loss = (np.mean([one.per_query.values["hit_rate", 1].mean() for one in found[name]]) for name in (HYP, SPH))
    assert rows.loc[2, "difference"] == pytest.approx(100 * (gain - loss))
    assert rows.loc[2, "p_holm"] == rows.loc[2, "p_value"] < corrected(rows["p_value"])[2]
    assert rows["n_tests"].tolist() == [2, 2, 1]
    assert f"| {BALL} | Hyp | Sph | 1 | +" in paired.tests_layout(rows, comparisons.NAMES)


def test_end_to_end_is_compared_with_end_to_end_and_with_no_training():
    places = [f"{name}, end to end, {place}" for name in (HYP, SPH) for place in ("head", "encoder")]
    asked = comparisons.pairs(dict.fromkeys([HYP, SPH, NONE, BEFORE, *places]))
    assert asked[BALL] == [
        (HYP, SPH),
        ("Hyp, end to end, head", "Sph, end to end, head"),
        ("Hyp, end to end, encoder", "Sph, end to end, encoder"),
    ]
    assert asked[END_TO_END] == [("Hyp, end to end, encoder", BEFORE), ("Sph, end to end, encoder", BEFORE)]


def test_the_control_is_compared_with_the_pretrained_encoder_and_within_itself():
    names = [NONE, HYP, SPH, "Hyp, end to end, head", "Hyp, end to end, encoder", BEFORE]
    asked = comparisons.pairs(dict.fromkeys([*names, *(f"{UNTRAINED}{name}" for name in names)]))
    assert asked[PRETRAINED] == [(name, f"{UNTRAINED}{name}") for name in (NONE, HYP, *names[3:5])]
    assert asked[ALONE] == [
        ("untrained encoder, Hyp", "untrained encoder, no head"),
        ("untrained encoder, Hyp", "untrained encoder, Sph"),
        ("untrained encoder, Hyp, end to end, encoder", f"{UNTRAINED}{BEFORE}"),
    ]
    assert asked[HEAD] == [(HYP, NONE)] and asked[END_TO_END] == [("Hyp, end to end, encoder", BEFORE)]


def test_a_further_network_answers_the_questions_of_the_first():
    names = [NONE, HYP, SPH, "Hyp, end to end, encoder", "Sph, end to end, encoder", BEFORE]
    asked = comparisons.pairs(dict.fromkeys([*names, *(f"net, {name}" for name in names)]))
    assert asked[HEAD] == [(HYP, NONE), ("net, Hyp", "net, no head")]
    assert ("net, Hyp", "net, Sph") in asked[BALL]
    assert asked[END_TO_END][2:] == [(f"net, {kind}, end to end, encoder", f"net, {BEFORE}") for kind in (HYP, SPH)]


def test_methods_at_different_rates_are_marked(found):
    several = found | {UNCLIPPED: found[SPH], f"{UNCLIPPED}{frozen.BY_COSINE}": found[SPH]}
    rows = comparisons.marked(comparisons.tests(several, NAMES, [1], RATES | {UNCLIPPED: 1e-3}))
    assert rows[["first", "second"]].values.tolist() == [
        [HYP, NONE],
        [HYP, LINEAR],
        ["Hyp (rate 0.001)", "Sph (rate 0.0001)"],
        [HYP, UNCLIPPED],
        [HYP, f"{UNCLIPPED}{frozen.BY_COSINE}"],
    ]


def test_verdicts_stand_under_their_questions_at_the_smallest_k(found):
    lines = comparisons.sentences(comparisons.tests(found, NAMES, [1, 2], RATES))
    assert lines[0] == verdicts.NOTE and [line for line in lines if line in (HEAD, BALL)] == [HEAD, BALL]
    assert lines[-1].startswith("  Hyp (rate 0.001) against Sph (rate 0.0001): k = 1 ") and "k = 2" not in str(lines)
