"""Closed and open gallery as a drawing: what a head does to the images that it learnt from, and to others."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from lib.figures import style

SIDES = {
    "closed": (0.05, "closed: search the images\nthat the head learnt from"),
    "open": (0.24, "open: search images of other patients\nthat nobody learnt from"),
}
"""How far the images of a class lie from their middle, and what the gallery is called."""
QUERY = (-0.05, 0.2)
NEAREST = 5


def points(seed: int = 7) -> pd.DataFrame:
    """Drawn images, not data: columns side, x, y, tissue, role ("gallery", "query", "nearest").

    In both galleries the same query, of tissue A, looks for its nearest images.
    """
    rng, frames = np.random.default_rng(seed), []
    middles = 0.5 * np.stack([np.cos([2.1, 0.0, 4.2]), np.sin([2.1, 0.0, 4.2])], axis=1)
    for side, (deviation, _) in SIDES.items():
        xy = np.concatenate([middle + deviation * rng.normal(size=(12, 2)) for middle in middles])
        rows = pd.DataFrame({"side": side, "x": xy[:, 0], "y": xy[:, 1], "tissue": np.repeat(list("ABC"), 12)})
        nearest = np.argsort(np.linalg.norm(xy - QUERY, axis=1))[:NEAREST]
        rows["role"] = np.where(rows.index.isin(nearest), "nearest", "gallery")
        asks = {"side": side, "x": QUERY[0], "y": QUERY[1], "tissue": "A", "role": "query"}
        frames += [rows, pd.DataFrame([asks])]
    return pd.concat(frames, ignore_index=True)


def closed_open(rows: pd.DataFrame) -> Figure:
    """The points of :func:`points`: filled where the head learnt from them, lines to what the query finds."""
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 3.6))
        for axis, (side, (_, title)) in zip(axes, SIDES.items(), strict=True):
            _disk(axis, rows[rows["side"] == side], filled=side == "closed")
            axis.set_title(title)
        figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure


def _disk(axis: Axes, rows: pd.DataFrame, *, filled: bool) -> None:
    """One gallery inside the ball, its images marked by tissue, joined to the query if they are found."""
    axis.add_patch(Circle((0, 0), 1, fill=False, color="0.4"))
    query = rows[rows["role"] == "query"].iloc[0]
    for found in rows[rows["role"] == "nearest"].itertuples():
        axis.plot([query.x, found.x], [query.y, found.y], color="0.4", linewidth=0.8)
    for number, (tissue, part) in enumerate(rows[rows["role"] != "query"].groupby("tissue")):
        colour, marker = style.PALETTE[number], style.MARKERS[number]
        look = {"color": colour, "markerfacecolor": colour if filled else "white", "label": f"tissue {tissue}"}
        axis.plot(part["x"], part["y"], marker, markersize=5, **look)
    axis.plot(query.x, query.y, "*", color="black", markersize=12, label="query, of tissue A")
    axis.set_aspect("equal")
    axis.set_axis_off()
