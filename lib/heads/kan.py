"""Layers of learnt functions, Kolmogorov-Arnold layers (ACIR, Equations 10 and 11), and what could stand in for one."""

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from lib import checks


class KAN(nn.Module):
    """A layer of learnt functions on edges: y_q = Σ_p w_b silu(x_p) + w_s Σ_i c_i B_i(x_p) (Equations 10 and 11).

    B_i: B-splines of ``order`` on ``grid`` intervals from −reach to reach, as in Liu et al. (2024), who move the grid;
    here it stays, and beyond it the splines fade out within ``order`` intervals, which leaves silu.
    """

    def __init__(self, dim_in: int, dim_out: int, grid: int = 5, order: int = 3, reach: float = 2.0) -> None:
        super().__init__()
        checks.values(dim_in=dim_in, dim_out=dim_out)
        checks.whole("grid", grid)
        checks.whole("order", order)
        checks.positive("reach", reach)
        self.grid, self.order, self.reach = grid, order, reach
        self.base = nn.Parameter(torch.zeros(dim_out, dim_in))
        self.scale = nn.Parameter(torch.ones(dim_out, dim_in))
        self.coefficients = nn.Parameter(torch.zeros(dim_out, dim_in, grid + order))

    def forward(self, x: Tensor) -> Tensor:
        """(..., dim_in) to (..., dim_out)."""
        splines = (self.scale[..., None] * self.coefficients).flatten(1)
        return silu(x) @ self.base.mT + self.basis(x).flatten(-2) @ splines.mT

    def basis(self, x: Tensor) -> Tensor:
        """Every B_i at ``x: (...)``, (..., grid + order), by the recursion of Cox and de Boor."""
        step = 2 * self.reach / self.grid
        at = (x[..., None] + self.reach) / step + self.order  # in intervals, from the first knot on
        knots = torch.arange(self.grid + 2 * self.order + 1, dtype=x.dtype, device=x.device)
        b = ((at >= knots[:-1]) & (at < knots[1:])).to(x.dtype)
        for degree in range(1, self.order + 1):
            rising, falling = at - knots[: -degree - 1], knots[degree + 1 :] - at
            b = (rising * b[..., :-1] + falling * b[..., 1:]) / degree
        return b


def mlp(dim_in: int, dim_out: int) -> nn.Module:
    """Two linear layers with a ReLU between, with about as many numbers as the KAN layer that they replace."""
    wanted = sum(value.numel() for value in KAN(dim_in, dim_out).parameters())
    hidden = max(1, round((wanted - dim_out) / (dim_in + dim_out + 1)))
    return nn.Sequential(nn.Linear(dim_in, hidden), nn.ReLU(), nn.Linear(hidden, dim_out))
