from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lib import paths
from lib.datasets import loaders
from lib.datasets.catalogue import describe
from lib.encoders import cache, views
from lib.errors import InputError, MissingWeights
from lib.study import inputs
from tests.images import pictures


class Means:
    """Mean colour of an image; the encoder of that name."""

    dim = 3

    def __init__(self, name: str) -> None:
        self.name, self.provenance = name, {"encoder": name}

    def encode(self, images: list[np.ndarray]) -> np.ndarray:
        return np.stack([np.asarray(image, dtype=np.float32).mean(axis=(0, 1)) for image in images])


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """Six images of two classes, their table, and features of "a" with two views."""
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    pictures(tmp_path / "images", *(f"{'xy'[number % 2]}/{number}.png" for number in range(6)))
    table = loaders.load("folder", tmp_path / "images")
    table.write(paths.table("demo", "mine"))
    views.extract(table, Means("a"), paths.features("demo", "mine", "a"), 2)
    return tmp_path / "images"


def extract(name: str, root: Path, **options: str) -> np.ndarray:
    table = loaders.load("folder", root)
    return cache.extract(table, Means(name), paths.features("demo", "mine", name), **options).values


def test_rows_belong_to_the_images(root):
    expected = extract("b", root)
    data = inputs.load("demo", "mine", ["a", "b"])
    assert data.images.labels.tolist() == ["x"] * 3 + ["y"] * 3
    np.testing.assert_array_equal(data["b"], expected)
    first = np.asarray(Image.open(data.images.path(0)), dtype=np.float32).mean(axis=(0, 1))
    np.testing.assert_array_equal(data["a"][0], first)
    assert "6 images × 3 numbers" in str(data) and data.skipped == 0


def test_views_stand_in_front(root):
    data = inputs.load("demo", "mine", ["a"], n_views=2)
    assert data["a"].shape == (2, 6, 3)
    np.testing.assert_array_equal(data["a"][0], inputs.load("demo", "mine", ["a"])["a"])
    assert "2 views of 6 images" in str(data)
    assert data.run("41_linear_prototypes_retrieval").encoder == "a (3 numbers, 2 views)"


def test_an_image_that_one_encoder_could_not_read_is_nobodys(root):
    (root / "y" / "3.png").write_bytes(b"")
    extract("b", root, on_broken="skip")
    data = inputs.load("demo", "mine", ["a", "b"])
    assert data.skipped == 1 and data["a"].shape == data["b"].shape == (5, 3)
    assert not any("3.png" in path for path in data.images.rows["path"])


def test_an_encoder_without_weights_is_left_out_but_not_the_first(root):
    cache.note_missing(paths.features("demo", "mine", "gated"), "No weights for gated: accept its terms.")
    with pytest.warns(UserWarning, match="gated is left out: No weights for gated"):
        assert list(inputs.load("demo", "mine", ["a", "gated"]).features) == ["a"]
    with pytest.raises(MissingWeights, match="accept its terms"):
        inputs.load("demo", "mine", ["gated"])


def test_what_is_not_there_is_named(root):
    with pytest.raises(InputError, match=r"(?s)needs kather.*make data NAME=kather"):
        inputs.load("demo", "kather", ["a"])
    with pytest.raises(InputError, match=r"(?s)no feature file .*c\.safetensors.*lib\.encoders --table .* --encoder c"):
        inputs.load("demo", "mine", ["c"])
    with pytest.raises(InputError, match="4 folds need 4 images of a class"):
        inputs.load("demo", "mine", ["a"], n_folds=4)
    with pytest.raises(InputError, match=r"a\.views/2\.safetensors.*--n-views 3"):
        inputs.load("demo", "mine", ["a"], n_views=3)
    (paths.DATA / "mine").mkdir(parents=True)
    paths.table("demo", "mine").unlink()
    with pytest.raises(InputError, match=r"no table of images .*lib\.datasets --dataset mine"):
        inputs.load("demo", "mine", ["a"])


def test_a_run_says_what_it_rests_on(root):
    extract("b", root)
    data = inputs.load("demo", "mine", ["a", "b"])
    run = data.run("13_hyper_dino_retrieval", epochs=3)
    assert (run.encoder, run.parameters, run.dataset) == ("a (3 numbers)", {"epochs": 3}, "mine")
    assert data.run("13_hyper_dino_retrieval", ["a", "b"]).encoder == "a (3 numbers), b (3 numbers)"
    assert run.images == describe(data.images) and len(run.digest) == 64
