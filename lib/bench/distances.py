"""Poincaré distances of all pairs against geoopt's broadcast and against ``torch.cdist``; δ against its n³ tensor."""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from lib.bench.timing import Row, Work, megabytes, milliseconds, relative_error
from lib.geometry import PoincareBall
from lib.geometry.hyperbolicity import max_min_product

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    import geoopt

BALL = PoincareBall(1.0)
Pairwise = Callable[[Tensor, Tensor], Tensor]


def points(n: int, d: int, seed: int, reach: float = 0.95) -> Tensor:
    """``n`` points of the unit ball at all radii up to ``reach``, float32."""
    generator = torch.Generator().manual_seed(seed)
    ways = torch.nn.functional.normalize(torch.randn(n, d, generator=generator), dim=1)
    return ways * torch.rand(n, 1, generator=generator) * reach


def broadcast(x: Tensor, y: Tensor) -> Tensor:
    """geoopt, as its users call it for all pairs."""
    return geoopt.PoincareBall(c=1.0).dist(x[:, None], y[None])


def rows(n: int = 900, d: int = 128) -> list[Row]:
    """All rows at n × n points of d numbers; half of the second set are near-duplicates of the first, 1e-4 apart."""
    x, y = points(n, d, 0), points(n, d, 1)
    y[::2] = x[::2] + 1e-4 * points(n, d, 2, 1.0)[::2]
    truth = BALL.pairwise(x.double(), y.double())
    geoopt_error = relative_error(broadcast(x, y), truth)
    check = f"relative error {relative_error(BALL.pairwise(x, y), truth):.0e} (geoopt: {geoopt_error:.0e})"
    size = f"{n} × {n} × {d}"
    wide = x.double(), y.double()

    def timed(what: str, ours: Work, peer: Work, peer_name: str, aim: str, check: str = "") -> Row:
        return Row(f"{what}, {size}", "ms", "PoincareBall.pairwise", peer_name, *milliseconds(ours, peer), aim, check)

    def held(what: str, ours: Work, peer: Work, aim: str) -> Row:
        memory = megabytes(ours), megabytes(peer)
        return Row(f"{what}, {size}", "MB", "PoincareBall.pairwise", "geoopt broadcast", *memory, aim)

    forward, both = lambda f: lambda: f(x, y), lambda f: lambda: _forward_and_backward(f, x, y)
    exact = lambda f: lambda: f(*wide)  # noqa: E731
    exact_check = f"relative error {relative_error(truth, broadcast(*wide)):.0e} against geoopt"
    return [
        timed("forward", forward(BALL.pairwise), forward(broadcast), "geoopt broadcast", "≥ 60", check),
        timed("forward", forward(BALL.pairwise), forward(torch.cdist), "torch.cdist (Euclidean)", "≥ 1/12"),
        timed(
            "forward, exact form (differences, float64)",
            exact(BALL.pairwise),
            exact(broadcast),
            "geoopt broadcast",
            "",
            exact_check,
        ),
        timed("forward and backward", both(BALL.pairwise), both(broadcast), "geoopt broadcast", "≥ 60"),
        timed("forward and backward", both(BALL.pairwise), both(torch.cdist), "torch.cdist (Euclidean)", ""),
        held("memory, forward", forward(BALL.pairwise), forward(broadcast), "≥ 30"),
        held("memory, forward and backward", both(BALL.pairwise), both(broadcast), ""),
        *_hyperbolicity(),
    ]


def _forward_and_backward(pairwise: Pairwise, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    return torch.autograd.grad(pairwise(x, y).sum(), (x, y))


def _hyperbolicity(n: int = 500) -> list[Row]:
    product = BALL.pairwise(points(n, 8, 3), points(n, 8, 3))

    def cube() -> Tensor:
        return torch.minimum(product[:, :, None], product[None]).amax(1)

    def ours() -> Tensor:
        return max_min_product(product)

    what, names = f"δ-hyperbolicity, max-min product of {n} points", ("max_min_product", "the n³ tensor")
    check = "equal" if torch.equal(ours(), cube()) else "DIFFERENT"
    return [
        Row(what, "ms", *names, *milliseconds(ours, cube), check=check),
        Row(f"memory, {what}", "MB", *names, megabytes(ours), megabytes(cube)),
    ]
