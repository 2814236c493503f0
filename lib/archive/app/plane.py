"""The map of an archive: its codes, seen in the Poincaré disk."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lib.geometry import Geometry, PoincareBall

DISK = PoincareBall(1.0)
CIRCLES = "The circles say how far it is to the ball's origin; the rim is infinitely far away."


@dataclass(frozen=True, eq=False)
class Plane:
    """Two directions (d, 2) of the tangent space at the origin; ``place`` follows them, and ``exp0`` into the disk.

    Codes of a ball keep its origin and their scale, so that codes of two numbers are shown as they are. Codes of
    another space are seen from their mean, and scaled so that half of them lie within a distance of 2.
    unit: the distance in the ball for each 1 in the disk; None where there is no ball.
    """

    space: Geometry
    directions: Tensor
    centre: Tensor
    scale: float
    unit: float | None
    note: str

    @classmethod
    def of(cls, codes: Tensor, space: Geometry) -> "Plane":
        """The plane in which ``codes: (n, d)`` of ``space`` differ most."""
        tangents = space.log0(codes.double())
        spread, axes = torch.linalg.eigh(torch.cov(tangents.T).reshape(len(tangents.T), -1))
        two = axes[:, -2:].flip(1)  # the widest first
        two = two * two.gather(0, two.abs().argmax(0, keepdim=True)).sign()  # an eigenvector has no sign of its own
        share = float(spread[-2:].sum() / spread.sum()) if spread.sum() > 0 else 1.0
        if two.shape[1] == 1:
            two = torch.cat([two, torch.zeros_like(two)], 1)
        c = float(getattr(space, "c", 0.0))
        if c > 0:
            centre, scale = torch.zeros_like(tangents[0]), c**0.5
        else:
            centre = tangents.mean(0)
            middle = float(((tangents - centre) @ two).norm(dim=1).median())
            scale = 1 / middle if middle > 0 else 1.0
        return cls(space, two, centre, scale, c**-0.5 if c > 0 else None, _note(codes.shape[1], share, c))

    def place(self, codes: Tensor) -> list[list[float]]:
        """Where ``codes: (n, d)`` lie in the unit disk: two numbers each."""
        tangents = (self.space.log0(codes.double()) - self.centre) @ self.directions * self.scale
        return [[round(part, 5) for part in point] for point in DISK.project(DISK.exp0(tangents)).tolist()]


def _note(dim: int, share: float, c: float) -> str:
    """What the page says of the map."""
    if c > 0 and dim == 2:
        return f"The codes have two numbers, and are shown as they lie in the Poincaré disk. {CIRCLES}"
    first = (
        f"The codes have {dim} numbers. You see the two directions in which they differ most: {share:.0%} of their "
        "spread. So what lies side by side here need not be near: the list of the nearest counts all numbers."
    )
    if c > 0:
        return f"{first} The directions are those at the origin of the ball, where the ball is nearly flat. {CIRCLES}"
    return f"{first} These codes are not of a ball; the disk only bends the picture so that all of it fits."
