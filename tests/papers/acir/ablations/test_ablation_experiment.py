"""What is switched on is what is trained; rates and α are chosen without those who ask."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.encoders.taps import Taps
from lib.papers.acir.ablations import experiment, opponents, parts, tables
from lib.papers.acir.ablations.experiment import Material, Setting
from lib.papers.acir.hashing.experiment import parts as parted
from lib.results.rates import best_rates
from lib.training.acir import Design
from lib.training.hashing import Even
from lib.training.splits import repeated

RNG = np.random.default_rng(0)
N, CLASSES, P = 96, 3, 12
LABELS = np.arange(N) % CLASSES
DESIGN = Design(bits=8, narrow=(4, 8), window=2, heads=2, width=4, grid=2)
CENTRES = RNG.normal(size=(CLASSES, 10))
MAPS = Taps(
    RNG.normal(size=(N, 6, 4, 4)).astype(np.float16),
    (CENTRES[LABELS][:, :, None, None] + RNG.normal(size=(N, 10, 2, 2))).astype(np.float16),
)
EYES = {
    parts.PRETRAINED: MAPS,
    parts.UNTRAINED: Taps(MAPS.shallow, RNG.normal(size=(N, 10, 2, 2)).astype(np.float16)),
    parts.TOKEN: experiment.token(RNG.normal(size=(N, 9)).astype(np.float32)),
}
SPLIT, ASIDE = parted(np.arange(N) // 6 % 4, seed=3)
MATERIAL = Material(EYES, LABELS, RNG.random((N, P)).astype(np.float32), Even(2, 24), workers=1)
ON, OFF = parts.switched_on(DESIGN), parts.switched_off(DESIGN)
RATES = dict.fromkeys([row.rate for row in (*ON, *OFF)], 1e-2)


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr("lib.paths.TRAINED", tmp_path)


def test_table_2_switches_on_one_thing_at_a_time():
    by = {row.name: row for row in (*ON, *OFF)}
    for step in parts.steps(by):
        first, second = by.get(step.first), by.get(step.second)
        if step.where == "ours" or step.part == "hybrid over ViT":
            continue
        names = ("pit", "fusion", "windows", "kan")
        changed = [name for name in names if getattr(first.design, name) != getattr(second.design, name)]
        changed += [name for name in ("loss", "content", "eye") if getattr(first, name) != getattr(second, name)]
        assert len(changed) == 1, step
    assert len(parts.steps(by)) == 8 + 7 + 2


def test_both_directions_of_darf_are_trained_and_the_printed_one_is_tested_against_the_other():
    """AC-24: nothing else differs, and the published score stands beside the printed direction alone."""
    whole, turned = ON[8], next(row for row in OFF if row.name == parts.TURNED)
    assert replace(turned, name=whole.name, like=whole.like, design=DESIGN) == whole
    assert turned.design == replace(DESIGN, queries="shallow") and whole.printed and not turned.printed
    (step,) = [step for step in parts.steps([whole.name, turned.name])]
    assert (step.where, step.first, step.second) == ("ours", whole.name, turned.name)
    found = experiment.run(MATERIAL, [whole, turned], RATES, 0.0, SPLIT, 2)
    assert found[whole.name][0].history != found[turned.name][0].history
    tested = tables.gains(found, np.arange(len(SPLIT.test)))
    assert tested["part"].tolist() == [step.part] and tables.gain_sentences(tested)[0].startswith(f"{whole.name} ")


def test_convmsa_is_taken_out_alone_and_is_no_row_of_the_paper():
    (row,) = [row for row in OFF if not row.design.windows]
    assert row.name == "ACIR without ConvMSA" and row.design == replace(DESIGN, windows=False) and not row.printed
    networks = experiment.trained(MATERIAL, [Setting(ON[8], 1e-2), Setting(row, 1e-2)], [SPLIT]).values()
    whole, without = ({name.split(".")[0] for name in one.network.state_dict()} for one in networks)
    assert whole - without == {"near", "far"}


def test_kan_and_what_it_replaces_have_as_many_parameters():
    networks = experiment.trained(MATERIAL, [Setting(ON[6], 1e-2), Setting(ON[7], 1e-2)], [SPLIT])
    mlp, kan = (experiment.parameters(one) for one in networks.values())
    assert abs(mlp - kan) < 0.02 * kan


def test_a_convolution_that_nothing_reads_is_not_counted():
    (one,) = experiment.trained(MATERIAL, [Setting(ON[0], 1e-2)], [SPLIT]).values()
    read = {name: value for name, value in one.network.named_parameters() if not name.startswith("narrow.0")}
    assert experiment.parameters(one) == sum(value.numel() for value in read.values())


def test_ranking_by_content_trains_nothing():
    found = experiment.scored(MATERIAL, [Setting(ON[7], 1e-2), Setting(ON[8], 1e-2)], repeated([SPLIT], 2))
    plain, content = found
    assert [one.history for one in plain] == [one.history for one in content]
    assert len(experiment.trained(MATERIAL, [Setting(ON[7], 1e-2), Setting(ON[8], 1e-2)], [SPLIT])) == 1


def test_rows_of_a_vision_transformer_are_left_out_without_its_features():
    blind = replace(MATERIAL, eyes={name: eye for name, eye in EYES.items() if name != parts.TOKEN})
    assert [row.name for row in ON if row not in blind.seen(ON)] == ["ViT", "ViT + L_WSC"]


def test_rates_and_alpha_are_chosen_without_those_who_ask():
    spoiled = MAPS.deep.copy()
    spoiled[SPLIT.test] = 1
    other = replace(MATERIAL, eyes=EYES | {parts.PRETRAINED: Taps(MAPS.shallow, spoiled)})
    some = [ON[0], ON[7], ON[8]]
    every = np.arange(len(LABELS))  # each image by itself
    tables = [
        experiment.choose(one, some, [1e-4, 1e-2], ASIDE, groups=groups)
        for one, groups in ((MATERIAL, None), (other, every))
    ]
    assert tables[0].equals(tables[1])
    assert tables[0]["name"].tolist() == ["CNN"] * 2 + [parts.PLAIN_RANKING] * 2
    near = tables[0][tables[0]["within"]].groupby("name")["lr"]
    assert best_rates(tables[0], "name") == near.min().to_dict()
    weights = [experiment.choose_alpha(one, ON[7], 1e-2, [0.0, 1.0], ASIDE) for one in (MATERIAL, other)]
    assert weights[0].equals(weights[1]) and weights[0]["chosen"].sum() == 1


def test_rates_and_alpha_are_chosen_by_the_mean_of_several_trainings():
    for choose in (
        lambda aside, *n: experiment.choose(MATERIAL, ON[:1], [1e-3, 1e-2], aside, *n),
        lambda aside, *n: experiment.choose_alpha(MATERIAL, ON[7], 1e-2, [0.0, 1.0], aside, *n),
    ):
        twice, each = choose(ASIDE, 2)["validation"], [choose(one)["validation"] for one in repeated([ASIDE], 2)]
        assert twice.tolist() == pytest.approx((sum(each) / 2).tolist()) and not each[0].equals(each[1])


def test_terms_without_a_gradient_train_the_network_of_alpha_0():
    forms = [Setting(ON[7], 1e-2, 1.0, form) for form in ("printed", "code", "ours")]
    networks = experiment.trained(MATERIAL, [Setting(ON[7], 1e-2), *forms], [SPLIT])
    none, printed, code, ours = (
        torch.cat([value.flatten() for value in one.network.parameters()]) for one in networks.values()
    )
    assert torch.equal(none, printed) and torch.equal(none, code) and not torch.equal(none, ours)


def test_at_alpha_0_no_form_is_trained_twice_and_another_loss_has_no_alpha():
    assert Setting(ON[7], 1e-2, 0.0, "printed").network == Setting(ON[8], 1e-2).network
    assert Setting(ON[0], 1e-2, 0.5).network == Setting(ON[0], 1e-2).network
    assert Setting(ON[7], 1e-2, 0.5).network != Setting(ON[7], 1e-2).network


def test_a_longer_training_takes_as_many_times_the_steps():
    found = experiment.longer(MATERIAL, ON[:1], RATES, 0.0, SPLIT, times=3)
    assert list(found) == ["CNN, 2 epochs", "CNN, 6 epochs"]
    assert [several[0].steps for several in found.values()] == [4, 12]


def test_one_layer_has_a_weight_for_each_channel_and_bit():
    found = opponents.layers(MATERIAL, 8, [1e-2], ASIDE, SPLIT, 2, 0.0)
    assert list(found) == ["one layer, Cauchy", "one layer, L_WSC"]
    assert {one.parameters for several in found.values() for one in several} == {(10 + 1) * 8}


def test_the_rate_of_one_layer_is_chosen_by_several_trainings(monkeypatch):
    trainings, fitted = [], opponents.heads.fitted
    monkeypatch.setattr(opponents.heads, "fitted", lambda *a, **o: trainings.append(a[4]) or fitted(*a, **o))
    opponents.layers(MATERIAL, 8, [1e-3, 1e-2], ASIDE, SPLIT, 1, 0.0, n_choosing=2)
    assert trainings == [2, 1] * 2  # chosen, then trained; with each of two losses


def test_floats_take_four_bytes_a_number():
    found = opponents.floats(MATERIAL, RNG.normal(size=(N, 7)), ON[7], 1e-2, 0.0, SPLIT, 2)
    assert [(len(several), several[0].size) for several in found.values()] == [(1, 28), (1, 40), (2, 4 * 3 * 8)]


def test_what_a_vision_transformer_lacks_is_said_without_a_path():
    text = experiment.lacking("vit_b16")
    assert text is None or (text.startswith("needs weights of vit_b16 (about") and "/" not in text)
    assert experiment.lacking("demo_vit") is None
