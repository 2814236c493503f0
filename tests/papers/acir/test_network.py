"""Parts are counted as they are, levels are searched by unseen queries, and an exchange is what it says."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lib.encoders import taps
from lib.encoders.taps import Taps
from lib.papers.acir import network, parts
from lib.papers.acir.training import Material
from lib.training.acir import Design
from lib.training.hashing import Even
from lib.training.splits import Split, repeated

DESIGN = Design(bits=8, narrow=(4, 8), window=2, heads=2, width=8, grid=2)
LABELS = np.arange(240) % 2
GROUPS = np.array([f"P{i // 10}" for i in range(240)])
SPLIT, ASIDE = Split(0, np.arange(120), np.arange(120, 240), 0), Split(0, np.arange(60), np.arange(60, 120), 0)
PRINTS = np.random.default_rng(1).random((240, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def maps():
    """Two classes that differ in three channels of both maps."""
    random = np.random.default_rng(0)
    shallow, deep = random.normal(size=(240, 6, 4, 4)), random.normal(size=(240, 10, 2, 2))
    shallow[LABELS == 1, :3] += 1
    deep[LABELS == 1, :3] += 1
    return Taps(shallow.astype(np.float16), deep.astype(np.float16))


def material(maps, epochs=2):
    return Material([maps], LABELS, PRINTS, Even(epochs, batch_size=30, weight_decay=1e-4), workers=1)


@pytest.fixture(scope="module")
def trained(maps):
    splits, given = repeated([SPLIT], 2), material(maps, epochs=4)
    return SimpleNamespace(splits=splits, given=given, networks=network.train(given, DESIGN, 1e-2, splits))


def test_parts_have_the_parameters_of_the_network_that_runs():
    stem = taps.stem("efficientnet_lite0_64px-untrained")
    own = sum(weight.numel() for weight in stem.parameters())
    rows = parts.table(DESIGN, stem, 64).set_index("part")
    whole = DESIGN.network((40, 320), 2)
    counted = sum(value.numel() for value in whole.parameters()) - 2 * DESIGN.bits  # scale and shift of the bits
    assert rows["parameters"].drop(["ConvNet stem", "decoder"]).sum() == counted
    assert rows.loc["ConvNet stem", "parameters"] == own
    assert rows.loc["ConvMSA, shallow", "input"] == "4 × 8 × 8"
    assert rows.loc["decoder", "output"] == "3 × 64 × 64"
    resnet = parts.table(parts.PAPER, *parts.resnet()).set_index("part")
    assert resnet.loc["ConvNet stem", "parameters"] == 23_508_032
    d = 2048  # a layer: queries, keys, values, their join, two linear layers of twice the width, two norms
    layer = 4 * (d * d + d) + 2 * d * d * 2 + 3 * d + 4 * d
    assert resnet.loc["PiT", "parameters"] == parts.PAPER.layers * layer + d * (1 + 1 + 49) + 2 * d


def test_a_rate_is_chosen_without_the_queries_by_the_mean_of_several_trainings(maps):
    spoiled = Taps(maps.shallow.copy(), maps.deep.copy())
    for level in spoiled:
        level[SPLIT.test] = 1
    rates = [1e-6, 1e-2]
    first, second = (network.choose(material(x), DESIGN, rates, ASIDE, np.arange(240)) for x in (maps, spoiled))
    assert first.equals(second) and first["chosen"].sum() == 1
    twice = network.choose(material(maps), DESIGN, rates, ASIDE, np.arange(240), 2)
    each = [network.choose(material(maps), DESIGN, rates, one, np.arange(240)) for one in repeated([ASIDE], 2)]
    for column in ("validation", "loss"):
        assert twice[column].tolist() == pytest.approx(np.mean([one[column] for one in each], axis=0))


def test_every_level_is_searched_untrained_and_trained(trained):
    found = network.answers(trained.networks, trained.given, trained.splits)
    assert len(found) == 2 * len(network.LEVELS) + 1
    rows = network.levels(found).set_index(["level", "network"])
    assert rows.loc[("code", "trained"), "mAP"] > rows.loc[("code", "untrained"), "mAP"] + 5
    health = rows.loc[("code", "trained")]
    starts = [one.history[0] for one in trained.networks["trained"]]
    assert health["steps"] == 16 and health["loss"] < health["loss_first"] == pytest.approx(np.mean(starts))
    assert set(network.tests(found, GROUPS)["n_seeds"].dropna()) == {2}


@torch.no_grad()
def test_a_level_that_gets_its_own_maps_is_that_of_the_network(maps, trained):
    one = trained.networks["trained"][0].network
    shallow, deep = torch.tensor(maps.shallow), torch.tensor(maps.deep)
    own = one(shallow.float(), deep.float()).levels[1]
    assert network.fused(one, shallow, deep, shallow) == pytest.approx(own.numpy(), abs=1e-5)


def test_only_values_decide_if_all_pixels_are_alike(maps, trained):
    """Of a shallow map that is the same everywhere any mixture is the same, whatever the deep map says."""
    flat = np.broadcast_to(maps.shallow[:, :, :1, :1], maps.shallow.shape).copy()
    rows = network.exchanged(trained.networks, material(Taps(flat, maps.deep)), trained.splits)
    by = rows.groupby("exchanged")["moved"].mean()
    assert by["nothing"] == 0
    assert by["deep map (weights)"] == pytest.approx(0, abs=1e-5)
    assert by["shallow map (values)"] == pytest.approx(1, abs=1e-4)


def test_equal_weights_are_even_and_a_single_pixel_is_not(maps, trained):
    same = Taps(np.zeros_like(maps.shallow), np.zeros_like(maps.deep))
    rows = network.evenness(trained.networks, same, np.arange(3)).set_index("part")["evenness"]
    assert rows["DaRF"].to_numpy() == pytest.approx(100, abs=1e-3)  # all pixels are the same
    real = network.evenness(trained.networks, maps, np.arange(9))["evenness"]
    assert ((real > 0) & (real < 100)).all()
