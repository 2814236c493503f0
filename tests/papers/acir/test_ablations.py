"""What is switched on is what is trained; rates and α are chosen without the queries; scores against plain loops."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.encoders import taps
from lib.encoders.taps import Taps
from lib.metrics import hashing
from lib.papers.acir import heads, published, training
from lib.papers.acir.ablations import rows, study
from lib.papers.acir.ablations.study import KS, Setting
from lib.papers.acir.heads import TOP
from lib.papers.acir.training import Codes, Material, Sized, by_code, by_content
from lib.study.rates import best_rates, choose_middle
from lib.training.acir import Design
from lib.training.hashing import Even
from lib.training.splits import Split, repeated

RNG = np.random.default_rng(0)
N, CLASSES, P = 96, 3, 12
LABELS, EACH, GROUPS = np.arange(N) % CLASSES, np.arange(N), np.arange(N) // 6
DESIGN = Design(bits=8, narrow=(4, 8), window=2, heads=2, width=4, grid=2)
CENTRES = RNG.normal(size=(CLASSES, 10))
MAPS = Taps(
    RNG.normal(size=(N, 6, 4, 4)).astype(np.float16),
    (CENTRES[LABELS][:, :, None, None] + RNG.normal(size=(N, 10, 2, 2))).astype(np.float16),
)
VIEWS = {
    rows.PRETRAINED: MAPS,
    rows.UNTRAINED: Taps(MAPS.shallow, RNG.normal(size=(N, 10, 2, 2)).astype(np.float16)),
    rows.TOKEN: study.token(RNG.normal(size=(N, 9)).astype(np.float32)),
}
PRINTS = RNG.random((N, P)).astype(np.float32)
SPLIT, ASIDE = heads.parts(np.arange(N) // 6 % 4, seed=3)
MATERIALS = {eye: Material([view], LABELS, PRINTS, Even(2, 24), workers=1) for eye, view in VIEWS.items()}
OWN = MATERIALS[rows.PRETRAINED]
ON, OFF = rows.switched_on(DESIGN), rows.switched_off(DESIGN)


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr("lib.paths.TRAINED", tmp_path)


def test_table_2_switches_on_one_thing_at_a_time():
    by = {row.name: row for row in (*ON, *OFF)}
    pairs = {part: pair for part, pair in rows.ON.items() if part != "hybrid over ViT"}
    pairs |= {f"{part}, off": (rows.FULL, f"{rows.WITHOUT}{part}") for part in rows.OFF}
    pairs |= {"turned": (rows.FULL, rows.TURNED)}
    for part, names in pairs.items():
        first, second = (by[name] for name in names)
        switches = ("pit", "fusion", "windows", "kan", "queries")
        changed = [name for name in switches if getattr(first.design, name) != getattr(second.design, name)]
        changed += [name for name in ("loss", "content", "eye") if getattr(first, name) != getattr(second, name)]
        assert len(changed) == 1, part


def test_parameters_without_convmsa_with_an_mlp_for_kan_and_without_a_convolution_that_nothing_reads():
    (without,) = [row for row in OFF if not row.design.windows]
    settings = [Setting(row, 1e-2) for row in (ON[8], without, ON[6], ON[0])]
    full, none, mlp, cnn = (network for (network,) in study.trained(MATERIALS, settings, [SPLIT]))
    parts = [{name.split(".")[0] for name in one.network.state_dict()} for one in (full, none)]
    assert parts[0] - parts[1] == {"near", "far"}
    assert abs(study.parameters(mlp) - study.parameters(full)) < 0.02 * study.parameters(full)
    read = [value for name, value in cnn.network.named_parameters() if not name.startswith("narrow.0")]
    assert study.parameters(cnn) == sum(value.numel() for value in read)


def test_ranking_by_content_trains_nothing():
    settings = [Setting(ON[7], 1e-2), Setting(ON[8], 1e-2)]
    plain, content = study.scored(MATERIALS, settings, repeated([SPLIT], 2))
    assert [one.history for one in plain] == [one.history for one in content]
    (one,), (same,) = study.trained(MATERIALS, settings, [SPLIT])
    assert one is same


def test_rows_of_a_vision_transformer_are_left_out_without_its_features():
    blind = {eye: one for eye, one in MATERIALS.items() if eye != rows.TOKEN}
    assert [row.name for row in ON if row not in study.known(blind, ON)] == ["ViT", "ViT + L_WSC"]
    assert study.available("demo_vit")


def test_rates_and_alpha_are_chosen_without_the_queries_by_the_mean_of_trainings():
    spoiled = MAPS.deep.copy()
    spoiled[SPLIT.test] = 1
    other = MATERIALS | {rows.PRETRAINED: replace(OWN, views=[Taps(MAPS.shallow, spoiled)])}
    some = [ON[0], ON[7], ON[8]]
    tried, again = (study.choose(one, some, [1e-4, 1e-2], [ASIDE], EACH) for one in (MATERIALS, other))
    assert tried.equals(again) and tried["name"].tolist() == ["CNN"] * 2 + [rows.PLAIN_RANKING] * 2
    assert best_rates(tried, "name") == tried[tried["within"]].groupby("name")["lr"].min().to_dict()
    weights = [study.choose_alpha(one, ON[7], 1e-2, [0.0, 1.0], [ASIDE], EACH) for one in (MATERIALS, other)]
    assert weights[0].equals(weights[1]) and weights[0]["chosen"].sum() == 1
    several = repeated([ASIDE], 2)
    twice, *each = (
        study.choose(MATERIALS, ON[:1], [1e-3, 1e-2], of, EACH)["validation"]
        for of in (several, *([one] for one in several))
    )
    assert twice.tolist() == pytest.approx((sum(each) / 2).tolist()) and not each[0].equals(each[1])


def test_terms_without_a_gradient_train_the_network_of_alpha_0():
    forms = [Setting(ON[7], 1e-2, 1.0, form) for form in ("printed", "code", "ours")]
    made = [network for (network,) in study.trained(MATERIALS, [Setting(ON[7], 1e-2), *forms], [SPLIT])]
    none, printed, code, ours = (torch.cat([value.flatten() for value in one.network.parameters()]) for one in made)
    assert torch.equal(none, printed) and torch.equal(none, code) and not torch.equal(none, ours)
    given = MATERIALS[rows.PRETRAINED], SPLIT
    assert Setting(ON[7], 1e-2, 0.0, "printed").job(*given) == Setting(ON[8], 1e-2).job(*given)
    assert Setting(ON[0], 1e-2, 0.5).job(*given) == Setting(ON[0], 1e-2).job(*given)  # another loss has no α


def test_one_layer_and_floats_have_their_sizes():
    scores = study.layers(OWN, 8, [1e-3, 1e-2], [ASIDE], repeated([SPLIT], 2), 0.0)
    assert list(scores) == ["one layer, Cauchy", "one layer, L_WSC"]
    assert {one.parameters for of_row in scores.values() for one in of_row} == {(10 + 1) * 8}
    floats = study.floats(OWN, RNG.normal(size=(N, 7)), ON[7], 1e-2, 0.0, repeated([SPLIT], 2))
    assert [(len(one), one[0].size) for one in floats.values()] == [(1, 28), (1, 40), (2, 4 * 3 * 8)]


H, LEVELS = RNG.normal(size=(N, 4)), (RNG.normal(size=(N, 5)), RNG.normal(size=(N, 7)))


def test_ties_are_broken_by_the_mean_correlation_of_the_levels(monkeypatch):
    codes = Codes("a", 0, H, [], 0, dict(zip("ab", LEVELS, strict=True)))
    found = by_content(codes, LABELS, SPLIT, KS).values
    for number, query in enumerate(SPLIT.test[:12]):
        keys = []
        for item in SPLIT.train:
            differ = sum((H[query] >= 0) != (H[item] >= 0))
            keys.append((differ, -np.mean([np.corrcoef(level[query], level[item])[0, 1] for level in LEVELS])))
        order = sorted(range(len(keys)), key=keys.__getitem__)[:TOP]
        hits = (LABELS[SPLIT.train] == LABELS[query])[order]
        total = (hits * hits.cumsum() / np.arange(1, len(hits) + 1)).sum()
        assert found["ap_hits", TOP][number] == pytest.approx(total / hits.sum())
        assert found["ap_min", 1][number] == hits[0]
    monkeypatch.setattr(training, "BLOCK", 5)
    assert by_content(codes, LABELS, SPLIT, KS).values.equals(found)


def scored(h, repeat=0):
    return Sized(replace(SPLIT, repeat=repeat), by_code(h, LABELS, SPLIT, KS), [2.0, 1.0 + repeat], 10, 99, 0.5)


def test_a_row_has_both_ways_to_divide_class_means_chance_and_health():
    row = rows.frame({"a": [scored(H), scored(-H, 1)]}).loc[0]
    expected = hashing.evaluate(H[SPLIT.test], H[SPLIT.train], LABELS[SPLIT.test], LABELS[SPLIT.train], (TOP,))
    for name, metric in (("mAP", "ap_hits"), ("mAP_min", "ap_min")):
        assert row[name] == pytest.approx(100 * expected.values[metric, TOP].mean())
        assert row[f"chance_{name}"] == pytest.approx(100 * expected.chance[metric, TOP].mean())
    by_class = expected.values["ap_hits", TOP].groupby(LABELS[SPLIT.test]).mean()
    assert row["maAP"] == pytest.approx(100 * by_class.mean())
    assert row[["loss_first", "loss_last", "steps", "size"]].tolist() == [2, 1, 10, 0.5]


def test_tests_pair_queries_and_trainings_and_alphas_are_tested_against_none():
    """Codes and their complements have equal distances."""
    one, other = [scored(H)], [scored(-H)]
    assert rows.tests({"a": one, "b": other}, [("a", "b")], GROUPS)["difference"].tolist() == [0.0]
    better = np.eye(CLASSES)[LABELS] @ RNG.normal(size=(CLASSES, 16))
    by_alpha = {("ours", 0.0): one, ("ours", 0.5): [scored(better)], ("printed", 0.5): one}
    (row,) = rows.alpha_tests(by_alpha, GROUPS).itertuples()
    assert (row.first, row.second, row.alpha) == ("α = 0.5", "α = 0", 0.5) and row.difference > 0


def test_published_values_stand_in_their_rows():
    """Read off Table 2 and Section 4.3: 3.1, 3.8 (3.7 in the table, AC-11), 1.8, 2.3, 5, 1.4, 0.9 and 1.5."""
    assert list(rows.published_rows().index) == [row.name for row in ON]
    assert rows.published_rows()["mAP"].tolist() == [62.2, 65.3, 59.5, 63.2, 64.5, 66.3, 67.7, 68.6, 70.1]
    assert [round(gain, 1) for gain in rows.published_gains().values()] == [3.1, 3.7, 1.8, 2.3, 5.0, 1.4, 0.9, 1.5]
    known = published.ablation().set_axis(rows.published_rows().index)
    assert known.loc["ACIR without CGR", ["kan", "cgr"]].tolist() == [True, False]
    assert known.loc["ViT + L_WSC", ["backbone", "l_wsc"]].tolist() == ["ViT", True]


def test_gains_have_the_published_ones_if_there_are_any_and_only_rows_that_were_run():
    scores = {name: [scored(RNG.normal(size=(N, 8)))] for name in ("CNN", "CNN + L_WSC", "ACIR", "ACIR without KAN")}
    gains = rows.gains(scores, GROUPS)
    assert gains[["part", "where"]].to_numpy().tolist() == [["L_WSC (CNN)", "on"], ["KAN", "off"]]
    assert gains["published"].round(1).iloc[0] == 3.1 and np.isnan(gains["published"].iloc[1])
    by = rows.frame(scores).set_index("name")["mAP"]
    assert gains["hits"].iloc[0] == pytest.approx(by["CNN + L_WSC"] - by["CNN"])


ENCODER = "efficientnet_lite0_64px-untrained"


def test_end_to_end_every_method_is_trained_both_ways_for_the_same_steps(monkeypatch):
    """Noise; the second class is red."""
    x, labels = np.random.default_rng(0).integers(0, 100, (24, 3, 64, 64)), np.arange(24) % 2
    x[labels == 1, 0] += 140
    seen, stem, (mean, deviation) = x.astype(np.uint8), taps.stem(ENCODER), taps.scale(ENCODER)
    with torch.inference_mode():
        maps = Taps(*(part.half().numpy() for part in stem((torch.tensor(seen) / 255 - mean) / deviation)))
    monkeypatch.setattr(study.taps, "pixels", lambda images, encoder: seen)
    plan = study.Plan(ENCODER, 64, Even(2, 8), 1e-4)
    frozen = Material([maps], labels, np.zeros((24, 3), np.float32), plan.schedule, workers=1)
    some = [rows.candidates(DESIGN)[place] for place in (0, -1)]
    some = [replace(row, design=replace(row.design, window=4)) for row in some]
    half = Split(0, np.arange(16), np.arange(16, 24), 0)
    scores = study.end_to_end(None, frozen, plan, some, {row.name: 0.003 for row in some}, 0.1, [half])
    table = rows.frame(scores).set_index(["name", "repeat"])
    assert set(table["steps"]) == {4} and len(table) == 2 * 2
    for row in some:
        stem_frozen, whole = (table.loc[(f"{row.name}, {how}", 0)] for how in (study.FROZEN, study.WHOLE))
        assert stem_frozen["parameters"] == whole["parameters"] > 0
        assert stem_frozen["loss_last"] != whole["loss_last"]
    assert len(rows.tests(scores, study.end_to_end_pairs(some), np.arange(24) // 2)) == 3


def test_the_opponents_are_those_that_patients_set_aside_find_best():
    many = rows.candidates(DESIGN)
    values = {"CSQ": (50, 61), "DCH": (60, 59), "QSMIH": (40, 41), "CNN + L_WSC": (65, 64), "ACIR": (10, 20)}
    tried = pd.DataFrame([{"name": name, "lr": lr} for name in values for lr in (0.1, 0.2)])
    tried = choose_middle(tried, [[value] for pair in values.values() for value in pair], by="name")
    assert [row.name for row in study.strongest(many, tried)] == ["CSQ", "CNN + L_WSC", "ACIR"]
