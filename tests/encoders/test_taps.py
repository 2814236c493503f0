"""Feature maps of frozen networks against the network's own pooled feature, and the file that keeps them."""

import numpy as np
import pytest
import torch
from PIL import Image

from lib import paths
from lib.encoders import registry, taps
from lib.errors import BrokenImage, InputError
from lib.training.finetune import thaw
from tests.images import listed, painted

ENCODER = "efficientnet_lite0_64px-untrained"


@pytest.fixture
def images(tmp_path):
    """Five images of noise, all but the first larger than the encoder's square."""
    return painted(listed("aaaaa", tmp_path), *((side, side) for side in range(64, 104, 8)))


def test_maps_have_the_strides_of_the_paper(images):
    found = taps.extract(images, ENCODER)
    assert (found.shallow.shape, found.deep.shape) == ((5, 40, 8, 8), (5, 320, 2, 2))
    assert found.shallow.dtype == found.deep.dtype == np.float16
    assert taps.pooled(found) == pytest.approx(found.deep.astype(float).mean((2, 3)), abs=1e-3)


def test_the_head_of_the_network_makes_its_feature_of_the_deep_map(images):
    """What is behind the deep map, applied to it, is the encoder's pooled feature."""
    backbone = registry.make(ENCODER)
    model, deep = backbone.model, torch.tensor(taps.extract(images, ENCODER).deep).float()
    with torch.inference_mode():
        feature = model.bn2(model.conv_head(deep)).mean((2, 3))
    expected = backbone.encode([Image.open(images.path(i)) for i in range(5)])
    assert feature.numpy() == pytest.approx(expected, abs=2e-3 * float(np.abs(expected).max()))


def test_flipped_maps_are_those_of_mirrored_images(images, tmp_path):
    flipped = taps.extract(images, ENCODER, flipped=True)
    for i in range(5):
        Image.open(images.path(i)).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(images.path(i))
    mirrored = taps.extract(images, ENCODER)
    assert flipped.deep[0] == pytest.approx(mirrored.deep[0], abs=1e-2)  # the one that is not resampled
    assert flipped.deep[0] != pytest.approx(mirrored.deep[0][..., ::-1], abs=1e-2)


def test_what_was_made_is_kept_until_an_image_changes(images, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "TRAINED", tmp_path / "kept")
    first = taps.extract(images, ENCODER)
    monkeypatch.setattr(taps, "maps", lambda *_: pytest.fail("made again"))
    again = taps.extract(images, ENCODER)
    assert np.array_equal(first.deep, again.deep) and np.array_equal(first.shallow, again.shallow)
    Image.new("RGB", (64, 64)).save(images.path(3))
    with pytest.raises(pytest.fail.Exception):
        taps.extract(images, ENCODER)
    monkeypatch.undo()
    monkeypatch.setattr(paths, "TRAINED", tmp_path / "kept")
    changed = taps.extract(images, ENCODER).deep
    for file in (tmp_path / "kept").glob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:100])
    assert np.array_equal(taps.extract(images, ENCODER).deep, changed)


def test_pixels_are_what_the_encoder_sees(images):
    seen = taps.pixels(images, ENCODER)
    assert (seen.shape, seen.dtype) == ((5, 3, 64, 64), np.uint8)
    assert np.array_equal(seen[0], np.array(Image.open(images.path(0))).transpose(2, 0, 1))
    mean, std = taps.scale(ENCODER)
    (wanted,) = registry.make(ENCODER).prepared([Image.open(images.path(0))])
    assert torch.allclose((torch.tensor(seen[0]) / 255 - mean) / std, wanted, atol=1e-5)


def test_a_stem_can_be_trained_and_has_no_head():
    network = taps.stem(ENCODER)
    thaw(network)
    network(torch.zeros(2, 3, 64, 64))[1].sum().backward()
    lacking = [name for name, weight in network.named_parameters() if weight.requires_grad and weight.grad is None]
    assert lacking == []
    assert not network.model.conv_stem.weight.requires_grad


@torch.no_grad()
def test_a_resnet_gives_the_second_and_the_last_block():
    network = taps.stem("resnet50-untrained")
    assert network.channels == (512, 2048)
    assert [x.shape for x in network(torch.zeros(1, 3, 32, 32))] == [(1, 512, 4, 4), (1, 2048, 1, 1)]


@pytest.mark.parametrize(
    ("encoder", "words"), [("demo_vit-untrained", "convolutional"), ("texture", "no feature maps")]
)
def test_an_encoder_without_maps_is_refused(images, encoder, words):
    with pytest.raises(InputError, match=words):
        taps.extract(images, encoder)


def test_broken_images_are_named_all_at_once(images):
    for i in (2, 4):
        images.path(i).write_bytes(b"no image")
    for read in (taps.extract, taps.pixels):
        with pytest.raises(BrokenImage, match=r"(?s)2\.png.*4\.png"):
            read(images, ENCODER)
