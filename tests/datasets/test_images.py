"""Image files are found and read completely, as cameras and microscopes write them; what cannot be read is named."""

import os
import struct

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

from lib.datasets import images
from lib.datasets.images import read_image
from lib.errors import BrokenImage, InputError

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


@pytest.mark.parametrize("suffix", [".jpg", ".tif", ".webp"])
@pytest.mark.parametrize("orientation", RIGHT_WAY_UP)
def test_a_photograph_is_turned_upright_as_its_camera_says(tmp_path, suffix, orientation):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    image, how = Image.fromarray(PIXELS), {"lossless": True} if suffix == ".webp" else {}
    image.save(tmp_path / f"x{suffix}", exif=exif, **how)
    image.save(tmp_path / f"upright{suffix}", **how)
    stored = np.asarray(read_image(tmp_path / f"upright{suffix}"))
    np.testing.assert_array_equal(np.asarray(read_image(tmp_path / f"x{suffix}")), RIGHT_WAY_UP[orientation](stored))


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


def test_walk_leaves_out_hidden_files_and_survives_a_link_to_a_parent(tmp_path):
    for name in ("b/2.png", "a/1.PNG", ".cache/3.png", "a/._1.png", "a/notes.txt"):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/4.tif").touch()
    (tmp_path / "data/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data/a/up").symlink_to(tmp_path / "data")
    found = images.visible_files(tmp_path / "data")
    assert list(map(str, found)) == ["a/1.PNG", "a/notes.txt", "b/2.png", "linked/4.tif"]
    assert [images.is_image(path) for path in found] == [True, False, True, True]


def test_walk_names_a_folder_that_cannot_be_read(tmp_path, monkeypatch):
    def scandir(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(InputError, match=r"the folder cannot be read \(Permission denied\)"):
        images.visible_files(tmp_path)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".bmp"])
def test_read_image_returns_the_pixels_and_of_16_bits_the_high_byte(tmp_path, suffix):
    Image.fromarray(PIXELS).save(tmp_path / f"x{suffix}")
    np.testing.assert_array_equal(np.asarray(read_image(tmp_path / f"x{suffix}")), PIXELS)
    if suffix != ".bmp":
        Image.fromarray(np.array([[0, 255, 256], [40_000, 65_279, 65_535]], dtype=np.uint16)).save(
            tmp_path / f"d{suffix}"
        )
        deep = np.asarray(read_image(tmp_path / f"d{suffix}"))
        assert deep[..., 0].tolist() == [[0, 0, 1], [156, 254, 255]] and (deep == deep[..., :1]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values_of_32_bits_are_refused(tmp_path, dtype):
    Image.fromarray(np.ones((4, 4), dtype)).save(tmp_path / "x.tif")
    with pytest.raises(BrokenImage, match=r"x.tif: 32-bit pixel values have no agreed range"):
        read_image(tmp_path / "x.tif")


def test_transparency_is_laid_on_white(tmp_path):
    rgba = np.zeros((1, 3, 4), np.uint8)
    rgba[0, 1] = (200, 10, 0, 255)
    rgba[0, 2] = (100, 0, 0, 51)
    Image.fromarray(rgba).save(tmp_path / "x.png")
    shown = np.asarray(read_image(tmp_path / "x.png"))[0].tolist()
    # 51 / 255 = 0.2: red 0.2 * 100 + 0.8 * 255 = 224, green and blue 0.8 * 255 = 204
    assert shown == [[255, 255, 255], [200, 10, 0], [224, 204, 204]]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "options", [("x.png", {}), ("x.jpg", {}), ("x.bmp", {}), ("x.webp", {}), ("x.tif", {"compression": "jpeg"})]
)
def test_a_truncated_image_is_named(tmp_path, options):
    name, save_options = options
    Image.fromarray(PIXELS).save(tmp_path / name, **save_options)
    whole = (tmp_path / name).read_bytes()
    for share in (0.2, 0.5, 0.9):
        (tmp_path / name).write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(BrokenImage, match=name):
            read_image(tmp_path / name)


def test_what_cannot_be_opened_is_named(tmp_path, monkeypatch):
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("not an image")
    reasons = {"empty": r"the file is empty \(0 bytes\)", "text": "not an image", "gone": "no such file"}
    for name, reason in reasons.items():
        with pytest.raises(BrokenImage, match=rf"{name}\.png: {reason}"):
            read_image(tmp_path / f"{name}.png")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Image, "open", refuse)
    with pytest.raises(BrokenImage, match=r"text.png: no permission"):
        read_image(tmp_path / "text.png")


def test_an_image_that_claims_to_be_huge_is_to_be_cut_not_decoded(tmp_path):
    Image.fromarray(PIXELS).save(tmp_path / "x.bmp")
    data = bytearray((tmp_path / "x.bmp").read_bytes())
    data[18:26] = struct.pack("<ii", 40_000, 40_000)
    (tmp_path / "x.bmp").write_bytes(data)
    with pytest.raises(BrokenImage, match=r"x.bmp: too large, over 178,956,970 pixels. Cut it into tiles"):
        read_image(tmp_path / "x.bmp")
