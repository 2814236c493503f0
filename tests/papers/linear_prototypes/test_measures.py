"""Compactness, separation and linearity on spaces whose answer is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist

from lib.papers.linear_prototypes import measures
from lib.training import experiment
from lib.training.episodes import Episodes
from lib.training.linear_prototypes import Settings
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, repeated

RNG = np.random.default_rng(0)


def ring(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that no line separates: an inner and an outer ring, and a third number that tells nothing."""
    angle, labels = RNG.uniform(0, 2 * np.pi, n), np.arange(n) % 2
    radius = 1 + labels + 0.1 * RNG.normal(size=n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.01 * RNG.normal(size=n)], axis=1), labels


def clouds(n: int, apart: float) -> tuple[np.ndarray, np.ndarray]:
    labels = np.arange(n) % 3
    return apart * np.eye(3)[labels] + RNG.normal(size=(n, 3)), labels


def both(make, *arguments) -> measures.Space:
    (a, y), (b, z) = make(120, *arguments), make(90, *arguments)
    groups = [np.array([f"{part}{i // 10}" for i in range(len(x))]) for part, x in (("learnt ", a), ("new ", b))]
    return measures.Space(a, b, y, z, *groups)


def found(space: measures.Space) -> dict[str, float]:
    return measures.measure(space, measures.judge(space))


def test_only_a_kernel_divides_rings_and_it_adds_nothing_to_a_plane():
    rings, near, far = (found(both(*case)) for case in ((ring,), (clouds, 1.0), (clouds, 8.0)))
    assert max(rings["linear"], rings["centroid"]) < 65 and rings["kernel"] > 95
    assert abs(far["kernel"] - far["linear"]) < 3
    assert far["compactness"] < near["compactness"] and far["davies_bouldin"] < near["davies_bouldin"]
    assert far["silhouette"] > near["silhouette"] and far["linear"] > near["linear"]


def test_the_control_sees_that_crossed_classes_need_more_than_a_plane():
    """Also where classes lie so that a plane in other directions would tell the crossed ones apart."""
    values = measures.control(both(clouds, 4.0))
    assert abs(values["linear"] - 50) < 15 and values["kernel"] > 80


def test_the_width_of_the_kernel_is_chosen_without_held_out_images():
    space = both(ring)
    chosen = measures.classifier(space, "kernel")
    other = replace(space, held_out=space.held_out + 5, held_out_labels=1 - space.held_out_labels)
    assert (chosen.predict(space.held_out) == measures.classifier(other, "kernel").predict(space.held_out)).all()
    distances = pdist(space.train, "sqeuclidean").sum() * 2 / len(space.train) ** 2
    assert np.isclose(chosen[0].gamma * distances, measures.GAMMAS).any()


def test_a_class_that_was_not_learnt_and_one_with_one_image_are_left_out():
    one = both(clouds, 8.0)
    strange = replace(
        one,
        held_out=np.concatenate([one.held_out, 50 * np.ones((3, 3))]),
        held_out_labels=np.concatenate([one.held_out_labels, [7, 7, 7]]),
        held_out_groups=np.concatenate([one.held_out_groups, ["new"] * 3]),
    )
    assert found(strange) == found(one)
    pd.testing.assert_frame_equal(measures.judge(strange), measures.judge(one))
    first = one.held_out_labels == 0
    single = replace(
        one, held_out=one.held_out[first], held_out_labels=np.zeros(30, int), held_out_groups=one.held_out_groups[first]
    )
    assert np.isnan(list(found(single).values())).all() and measures.judge(single).empty
    xyz, share = measures.first_components(one)
    turned = measures.first_components(replace(one, train=-one.train, held_out=-one.held_out))[0]
    np.testing.assert_allclose(np.abs(xyz), np.abs(turned), atol=1e-9)
    assert share.sum() == pytest.approx(100) and (np.abs(xyz).max(0) == xyz.max(0)).all()  # the sign is fixed


def test_every_image_has_its_own_values_and_their_means_are_the_measures():
    one = both(clouds, 2.0)
    images = measures.judge(one)
    values = measures.measure(one, images)
    assert images["group"].tolist() == one.held_out_groups.tolist()
    for name in ("linear", "kernel", "centroid"):
        assert set(images[name]) <= {0.0, 100.0}
        assert values[name] == pytest.approx(images.groupby("label")[name].mean().mean())
    assert values["silhouette"] == pytest.approx(images["silhouette"].mean() / 100)


def test_every_training_is_measured_and_what_is_not_trained_once():
    x, labels = clouds(120, 2.0)
    groups = np.array([f"patient {i // 10}" for i in range(120)])
    schedule = Episodes(epochs=3, batch_size=32, k=3)
    methods = [
        Method("frozen", Recipe("scaled", 3, 0), Settings(), search="cosine"),
        Method("head", Recipe("scaled", 3, 2), Settings(hidden=8), schedule),
    ]
    splits = repeated([Split(0, np.arange(80), np.arange(80, 120), 0)], 2)
    fitted = experiment.fit(x.astype(np.float32), labels, methods, splits, workers=1)
    first, second = measures.measured(fitted, x.astype(np.float32), labels, groups)["frozen"]
    assert (first.repeat, second.repeat) == (0, 1) and first.images is second.images
    head = measures.measured(fitted, x.astype(np.float32), labels, groups)["head"]
    assert [one.repeat for one in head] == [0, 1] and head[0].values != head[1].values
    embedded = measures.embed(fitted["head"][1], x.astype(np.float32), labels, groups)
    np.testing.assert_allclose(np.linalg.norm(embedded.held_out, axis=1), 1)
    assert set(embedded.held_out_groups) == set(groups[80:])
