"""Images decoded once and cut in batches: the same pixels as Pillow's, the same crops as torchvision's."""

import math
import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats
from torchvision.transforms import v2

from lib import paths
from lib.datasets import pixels
from lib.datasets.folder import load
from lib.errors import BrokenImage

CPU = torch.device("cpu")
SHAPES = ((40, 60), (60, 40), (96, 96), (33, 77))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    root, random = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    for number, (height, width) in enumerate(SHAPES):
        smooth = Image.fromarray(random.integers(0, 256, (9, 9, 3), dtype=np.uint8)).resize((width, height))
        (root / "ab"[number // 2]).mkdir(exist_ok=True)
        smooth.save(root / "ab"[number // 2] / f"{number}.png")
    return load(root)


def pictures(table):
    return [Image.open(table.path(row)).convert("RGB") for row in range(len(table))]


@pytest.mark.parametrize("options", [{"workers": 1}, {"workers": 2}, {"budget": 0, "workers": 1}])
def test_images_are_decoded_as_pillow_does_in_memory_and_mapped(table, options, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    for _ in range(2):
        decoded = pixels.decode(table, **options)
        for image, picture in zip(decoded.images, pictures(table), strict=True):
            assert np.array_equal(image.permute(1, 2, 0), picture)
    assert decoded.shapes.tolist() == [list(image.shape[1:]) for image in decoded.images]
    assert len(list(tmp_path.rglob("*.safetensors"))) == ("budget" in options)


def test_a_map_of_other_images_or_a_damaged_one_is_not_used(table, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    before = pixels.decode(table, budget=0).images[0].clone()
    file = next(tmp_path.rglob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:20])
    assert torch.equal(pixels.decode(table, budget=0).images[0], before)
    content = table.path(0).read_bytes()
    try:
        Image.fromarray(255 - before.permute(1, 2, 0).numpy()).save(table.path(0))
        assert torch.equal(pixels.decode(table, budget=0).images[0], 255 - before)
    finally:
        table.path(0).write_bytes(content)


@pytest.mark.parametrize("budget", [pixels.BUDGET, 0])
def test_a_broken_image_is_named_or_left_out(table, budget, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    content = table.path(1).read_bytes()
    try:
        table.path(1).write_bytes(content[:100])
        with pytest.raises(BrokenImage, match=table.path(1).name):
            pixels.decode(table, budget=budget)
        decoded = pixels.decode(table, budget=budget, on_broken="skip")
    finally:
        table.path(1).write_bytes(content)
    assert [image is None for image in decoded.images] == [False, True, False, False]
    assert list(decoded.reasons) == [1] and decoded.shapes[1].tolist() == [0, 0]


def test_what_may_surprise_is_said_once(tmp_path):
    pages = [Image.new("RGB", (8, 8)), Image.new("RGB", (8, 8))]
    for label in "ab":
        (tmp_path / label).mkdir()
        pages[0].save(tmp_path / label / "0.tif", save_all=True, append_images=pages[1:])
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        pixels.decode(load(tmp_path))
    assert len([w for w in raised if "several pages" in str(w.message)]) == 1


@pytest.mark.parametrize("size", [24, 96, 150])
def test_pixels_are_those_of_pillow_within_a_level_of_rounding(table, size):
    decoded = pixels.decode(table)
    boxes = torch.tensor([[0, 0, 40, 60], [5, 3, 30, 31], [0, 10, 96, 80], [1, 1, 32, 70]])
    crops = pixels.cut(decoded.images, boxes, (size, size), CPU)
    for crop, picture, (top, left, height, width) in zip(crops, pictures(table), boxes.tolist(), strict=True):
        box = (left, top, left + width, top + height)
        expected = np.asarray(picture.crop(box).resize((size, size), Image.Resampling.BICUBIC)).astype(int)
        apart = np.abs(crop.permute(1, 2, 0).numpy() - expected)
        assert apart.max() <= 2 and apart.mean() < 0.5


def test_crops_of_one_size_are_the_same_at_once_and_one_by_one(table):
    decoded = pixels.decode(table)
    boxes = torch.tensor([[0, 0, 30, 40]] * 4)
    together = pixels.cut(decoded.images, boxes, (24, 24), CPU)
    for row in range(4):
        assert torch.equal(together[row : row + 1], pixels.cut(decoded.images[row : row + 1], boxes[:1], (24, 24), CPU))


@pytest.mark.parametrize("shape", [(96, 96), (60, 150)])
@pytest.mark.parametrize("area", [(0.2, 1.0), (0.8, 1.0)])
def test_crops_are_distributed_as_torchvisions(shape, area):
    n = 3000
    boxes = pixels.random_boxes(torch.tensor([shape] * n), area, torch.Generator().manual_seed(0)).numpy()
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
    boxes = pixels.random_boxes(torch.tensor([(10, 1000), (1000, 10)]), (0.9, 1.0), torch.Generator().manual_seed(0))
    wide = math.floor(10 * 4 / 3)
    assert boxes.tolist() == [[0, (1000 - wide) // 2, 10, wide], [(1000 - wide) // 2, 0, wide, 10]]


def test_an_image_has_the_crop_of_its_own_draws_alone():
    shapes = torch.tensor([(50, 60)] * 6)
    other = shapes.clone()
    other[3] = torch.tensor([500, 20])
    first, second = (pixels.random_boxes(x, (0.2, 1.0), torch.Generator().manual_seed(7)) for x in (shapes, other))
    assert torch.equal(first[[0, 1, 2, 4, 5]], second[[0, 1, 2, 4, 5]])


def test_mirrored_and_normalised():
    x = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 2, 2)
    turned = pixels.mirrored(x, torch.tensor([True, False]))
    assert torch.equal(turned[0], x[0].flip(2)) and torch.equal(turned[1], x[1])
    expected = v2.functional.normalize(x.float() / 255, [0.1, 0.2, 0.3], [0.4, 0.5, 0.6])
    torch.testing.assert_close(pixels.normalised(x, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)), expected)
