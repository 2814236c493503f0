"""Which class is taken for which."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style


def confusion(rows: pd.DataFrame) -> Figure:
    """The share of the queries of each class whose first answer is of each class; a panel per fold rule.

    rows: columns rule, query_class, answer_class and share (percent of the class's queries).
    """
    rules = rows["rule"].unique()
    classes = sorted(set(rows["query_class"]) | set(rows["answer_class"]))
    names = [style.legible(name).replace("_", " ") for name in classes]
    with style.house():
        size = (style.WIDTH, 0.6 + style.WIDTH / max(2, len(rules)))
        figure, axes = plt.subplots(1, len(rules), figsize=size, sharey=True, squeeze=False)
        for axis, rule in zip(axes[0], rules, strict=True):
            wide = rows[rows["rule"] == rule].pivot(index="query_class", columns="answer_class", values="share")
            _matrix(axis, wide.reindex(index=classes, columns=classes).fillna(0).to_numpy())
            axis.set_xticks(range(len(names)), names, rotation=90)
            axis.set(title=f"folds {rule}", xlabel="class of the first answer")
        axes[0][0].set_yticks(range(len(names)), names)
        axes[0][0].set_ylabel("class of the query")
        plt.close(figure)
    return figure


def _matrix(axis: plt.Axes, shares: np.ndarray) -> None:
    """Shares in percent as shades of grey with their numbers; below one half of a percent nothing is written."""
    axis.imshow(shares, cmap="Greys", vmin=0, vmax=100)
    axis.grid(False)
    for y, x in np.argwhere(shares >= 0.5):
        look = {"fontsize": 7, "color": "white" if shares[y, x] > 50 else "black"}
        axis.text(x, y, f"{shares[y, x]:.0f}", ha="center", va="center", **look)
