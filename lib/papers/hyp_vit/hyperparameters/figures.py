"""What each setting changes, published and ours, as differences from the default."""

import re

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.papers.hyp_vit.hyperparameters.tables import SEEN

PANELS = {
    "c": "c",
    "head_dim": "numbers of the head",
    "batch_size": "batch, published (ours)",
    SEEN: "what the network sees",
}
LOOKS = {
    "published_head": ("published head, In-Shop", {"color": "0.45", "marker": "s", "linestyle": "--"}),
    "published_encoder": ("published encoder, In-Shop", {"color": "0.2", "marker": "x", "linestyle": ":"}),
    "hyp": ("ours, head by D_hyp", {"color": style.PALETTE[0], "marker": "o", "linestyle": "-"}),
    "cosine": ("ours, head by D_cos", {"color": style.PALETTE[1], "marker": "^", "linestyle": ":"}),
    "frozen": ("ours, encoder, frozen", {"color": style.PALETTE[2], "marker": "D", "linestyle": "-."}),
    "trained": ("ours, encoder, trained too", {"color": style.PALETTE[4], "marker": "v", "linestyle": "-"}),
}


def _number(text: str) -> float:
    """The number in what a tick says, which are in its order."""
    return float(re.search(r"[\d.e+-]*\d", text)[0])


def differences(rows: pd.DataFrame) -> Figure:
    """A panel per setting: Recall@K minus that of the default.

    rows: columns of (of :data:`PANELS`), value (text), line (of :data:`LOOKS`), difference (points), spread (NaN where
    there is none).
    """
    with style.house():
        figure, axes = plt.subplots(1, len(PANELS), figsize=(style.WIDTH, 3.3), sharey=True)
        for axis, (of, label) in zip(axes, PANELS.items(), strict=True):
            part = rows[rows["of"] == of]
            values = sorted(part["value"].unique(), key=_number)
            axis.axhline(0, color="0.7", linewidth=0.8)
            for line, points in part.groupby("line", sort=False):
                name, look = LOOKS[line]
                points = points.sort_values("value", key=lambda column: column.map(_number))
                places = [values.index(value) for value in points["value"]]
                spread = points["spread"].fillna(0)
                axis.errorbar(places, points["difference"], yerr=spread, label=name, markersize=4, capsize=2, **look)
            axis.set_xticks(range(len(values)), values, rotation=45)
            axis.set_xlabel(label)
        axes[0].set_ylabel("minus the default\n(points of Recall@1)")
        handles = {
            label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure
