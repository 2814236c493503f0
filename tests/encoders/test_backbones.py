import pickle
from pathlib import Path
from urllib.error import URLError

import huggingface_hub
import numpy as np
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import save_file
from timm.data import create_transform, resolve_model_data_config
from torchvision.transforms import v2

from lib import paths
from lib.datasets.crops import planes
from lib.encoders import backbones, registry, small_vit, views
from lib.errors import InputError, MissingWeights

BYOBNET = "test_byobnet.r160_in1k"


pytestmark = pytest.mark.usefixtures("nothing_on_this_machine")


def pictures(n: int) -> list[Image.Image]:
    rng = np.random.default_rng(0)
    sizes = [(160, 160), (90, 130), (300, 200), (64, 64), (224, 224)]
    shapes = [sizes[i % len(sizes)] for i in range(n)]
    return [Image.fromarray(rng.integers(0, 256, (h, w, 3), dtype=np.uint8)) for w, h in shapes]


def seeded(name: str, seed: int, **options) -> torch.nn.Module:
    torch.manual_seed(seed)
    return timm.create_model(name, **options).eval()


def by_timm(model: torch.nn.Module, images: list[Image.Image]) -> np.ndarray:
    """timm's network on what the encoder sees, normalised as timm does, one image after the other."""
    data = resolve_model_data_config(model)
    _, cut = backbones.cutting(create_transform(**data, is_training=False, normalize=False))
    normalise = create_transform(**data, is_training=False).transforms[-1]
    seen = [cut([planes(image)], torch.device("cpu"))[0] for image in images]
    with torch.no_grad():
        return np.concatenate([model(normalise(x.float() / 255)[None]).numpy() for x in seen])


def blobs(width: int, height: int) -> Image.Image:
    coarse = np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


WAYS = [
    ("center", "bicubic", 0.9, "torchvision"),
    ("squash", "bilinear", 0.95, "torchvision"),
    ("squash", "bicubic", 1.0, "torchvision"),
    ("border", "bicubic", 1.0, "Pillow"),
]


@pytest.mark.parametrize(("mode", "interpolation", "crop_pct", "by"), WAYS)
def test_pixels_are_those_of_timm_within_two_levels_of_rounding(mode, interpolation, crop_pct, by):
    """Of images of several shapes at once, enlarged, reduced and cut; what no tensor can do, Pillow does exactly."""
    how = {"crop_mode": mode, "interpolation": interpolation, "crop_pct": crop_pct}
    transform = create_transform((3, 64, 64), **how, is_training=False, normalize=False)
    images = [blobs(*size) for size in ((64, 64), (150, 150), (90, 41), (33, 77), (150, 150), (64, 64))]
    does, cut = backbones.cutting(transform)
    seen = cut([planes(image) for image in images], torch.device("cpu"))
    assert (does, seen.shape, seen.dtype) == (by, (6, 3, 64, 64), torch.uint8)
    apart = (seen.int() - torch.stack([transform(image) for image in images]).int()).abs()
    assert apart.max() <= (2 if by == "torchvision" else 0) and apart.float().mean() < 0.5
    if crop_pct == 1:
        assert apart[[0, 5]].max() == 0  # nothing is resized at the network's own size


@pytest.mark.parametrize("name", ["efficientnet_lite0_64px-untrained", "demo_vit-untrained"])
def test_at_its_own_size_a_network_gets_the_bits_of_timm_and_torchvision(name):
    """So the demo's features of tiles of 96 pixels stay what they were when Pillow prepared them."""
    encoder = registry.make(name)
    if name.startswith("demo_vit"):
        scale = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
        transform = v2.Compose([v2.Resize((96, 96)), *scale, v2.Normalize(small_vit.MEAN, small_vit.STD)])
    else:
        transform = create_transform(**resolve_model_data_config(encoder.model), is_training=False)
    images = [picture.resize(encoder.seen(pictures(1)).shape[:1:-1]) for picture in pictures(3)]
    expected = torch.stack([transform(image) for image in images])
    for given in (images, [np.asarray(image) for image in images], [planes(image) for image in images]):
        assert torch.equal(encoder.prepared(given), expected) and encoder.prepared(given).is_contiguous()


@pytest.mark.parametrize("name", ["test_vit", "test_byobnet"])
def test_equals_timm_called_directly(name):
    encoder = backbones.load(name, trained=False, device="cpu", batch_size=2, seed=7)
    expected = by_timm(seeded(name, 7, num_classes=0), pictures(5))
    values = encoder.encode(pictures(5))
    assert values.dtype == np.float32
    assert values.shape == (5, encoder.dim)
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
    assert encoder.encode([]).shape == (0, encoder.dim)
    assert not encoder.model.training and not any(x.requires_grad for x in encoder.model.parameters())
    assert backbones.state_sha256(encoder.model) == encoder.provenance["weights_sha256"]


def test_untrained_weights_follow_the_seed_and_half_precision_is_close():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first, again, other = (backbones.load("test_vit", False, device="cpu", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert first.provenance == again.provenance
    assert first.provenance["weights_sha256"] != other.provenance["weights_sha256"]
    assert first.name == first.provenance["encoder"] == "test_vit-untrained"
    rough = backbones.load("test_vit", False, device="cpu", dtype=torch.bfloat16)
    a, b = first.encode(pictures(3)), rough.encode(pictures(3))
    assert b.dtype == np.float32 and 0 < np.abs(a - b).max() < 0.1 * np.abs(a).max()
    assert (first.provenance["dtype"], rough.provenance["dtype"]) == ("float32", "bfloat16 autocast")


class Small(torch.nn.Module):
    """A card that holds no more than ``room`` images."""

    def __init__(self, model: torch.nn.Module, room: int) -> None:
        super().__init__()
        self.model, self.room, self.batches = model, room, []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(x) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        self.batches.append(len(x))
        return self.model(x)


def test_without_memory_enough_batches_are_halved_with_a_notice_and_stay_so(caplog):
    encoder = backbones.load("test_vit", False, batch_size=8)
    expected = encoder.encode(pictures(7))
    encoder.model = Small(encoder.model, room=2)
    np.testing.assert_allclose(encoder.encode(pictures(7)), expected, rtol=1e-4, atol=1e-5)
    assert [record.message.rpartition(" ")[2] for record in caplog.records] == ["4.", "2."]
    encoder.encode(pictures(4))
    assert len(caplog.records) == 2 and encoder.model.batches[-2:] == [2, 2]
    encoder.model = Small(encoder.model, room=0)
    with pytest.raises(InputError, match=r"test_vit-untrained: the memory of cpu .* one image\..* DEVICE=cpu"):
        encoder.encode(pictures(3))


@pytest.mark.gpu
def test_a_gpu_gives_nearly_the_features_of_the_cpu():
    """Of images of one size and of many, and of augmented views, in half precision and in float32."""
    cpu = registry.make("efficientnet_lite0", device="cpu")
    rough, exact = (registry.make("efficientnet_lite0", device="cuda", dtype=dtype) for dtype in (None, torch.float32))
    assert (rough.provenance["dtype"], rough.batch_size) == ("float16 autocast", backbones.GPU_BATCH)
    for images in (pictures(7), [blobs(224, 224)] * 3):
        expected = cpu.encode(images)
        assert torch.equal(rough.seen(images).cpu(), cpu.seen(images)) or len({x.size for x in images}) > 1
        for encoder, bound in ((rough, 0.03), (exact, 0.01)):
            apart = np.linalg.norm(encoder.encode(images) - expected, axis=1) / np.linalg.norm(expected, axis=1)
            assert apart.max() < bound
    view, image = views.Augmented(exact, 1), blobs(224, 224)  # of the network's size: enlarging rounds otherwise
    here, there = (view._see(image, torch.device(device)).cpu() for device in ("cpu", "cuda"))
    assert (here.int() - there.int()).abs().max() <= 2  # levels; one in each 100 pixels moves a feature by 1 %
    expected = cpu.encode([there.permute(1, 2, 0).numpy()])
    assert np.linalg.norm(view.encode([image]) - expected) < 0.01 * np.linalg.norm(expected)


@pytest.mark.parametrize(("name", "suffix"), [("test_byobnet", ".safetensors"), (BYOBNET, ".pth")])
def test_local_weights_are_used_and_hashed(name, suffix):
    other = seeded("test_byobnet", 11)
    file = paths.WEIGHTS / f"{BYOBNET}{suffix}"
    (save_file if suffix == ".safetensors" else torch.save)(other.state_dict(), file)
    encoder = backbones.load(name, device="cpu")
    other.reset_classifier(0)
    np.testing.assert_allclose(encoder.encode(pictures(3)), by_timm(other, pictures(3)), rtol=1e-4, atol=1e-6)
    assert encoder.provenance["weights_sha256"] == backbones.state_sha256(other)
    assert (encoder.name, encoder.provenance["model"]) == (name, BYOBNET)
    assert encoder.provenance["weights"] == "pretrained"


def other_things() -> dict[str, tuple[object, str]]:
    state = seeded("test_byobnet", 0).state_dict()
    first = next(iter(state))
    return {
        "a list": ([1, 2], "something else than named tensors"),
        "a network": (torch.nn.Linear(2, 2), "something else than named tensors"),
        "no tensors": ({"state_dict": {}}, "it holds no tensors"),
        "one number too many": (state | {"epoch": 3}, "'epoch' in it is no tensor"),
        "NaN": (state | {first: state[first] * torch.nan}, f"'{first}' in it holds NaN"),
        "short tensors": ({name: torch.ones(3) for name in state}, ""),
        "another network": (seeded("test_vit", 0).state_dict(), ""),
    }


@pytest.mark.parametrize("what", other_things())
def test_a_file_of_something_else_is_named_with_the_reason_and_the_way_out(what):
    thing, reason = other_things()[what]
    torch.save(thing, paths.WEIGHTS / f"{BYOBNET}.pth")
    message = (
        rf"{BYOBNET}\.pth cannot be used as weights of {BYOBNET} \(.*{reason}.*\)\. Fetch the file again, or remove"
    )
    with pytest.raises(InputError, match=message) as caught:
        backbones.load("test_byobnet", device="cpu")
    assert "weights_only" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("suffix", [".safetensors", ".pth", ".bin"])
def test_junk_is_refused_whatever_it_looks_like(suffix):
    """Random bytes, also behind the first bytes of real files."""
    file, rng = paths.WEIGHTS / f"{BYOBNET}{suffix}", np.random.default_rng(0)
    for head in [b"", b"PK\x03\x04", b"\x80\x02", b"<html>", (64).to_bytes(8, "little") + b"{"] * 5:
        file.write_bytes(head + rng.bytes(int(rng.integers(400))))
        with pytest.raises(InputError, match=f"{BYOBNET}{suffix} cannot be used"):
            backbones.load("test_byobnet", device="cpu")


class Bomb:
    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def test_a_pickle_in_a_weights_file_is_not_executed(tmp_path):
    trace = tmp_path / "executed"
    pickle.loads(pickle.dumps(Bomb(trace)))
    assert trace.exists()
    trace.unlink()
    torch.save({"bomb": Bomb(trace)}, paths.WEIGHTS / f"{BYOBNET}.pth")
    with pytest.raises(InputError):
        backbones.load("test_byobnet", device="cpu")
    assert not trace.exists()


def test_unknown_names_get_close_matches():
    for name, near in (("dino_vits61", "dino_vits16"), ("demo_vitt", "demo_vit"), ("virchow-2", "virchow2")):
        with pytest.raises(InputError, match=f"Unknown encoder '{name}'.*{near}"):
            registry.make(name)


@pytest.mark.parametrize(
    ("name", "error", "expected"),
    [
        ("test_byobnet", huggingface_hub.errors.LocalEntryNotFoundError("not found\nanywhere"), "not found anywhere"),
        ("test_byobnet", huggingface_hub.errors.HTTPError("403 gated"), "accept the terms on https://huggingface.co/"),
        ("legacy_seresnet18", URLError("name unknown"), "curl -fL -o legacy_seresnet18.in1k.pth https?://"),
    ],
)
def test_a_failed_download_is_missing_weights(monkeypatch, online, name, error, expected):
    create = timm.create_model

    def refusing(name, pretrained=False, **options):
        if pretrained:
            raise error
        return create(name, pretrained=False, **options)

    monkeypatch.setattr(timm, "create_model", refusing)
    with pytest.raises(MissingWeights, match=expected) as caught:
        backbones.load(name, device="cpu")
    assert "\n" not in str(caught.value)
    with pytest.raises(MissingWeights, match=r"timm has none to download.*Put your own at"):
        backbones.load("coatnet_0_224", device="cpu")
