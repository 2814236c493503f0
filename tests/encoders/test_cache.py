import hashlib
import json
import logging
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import save_file

from lib import files
from lib.datasets import decoding, loaders
from lib.datasets.table import ImageTable
from lib.encoders import cache, registry, views
from lib.errors import BrokenImage, InputError


class MeanColour:
    """Three numbers per image that can be checked by hand; counts what it is asked and can fail on request."""

    name = "mean_colour"
    dim = 3

    def __init__(self, version: str = "1", fail_at: int | None = None):
        self.provenance = {"encoder": self.name, "version": version}
        self.batches: list[int] = []
        self.fail_at = fail_at

    def encode(self, images):
        if len(self.batches) == self.fail_at:
            raise RuntimeError("power cut")
        self.batches.append(len(images))
        return np.array([np.asarray(image).mean(axis=(0, 1)) for image in images], dtype=np.float32)


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


def test_every_image_gets_its_own_numbers(root, target):
    encoder = MeanColour()
    features = cache.extract(table_of(root), encoder, target, batch_size=4)
    assert colours_of(features) == COLOURS
    assert features.image_ids == tuple(sorted(COLOURS))
    assert features.values.dtype == np.float32
    assert features.skipped == {}
    assert features.provenance["version"] == "1"
    assert features.provenance["dataset"] == "folder"
    assert encoder.batches == [4, 4, 2]
    assert sorted(path.name for path in target.parent.iterdir()) == [target.name]


def test_a_second_run_loads_and_encodes_nothing(root, target):
    first = cache.extract(table_of(root), MeanColour(), target)
    written = target.read_bytes(), target.stat().st_mtime_ns
    encoder = MeanColour()
    second = cache.extract(table_of(root), encoder, target)
    assert encoder.batches == []
    assert (target.read_bytes(), target.stat().st_mtime_ns) == written
    loaded = cache.load(target)
    for features in (second, loaded):
        np.testing.assert_array_equal(features.values, first.values)
        assert (features.image_ids, features.provenance) == (first.image_ids, first.provenance)


def test_the_same_features_are_the_same_bytes(root, target):
    other = target.with_name("other.safetensors")
    cache.extract(table_of(root), MeanColour(), target)
    cache.extract(table_of(root), MeanColour(), other, batch_size=3)
    assert target.read_bytes() == other.read_bytes()


def test_the_file_needs_no_pickle_and_carries_its_provenance(root, target):
    cache.extract(table_of(root), MeanColour(), target)
    with safe_open(target, framework="numpy") as file:
        record = json.loads(file.metadata()["provenance"])
        assert list(file.keys()) == ["values"]
    assert record["encoder"] == {"encoder": "mean_colour", "version": "1"}
    assert dict(record["sha256"]).keys() == COLOURS.keys()


def test_an_interrupted_extraction_goes_on_where_it_stopped(root, target):
    with pytest.raises(RuntimeError, match="power cut"):
        cache.extract(table_of(root), MeanColour(fail_at=2), target, batch_size=3)
    assert not target.exists()
    assert len(parts_of(target)) == 2
    encoder = MeanColour()
    features = cache.extract(table_of(root), encoder, target, batch_size=3)
    assert encoder.batches == [3, 1]
    assert colours_of(features) == COLOURS
    assert parts_of(target) == []
    assert not target.with_name(target.name + ".parts").exists()


def test_parts_of_another_encoder_are_not_used(root, target):
    with pytest.raises(RuntimeError):
        cache.extract(table_of(root), MeanColour("1", fail_at=2), target, batch_size=3)
    encoder = MeanColour("2")
    cache.extract(table_of(root), encoder, target, batch_size=3)
    assert sum(encoder.batches) == 10
    assert parts_of(target) == []


def test_a_part_is_whole_or_not_there(root, target, monkeypatch):
    real = Path.write_bytes

    def write_half(path, data):
        real(path, data[: len(data) // 2])
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(OSError, match="disk full"):
        cache.extract(table_of(root), MeanColour(), target)
    assert parts_of(target) == []
    assert not target.exists()


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


def test_a_changed_image_is_computed_again_and_named(root, target, caplog):
    before = cache.extract(table_of(root), MeanColour(), target)
    paint(root, {"a/04.png": (1, 2, 3)})
    encoder = MeanColour()
    features = cache.extract(table_of(root), encoder, target)
    assert encoder.batches == [1]
    assert colours_of(features) == {**COLOURS, "a/04.png": (1, 2, 3)}
    assert features.provenance["images_sha256"] != before.provenance["images_sha256"]
    assert "a/04.png" in caplog.text
    assert "b/05.png" not in caplog.text
    assert colours_of(cache.load(target))["a/04.png"] == (1, 2, 3)


def test_swapped_files_are_noticed(root, target):
    cache.extract(table_of(root), MeanColour(), target)
    paint(root, {"a/00.png": COLOURS["b/01.png"], "b/01.png": COLOURS["a/00.png"]})
    features = cache.extract(table_of(root), MeanColour(), target)
    expected = {**COLOURS, "a/00.png": COLOURS["b/01.png"], "b/01.png": COLOURS["a/00.png"]}
    assert colours_of(features) == colours_of(cache.load(target)) == expected


def test_another_encoder_computes_everything_and_says_what_differs(root, target, caplog):
    cache.extract(table_of(root), MeanColour("1"), target)
    encoder = MeanColour("2")
    features = cache.extract(table_of(root), encoder, target)
    assert encoder.batches == [10]
    assert features.provenance["version"] == cache.load(target).provenance["version"] == "2"
    assert "made by another encoder (version)" in caplog.text


def test_new_images_alone_are_computed_and_removed_ones_disappear(root, target):
    table = table_of(root)
    small = table.take([image_id for image_id in COLOURS if image_id != "a/02.png"])
    cache.extract(small, MeanColour(), target)
    encoder = MeanColour()
    assert colours_of(cache.extract(table, encoder, target)) == COLOURS
    assert encoder.batches == [1]
    (root / "a/00.png").unlink()
    assert "a/00.png" not in cache.extract(table_of(root), encoder, target).image_ids


def test_the_same_table_in_another_order_leaves_the_file_alone(root, target):
    table = table_of(root)
    cache.extract(table, MeanColour(), target)
    before = target.read_bytes()
    ids = list(reversed(sorted(COLOURS)))
    encoder = MeanColour()
    assert cache.extract(table.take(ids), encoder, target).image_ids == tuple(ids)
    assert encoder.batches == []
    assert target.read_bytes() == before


def test_a_smaller_table_computes_nothing_and_keeps_its_own_images_alone(root, target):
    table = table_of(root)
    cache.extract(table, MeanColour(), target)
    ids = ["b/03.png", "a/02.png", "b/09.png"]
    encoder = MeanColour()
    features = cache.extract(table.take(ids), encoder, target)
    assert encoder.batches == []
    assert features.image_ids == tuple(ids)
    assert colours_of(features) == {image_id: COLOURS[image_id] for image_id in ids}
    assert cache.load(target).image_ids == tuple(ids)


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


def test_the_file_says_which_table_it_is_of(root, target):
    table = table_of(root)
    good = table.take([image_id for image_id in COLOURS if image_id != "a/02.png"])
    cache.extract(good, MeanColour(), target)
    (root / "a/02.png").write_bytes(b"")
    encoder = MeanColour()
    cache.extract(table, encoder, target, on_broken="skip")
    assert set(cache.load(target).skipped) == {"a/02.png"}
    cache.extract(replace(good, name="renamed"), encoder, target)
    assert cache.load(target).provenance["dataset"] == "renamed"
    assert encoder.batches == []


def test_copies_of_a_file_have_the_same_numbers(root, target):
    class Drifting(MeanColour):
        """Numbers depend on the place in the batch, as they do in the last digits of a real model."""

        def encode(self, images):
            return super().encode(images) + np.arange(len(images), dtype=np.float32)[:, None]

    paint(root, {"a/copy.png": COLOURS["b/01.png"]})
    features = cache.extract(table_of(root), Drifting(), target)
    assert colours_of(features)["a/copy.png"] == colours_of(features)["b/01.png"]


BREAKAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "text": lambda path: path.write_text("not an image"),
}


@pytest.mark.parametrize("kind", BREAKAGES)
def test_a_broken_image_is_named_and_a_rerun_goes_on(root, target, kind):
    BREAKAGES[kind](root / "b/03.png")
    with pytest.raises(BrokenImage, match="on_broken='skip'") as caught:
        cache.extract(table_of(root), MeanColour(), target, batch_size=4)
    assert str(root / "b/03.png") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not target.exists()
    paint(root, {"b/03.png": COLOURS["b/03.png"]})
    encoder = MeanColour()
    assert colours_of(cache.extract(table_of(root), encoder, target, batch_size=4)) == COLOURS
    assert sum(encoder.batches) == 10 - 4


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


def test_an_encoder_with_batches_of_its_own_gets_four_at_once(root, target):
    encoder = MeanColour()
    encoder.batch_size = 2
    cache.extract(table_of(root), encoder, target)
    assert encoder.batches == [8, 2]


def test_a_missing_file_is_named(root, target):
    table = table_of(root)
    (root / "a/00.png").unlink()
    with pytest.raises(BrokenImage, match=r"a.00\.png"):
        cache.extract(table, MeanColour(), target)


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


def test_what_a_stage_left_out_stays_out_in_a_notebook_and_nothing_else(root, target):
    """The stage was told to skip broken images; the notebook that reads its file need not be told again."""
    table = table_of(root)
    (root / "a/02.png").write_bytes(b"")
    cache.extract(table, MeanColour(), target, on_broken="skip")
    assert set(cache.extract(table, MeanColour(), target).skipped) == {"a/02.png"}
    (root / "a/00.png").write_bytes(b"")
    with pytest.raises(BrokenImage, match=r"a/00\.png"):
        cache.extract(table, MeanColour(), target)


def test_skipped_images_are_tried_again(root, target):
    table = table_of(root)
    (root / "a/02.png").write_bytes(b"")
    cache.extract(table, MeanColour(), target, on_broken="skip")
    before = target.stat().st_mtime_ns
    encoder = MeanColour()
    assert set(cache.extract(table, encoder, target, on_broken="skip").skipped) == {"a/02.png"}
    assert (encoder.batches, target.stat().st_mtime_ns) == ([], before)
    with pytest.raises(BrokenImage, match=r"a/02\.png"):
        cache.extract(table, encoder, target, on_broken="error")
    paint(root, {"a/02.png": COLOURS["a/02.png"]})
    assert colours_of(cache.extract(table, encoder, target)) == COLOURS
    assert encoder.batches == [1]
    assert cache.load(target).skipped == {}


def test_a_table_without_any_readable_image_is_an_error(root, target):
    table = table_of(root)
    for name in COLOURS:
        (root / name).write_bytes(b"")
    with pytest.raises(InputError, match="None of the 10 images of folder can be read"):
        cache.extract(table, MeanColour(), target, on_broken="skip")
    with pytest.raises(InputError, match="nothing to extract"):
        cache.extract(table.take([]), MeanColour(), target)


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-8]),
    "flipped bit": flip_a_bit,
    "text": lambda path: path.write_text("no features here, and more than eight bytes"),
    "foreign": lambda path: save_file({"values": np.zeros((2, 3), np.float32)}, path),
    "other keys": lambda path: save_file({"x": np.zeros(3, np.float32)}, path, metadata={"provenance": "{}"}),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_is_reported_and_computed_again(root, target, kind, caplog):
    cache.extract(table_of(root), MeanColour(), target)
    DAMAGES[kind](target)
    with pytest.raises(InputError, match="damaged"):
        cache.load(target)
    encoder = MeanColour()
    with caplog.at_level(logging.WARNING):
        features = cache.extract(table_of(root), encoder, target)
    assert f"{target} is damaged" in caplog.text
    assert encoder.batches == [10]
    assert colours_of(features) == colours_of(cache.load(target)) == COLOURS


def flipped(data: bytes, place: int, bit: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


def test_a_flipped_bit_is_refused_or_harmless(root, target):
    """Anywhere in the file: its header, encoder, dataset, image ids, hashes, skipped images and numbers."""
    (root / "a/02.png").write_bytes(b"")
    expected = cache.extract(table_of(root), MeanColour(), target, on_broken="skip")
    good, random, refused = target.read_bytes(), np.random.default_rng(0), 0
    for place in random.permutation(len(good))[:500]:
        target.write_bytes(flipped(good, place, random.integers(8)))
        try:
            found = cache.load(target)
        except InputError as error:
            assert str(target) in str(error)
            refused += 1
        else:
            assert (found.image_ids, found.provenance, found.skipped) == (
                expected.image_ids,
                expected.provenance,
                expected.skipped,
            )
            np.testing.assert_array_equal(found.values, expected.values)
    assert refused > 480


def test_a_flipped_bit_in_an_image_id_gives_no_image_the_numbers_of_another(root, target):
    cache.extract(table_of(root), MeanColour(), target)
    target.write_bytes(target.read_bytes().replace(b"a/04.png", b"a/05.png"))
    with pytest.raises(InputError, match="is not what was written"):
        cache.load(target)


def test_a_file_of_an_older_format_is_computed_again_with_a_notice(root, target, caplog):
    cache.extract(table_of(root), MeanColour(), target)
    with safe_open(target, framework="numpy") as file:
        record, values = json.loads(file.metadata()["provenance"]), file.get_tensor("values")
    del record["format"], record["checksum"]
    record["values_sha256"] = hashlib.sha256(values.tobytes()).hexdigest()
    save_file({"values": values}, target, metadata={"provenance": json.dumps(record)})
    encoder = MeanColour()
    assert colours_of(cache.extract(table_of(root), encoder, target)) == COLOURS
    assert encoder.batches == [10]
    assert "has format 1, not 2" in caplog.text and "Computing its features again" in caplog.text
    assert colours_of(cache.load(target)) == COLOURS


def test_what_was_read_otherwise_is_computed_again(root, target, monkeypatch):
    """Before images were turned as their EXIF data say, the same file gave other pixels."""
    with monkeypatch.context() as earlier:
        earlier.setattr(cache, "FORMAT", "2")
        cache.extract(table_of(root), MeanColour(), target)
    encoder = MeanColour()
    cache.extract(table_of(root), encoder, target)
    assert encoder.batches == [10]


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
    assert parts_of(target)
    (target.parent / f".{target.name}.abcdefgh.draft").mkdir()  # and a workshop that was just opened
    encoder = MeanColour()
    assert colours_of(cache.extract(table_of(root), encoder, target, batch_size=3)) == COLOURS
    assert sum(encoder.batches) == (4 if moment == "encode" else 0)
    assert list(target.parent.iterdir()) == [target]


def test_what_is_not_ours_among_the_parts_stays(root, target):
    thesis = target.with_name(f"{target.name}.parts") / "thesis.txt"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("all of it")
    cache.extract(table_of(root), MeanColour(), target)
    assert parts_of(target) == [thesis]


def test_loading_what_is_not_there(tmp_path):
    with pytest.raises(InputError, match="There is no feature file"):
        cache.load(tmp_path / "nothing.safetensors")


def test_aligning_with_another_table_is_an_error(root, target):
    table = table_of(root)
    features = cache.extract(table.take(["a/00.png", "b/01.png"]), MeanColour(), target)
    with pytest.raises(InputError, match=r"a/02\.png, a/04\.png.*and 3 more"):
        features.align(table)


def test_features_that_are_not_finite_stop(root, target):
    class Broken(MeanColour):
        def encode(self, images):
            values = super().encode(images)
            values[1, 2] = np.nan
            return values

    with pytest.raises(InputError, match=r"infinite or undefined features for a/02\.png:"):
        cache.extract(table_of(root), Broken(), target)


def test_features_of_the_wrong_length_stop(root, target):
    encoder = MeanColour()
    encoder.dim = 4
    with pytest.raises(InputError, match=r"\(10, 3\)"):
        cache.extract(table_of(root), encoder, target)


def test_options_outside_their_range_are_named(root, target):
    with pytest.raises(InputError, match="'error' or 'skip', not 'ignore'"):
        cache.extract(table_of(root), MeanColour(), target, on_broken="ignore")
    with pytest.raises(InputError, match="batch_size must be 1 or more, not 0"):
        cache.extract(table_of(root), MeanColour(), target, batch_size=0)


def test_the_texture_descriptor_through_the_cache(root, target):
    texture = registry.make("texture")
    features = cache.extract(table_of(root), texture, target)
    np.testing.assert_array_equal(
        features.values, texture.encode([Image.open(root / name).convert("RGB") for name in features.image_ids])
    )
    assert features.provenance["encoder"] == "texture"
    assert len(features.provenance["source_sha256"]) == 64
