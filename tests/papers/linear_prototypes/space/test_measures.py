"""Compactness, separation and linearity on spaces whose answer is known."""

import numpy as np
import pytest

from lib.papers.linear_prototypes import space
from lib.results.store import Run

RNG = np.random.default_rng(0)


def ring(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that no line separates: an inner and an outer ring."""
    angle, labels = RNG.uniform(0, 2 * np.pi, n), np.arange(n) % 2
    radius = 1 + labels + 0.1 * RNG.normal(size=n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.01 * RNG.normal(size=n)], axis=1), labels


def clouds(n: int, apart: float) -> tuple[np.ndarray, np.ndarray]:
    labels = np.arange(n) % 3
    return apart * np.eye(3)[labels] + RNG.normal(size=(n, 3)), labels


def both(make, *arguments) -> space.Space:
    (a, y), (b, z) = make(120, *arguments), make(90, *arguments)
    return space.Space(a, b, y, z)


def test_a_linear_classifier_fails_on_rings_and_a_kernel_does_not():
    found = space.measure(both(ring))
    assert found["linear"] < 65 and found["centroid"] < 65
    assert found["kernel"] > 95


def test_what_moves_apart_is_more_compact_and_better_separated():
    near, far = (space.measure(both(clouds, apart)) for apart in (1.0, 8.0))
    assert far["compactness"] < near["compactness"] and far["davies_bouldin"] < near["davies_bouldin"]
    assert far["silhouette"] > near["silhouette"] and far["linear"] > near["linear"]


def test_the_effective_rank_counts_directions():
    flat = RNG.normal(size=(5000, 4)) * np.array([1.0, 1.0, 1e-4, 1e-4])
    assert space.effective_rank(flat) == pytest.approx(2, abs=0.01)


def test_a_class_that_was_not_learnt_and_one_with_one_image_are_left_out():
    one = both(clouds, 8.0)
    known = space.measure(one)
    strange = space.Space(
        one.train,
        np.concatenate([one.held_out, 50 * np.ones((3, 3))]),
        one.train_labels,
        np.concatenate([one.held_out_labels, [7, 7, 7]]),
    )
    assert space.measure(strange) == known


def test_components_come_from_the_training_images_and_their_sign_is_fixed():
    one = both(clouds, 4.0)
    xyz, share = space.first_components(one)
    turned = space.Space(-one.train, -one.held_out, one.train_labels, one.held_out_labels)
    assert xyz.shape == (90, 3) and share.sum() == pytest.approx(100)
    np.testing.assert_allclose(np.abs(xyz), np.abs(space.first_components(turned)[0]), atol=1e-9)
    assert (np.abs(xyz).max(0) == xyz.max(0)).all()


def test_rows_and_sentences_follow_the_numbers():
    spaces = {
        "frozen": [both(clouds, 1.0) for _ in range(3)],
        "head": [both(clouds, 8.0) for _ in range(3)],
        "linear head": [both(clouds, 8.0) for _ in range(3)],
    }
    table = space.rows(spaces)
    assert len(table) == 3 * len(space.MEASURES)
    said = space.verdicts(table)
    assert said[0] == "silhouette of unseen images: head is higher than frozen"
    assert said[1] == "linear classifier: head is higher than frozen"
    assert said[3] == "on head, a kernel classifier is not clearly different from a linear one"
    assert "| head | 0.0" in space.layout(table)


def test_one_class_of_held_out_images_is_not_measured_and_nothing_is_said_of_it():
    x, y = clouds(90, 4.0)
    alone = space.Space(x, x[y == 0], y, y[y == 0])
    assert np.isnan(list(space.measure(alone).values())).all()
    table = space.rows({name: [alone, alone] for name in ("frozen", "head", "linear")})
    assert space.layout(table).count("– ± –") == 3 * len(space.MEASURES)
    assert all("is not clearly different from" in sentence for sentence in space.verdicts(table))


def test_table_and_figure_say_whom_they_show():
    about = {"folds": 3, "epochs": 7, "groups": "patient"}
    run = Run("43_linear_prototypes_space", "demo", "tissue", "images", "abc", "texture", about)
    spaces = {name: [both(clouds, 4.0) for _ in range(2)] for name in ("frozen", "head")}
    table = space.table(run, space.rows(spaces))
    assert "3 folds by patient" in table.caption and table.markdown.count("\n| ") == 3
    labels = np.array(["fat", "gland", "muscle"])[spaces["head"][0].held_out_labels]
    figure = space.figure_4(run, {name: several[0] for name, several in spaces.items()}, labels)
    assert "patients that were held out; heads trained for 7 epochs" in figure.caption
    assert figure.rows.groupby("method", sort=False).size().to_dict() == {"frozen": 90, "head": 90}
    assert set(figure.free) == set(space.AXES) and len(figure.figure.axes) == 4
