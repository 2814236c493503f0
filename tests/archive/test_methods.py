"""Every method is made for the images at hand, says why it cannot be, and is fitted on all of them."""

import numpy as np
import pytest

from lib.archive import methods
from lib.errors import InputError

LABELS = np.repeat(np.arange(4), 12)
X = np.random.default_rng(0).normal(size=(48, 40)).astype(np.float32) + 4 * np.eye(4, 40, dtype=np.float32)[LABELS]
KIN = (0, 0, 1, 1)


@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_is_fitted_on_all_images_and_finds_classes_in_its_own_space(name, monkeypatch, tmp_path):
    monkeypatch.setattr(methods, "STEPS", 40)
    monkeypatch.setattr("lib.paths.TRAINED", tmp_path)
    fitted = methods.fit_all(name, X, LABELS, KIN)
    points = fitted.embed(X)
    nearest = fitted.space.pairwise(points, points).fill_diagonal_(np.inf).argmin(dim=1).numpy()
    assert fitted.method.name == methods.METHODS[name].title
    assert (LABELS[nearest] == LABELS).mean() > 0.6


def test_what_images_do_not_allow_is_named_with_its_reason():
    labels, rows = np.array([0, 0, 0, 1]), np.arange(4)
    why = methods.lacking(labels, [rows])
    assert set(why) == {"prototypes", "hyp_vit", "label_tree"}
    assert set(methods.made(8, labels, [rows])) == set(methods.METHODS) - set(why)
    with pytest.raises(InputError, match="HWC \\+ LAM cannot be fitted here: there is no tree"):
        methods.fit_all("label_tree", X, LABELS)
    with pytest.raises(InputError, match="no method 'hyperdino': did you mean hyper_dino"):
        methods.named("hyperdino")


@pytest.mark.parametrize(("n", "n_classes", "epochs"), [(240, 4, 120), (8000, 8, 10), (4600, 77, 33)])
def test_steps_grow_with_classes_and_every_image_is_seen_often(n, n_classes, epochs):
    assert methods.schedule(np.arange(n) % n_classes, [np.arange(n)]).epochs == epochs
