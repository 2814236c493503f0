"""Inner products that order like distances."""

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.geometry.inner import InnerProduct, beside_sphere, groups_of, largest, on_sphere, optimistic, with_norms

SPACES = [Euclidean(), Sphere(), PoincareBall(0.0), PoincareBall(1.0), PoincareBall(0.3)]
every_space = pytest.mark.parametrize("space", SPACES, ids=str)


def points(n: int, seed: int, reach: float = 0.95) -> torch.Tensor:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 6))
    return torch.from_numpy(x / np.linalg.norm(x, axis=1, keepdims=True) * random.uniform(0, reach, (n, 1))).float()


def plain_key(space, x, y) -> float:
    """‖x − y‖² g(y), written out."""
    x, y = x.double().numpy(), y.double().numpy()
    if isinstance(space, Sphere):
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    c = space.c if isinstance(space, PoincareBall) else 0.0
    return float(((x - y) ** 2).sum() / (1 - c * (y**2).sum()))


@every_space
def test_the_product_is_minus_the_key(space):
    x, y = points(7, 0), points(9, 1)
    form = InnerProduct.about(space, y)
    product = form.query(x).double() @ form.gallery(y).double().T
    expected = [[-plain_key(space, a, b) for b in y] for a in x]
    np.testing.assert_allclose(product.numpy(), expected, rtol=1e-4, atol=1e-5)
    each = form.keys(x, y.expand(7, 9, 6))
    np.testing.assert_allclose(-each.numpy(), expected, rtol=1e-12, atol=1e-14)


@every_space
def test_the_centre_changes_no_key_and_makes_far_clouds_exact(space):
    x, y = points(5, 4), points(5, 5)
    here, there = InnerProduct.about(space, y), InnerProduct(space, torch.zeros(6, dtype=torch.float64))
    products = [form.query(x) @ form.gallery(y).T for form in (here, there)]
    torch.testing.assert_close(*products, rtol=1e-4, atol=1e-5)


def test_without_the_centre_a_far_cloud_is_lost_in_rounding():
    y = 100 + 1e-3 * points(300, 6)
    centred, bare = InnerProduct.about(Euclidean(), y), InnerProduct(Euclidean(), torch.zeros(6, dtype=torch.float64))
    exact = centred.keys(y[:50], y.expand(50, 300, 6))
    for form, bound in ((centred, 1e-11), (bare, None)):
        off = (form.query(y[:50]) @ form.gallery(y).T + exact).abs().max().item()
        assert off < bound if bound else off > 1e-4


@pytest.mark.parametrize("reach", [0.3, 0.99, 0.99999])
@every_space
def test_the_optimistic_product_is_never_below_the_exact_one(space, reach):
    x, y = points(300, 7, reach), points(300, 8, reach)
    y[:100] = x[:100] + 1e-6 * points(100, 9)  # near-duplicates, where terms cancel
    if isinstance(space, PoincareBall):
        x, y = (space.project(p, margin=1e-6) for p in (x, y))
    form = InnerProduct.about(space, y)
    left, right = optimistic(form.query(x)), with_norms(form.gallery(y))
    assert ((left @ right.T).double() >= -form.keys(x, y.expand(300, 300, 6))).all()


@every_space
def test_on_the_sphere_the_order_is_the_same_and_lengths_are_one(space):
    x, y = points(10, 10), points(80, 11)
    form = InnerProduct.about(space, y)
    gallery, query = on_sphere(form.gallery(y)), beside_sphere(form.query(x))
    for vectors in (gallery, query):
        torch.testing.assert_close(vectors.norm(dim=1), torch.ones(len(vectors)), atol=1e-5, rtol=0)
    keys = form.keys(x, y.expand(10, 80, 6))
    best = (query @ gallery.T).argmax(1)
    torch.testing.assert_close(keys.gather(1, best[:, None])[:, 0], keys.min(1).values, rtol=1e-4, atol=1e-6)


def test_points_without_a_place_are_named():
    ball = InnerProduct.about(PoincareBall(), points(4, 12))
    with pytest.raises(InputError, match="row 1 lies on the rim"):
        ball.gallery(torch.tensor([[0.0] * 6, [1.0] + [0.0] * 5]))
    with pytest.raises(InputError, match="row 0 lies on the rim"):
        ball.query(torch.full((1, 6), torch.nan))
    with pytest.raises(InputError, match="row 0 is zero"):
        InnerProduct.about(Sphere(), points(4, 12)).gallery(torch.zeros(1, 6))


@pytest.mark.parametrize("shape", [(5, 100), (4, 64 * 40 + 13)])
@pytest.mark.parametrize("n", [1, 33])
@pytest.mark.parametrize("size", [16, 64])
def test_the_largest_are_those_of_a_sort(shape, n, size):
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(n))
    best, columns = largest(scores, n, groups_of(scores, size))
    torch.testing.assert_close(best, scores.gather(1, columns))
    assert torch.equal(best.sort(descending=True).values, scores.sort(descending=True).values[:, :n])
