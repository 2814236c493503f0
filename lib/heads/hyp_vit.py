"""The head of Hyperbolic Vision Transformers (Sections 2.4 and 3.2): one linear map, clipped, then into the space."""

import torch
from torch import Tensor, nn

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry, PoincareBall, clip
from lib.heads.mapper import defined

LEAST_C = 1e-4
"""A step may take a learnt c below 0, where there is no ball; so near 0 it is flat to float32."""


class ClippedProjection(nn.Module):
    """``e = W x + b`` shortened to norm r where it is longer, then ``exp0`` (Equations 3 and 7).

    A point rests at most at distance 2r from the origin, and √c‖z‖ at most at tanh(√c·r): what decides how near the rim
    points can come is c·r², not c. The published r = 2.3 and c = 0.1 end at 62 percent of the radius, where neither of
    the two boundary clips, of text and code, acts (erratum HV-9); the projection here is :mod:`lib.geometry`'s.

    Args:
        dim_in: length of the feature (published: 384).
        dim_out: length of the embedding (published: 128).
        geometry: ``PoincareBall(0.1)`` for the Hyp- versions (−c is the curvature, HV-1), ``Sphere()`` for the Sph-
            versions, where clipping changes nothing, ``Euclidean()`` for a flat control of the same reach.
        clip_radius: r > 0, in units of the tangent vector; None for no clipping.
        learn_c: the ball's c is a weight like the others, from that of ``geometry`` on. The paper fixes it.
        generator: source of the initial weights, so that no global state is touched: a (semi-)orthogonal matrix, and
            biases of 0.

    Raises:
        InputError: for a value without meaning.
    """

    pads = True
    """See :mod:`lib.training.stacks`."""

    def __init__(
        self,
        dim_in: int,
        dim_out: int = 128,
        *,
        geometry: Geometry | None = None,
        clip_radius: float | None = 2.3,
        learn_c: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.geometry = PoincareBall(0.1) if geometry is None else geometry
        self.clip_radius = clip_radius
        checks.values(dim_in=dim_in, dim_out=dim_out, geometry=self.geometry)
        if clip_radius is not None:
            checks.positive("clip_radius", clip_radius)
        self.learn_c = learn_c
        if learn_c:
            if not isinstance(self.geometry, PoincareBall):
                raise InputError(f"{self.geometry} has no curvature to learn: take a PoincareBall")
            self.c = nn.Parameter(torch.tensor(float(self.geometry.c)))
            self.geometry = PoincareBall(self.c)
        self.linear = nn.Linear(dim_in, dim_out)
        nn.init.orthogonal_(self.linear.weight, generator=generator)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map features ``x: (..., dim_in)`` to points ``(..., dim_out)`` of the geometry."""
        if self.learn_c:
            with torch.no_grad():
                self.c.clamp_min_(LEAST_C)
        e = defined(self.linear(x))
        if self.clip_radius is not None:
            e = clip(e, self.clip_radius)
        return self.geometry.project(self.geometry.exp0(e))
