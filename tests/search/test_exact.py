"""Blockwise search against a full stable sort."""

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.geometry.inner import InnerProduct, groups_of
from lib.search import exact, nearest

GEOMETRIES = [Euclidean(), Sphere(), PoincareBall(c=0.7)]
BLOCKS = [(1, 1), (3, 7), (1024, 65536)]
by_name = pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)


def points_in_ball(n, seed, dtype=torch.float64):
    points = np.random.default_rng(seed).normal(size=(n, 4))
    points *= 0.9 / np.maximum(1.5, np.linalg.norm(points, axis=1, keepdims=True))
    return torch.tensor(points, dtype=dtype)


def by_full_sort(query, gallery, k, geometry):
    """Row by row: sort (float64 key, index) pairs of the whole gallery."""
    keys = geometry.rank_key(query.double(), gallery.double()).tolist()
    return [sorted(range(len(gallery)), key=lambda j, row=row: (row[j], j))[:k] for row in keys]


@pytest.fixture
def slower(monkeypatch):
    """Which queries needed more than the proposals: "again", one each, and how many "thoroughly"."""
    ways, within, thoroughly = [], exact.Prepared._within, exact._thoroughly
    monkeypatch.setattr(exact.Prepared, "_within", lambda *a: (ways.append("again"), within(*a))[1])
    monkeypatch.setattr(exact, "_thoroughly", lambda key, n, *a: (ways.append(n), thoroughly(key, n, *a))[1])
    return ways


@by_name
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("n", "size", "k", "block", "ways"),
    [
        *((11, 50, 6, block, [11]) for block in BLOCKS),
        *((60, 3000, 20, block, []) for block in ((7, 300), (256, 131072))),
    ],
)
def test_equals_a_full_sort(geometry, dtype, n, size, k, block, ways, slower):
    """Few points are searched thoroughly; of many, products propose enough."""
    query, gallery = points_in_ball(n, 0, dtype), points_in_ball(size, 1, dtype)
    distances, indices = nearest(query, gallery, k, geometry, block=block)
    assert indices.dtype == torch.int64
    assert distances.dtype == dtype
    assert indices.tolist() == by_full_sort(query, gallery, k, geometry)
    torch.testing.assert_close(distances, geometry.between(query[:, None], gallery[indices]))
    torch.testing.assert_close(distances, geometry.pairwise(query, gallery).sort(dim=1).values[:, :k])
    assert slower == ways


@by_name
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("k", [1, 4, 30])
def test_ties_come_in_gallery_order(geometry, block, k):
    """Ten different points, each three times: indices i, i + 10 and i + 20 follow each other."""
    query, gallery = points_in_ball(8, 2), points_in_ball(10, 3).repeat(3, 1)
    indices = nearest(query, gallery, k, geometry, block=block)[1]
    for row, found in enumerate(indices.tolist()):
        ranking = geometry.between(query[row], gallery[:10]).argsort().tolist()
        assert found == [i + copy for i in ranking for copy in (0, 10, 20)][:k]


@pytest.mark.parametrize("block", BLOCKS)
def test_the_query_is_left_out_by_identity_and_its_duplicate_stays(block):
    points = points_in_ball(20, 6)
    points[7] = points[3]
    ids = [f"image {i}" for i in range(20)]
    distances, indices = nearest(points, points, 1, PoincareBall(), ids, ids, block)
    assert indices[3].item() == 7
    assert indices[7].item() == 3
    assert distances[[3, 7]].tolist() == [[0.0], [0.0]]
    assert (indices.squeeze(1) != torch.arange(20)).all()


@pytest.mark.parametrize("block", BLOCKS)
def test_rows_with_too_few_left_are_padded(block):
    """Patient p has three of the four images, so only one other image is left for its queries."""
    gallery = torch.tensor([[0.0], [1.0], [2.0], [5.0]])
    query = torch.tensor([[0.0], [4.0]])
    distances, indices = nearest(query, gallery, 3, Euclidean(), ["p", "r"], ["p", "p", "p", "r"], block)
    assert indices.tolist() == [[3, -1, -1], [2, 1, 0]]
    assert distances.tolist() == [[5.0, torch.inf, torch.inf], [2.0, 3.0, 4.0]]


def near_the_rim(n, seed, d=64):
    """Points from 0.9999 of the radius on, where float32 distances round off more than neighbours differ by."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(1, d)) + 0.1 * random.normal(size=(n, d))
    radius = random.uniform(0.9999, 0.999999, (n, 1))
    return torch.from_numpy(radius * points / np.linalg.norm(points, axis=1, keepdims=True)).float()


@pytest.mark.parametrize("size", [60, 2000], ids=["thoroughly", "by products"])
def test_distances_ascend_and_each_is_that_of_its_item(size):
    gallery = near_the_rim(size, 0)
    query = gallery[::10]
    distances, indices = nearest(query, gallery, 40, PoincareBall())
    assert (distances.diff(dim=1) >= 0).all()
    exact = PoincareBall().between(query.double()[:, None], gallery[indices].double())
    assert torch.equal(distances, exact.float())
    narrow = PoincareBall().between(query[:, None], gallery[indices])
    assert (narrow.diff(dim=1) < 0).any()  # what float32 would have said


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("d", [4, 384])
@pytest.mark.parametrize("far", [20.0, 1e25])
def test_points_on_the_rim_are_refused_on_either_side_of_it(far, d, dtype):
    """Half of what exp0 sends to the rim is rounded to just inside it."""
    inside = points_in_ball(40, 0, dtype).repeat(1, d // 4) / (d // 4)
    direction = torch.from_numpy(np.random.default_rng(1).normal(size=(30, d))).to(dtype)
    for row in PoincareBall().exp0(far * direction / direction.norm(dim=1, keepdim=True)):
        outside = inside.clone()
        outside[7] = row
        with pytest.raises(InputError, match="gallery row 7 lies on the rim of the ball or beyond it"):
            nearest(inside, outside, 1, PoincareBall())
        with pytest.raises(InputError, match="query row 7 lies on the rim of the ball or beyond it"):
            nearest(outside, inside, 1, PoincareBall())


# Proposals by matrix products


@pytest.mark.parametrize("radius", [0.5, 0.9999])
@pytest.mark.parametrize("spread", [1e-2, 1e-7])
def test_crowded_points_keep_the_order_of_float64(radius, spread):
    """Near-duplicates, down to float32 noise, out to the rim: what products cannot tell apart is looked at twice."""
    place = torch.tensor([[0.6, -0.8, 0.0, 0.0]]) * radius
    cloud = torch.from_numpy(np.random.default_rng(3).normal(size=(1200, 4))).float()
    gallery = PoincareBall().project(place + spread * cloud, margin=1e-5)
    query = gallery[::100]
    indices = nearest(query, gallery, 10, PoincareBall())[1]
    assert indices.tolist() == by_full_sort(query, gallery, 10, PoincareBall())


@by_name
def test_ids_are_left_out_of_proposals_too(geometry):
    query, gallery = points_in_ball(40, 24, torch.float32), points_in_ball(900, 25, torch.float32)
    query_ids, gallery_ids = [i % 7 for i in range(40)], [i % 7 for i in range(900)]
    indices = nearest(query, gallery, 15, geometry, query_ids, gallery_ids)[1]
    for i, found in enumerate(indices.tolist()):
        others = [j for j in range(900) if j % 7 != i % 7]
        expected = by_full_sort(query[i : i + 1], gallery[others], 15, geometry)[0]
        assert found == [others[j] for j in expected]


def test_equal_points_beyond_the_proposals_come_in_gallery_order(slower):
    gallery = torch.cat([points_in_ball(300, 27, torch.float32), torch.zeros(200, 4)])
    indices = nearest(torch.zeros(1, 4), gallery, 20, PoincareBall())[1]
    assert indices.tolist() == [list(range(300, 320))]
    assert slower == ["again"]
    few = torch.from_numpy(np.random.default_rng(10).integers(0, 40, size=(2000, 1))).float()
    query = torch.tensor([[0.0], [3.0], [17.25]])  # ties within the first k and beyond, where topk shuffles them
    for k in (10, 300):
        found = nearest(query, few, k, Euclidean(), block=(2, 300))[1]
        assert found.tolist() == by_full_sort(query, few, k, Euclidean())


@pytest.mark.parametrize("far", [0.0, 1e25], ids=["zero on the sphere", "too far for float32 products"])
def test_what_has_no_place_in_the_products_is_searched_thoroughly(far, slower):
    gallery = points_in_ball(400, 28, torch.float32)
    gallery[3] = far
    geometry = Euclidean() if far else Sphere()
    assert nearest(gallery[3:4], gallery, 1, geometry)[1].tolist() == [[3]]
    assert slower == [1]


@pytest.mark.parametrize("width", [0, 1, 63, 64, 2573])
def test_what_reaches_a_score_is_what_is_not_below_it(width):
    scores = torch.randint(0, 50, (width,), generator=torch.Generator().manual_seed(width)).float()
    for least in torch.tensor([-torch.inf, 0, 25, 49, 60]):
        assert torch.equal(exact._reaching(least, groups_of(scores[None])), (scores >= least).nonzero()[:, 0])


@by_name
@pytest.mark.parametrize("flat", [True, False], ids=["few directions", "all alike"])
def test_a_lead_tells_nothing_else(geometry, flat, monkeypatch):
    """Where it tells enough, single queries are answered by it, and where it does not, there is none."""
    monkeypatch.setattr(exact, "MANY", 3000)
    stretched = torch.from_numpy(np.random.default_rng(5).normal(size=(6200, 16))).float() * 0.05
    if flat:
        stretched[:, 4:] *= 0.02
    gallery, query = stretched[:6000], stretched[6000:]
    plain = exact.Prepared.of(gallery, InnerProduct.about(geometry, gallery))
    led = plain.led()
    assert (led.lead is not None) == flat
    used = 0
    gone = torch.arange(6000) % 3 == 0
    for row in query.split(1):
        for hidden in (None, lambda rows, columns: gone[columns]):
            assert torch.equal(led.find(row, 10, hidden), plain.find(row, 10, hidden))
        used += flat and led._by_lead(row, slice(0, 1), 10, None) is not None
    assert used > 100 or not flat
    few = led.find(query[:1], 10, lambda rows, columns: (torch.arange(6000) > 3)[columns])
    assert (few[0, :4] >= 0).all() and (few[0, 4:] == -1).all()


POINTS = torch.zeros(4, 2)
WITH_NAN = torch.tensor([[0.0, 0.0], [0.0, torch.nan], [0.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((POINTS, POINTS, 5, Euclidean()), "k = 5, but the gallery has 4 items"),
        ((POINTS, POINTS, 0, Euclidean()), "k = 0"),
        ((POINTS, POINTS[:0], 1, Euclidean()), "the gallery is empty"),
        ((POINTS[:0], POINTS, 1, Euclidean()), "the query is empty"),
        ((POINTS, POINTS[:, :1], 1, Euclidean()), r"\(4, 2\) and \(4, 1\)"),
        ((POINTS[0], POINTS, 1, Euclidean()), r"\(2,\) and \(4, 2\)"),
        ((POINTS, POINTS.double(), 1, Euclidean()), "convert one of them"),
        ((WITH_NAN, POINTS, 1, Euclidean()), "query row 1 holds NaN"),
        ((POINTS, WITH_NAN, 1, Euclidean()), "gallery row 1 holds NaN"),
        ((POINTS, POINTS, 1, Euclidean(), None, list("abcd")), "both query_ids and gallery_ids"),
        ((POINTS, POINTS, 1, Euclidean(), list("abc"), list("abcd")), r"query ids have shape \(3,\)"),
        ((POINTS, POINTS, 1, Euclidean(), None, None, (0, 8)), "block"),
        ((POINTS, POINTS, 1, Euclidean(), None, None, 8), "block"),
    ],
)
def test_broken_input_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        nearest(*arguments)
