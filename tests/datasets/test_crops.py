"""Crops drawn as torchvision draws them, each by its own draws alone; :mod:`test_pixels` tests cutting."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torchvision.transforms import v2

from lib.datasets import crops


@pytest.mark.parametrize("shape", [(96, 96), (60, 150)])
@pytest.mark.parametrize("area", [(0.2, 1.0), (0.8, 1.0)])
def test_crops_are_distributed_as_torchvisions(shape, area):
    n = 3000
    boxes = crops.random_boxes(torch.tensor([shape] * n), area, torch.Generator().manual_seed(0)).numpy()
    assert (boxes >= 0).all() and (boxes[:, :2] + boxes[:, 2:] <= shape).all()
    image = torch.empty(3, *shape)
    torch.manual_seed(1)
    drawn = [v2.RandomResizedCrop(8, area).make_params([image]) for _ in range(n)]
    theirs = np.array([[crop[side] for side in ("top", "left", "height", "width")] for crop in drawn])
    measures = {
        "area": lambda b: b[:, 2] * b[:, 3],
        "aspect": lambda b: b[:, 3] / b[:, 2],
        "top": lambda b: b[:, 0],
        "left": lambda b: b[:, 1],
        "centre": lambda b: b[:, 0] + b[:, 2] / 2,
    }
    for name, measure in measures.items():
        assert stats.ks_2samp(measure(boxes), measure(theirs)).pvalue > 0.001, name


def test_an_image_that_no_crop_fits_gets_the_largest_central_one():
    boxes = crops.random_boxes(torch.tensor([(10, 1000), (1000, 10)]), (0.9, 1.0), torch.Generator().manual_seed(0))
    wide = math.floor(10 * 4 / 3)
    assert boxes.tolist() == [[0, (1000 - wide) // 2, 10, wide], [(1000 - wide) // 2, 0, wide, 10]]


def test_an_image_has_the_crop_of_its_own_draws_alone():
    shapes = torch.tensor([(50, 60)] * 6)
    other = shapes.clone()
    other[3] = torch.tensor([500, 20])
    first, second = (crops.random_boxes(x, (0.2, 1.0), torch.Generator().manual_seed(7)) for x in (shapes, other))
    assert torch.equal(first[[0, 1, 2, 4, 5]], second[[0, 1, 2, 4, 5]])
