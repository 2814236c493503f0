"""The disk keeps neighbours, not radii; a grid gives every image a place of its own."""

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import PoincareBall, Sphere
from lib.papers.hyp_vit.disk import layout

CODES = np.repeat(np.arange(4), 15)


@pytest.fixture(scope="module")
def cloud():
    """Four tight clusters on one sphere inside the ball of curvature -0.1, at 62.1 percent of its radius."""
    rng = np.random.default_rng(0)
    direction = torch.from_numpy(rng.normal(size=(4, 8))[CODES] + 0.1 * rng.normal(size=(60, 8)))
    return layout.Cloud(0.621 / 0.1**0.5 * torch.nn.functional.normalize(direction, dim=-1), PoincareBall(0.1), CODES)


@pytest.fixture(scope="module")
def pictures(cloud):
    noise = layout.Cloud(torch.from_numpy(np.random.default_rng(1).normal(size=(60, 8))), Sphere(), CODES)
    clouds = {"clusters": cloud, "noise": noise}
    layouts = {name: layout.on_disk(one) for name, one in clouds.items()}
    return clouds, layouts, layout.compared(clouds, layouts).set_index("picture")


def test_a_layout_lies_inside_the_disk_and_comes_out_the_same_again(cloud, pictures):
    _, layouts, _ = pictures
    assert all((np.linalg.norm(disk, axis=1) < 1).all() for disk in layouts.values())
    np.testing.assert_array_equal(layout.on_disk(cloud), layouts["clusters"])


def test_a_layout_leaves_torch_the_threads_that_it_had(cloud):
    threads = torch.get_num_threads()
    layout.on_disk(cloud, epochs=0)
    assert torch.get_num_threads() == threads


def test_clusters_keep_their_neighbours_and_noise_has_none_of_its_own(pictures):
    _, _, rows = pictures
    assert rows.loc["clusters", "same"] == rows.loc["clusters", "same_shown"] == 100
    assert rows.loc["noise", "same"] == pytest.approx(rows.loc["noise", "chance"], abs=8)
    assert rows.loc["clusters", "chance"] == pytest.approx(100 * 14 / 59) and (rows["at_most"] == 10).all()
    assert np.isnan(rows.loc["clusters", "mixed"]) and rows.loc["noise", "mixed"] < rows.loc["noise", "mixed_most"] < 1


def test_own_neighbours_are_counted_as_a_share_of_what_is_possible():
    """Twelve images of three lesions with two, one with one, and one of five: nobody can find ten of the own."""
    codes = np.array([0, 0, 1, 1, 2, 2, 3, *5 * [4]])
    near = np.array([[other for other in range(12) if other != own][: layout.NEAR] for own in range(12)])
    share = layout.own_share(near, codes)
    assert np.isnan(share[6]) and (share[:6] == 1).all()
    assert share[7:].tolist() == [3 / 4] * 5  # every list lacks one of eleven others, here one of the own
    assert layout.possible(codes).tolist() == [1] * 6 + [0] + [4] * 5
    assert layout._chance(codes) == pytest.approx(10 / 11)  # each of the others is found with ten of eleven draws


def test_tied_shares_bound_the_correlation(cloud):
    """Half of the images find all their own and the others none: the best order of radii cannot reach 1."""
    radius, share = np.arange(60.0), np.arange(60) >= 30
    assert layout._correlation(radius, share.astype(float)) == pytest.approx(3**0.5 / 2, abs=1e-3)
    some = share.astype(float)
    some[0] = np.nan
    assert layout._correlation(radius, some) == pytest.approx(layout._correlation(radius[1:], some[1:]))


def test_the_radius_in_the_picture_is_not_that_of_the_embeddings(pictures):
    """All rest at one radius; UMAP begins in the square from 0 to 10 of the hyperboloid and ends far out."""
    clouds, layouts, rows = pictures
    assert rows.loc["clusters", "rest"] == pytest.approx(62.1) and np.isnan(rows.loc["noise", "rest"])
    assert rows.loc["noise", "shown"] > 75 and np.ptp(np.linalg.norm(layouts["clusters"], axis=1)) > 0.001
    begun = layout.on_disk(clouds["noise"], epochs=0)
    flat = 2 * begun / (1 - (begun**2).sum(axis=1, keepdims=True))  # back from the disk to the hyperboloid's x and y
    assert flat.min(axis=0) == pytest.approx([0, 0], abs=1e-6) and flat.max(axis=0) == pytest.approx([10, 10], rel=1e-4)


def test_too_few_points_for_a_picture_are_named(cloud):
    few = layout.Cloud(cloud.points[:15], cloud.space, CODES[:15])
    with pytest.raises(InputError, match="more than 15 images, and there are 15"):
        layout.on_disk(few)
