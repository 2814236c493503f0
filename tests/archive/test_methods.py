"""Every method is made for the images at hand, or says why it cannot be; what it fits is kept without code."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from lib.archive import heads, methods
from lib.errors import InputError

LABELS = np.repeat(np.arange(4), 12)
X = np.random.default_rng(0).normal(size=(48, 40)).astype(np.float32) + 4 * np.eye(4, 40, dtype=np.float32)[LABELS]


@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_finds_classes_in_its_own_space_and_embeds_as_before_when_it_is_read_again(name, tmp_path, quick):
    fitted = methods.fit_all(name, X, LABELS, (0, 0, 1, 1))
    points = fitted.embed(X)
    nearest = fitted.space.pairwise(points, points).fill_diagonal_(np.inf).argmin(dim=1).numpy()
    assert fitted.method.name == methods.METHODS[name].title
    assert (LABELS[nearest] == LABELS).mean() > 0.6
    heads.write(tmp_path / "head", fitted)
    again = heads.read(tmp_path / "head")
    assert again.method == fitted.method and again.space == fitted.space
    torch.testing.assert_close(again.embed(X), points, rtol=0, atol=0)
    heads.write(tmp_path / "twice", again)
    assert (tmp_path / "twice").read_bytes() == (tmp_path / "head").read_bytes()


@pytest.mark.parametrize("of", ["os:system", "lib.files:sha256", "lib.training.methods:Gone"])
def test_nothing_but_settings_of_this_project_is_made(of, tmp_path):
    heads.write(tmp_path / "head", methods.fit_all("plain", X, LABELS))
    about = {"method": {"of": of, "fields": {}}, "seed": 0, "half": False, "numbers": 40}
    save_file(load_file(tmp_path / "head"), tmp_path / "head", {"about": json.dumps(about)})
    with pytest.raises(InputError, match="head is damaged, or was written by another version"):
        heads.read(tmp_path / "head")


def test_what_images_do_not_allow_is_named_with_its_reason():
    labels, rows = np.array([0, 0, 0, 1]), np.arange(4)
    why = methods.lacking(labels, [rows])
    assert set(why) == {"prototypes", "hyp_vit", "label_tree"}
    assert set(methods.made(8, labels, [rows])) == set(methods.METHODS) - set(why)
    with pytest.raises(InputError, match="HWC \\+ LAM cannot be fitted here: there is no tree"):
        methods.fit_all("label_tree", X, LABELS)


@pytest.mark.parametrize(("n", "n_classes", "epochs"), [(240, 4, 120), (8000, 8, 10), (4600, 77, 33)])
def test_steps_grow_with_classes_and_every_image_is_seen_often(n, n_classes, epochs):
    assert methods.schedule(np.arange(n) % n_classes, [np.arange(n)]).epochs == epochs
