"""Stem and network together, on images of 64 pixels that differ in colour."""

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.losses.acir import StructureAware
from lib.training.acir import Design, Job
from lib.training.acir_end_to_end import _crops, fit_end_to_end
from lib.training.hashing import Even

ENCODER = "efficientnet_lite0_64px-untrained"
DESIGN = Design(bits=8, narrow=(4, 8), window=4, heads=2, width=8, grid=2)
LABELS = np.arange(24) % 2
ROWS = np.arange(16)
PRINTS = np.zeros((24, 3), np.float32)


@pytest.fixture(scope="module")
def images():
    """Noise; the second class is red."""
    random = np.random.default_rng(0)
    x = random.integers(0, 100, (24, 3, 64, 64))
    x[LABELS == 1, 0] += 140
    return x.astype(np.uint8)


def fit(images, schedule=None, lr=5e-3, seed=0, **options):
    job = Job("toy", DESIGN, StructureAware(), lr, seed)
    given = {"store": None, "device": "cpu"} | options
    short = Even(epochs=4, batch_size=8, weight_decay=1e-4)
    return fit_end_to_end(images, LABELS, PRINTS, ROWS, job, schedule or short, ENCODER, 64, **given)


def test_it_learns_and_answers_for_unseen_images(images):
    trained = fit(images)
    assert trained.history[-1] < trained.history[0]
    assert (trained.steps, len(trained.history)) == (8, 4)
    h = np.sign(trained.outputs(images).h)
    nearest = (h[16:] @ h[:16].T).argmax(1)
    assert (LABELS[:16][nearest] == LABELS[16:]).all()


def test_the_stem_moves_but_for_its_first_layer_and_its_batch_norm(images):
    from lib.encoders import taps

    one = Even(epochs=1, batch_size=8)
    before, after = taps.stem(ENCODER).state_dict(), fit(images, one).whole.stem.state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert "model.blocks.2.0.conv_pw.weight" in moved
    assert not [name for name in moved if "bn" in name or "conv_stem" in name]


@pytest.mark.parametrize(("change", "words"), [(lambda x: x / 255, "uint8"), (lambda x: x[:9], "the same ones")])
def test_what_does_not_fit_is_refused_in_words(images, change, words):
    with pytest.raises(InputError, match=words):
        fit(change(images))


def test_a_crop_has_the_shape_of_the_image_at_a_stated_share_and_both_ways():
    """Of an image whose red is x and green is y, the ends of a crop tell where it lies and how it is turned."""
    line = torch.linspace(0, 1, 64)
    image = torch.stack([line.expand(64, 64), line[:, None].expand(64, 64), torch.ones(64, 64)])
    images = (255 * image).round().byte().expand(400, 3, 64, 64)
    x = _crops(images, 32, torch.Generator().manual_seed(0))
    wide = x[:, 0, 16, -1] - x[:, 0, 16, 0]
    tall = x[:, 1, -1, 16] - x[:, 1, 0, 16]
    assert 0.3 < (wide < 0).float().mean() < 0.7 and 0.3 < (tall < 0).float().mean() < 0.7
    assert torch.allclose(wide.abs(), tall.abs(), atol=1e-2)  # the shape is kept
    area = (wide.abs() * 32 / 31 * 63 / 64) ** 2
    assert area.min() > 0.77 and area.max() < 1.03
    assert area.max() - area.min() > 0.15
    assert torch.allclose(x[:, 2], torch.ones(400, 32, 32))
