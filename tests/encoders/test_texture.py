import numpy as np
import pytest
from PIL import Image
from skimage.color import hed2rgb

from lib.encoders import texture
from lib.encoders.texture import NAMES, SIZE, Texture


def named(image: Image.Image) -> dict[str, float]:
    return dict(zip(NAMES, texture.describe(image), strict=True))


def noise_tile(seed: int, colour: tuple[int, int, int], grain: int) -> Image.Image:
    """A tile of smooth noise around one colour; grain: size of the blobs in pixels."""
    rng = np.random.default_rng(seed)
    field = Image.fromarray(rng.integers(0, 256, (SIZE // grain, SIZE // grain), dtype=np.uint8))
    shade = np.asarray(field.resize((SIZE, SIZE), Image.Resampling.BICUBIC), dtype=float)[..., None] / 255 - 0.5
    return Image.fromarray(np.clip(np.array(colour) + 60 * shade, 0, 255).astype(np.uint8))


def grating(wavelength: int) -> Image.Image:
    x = np.arange(SIZE)
    row = np.round(128 + 64 * np.cos(2 * np.pi * x / wavelength)).astype(np.uint8)
    return Image.fromarray(np.tile(row, (SIZE, 1)))


def checkerboard() -> Image.Image:
    y, x = np.indices((SIZE, SIZE))
    return Image.fromarray((255 * ((x + y) % 2)).astype(np.uint8))


def test_encode_gives_one_float32_row_per_image_in_order():
    images = [noise_tile(seed, (200, 120, 180), 8) for seed in range(5)]
    values = Texture().encode(images)
    assert values.dtype == np.float32
    assert values.shape == (5, len(NAMES))
    for row, image in zip(values, images, strict=True):
        np.testing.assert_array_equal(row, texture.describe(image).astype(np.float32))
    assert Texture().encode([]).shape == (0, len(NAMES))


@pytest.mark.parametrize("colour", [(0, 0, 0), (128, 0, 128)])
@pytest.mark.parametrize("size", [(1, 1), (700, 460)])
def test_constant_images_have_finite_flat_features(colour, size):
    numbers = named(Image.new("RGB", size, colour))
    assert all(np.isfinite(value) for value in numbers.values())
    assert numbers["colour_red_mean"] == pytest.approx(colour[0] / 255)
    assert numbers["colour_blue_p90"] == pytest.approx(colour[2] / 255)
    for channel in texture.CHANNELS:
        assert numbers[f"colour_{channel}_std"] == pytest.approx(0, abs=1e-9)
        assert numbers[f"colour_{channel}_skewness"] == pytest.approx(0, abs=1e-6)
    for name in ("glcm_grey_contrast_d1", "gabor_mean_w6", "gabor_std_w6", "gabor_anisotropy_w6"):
        assert numbers[name] == pytest.approx(0, abs=1e-9)
    assert numbers["glcm_hematoxylin_energy_d4"] == pytest.approx(1)


def test_colour_statistics_by_hand():
    pixels = np.zeros((SIZE, SIZE, 3), dtype=np.uint8)
    pixels[: SIZE // 4, :, 0] = 255  # a quarter of the pixels pure red, the rest black
    numbers = named(Image.fromarray(pixels))
    # Bernoulli(p = 1/4): mean p, std sqrt(p(1-p)), skewness (1-2p)/sqrt(p(1-p))
    std = np.sqrt(3) / 4
    for channel in ("red", "value", "saturation", "hue_cos"):
        assert numbers[f"colour_{channel}_mean"] == pytest.approx(0.25)
        assert numbers[f"colour_{channel}_std"] == pytest.approx(std)
        assert numbers[f"colour_{channel}_skewness"] == pytest.approx(0.5 / std)
        assert numbers[f"colour_{channel}_p10"] == 0
        assert numbers[f"colour_{channel}_p90"] == 1
    assert numbers["colour_green_mean"] == numbers["colour_hue_sin_mean"] == 0


def test_stains_are_told_apart():
    stripes = np.zeros((SIZE, SIZE, 3))
    stripes[:, ::2, 1] = 0.15  # eosin alone
    numbers = named(Image.fromarray(np.round(255 * hed2rgb(stripes)).astype(np.uint8)))
    assert numbers["glcm_grey_contrast_d1"] > 10
    assert numbers["glcm_hematoxylin_contrast_d1"] < 0.5
    assert numbers["colour_eosin_mean"] == pytest.approx(0.075, rel=0.02)
    assert numbers["colour_hematoxylin_mean"] < 0.002


def test_checkerboard_by_hand():
    numbers = named(checkerboard())
    # Distance 1: rows and columns pair level 0 with level 31, the two diagonals pair equal levels.
    assert numbers["glcm_grey_contrast_d1"] == pytest.approx(31**2 / 2)
    assert numbers["glcm_grey_dissimilarity_d1"] == pytest.approx(31 / 2)
    assert numbers["glcm_grey_homogeneity_d1"] == pytest.approx((1 + 1 / (1 + 31**2)) / 2)
    assert numbers["glcm_grey_correlation_d1"] == pytest.approx(0, abs=1e-6)
    assert numbers["glcm_grey_energy_d1"] == pytest.approx(np.sqrt(0.5), rel=1e-4)
    assert numbers["glcm_grey_contrast_d2"] == 0
    # A white pixel has only darker neighbours (pattern 0), a black one none (pattern 8).
    codes = [numbers[f"lbp_r1_{code}"] for code in range(10)]
    assert codes == [0.5, 0, 0, 0, 0, 0, 0, 0, 0.5, 0]


def test_gabor_answer_to_a_grating_by_hand():
    numbers = named(grating(6))
    # A filter turned by δ is centred 2 sin(δ/2) frequencies away; its gain halves at a third of the frequency.
    turned = np.deg2rad([0, 30, 60, 90, 60, 30])
    gain = 0.5 ** ((6 * np.sin(turned / 2)) ** 2)
    assert numbers["gabor_mean_w6"] == pytest.approx(64 / 255 / 2 * gain.mean(), rel=1e-3)
    assert numbers["gabor_anisotropy_w6"] == pytest.approx(gain.std() / gain.mean(), rel=1e-3)
    assert numbers["gabor_std_w6"] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("wavelength", [3, 6, 12, 24])
def test_gabor_is_strongest_at_the_wavelength_of_the_grating(wavelength):
    numbers = named(grating(wavelength))
    means = {w: numbers[f"gabor_mean_w{w}"] for w in (3, 6, 12, 24)}
    assert max(means, key=means.get) == wavelength


@pytest.mark.parametrize("move", [Image.Transpose.ROTATE_90, Image.Transpose.FLIP_LEFT_RIGHT])
def test_turned_and_mirrored_tiles_have_the_same_descriptor(move):
    image = noise_tile(3, (190, 110, 170), 4)
    image = image.resize((SIZE, SIZE), box=(0, 0, SIZE, SIZE // 3))  # stretched: not the same in both directions
    before, after = texture.describe(image), texture.describe(image.transpose(move))
    assert np.abs(image.transpose(move) - np.asarray(image, dtype=float)).max() > 20
    tolerance = [0.02 if name.startswith("lbp") else 1e-3 for name in NAMES]
    assert (np.abs(after - before) <= tolerance * np.maximum(1, np.abs(before))).all()


def test_grey_and_large_images_are_accepted():
    grey = checkerboard()
    np.testing.assert_array_equal(texture.describe(grey), texture.describe(grey.convert("RGB")))
    tile = noise_tile(5, (200, 120, 180), 8)
    small, large = named(tile), named(tile.resize((4 * SIZE, 4 * SIZE), Image.Resampling.BICUBIC))
    for name in ("colour_red_mean", "colour_eosin_mean", "gabor_mean_w12", "glcm_grey_correlation_d4"):
        assert large[name] == pytest.approx(small[name], rel=0.05)
