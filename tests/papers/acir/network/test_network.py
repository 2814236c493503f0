"""Parts are counted as they are, levels are asked by those who did not learn, and an exchange is what it says."""

import numpy as np
import pytest
import torch

from lib.encoders import taps
from lib.encoders.taps import Taps
from lib.papers.acir.network import figures, parts, study
from lib.training.acir import Design
from lib.training.hashing import Even
from lib.training.splits import Split, repeated

DESIGN = Design(bits=8, narrow=(4, 8), window=2, heads=2, width=8, grid=2)
LABELS = np.arange(240) % 2
GROUPS = np.array([f"P{i // 10}" for i in range(240)])
SPLIT = Split(0, np.arange(120), np.arange(120, 240), 0)
PRINTS = np.random.default_rng(1).random((240, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def maps():
    """Two classes that differ in three channels of both maps."""
    random = np.random.default_rng(0)
    shallow, deep = random.normal(size=(240, 6, 4, 4)), random.normal(size=(240, 10, 2, 2))
    shallow[LABELS == 1, :3] += 1
    deep[LABELS == 1, :3] += 1
    return Taps(shallow.astype(np.float16), deep.astype(np.float16))


@pytest.fixture(scope="module")
def several(maps):
    splits = repeated([SPLIT], 2)
    schedule = Even(epochs=4, batch_size=30, weight_decay=1e-4)
    return splits, study.train(maps, LABELS, PRINTS, DESIGN, schedule, 1e-2, splits, workers=1)


def test_parts_have_the_parameters_of_the_network_that_runs():
    stem = taps.stem("efficientnet_lite0_64px-untrained")
    own = sum(weight.numel() for weight in stem.parameters())
    rows = parts.table(DESIGN, stem, 64).set_index("part")
    network = DESIGN.network((40, 320), 2)
    counted = sum(value.numel() for value in network.parameters()) - 2 * DESIGN.bits  # scale and shift of the bits
    assert rows["parameters"].drop(["ConvNet stem", "decoder"]).sum() == counted
    assert rows.loc["ConvNet stem", "parameters"] == own
    assert rows.loc["ConvMSA, shallow", "input"] == "4 × 8 × 8"
    assert rows.loc["decoder", "output"] == "3 × 64 × 64"


def test_a_resnet_without_weights_has_the_size_that_everybody_knows():
    rows = parts.table(parts.PAPER, *parts.resnet()).set_index("part")
    assert rows.loc["ConvNet stem", "parameters"] == 23_508_032
    assert rows.loc["ConvNet stem", "gmac"] == pytest.approx(4.09, abs=0.01)
    d = 2048  # a layer: queries, keys, values, their join, two linear layers of twice the width, two norms
    layer = 4 * (d * d + d) + 2 * d * d * 2 + 3 * d + 4 * d
    assert rows.loc["PiT", "parameters"] == parts.PAPER.layers * layer + d * (1 + 1 + 49) + 2 * d


def test_what_the_paper_leaves_open_is_read_off_what_is_used():
    """AC-23; a changed design changes the table."""
    stem, schedule = taps.stem("efficientnet_lite0_96px-untrained"), Even(2, 37)
    design = Design(narrow=(6, 12), heads=3, window=2, layers=2, width=7, grid=2, hidden=5)
    by = parts.left_open(design, stem, 96, 5, schedule).set_index("open")
    wanted = {"pixels of an image": "96", "images of a batch": "37", "pixels of a fingerprint's side": "5"}
    wanted |= {"layers of PiT": "2", "heads of attention": "3", "inner width of DaRF": "7", "KAN layers (AC-7)": "2"}
    assert by.loc[list(wanted), "ours"].to_dict() == wanted
    assert by.loc["window of ConvMSA, pixels of its side", "ours"] == "2"
    assert by.loc["layers of PiT", "paper"] == str(parts.PAPER.layers) and by.loc["images of a batch", "paper"] == "–"


def test_arrows_of_the_diagram_lead_from_box_to_box():
    assert {end for source, target, _ in figures.ARROWS for end in (source, target)} == set(figures.BOXES)
    texts = {text.get_text() for text in figures.diagram().axes[0].texts}
    assert {box.text for box in figures.BOXES.values()} <= texts


def test_the_rate_is_chosen_by_images_set_aside(maps):
    aside = Split(0, np.arange(60), np.arange(60, 120), 0)
    spoiled = Taps(maps.shallow.copy(), maps.deep.copy())
    spoiled.deep[120:] = 0
    schedule = Even(epochs=2, batch_size=30)
    first, second = (
        study.choose(x, LABELS, PRINTS, DESIGN, schedule, [1e-6, 1e-2], aside, workers=1) for x in (maps, spoiled)
    )
    assert first.equals(second)
    assert first["chosen"].sum() == 1


def test_a_rate_is_chosen_by_the_mean_of_several_trainings(maps):
    aside, schedule = Split(0, np.arange(60), np.arange(60, 120), 0), Even(epochs=2, batch_size=30)
    given, rates = (maps, LABELS, PRINTS, DESIGN, schedule), [1e-3, 1e-2]
    twice = study.choose(*given, rates, aside, 2, workers=1)
    each = [study.choose(*given, rates, one, workers=1) for one in repeated([aside], 2)]
    for column in ("validation", "loss"):
        assert twice[column].tolist() == pytest.approx(np.mean([one[column] for one in each], axis=0))
        assert each[0][column].tolist() != each[1][column].tolist()


def test_every_level_answers_untrained_and_trained(maps, several):
    splits, networks = several
    found = study.answers(networks, maps, LABELS, splits)
    assert len(found) == 2 * len(study.LEVELS) + 1
    rows = study.levels(found)
    by = rows.set_index(["level", "network"])["mAP"]
    assert by["code", "trained"] > by["code", "untrained"] + 5
    health = rows.set_index(["level", "network"]).loc[("code", "trained")]
    starts = [one.history[0] for one in networks["trained"]]
    assert health["steps"] == 16 and health["loss"] < health["loss_first"] == pytest.approx(np.mean(starts))
    tested = study.tests(found, GROUPS)
    assert set(tested["n_seeds"].dropna()) == {2}


@torch.no_grad()
def test_a_level_that_gets_its_own_maps_is_that_of_the_network(maps, several):
    network = several[1]["trained"][0].network
    shallow, deep = torch.tensor(maps.shallow), torch.tensor(maps.deep)
    own = network(shallow.float(), deep.float()).levels[1]
    assert study.fused(network, shallow, deep, shallow) == pytest.approx(own.numpy(), abs=1e-5)


def test_values_alone_decide_where_all_pixels_are_alike(maps, several):
    """Of a shallow map that is the same everywhere any mixture is the same, whatever the deep map says."""
    splits, networks = several
    flat = np.broadcast_to(maps.shallow[:, :, :1, :1], maps.shallow.shape)
    rows = study.exchanged(networks, Taps(flat.copy(), maps.deep), LABELS, splits)
    by = rows.groupby("exchanged")["moved"].mean()
    assert by["nothing"] == 0
    assert by["deep map (weights)"] == pytest.approx(0, abs=1e-5)
    assert by["shallow map (values)"] == pytest.approx(1, abs=1e-4)


def test_equal_weights_are_even_and_a_single_pixel_is_not(maps, several):
    _, networks = several
    same = Taps(np.zeros_like(maps.shallow), np.zeros_like(maps.deep))
    rows = study.evenness(networks, same, np.arange(3)).set_index("part")["evenness"]
    assert rows["DaRF"].to_numpy() == pytest.approx(100, abs=1e-3)  # all pixels are the same
    real = study.evenness(networks, maps, np.arange(9))["evenness"]
    assert ((real > 0) & (real < 100)).all()


def test_looks_are_of_the_window_and_pixel_that_are_asked_for(maps, several):
    network = several[1]["trained"][0].network
    one = figures.looks(network, maps, image=7, window=3, pixel=2)
    assert (one.corner, one.pixel, one.side) == ((2, 2), (3, 2), 4)
    assert [x.shape for x in (one.window, one.token, one.fusion)] == [(2, 2)] * 3
    assert [x.sum() for x in (one.window, one.token, one.fusion)] == pytest.approx([1, 1, 1], abs=1e-5)
    moved = Taps(maps.shallow.copy(), maps.deep)
    moved.shallow[7, :, :2] += 1  # other windows
    assert np.array_equal(figures.looks(network, moved, 7, 3, 2).window, one.window)
