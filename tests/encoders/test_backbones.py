import hashlib
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
from lib.encoders import backbones, registry, small_vit, views, weights
from lib.encoders.texture import Texture
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
    ("center", "bilinear", 0.875, "torchvision"),
    ("squash", "bicubic", 1.0, "torchvision"),
    ("squash", "bilinear", 0.95, "torchvision"),
    ("border", "bicubic", 1.0, "Pillow"),
    ("squash", "lanczos", 1.0, "Pillow"),
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


@pytest.mark.parametrize("name", ["test_vit", "test_byobnet", "resnet10t"])
def test_equals_timm_called_directly(name):
    encoder = backbones.load(name, weights="untrained", device="cpu", batch_size=2, seed=7)
    expected = by_timm(seeded(name, 7, num_classes=0), pictures(5))
    values = encoder.encode(pictures(5))
    assert values.dtype == np.float32
    assert values.shape == (5, encoder.dim)
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
    assert encoder.encode([]).shape == (0, encoder.dim)


def test_vision_transformer_gives_the_normalised_cls_token():
    encoder = backbones.load("vit_tiny_patch16_224", weights="untrained", device="cpu")
    model = seeded("vit_tiny_patch16_224", 0, num_classes=0)
    tokens = []
    model.blocks.register_forward_hook(lambda module, inputs, output: tokens.append(output))
    by_timm(model, pictures(2))
    expected = torch.stack([model.norm(output)[0, 0] for output in tokens])
    values = encoder.encode(pictures(2))
    np.testing.assert_allclose(values, expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert encoder.provenance["pooling"] == "token"


def test_the_alias_is_dino_vit_s16():
    encoder = backbones.load("dino_vits16", weights="untrained", device="cpu")
    assert (encoder.name, encoder.dim) == ("dino_vits16-untrained", 384)
    assert encoder.provenance["model"] == "vit_small_patch16_224.dino"
    assert encoder.provenance["pooling"] == "token"
    assert "224" in encoder.provenance["transform"]


def test_nothing_is_trainable_and_encoding_changes_nothing():
    encoder = backbones.load("test_byobnet", weights="untrained", device="cpu")
    assert not encoder.model.training
    assert not any(parameter.requires_grad for parameter in encoder.model.parameters())
    encoder.encode(pictures(2))
    assert backbones.state_sha256(encoder.model) == encoder.provenance["weights_sha256"]


def test_grey_and_transparent_images_are_accepted():
    encoder = backbones.load("test_byobnet", weights="untrained", device="cpu")
    colour = pictures(1)[0]
    values = encoder.encode([colour, colour.convert("RGBA"), colour.convert("L"), colour.convert("L").convert("RGB")])
    np.testing.assert_allclose(values[0], values[1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(values[2], values[3], rtol=1e-4, atol=1e-6)
    assert np.abs(values[0] - values[2]).max() > 1e-4


def test_untrained_weights_follow_the_seed_and_leave_the_random_state_alone():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first, again, other = (backbones.load("test_vit", "untrained", "cpu", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert first.provenance == again.provenance
    assert first.provenance["weights_sha256"] != other.provenance["weights_sha256"]
    assert first.name == first.provenance["encoder"] == "test_vit-untrained"


@pytest.mark.parametrize(("dtype", "bound"), [(torch.bfloat16, 0.1), (torch.float16, 0.01)])
def test_half_precision_is_close_and_says_so(dtype, bound):
    exact = backbones.load("test_vit", "untrained", "cpu")
    rough = backbones.load("test_vit", "untrained", "cpu", dtype=dtype)
    a, b = exact.encode(pictures(3)), rough.encode(pictures(3))
    assert b.dtype == np.float32
    assert 0 < np.abs(a - b).max() < bound * np.abs(a).max()
    assert (exact.provenance["dtype"], rough.provenance["dtype"]) == ("float32", f"{str(dtype)[6:]} autocast")


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
    encoder = backbones.load("test_vit", "untrained", batch_size=8)
    expected = encoder.encode(pictures(7))
    encoder.model = Small(encoder.model, room=2)
    np.testing.assert_allclose(encoder.encode(pictures(7)), expected, rtol=1e-4, atol=1e-5)
    assert [record.message.rpartition(" ")[2] for record in caplog.records] == ["4.", "2."]
    encoder.encode(pictures(4))
    assert len(caplog.records) == 2 and encoder.model.batches[-2:] == [2, 2]


def test_without_memory_for_one_image_the_message_names_the_way_out():
    encoder = backbones.load("test_vit", "untrained", batch_size=2)
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
    one, other = (views.Augmented(encoder, 1).encode([blobs(96, 96)]) for encoder in (cpu, exact))
    assert np.linalg.norm(one - other) < 0.02 * np.linalg.norm(one)


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
@pytest.mark.parametrize("name", ["test_byobnet", BYOBNET])
def test_local_weights_are_used_and_hashed(suffix, name):
    other = seeded("test_byobnet", 11)
    file = paths.WEIGHTS / f"{BYOBNET}{suffix}"
    if suffix == ".pth":
        torch.save({"state_dict": other.state_dict()}, file)
    else:
        save_file(other.state_dict(), file)
    encoder = backbones.load(name, device="cpu")
    other.reset_classifier(0)
    np.testing.assert_allclose(encoder.encode(pictures(3)), by_timm(other, pictures(3)), rtol=1e-4, atol=1e-6)
    assert encoder.provenance["weights_sha256"] == backbones.state_sha256(other)
    assert (encoder.name, encoder.provenance["model"]) == (name, BYOBNET)
    assert encoder.provenance["weights"] == "pretrained"
    assert not any(parameter.requires_grad for parameter in encoder.model.parameters())


def test_weights_in_the_hub_cache_need_no_network(tmp_path):
    other = seeded("test_byobnet", 12)
    repository = tmp_path / "hub" / "models--timm--test_byobnet.r160_in1k"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc123")
    (repository / "snapshots" / "abc123").mkdir(parents=True)
    save_file(other.state_dict(), repository / "snapshots" / "abc123" / "model.safetensors")
    encoder = backbones.load("test_byobnet", device="cpu")
    other.reset_classifier(0)
    assert encoder.provenance["weights_sha256"] == backbones.state_sha256(other)


def test_state_hash_by_hand():
    model = torch.nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 2.0]]))
        model.bias.fill_(3.0)
    text = b"bias torch.float32 (1,)" + np.array([3.0], "<f4").tobytes()
    text += b"weight torch.float32 (1, 2)" + np.array([1.0, 2.0], "<f4").tobytes()
    assert backbones.state_sha256(model) == hashlib.sha256(text).hexdigest()


def test_weights_of_another_model_are_refused():
    file = paths.WEIGHTS / f"{BYOBNET}.safetensors"
    save_file(seeded("test_vit", 0).state_dict(), file)
    with pytest.raises(InputError, match="cannot be used as weights of test_byobnet") as caught:
        backbones.load("test_byobnet", device="cpu")
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_truncated_weights_are_named(suffix):
    file = paths.WEIGHTS / f"{BYOBNET}{suffix}"
    state = seeded("test_byobnet", 0).state_dict()
    if suffix == ".pth":
        torch.save(state, file)
    else:
        save_file(state, file)
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(InputError, match=f"{BYOBNET}{suffix} cannot be used"):
        backbones.load("test_byobnet", device="cpu")


def other_things() -> dict[str, tuple[object, str]]:
    state = seeded("test_byobnet", 0).state_dict()
    first = next(iter(state))
    return {
        "a list": ([1, 2], "something else than named tensors"),
        "a list of tensors": ([torch.ones(2)], "something else than named tensors"),
        "a tensor": (torch.ones(3), "something else than named tensors"),
        "text": ("weights", "something else than named tensors"),
        "nothing": (None, "something else than named tensors"),
        "a wrapped list": ({"state_dict": [1]}, "something else than named tensors"),
        "numbered tensors": ({1: torch.ones(2)}, "something else than named tensors"),
        "a network": (torch.nn.Linear(2, 2), "something else than named tensors"),
        "no tensors": ({}, "it holds no tensors"),
        "no tensors, wrapped": ({"state_dict": {}}, "it holds no tensors"),
        "numbers": ({name: 3.0 for name in state}, f"'{first}' in it is no tensor"),
        "one number too many": (state | {"epoch": 3}, "'epoch' in it is no tensor"),
        "NaN": (state | {first: state[first] * torch.nan}, f"'{first}' in it holds NaN"),
        "short tensors": ({name: torch.ones(3) for name in state}, ""),
        "numbers as tensors": ({name: torch.tensor(1.0) for name in state}, ""),
        "tensors of no numbers": ({name: torch.empty(0) for name in state}, ""),
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


def test_a_vision_transformer_refuses_tensors_of_other_shapes():
    """timm renames and resizes before it compares shapes, and takes dimensions for granted."""
    for value in (torch.ones(3), torch.tensor(1.0), torch.empty(0)):
        state = {name: value for name in seeded("test_vit", 0).state_dict()}
        torch.save(state, paths.WEIGHTS / "test_vit.r160_in1k.pth")
        with pytest.raises(InputError, match=r"test_vit\.r160_in1k\.pth cannot be used"):
            backbones.load("test_vit", device="cpu")


def junk(n: int) -> list[bytes]:
    """Random bytes, also behind the first bytes of real files, and real files with bytes changed at their start."""
    rng = np.random.default_rng(0)
    heads = [b"", b"PK\x03\x04", b"\x80\x02", b"<html>", (64).to_bytes(8, "little") + b"{"]
    return [heads[i % len(heads)] + rng.bytes(int(rng.integers(400))) for i in range(n)]


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("suffix", [".safetensors", ".pth", ".bin"])
def test_junk_is_refused_whatever_it_looks_like(suffix):
    file = paths.WEIGHTS / f"{BYOBNET}{suffix}"
    for content in junk(100):
        file.write_bytes(content)
        with pytest.raises(InputError, match=f"{BYOBNET}{suffix} cannot be used"):
            backbones.load("test_byobnet", device="cpu")


def test_a_weights_file_that_may_not_be_read_says_so(monkeypatch):
    file = paths.WEIGHTS / f"{BYOBNET}.pth"
    torch.save({}, file)

    def refuse(*words, **options):
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(weights, "load_state_dict", refuse)
    with pytest.raises(InputError, match="Permission denied"):
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


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("dino_vits61", "dino_vits16"),
        ("textur", "texture"),
        ("vit_small_patch16_224.dinno", "vit_small_patch16_224.dino"),
        ("resnet5O", "resnet50"),
    ],
)
def test_unknown_names_get_close_matches(name, suggestion):
    with pytest.raises(InputError, match=f"Unknown encoder '{name}'.*{suggestion}"):
        registry.make(name)


def test_missing_weights_say_what_how_large_and_where_to():
    with pytest.raises(MissingWeights) as caught:
        registry.make("dino_vits16")
    message = str(caught.value)
    assert "vit_small_patch16_224.dino (about 87 MB)" in message
    assert "cannot be reached (no route to host)" in message
    url = "https://huggingface.co/timm/vit_small_patch16_224.dino/resolve/main/model.safetensors"
    assert f"curl -fL -o vit_small_patch16_224.dino.safetensors {url}" in message
    assert f"put the file at {paths.WEIGHTS / 'vit_small_patch16_224.dino.safetensors'}" in message
    assert "\n" not in message


def refusing(error: Exception):
    create = timm.create_model

    def create_model(name, pretrained=False, **options):
        if pretrained:
            raise error
        return create(name, pretrained=False, **options)

    return create_model


class Online:
    def head(self, url, timeout):
        assert 0 < timeout <= 10


@pytest.mark.parametrize(
    ("name", "error", "expected"),
    [
        ("test_byobnet", huggingface_hub.errors.LocalEntryNotFoundError("not found\nanywhere"), "not found anywhere"),
        ("test_byobnet", huggingface_hub.errors.HTTPError("403 gated"), "accept the terms on https://huggingface.co/"),
        ("legacy_seresnet18", URLError("name unknown"), "curl -fL -o legacy_seresnet18.in1k.pth https?://"),
    ],
)
def test_a_failed_download_is_missing_weights(monkeypatch, name, error, expected):
    monkeypatch.setattr(huggingface_hub.utils, "get_session", Online)
    monkeypatch.setattr(timm, "create_model", refusing(error))
    with pytest.raises(MissingWeights, match=expected) as caught:
        backbones.load(name, device="cpu")
    assert "\n" not in str(caught.value)


def test_a_model_without_published_weights_says_so():
    with pytest.raises(MissingWeights, match=r"timm has none to download.*Put your own at"):
        backbones.load("coatnet_0_224", device="cpu")


def test_weights_is_one_of_two_words():
    with pytest.raises(InputError, match="'pretrained' or 'untrained', not 'random'"):
        backbones.load("test_vit", weights="random")


def test_make_knows_the_three_kinds():
    assert isinstance(registry.make("texture"), Texture)
    untrained = registry.make("test_vit-untrained", device="cpu", batch_size=3)
    assert (untrained.name, untrained.batch_size) == ("test_vit-untrained", 3)
    save_file(seeded("test_byobnet", 3).state_dict(), paths.WEIGHTS / f"{BYOBNET}.safetensors")
    assert registry.make("test_byobnet", device="cpu").name == "test_byobnet"
