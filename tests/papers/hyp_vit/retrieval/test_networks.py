"""Further networks under names that say whose they are; every head at its own temperature and rate."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.datasets.categories import halves, held_out
from lib.geometry import Euclidean, PoincareBall
from lib.papers.hyp_vit.names import BEFORE, FLAT, HYP, LEARNT, ONE, SPH, UNCLIPPED, UNTRAINED
from lib.papers.hyp_vit.retrieval import end_to_end, networks, tables
from lib.study.rates import best_rates
from lib.training import finetune
from lib.training.hyp_vit import Settings
from lib.training.photos import Preparation

GIVEN = finetune.Settings(4, 4, 2, 1e-2, 5e-2, check_every=2)
PLAN = end_to_end.EndToEnd("small", 3, GIVEN, Preparation(16, 16), unseen=True)
TAUS, RATES = [0.1, 0.4], [1e-3, 1e-2]


def test_every_network_is_trained_under_its_own_name(tiles, small, tmp_path):
    plans = networks.plans(Settings(), PLAN, ["small"], ["small-untrained", "other"])
    assert [(list(kinds), plan.encoder) for kinds, plan in plans] == [
        ([HYP, SPH], "small"),
        (["small, Hyp", "small, Sph"], "small"),
        ([f"{UNTRAINED}{HYP}"], "small-untrained"),
        ([f"other, {HYP}"], "other"),
    ]
    options = {"lr_of": {"small, Hyp": 1e-3}, "store": tmp_path}
    found, course = networks.trained(tiles, halves(tiles), plans[:3], [1], **options)
    places = [f"{kind}, end to end, {place}" for kind in (HYP, SPH) for place in ("head", "encoder")]
    control = [f"{UNTRAINED}{name}" for name in (BEFORE, *places[:2])]
    assert list(found) == [BEFORE, *places, f"small, {BEFORE}", *(f"small, {place}" for place in places), *control]
    assert course["method"].nunique() == 5
    one, other = (found[f"{whose}Sph, end to end, head"][0].per_query.values for whose in ("", "small, "))
    pd.testing.assert_frame_equal(one, other)  # the same network at the same rate


def test_without_candidates_each_network_has_its_published_rate(monkeypatch):
    given = []
    monkeypatch.setattr(end_to_end, "rates", lambda *a, **o: given.append((a[3].encoder, a[4])) or pd.DataFrame())
    plans = networks.plans(Settings(), replace(PLAN, encoder="dino_vits16"), ["vit_small_patch16_224.augreg_in21k"])
    networks.choose(None, None, plans, [])
    assert given == [("dino_vits16", [1e-5]), ("vit_small_patch16_224.augreg_in21k", [3e-5])]
    rates = networks.published_rates(plans, pd.DataFrame())
    assert rates == {"published": ["1e-05"] * 2 + ["3e-05"] * 2}
    networks.choose(None, None, plans[:1], [1e-3])
    assert given[-1] == ("dino_vits16", [1e-3])


@pytest.fixture
def tempered(tiles, small, tmp_path, monkeypatch):
    taught, once = [], finetune.finetune

    def spy(*given, **options):
        geometry, steps = type(given[1].geometry), given[5].steps
        taught.append((geometry, given[2].temperature, given[5].lr, steps, set(given[4].labels)))
        return once(*given, **options)

    monkeypatch.setattr(finetune, "finetune", spy)
    parts, plans = halves(tiles), networks.plans(Settings(), PLAN, [], tempered=True)
    options = {"temperatures": TAUS, "store": tmp_path}
    tried = networks.choose(tiles, parts, networks.shorter(plans, 2), RATES, **options)
    return tiles, parts, plans, tried, taught, tmp_path


def test_a_temperature_is_chosen_first_then_the_rate_and_no_query_is_seen(tempered):
    _, parts, plans, tried, taught, _ = tempered
    assert len(tried) == len(taught) == 3 * (2 + 1) and {steps for *_, steps, _ in taught} == {2}
    assert all(aside == set(parts.names[held_out(parts, 0)[1]]) for *_, aside in taught)
    halved = {temperature for geometry, temperature, *_ in taught if geometry is Euclidean}
    assert halved == {0.05, 0.2}  # distances of the flat head are half of the ball's near its centre
    assert tried.groupby("method")["chosen"].sum().eq(1).all()
    own = best_rates(tried, value="temperature")
    for name, rows in tried.groupby("method"):
        assert set(rows.loc[rows["temperature"] == own[name], "lr"]) == set(RATES)
        assert set(rows.loc[rows["temperature"] != own[name], "lr"]) == {RATES[0]}
    (kinds, plan), rates = networks.at_chosen(plans, tried)[0], networks.rates(tried)
    assert kinds[HYP].temperature == kinds[ONE].temperature == own[HYP] and kinds[ONE].cosine and plan == PLAN
    assert kinds[SPH].temperature == own[SPH] and kinds[FLAT].temperature == own[FLAT] / 2
    assert rates[ONE] == rates[LEARNT] == rates[HYP] and networks.named(tried)["method"].nunique() == 6


def test_fixed_steps_a_learnt_c_and_the_tests_of_the_temperature(tempered):
    tiles, parts, plans, tried, _, store = tempered
    chosen, lr = networks.at_chosen(plans, tried), networks.rates(tried)
    options = {"lr_of": lr, "store": store}
    found, course = networks.trained(tiles, parts, chosen, [1, 2], n_seeds=2, **options)
    once, of_once = networks.trained(tiles, parts, networks.variants(chosen), [1, 2], **options)
    rows = tables.steps(pd.concat([course, of_once]))
    wide = rows.pivot_table(index=["method", "place"], columns="at", values="ours")
    assert list(wide.columns) == ["0", "2", "4", "chosen"] and len(wide) == 6 * 2 + 1
    assert tables.STEPS(rows).splitlines()[0] == "| method | place | step 0 | step 2 | step 4 | step chosen |"
    for name in (HYP, SPH, ONE):  # the step that the head chose is the one that the tables are of
        for place in ("head", "encoder"):
            score = tables.recall({"x": found[f"{name}, end to end, {place}"]}).query("k == 1")["ours"].item()
            assert wide.loc[(f"{name}, end to end", place), "chosen"] == pytest.approx(score)
    c = wide.loc[(f"{LEARNT}, end to end", "c")]
    assert c["0"] == pytest.approx(0.1) and c["4"] != c["2"] != c["0"]
    learnt = once[f"{LEARNT}, end to end, head"][0].method.head.geometry
    assert isinstance(learnt, PoincareBall) and learnt.c == pytest.approx(c["chosen"])
    assert once[f"{UNCLIPPED}, end to end, head"][0].method.head.clip_radius is None
    tests = tables.tests(found, parts.names, (1, 2), {f"{name}, end to end": rate for name, rate in lr.items()})
    of_question = tests[tests["question"] == tables.TEMPERATURE]
    second = {f"{name}, end to end, {place}" for name in (ONE, SPH, FLAT) for place in ("head", "encoder")}
    assert set(of_question["second"]) == second and tables.BALL not in set(tests["question"])
    rows, own = tables.temperature(tests, tried), best_rates(tried, value="temperature")
    assert rows["at"].tolist() == ["both at Hyp's"] * 2 + ["each at its own"] * 2
    assert rows["second_tau"].tolist() == [own[HYP]] * 2 + [own[SPH]] * 2 and set(rows["k"]) == {1}
    assert rows["second_rate"].tolist() == [lr[HYP]] * 2 + [lr[SPH]] * 2 and np.isfinite(rows["difference"]).all()


def test_without_temperatures_nothing_changes():
    plans = networks.plans(Settings(), PLAN, [])
    tried = pd.DataFrame({"method": [HYP], "lr": [1e-3], "chosen": [True]})
    assert list(plans[0][0]) == [HYP, SPH] and networks.shorter(plans, 0) == plans
    assert networks.at_chosen(plans, tried) == plans and networks.rates(tried) == {HYP: 1e-3}
    assert networks.named(tried)["method"].tolist() == [HYP]
