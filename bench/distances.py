"""Poincaré distances of all pairs against geoopt's broadcast and against ``torch.cdist``; δ against its n³ tensor."""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from bench.timing import Row, Work, megabytes, milliseconds, relative_error
from lib import devices
from lib.geometry import PoincareBall
from lib.geometry.hyperbolicity import max_min_product

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    import geoopt

BALL = PoincareBall(1.0)
Pairwise = Callable[[Tensor, Tensor], Tensor]
Peer = tuple[str, Pairwise]


def points(n: int, d: int, seed: int, reach: float = 0.95) -> Tensor:
    """``n`` points of the unit ball at all radii up to ``reach``, float32."""
    generator = torch.Generator().manual_seed(seed)
    ways = torch.nn.functional.normalize(torch.randn(n, d, generator=generator), dim=1)
    return ways * torch.rand(n, 1, generator=generator) * reach


def broadcast(x: Tensor, y: Tensor) -> Tensor:
    """geoopt, as its users call it for all pairs."""
    return geoopt.PoincareBall(c=1.0).to(x.device).dist(x[:, None], y[None])


GEOOPT: Peer = ("geoopt broadcast", broadcast)
CDIST: Peer = ("torch.cdist (Euclidean)", torch.cdist)


def rows(n: int = 900, d: int = 128, more: int = 2048, device: str = "auto") -> list[Row]:
    """All rows at n × n points of d numbers; half of the second set are near-duplicates of the first, 1e-4 apart.

    Times at ``more`` × ``more`` as well; on a CPU without geoopt, whose broadcast would take 12 GB. device: see
    :func:`lib.devices.pick`.
    """
    device = devices.pick(device).type
    x, y = _sets(n, d, device)
    truth = BALL.pairwise(x.double(), y.double())
    geoopt_error = relative_error(broadcast(x, y), truth)
    check = f"relative error {relative_error(BALL.pairwise(x, y), truth):.0e} (geoopt: {geoopt_error:.0e})"
    exact_check = f"relative error {relative_error(truth, broadcast(x.double(), y.double())):.0e} against geoopt"

    def row(what: str, work: Callable[[Pairwise], Work], peer: Peer, aim: str = "", check: str = "", n: int = n) -> Row:
        times = milliseconds(work(BALL.pairwise), work(peer[1]))
        return Row(f"{what}, {n} × {n} × {d}", "ms", "PoincareBall.pairwise", peer[0], *times, aim, check)

    def held(what: str, work: Callable[[Pairwise], Work], aim: str = "") -> Row:
        memory = megabytes(work(BALL.pairwise)), megabytes(work(broadcast))
        return Row(f"{what}, {n} × {n} × {d}", "MB", "PoincareBall.pairwise", GEOOPT[0], *memory, aim)

    forward, both = _works(x, y)
    larger_forward, larger_both = _works(*_sets(more, d, device))
    return [
        row("forward", forward, GEOOPT, "≥ 60", check),
        row("forward", forward, CDIST, "≥ 1/12"),
        row("forward, exact form (differences, float64)", _works(x.double(), y.double())[0], GEOOPT, "", exact_check),
        row("forward and backward", both, GEOOPT, "≥ 60"),
        row("forward and backward", both, CDIST, "≥ 1/2"),
        *[
            row(what, work, peer, aim, n=more)
            for what, work, aim in (("forward", larger_forward, ""), ("forward and backward", larger_both, "≥ 1/2"))
            for peer in ((CDIST,) if device == "cpu" else (GEOOPT, CDIST))
        ],
        held("memory, forward", forward, "≥ 30"),
        held("memory, forward and backward", both),
        *_hyperbolicity(),
    ]


def _sets(n: int, d: int, device: str) -> tuple[Tensor, Tensor]:
    x, y = points(n, d, 0), points(n, d, 1)
    y[::2] = x[::2] + 1e-4 * points(n, d, 2, 1.0)[::2]
    return x.to(device), y.to(device)


def _works(x: Tensor, y: Tensor) -> tuple[Callable[[Pairwise], Work], Callable[[Pairwise], Work]]:
    """What is done with a function of two sets: forward, and forward and backward."""
    return lambda f: lambda: f(x, y), lambda f: lambda: _forward_and_backward(f, x, y)


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
