"""Numbers in squares, as shades of grey: which class is taken for which, and tables of two things that vary."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style


def heat(
    rows: pd.DataFrame,
    *,
    xlabel: str,
    ylabel: str,
    title: str = "{}",
    square: bool = False,
    order: Mapping[str, Sequence[object]] | None = None,
) -> Figure:
    """A panel for each value of ``panel``: the ``value`` of every y and x in percent, dark where it is large.

    Below half a percent it is not written.

    Args:
        rows: columns panel, y, x, value; what is missing counts as 0. y and x stand as sorted, names as they print.
        title: of a panel, with "{}" for its name.
        square: y and x are names of one kind, as classes, and both axes have all of them.
        order: of y and x, where it is not that.
    """
    panels, y, x = rows["panel"].unique(), sorted(rows["y"].unique()), sorted(rows["x"].unique())
    if square:
        y = x = sorted({*y, *x})
    if order:
        y, x = list(order["y"]), list(order["x"])
    with style.house():
        upright = 0.07 * max(0, max(len(_named(name)) for name in x) - 15)  # inches below the panels
        size = (style.WIDTH, 0.6 + style.WIDTH / max(2, len(panels)) + upright)
        figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False)
        for axis, panel in zip(axes[0], panels, strict=True):
            wide = rows[rows["panel"] == panel].pivot(index="y", columns="x", values="value")
            values = wide.reindex(index=y, columns=x).fillna(0).to_numpy()
            axis.imshow(values, cmap="Greys", vmin=0, vmax=100)
            axis.grid(False)
            for row, column in np.argwhere(values >= 0.5):
                dark = values[row, column] > 50
                text = {"fontsize": 7, "color": "white" if dark else "black", "ha": "center", "va": "center"}
                axis.text(column, row, f"{values[row, column]:.0f}", **text)
            axis.set_xticks(range(len(x)), [_named(name) for name in x], rotation=90)
            axis.set(title=title.format(panel), xlabel=xlabel)
        axes[0][0].set_yticks(range(len(y)), [_named(name) for name in y])
        axes[0][0].set_ylabel(ylabel)
        plt.close(figure)
    return figure


def confusion(rows: pd.DataFrame) -> Figure:
    """The share of the queries of each class whose first answer is of each class; a panel per fold rule.

    rows: columns rule, query_class, answer_class and share (percent of the class's queries).
    """
    names = {"rule": "panel", "query_class": "y", "answer_class": "x", "share": "value"}
    labels = {"xlabel": "class of the first answer", "ylabel": "class of the query", "title": "folds {}"}
    return heat(rows.rename(columns=names), square=True, **labels)


def _named(name: object) -> str:
    return style.legible(f"{name:g}" if isinstance(name, float) else str(name)).replace("_", " ")
