"""Crops depend on seed, step and place alone; test images are resized and cropped as the paper does it."""

import numpy as np
import pytest
import torch
from PIL import Image

from lib.datasets.pixels import decode
from lib.errors import InputError
from lib.training.photos import Preparation, random_views
from tests.images import listed, painted

PREPARATION = Preparation(size=16, resize=20)
CPU = torch.device("cpu")


@pytest.fixture
def table(tmp_path):
    return painted(listed("aabbcc", tmp_path), (30, 40))


def batches(start=0, n=4):
    return [(step, torch.tensor([step % 6, 0, 0, 5])) for step in range(start, n)]


def crops(table, several, preparation=PREPARATION, seed=3, **options):
    return torch.stack(list(random_views(decode(table), several, preparation, seed, CPU, **options)))


def test_any_step_and_any_part_give_the_same_pixels(table):
    whole, later = crops(table, batches()), crops(table, batches(start=2))
    assert torch.equal(whole[2:], later)
    assert torch.equal(whole[:, 2:], crops(table, batches(), part=slice(2, 4)))


def test_a_crop_of_all_of_an_image_is_the_image_or_its_mirror(table):
    """Square images and an area of 1: nothing is left to chance but the flip."""
    painted(table, (16, 16))
    preparation = Preparation(16, 16, area=(1.0, 1.0), mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    mirrored = 0
    for (_, rows), pixels in zip(batches(n=20), crops(table, batches(n=20), preparation, 0), strict=True):
        for row, ours in zip(rows.tolist(), pixels, strict=True):
            values = np.asarray(Image.open(table.path(row)), dtype=np.float32) / 255
            values = torch.from_numpy((values - [0.1, 0.2, 0.3]) / [0.5, 0.6, 0.7]).permute(2, 0, 1).float()
            flipped = torch.allclose(ours, values.flip(-1), atol=1e-5)
            mirrored += flipped
            assert flipped or torch.allclose(ours, values, atol=1e-5)
    assert 0 < mirrored < 80


@pytest.mark.parametrize("setting", [{"size": 0}, {"resize": 200}, {"area": (0.0, 1.0)}])
def test_values_without_meaning_are_refused(setting):
    with pytest.raises(InputError, match=f"{next(iter(setting))}.* cannot be used"):
        Preparation(**setting)
