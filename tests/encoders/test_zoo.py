"""The nine backbones of Table I: shapes and counts without memory, loading with networks that are very narrow."""

from dataclasses import replace
from types import SimpleNamespace

import huggingface_hub
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from timm.data import resolve_model_data_config
from timm.models import get_pretrained_cfg
from torch import Tensor
from torch.nn import functional as F

from lib import paths
from lib.encoders import models, registry, weights, zoo
from lib.errors import InputError, MissingWeights

pytestmark = pytest.mark.usefixtures("nothing_on_this_machine")

GATED = ["uni", "uni2_h", "virchow2"]
PHIKONS = ["phikon", "phikon_v2"]
OTHERS = ["dino_vits16", "dinov2_vitl14", "vit_b16", "resnet50_a1"]
TINY = {"embed_dim": 24, "depth": 2, "num_heads": 2}


@pytest.fixture
def tiny(monkeypatch):
    """The same models, 24 numbers wide and two blocks deep."""
    for name in (*GATED, *PHIKONS):
        narrow = replace(models.MODELS[name], changes={**models.MODELS[name].changes, **TINY})
        monkeypatch.setitem(models.MODELS, name, narrow)


def pictures() -> list[Image.Image]:
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)) for _ in range(2)]


def random_state(name: str) -> dict[str, Tensor]:
    """Random weights in the layout of transformers: ViTModel for ``phikon``, Dinov2Model for ``phikon_v2``."""
    random, width = torch.Generator().manual_seed(1), TINY["embed_dim"]
    norms = ("layernorm_before", "layernorm_after") if name == "phikon" else ("norm1", "norm2")
    hidden = ("intermediate.dense", "output.dense") if name == "phikon" else ("mlp.fc1", "mlp.fc2")
    shapes = {
        "embeddings.cls_token": (1, 1, width),
        "embeddings.position_embeddings": (1, 197, width),
        "embeddings.patch_embeddings.projection.weight": (width, 3, 16, 16),
        "embeddings.patch_embeddings.projection.bias": (width,),
    }
    linear = {f"attention.attention.{part}": (width, width) for part in ("query", "key", "value")}
    linear |= {"attention.output.dense": (width, width), hidden[0]: (4 * width, width), hidden[1]: (width, 4 * width)}
    for block in (f"encoder.layer.{i}" for i in range(TINY["depth"])):
        shapes |= {f"{block}.{layer}.weight": shape for layer, shape in linear.items()}
        shapes |= {f"{block}.{layer}.bias": shape[:1] for layer, shape in linear.items()}
        shapes |= {f"{block}.{norm}.{kind}": (width,) for norm in norms for kind in ("weight", "bias")}
        if name == "phikon_v2":
            shapes |= {f"{block}.layer_scale{i}.lambda1": (width,) for i in (1, 2)}
    shapes |= {f"layernorm.{kind}": (width,) for kind in ("weight", "bias")}
    shapes |= {"pooler.dense.weight": (width, width), "pooler.dense.bias": (width,)} if name == "phikon" else {}
    shapes |= {"embeddings.mask_token": (1, width)} if name == "phikon_v2" else {}
    return {key: torch.randn(shape, generator=random) / 4 for key, shape in shapes.items()}


def class_token(state: dict[str, Tensor], images: Tensor) -> Tensor:
    """The class token as transformers computes it, in plain operations."""

    def linear(tokens: Tensor, layer: str) -> Tensor:
        return tokens @ state[f"{layer}.weight"].T + state[f"{layer}.bias"]

    def norm(tokens: Tensor, *layers: str) -> Tensor:
        layer = next(layer for layer in layers if f"{layer}.weight" in state)
        return F.layer_norm(tokens, tokens.shape[-1:], state[f"{layer}.weight"], state[f"{layer}.bias"], eps=1e-6)

    patches = "embeddings.patch_embeddings.projection"
    tokens = F.conv2d(images, state[f"{patches}.weight"], state[f"{patches}.bias"], stride=16).flatten(2).mT
    tokens = torch.cat([state["embeddings.cls_token"].expand(len(images), -1, -1), tokens], dim=1)
    tokens = tokens + state["embeddings.position_embeddings"]
    for block in (f"encoder.layer.{i}" for i in range(TINY["depth"])):
        inputs = norm(tokens, f"{block}.layernorm_before", f"{block}.norm1")
        parts = (linear(inputs, f"{block}.attention.attention.{part}") for part in ("query", "key", "value"))
        query, key, value = (part.unflatten(-1, (TINY["num_heads"], -1)).transpose(1, 2) for part in parts)
        attention = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
        mixed = linear((attention @ value).transpose(1, 2).flatten(2), f"{block}.attention.output.dense")
        tokens = tokens + mixed * state.get(f"{block}.layer_scale1.lambda1", 1)
        inputs = norm(tokens, f"{block}.layernorm_after", f"{block}.norm2")
        into, out = (
            ("mlp.fc1", "mlp.fc2") if f"{block}.mlp.fc1.bias" in state else ("intermediate.dense", "output.dense")
        )
        tokens = tokens + linear(F.gelu(linear(inputs, f"{block}.{into}")), f"{block}.{out}") * state.get(
            f"{block}.layer_scale2.lambda1", 1
        )
    return norm(tokens, "layernorm")[:, 0]


def put_into_cache(repository: str, filename: str, state: dict[str, Tensor], hub) -> None:
    folder = hub / f"models--{repository.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc123")
    (folder / "snapshots" / "abc123").mkdir(parents=True)
    (torch.save if filename.endswith(".bin") else save_file)(state, folder / "snapshots" / "abc123" / filename)


ARCHITECTURES = {
    "uni": (16, 24, 1 + 14**2, 4096, True, (0.485, 1.0, "center", "bilinear")),
    "uni2_h": (14, 24, 16**2, 8192, True, (0.485, 1.0, "center", "bilinear")),
    "virchow2": (14, 32, 1 + 4 + 16**2, 6832, True, (0.485, 1.0, "center", "bicubic")),
    "phikon": (16, 12, 1 + 14**2, 3072, False, (0.485, 1.0, "squash", "bilinear")),
    "phikon_v2": (16, 24, 1 + 14**2, 4096, True, (0.485, 1.0, "center", "bicubic")),
    "dino_vits16": (16, 12, 1 + 14**2, 1536, False, (0.485, 0.9, "center", "bicubic")),
    "dinov2_vitl14": (14, 24, 1 + 16**2, 4096, True, (0.485, 1.0, "center", "bicubic")),
    "vit_b16": (16, 12, 1 + 14**2, 3072, False, (0.5, 0.9, "center", "bicubic")),
}
"""Name → side of a patch, blocks, positions, width of the hidden layer, layer scale; preprocessing."""


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_transformers_are_those_of_the_checkpoints(name):
    patch, blocks, positions, hidden, scaled, preprocessing = ARCHITECTURES[name]
    model, dim = zoo.source(name).skeleton(num_classes=0).eval(), models.MODELS[name].dim
    shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    assert len(model.blocks) == blocks
    assert shapes["patch_embed.proj.weight"] == (dim, 3, patch, patch)
    assert shapes["pos_embed"] == (1, positions, dim)
    assert shapes["blocks.0.mlp.fc1.weight"] == (hidden, dim)
    assert ("blocks.0.ls1.gamma" in shapes) == scaled
    assert shapes.get("reg_token", (1, 0, dim)) == (1, {"uni2_h": 8, "virchow2": 4}.get(name, 0), dim)
    assert model.norm.eps == 1e-6
    assert model(torch.zeros(2, 3, 224, 224, device="meta")).shape == (2, dim)
    data = resolve_model_data_config(model)
    assert (data["mean"][0], data["crop_pct"], data["crop_mode"], data["interpolation"]) == preprocessing
    assert data["input_size"] == (3, 224, 224)


def test_the_table_stands_beside_the_published_one():
    save_file({"any": torch.zeros(1)}, paths.WEIGHTS / "phikon.safetensors")
    table = zoo.table().set_index("name")
    assert (table["dim"] == table["published_dim"]).all()
    assert table.index.tolist() == [*GATED, *PHIKONS, *OTHERS]
    counted = {"uni": 303.4, "uni2_h": 681.4, "virchow2": 631.2, "phikon": 85.8, "dino_vits16": 21.7}
    assert table["parameters_millions"].loc[list(counted)].round(1).to_dict() == counted
    assert table.index[table["gated"]].tolist() == GATED
    assert table.index[table["weights_here"]].tolist() == ["phikon"]


@pytest.mark.parametrize("name", PHIKONS)
@pytest.mark.parametrize("place", [".safetensors", ".bin", "cache"])
def test_weights_in_the_layout_of_transformers_give_the_same_class_token(name, place, tiny, tmp_path):
    state = random_state(name)
    if place == "cache":
        put_into_cache(models.MODELS[name].repository, "model.safetensors", state, tmp_path / "hub")
    else:
        (save_file if place == ".safetensors" else torch.save)(state, paths.WEIGHTS / f"{name}{place}")
    encoder = registry.make(name, device="cpu")
    pixels = encoder.prepared(pictures())
    np.testing.assert_allclose(encoder.encode(pictures()), class_token(state, pixels), rtol=1e-3, atol=1e-4)
    assert (encoder.name, encoder.dim) == (name, TINY["embed_dim"])
    assert encoder.provenance["model"].endswith(f" of {models.MODELS[name].repository}")


@pytest.mark.parametrize("how", ["more", "less"])
def test_weights_that_do_not_fit_exactly_are_refused(how, tiny):
    state = random_state("phikon") | {"encoder.layer.0.attention.extra.weight": torch.zeros(2)}
    if how == "less":
        del state["encoder.layer.0.attention.extra.weight"], state["encoder.layer.1.attention.attention.key.bias"]
    save_file(state, paths.WEIGHTS / "phikon.safetensors")
    with pytest.raises(InputError, match=r"phikon\.safetensors cannot be used as weights of phikon"):
        registry.make("phikon", device="cpu")


@pytest.mark.parametrize("name", ["virchow2", "phikon_v2"])
def test_models_of_the_hub_can_be_untrained(name, tiny):
    encoder = registry.make(f"{name}-untrained", device="cpu", seed=3)
    assert encoder.name == encoder.provenance["encoder"] == f"{name}-untrained"
    assert encoder.provenance["weights"] == "untrained, seed 3"
    assert encoder.provenance["pooling"] == "token"
    assert encoder.encode(pictures()).shape == (2, TINY["embed_dim"])


def test_the_hub_is_asked_for_the_file_of_the_repository(tiny, tmp_path, monkeypatch, online):
    file, asked = tmp_path / "downloaded.bin", []
    torch.save(zoo.source("uni").create(pretrained=False).state_dict(), file)

    def download(*words, **options):
        asked.append((words, options))
        return str(file)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    registry.make("uni", device="cpu")
    assert asked == [(("MahmoodLab/UNI", "pytorch_model.bin"), {"revision": None})]


@pytest.mark.parametrize("name", ["uni", "virchow2"])
def test_a_gate_is_missing_weights_with_the_way_through_it(name, monkeypatch, online):
    def refuse(*words, **options):
        response = SimpleNamespace(headers={}, request=None)
        raise huggingface_hub.errors.GatedRepoError("401 Client Error.\nAccess is restricted.", response=response)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuse)
    with pytest.raises(MissingWeights, match=r"download failed \(401 Client Error. Access is restricted") as caught:
        registry.make(name)
    model, message = models.MODELS[name], str(caught.value)
    assert "Their licence: CC BY-NC-ND 4.0, gated." in message
    assert f"Accept the terms on https://huggingface.co/{model.repository}, run: hf auth login" in message
    assert f"put it at {paths.WEIGHTS / name}{'.safetensors' if name == 'virchow2' else '.bin'}." in message
    assert f"'{name}-untrained' as a random baseline" in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["phikon", "uni2_h", "dino_vits16"])
def test_missing_weights_name_size_licence_and_the_way_to_them(name):
    sizes = {"phikon": 343, "uni2_h": 2726, "dino_vits16": 87}
    file = models.MODELS[name].architecture if name in OTHERS else name
    with pytest.raises(MissingWeights, match=rf"No weights for {file} \(about {sizes[name]} MB\).*no route") as caught:
        registry.make(name)
    message = str(caught.value)
    assert zoo.wanting(name).partition(", and ")[0] == message.partition(", and ")[0]
    assert f"Their licence: {models.MODELS[name].licence}" in message and ("gated" in message) == (name in GATED)
    assert f"https://huggingface.co/{models.MODELS[name].repository or f'timm/{file}'}" in message
    assert f"{paths.WEIGHTS / file}." in message and "\n" not in message


def test_dinov2_takes_the_published_positions_to_224_pixels(monkeypatch):
    narrow = {"embed_dim": 16, "depth": 1, "num_heads": 2}
    cfg = get_pretrained_cfg("vit_large_patch14_dinov2.lvd142m")
    state = weights.Source("at 518 pixels", cfg, changes=narrow).create(pretrained=False).state_dict()
    assert state["pos_embed"].shape == (1, 1 + 37**2, 16)
    save_file(state, paths.WEIGHTS / "vit_large_patch14_dinov2.lvd142m.safetensors")
    monkeypatch.setitem(models.MODELS, "dinov2_vitl14", replace(models.MODELS["dinov2_vitl14"], changes=narrow))
    encoder = registry.make("dinov2_vitl14", device="cpu")
    assert encoder.model.pos_embed.shape == (1, 1 + 16**2, 16)
    assert "CenterCrop(size=(224, 224))" in encoder.provenance["transform"]
