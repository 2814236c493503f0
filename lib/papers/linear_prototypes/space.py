"""The space of the embeddings in rows, tests and Fig. 4 (section III-D)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.metrics.significance import paired_permutation
from lib.papers.linear_prototypes.measures import CLASSIFIERS, MEASURES, Measured
from lib.study import differences, paired
from lib.study.columns import Column, Layout

MARKERS = (*style.MARKERS, "X", "p", "*", "h")
LAYOUTS = {
    "table_tests": paired.tests_layout(difference="first − second"),
    "table_space": Layout(
        [
            Column("method"),
            *(
                Column(title, "ours", at=("measure", name), pm="spread", brackets="seeds_spread")
                for name, title in MEASURES.items()
            ),
        ]
    ),
    "table_control": Layout([Column("method"), *(Column(f"{kind} classifier, %", kind) for kind in CLASSIFIERS)]),
}


def rows(spaces: Mapping[str, Sequence[Measured]]) -> pd.DataFrame:
    """One row per method and measure: method, measure, ours (mean), spread (over folds), seeds_spread, n_seeds."""
    lines = [
        {"method": name, "fold": space.fold, "repeat": space.repeat} | space.values
        for name, trainings in spaces.items()
        for space in trainings
    ]
    keys = ["method", "measure"]
    long = pd.DataFrame(lines).melt([keys[0], "fold", "repeat"], list(MEASURES), keys[1])

    def over(what: str) -> pd.Series:
        return long.groupby([*keys, what], sort=False)["value"].mean().groupby(keys, sort=False).std()

    table = long.groupby(keys, sort=False).agg(ours=("value", "mean"), n_seeds=("repeat", "nunique"))
    return table.assign(spread=over("fold"), seeds_spread=over("repeat")).reset_index()


def tests(spaces: Mapping[str, Sequence[Measured]], seed: int = 0) -> pd.DataFrame:
    """What the title claims, tested on held-out images over their groups and over trainings, a row each.

    spaces: three methods, the frozen features, the paper's head, and one linear layer. Columns first and second, each a
    method and one of its measures, then as :func:`lib.study.answers.compare`.
    """
    plain, head, linear = spaces
    pairs = [
        ((head, "silhouette"), (plain, "silhouette")),
        ((head, "linear"), (plain, "linear")),
        ((plain, "kernel"), (plain, "linear")),
        ((head, "kernel"), (head, "linear")),
        ((linear, "centroid"), (head, "centroid")),
    ]
    images = {
        name: pd.concat([space.images.assign(repeat=space.repeat) for space in parts]) for name, parts in spaces.items()
    }
    lines = []
    for first, second in pairs:
        a, b = (images[name][value].to_numpy() for name, value in (first, second))
        test = paired_permutation(a, b, *(images[plain][name].to_numpy() for name in ("group", "repeat")), seed=seed)
        names = [f"{name}, {MEASURES[value].removesuffix(', %')}" for name, value in (first, second)]
        lines.append({"first": names[0], "second": names[1]} | asdict(test))
    return differences.together(lines)


def figure_4(parts: Mapping[str, tuple[np.ndarray, Sequence[float]]], labels: Sequence[str]) -> Figure:
    """The first three principal components (Fig. 4), a row of two views per method; a rare class covers a common one.

    Args:
        parts: method → coordinates (n, 3) and the share of variance of each component (percent).
        labels: (n,) class names.
    """
    labels = np.asarray(labels)
    looks = _class_looks(labels)
    with style.house():
        size = (style.WIDTH, 0.6 + 2.7 * len(parts))
        figure, axes = plt.subplots(len(parts), 2, figsize=size, squeeze=False)
        for line, (method, (xyz, share)) in zip(axes, parts.items(), strict=True):
            for axis, (first, second) in zip(line, ((0, 1), (0, 2)), strict=True):
                for name, look in looks.items():
                    mine = xyz[labels == name]
                    axis.scatter(mine[:, first], mine[:, second], label=style.legible(name), **look, rasterized=True)
                axis.set_xlabel(f"component {first + 1} ({share[first]:.0f} % of variance)")
                axis.set_ylabel(f"component {second + 1} ({share[second]:.0f} %)")
            line[0].set_title(method, loc="left")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure


def _class_looks(labels: np.ndarray) -> dict[str, dict[str, object]]:
    """How the images of each class are drawn: a class that outnumbers all others together is small and pale."""
    names, counts = np.unique(labels, return_counts=True)
    looks, size = {}, 24 if len(labels) <= 500 else 14
    for code, (name, count) in enumerate(zip(names, counts, strict=True)):
        color, marker = np.array(style.PALETTE[code % 10]), MARKERS[code % len(MARKERS)]
        look = {"color": [color], "s": size, "edgecolor": "black", "linewidth": 0.4}
        if 2 * count > len(labels):
            look = {"color": [1 - 0.5 * (1 - color)], "s": 6, "edgecolor": "0.5", "linewidth": 0.2}
        looks[name] = look | {"marker": marker, "zorder": 2 + (counts > count).sum() / len(names)}
    return looks
