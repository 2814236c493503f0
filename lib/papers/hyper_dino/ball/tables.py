"""Numbers about the ball that Hyper-DINO leaves out: how far it reaches, how flat it is, what float16 costs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from lib.geometry import Euclidean, Geometry, PoincareBall

UNIT = PoincareBall(1.0)


def reach(epsilons: Sequence[float]) -> pd.DataFrame:
    """What clipping ‖Δ‖ to [ε, 1 − ε] does to the distance 2·artanh‖Δ‖ (section 2.3, erratum HD-7).

    Columns epsilon, farthest (the largest distance two points can have), to_itself (a point's distance to itself),
    norm (of a tangent vector that reaches δ = ε from the rim).
    """
    epsilon = np.asarray(epsilons, dtype=float)
    farthest, to_itself = 2 * np.arctanh(1 - epsilon), 2 * np.arctanh(epsilon)
    return pd.DataFrame({"epsilon": epsilon, "farthest": farthest, "to_itself": to_itself, "norm": farthest / 2})


def margin_at_rest(classes: int, m0: float, alpha: float) -> float:
    """The margin m = m0 + α·(C − 1)/C·m that C balanced, collapsed classes at mutual distance m keep (HD-8)."""
    return m0 / (1 - alpha * (classes - 1) / classes)


def simplex(classes: int, distance: float, geometry: Geometry = UNIT) -> torch.Tensor:
    """``classes`` points around the origin, each pair at ``distance`` in the ``geometry``; (C, C) float64.

    geometry: flat, or a ball of curvature −c. At radius ρ two points are s = ρ·√(2C/(C − 1)) apart, which is the flat
    distance; in the ball sinh(√c·d/2) = √c·s/(1 − c·ρ²) gives ρ.
    """
    directions = torch.eye(classes, dtype=torch.float64) - 1 / classes
    side = np.sqrt(2 * classes / (classes - 1))
    if isinstance(geometry, PoincareBall):
        root = max(float(geometry.c), 1e-12) ** 0.5  # c = 0 is the limit
        sinh = np.sinh(root * distance / 2)
        radius = 2 * sinh / (np.hypot(side, 2 * sinh) + side) / root
    else:
        radius = distance / side
    return radius * directions / directions.norm(dim=-1, keepdim=True)


def radius_at_rest(classes: int, m0: float, alpha: float, geometry: Geometry = UNIT) -> float:
    """Norm at which collapsed classes are exactly at the margin, so that nothing pushes them any more (HD-8).

    >>> round(radius_at_rest(8, 0.5, 0.1), 3)
    0.178
    """
    return simplex(classes, margin_at_rest(classes, m0, alpha), geometry)[0].norm().item()


def rounding(radii: Sequence[float], dim: int = 32, pairs: int = 4000, seed: int = 0) -> pd.DataFrame:
    """The relative error of a distance between two points of one norm after rounding both to float16 (HD-10).

    Both distances are taken in float64, so that nothing but the rounding of the points is seen. A pair with a point
    that rounds onto or beyond the rim has no distance any more; it is counted and left out, as is a pair of one point.

    Columns radius, median, low, high (parts per million; 5 and 95 percent of the pairs), lost (percent of points at
    norm ≥ 1).
    """
    rng = np.random.default_rng(seed)
    directions = torch.from_numpy(rng.normal(size=(2, pairs, dim)))
    directions /= directions.norm(dim=-1, keepdim=True)
    ball, rows = PoincareBall(1.0), []
    for radius in radii:
        exact = radius * directions
        rounded = exact.half().double()
        inside = rounded.norm(dim=-1) < 1
        true, found = ball.between(*exact), ball.between(*rounded)
        error = 1e6 * ((found - true).abs() / true)[inside.all(0) & (true > 0)]
        low, median, high = np.quantile(error, [0.05, 0.5, 0.95])
        lost = 100 * (1 - inside.double().mean().item())
        rows.append({"radius": radius, "median": median, "low": low, "high": high, "lost": lost})
    return pd.DataFrame(rows)


def drawn(ends: np.ndarray, centres: np.ndarray, distance: float, tiles: np.ndarray) -> pd.DataFrame:
    """The sizes of what :func:`lib.papers.hyper_dino.ball.figures.overview` draws: equal in the ball, unequal on paper.

    Columns panel, item, x, y (centre), hyperbolic and euclidean (length of a way, radius of a circle, longest side of
    a tile). The arguments are those of the figure.
    """
    rows = [("shortest ways", *row) for row in zip(ends.mean(1), *_lengths(ends[:, 0], ends[:, 1]), strict=True)]
    tanh = np.tanh(distance / 2)
    rows += [("circles", z, distance, tanh * (1 - abs(z) ** 2) / (1 - abs(tanh * z) ** 2)) for z in centres]
    sides = _lengths(tiles, np.roll(tiles, -1, axis=1))
    rows += [("tiles", *row) for row in zip(tiles.mean(1), *(side.max(1) for side in sides), strict=True)]
    frame = pd.DataFrame(rows, columns=["panel", "centre", "hyperbolic", "euclidean"])
    frame.insert(1, "item", frame.groupby("panel").cumcount())
    frame.insert(2, "x", np.real(frame["centre"]) + 0.0)
    frame.insert(3, "y", np.imag(frame["centre"]) + 0.0)
    return frame.drop(columns="centre")


def _lengths(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hyperbolic and Euclidean distances between complex points of the unit disk."""
    points = [torch.view_as_real(torch.from_numpy(np.ascontiguousarray(z))) for z in (x, y)]
    return PoincareBall(1.0).between(*points).numpy(), Euclidean().between(*points).numpy()
