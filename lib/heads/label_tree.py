"""The projection head of Climbing the Label Tree (Section 4.2): two layers with batch norm, then into the space."""

from typing import Any

import torch
from torch import Tensor, nn

from lib import checks
from lib.geometry import Geometry, PoincareBall, Sphere
from lib.heads.mapper import HyperbolicMapper, uniform


class ProjectionHead(HyperbolicMapper):
    """``e = W2 relu(BN(W1 x)) + b2``, on the sphere scaled to unit length, in the ball ``project(exp0(e))``.

    In training mode the statistics are the batch's, later those of the whole training.

    Args:
        dim_in: length of the feature (published: 2048).
        dim_out: length of the embedding (published: 256).
        hidden: width between (published: 2048).
        geometry: ``Sphere()`` for the paper's Euclidean rows, ``PoincareBall(1.0)`` for its hyperbolic ones.
        delta, generator: as in :class:`lib.heads.mapper.HyperbolicMapper`.
    """

    pads = False

    def __init__(
        self,
        dim_in: int,
        dim_out: int = 256,
        *,
        hidden: int = 2048,
        geometry: Geometry | None = None,
        delta: float = 1e-3,
        generator: torch.Generator | None = None,
    ) -> None:
        checks.whole("hidden", hidden)
        geometry = Sphere() if geometry is None else geometry
        super().__init__(dim_in, dim_out, hidden=hidden, geometry=geometry, delta=delta, generator=generator)
        layers = Wide(dim_in, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, dim_out)
        self.layers = nn.Sequential(*layers)
        nn.init.uniform_(layers[0].weight, -(dim_in**-0.5), dim_in**-0.5, generator=generator)
        uniform(nn.Sequential(layers[-1]), generator)

    @torch.no_grad()
    def start(self, x: Tensor, norm: float) -> None:
        """In the ball, bring the untrained images ``x: (n, dim_in)`` to the median ``norm`` (HD-17); else nothing."""
        if isinstance(self.geometry, PoincareBall):
            super().start(x, norm)
            self.layers[1].reset_running_stats()


class Wide(nn.Linear):
    """A linear layer without a bias for features that take no gradient: most of the arithmetic of training a head.

    The mode of MKL that :mod:`lib.pins` sets, for equal bits on every processor, is 2.5 times slower than OpenBLAS of
    NumPy with the kernels that are set there; so on a CPU the products are NumPy's.
    """

    def forward(self, x: Tensor) -> Tensor:
        """``x: (n, dim_in)`` → (n, hidden)."""
        if x.requires_grad or x.ndim != 2 or x.device.type != "cpu":
            return super().forward(x)
        return _Product.apply(x, self.weight)


class _Product(torch.autograd.Function):
    """x Wᵀ and the gradient of W."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.from_numpy(x.numpy() @ weight.detach().numpy().T)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        (x,) = ctx.saved_tensors
        return None, torch.from_numpy(gradient.numpy().T @ x.numpy())
