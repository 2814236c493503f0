"""The small transformer that ships with its weights: its form, its files, and that self-distillation was worth it."""

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torchvision.transforms.v2.functional import pil_to_tensor, resize

from lib.datasets import tissue
from lib.encoders import registry, small_vit
from lib.errors import InputError


def pictures(n: int) -> list[Image.Image]:
    rng = np.random.default_rng(0)
    shapes = [(96, 96), (90, 130), (200, 300)]
    return [Image.fromarray(rng.integers(0, 256, (*shapes[i % 3], 3), dtype=np.uint8)) for i in range(n)]


def by_hand(model: small_vit.SmallViT, pixels: torch.Tensor) -> torch.Tensor:
    """The network written out for one normalised image of 96 pixels."""
    tokens = model.stem(pixels[None])[0].reshape(192, 36).T
    tokens = torch.cat([model.cls_token[0], tokens]) + model.position[0]
    states = []
    for block in model.blocks:
        tokens = block(tokens[None])[0]
        states.append(model.norm(tokens[0]))
    return torch.cat([states[1], states[2]])


def test_the_feature_is_the_normalised_cls_token_of_the_last_two_blocks():
    model = small_vit.create(3).eval()
    images = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = torch.stack([by_hand(model, image) for image in images])
        torch.testing.assert_close(model(images), expected, rtol=1e-4, atol=1e-5)
    assert expected.shape == (2, 384)


def test_images_of_other_sizes_go_through_and_use_the_place():
    model, random = small_vit.create(0).eval(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        model.position[:, 1:] = torch.randn(36, 192, generator=random)
        for shape in ((48, 48), (96, 32), (160, 96)):
            assert model(torch.rand(1, 3, *shape)).shape == (1, 384)
        image = torch.rand(1, 3, 48, 48, generator=random)
        features = model(image)
        model.position[:, 1:] = model.position[:, 1:].flip(1)
        assert not torch.allclose(model(image), features, atol=1e-4)
    with pytest.raises(ValueError, match="50 x 96 pixels; both must be multiples of 16"):
        model(torch.zeros(1, 3, 50, 96))


def test_encoding_equals_resizing_scaling_and_the_network():
    encoder = registry.make("demo_vit-untrained", device="cpu", batch_size=2)
    rows = []
    for picture in pictures(3):
        pixels = resize(pil_to_tensor(picture), [96, 96]).permute(1, 2, 0).numpy().astype(np.float32) / 255
        pixels = (pixels - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
        rows.append(torch.from_numpy(pixels).permute(2, 0, 1).float())
    with torch.inference_mode():
        expected = encoder.model(torch.stack(rows)).numpy()
    values = encoder.encode(pictures(3))
    assert values.dtype == np.float32 and values.shape == (3, encoder.dim) == (3, 384)
    np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-4)


def test_saved_weights_come_back_in_half_precision_with_their_story(tmp_path):
    model, file = small_vit.create(5).eval(), tmp_path / "mine.safetensors"
    small_vit.save(model, file, "5 steps on nothing")
    encoder = small_vit.load(file, "domain_vit", device="cpu")
    assert (encoder.name, encoder.provenance["weights"]) == ("domain_vit", "5 steps on nothing")
    for key, value in encoder.model.state_dict().items():
        assert value.dtype == model.state_dict()[key].dtype
        torch.testing.assert_close(value, model.state_dict()[key], rtol=1e-3, atol=1e-6)
    again = tmp_path / "again.safetensors"
    small_vit.save(model, again, "5 steps on nothing")
    assert file.read_bytes() == again.read_bytes()
    assert {t.dtype for t in load_file(file).values()} == {torch.float16, torch.int64}


def test_weights_that_float16_cannot_hold_are_not_written(tmp_path):
    for value in (7e4, float("inf"), float("nan")):
        model = small_vit.create(0)
        with torch.no_grad():
            model.cls_token[0, 0, 3] = value
        with pytest.raises(InputError, match=r"weights are as large as .*, but float16 ends at 65,504"):
            small_vit.save(model, tmp_path / "mine.safetensors", "trained for too long")
    assert list(tmp_path.iterdir()) == []


def test_missing_damaged_and_foreign_weights_are_named(tmp_path):
    damaged, foreign, undefined = (tmp_path / f"{name}.safetensors" for name in ("damaged", "foreign", "undefined"))
    damaged.write_bytes(small_vit.WEIGHTS.read_bytes()[:5000])
    save_file({"weight": torch.zeros(3)}, foreign)
    state = small_vit.create(0).state_dict()
    save_file(state | {"norm.weight": torch.full_like(state["norm.weight"], torch.nan)}, undefined)
    for file in (damaged, foreign, undefined):
        with pytest.raises(InputError, match=f"{file.name} cannot be used as weights of a small vision") as caught:
            small_vit.load(file, device="cpu")
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"no weights file .*nothing\.safetensors: train it with python -m"):
        small_vit.load(tmp_path / "nothing.safetensors")


def nearest(values: np.ndarray, labels: np.ndarray, patients: np.ndarray) -> float:
    """How often the nearest tile of another patient has the same label."""
    z = (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-9)
    distance = ((z[:, None] - z[None]) ** 2).sum(axis=-1)
    distance[patients[:, None] == patients] = np.inf
    return float((labels[distance.argmin(axis=1)] == labels).mean())


def test_the_weights_of_the_package_are_small_and_self_distillation_was_worth_it():
    """On tiles of patients that neither the training nor the demo has seen."""
    rows = tissue.sample(n_tiles=320, n_patients=8, seed=77, n_duplicates=0)
    tiles = [Image.fromarray(tissue.draw(row)) for row in rows.to_dict("records")]
    labels, patients = rows["label"].to_numpy(), rows["patient"].to_numpy()
    trained, untrained = (registry.make(name, device="cpu") for name in ("demo_vit", "demo_vit-untrained"))
    assert (trained.name, trained.dim, untrained.name) == ("demo_vit", 384, "demo_vit-untrained")
    assert "DINO" in trained.provenance["weights"] and "procedural" in trained.provenance["weights"]
    assert small_vit.WEIGHTS.stat().st_size < 4e6
    right, random = (nearest(encoder.encode(tiles), labels, patients) for encoder in (trained, untrained))
    assert right > random + 0.05 and right > 3 * np.mean(labels[:, None] == labels)
