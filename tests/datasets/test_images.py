"""Images as cameras and microscopes write them: turned, 12 bits in 16, several pages, or under a wrong name."""

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

from lib.datasets import images
from lib.datasets.images import read_image
from lib.errors import BrokenImage

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8)
ORIENTATION = 274
RIGHT_WAY_UP = {  # how the stored pixels are turned to be seen
    1: lambda x: x,
    2: np.fliplr,
    3: lambda x: np.rot90(x, 2),
    4: np.flipud,
    5: lambda x: x.swapaxes(0, 1),
    6: lambda x: np.rot90(x, -1),
    7: lambda x: np.rot90(x, 2).swapaxes(0, 1),
    8: np.rot90,
}


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".webp"])
@pytest.mark.parametrize("orientation", RIGHT_WAY_UP)
def test_a_photograph_is_turned_upright_as_its_camera_says(tmp_path, suffix, orientation):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    image = Image.fromarray(PIXELS)
    image.save(tmp_path / f"x{suffix}", exif=exif, **({"lossless": True} if suffix == ".webp" else {}))
    image.save(tmp_path / f"upright{suffix}", **({"lossless": True} if suffix == ".webp" else {}))
    stored = np.asarray(read_image(tmp_path / f"upright{suffix}"))
    np.testing.assert_array_equal(np.asarray(read_image(tmp_path / f"x{suffix}")), RIGHT_WAY_UP[orientation](stored))


def test_deep_grey_and_palette_images_are_turned_too(tmp_path):
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    Image.fromarray(256 * PIXELS[..., 0].astype(np.uint16)).save(tmp_path / "deep.png", exif=exif)
    Image.fromarray(PIXELS[..., 0]).convert("P").save(tmp_path / "palette.png", exif=exif)
    for name in ("deep.png", "palette.png"):
        np.testing.assert_array_equal(np.asarray(read_image(tmp_path / name))[..., 0], np.rot90(PIXELS[..., 0], -1))


def test_a_camera_that_writes_nonsense_does_not_cost_the_picture(tmp_path):
    Image.fromarray(PIXELS).save(tmp_path / "x.png", exif=b"Exif\0\0nonsense")
    np.testing.assert_array_equal(np.asarray(read_image(tmp_path / "x.png")), PIXELS)


def test_a_small_part_of_16_bits_and_further_pages_are_told_once_with_their_number(tmp_path):
    ramp = np.arange(256, dtype=np.uint16).reshape(16, 16)
    files = []
    for name, values in {"a.png": 16 * ramp, "b.tif": 16 * ramp, "c.png": 64 * ramp, "full.png": 256 * ramp}.items():
        Image.fromarray(values).save(tmp_path / name)
        files.append(tmp_path / name)
    Image.fromarray((ramp % 16).astype(np.uint8)).save(tmp_path / "eight_bits.png")
    page = Image.fromarray(PIXELS)
    for name in ("pages.tif", "more.tif"):
        page.save(tmp_path / name, save_all=True, append_images=[page.rotate(90, expand=True)])
    page.save(tmp_path / "page.tif")
    others = [tmp_path / name for name in ("eight_bits.png", "pages.tif", "more.tif", "page.tif")]
    with pytest.warns(UserWarning) as said:
        assert images.unreadable([*files, *others], "mine") == []
    assert [str(warning.message) for warning in said] == [
        f"3 images with {images.DARK}, such as {tmp_path / 'a.png'} (no value above 4,095 of 65,535).",
        f"2 images with {images.PAGES}, such as {tmp_path / 'more.tif'}.",
    ]


def test_colours_of_16_bits_are_looked_at_too(tmp_path):
    from tifffile import imwrite  # Pillow writes none

    imwrite(tmp_path / "x.tif", (PIXELS.astype(np.uint16) << 4), photometric="rgb")
    notices: images.Notices = {}
    read_image(tmp_path / "x.tif", notices)
    assert list(notices) == [images.DARK]


@pytest.mark.parametrize("kind", ["GIF", "EPS", "PPM"])
def test_no_decoder_starts_for_another_format_under_the_name_of_an_image(tmp_path, monkeypatch, kind):
    Image.fromarray(PIXELS).save(tmp_path / "x.png", format=kind)
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: pytest.fail("Ghostscript was asked"))
    with pytest.raises(BrokenImage, match=r"x.png: not an image that can be read here. Convert it to PNG"):
        read_image(tmp_path / "x.png")


def test_every_file_that_cannot_be_read_is_named_with_both_ways_out(tmp_path):
    files = [tmp_path / f"{number}.png" for number in range(4)]
    for file in files:
        Image.fromarray(PIXELS).save(file)
    assert images.unreadable(files, "mine") == []
    for file in files[1:3]:
        file.write_bytes(b"")
    reasons = images.unreadable(files, "mine")
    assert [reason.partition(":")[0] for reason in reasons] == list(map(str, files[1:3]))
    said = str(images.broken(reasons))
    assert said.startswith("2 images cannot be read:\n") and "on_broken: skip in the project's params.yaml" in said
