from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import pil_to_tensor

from lib.datasets import loaders
from lib.datasets.table import ImageTable
from lib.encoders import cache, views
from lib.encoders.views import Augmented, CoarseDropout, Warp
from lib.errors import BrokenImage, InputError
from tests.encoders.conftest import Counting

N = 8
STILL = {"matrix": torch.eye(2), "shift": torch.zeros(2), "k": 0.0}


class Pixels(Counting):
    """The image itself, on 6 x 6 pixels."""

    name, dim = "pixels", 108

    def numbers(self, pixels: np.ndarray) -> np.ndarray:
        return np.asarray(Image.fromarray(pixels).resize((6, 6))).ravel()


def picture(seed: int, size: tuple[int, int] = (48, 48)) -> Image.Image:
    """Smooth blobs of every colour."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)


@pytest.fixture
def root(tmp_path) -> Path:
    for i in range(N):
        file = tmp_path / "images" / "ab"[i % 2] / f"{i:02d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        picture(i).save(file)
    return tmp_path / "images"


@pytest.fixture
def target(tmp_path) -> Path:
    return tmp_path / "features" / "pixels.v1.safetensors"


def table_of(root: Path) -> ImageTable:
    return loaders.load("folder", root)


def of(target: Path, view: int) -> Path:
    return target.with_name("pixels.v1.views") / f"{view}.safetensors"


def drawn(transform: v2.Transform, pixels: torch.Tensor, times: int) -> list[torch.Tensor]:
    """What a random transform makes of an image under seeds 0, 1, ..."""
    out = []
    with torch.random.fork_rng(devices=[]):
        for seed in range(times):
            torch.manual_seed(seed)
            out.append(transform(pixels))
    return out


def spot(x: int, y: int, width: int = 81, height: int = 61) -> torch.Tensor:
    """A black image with one white block of 3 x 3 pixels around (x, y)."""
    pixels = torch.zeros(3, height, width, dtype=torch.uint8)
    pixels[:, y - 1 : y + 2, x - 1 : x + 2] = 255
    return pixels


def centre(pixels: torch.Tensor) -> np.ndarray:
    """Centre of gravity (x, y) of the light in an image, in pixels."""
    weight = pixels[0].double()
    y, x = torch.meshgrid(*(torch.arange(side) for side in weight.shape), indexing="ij")
    return np.array([float((weight * axis).sum() / weight.sum()) for axis in (x, y)])


def test_view_0_is_the_plain_feature_and_its_file_is_left_alone(root, target):
    plain = cache.extract(table_of(root), Pixels(), target)
    written = target.read_bytes(), target.stat().st_mtime_ns
    table, values = views.extract(table_of(root), Pixels(), target, 3)
    assert (values.shape, values.dtype) == ((3, N, 108), np.float32)
    np.testing.assert_array_equal(values[0], plain.values)
    assert table.rows["image_id"].tolist() == list(plain.image_ids)
    assert (target.read_bytes(), target.stat().st_mtime_ns) == written
    assert sorted(target.parent.rglob("*.safetensors")) == [target, of(target, 1), of(target, 2)]
    encoder = Pixels()
    views.extract(table, encoder, target, 4)
    assert encoder.batches == [N]  # one more view is all that there is to do
    some, loaded = aligned(table.take(list(plain.image_ids[4:2:-1])), target, 2)
    assert some.rows["image_id"].tolist() == [plain.image_ids[4], plain.image_ids[3]]
    np.testing.assert_array_equal(loaded, values[:2][:, [4, 3]])


def test_a_view_depends_on_seed_number_and_image_alone(root, target):
    table = table_of(root)
    ids = table.rows["image_id"].tolist()
    _, values = views.extract(table, Pixels(), target, 3, seed=5)
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    backwards = target.with_name("again.safetensors")
    _, again = views.extract(table.take(ids[::-1]), Pixels(), backwards, 3, seed=5, batch_size=3)
    np.testing.assert_array_equal(again[:, ::-1], values)
    assert torch.equal(torch.random.get_rng_state(), before)
    _, other = views.extract(table, Pixels(), target.with_name("other.safetensors"), 3, seed=6)
    assert (np.abs(other[1:] - values[1:]).max(axis=2) > 5).all()


def test_the_wrapper_is_an_encoder_that_names_what_it_does():
    encoder = Augmented(Pixels(), 3, seed=7)
    assert (encoder.name, encoder.dim) == ("pixels view 3", 108)
    assert encoder.provenance.items() >= {"encoder": "pixels", "version": "1", "view": "3", "view_seed": "7"}.items()
    said = encoder.provenance["augmentation"]
    for part in ("at most 224", "HorizontalFlip(p=0.5)", "k=0.3", "brightness=(0.9, 1.1)", "sigma=", "holes=6"):
        assert part in said
    assert "\n" not in said
    expected = Pixels().encode([encoder.see(picture(0)), encoder.see(picture(1))])
    np.testing.assert_array_equal(encoder.encode([picture(0), picture(1)]), expected)


@pytest.mark.parametrize(
    ("size", "seen"),
    [((48, 30), (48, 30)), ((448, 672), (224, 336)), ((1, 1), (8, 8)), ((300, 2), (300, 8))],
)
@pytest.mark.parametrize("mode", ["L", "RGBA"])
def test_any_size_and_mode_is_accepted_and_large_images_are_reduced(size, seen, mode):
    view = Augmented(Pixels(), 1).see(picture(0, size).convert(mode))
    assert (view.size, view.mode) == (seen, "RGB")


def test_no_distortion_is_the_identity():
    pixels = pil_to_tensor(picture(0, (50, 37)))
    assert torch.equal(views.warped(pixels, **STILL), pixels)
    assert torch.equal(Warp(degrees=0, shear=0, zoom=1, shift=0, k=0)(pixels), pixels)


@pytest.mark.parametrize("k", [-0.3, 0.3])
def test_a_point_moves_where_the_formula_of_distortion_says(k):
    middle, half_diagonal = np.array([40, 30]), np.hypot(81, 61) / 2
    source = np.array([58, 42])
    shown = centre(views.warped(spot(*source), **{**STILL, "k": k}))
    r = np.linalg.norm(shown - middle) / half_diagonal
    np.testing.assert_allclose(middle + (shown - middle) * (1 + k * r**2), source, atol=0.1)
    assert np.sign(np.linalg.norm(source - middle) - np.linalg.norm(shown - middle)) == np.sign(k)
    assert np.linalg.norm(source - shown) > 0.4
    r = torch.linspace(0, 1, 200)[:, None] * torch.tensor([0.6, 0.8])
    assert (views.distorted(r, k).norm(dim=1).diff() > 0).all()  # the image does not fold back on itself


def test_a_quarter_turn_and_a_shift_by_hand():
    pixels = pil_to_tensor(picture(0, (32, 32)))
    turned = views.warped(pixels, **{**STILL, "matrix": torch.tensor([[0.0, -1.0], [1.0, 0.0]])})
    assert (turned.int() - torch.rot90(pixels, 1, (1, 2)).int()).abs().max() <= 1
    shift = torch.tensor([10.0, 0.0]) / (np.hypot(81, 61) / 2)
    np.testing.assert_allclose(centre(views.warped(spot(50, 30), **{**STILL, "shift": shift})), [40, 30], atol=0.01)


def test_warps_are_random_within_their_limits():
    warp = Warp(degrees=90, shear=8, zoom=1.15, shift=0.05, k=0.3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        params = [warp.make_params([]) for _ in range(300)]
    area = np.array([float(p["matrix"].det()) for p in params])
    angle = np.array([float(torch.atan2(p["matrix"][1, 0], p["matrix"][0, 0])) for p in params])
    for found, low, high in (
        (area, 1.15**-2, 1.15**2),
        (np.degrees(angle), -90, 90),
        (np.array([p["k"] for p in params]), -0.3, 0.3),
        (np.array([p["shift"][0] for p in params]), -0.05, 0.05),
    ):
        assert low <= found.min() < low + 0.05 * (high - low)
        assert high - 0.05 * (high - low) < found.max() <= high


def test_dropout_removes_area_and_nothing_else():
    pixels = pil_to_tensor(picture(3, (100, 80)))
    colour = pixels.float().mean(dim=(1, 2)).to(torch.uint8)[:, None, None]
    removed = []
    for seen in drawn(CoarseDropout(holes=6, least=0.06, most=0.18), pixels, 200):
        hole = (seen != pixels).any(dim=0)
        assert ((seen == colour).all(dim=0) | ~hole).all()
        removed.append(float(hole.float().mean()))
    assert 0.03 < np.mean(removed) < 0.055
    assert 0 in removed
    assert 0.06 < max(removed) < 6 * 0.18**2


def test_every_augmentation_of_the_paper_occurs():
    steps = views.augmentation().transforms
    pixels = pil_to_tensor(picture(4))
    kinds = (v2.RandomHorizontalFlip, v2.RandomVerticalFlip, Warp, v2.ColorJitter, v2.GaussianBlur, CoarseDropout)
    assert tuple(map(type, steps)) == kinds
    for step, least in zip(steps, (7, 7, 20, 20, 10, 10), strict=True):
        changed = [not torch.equal(seen, pixels) for seen in drawn(step, pixels, 20)]
        assert sum(changed) >= least, step
    for step, axis in ((steps[0], 2), (steps[1], 1)):
        found = {bool(torch.equal(seen, pixels.flip(axis))) for seen in drawn(step, pixels, 20)}
        assert found == {True, False}


def test_a_changed_strength_or_seed_computes_the_augmented_views_again(root, target, caplog):
    _, before = views.extract(table_of(root), Pixels(), target, 2)
    encoder = Pixels()
    stronger = v2.Compose([*views.augmentation().transforms[:-1], CoarseDropout(holes=9, least=0.06, most=0.18)])
    _, after = views.extract(table_of(root), encoder, target, 2, transform=stronger)
    assert encoder.batches == [N]
    assert "made by another encoder (augmentation)" in caplog.text
    np.testing.assert_array_equal(after[0], before[0])
    assert np.abs(after[1] - before[1]).max() > 5
    views.extract(table_of(root), encoder, target, 2, seed=1)
    assert encoder.batches == [N, N]
    assert "view_seed" in caplog.text


def aligned(table: ImageTable, target: Path, n_views: int) -> tuple[ImageTable, np.ndarray]:
    table, values = cache.align(table, cache.load_views(target, n_views))
    return table, np.stack(values)


def test_an_image_skipped_in_one_view_is_skipped_in_all(root, target):
    table = table_of(root)
    ids = table.rows["image_id"].tolist()
    cache.extract(table, Pixels(), target)
    good = (root / ids[2]).read_bytes()
    (root / ids[2]).write_bytes(b"")
    with pytest.raises(BrokenImage, match=r"04\.png"):
        views.extract(table, Pixels(), target, 2)
    cache.extract(table, Augmented(Pixels(), 1), of(target, 1), on_broken="skip")
    (root / ids[2]).write_bytes(good)
    kept, values = aligned(table, target, 2)
    assert kept.rows["image_id"].tolist() == ids[:2] + ids[3:]
    np.testing.assert_array_equal(values[0], np.delete(cache.load(target).values, 2, axis=0))
    np.testing.assert_array_equal(values[1], cache.load(of(target, 1)).values)


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        (Pixels("2"), "view, view_seed, augmentation"),
        (Augmented(Pixels("2"), 2), "version"),
        (Augmented(Pixels(), 2, seed=1), "view_seed"),
        (Augmented(Pixels(), 2, size=96), "augmentation"),
    ],
)
def test_views_that_do_not_belong_together_are_named(root, target, other, differs):
    views.extract(table_of(root), Pixels(), target, 3)
    cache.extract(table_of(root), other, of(target, 2))
    with pytest.raises(InputError, match=r"pixels\.v1\.views/2\.safetensors is no view 2 beside") as caught:
        aligned(table_of(root), target, 3)
    assert all(word in str(caught.value) for word in differs.split(", "))


def test_missing_views_and_views_of_images_that_have_changed_since_are_named(root, target):
    views.extract(table_of(root), Pixels(), target, 2)
    with pytest.raises(InputError, match=r"There is no feature file .*views/2\.safetensors"):
        aligned(table_of(root), target, 3)
    with pytest.raises(InputError, match="n_views = 0 cannot be used"):
        aligned(table_of(root), target, 0)
    picture(99).save(root / "a" / "00.png")
    cache.extract(table_of(root), Pixels(), target)
    with pytest.raises(InputError, match=r"\(images_sha256 differ\)"):
        aligned(table_of(root), target, 2)
    encoder = Pixels()
    views.extract(table_of(root), encoder, target, 2)
    assert encoder.batches == [1]
    aligned(table_of(root), target, 2)
