"""The decoder on images of one colour in each quarter, which a deep map of 2 × 2 pixels tells completely."""

import numpy as np
import pytest
from PIL import Image

from lib.encoders.taps import Taps
from lib.errors import InputError
from lib.training.hashing import Even
from lib.training.rebuild import fit_decoder
from tests.images import listed

SHORT = Even(epochs=12, batch_size=12, lr=2e-2, weight_decay=1e-5)
ROWS = np.arange(36)


@pytest.fixture(scope="module")
def drawn():
    """48 images with a bright and a dark half, and maps that say which; only the deep one differs."""
    random = np.random.default_rng(0)
    quarters = np.zeros((48, 1, 2, 2))
    quarters[::2, :, 0], quarters[1::2, :, :, 0] = 1, 1
    deep = np.concatenate([quarters, 1 - quarters, random.normal(size=(48, 3, 2, 2))], axis=1)
    pixels = np.kron(20 + 200 * quarters, np.ones((3, 32, 32)))
    return Taps(np.zeros((48, 4, 4, 4), np.float16), deep.astype(np.float16)), pixels.astype(np.uint8)


def fit(taps, images, schedule=SHORT, seed=0, **options):
    return fit_decoder(taps, images, ROWS, schedule, seed, **{"width": 8, "store": None} | options)


def test_it_rebuilds_images_it_has_not_seen(drawn):
    taps, images = drawn
    made = fit(taps, images)
    rebuilt, wanted = made.rebuild(taps.take(slice(36, 48))), images[36:] / 255
    assert (rebuilt.shape, rebuilt.dtype) == ((12, 3, 64, 64), np.float32)
    assert rebuilt.min() >= 0 and rebuilt.max() <= 1
    assert (made.steps, len(made.history)) == (36, 12)
    assert made.history[-1] < 0.5 * made.history[0]
    of_mean = np.abs(images[ROWS].mean(0) / 255 - wanted).mean()
    assert np.abs(rebuilt - wanted).mean() < 0.5 * of_mean


def test_the_shallow_map_and_unseen_images_have_no_say(drawn):
    taps, images = drawn
    one = Even(epochs=1, batch_size=12, lr=1e-2)
    changed, other = Taps(taps.shallow + 1, taps.deep.copy()), images.copy()
    changed.deep[36:], other[36:] = 9, 0
    first, second = (made.rebuild(taps) for made in (fit(taps, images, one), fit(changed, other, one)))
    assert np.array_equal(first, second)


def test_a_table_of_images_is_squashed_to_the_size(drawn, tmp_path):
    taps, images = drawn
    for i, image in enumerate(images):
        Image.fromarray(image.transpose(1, 2, 0)).save(tmp_path / f"{i}.png")
    one = Even(epochs=1, batch_size=12, lr=1e-2)
    of_table = fit(taps, listed("a" * 48, tmp_path), one)
    assert of_table.history == fit(taps, images, one).history


@pytest.mark.parametrize(
    "spoil", [lambda x: x[:, :, :32], lambda x: x / 255, lambda x: x[:10]], ids=["size", "type", "number"]
)
def test_images_that_do_not_fit_are_refused(drawn, spoil):
    taps, images = drawn
    with pytest.raises(InputError, match="expected 48 of 64 x 64, uint8"):
        fit(taps, spoil(images))
