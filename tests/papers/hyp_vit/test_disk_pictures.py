"""The disk keeps neighbours, not radii; its marks are told apart, and its legend leaves it its room."""

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import PoincareBall, Sphere
from lib.papers.hyp_vit import disk_pictures as pictures

CODES = np.repeat(np.arange(4), 15)


@pytest.fixture(scope="module")
def drawn():
    """Four tight clusters on one sphere inside the ball, at 62.1 percent of its radius, and noise."""
    rng = np.random.default_rng(0)
    direction = torch.from_numpy(rng.normal(size=(4, 8))[CODES] + 0.1 * rng.normal(size=(60, 8)))
    points = 0.621 / 0.1**0.5 * torch.nn.functional.normalize(direction, dim=-1)
    noise = torch.from_numpy(np.random.default_rng(1).normal(size=(60, 8)))
    clouds = {"clusters": (points, PoincareBall(0.1)), "noise": (noise, Sphere())}
    clouds = {name: pictures.Cloud(*cloud, CODES) for name, cloud in clouds.items()}
    threads = torch.get_num_threads()
    layouts = {name: pictures.on_disk(cloud) for name, cloud in clouds.items()}
    assert torch.get_num_threads() == threads
    return clouds, layouts, pictures.compared(clouds, layouts).set_index("picture")


def test_a_layout_lies_inside_the_disk_and_comes_out_the_same_again(drawn):
    clouds, layouts, _ = drawn
    assert all((np.linalg.norm(disk, axis=1) < 1).all() for disk in layouts.values())
    np.testing.assert_array_equal(pictures.on_disk(clouds["clusters"]), layouts["clusters"])


def test_clusters_keep_their_neighbours_and_noise_has_none_of_its_own(drawn):
    _, _, rows = drawn
    assert rows.loc["clusters", "same"] == rows.loc["clusters", "same_shown"] == 100
    assert rows.loc["noise", "same"] == pytest.approx(rows.loc["noise", "chance"], abs=8)
    assert rows.loc["clusters", "chance"] == pytest.approx(100 * 14 / 59) and (rows["at_most"] == 10).all()
    assert np.isnan(rows.loc["clusters", "mixed"]) and rows.loc["noise", "mixed"] < rows.loc["noise", "mixed_most"] < 1


def test_own_neighbours_are_counted_as_a_share_of_what_is_possible():
    """Twelve images of three lesions with two, one with one, and one of five: nobody can find ten of the own."""
    codes = np.array([0, 0, 1, 1, 2, 2, 3, *5 * [4]])
    near = np.array([[other for other in range(12) if other != own][: pictures.NEAR] for own in range(12)])
    share = pictures.own_share(near, codes)
    assert np.isnan(share[6]) and (share[:6] == 1).all()
    assert share[7:].tolist() == [3 / 4] * 5  # every list lacks one of eleven others, here one of the own
    assert pictures.possible(codes).tolist() == [1] * 6 + [0] + [4] * 5


def test_the_radius_in_the_picture_is_not_that_of_the_embeddings(drawn):
    """All rest at one radius; UMAP begins in the square from 0 to 10 of the hyperboloid and ends far out."""
    clouds, _, rows = drawn
    assert rows.loc["clusters", "rest"] == pytest.approx(62.1) and np.isnan(rows.loc["noise", "rest"])
    begun = pictures.on_disk(clouds["noise"], epochs=0)
    flat = 2 * begun / (1 - (begun**2).sum(axis=1, keepdims=True))  # back from the disk to the hyperboloid's x and y
    assert flat.min(axis=0) == pytest.approx([0, 0], abs=1e-6) and flat.max(axis=0) == pytest.approx([10, 10], rel=1e-4)
    assert rows.loc["noise", "shown"] > 75


def test_too_few_points_for_a_picture_are_named(drawn):
    cloud = drawn[0]["clusters"]
    with pytest.raises(InputError, match="more than 15 images, and there are 15"):
        pictures.on_disk(pictures.Cloud(cloud.points[:15], cloud.space, CODES[:15]))
