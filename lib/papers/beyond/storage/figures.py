"""Figures of storage and search: bytes against what is found, and time against the size of the gallery."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style


def storage(rows: pd.DataFrame, k: int) -> Figure:
    """MAP@k and the neighbours that are kept over the bytes of a stored image; a line per method and codec.

    rows: columns method, codec, bytes, map_k, recall (percent).
    """
    panels = {f"map_{k}": f"MAP@{k} (%)", "recall": f"of the {k} nearest kept (%)"}
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 3.2))
        for axis, (column, label) in zip(axes, panels.items(), strict=True):
            for number, ((method, codec), line) in enumerate(rows.groupby(["method", "codec"], sort=False)):
                line = line.sort_values("bytes")
                axis.plot(line["bytes"], line[column], label=f"{method}, {codec}", **_look(number, method))
            axis.set_xscale("log", base=2)
            axis.set_xlabel("bytes per stored image")
            axis.set_ylabel(label)
            axis.xaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:g}"))
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def latency(rows: pd.DataFrame) -> Figure:
    """Milliseconds of a query, alone and in a batch, and seconds to build, over the number of stored codes.

    rows: columns structure, size, single_ms, batch_ms, build_s.
    """
    panels = {
        "single_ms": "one query alone (ms)",
        "batch_ms": "a query among 200 (ms)",
        "build_s": "building the index (s)",
    }
    with style.house():
        figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 3.0))
        for axis, (column, label) in zip(axes, panels.items(), strict=True):
            for number, (structure, line) in enumerate(rows.groupby("structure", sort=False)):
                line = line[line[column] > 0].sort_values("size")
                axis.plot(line["size"], line[column], label=structure, **_look(number))
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xlabel("codes in the gallery")
            axis.set_ylabel(label)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure


def _look(number: int, method: str = "") -> dict[str, object]:
    """Open signs without a mapper are so large that a full one, of equal height, can be seen inside them."""
    bare = method == "no mapper"
    return {
        "color": style.PALETTE[number],
        "marker": style.MARKERS[number],
        "dashes": style.DASHES[number] or (None, None),
        "markerfacecolor": "none" if bare else style.PALETTE[number],
        "markersize": 9 if bare else 4.5,
        "linewidth": 1.3,
    }
