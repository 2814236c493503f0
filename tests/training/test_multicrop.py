"""Crops are where they were said to be, stain is changed in optical density, and the generator decides alone."""

import numpy as np
import pytest
import torch
from skimage.color import rgb_from_hed

from lib.training.multicrop import crops, jitter, placements

HAEMATOXYLIN, EOSIN = rgb_from_hed[0], rgb_from_hed[1]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def dyed(haematoxylin: float, eosin: float) -> torch.Tensor:
    """One pixel with these amounts of two dyes, (1, 3, 1, 1) from 0 to 1."""
    light = np.exp(-(haematoxylin * HAEMATOXYLIN + eosin * EOSIN))
    return torch.tensor(light, dtype=torch.float32).reshape(1, 3, 1, 1)


def test_each_dye_is_multiplied_by_its_own_factor():
    changed = jitter(dyed(0.8, 0.5), torch.tensor([[1.2, 0.9, 1.0]]))
    torch.testing.assert_close(changed, dyed(0.8 * 1.2, 0.5 * 0.9), rtol=1e-5, atol=1e-6)


def test_every_crop_lies_inside_its_image_and_covers_the_share_that_was_asked_for():
    theta = placements(2000, (0.1, 0.4), generator())
    corners = torch.tensor([[x, y, 1.0] for x in (-1, 1) for y in (-1, 1)])
    assert (torch.einsum("nij,kj->nki", theta, corners).abs() <= 1 + 1e-5).all()
    covered = torch.linalg.det(theta[:, :, :2]).abs()
    assert 0.1 - 1e-4 < covered.min() < 0.12 and 0.38 < covered.max() < 0.4 + 1e-4
    sides = theta[:, :, :2].abs().amax(dim=2)
    assert (sides[:, 0] / sides[:, 1]).max() <= 4 / 3 + 1e-3


def test_a_crop_of_everything_is_the_image_in_one_of_its_eight_positions():
    image = torch.randint(26, 256, (1, 3, 8, 8), generator=generator(), dtype=torch.uint8)
    positions = [torch.rot90(i, k, (2, 3)) / 255 for i in (image, image.flip(3)) for k in range(4)]
    found = set()
    for seed in range(60):
        crop = crops(image, 8, (4.0, 4.0), generator(seed), stain=0.0)
        same = [i for i, position in enumerate(positions) if torch.allclose(crop, position, atol=1e-3)]
        assert len(same) == 1
        found.update(same)
    assert found == set(range(8))


def test_a_crop_shows_the_part_where_it_was_placed():
    """Each pixel of a ramp says where it is; the middle of the crop is the centre of its place."""
    ramp = torch.linspace(40, 240, 64).round().to(torch.uint8)
    image = torch.stack([ramp.expand(64, 64), ramp[:, None].expand(64, 64), torch.full((64, 64), 128)])[None].byte()
    for seed in range(10):
        centre = placements(1, (0.1, 0.2), generator(seed))[0, :, 2]
        crop = crops(image, 17, (0.1, 0.2), generator(seed), stain=0.0)[0, :, 8, 8]
        expected = (140 + 100 * centre * 64 / 63) / 255
        torch.testing.assert_close(crop[:2], expected, atol=0.01, rtol=0)


def test_the_generator_decides_and_the_global_random_state_is_left_alone():
    images = torch.randint(0, 256, (3, 3, 32, 32), generator=generator(), dtype=torch.uint8)
    before = torch.random.get_rng_state()
    one, again, other = (crops(images, 16, (0.3, 0.8), generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert one.shape == (3, 3, 16, 16) and one.dtype == torch.float32
    assert one.min() >= 0 and one.max() <= 1


@pytest.mark.gpu
def test_a_gpu_draws_the_same_crops():
    images = torch.randint(0, 256, (3, 3, 32, 32), generator=generator(), dtype=torch.uint8)
    there = crops(images.cuda(), 16, (0.3, 0.8), generator())
    torch.testing.assert_close(there.cpu(), crops(images, 16, (0.3, 0.8), generator()), atol=1e-4, rtol=1e-4)
