"""Relative δ, draw by draw (section 2.3, HV-4): of features, of copies without structure, of points of known shape."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.geometry.hyperbolicity import CURVATURE_OF_DELTA, hyperbolicity
from lib.geometry.scale import Scale
from lib.metrics import retrieval
from lib.study.scores import Scored, of_answers
from lib.training.splits import Split

CLIP = 2.3
"""The paper's clipping radius (section 3.2): how long the longest feature is made before it goes into the ball."""
RADII = (1.0, 5.0, 10.0)
"""Radii of the disks of the hyperbolic plane, in units of its own length; 10 is where float64 is still exact."""

Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""Features (n, d) → other features of the same images, at random."""


def controls(size: int, lengths: Sequence[int], random: np.random.Generator) -> Iterator[tuple[str, int, Tensor]]:
    """One sample of ``size`` points of every control: its name, the dimension (0: none) and the distances (n, n).

    lengths: of the Gaussian clouds. A tree has δ = 0; a disk of the hyperbolic plane has δ ≤ ln 2 however large it is,
    so its relative δ falls with the radius; the great circles of a sphere come close to the largest relative δ, 1.
    """
    yield "random tree", 0, random_tree(size, random)
    for radius in reversed(RADII):
        yield f"hyperbolic disk, radius {radius:g}", 2, disk(size, radius, random)
    for d in lengths:
        cloud = torch.from_numpy(random.normal(size=(size, d)).astype(np.float32))
        yield f"Gaussian cloud, {d:,} numbers", d, Euclidean().pairwise(cloud, cloud)
    globe = torch.from_numpy(random.normal(size=(size, 3)))
    yield "sphere, along great circles", 2, Sphere().pairwise(globe, globe)


def random_tree(n: int, random: np.random.Generator) -> Tensor:
    """Distances (n, n) between all nodes of a tree that grows at random nodes; edges between 0.5 and 1.5.

    >>> hyperbolicity(random_tree(50, np.random.default_rng(0))).relative < 1e-12
    True
    """
    distances = np.zeros((n, n))
    for node in range(1, n):
        to_others = distances[random.integers(node), :node] + random.uniform(0.5, 1.5)
        distances[node, :node] = distances[:node, node] = to_others
    return torch.from_numpy(distances)


def disk(n: int, radius: float, random: np.random.Generator) -> Tensor:
    """Distances (n, n) of points spread evenly by area over a disk of the hyperbolic plane (curvature −1).

    The area within ρ of the centre grows as cosh ρ − 1, so of a large disk nearly all is near its rim.
    """
    away = np.arccosh(1 + random.uniform(size=n) * (np.cosh(radius) - 1))
    angle = random.uniform(0, 2 * np.pi, n)
    ball = PoincareBall(1.0)
    points = ball.exp0(torch.from_numpy(away[:, None] / 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)))
    return ball.pairwise(points, points)


def unit_length(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Every image's features divided by their L2 norm."""
    return x / np.linalg.norm(x, axis=1, keepdims=True).clip(min=np.finfo(x.dtype).tiny)


def shuffled(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Every column permuted over the images by itself: each number keeps its values, no two belong together."""
    return random.permuted(x, axis=0)


def gaussian(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A Gaussian cloud with the mean and the covariance of ``x``: as long in every direction, without clusters."""
    mean = x.mean(axis=0)
    weights = random.normal(size=(len(x), len(x))).astype(x.dtype) / np.sqrt(len(x) - 1, dtype=x.dtype)
    return mean + weights @ (x - mean)


COPIES: Mapping[str, Change] = {"columns shuffled": shuffled, "Gaussian of the same covariance": gaussian}
"""What is left of features when one kind of structure is taken away."""


def curvature(relative):
    """The c that the paper derives from relative δ, (0.144/δ)²; of numbers, arrays or columns.

    >>> round(curvature(0.288), 6)
    0.25
    """
    return (CURVATURE_OF_DELTA / relative) ** 2


def subsets(n: int, size: int, draws: int, seed: int) -> list[np.ndarray]:
    """``draws`` random subsets of ``size`` of n images, without replacement; the first of each is its base point."""
    random = np.random.default_rng(seed)
    return [random.choice(n, size, replace=False) for _ in range(draws)]


def of_features(
    features: Mapping[str, np.ndarray],
    size: int,
    draws: int,
    seed: int,
    change: Change = lambda x, _: x,
) -> pd.DataFrame:
    """δ of every draw: columns encoder, draw, delta, diameter, relative, directions (see :func:`directions`).

    All encoders and changes see the same draws.

    Args:
        features: encoder → (n, dim) features of the same n images.
        size: images of a draw; draws: their number; seed: of the draws.
        change: what is done to the features of a draw, of :data:`COPIES` for example, before distances are taken.
    """
    lines = []
    for encoder, x in features.items():
        for draw, chosen in enumerate(subsets(len(x), size, draws, seed)):
            random = np.random.default_rng([seed, draw])
            points = torch.from_numpy(change(x[chosen], random))
            distances = Euclidean().pairwise(points, points)
            spread = {"directions": directions(distances)}
            lines.append({"encoder": encoder, "draw": draw} | _measured(distances) | spread)
    return pd.DataFrame(lines)


def of_controls(lengths: Sequence[int], size: int, draws: int, seed: int) -> pd.DataFrame:
    """δ of every draw of :func:`controls`: columns as there, then δ's."""
    lines = []
    for draw in range(draws):
        for name, d, distances in controls(size, lengths, np.random.default_rng([seed, draw])):
            lines.append({"control": name, "dim": d, "draw": draw} | _measured(distances))
    return pd.DataFrame(lines)


def directions(distances: Tensor) -> float:
    """In how many directions points spread: (Σλ)²/Σλ² of the variances λ along their principal axes.

    n points spread alike in d directions have d, on a line they have 1. distances: (n, n), Euclidean; the λ are never
    computed, since the sums are the trace and the squared norm of the centred Gram matrix.

    >>> points = torch.eye(2, dtype=torch.float64).repeat(2, 1) * torch.tensor([1.0, 1, -1, -1])[:, None]
    >>> round(directions(Euclidean().pairwise(points, points)), 6)
    2.0
    """
    gram = distances.double().square()
    gram = gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean()  # −2 times the Gram matrix
    return float(gram.trace() ** 2 / gram.square().sum())


def _measured(distances: Tensor) -> dict[str, float]:
    """δ by the paper's procedure: the first point is the base, relative to the diameter (HV-4)."""
    of = hyperbolicity(distances.float(), base=0)
    return {"delta": of.delta, "diameter": of.diameter, "relative": of.relative}


def over_draws(rows: pd.DataFrame, by: str | list[str], column: str = "relative") -> pd.DataFrame:
    """Mean over the draws and its 95 % interval by Student's t: columns ``by``, ``column``, low, high, n_draws.

    >>> rows = pd.DataFrame({"encoder": "one", "relative": [0.2, 0.3, 0.4]})
    >>> over_draws(rows, "encoder").round(3).to_dict("records")
    [{'encoder': 'one', 'relative': 0.3, 'low': 0.052, 'high': 0.548, 'n_draws': 3}]
    """
    means = rows.groupby(by, sort=False)[column].agg(mean="mean", error="sem", n_draws="count").reset_index()
    half = stats.t.ppf(0.975, means["n_draws"] - 1) * means["error"]
    means = means.assign(low=means["mean"] - half, high=means["mean"] + half)
    return means.rename(columns={"mean": column})[[*np.atleast_1d(by), column, "low", "high", "n_draws"]]


def sizes(features: Mapping[str, np.ndarray], ladder: Sequence[int], draws: int, seed: int) -> pd.DataFrame:
    """Relative δ over the images of a draw: columns encoder, size, relative, low, high, n_draws."""
    parts = [of_features(features, size, draws, seed).assign(size=size) for size in ladder]
    return over_draws(pd.concat(parts), ["encoder", "size"])


def bases(features: Mapping[str, np.ndarray], size: int, draws: int, seed: int) -> pd.DataFrame:
    """Every base point of every draw: columns encoder, draw, base, relative, share (of the draw's largest).

    The largest of a draw is its δ without "one base point"; no base point gives less than half of it.
    """
    lines = []
    for encoder, x in features.items():
        for draw, chosen in enumerate(subsets(len(x), size, draws, seed)):
            points = torch.from_numpy(x[chosen])
            distances = Euclidean().pairwise(points, points)
            values = [hyperbolicity(distances, base=base).relative for base in range(size)]
            lines += [{"encoder": encoder, "draw": draw, "base": base, "relative": r} for base, r in enumerate(values)]
    rows = pd.DataFrame(lines)
    return rows.assign(share=rows["relative"] / rows.groupby(["encoder", "draw"])["relative"].transform("max"))


OWN = "as they are"
"""How the features themselves are called beside their copies."""


def changes(rows: pd.DataFrame) -> pd.DataFrame:
    """Every copy minus the features themselves, paired by draw.

    rows: encoder, features (:data:`OWN` and names of copies), draw, relative, directions.
    Returns columns encoder, features, own_relative, relative, own_directions, directions (means), difference (of
    relative δ), low, high, n_draws.
    """
    keys, values = ["encoder", "features"], ["relative", "directions"]
    own = (
        rows[rows["features"] == OWN].drop(columns="features").rename(columns={name: f"own_{name}" for name in values})
    )
    both = rows[rows["features"] != OWN].merge(own[["encoder", "draw", "own_relative", "own_directions"]])
    both["difference"] = both["relative"] - both["own_relative"]
    means = both.groupby(keys, sort=False)[["own_relative", "relative", "own_directions", "directions"]].mean()
    return means.reset_index().merge(over_draws(both, keys, "difference"), on=keys)


FLAT, BALL = "Euclidean", "hyperbolic"
"""How the two distances are called."""


def searched(
    features: Mapping[str, np.ndarray],
    relative: Mapping[str, float],
    labels: np.ndarray,
    groups: np.ndarray,
    splits: Sequence[Split],
    ks: Sequence[int],
    seed: int,
) -> pd.DataFrame:
    """MAP@k of the same features by both distances, without training: the test images search the training images.

    Features are centred on the gallery and made so short that the longest of the gallery has the paper's clipping
    radius; exp0 then brings them into the ball whose c the paper's rule derives from ``relative``. Only the distance
    differs between the two.

    Args:
        features: encoder → (n, dim); relative: encoder → its relative δ.
        labels, groups: (n,) of the images, for each of the ``splits``.
        ks: lengths of the list; seed: of the sign flips.

    Returns:
        Columns rule (the encoder), first, second, k, relative, c, radius (how far out the median query is, percent of
        the ball's radius), hyperbolic, euclidean and chance (MAP@k, percent, over all queries), and the paired test.
    """
    answers, about = {}, {}
    for encoder, x in features.items():
        ball = PoincareBall(float(curvature(relative[encoder])))
        in_ball, flat, radii = zip(*(_both(x, labels, split, ball, ks) for split in splits), strict=True)
        answers[encoder] = {BALL: in_ball, FLAT: flat}
        radius = 100 * float(np.median(np.concatenate(radii)))
        about[encoder] = {"relative": relative[encoder], "c": ball.c, "radius": radius}
    scores = of_answers(answers, groups)
    tests = scores.tests([(BALL, FLAT)], ks, seed=seed)
    sides = {"hyperbolic": (scores.values, BALL), "euclidean": (scores.values, FLAT), "chance": (scores.chance, FLAT)}
    means = {
        name: 100 * values["ap_min"].xs(side, level="method").groupby("rule", sort=False).mean().stack()
        for name, (values, side) in sides.items()
    }
    keys = ["rule", "first", "second", "k"]
    names = tests[keys].join(pd.DataFrame(about).T, on="rule").join(pd.DataFrame(means), on=["rule", "k"])
    return names.join(tests.drop(columns=keys))


def _both(
    x: np.ndarray, labels: np.ndarray, split: Split, ball: PoincareBall, ks: Sequence[int]
) -> tuple[Scored, Scored, np.ndarray]:
    """What one split finds in the ball and in flat space, and the queries' norms, of 1 at the rim."""
    centred = torch.from_numpy(x - x[split.train].mean(axis=0))
    scale = Scale.fit(centred[split.train], ball, radius=math.tanh(math.sqrt(ball.c) * CLIP))
    points = scale(centred)
    of_both = labels[split.test], labels[split.train]
    in_ball, flat = (
        Scored(split, retrieval.evaluate(z[split.test], z[split.train], *of_both, space, tuple(ks)))
        for z, space in ((points, ball), (centred, Euclidean()))
    )
    return in_ball, flat, (math.sqrt(ball.c) * points[split.test].norm(dim=1)).numpy()
