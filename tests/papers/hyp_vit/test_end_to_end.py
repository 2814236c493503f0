"""Trained once and searched twice; step, rate and temperature are chosen on categories that neither teach nor query."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.transforms import v2

from lib.datasets.categories import halves, held_out
from lib.geometry import Euclidean, PoincareBall
from lib.papers.hyp_vit import end_to_end, networks, retrieval
from lib.papers.hyp_vit.heads import BALL, BEFORE, FLAT, HYP, LEARNT, ONE, SPH, TEMPERATURE, UNCLIPPED, UNTRAINED
from lib.study.rates import best_rates
from lib.training import finetune
from lib.training.hyp_vit import Settings, spherical
from lib.training.hyp_vit_end_to_end import EndToEnd
from lib.training.photos import Preparation

GIVEN = finetune.Settings(4, 4, 2, 1e-2, 5e-2, check_every=2)
PLAN = EndToEnd("small", 3, GIVEN, Preparation(16, 16), unseen=True)
KINDS = {HYP: Settings(), SPH: spherical(Settings())}
PLACES = [f"{kind}, end to end, {place}" for kind in KINDS for place in ("head", "encoder")]
TAUS, RATES = [0.1, 0.4], [1e-3, 1e-2]


@pytest.fixture
def parts(tiles):
    return halves(tiles)


@pytest.fixture
def trainings(monkeypatch) -> list[tuple]:
    """What every training was given: loss, settings, seed, and the categories that teach and that choose its step."""
    given, once = [], finetune.finetune

    def spy(encoder, head, loss, learnt, aside, settings, *others, **options):
        given.append((loss, settings, options["seed"], set(learnt.labels), set(aside.labels)))
        return once(encoder, head, loss, learnt, aside, settings, *others, **options)

    monkeypatch.setattr(finetune, "finetune", spy)
    return given


def test_trained_once_searched_twice_and_again_when_a_picture_changes(tiles, parts, tmp_path, trainings, small):
    options = {"n_seeds": 2, "store": tmp_path}
    answers, course = end_to_end.end_to_end(tiles, parts, KINDS, PLAN, [1, 2], **options)
    assert list(answers) == [BEFORE, *PLACES] and len(trainings) == 4
    for several in answers.values():
        assert [answer.split.repeat for answer in several] == [0, 1]
        assert all(set(answer.per_query.n_gallery) == {len(parts.gallery) - 1} for answer in several)
    hyp = answers[PLACES[0]][0]
    assert hyp.health.rim == 0 and (hyp.norms < 10**0.5 * np.tanh(0.1**0.5 * 2.3) + 1e-4).all()
    scores = course.dropna(subset="head")
    assert set(scores["step"]) == {0, 2, 4} and scores["head"].between(0, 100).all()
    again, _ = end_to_end.end_to_end(tiles, parts, KINDS, PLAN, [1, 2], **options)
    for name, several in answers.items():
        for first, second in zip(several, again[name], strict=True):
            pd.testing.assert_frame_equal(first.per_query.values, second.per_query.values)
    path = tiles.path(3)
    before = path.read_bytes()
    Image.new("RGB", (32, 32)).save(path)
    try:
        end_to_end.end_to_end(tiles, parts, {HYP: Settings()}, PLAN, [1, 2], store=tmp_path)
    finally:
        path.write_bytes(before)
    assert len(trainings) == 4 + 1


def test_before_training_is_the_encoder_on_images_of_the_size_that_it_is_trained_with(tiles, parts, tmp_path, small):
    plan = replace(PLAN, preparation=Preparation(12, 14))
    answers, _ = end_to_end.end_to_end(tiles, parts, {HYP: Settings()}, plan, [1], store=tmp_path)
    square = [v2.Resize(14, interpolation=v2.InterpolationMode.BICUBIC), v2.CenterCrop(12), v2.ToImage()]
    testing = v2.Compose([*square, v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.5] * 3)])
    with torch.no_grad():
        pixels = torch.stack([testing(Image.open(tiles.path(i)).convert("RGB")) for i in parts.queries])
        unit = nn.functional.normalize(small()(pixels), dim=1)
    nearest, codes = (unit @ unit.T).fill_diagonal_(-2).argmax(dim=1), parts.codes[parts.queries]
    (answer,) = answers[BEFORE]
    hits = answer.per_query.values["hit_rate", 1].mean()
    assert hits == pytest.approx((codes[nearest] == codes).mean(), abs=0.03)
    assert np.isnan(answer.health.loss) and answer.health.steps == 0


def test_a_rate_is_the_mean_of_trainings_whose_first_is_the_one_that_is_reported(
    tiles, parts, tmp_path, trainings, small
):
    tried = end_to_end.rates(tiles, parts, KINDS, PLAN, RATES, n_seeds=2, store=tmp_path)
    assert tried[["method", "lr"]].to_numpy().tolist() == [[name, lr] for name in KINDS for lr in RATES]
    assert [seed for _, _, seed, *_ in trainings] == [0, 1000] * 4
    learnt, aside = (set(parts.names[rows]) for rows in held_out(parts, 0))
    assert all(given[3:] == (learnt, aside) for given in trainings)
    assert not (learnt | aside) & set(parts.names[parts.queries])
    trainings.clear()
    rates = {HYP: 1e-2, SPH: 1e-3}
    answers, course = end_to_end.end_to_end(tiles, parts, KINDS, PLAN, [1], lr_of=rates, store=tmp_path, n_seeds=2)
    assert len(trainings) == 1 + 1  # the second has other categories set aside
    row = tried[(tried["method"] == HYP) & (tried["lr"] == 1e-2)].iloc[0]
    first = course[(course["method"] == "Hyp, end to end") & (course["repeat"] == 0)]
    (other,) = end_to_end.rates(tiles, parts, {HYP: KINDS[HYP]}, PLAN, [1e-2], store=tmp_path)["validation"]
    assert other == pytest.approx(first["head"].max())  # what the training itself saw at its best step
    assert min(other, row["validation"]) <= row["validation"] and answers[PLACES[0]][0].health.steps <= row["step"]


def test_every_network_is_trained_under_its_own_name(tiles, parts, small, tmp_path):
    plans = networks.plans(Settings(), PLAN, ["small"], ["small-untrained", "other"])
    assert [(list(kinds), plan.encoder) for kinds, plan in plans] == [
        ([HYP, SPH], "small"),
        (["small, Hyp", "small, Sph"], "small"),
        ([f"{UNTRAINED}{HYP}"], "small-untrained"),
        ([f"other, {HYP}"], "other"),
    ]
    answers, course = networks.trained(tiles, parts, plans[:3], [1], lr_of={"small, Hyp": 1e-3}, store=tmp_path)
    further = [f"small, {name}" for name in (BEFORE, *PLACES)] + [
        f"{UNTRAINED}{name}" for name in (BEFORE, *PLACES[:2])
    ]
    assert list(answers) == [BEFORE, *PLACES, *further] and course["method"].nunique() == 5
    first, second = (answers[f"{prefix}Sph, end to end, head"][0].per_query.values for prefix in ("", "small, "))
    pd.testing.assert_frame_equal(first, second)  # the same network at the same rate


def test_without_candidates_each_network_has_its_published_rate(monkeypatch):
    given = []
    monkeypatch.setattr(end_to_end, "rates", lambda *a, **o: given.append((a[3].encoder, a[4])) or pd.DataFrame())
    plans = networks.plans(Settings(), replace(PLAN, encoder="dino_vits16"), ["vit_small_patch16_224.augreg_in21k"])
    networks.choose(None, None, plans, [])
    assert given == [("dino_vits16", [1e-5]), ("vit_small_patch16_224.augreg_in21k", [3e-5])]
    rates = networks.published_rates(plans, pd.DataFrame())
    further = {f"vit_small_patch16_224.augreg_in21k, {name}": "3e-05" for name in (HYP, SPH)}
    assert rates == {"published": {HYP: "1e-05", SPH: "1e-05"} | further}


def test_without_temperatures_plans_stay_as_they_are():
    plans = networks.plans(Settings(), PLAN, [])
    tried = pd.DataFrame({"method": [HYP], "lr": [1e-3], "chosen": [True]})
    assert networks.shorter(plans, 0) == networks.at_chosen(plans, tried) == plans
    assert networks.rates(tried) == {HYP: 1e-3} and networks.named(tried)["method"].tolist() == [HYP]


def test_a_temperature_is_chosen_first_then_the_rate_and_both_are_trained_and_tested(
    tiles, parts, tmp_path, trainings, small
):
    plans = networks.plans(Settings(), PLAN, [], tempered=True)
    options = {"temperatures": TAUS, "store": tmp_path}
    tried = networks.choose(tiles, parts, networks.shorter(plans, 2), RATES, **options)
    assert len(tried) == len(trainings) == 3 * (2 + 1) and {settings.steps for _, settings, *_ in trainings} == {2}
    halved = {loss.temperature for loss, *_ in trainings if isinstance(loss.geometry, Euclidean)}
    assert halved == {0.05, 0.2}  # distances of the flat head are half of the ball's near its centre
    own = best_rates(tried, value="temperature")
    for name, rows in tried.groupby("method"):
        assert rows["chosen"].sum() == 1 and set(rows.loc[rows["temperature"] == own[name], "lr"]) == set(RATES)
        assert set(rows.loc[rows["temperature"] != own[name], "lr"]) == {RATES[0]}
    chosen, lr = networks.at_chosen(plans, tried), networks.rates(tried)
    kinds, _ = chosen[0]
    assert kinds[HYP].temperature == kinds[ONE].temperature == own[HYP] and kinds[ONE].cosine
    assert kinds[SPH].temperature == own[SPH] and kinds[FLAT].temperature == own[FLAT] / 2
    assert lr[ONE] == lr[LEARNT] == lr[HYP] and networks.named(tried)["method"].nunique() == 6

    options = {"lr_of": lr, "store": tmp_path}
    answers, course = networks.trained(tiles, parts, chosen, [1, 2], n_seeds=2, **options)
    once, of_once = networks.trained(tiles, parts, networks.variants(chosen), [1, 2], **options)
    rows = networks.steps(pd.concat([course, of_once]))
    wide = rows.pivot_table(index=["method", "place"], columns="at", values="ours")
    assert list(wide.columns) == ["0", "2", "4", "chosen"] and len(wide) == 6 * 2 + 1
    for name in (HYP, SPH, ONE):  # the step that the head chose is the one that the tables are of
        score = retrieval.recall({"x": answers[f"{name}, end to end, head"]}).query("k == 1")["ours"].item()
        assert wide.loc[(f"{name}, end to end", "head"), "chosen"] == pytest.approx(score)
    c = wide.loc[(f"{LEARNT}, end to end", "c")]
    learnt = once[f"{LEARNT}, end to end, head"][0].method.head.geometry
    assert c["0"] == pytest.approx(0.1) and c["4"] != c["2"] != c["0"]
    assert isinstance(learnt, PoincareBall) and learnt.c == pytest.approx(c["chosen"])
    assert once[f"{UNCLIPPED}, end to end, head"][0].method.head.clip_radius is None
    rates = {f"{name}, end to end": rate for name, rate in lr.items()}
    tests = retrieval.tests(once | answers, parts.names, (1, 2), rates)
    of_question = tests[tests["question"] == TEMPERATURE]
    second = {f"{name}, end to end, {place}" for name in (ONE, SPH, FLAT) for place in ("head", "encoder")}
    assert set(of_question["second"]) == second and BALL not in set(tests["question"])
    assert of_question["second_rate"].notna().all()
