"""Features of any length brought into the ball, so that their distances mean something there."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.geometry.points import Points, as_tensor, floating


@dataclass(frozen=True)
class Scale:
    """One factor, fitted on a gallery, then ``exp0``: features of the gallery and of its queries as points of ``ball``.

    ``exp0`` sends a vector of norm r to tanh(√c·r) of the ball's radius, and features of a network are often 5 to 50
    long: unscaled, all of them would end on the rim, where distances are rounding noise. One factor for all keeps their
    proportions, so a query needs the factor of the gallery that it searches. Features that were trained in the ball are
    its points already and need none.

    >>> scale = Scale.fit([[3.0, 4.0], [0.0, 1.0]], PoincareBall(c=1.0), radius=0.5)
    >>> scale([[3.0, 4.0]]).norm()
    tensor(0.5000)
    """

    ball: PoincareBall
    factor: float

    @classmethod
    def fit(cls, gallery: Points, ball: PoincareBall, radius: float = 0.1) -> "Scale":
        """The factor that puts the longest of the features ``gallery: (m, d)`` at ``radius``, a part of the ball's.

        Up to 0.1 the ball is nearly flat, and the neighbours are those of the features; the further out, the more count
        direction and what is near the centre.

        Raises InputError for a radius outside 0 to 1, the flat limit c = 0, which has no radius, NaN or infinity, and
        features that are all zero.
        """
        if not isinstance(ball, PoincareBall):
            raise InputError(f"{ball!r} is no ball: hand in PoincareBall(c); flat space and the sphere need no scaling")
        checks.number("radius", radius)
        if not 0 < radius < 1:
            raise InputError(f"radius = {radius:g} is not within the ball: choose a part of its radius, as 0.1")
        if not ball.c > 0:
            raise InputError("c = 0 is flat space and has no rim to keep away from: use the features as they are")
        gallery = as_tensor(gallery, "gallery")
        if gallery.ndim != 2 or not gallery.numel():
            raise InputError(f"the gallery has the shape {tuple(gallery.shape)}; expected (m, d) with at least one row")
        norms = torch.linalg.vector_norm(*floating(gallery.detach()), dim=1, dtype=torch.float64)
        if not norms.isfinite().all():
            row = (~norms.isfinite()).nonzero()[0].item()
            raise InputError(f"gallery row {row} holds NaN or infinity; drop or repair it")
        if norms.max() == 0:
            raise InputError("all features of the gallery are zero, which no factor can change")
        return cls(ball, math.atanh(radius) / (math.sqrt(ball.c) * norms.max().item()))

    def __call__(self, features: Points) -> Tensor:
        """Points (..., d) of the ball from ``features: (..., d)``; a query far longer than the gallery is projected."""
        (features,) = floating(features)
        return self.ball.project(self.ball.exp0(self.factor * features))
