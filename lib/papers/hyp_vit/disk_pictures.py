"""Pictures of embeddings: UMAP onto the hyperboloid, seen as the Poincaré disk, and how much of them is true.

Below: how a disk is drawn.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from scipy.stats import spearmanr
from torch import Tensor

from lib.errors import InputError
from lib.figures import style
from lib.geometry import Geometry, PoincareBall
from lib.search.exact import nearest

NEIGHBOURS = 15
"""UMAP's own default; neither paper nor supplement names a number."""
NEAR = 10
"""How many neighbours the tables look at."""
LARGEST = 4000
"""Images of a picture, the first ones: as many as in the supplement."""


@dataclass(frozen=True, eq=False)
class Cloud:
    """Embeddings ``points: (n, d)`` of a geometry and the category of each, as codes (n,)."""

    points: Tensor
    space: Geometry
    codes: np.ndarray


def on_disk(cloud: Cloud, seed: int = 0, epochs: int | None = None) -> np.ndarray:
    """The points in the unit disk, (n, 2): UMAP from the distances of ``cloud`` to the hyperboloid, as in Fig. 2.

    UMAP hands back two coordinates (x, y) of points of the hyperboloid z² = 1 + x² + y²; (x, y)/(1 + z) is the same
    point in the disk. It begins with a spectral layout that it stretches over the square from 0 to 10, a quarter of the
    disk, whatever the embeddings are; a few points far from the others leave these near the centre. ``epochs``: 0 for
    that start, None for UMAP's own number. Raises InputError for fewer than NEIGHBOURS + 1 points.
    """
    if len(cloud.points) <= NEIGHBOURS:
        raise InputError(f"a picture needs more than {NEIGHBOURS} images, and there are {len(cloud.points)}")
    from umap import UMAP  # which compiles for seconds

    distance = cloud.space.pairwise(cloud.points, cloud.points).numpy()
    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that distances do not allow to go back, and that a seed needs one processor
        options = {"n_neighbors": NEIGHBOURS, "n_epochs": epochs, "random_state": seed, "n_jobs": 1}
        reducer = UMAP(metric="precomputed", output_metric="hyperboloid", **options)
        flat = reducer.fit_transform(distance).astype(float)
    torch.set_num_threads(threads)  # numba, which UMAP is written with, gives all processors to OpenMP, torch's as well
    return flat / (1 + np.sqrt(1 + (flat**2).sum(axis=1, keepdims=True)))


def compared(clouds: Mapping[str, Cloud], layouts: Mapping[str, np.ndarray], seed: int = 0) -> pd.DataFrame:
    """What a picture keeps of what it was made from: a row per cloud.

    Columns picture, images, and in percent: rest (median norm of the embeddings, of the radius of their ball; NaN
    elsewhere); begun and shown (median radius in the picture before its first step and at its end); shown_low,
    shown_high (quartiles); kept (of the :data:`NEAR` nearest in the picture, how many are among the nearest of the
    embedding); same, same_shown and chance (see :func:`own_share`; in the embedding, in the picture, and at random).
    at_most: how many of the nearest can be of the own category, mean. mixed: the rank correlation (Spearman) of radius
    in the picture with :func:`own_share` in the embedding; mixed_most: the largest that so many equal shares allow.
    """
    lines = []
    for name, cloud in clouds.items():
        disk = torch.from_numpy(layouts[name])
        near, shown = _neighbours(cloud.points, cloud.space), _neighbours(disk, PoincareBall(1.0))
        radius = 100 * disk.norm(dim=-1).numpy()
        low, middle, high = np.quantile(radius, [0.25, 0.5, 0.75])
        own = own_share(near, cloud.codes)
        lines.append(
            {
                "picture": name,
                "images": len(radius),
                "rest": _rest(cloud),
                "begun": 100 * np.median(np.linalg.norm(on_disk(cloud, seed, epochs=0), axis=1)),
                "shown": middle,
                "shown_low": low,
                "shown_high": high,
                "kept": 100 * np.mean([np.isin(a, b).mean() for a, b in zip(shown, near, strict=True)]),
                "same": 100 * np.nanmean(own),
                "same_shown": 100 * np.nanmean(own_share(shown, cloud.codes)),
                "chance": 100 * _chance(cloud.codes),
                "at_most": possible(cloud.codes).mean(),
                "mixed": _correlation(radius, own),
                "mixed_most": _correlation(np.sort(radius), np.sort(own)),
            }
        )
    return pd.DataFrame(lines)


def possible(codes: np.ndarray) -> np.ndarray:
    """How many of an image's :data:`NEAR` neighbours can be of its own category, (n,): there are no more of it.

    >>> possible(np.array([7, 7, 7, 8, 8, 9])).tolist()
    [2, 2, 2, 1, 1, 0]
    """
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return np.minimum(NEAR, counts[inverse] - 1)


def own_share(near: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Of the neighbours that can be of an image's own category, how many are, (n,) from 0 to 1; NaN if none can.

    near: (n, NEAR) rows of the nearest; codes: (n,) categories.
    """
    own = (codes[near] == codes[:, None]).sum(axis=1)
    most = possible(codes)
    return np.divide(own, most, out=np.full(len(codes), np.nan), where=most > 0)


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's rank correlation where both have a number; NaN where one of both is the same everywhere."""
    there = ~np.isnan(first) & ~np.isnan(second)
    first, second = first[there], second[there]
    return spearmanr(first, second).statistic if np.ptp(first) and np.ptp(second) else np.nan


def _rest(cloud: Cloud) -> float:
    if not isinstance(cloud.space, PoincareBall):
        return np.nan
    return 100 * cloud.space.c**0.5 * cloud.points.norm(dim=-1).median().item()


def _neighbours(points: Tensor, space: Geometry) -> np.ndarray:
    own = np.arange(len(points))
    return nearest(points, points, NEAR, space, own, own)[1].numpy()


def _chance(codes: np.ndarray) -> float:
    """The mean of :func:`own_share` of neighbours at random."""
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    others, most = counts[inverse] - 1, possible(codes)
    return float((NEAR * others[most > 0] / (len(codes) - 1) / most[most > 0]).mean())


FULL = {"linestyle": "none", "markeredgecolor": "black", "markeredgewidth": 0.4}
HOLLOW = {"linestyle": "none", "markerfacecolor": "white", "markeredgewidth": 0.9}  # thinner, it had no colour
LOOKS = (
    FULL | {"marker": "o", "markerfacecolor": style.PALETTE[0]},
    HOLLOW | {"marker": "s", "markeredgecolor": style.PALETTE[1]},
    FULL | {"marker": "^", "markerfacecolor": style.PALETTE[2]},
    HOLLOW | {"marker": "x", "markeredgecolor": style.PALETTE[3]},
    HOLLOW | {"marker": "v", "markeredgecolor": style.PALETTE[4]},
    FULL | {"marker": "D", "markerfacecolor": style.PALETTE[8]},
    HOLLOW | {"marker": "+", "markeredgecolor": "black"},
    FULL | {"marker": "*", "markerfacecolor": style.PALETTE[6]},
)
"""The marks of kinds, told apart in grey as well: by shape, and by being full, hollow or a cross."""
SHOWN = len(LOOKS)
"""Kinds that have a mark of their own; the others are grey dots."""
DENSE = 300
"""Points of a kind beyond which they are drawn smaller, and as pixels in a vector graphic."""
TITLE, LINE = 0.35, 0.14  # inches: a title with the space around it, and a line of a legend


def disks(rows: pd.DataFrame, circles: Mapping[str, float] | None = None) -> Figure:
    """A unit disk per picture.

    Args:
        rows: columns picture, x, y (in the unit disk), kind; the :data:`SHOWN` largest kinds of a picture are marked,
            the same in all pictures where these have no more kinds together.
        circles: of each picture, the radius of a dashed circle around the centre.
    """
    names = list(dict.fromkeys(rows["picture"]))
    everywhere = largest(rows["kind"]) if rows["kind"].nunique() <= SHOWN else ()
    marked = {name: everywhere or largest(part["kind"]) for name, part in rows.groupby("picture")}
    alike = len(set(marked.values())) == 1
    legend = 4 if alike else 2 if len(names) < 3 else 1  # columns: a legend no wider than what it stands below
    height = style.WIDTH / len(names) + TITLE + LINE * -(-SHOWN // legend)
    with style.house():
        figure, axes = plt.subplots(1, len(names), figsize=(style.WIDTH, height), squeeze=False)
        for axis, name in zip(axes[0], names, strict=True):
            _rim(axis, (circles or {}).get(name))
            part = rows[rows["picture"] == name]
            handles = _points(axis, part["x"], part["y"], part["kind"], marked[name], size=4.0, crowded=0.7)
            axis.set_title(name)
            axis.set_anchor("N")  # what room there is to spare is below, where the legend hangs
            if not alike:
                place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
                axis.legend(handles=handles, ncols=legend, fontsize=6, handletextpad=0.1, **place)
        if alike:
            figure.legend(handles=handles, loc="outside lower center", ncols=legend, fontsize=6)
        plt.close(figure)
    return figure


def largest(kinds: pd.Series) -> tuple[str, ...]:
    """The :data:`SHOWN` kinds with most images, of equal ones the first by name; in the order of their names."""
    return tuple(sorted(kinds.value_counts().sort_index().nlargest(SHOWN, keep="first").index))


def _points(
    axis: plt.Axes, x: pd.Series, y: pd.Series, kinds: pd.Series, marked: Sequence[str], size: float, crowded: float = 1
) -> list[Line2D]:
    """Draw points, small kinds above large ones and what has no mark below all; returns what a legend shows.

    size: of a mark, in points; crowded: what it is multiplied by where a kind has more than :data:`DENSE` points.
    """
    others = ~kinds.isin(marked)
    axis.plot(x[others], y[others], ".", color="0.7", markersize=size / 2, rasterized=True)
    handles = []
    for number, kind in enumerate(marked):
        here, label = kinds == kind, _short(style.legible(kind.rpartition("/")[2].replace("_", " ")))
        dense = bool(here.sum() > DENSE)
        axis.plot(
            x[here],
            y[here],
            **LOOKS[number],
            markersize=size * (crowded if dense else 1),
            rasterized=dense,
            zorder=3 - here.mean(),
        )
        handles.append(Line2D([], [], **LOOKS[number], markersize=4.5, label=label))
    return handles


def _short(name: str, most: int = 24) -> str:
    """A name that leaves the disks their room.

    >>> _short("Black throated Blue Warbler of the East")
    'Black throated Blue War…'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _rim(axis: plt.Axes, circle: float | None) -> None:
    axis.add_patch(Circle((0, 0), 1, facecolor="0.97", edgecolor="black", linewidth=1.2, zorder=0))
    if circle:
        axis.add_patch(Circle((0, 0), circle, fill=False, edgecolor="black", linestyle="--", linewidth=0.8))
    axis.set_xlim(-1.04, 1.04)
    axis.set_ylim(-1.04, 1.04)
    axis.set_aspect("equal")
    axis.set_axis_off()
