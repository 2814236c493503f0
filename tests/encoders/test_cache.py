import hashlib
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lib import files
from lib.datasets import decoding, loaders
from lib.datasets.table import ImageTable
from lib.encoders import cache, registry, views
from lib.errors import BrokenImage, InputError
from tests.encoders.conftest import Counting


class MeanColour(Counting):
    """Three numbers per image that can be checked by hand."""

    name, dim = "mean_colour", 3

    def numbers(self, pixels: np.ndarray) -> np.ndarray:
        return pixels.mean(axis=(0, 1))


COLOURS = {f"{'ab'[i % 2]}/{i:02d}.png": (10 * i, 255 - 10 * i, i) for i in range(10)}


def paint(root: Path, colours: dict[str, tuple[int, int, int]]) -> None:
    for name, colour in colours.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), colour).save(root / name)


@pytest.fixture
def root(tmp_path) -> Path:
    paint(tmp_path / "images", COLOURS)
    return tmp_path / "images"


@pytest.fixture
def target(tmp_path) -> Path:
    return tmp_path / "features" / "mean.safetensors"


def table_of(root: Path) -> ImageTable:
    return loaders.load("folder", root)


def colours_of(features: cache.Features) -> dict[str, tuple[float, ...]]:
    return dict(zip(features.image_ids, map(tuple, features.values.tolist()), strict=True))


def parts_of(target: Path) -> list[Path]:
    return sorted(target.with_name(target.name + ".parts").glob("*"))


def test_every_image_gets_its_own_numbers_once(root, target):
    encoder = MeanColour()
    features = cache.extract(table_of(root), encoder, target, batch_size=4)
    assert colours_of(features) == COLOURS and features.image_ids == tuple(sorted(COLOURS))
    assert (features.values.dtype, features.skipped, encoder.batches) == (np.float32, {}, [4, 4, 2])
    assert features.provenance.items() >= {"version": "1", "dataset": "folder"}.items()
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    written = target.read_bytes(), target.stat().st_mtime_ns
    for again in (cache.extract(table_of(root), encoder, target), cache.load(target)):
        np.testing.assert_array_equal(again.values, features.values)
        assert (again.image_ids, again.provenance) == (features.image_ids, features.provenance)
    assert encoder.batches == [4, 4, 2] and (target.read_bytes(), target.stat().st_mtime_ns) == written


def test_only_what_is_new_or_changed_is_computed(root, target, caplog, monkeypatch):
    table, encoder, ids = table_of(root), MeanColour(), ["b/03.png", "a/02.png", "b/09.png"]
    cache.extract(table.take([i for i in COLOURS if i != "a/04.png"]), encoder, target)
    assert colours_of(cache.extract(table, encoder, target)) == COLOURS
    paint(root, {"a/04.png": (1, 2, 3), "a/copy.png": COLOURS["b/01.png"]})
    changed = cache.extract(table_of(root), encoder, target)
    assert colours_of(changed) == {**COLOURS, "a/04.png": (1, 2, 3), "a/copy.png": COLOURS["b/01.png"]}
    assert "a/04.png" in caplog.text and "b/05.png" not in caplog.text
    part = cache.extract(table.take(ids), encoder, target)
    assert part.image_ids == cache.load(target).image_ids == tuple(ids)
    assert part.provenance["images_sha256"] != changed.provenance["images_sha256"]
    assert encoder.batches == [9, 1, 1]  # a copy of a file has its numbers
    with pytest.raises(InputError, match=r"a/00\.png, a/04\.png.*and 2 more"):
        part.align(table)
    other = MeanColour("2")
    cache.extract(table.take(ids), other, target)
    assert "made by another encoder (version)" in caplog.text
    with monkeypatch.context() as earlier:  # before images were turned as their EXIF data say, say
        earlier.setattr(cache, "FORMAT", "2")
        cache.extract(table.take(ids), other, target)
    assert cache.extract(table.take(ids), other, target).encoder["version"] == "2"
    assert other.batches == [3, 3, 3] and "has format 2, not 2." in caplog.text


def test_a_failed_final_write_leaves_the_old_file_and_the_parts(root, target, monkeypatch):
    cache.extract(table_of(root), MeanColour("1"), target)
    old = target.read_bytes()
    real = Path.write_bytes

    def full_for_the_target(path, data):
        if path.name == target.name:
            raise OSError("disk full")
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", full_for_the_target)
    with pytest.raises(OSError, match="disk full"):
        cache.extract(table_of(root), MeanColour("2"), target)
    assert target.read_bytes() == old
    monkeypatch.undo()
    encoder = MeanColour("2")
    assert cache.extract(table_of(root), encoder, target).provenance["version"] == "2"
    assert encoder.batches == []


@pytest.mark.parametrize("how", ["finished", "interrupted", "without weights"])
def test_a_removed_image_leaves_every_file(tmp_path, target, how):
    """A patient withdraws: no number of the image is left, nor its name or the hash of its file."""
    root, gone = tmp_path / "three", "a/withdrawn.png"
    paint(root, {"a/00.png": (10, 20, 30), gone: (40, 50, 60), "b/01.png": (70, 80, 90)})
    table = table_of(root)
    views.extract(table, MeanColour(), target, n_views=2)
    row = table.rows["image_id"].tolist().index(gone)
    traces = [view.values[row].tobytes() for view in cache.load_views(target, 2)]
    traces += [gone.encode(), hashlib.sha256((root / gone).read_bytes()).hexdigest().encode()]
    held = [file.read_bytes() for file in cache.view_files(target, 2)]
    assert all(any(trace in data for data in held) for trace in traces)
    if how == "interrupted":
        target.unlink()
        with pytest.raises(RuntimeError, match="power cut"):
            cache.extract(table, MeanColour(fail_at=2), target, batch_size=1)
        assert len(parts_of(target)) == 2
    (root / gone).unlink()
    left = table.take(["b/01.png", "a/00.png"])
    if how == "without weights":
        assert cache.keep(target, left, "mean_colour")
        assert cache.load(target).image_ids == ("a/00.png", "b/01.png")
    views.extract(left, MeanColour(), target, n_views=2)
    assert all(view.values.shape == (2, 3) for view in cache.load_views(target, 2))
    held = [file.read_bytes() for file in target.parent.rglob("*") if file.is_file()]
    assert len(held) == 2 and not any(trace in data for trace in traces for data in held)


def test_all_broken_images_are_named_in_one_go_and_finished_ones_are_kept(root, target):
    for name in ("a/04.png", "b/01.png", "b/09.png"):
        (root / name).write_bytes(b"")
    encoder = MeanColour()
    with pytest.raises(BrokenImage, match=r"^3 images cannot be read:\n") as caught:
        cache.extract(table_of(root), encoder, target, batch_size=2)
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines[1:4]] == [
        f"  {root / x}" for x in ("a/04.png", "b/01.png", "b/09.png")
    ]
    assert "run again" in lines[4] and len(lines) == 5
    assert encoder.batches == [2] and len(parts_of(target)) == 1
    paint(root, COLOURS)
    encoder = MeanColour()
    assert colours_of(cache.extract(table_of(root), encoder, target)) == COLOURS
    assert sum(encoder.batches) == 8


def test_images_that_other_processes_decode_give_the_same_file_and_the_same_words(root, target, monkeypatch):
    """Read ahead, parts of several chunks, a broken image in one of them, two that hold several pages."""
    pages = [Image.new("RGB", (4, 4), (9, 9, 9)), Image.new("RGB", (4, 4))]
    for name in ("a/pages.tif", "b/pages.tif"):
        pages[0].save(root / name, save_all=True, append_images=pages[1:])
    (root / "a/04.png").write_bytes(b"")
    table = table_of(root)
    monkeypatch.setattr(decoding, "CHUNK", 2)
    said, files = [], []
    for few in (1000, 0):
        monkeypatch.setattr(decoding, "FEW", few)
        with pytest.raises(BrokenImage, match=r"^[^\n]*a.04\.png"):
            cache.extract(table, MeanColour(), target, batch_size=5)
        encoder = MeanColour()
        with pytest.warns(UserWarning, match="2 images with several pages") as told:
            cache.extract(table, encoder, target, on_broken="skip", batch_size=5)
        assert sum(encoder.batches) == 11 - (0 if 4 in encoder.batches else 5)
        said.append([str(warning.message) for warning in told])
        files.append(target.read_bytes())
        target.unlink()
    assert files[0] == files[1] and said[0] == said[1] and len(said[0]) == 1


def test_broken_images_can_be_skipped_counted_and_aligned(root, target):
    table = table_of(root)
    for name in ("a/02.png", "b/05.png"):
        (root / name).write_bytes(b"")
    features = cache.extract(table, MeanColour(), target, on_broken="skip", batch_size=4)
    assert set(features.skipped) == {"a/02.png", "b/05.png"}
    assert all(name in reason for name, reason in features.skipped.items())
    good = {name: colour for name, colour in COLOURS.items() if name not in features.skipped}
    assert colours_of(features) == good
    kept, values = features.align(table.take(list(reversed(sorted(COLOURS)))))
    assert kept.rows["image_id"].tolist() == list(reversed(sorted(good)))
    assert [tuple(row) for row in values.tolist()] == [good[name] for name in reversed(sorted(good))]
    assert kept.labels.tolist() == [name[0] for name in reversed(sorted(good))]


def test_what_a_stage_left_out_stays_out_until_it_can_be_read(root, target):
    """The stage was told to skip broken images; the notebook that reads its file need not be told again."""
    table = table_of(root)
    (root / "a/02.png").write_bytes(b"")
    cache.extract(table, MeanColour(), target, on_broken="skip")
    assert set(cache.extract(table, MeanColour(), target).skipped) == {"a/02.png"}
    with pytest.raises(BrokenImage, match=r"a/02\.png"):
        cache.extract(table, MeanColour(), target, on_broken="error")
    (root / "a/00.png").unlink()
    with pytest.raises(BrokenImage, match=r"a/00\.png"):
        cache.extract(table, MeanColour(), target)
    paint(root, COLOURS)
    encoder = MeanColour()
    assert colours_of(cache.extract(table, encoder, target)) == COLOURS
    assert sum(encoder.batches) == 1 and cache.load(target).skipped == {}


def test_a_table_without_any_readable_image_is_an_error(root, target):
    table = table_of(root)
    for name in COLOURS:
        (root / name).write_bytes(b"")
    with pytest.raises(InputError, match="None of the 10 images of folder can be read"):
        cache.extract(table, MeanColour(), target, on_broken="skip")
    with pytest.raises(InputError, match="nothing to extract"):
        cache.extract(table.take([]), MeanColour(), target)


def test_a_flipped_bit_is_refused_or_harmless(root, target, caplog):
    """Anywhere in the file: its header, encoder, dataset, image ids, hashes, skipped images and numbers."""
    (root / "a/02.png").write_bytes(b"")
    expected = cache.extract(table_of(root), MeanColour(), target, on_broken="skip")
    good, random, refused = target.read_bytes(), np.random.default_rng(0), 0
    for place in random.permutation(len(good))[:200]:
        target.write_bytes(good[:place] + bytes([good[place] ^ 1 << random.integers(8)]) + good[place + 1 :])
        try:
            loaded = cache.load(target)
        except InputError as error:
            assert str(target) in str(error)
            refused += 1
        else:
            assert (loaded.sha256, loaded.provenance) == (expected.sha256, expected.provenance)
            assert loaded.skipped == expected.skipped
            np.testing.assert_array_equal(loaded.values, expected.values)
    assert refused > 190
    for content in (b"", good[:-8], b"no features here, and more than eight bytes"):
        target.write_bytes(content)
        encoder = MeanColour()
        assert cache.extract(table_of(root), encoder, target, on_broken="skip").sha256 == expected.sha256
        assert encoder.batches == [9] and target.read_bytes() == good
    assert f"{target} is damaged" in caplog.text


@pytest.mark.parametrize("dim", [3, 4])
def test_features_that_are_not_finite_or_of_another_length_stop(root, target, dim):
    class Broken(MeanColour):
        def encode(self, images):
            values = super().encode(images)
            values[1, 2] = np.nan
            return values

    encoder = Broken()
    encoder.dim = dim
    message = r"infinite or undefined features for a/02\.png:" if dim == 3 else r"\(10, 3\)"
    with pytest.raises(InputError, match=message):
        cache.extract(table_of(root), encoder, target)


# Killed on the way


@pytest.mark.parametrize("moment", ["encode", "empty"])
def test_after_a_killed_run_that_later_succeeds_nothing_stray_is_left(root, target, moment):
    """The process dies in the middle of the images, or when all is written and the parts are still there."""
    if (child := os.fork()) == 0:
        encoder = MeanColour()

        def dies(*arguments: object) -> None:
            if moment == "empty" or len(encoder.batches) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            encoder.batches.append(len(arguments[0]))
            return MeanColour().encode(*arguments)

        vars(encoder if moment == "encode" else files)[moment] = dies
        cache.extract(table_of(root), encoder, target, batch_size=3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert parts_of(target) and target.exists() == (moment == "empty")
    (target.parent / f".{target.name}.abcdefgh.draft").mkdir()  # and a workshop that was just opened
    encoder = MeanColour()
    assert colours_of(cache.extract(table_of(root), encoder, target, batch_size=3)) == COLOURS
    assert sum(encoder.batches) == (4 if moment == "encode" else 0)
    assert list(target.parent.iterdir()) == [target]


def test_an_image_has_the_same_bits_whatever_is_computed_beside_it(tmp_path):
    """40 images at once, and 24 of them before the others: a batch of 8 would add in another order."""
    draw = np.random.default_rng(0)
    for number in range(40):
        (tmp_path / "images" / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 256, (96, 96, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / "ab"[number % 2] / f"{number}.png")
    encoder, table = registry.make("efficientnet_lite0_96px", device="cpu"), table_of(tmp_path / "images")
    at_once = cache.extract(table, encoder, tmp_path / "at_once.safetensors")
    few = table.take(table.rows["image_id"].tolist()[:24])
    cache.extract(few, encoder, tmp_path / "again.safetensors")
    again = cache.extract(table, encoder, tmp_path / "again.safetensors")
    assert np.array_equal(again.values, at_once.values)
