"""Every head at its own temperature, on embedded tiles; and what a verdict says is the temperature's."""

import numpy as np
import pandas as pd
import pytest

from lib.datasets.categories import halves, held_out
from lib.geometry import Euclidean, PoincareBall
from lib.papers.hyp_vit import verdicts
from lib.papers.hyp_vit.names import FLAT, HYP, LEARNT, ONE, SPH, UNCLIPPED
from lib.papers.hyp_vit.retrieval import comparisons, end_to_end, networks, tables, warmth
from lib.results.rates import best_rates
from lib.training import finetune
from lib.training.hyp_vit import Settings, spherical
from lib.training.photos import Preparation

PLAN = end_to_end.EndToEnd(
    "small", 3, finetune.Settings(4, 4, 2, 1e-2, 5e-2, check_every=2), Preparation(16, 16), unseen=True
)
TAUS, RATES = [0.1, 0.4], [1e-3, 1e-2]
KINDS = {HYP: Settings(), SPH: spherical(Settings())} | warmth.kinds(Settings(), TAUS)


@pytest.fixture
def trained(tiles, small, tmp_path, monkeypatch):
    taught = []
    once = finetune.finetune

    def spy(*given, **options):
        taught.append(
            (type(given[1].geometry), given[2].temperature, given[5].lr, given[5].steps, set(given[4].labels))
        )
        return once(*given, **options)

    monkeypatch.setattr(finetune, "finetune", spy)
    parts, several = halves(tiles), networks.plans(KINDS, PLAN, [])
    options = {"temperatures": TAUS, "store": tmp_path}
    tried = networks.rates(tiles, parts, warmth.shorter(several, 2), RATES, **options)
    return tiles, parts, several, tried, taught, tmp_path


def test_a_temperature_is_chosen_where_rates_are_first_it_then_the_rate(trained):
    _, parts, several, tried, taught, _ = trained
    assert len(tried) == len(taught) == 3 * (2 + 1) and {steps for *_, steps, _ in taught} == {2}
    assert all(aside == set(parts.names[held_out(parts, 0)[1]]) for *_, aside in taught)
    halved = {temperature for geometry, temperature, *_ in taught if geometry is Euclidean}
    assert halved == {0.05, 0.2}  # distances of the flat head are half of the ball's near its centre
    assert tried.groupby("method")["chosen"].sum().eq(1).all()
    own = best_rates(tried, value="temperature")
    for name, of_one in tried.groupby("method"):
        assert set(of_one.loc[of_one["temperature"] == own[name], "lr"]) == set(RATES)
        assert set(of_one.loc[of_one["temperature"] != own[name], "lr"]) == {RATES[0]}
    assert warmth.named(tried)["method"].nunique() == 6 and warmth.says(tried).startswith(" τ: Hyp 0.")
    (kinds, plan), rates = warmth.at_chosen(several, tried)[0], warmth.rates(tried)
    assert kinds[HYP].temperature == kinds[ONE].temperature == own[HYP] and kinds[ONE].cosine
    assert kinds[SPH].temperature == own[SPH] and kinds[FLAT].temperature == own[FLAT] / 2 and plan == PLAN
    assert rates[ONE] == rates[LEARNT] == rates[HYP]


def test_all_are_looked_at_at_fixed_steps_and_a_learnt_c_moves_and_is_searched_with(trained):
    tiles, parts, several, tried, _, store = trained
    chosen, lr = warmth.at_chosen(several, tried), warmth.rates(tried)
    options = {"lr_of": lr, "store": store}
    found, course = networks.trained(tiles, parts, chosen, [1, 2], n_seeds=2, **options)
    once, of_once = networks.trained(tiles, parts, warmth.variants(chosen), [1, 2], **options)
    rows = warmth.steps(pd.concat([course, of_once]))
    wide = rows.pivot_table(index=["method", "place"], columns="at", values="ours")
    assert list(wide.columns) == ["0", "2", "4", "chosen"] and len(wide) == 6 * 2 + 1
    for name in (HYP, SPH, ONE):  # the step that the head chose is the one that the tables are of
        for place in ("head", "encoder"):
            score = tables.recall({"x": found[f"{name}, end to end, {place}"]}).query("k == 1")["ours"].item()
            assert wide.loc[(f"{name}, end to end", place), "chosen"] == pytest.approx(score)
    c = wide.loc[(f"{LEARNT}, end to end", "c")]
    assert c["0"] == pytest.approx(0.1) and c["4"] != c["2"] != c["0"]
    learnt = once[f"{LEARNT}, end to end, head"][0].method.head.geometry
    assert isinstance(learnt, PoincareBall) and learnt.c == pytest.approx(c["chosen"])
    assert once[f"{UNCLIPPED}, end to end, head"][0].method.head.clip_radius is None
    assert "step 4" in warmth.steps_layout(rows) and "at the chosen step" in warmth.steps_layout(rows)
    tests = comparisons.tests(found, parts.names, (1, 2), {f"{name}, end to end": rate for name, rate in lr.items()})
    asked = set(tests[tests["question"] == warmth.QUESTION]["second"])
    assert asked == {f"{name}, end to end, {place}" for name in (ONE, SPH, FLAT) for place in ("head", "encoder")}
    assert comparisons.BALL not in set(tests["question"])
    told = warmth.verdicts(tests, tried)
    assert told["place"].tolist() == ["head", "encoder"] and len(verdicts.temperature(told)) == 2
    assert "τ of Sph" in warmth.layout(told)


def test_without_temperatures_nothing_is_another(tiles, small):
    plain = networks.plans(KINDS, PLAN, [])
    tried = pd.DataFrame({"method": [HYP], "lr": [1e-3], "chosen": [True]})
    assert warmth.kinds(Settings(), []) == {} and warmth.shorter(plain, 0) == plain
    assert warmth.at_chosen(plain, tried) == plain and warmth.rates(tried) == {HYP: 1e-3}
    assert warmth.edges(tried) == [] and warmth.says(tried) == "" and warmth.named(tried) is tried


@pytest.mark.parametrize(
    ("one", "own", "taus", "rates", "words"),
    [
        ((2.0, 0.01), (0.4, 0.5), (0.2, 0.1), (1, 1), "it is the temperature, and not the curvature"),
        ((2.0, 0.01), (0.4, 0.5), (0.2, 0.2), (1, 2), "it is the rate, and not the curvature"),
        ((2.0, 0.01), (-2.0, 0.01), (0.2, 0.1), (1, 2), "Sph is ahead: it is the temperature or the rate"),
        ((2.0, 0.01), (1.8, 0.06), (0.2, 0.1), (1, 1), "most of it is left: it cannot be told"),
        ((2.0, 0.01), (1.8, 0.01), (0.2, 0.1), (1, 1), "the temperature does not explain the lead"),
        ((2.0, 0.01), (2.0, 0.01), (0.2, 0.2), (1, 1), "ahead; both chose the same τ and rate"),
        ((0.2, 0.90), (-2.0, 0.01), (0.2, 0.1), (1, 1), "nothing speaks for the curvature"),
        ((0.2, 0.90), (0.1, 0.90), (0.2, 0.1), (1, 1), "there is none for a temperature to explain"),
    ],
)
def test_a_verdict_says_what_closes_a_gap(one, own, taus, rates, words):
    rows = []
    for name, (difference, p) in {ONE: one, SPH: own}.items():
        for place in ("head", "encoder"):
            pair = {"first": f"{HYP}, end to end, {place}", "second": f"{name}, end to end, {place}", "k": 1}
            test = {"difference": difference, "p_holm": p, "p_value": p / 6, "p_floor": 0.0002, "n_units": 39}
            rows.append(pair | test | {"n_tests": 8, "n_seeds": 3, "low": np.nan, "high": np.nan})
    tests = pd.DataFrame(rows).assign(question=warmth.QUESTION)
    tried = pd.DataFrame({"method": [HYP, SPH], "temperature": taus, "lr": rates, "chosen": True})
    told = warmth.verdicts(tests, tried)
    assert told["verdict"].str.contains(words, regex=False).all()
    assert all(words in line for line in verdicts.temperature(told))
