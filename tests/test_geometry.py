"""lib.geometry against geoopt in float64, against numpy, and against values worked by hand."""

import itertools
import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.utils._python_dispatch import TorchDispatchMode

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    import geoopt

CURVATURES = (1e-3, 1e-2, 0.1, 1.0, 5.0)
RADII = (0.1, 0.3, 0.62, 0.9, 0.99, 0.996, 0.999)
DTYPES = (torch.float32, torch.float64)
SPACES = (Euclidean(), Sphere(), PoincareBall(0.0), PoincareBall(0.1), PoincareBall(1.0))
every_space = pytest.mark.parametrize("space", SPACES, ids=str)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
properties = settings(max_examples=40, deadline=None, derandomize=True)


def directions(n: int, d: int, seed: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (x / x.norm(dim=-1, keepdim=True)).to(dtype)


def points(n: int, d: int, seed: int, reach: float = 0.95) -> torch.Tensor:
    """Points of the unit ball with norms between 0 and ``reach``, float64."""
    radius = torch.rand(n, 1, generator=torch.Generator().manual_seed(seed + 1000), dtype=torch.float64)
    return directions(n, d, seed) * radius * reach


def reference(c: float) -> geoopt.PoincareBall:
    return geoopt.PoincareBall(torch.tensor(c, dtype=torch.float64))


def gradients(value: torch.Tensor, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(value.sum(), inputs)


# Distance in the ball


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("c", CURVATURES)
def test_distance_agrees_with_geoopt(c, radius):
    x, y = directions(20, 8, seed=0) * radius / c**0.5, points(30, 8, seed=1, reach=radius) / c**0.5
    expected = reference(c).dist(x[:, None], y[None])
    assert expected.dtype == torch.float64
    torch.testing.assert_close(PoincareBall(c).pairwise(x, y), expected, rtol=1e-8, atol=0)
    torch.testing.assert_close(PoincareBall(c).between(x, y[:20]), expected.diagonal(), rtol=1e-8, atol=0)


@every_dtype
@every_space
def test_distance_to_itself_is_exactly_zero(space, dtype):
    x = (points(12, 37, seed=2) * 0.9).to(dtype)
    x = torch.cat([x, x[[0, 0, 5]], torch.zeros(2, 37, dtype=dtype), 2 * x[:2] / x[:2].norm(dim=-1, keepdim=True)])
    column_major = x.T.contiguous().T
    for y in (x, column_major):
        distance = space.pairwise(x, y)
        assert distance.dtype == dtype
        assert (distance.diagonal() == 0).all()
        assert distance[0, 12] == distance[12, 13] == distance[5, 14] == distance[15, 16] == 0
        assert (space.between(x, y) == 0).all()


@every_dtype
@every_space
def test_distance_is_symmetric(space, dtype):
    x, y = points(40, 16, seed=3).to(dtype), points(50, 16, seed=4).to(dtype)
    forth, back = space.pairwise(x, y), space.pairwise(y, x)
    assert forth.dtype == dtype
    torch.testing.assert_close(forth, back.T, rtol=4 * torch.finfo(dtype).eps, atol=0)
    assert (forth > 0).all()


@every_space
@given(seed=st.integers(0, 10_000), reach=st.floats(1e-6, 0.999), d=st.integers(1, 12))
@properties
def test_triangle_inequality(space, seed, reach, d):
    x = points(9, d, seed, reach)
    distance = space.pairwise(x, x)
    detour = (distance[:, :, None] + distance[None, :, :]).min(dim=1).values
    assert (distance <= detour * (1 + 1e-9) + 1e-15).all()


@every_dtype
def test_flat_limit(dtype):
    x, y = points(20, 6, seed=5).to(dtype), points(30, 6, seed=6).to(dtype)
    flat = PoincareBall(0.0).pairwise(x, y)
    assert flat.dtype == dtype
    torch.testing.assert_close(flat, 2 * (x[:, None] - y[None]).norm(dim=-1))
    assert (PoincareBall(1e-30).pairwise(x, y) == flat).all()
    assert (PoincareBall(0.0).exp0(x) == x).all()
    assert (PoincareBall(0.0).log0(x) == x).all()
    assert (PoincareBall(0.0).project(1e6 * x) == 1e6 * x).all()


def test_error_of_the_flat_limit_is_of_first_order_in_c_with_the_right_slope():
    x, y = points(20, 6, seed=5), points(30, 6, seed=6)
    chord = (x[:, None] - y[None]).norm(dim=-1)
    norms = x.square().sum(-1)[:, None] + y.square().sum(-1)[None]
    slope = chord * norms - chord**3 / 3  # from u = chord·(1 + c·norms/2) and asinh(√c u)/√c = u − cu³/6
    remainders = [(PoincareBall(c).pairwise(x, y) - 2 * chord - c * slope).abs().max() for c in (1e-3, 1e-4)]
    assert remainders[0] < 1e-5
    assert remainders[0] / remainders[1] == pytest.approx(100, rel=0.05)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        c = torch.tensor(0.0, dtype=dtype, requires_grad=True)
        value = PoincareBall(c).pairwise(x.to(dtype), y.to(dtype))
        (got,) = gradients(value, c)
        assert got.dtype == value.dtype == dtype
        torch.testing.assert_close(got, slope.sum().to(dtype), rtol=tolerance, atol=0)


class LargestTensor(TorchDispatchMode):
    """Remembers the largest number of elements that any operation returned."""

    numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, tensor.numel())
        return result


@every_space
@pytest.mark.parametrize("n_alike", (0, 36, 120))
def test_pairwise_never_holds_a_tensor_of_all_pairs_times_dimensions(space, n_alike):
    """Not even where many points lie on top of each other: near pairs are looked at one by one."""
    n, d = 120, 400
    x, y = ((points(n, d, seed) * 0.9).float() for seed in (9, 10))
    x[:n_alike] = y[:n_alike] = x[0]
    x.requires_grad_(), y.requires_grad_()
    with LargestTensor() as largest:
        gradients(space.pairwise(x, y), x, y)
        gradients(space.pairwise(x, x), x)
        space.rank_key(x, y)
    assert n * n <= largest.numel <= n * d


# Gradients


@pytest.mark.parametrize("c", (0.1, 1.0, 5.0))
def test_gradients_of_the_ball_are_correct(c):
    x, y = ((points(n, 3, seed) / c**0.5).requires_grad_() for n, seed in ((3, 11), (4, 12)))
    weights = torch.tensor([0.2, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    c = torch.tensor(c, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x, y, c: PoincareBall(c).pairwise(x, y), (x, y, c))
    assert gradcheck(lambda x, y, c: PoincareBall(c).between(x, y[:3]), (x, y, c))
    assert gradcheck(lambda x, y, c: PoincareBall(c).rank_key(x, y), (x, y, c))
    assert gradcheck(lambda x, c: PoincareBall(c).exp0(3 * x), (x, c))
    assert gradcheck(lambda x, c: PoincareBall(c).log0(x), (x, c))
    assert gradcheck(lambda x, c: PoincareBall(c).project(x, margin=0.5), (x, c))
    assert gradcheck(lambda x, w, c: PoincareBall(c).mean(x, w), (x, weights, c))


def slopes_in_c(c: float, dtype: torch.dtype) -> list[float]:
    """Slopes in c of tanh(√c)/√c, artanh(√c)/√c and the distance 2·artanh(√c)/√c."""
    c = torch.tensor(c, dtype=dtype, requires_grad=True)
    zero, one = torch.zeros(1, dtype=dtype), torch.ones(1, dtype=dtype)
    ball = PoincareBall(c)
    values = ball.exp0(one), ball.log0(one), ball.between(zero, one)
    assert {value.dtype for value in values} == {dtype}
    return [float(*gradients(value, c)) for value in values]


def test_slope_in_c_does_not_drown_in_rounding_at_small_c():
    c = 1e-8
    expected = [-1 / 3 + 4 * c / 15, 1 / 3 + 2 * c / 5, 2 / 3 + 4 * c / 5]
    assert slopes_in_c(c, torch.float64) == pytest.approx(expected, rel=1e-14, abs=0)
    assert slopes_in_c(c, torch.float32) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("space", (Euclidean(), Sphere()), ids=str)
def test_gradients_of_flat_space_and_sphere_are_correct(space):
    x, y = (points(n, 3, seed).requires_grad_() for n, seed in ((3, 11), (4, 12)))
    weights = torch.tensor([0.2, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(space.pairwise, (x, y))
    assert gradcheck(lambda x, y: space.between(x, y[:3]), (x, y))
    assert gradcheck(space.rank_key, (x, y))
    assert gradcheck(space.project, (x,))
    assert gradcheck(space.mean, (x, weights))


def awkward_rows(c: float, dtype: torch.dtype) -> torch.Tensor:
    """Norms log-uniform in 1e-15 to 1, zero, just inside, on and beyond the rim; each row twice."""
    norms = torch.cat([10.0 ** torch.linspace(-15, 0, 31), torch.zeros(1)])
    rim = torch.tensor([1 - 1e-6, 1.0, 1 + 1e-6, 1.5, 40.0]) / max(c, 1e-6) ** 0.5
    norms = torch.cat([norms, rim]).to(dtype)
    return (directions(len(norms), 4, seed=13, dtype=dtype) * norms[:, None]).repeat(2, 1)


@every_dtype
@pytest.mark.parametrize("c", (0.0, 1e-15, 1e-6, 0.1, 1.0, 10.0))
def test_gradients_of_the_ball_are_finite_everywhere(c, dtype):
    x = awkward_rows(c, dtype).requires_grad_()
    curvature = torch.tensor(c, dtype=dtype, requires_grad=True)
    ball = PoincareBall(curvature)
    for result in (
        ball.pairwise(x, x),
        ball.between(x, x),
        ball.between(x, x.flip(0)),
        ball.exp0(x),
        ball.log0(x),
        ball.project(x),
        ball.mean(x),
        ball.rank_key(x, x),
        ball.conformal_factor(x),
    ):
        assert result.dtype == dtype
        assert result.isfinite().all()
        for gradient in gradients(result, x, curvature):
            assert gradient.dtype == dtype
            assert gradient.isfinite().all()


@every_dtype
@pytest.mark.parametrize("space", (Euclidean(), Sphere()), ids=str)
def test_gradients_of_flat_space_and_sphere_are_finite_everywhere(space, dtype):
    x = awkward_rows(1.0, dtype).requires_grad_()
    antipodes = torch.cat([x, -x])
    for result in (
        space.pairwise(antipodes, x),
        space.between(x, x),
        space.between(x, -x),
        space.project(x),
        space.mean(x),
        space.mean(antipodes),
        space.rank_key(antipodes, x),
    ):
        assert result.dtype == dtype
        assert result.isfinite().all()
        (gradient,) = gradients(result, x)
        assert gradient.dtype == dtype
        assert gradient.isfinite().all()


@every_space
def test_no_gradient_at_equal_points(space):
    x = points(3, 4, seed=14).requires_grad_()
    for distance in (space.pairwise(x, x.detach()).diagonal(), space.between(x, x.detach())):
        assert (gradients(distance, x)[0] == 0).all()


@every_dtype
@pytest.mark.parametrize("factor", (1.0, 1.0001, 3.0))
def test_a_point_on_or_over_the_rim_is_not_stuck(factor, dtype):
    c = 0.5
    x = (directions(5, 4, seed=15, dtype=dtype) * factor / c**0.5).requires_grad_()
    for distance in (
        PoincareBall(c).pairwise(x, torch.zeros(1, 4, dtype=dtype)),
        PoincareBall(c).log0(x).norm(dim=-1),
    ):
        assert distance.dtype == dtype
        (gradient,) = gradients(distance, x)
        outward = (gradient * x.detach()).sum(-1) / x.detach().norm(dim=-1)
        assert (outward > 0.1).all()


# Origin maps


@pytest.mark.parametrize("c", CURVATURES)
def test_origin_maps_agree_with_geoopt(c):
    v, x = 4 * points(30, 6, seed=16), points(30, 6, seed=17, reach=0.999) / c**0.5
    torch.testing.assert_close(PoincareBall(c).exp0(v), reference(c).expmap0(v, project=False), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(PoincareBall(c).log0(x), reference(c).logmap0(x), rtol=1e-9, atol=1e-12)


@every_dtype
@pytest.mark.parametrize("c", (0.0, *CURVATURES))
def test_exp0_and_log0_undo_each_other(c, dtype):
    ball, tolerance = PoincareBall(c), 1e-4 if dtype == torch.float32 else 1e-11
    v = (points(50, 6, seed=18, reach=3.0) / max(c, 1.0) ** 0.5).to(dtype)
    x = (points(50, 6, seed=19, reach=0.99) / max(c, 1e-3) ** 0.5).to(dtype)
    for there, back in ((v, ball.log0(ball.exp0(v))), (x, ball.exp0(ball.log0(x)))):
        assert back.dtype == dtype
        assert ((back - there).norm(dim=-1) / there.norm(dim=-1)).max() < tolerance


@every_dtype
@pytest.mark.parametrize("c", (0.0, 0.1, 5.0))
def test_origin_maps_at_the_origin_are_the_identity_to_first_order(c, dtype):
    zero = torch.zeros(3, dtype=dtype)
    for function in (PoincareBall(c).exp0, PoincareBall(c).log0):
        assert (function(zero) == 0).all()
        jacobian = torch.autograd.functional.jacobian(function, zero)
        assert jacobian.dtype == dtype
        assert (jacobian == torch.eye(3, dtype=dtype)).all()


# Projection


@every_dtype
@pytest.mark.parametrize("margin", (None, 0.1))
@pytest.mark.parametrize("c", (0.1, 1.0, 5.0))
def test_project_shortens_what_is_outside_and_leaves_the_rest_to_the_bit(c, margin, dtype):
    limit = 1 - ({torch.float32: 1e-3, torch.float64: 1e-5}[dtype] if margin is None else margin)
    direction = directions(40, 5, seed=22, dtype=dtype) / c**0.5
    inside = direction * torch.linspace(0, limit - 1e-6, 40, dtype=dtype)[:, None]
    outside = direction * torch.linspace(limit + 1e-6, 50, 40, dtype=dtype)[:, None]
    projected = PoincareBall(c).project(torch.cat([inside, outside]), margin=margin)
    assert projected.dtype == dtype
    assert (projected[:40] == inside).all()
    torch.testing.assert_close(projected[40:], direction * limit)


# Sphere


def test_sphere_agrees_with_arccos():
    x, y = points(20, 6, seed=23).numpy(), points(30, 6, seed=24).numpy()
    cosine = (x @ y.T) / np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1))
    expected = torch.from_numpy(np.arccos(cosine))
    got = Sphere().pairwise(torch.from_numpy(x), torch.from_numpy(y))
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(Sphere().between(*map(torch.from_numpy, (x, y[:20]))), expected.diagonal())


@every_dtype
@pytest.mark.parametrize("angle", (1e-12, 1e-7, 1e-5, 1e-3, 0.5))
def test_sphere_is_accurate_near_zero_and_near_pi(angle, dtype):
    x = 3 * torch.tensor([[1.0, 0.0]], dtype=dtype)
    y = 0.2 * torch.tensor([[math.cos(angle), math.sin(angle)]], dtype=dtype)
    eps = torch.finfo(dtype).eps
    for distance in (Sphere().pairwise, Sphere().between):
        assert distance(x, y).dtype == dtype
        assert float(distance(x, y)) == pytest.approx(angle, rel=4 * eps, abs=0)
        assert float(distance(x, -y)) == pytest.approx(math.pi - angle, rel=4 * eps)


def test_zero_vectors_are_a_right_angle_from_every_direction():
    x = torch.cat([torch.zeros(1, 3), directions(4, 3, seed=25, dtype=torch.float32)])
    expected = torch.full((4,), math.pi / 2)
    torch.testing.assert_close(Sphere().pairwise(x, x)[0, 1:], expected)
    torch.testing.assert_close(Sphere().between(x[1:], torch.zeros(3)), expected)
    assert (Sphere().project(torch.zeros(2, 3)) == 0).all()
    zero = torch.zeros(1, 3, requires_grad=True)
    (gradient,) = gradients(Sphere().pairwise(zero, x[1:2]), zero)
    torch.testing.assert_close(gradient, -2 * x[1:2])  # neither dead nor 1/0: it turns the zero vector towards y


# Means


def test_means_worked_by_hand():
    x = torch.tensor([[0.0, 0.0], [0.8, 0.0]])
    # 2 artanh(0.8) = 4 artanh(0.5): halfway to 0.8 is 0.5
    torch.testing.assert_close(PoincareBall(1.0).mean(x), torch.tensor([0.5, 0.0]))
    torch.testing.assert_close(PoincareBall(0.25).mean(2 * x), torch.tensor([1.0, 0.0]))
    quarter, flat = torch.tensor([3.0, 1.0]), torch.tensor([0.2, 0.0])
    torch.testing.assert_close(Euclidean().mean(x, quarter), flat)
    torch.testing.assert_close(PoincareBall(0.0).mean(x, quarter), flat)
    right_angle = torch.tensor([[5.0, 0.0], [0.0, 0.1]])
    torch.testing.assert_close(Sphere().mean(right_angle), torch.tensor([0.5, 0.5]).sqrt())
    torch.testing.assert_close(Sphere().mean(right_angle, quarter), torch.tensor([0.9, 0.1]).sqrt())


@pytest.mark.parametrize("c", CURVATURES)
def test_mean_agrees_with_the_weighted_midpoint_of_geoopt(c):
    x = points(24, 5, seed=27, reach=0.99).reshape(4, 6, 5) / c**0.5
    weights = torch.rand(4, 6, generator=torch.Generator().manual_seed(28), dtype=torch.float64)
    for w, factor in ((weights, weights), (None, torch.ones(4, 6, dtype=torch.float64))):
        expected = reference(c).weighted_midpoint(x, weights=factor, reducedim=[-2])
        assert expected.shape == (4, 5)
        torch.testing.assert_close(PoincareBall(c).mean(x, w), expected, rtol=1e-9, atol=1e-12)


@every_space
def test_mean_of_one_point_and_of_two(space):
    x = space.project(points(20, 4, seed=29))
    torch.testing.assert_close(space.mean(x[:, None]), x)
    middle = space.mean(torch.stack([x[:10], x[10:]], dim=1))
    half = space.between(x[:10], x[10:]) / 2
    torch.testing.assert_close(space.between(middle, x[:10]), half)
    torch.testing.assert_close(space.between(middle, x[10:]), half)


def test_mean_in_float32_is_accurate_at_the_rim():
    centre = 0.998 * directions(20, 16, seed=31)
    cluster = (centre[:, None] + 3e-4 * directions(80, 16, seed=32).reshape(20, 4, 16)).float()
    got, exact = PoincareBall(1.0).mean(cluster), PoincareBall(1.0).mean(cluster.double())
    assert (got.dtype, exact.dtype) == (torch.float32, torch.float64)
    size = PoincareBall(1.0).between(cluster.double(), exact[:, None]).mean()
    assert PoincareBall(1.0).between(got.double(), exact).max() < 1e-3 * size


@every_space
@pytest.mark.parametrize("weights", ([0.0, 0.0], [2.0, -1.0]))
def test_weights_that_make_no_mean_are_refused(space, weights):
    with pytest.raises(InputError, match="weights"):
        space.mean(torch.tensor([[0.1, 0.2], [0.3, 0.4]]), torch.tensor(weights))


# Ranking


def order(space, query, gallery):
    """Gallery indices, nearest first, equal keys by index."""
    return space.rank_key(query, gallery).sort(dim=-1, stable=True).indices


@every_dtype
@every_space
def test_keys_rank_as_the_float64_distances(space, dtype):
    query, gallery = points(30, 8, seed=33).to(dtype), points(300, 8, seed=34).to(dtype)
    found = order(space, query, gallery)
    distance = space.pairwise(query.double(), gallery.double())
    assert space.rank_key(query, gallery).dtype == dtype
    if dtype == torch.float64:
        assert (found == torch.from_numpy(np.argsort(distance.numpy(), axis=-1, kind="stable"))).all()
    steps = distance.gather(-1, found).diff(dim=-1)
    assert (steps > -1e-6 * distance.max()).all()


@every_dtype
@every_space
def test_exact_ties_stay_ties(space, dtype):
    a, b = points(2, 7, seed=35).to(dtype)
    gallery = torch.stack([b, a, b, -b, a]).repeat(40, 1)  # long enough for an unstable sort to show
    kind = np.tile([1, 0, 1, 2, 0], 40)
    key, distance = space.rank_key(a[None], gallery)[0], space.pairwise(a[None], gallery)[0]
    assert key.dtype == distance.dtype == dtype
    for i, j in itertools.combinations(range(5), 2):
        assert (key[i] == key[j]) == (distance[i] == distance[j]) == (kind[i] == kind[j])
    from_a = [np.flatnonzero(kind == k) for k in np.argsort([0, float(distance[0]), float(distance[3])])]
    assert order(space, a[None], gallery)[0].tolist() == np.concatenate(from_a).tolist()
    # ±b are equally far from the origin
    by_norm = np.argsort(kind != 0 if a.norm() < b.norm() else kind == 0, kind="stable")
    from_zero = order(space, torch.zeros(1, 7, dtype=dtype), gallery)[0].tolist()
    assert from_zero == (list(range(200)) if space.name == "sphere" else by_norm.tolist())


# The interface


@every_space
def test_batches_and_rows_agree_with_single_pairs(space):
    x, y = points(2 * 3, 5, seed=36).reshape(2, 3, 5), points(2 * 4, 5, seed=37).reshape(2, 4, 5)
    distance, key = space.pairwise(x, y), space.rank_key(x, y)
    assert distance.shape == key.shape == (2, 3, 4)
    for b, i, j in itertools.product(range(2), range(3), range(4)):
        torch.testing.assert_close(distance[b, i, j], space.between(x[b, i], y[b, j]))
        torch.testing.assert_close(key[b, i, j], space.rank_key(x[b, i : i + 1], y[b])[0, j])


@every_space
@pytest.mark.parametrize("half", (torch.float16, torch.bfloat16), ids=str)
def test_half_precision_is_computed_in_float32(space, half):
    x, y = points(6, 5, seed=38).to(half), points(7, 5, seed=39).to(half)
    assert x.dtype == half
    for function in (space.pairwise, space.rank_key):
        assert function(x, y).dtype == torch.float32
        assert (function(x, y) == function(x.float(), y.float())).all()
        assert function(x, y.double()).dtype == torch.float64
    for function in (space.exp0, space.log0, space.project, space.mean):
        assert function(x).dtype == torch.float32
        assert (function(x) == function(x.float())).all()
    assert space.between(x, y[:6]).dtype == torch.float32
    assert space.mean(x, torch.arange(6)).dtype == torch.float32


@every_dtype
def test_the_dtype_of_the_points_decides_and_not_that_of_c(dtype):
    x, y = points(6, 5, seed=40).to(dtype), points(7, 5, seed=41).to(dtype)
    plain = PoincareBall(0.5)
    for c in (
        torch.tensor(0.5, dtype=torch.float32),
        torch.tensor(0.5, dtype=torch.float64),
        np.float64(0.5),
    ):
        ball = PoincareBall(c)
        for got, expected in (
            (ball.pairwise(x, y), plain.pairwise(x, y)),
            (ball.exp0(x), plain.exp0(x)),
            (ball.log0(x), plain.log0(x)),
            (ball.project(2 * x), plain.project(2 * x)),
            (ball.mean(x), plain.mean(x)),
        ):
            assert got.dtype == dtype
            torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("c", CURVATURES)
def test_conformal_factor(c):
    x = points(20, 4, seed=42, reach=0.999) / c**0.5
    torch.testing.assert_close(PoincareBall(c).conformal_factor(x), reference(c).lambda_x(x))
    assert PoincareBall(c).conformal_factor(torch.zeros(4)) == 2
    step = 1e-7 * directions(20, 4, seed=43) * (1 - c * x.square().sum(-1, keepdim=True))
    stretch = PoincareBall(c).between(x, x + step) / step.norm(dim=-1)
    torch.testing.assert_close(stretch, PoincareBall(c).conformal_factor(x), rtol=1e-5, atol=0)


@pytest.mark.parametrize("c", (-1.0, math.nan, math.inf, torch.tensor(-0.1), torch.ones(2)))
def test_a_curvature_that_is_not_one_number_from_zero_up_is_refused(c):
    with pytest.raises(InputError, match="c "):
        PoincareBall(c)
