"""Images are read as the encoder sees them, a part of many by a seed, and a broken one is named."""

import pytest
import torch
from PIL import Image

from lib.datasets.table import ImageTable
from lib.encoders import small_vit
from lib.errors import BrokenImage
from lib.training.pixels import load_images
from tests.images import listed, painted

MEAN = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225])[:, None, None]


@pytest.fixture
def table(tmp_path) -> ImageTable:
    return painted(listed("a" * 9, tmp_path), *((height, 120) for height in range(90, 99)))


def test_images_are_read_as_the_encoder_sees_them(table):
    pixels = load_images(table)
    assert pixels.shape == (9, 3, 96, 96) and pixels.dtype == torch.uint8
    encoder = small_vit.load(None, device="cpu")
    with Image.open(table.path(4)) as picture:
        seen = encoder.prepared([picture])[0]
    torch.testing.assert_close((pixels[4] / 255 - MEAN) / STD, seen, rtol=0, atol=0.03)


def test_a_large_set_is_sampled_by_its_seed(table):
    everything = load_images(table)
    one, again, other = (load_images(table, limit=4, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one, again) and not torch.equal(one, other)
    rows = [next(i for i in range(9) if torch.equal(everything[i], image)) for image in one]
    assert rows == sorted(set(rows)) and len(rows) == 4


def test_a_broken_image_is_named_or_left_out(table):
    table.path(2).write_bytes(b"")
    with pytest.raises(BrokenImage, match=r"2\.png"):
        load_images(table)
    assert len(load_images(table, on_broken="skip")) == 8
