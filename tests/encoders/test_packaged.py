"""Networks with weights from a package compute what their authors' do, and see the whole image."""

import numpy as np
import pytest
import skimage
import torch
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

from lib.encoders import densenet121, lite0, networks, registry
from lib.encoders.packaged import NETWORKS, Packaged
from lib.errors import InputError, MissingWeights

RNG = np.random.default_rng(0)
IMAGES = [Image.fromarray(RNG.integers(0, 256, (60, 80, 3), dtype=np.uint8)) for _ in range(3)]


def test_the_features_are_those_of_the_authors_network():
    theirs = EfficientNet.from_name("efficientnet-lite0").eval()
    theirs.load_state_dict(torch.load(lite0.file(), weights_only=True))
    ours = networks.load("efficientnet_lite0", device="cpu").model
    pixels = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = theirs.extract_features(pixels).mean(dim=(2, 3))
        torch.testing.assert_close(ours(pixels), expected, rtol=0, atol=1e-4)


def test_every_weight_of_densenet_is_in_its_place():
    """What each batch norm receives of a photograph is spread as it was in training, or a little more.

    With two convolutions of a block exchanged, or the first one transposed, some get less: 0.94 and 0.86.
    """
    encoder = networks.load("densenet121", device="cpu")
    spreads = {}

    def watch(name: str):
        def look(module: torch.nn.BatchNorm2d, given: tuple[torch.Tensor, ...]) -> None:
            mean, deviation = (x[None, :, None, None] for x in (module.running_mean, module.running_var.sqrt()))
            spreads[name] = ((given[0] - mean) / deviation).square().mean().sqrt().item()

        return look

    norms = {name: m for name, m in encoder.model.named_modules() if isinstance(m, torch.nn.BatchNorm2d)}
    for name, module in norms.items():
        module.register_forward_pre_hook(watch(name))
    encoder.encode([Image.fromarray(skimage.data.astronaut())])
    assert len(spreads) == len(norms) == 121 and {m.eps for m in norms.values()} == {densenet121.EPS}
    assert min(spreads.values()) > 0.97 and max(spreads.values()) < 1.5


@pytest.mark.parametrize(
    ("name", "side", "dim"),
    [("efficientnet_lite0", 224, 1280), ("efficientnet_lite0_96px", 96, 1280), ("densenet121_64px", 64, 1024)],
)
def test_it_sees_the_whole_image_at_its_side(name, side, dim):
    encoder = registry.make(name, device="cpu")
    assert (encoder.name, encoder.dim) == (name, dim)
    assert encoder.prepared(IMAGES).shape == (3, 3, side, side)
    assert encoder.provenance["weights"].startswith("ImageNet-1k, ")
    values = encoder.encode(IMAGES)
    assert values.shape == (3, dim) and np.isfinite(values).all() and values.std() > 0
    untrained = registry.make(f"{name}-untrained", device="cpu")
    assert (untrained.name, untrained.provenance["weights"]) == (f"{name}-untrained", "untrained, seed 0")
    assert np.abs(values - untrained.encode(IMAGES)).max() > 0.1


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_missing_or_does_not_fit_is_refused_with_the_way_out(tmp_path, monkeypatch, name):
    (tmp_path / "x.pth").write_bytes(b"weights")
    known = NETWORKS[name]
    for file, message in ((lambda: tmp_path / "x.pth", "is not the file of"), (absent, "MB.*make env")):
        other = Packaged(known.architecture, known.package, known.megabytes, known.sha256, file, known.state)
        monkeypatch.setitem(NETWORKS, name, other)
        with pytest.raises(MissingWeights, match=message):
            registry.make(name)
    with pytest.raises(InputError, match="multiple of 32"):
        registry.make(f"{name}_100px")


def absent():
    raise ImportError
