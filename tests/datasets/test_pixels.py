"""Images decoded once and cut in batches: the same pixels as Pillow's, the same crops as torchvision's."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

from lib import paths
from lib.datasets import crops, decoding, pixels, resampling
from lib.errors import BrokenImage
from tests.images import listed

CPU = torch.device("cpu")
SHAPES = ((40, 60), (60, 40), (96, 96), (33, 77))


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch):
    monkeypatch.setattr(pixels, "_MEMORY", {})


@pytest.fixture
def table(tmp_path):
    table, random = listed("aabb", tmp_path), np.random.default_rng(0)
    for row, (height, width) in enumerate(SHAPES):
        smooth = Image.fromarray(random.integers(0, 256, (9, 9, 3), dtype=np.uint8)).resize((width, height))
        smooth.save(table.path(row))
    return table


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


def test_what_was_decoded_is_not_read_again_unless_it_changed(table, monkeypatch):
    read, read_image = [], decoding.read_image
    monkeypatch.setattr(decoding, "read_image", lambda path, notices: read.append(path) or read_image(path, notices))
    part = table.take(table.rows["image_id"].iloc[1:3])
    several = [pixels.decode(images) for images in (part, table, table)]
    assert [path.name for path in read] == ["1.png", "2.png", "0.png", "3.png"]
    assert all(one is other for one, other in zip(several[1].images, several[2].images, strict=True))
    table.path(0).write_bytes(table.path(2).read_bytes())
    assert torch.equal(pixels.decode(table).images[0], several[0].images[1])
    pixels.decode(part, budget=several[0].bytes)  # no more than the budget stays in memory
    assert all(one is other for one, other in zip(pixels._MEMORY.values(), several[0].images, strict=True))


@pytest.mark.parametrize("damage", [lambda data: data[:20], lambda data: data[:-1] + bytes([data[-1] ^ 1])])
def test_a_map_of_other_images_or_a_damaged_one_is_not_used(table, monkeypatch, tmp_path, damage):
    """Nor one in which a single bit of a pixel has changed."""
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    before = [image.clone() for image in pixels.decode(table, budget=0).images]
    file = next(tmp_path.rglob("*.safetensors"))
    written = file.read_bytes()
    file.write_bytes(damage(written))
    again = pixels.decode(table, budget=0).images
    assert all(torch.equal(one, other) for one, other in zip(again, before, strict=True))
    assert file.read_bytes() != damage(written)
    Image.fromarray(255 - before[0].permute(1, 2, 0).numpy()).save(table.path(0))
    assert torch.equal(pixels.decode(table, budget=0).images[0], 255 - before[0])


@pytest.mark.parametrize("budget", [pixels.BUDGET, 0])
def test_a_broken_image_is_named_or_left_out(table, budget, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    table.path(1).write_bytes(table.path(1).read_bytes()[:100])
    with pytest.raises(BrokenImage, match=table.path(1).name):
        pixels.decode(table, budget=budget)
    decoded = pixels.decode(table, budget=budget, on_broken="skip")
    assert [image is None for image in decoded.images] == [False, True, False, False]
    assert list(decoded.reasons) == [1] and decoded.shapes[1].tolist() == [0, 0]


BOXES = torch.tensor([[0, 0, 40, 60], [5, 3, 30, 31], [0, 10, 96, 80], [1, 1, 32, 70]])


def close(crop, picture):
    apart = np.abs(crop.permute(1, 2, 0).numpy() - np.asarray(picture).astype(int))
    return apart.max() <= 2 and apart.mean() < 0.5


@pytest.fixture(params=["torchvision", "matrices"])
def way(request, monkeypatch):
    """Both ways to resize: that of the CPU, and that of a GPU, here on the CPU too."""
    if request.param == "matrices":
        monkeypatch.setattr(crops, "by_matrices", lambda *_: True)
    return request.param


@pytest.mark.parametrize("mode", ["BICUBIC", "BILINEAR"])
@pytest.mark.parametrize("size", [24, 150])
def test_pixels_are_those_of_pillow_within_a_level_of_rounding(table, size, mode, way, monkeypatch):
    monkeypatch.setattr(resampling, "PADDED", 2 * 96 * 80)  # two images at once
    how = {"interpolation": v2.InterpolationMode[mode]}
    cuts = crops.cut(pixels.decode(table).images, BOXES, (size, size + 3), CPU, **how)
    for crop, picture, (top, left, height, width) in zip(cuts, pictures(table), BOXES.tolist(), strict=True):
        box = (left, top, left + width, top + height)
        assert close(crop, picture.crop(box).resize((size + 3, size), Image.Resampling[mode]))


@pytest.mark.parametrize(("shorter", "size"), [(24, 24), (50, 41), (96, 96), (150, 120)])
def test_the_middle_is_that_of_torchvision(table, shorter, size, way):
    seen = v2.Compose([v2.Resize(shorter, interpolation=v2.InterpolationMode.BICUBIC), v2.CenterCrop(size)])
    for crop, picture in zip(
        crops.central(pixels.decode(table).images, shorter, size, CPU), pictures(table), strict=True
    ):
        assert close(crop, seen(picture))


def test_crops_of_one_size_are_the_same_at_once_and_one_by_one(table):
    decoded = pixels.decode(table)
    boxes = torch.tensor([[0, 0, 30, 40]] * 4)
    together = crops.cut(decoded.images, boxes, (24, 24), CPU)
    for row in range(4):
        assert torch.equal(together[row : row + 1], crops.cut(decoded.images[row : row + 1], boxes[:1], (24, 24), CPU))
