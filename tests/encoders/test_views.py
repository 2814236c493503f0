import random
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import pil_to_tensor

from lib.datasets import loaders
from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.encoders import cache, registry, views
from lib.encoders.views import Augmented, CoarseDropout, Warp
from lib.errors import BrokenImage, InputError

N = 8
STILL = {"matrix": torch.eye(2), "shift": torch.zeros(2), "k": 0.0}


class Pixels:
    """The image itself, on 6 x 6 pixels; counts what it is asked and can fail on request."""

    name = "pixels"
    dim = 108

    def __init__(self, version: str = "1", fail_at: int | None = None):
        self.provenance = {"encoder": self.name, "version": version}
        self.batches: list[int] = []
        self.fail_at = fail_at

    def encode(self, images):
        if len(self.batches) == self.fail_at:
            raise RuntimeError("power cut")
        self.batches.append(len(images))
        pictures = [Image.fromarray(np.asarray(image)).resize((6, 6)) for image in images]
        return np.array([np.asarray(picture).ravel() for picture in pictures], dtype=np.float32)


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


def test_views_show_each_image_and_differ(root, target):
    _, values = views.extract(table_of(root), Pixels(), target, 4)
    for one in range(4):
        for other in range(one):
            assert (np.abs(values[one] - values[other]).max(axis=1) > 10).all()
    colour = values.reshape(4, N, 36, 3).mean(axis=2)
    between = np.linalg.norm(colour[0, :, None] - colour[0], axis=-1)[~np.eye(N, dtype=bool)].mean()
    assert np.linalg.norm(colour[1:] - colour[0], axis=-1).mean() < 0.7 * between


def test_a_view_depends_on_seed_number_and_image_alone(root, target):
    table = table_of(root)
    ids = table.rows["image_id"].tolist()
    _, values = views.extract(table, Pixels(), target, 3, seed=5)
    for seed in (1, 2):
        for module in (random, np.random, torch):
            getattr(module, "manual_seed", getattr(module, "seed", None))(seed)
        backwards = target.with_name(f"again{seed}.safetensors")
        _, again = views.extract(table.take(ids[::-1]), Pixels(), backwards, 3, seed=5, batch_size=3)
        np.testing.assert_array_equal(again[:, ::-1], values)
    _, other = views.extract(table, Pixels(), target.with_name("other.safetensors"), 3, seed=6)
    assert (np.abs(other[1:] - values[1:]).max(axis=2) > 5).all()


def test_every_image_is_warped_in_its_own_way():
    warp = Augmented(Pixels(), 1, transform=Warp(degrees=90, shear=8, zoom=1.15, shift=0.05, k=0.3))
    light, dark = np.asarray(picture(0)), 255 - np.asarray(picture(0))
    seen, inverted = (np.asarray(warp.see(Image.fromarray(pixels))).astype(int) for pixels in (light, dark))
    assert np.abs(255 - inverted - seen).mean() > 10


def test_looking_leaves_the_random_state_alone():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    Augmented(Pixels(), 1).see(picture(0))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_all_encoders_see_the_same_views():
    one, other = Augmented(Pixels("1"), 2).see(picture(0)), Augmented(registry.make("texture"), 2).see(picture(0))
    assert one.tobytes() == other.tobytes()


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
    [((48, 30), (48, 30)), ((448, 672), (224, 336)), ((700, 460), (341, 224)), ((1, 1), (8, 8)), ((300, 2), (300, 8))],
)
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_any_size_and_mode_is_accepted_and_large_images_are_reduced(size, seen, mode):
    view = Augmented(Pixels(), 1).see(picture(0, size).convert(mode))
    assert (view.size, view.mode) == (seen, "RGB")


def test_no_distortion_is_the_identity():
    pixels = pil_to_tensor(picture(0, (50, 37)))
    assert torch.equal(views.warped(pixels, **STILL), pixels)
    assert torch.equal(Warp(degrees=0, shear=0, zoom=1, shift=0, k=0)(pixels), pixels)


@pytest.mark.parametrize("k", [-0.3, -0.15, 0.15, 0.3])
def test_a_point_moves_where_the_formula_of_distortion_says(k):
    middle, half_diagonal = np.array([40, 30]), np.hypot(81, 61) / 2
    source = np.array([58, 42])
    shown = centre(views.warped(spot(*source), **{**STILL, "k": k}))
    r = np.linalg.norm(shown - middle) / half_diagonal
    np.testing.assert_allclose(middle + (shown - middle) * (1 + k * r**2), source, atol=0.1)
    assert np.sign(np.linalg.norm(source - middle) - np.linalg.norm(shown - middle)) == np.sign(k)
    assert np.linalg.norm(source - shown) > 0.4


def test_strong_distortion_does_not_fold_the_image():
    r = torch.linspace(0, 1, 200)[:, None] * torch.tensor([0.6, 0.8])
    for k in (-0.3, 0.3):
        assert (views.distorted(r, k).norm(dim=1).diff() > 0).all()


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


def test_a_warped_image_has_no_empty_corners():
    white = torch.full((3, 40, 60), 255, dtype=torch.uint8)
    for seen in drawn(Warp(degrees=90, shear=8, zoom=1.15, shift=0.05, k=0.3), white, 10):
        assert seen.min() == 255


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


def test_holes_reach_every_border():
    pixels = pil_to_tensor(picture(3))
    drops = drawn(CoarseDropout(holes=6, least=0.06, most=0.18), pixels, 200)
    holes = torch.stack([(seen != pixels).any(dim=0) for seen in drops]).any(dim=0)
    for border in (holes[0], holes[-1], holes[:, 0], holes[:, -1]):
        assert border.float().mean() > 0.5


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


def test_an_interrupted_extraction_goes_on_where_it_stopped(root, target):
    with pytest.raises(RuntimeError, match="power cut"):
        views.extract(table_of(root), Pixels(fail_at=4), target, 3, batch_size=3)  # three batches are view 0
    assert target.exists()
    assert not of(target, 1).exists()
    encoder = Pixels()
    _, values = views.extract(table_of(root), encoder, target, 3, batch_size=3)
    assert encoder.batches == [3, 2, 3, 3, 2]
    _, whole = views.extract(table_of(root), Pixels(), target.with_name("whole.safetensors"), 3)
    np.testing.assert_array_equal(values, whole)


def test_a_second_run_encodes_nothing_and_one_more_view_only_that(root, target):
    views.extract(table_of(root), Pixels(), target, 2)
    encoder = Pixels()
    views.extract(table_of(root), encoder, target, 2)
    assert encoder.batches == []
    views.extract(table_of(root), encoder, target, 3)
    assert encoder.batches == [N]


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


def test_what_is_loaded_is_what_was_extracted_in_the_order_of_the_table(root, target):
    table = table_of(root)
    ids = table.rows["image_id"].tolist()
    _, values = views.extract(table, Pixels(), target, 3)
    some, found = aligned(table.take([ids[4], ids[1]]), target, 2)
    assert some.rows["image_id"].tolist() == [ids[4], ids[1]]
    np.testing.assert_array_equal(found, values[:2][:, [4, 1]])


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
        (Augmented(Pixels(), 1), "view"),
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


def test_a_view_of_images_that_have_changed_since_is_named(root, target):
    views.extract(table_of(root), Pixels(), target, 2)
    picture(99).save(root / "a" / "00.png")
    cache.extract(table_of(root), Pixels(), target)
    with pytest.raises(InputError, match=r"\(images_sha256 differ\)"):
        aligned(table_of(root), target, 2)
    encoder = Pixels()
    views.extract(table_of(root), encoder, target, 2)
    assert encoder.batches == [1]
    aligned(table_of(root), target, 2)


def test_a_flipped_bit_in_a_view_is_refused_or_harmless(root, target):
    table = table_of(root)
    _, expected = views.extract(table, Pixels(), target, 2)
    good, chance, refused = of(target, 1).read_bytes(), np.random.default_rng(0), 0
    for place in chance.permutation(len(good))[:200]:
        of(target, 1).write_bytes(good[:place] + bytes([good[place] ^ 1 << chance.integers(8)]) + good[place + 1 :])
        try:
            np.testing.assert_array_equal(aligned(table, target, 2)[1], expected)
        except InputError as error:
            assert str(of(target, 1)) in str(error)
            refused += 1
    assert refused > 190
    encoder = Pixels()
    np.testing.assert_array_equal(views.extract(table, encoder, target, 2)[1], expected)
    assert encoder.batches == [N]


def test_missing_views_and_numbers_that_make_no_sense(root, target):
    views.extract(table_of(root), Pixels(), target, 2)
    with pytest.raises(InputError, match=r"There is no feature file .*views/2\.safetensors"):
        aligned(table_of(root), target, 3)
    for call in (lambda: aligned(table_of(root), target, 0), lambda: views.extract(None, Pixels(), target, 0)):
        with pytest.raises(InputError, match="n_views = 0 cannot be used"):
            call()


def test_a_real_network_through_its_views(root, target):
    encoder = registry.make("test_vit-untrained", device="cpu")
    _, values = views.extract(table_of(root), encoder, target, 2)
    images = [read_image(table_of(root).path(i)) for i in range(N)]
    np.testing.assert_array_equal(values[0], encoder.encode(images))
    seen = [Augmented(encoder, 1).see(image) for image in images]
    np.testing.assert_array_equal(values[1], encoder.encode(seen))
    assert np.abs(values[1] - values[0]).max(axis=1).min() > 1e-3
