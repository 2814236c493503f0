"""The controls are what their names say, and the copies lose what they are said to lose."""

import numpy as np
import pytest
import torch

from lib.geometry.hyperbolicity import hyperbolicity
from lib.papers.hyp_vit.hyperbolicity import controls


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def x(random) -> np.ndarray:
    """Numbers that belong together: the second is the first and noise, the third is far longer."""
    first = random.normal(size=400)
    columns = [first, first + 0.1 * random.normal(size=400), 20 * random.exponential(size=400)]
    return np.stack(columns, axis=1).astype(np.float32)


def test_known_spaces_come_in_the_order_of_the_figure(random):
    names, dims, distances = zip(*controls.known(40, [2, 64], random), strict=True)
    assert names[0] == "random tree" and names[-1].startswith("sphere")
    assert [name for name in names if name.startswith("Gaussian")] == [
        "Gaussian cloud, 2 numbers",
        "Gaussian cloud, 64 numbers",
    ]
    assert [d for name, d in zip(names, dims, strict=True) if name.startswith("Gaussian")] == [2, 64]
    assert all(one.shape == (40, 40) and torch.equal(one.diagonal(), torch.zeros(40)) for one in distances)


def test_disks_obey_the_ceiling_of_the_plane_and_reach_their_radius(random):
    """By the four-point definition the plane of curvature -1 is ln 2-hyperbolic."""
    for radius in controls.BALL:
        found = hyperbolicity(controls.disk(200, radius, random).double(), base=0)
        assert found.delta <= np.log(2) + 1e-9
        assert 1.6 * radius < found.diameter <= 2 * radius + 1e-6


def test_a_disk_is_filled_evenly_by_area(random):
    """The area within ρ grows as cosh ρ - 1: half of it lies within arccosh((1 + cosh R) / 2)."""
    distances = controls.disk(4000, 3.0, random)
    within = np.arccosh((1 + np.cosh(3.0)) / 2)
    away = distances.mean(dim=1)  # those nearest to all others are nearest to the centre
    inner = away.argsort()[:2000]
    centre = away.argmin()
    assert distances[centre, inner].max().item() == pytest.approx(within, abs=0.25)


def test_great_circles_are_as_far_from_a_tree_as_can_be(random):
    *_, (name, _, distances) = controls.known(400, [2], random)
    assert name.startswith("sphere") and hyperbolicity(distances.float(), base=0).relative > 0.8


def test_shuffling_keeps_every_column_and_no_pair(x, random):
    copy = controls.shuffled(x, random)
    assert np.array_equal(np.sort(copy, axis=0), np.sort(x, axis=0))
    assert np.corrcoef(x.T)[0, 1] > 0.9 and abs(np.corrcoef(copy.T)[0, 1]) < 0.2


def test_the_gaussian_has_the_covariance_and_no_tails(x, random):
    copies = np.concatenate([controls.gaussian(x, random) for _ in range(20)])
    np.testing.assert_allclose(np.cov(copies.T), np.cov(x.T), rtol=0.1, atol=0.3)
    np.testing.assert_allclose(copies.mean(axis=0), x.mean(axis=0), atol=0.7)
    assert x[:, 2].min() > 0 > copies[:, 2].min() and copies.dtype == np.float32


def test_unit_length_survives_an_empty_image(x, random):
    x[0] = 0
    norms = np.linalg.norm(controls.unit_length(x, random), axis=1)
    np.testing.assert_allclose(norms[1:], 1, rtol=1e-6)
    assert norms[0] == 0
