"""The linear prototypes: decision regions in a plane, MAP over k and over labels, gains, principal components."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from lib.figures import style
from lib.metrics.significance import Evidence
from lib.papers.linear_prototypes.plane.experiment import Plane

MARKERS = (*style.MARKERS, "X", "p", "*", "h")
CHANCE = {"color": "0.4", "linewidth": 0.7, "label": "chance"}
"""The level of a gallery in random order."""


def regions(plane: Plane, labels: np.ndarray, classes: Sequence[str], query: int, limit: float, c: float) -> Figure:
    """Images in a plane, the prototypes of the support, and which class a query would be given where.

    Args:
        plane: what is where. labels: (n,) integers that index ``classes``, at most 8. query: index of the query.
        limit: half width of the picture. c: the rim is at 1/√c, drawn where it is in the picture.
    """
    with style.house():
        figure = Figure(figsize=(6.4, 4.4), layout="none")
        axis = figure.add_axes((0.1, 0.11, 0.6, 0.873))
        _regions(axis, plane, labels, classes, query, limit, c)
        axis.set_ylabel("second coordinate")
        figure.legend(*axis.get_legend_handles_labels(), loc=(0.72, 0.5), title="large: support")
    return figure


def curvatures(
    planes: Mapping[float, Plane], labels: np.ndarray, classes: Sequence[str], query: int, limit: float
) -> Figure:
    """The picture of :func:`regions` at several curvatures c, side by side."""
    with style.house():
        size = (style.WIDTH, 1.0 + style.WIDTH / len(planes))
        figure, axes = plt.subplots(1, len(planes), figsize=size, sharey=True, squeeze=False)
        for axis, (c, plane) in zip(axes[0], planes.items(), strict=True):
            _regions(axis, plane, labels, classes, query, limit, c)
            chances = plane.chances[query]
            axis.set_title(f"c = {c:g}: {style.legible(classes[chances.argmax()])} {100 * chances.max():.0f} %")
        axes[0][0].set_ylabel("second coordinate")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
        plt.close(figure)
    return figure


def _regions(
    axis: plt.Axes, plane: Plane, labels: np.ndarray, classes: Sequence[str], query: int, limit: float, c: float
) -> None:
    points, support, prototypes = plane.h.numpy(), plane.support.numpy(), plane.prototypes.numpy()
    shades = _shades(plane.regions.numpy())
    height, width = np.meshgrid(*2 * [np.linspace(-limit, limit, len(shades))], indexing="ij")
    shades[c * (height**2 + width**2) > 1] = 0.93  # there is no point beyond the rim
    axis.imshow(shades, origin="lower", extent=(-limit, limit, -limit, limit), interpolation="nearest")
    if c > 0 and 1 / np.sqrt(c) < np.sqrt(2) * limit:
        axis.add_patch(Circle((0, 0), 1 / np.sqrt(c), fill=False, edgecolor="black", linewidth=1.5))
    others = np.setdiff1d(np.arange(len(points)), support)
    for code, name in enumerate(classes):
        look = {"color": style.PALETTE[code], "markeredgecolor": "black"}
        mine = others[labels[others] == code]
        axis.plot(*points[mine].T, MARKERS[code], markersize=4, markeredgewidth=0.3, alpha=0.7, **look)
        mine = support[labels[support] == code]
        axis.plot(*points[mine].T, MARKERS[code], markersize=7, markeredgewidth=1.2, **look, label=style.legible(name))
        ends = np.stack([points[mine], np.broadcast_to(prototypes[code], (len(mine), 2))], axis=1)
        axis.add_collection(LineCollection(ends, color="black", linewidth=0.6, zorder=1.5))
    axis.plot(*prototypes.T, "P", color="white", markeredgecolor="black", markersize=11, label="prototype")
    axis.plot(*points[query], "*", color="yellow", markeredgecolor="black", markersize=15, label="query")
    axis.set(xlim=(-limit, limit), ylim=(-limit, limit), xlabel="first coordinate")
    axis.grid(False)
    axis.locator_params(nbins=5)


def _shades(chances: np.ndarray) -> np.ndarray:
    """The colour of the most probable class, white where all classes are equally probable."""
    best = chances.argmax(-1)
    n = chances.shape[-1]
    certain = (np.take_along_axis(chances, best[..., None], -1) - 1 / n) / (1 - 1 / n)
    return 1 - 0.75 * certain * (1 - np.array(style.PALETTE)[best])


def by_k(rows: pd.DataFrame, sides: Mapping[str, str]) -> Figure:
    """MAP@k over k, one panel for each family of methods, chance as a thin line (Fig. 2).

    rows: columns method, encoder, k, ours, spread, chance (percent). sides: method → title of its panel.
    """
    encoders = list(dict.fromkeys(rows["encoder"]))
    with style.house():
        figure, axes = plt.subplots(1, len(sides), figsize=(style.WIDTH, 3.0), sharey=True, squeeze=False)
        for axis, (method, title) in zip(axes[0], sides.items(), strict=True):
            for number, encoder in enumerate(encoders):
                part = rows[(rows["method"] == method) & (rows["encoder"] == encoder)]
                x = part["k"] + 0.12 * (number - (len(encoders) - 1) / 2)
                _line(axis, x, part, encoder, number, style.DASHES[number % len(style.DASHES)])
            axis.plot(part["k"], part["chance"], **CHANCE)
            axis.set_title(title)
            axis.set_xlabel("k (length of the list)")
            axis.set_xticks(sorted(rows["k"].unique()))
        axes[0][0].set_ylabel("MAP@k (%)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure


def by_labels(rows: pd.DataFrame, baseline: float, k: int) -> Figure:
    """MAP@k over the size of the support, and over the number of labelled images per class.

    Heads that took as many steps with all sizes are solid, those of as many epochs dashed; chance is a thin line.

    rows: columns sweep ("support", "labels"), method, length ("equal steps", "equal epochs"), size (0 stands for all),
    ours, spread, chance. baseline: the frozen features, a horizontal line. All in percent.
    """
    titles = {
        "support": "K, support images per class (all labels known)",
        "labels": "labelled images per class",
    }
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 3.2), sharey=True)
        for axis, (sweep, title) in zip(axes, titles.items(), strict=True):
            of_sweep = rows[rows["sweep"] == sweep]
            sizes, methods = (list(dict.fromkeys(of_sweep[name])) for name in ("size", "method"))
            for (method, length), part in of_sweep.groupby(["method", "length"], sort=False):
                solid, number = length == of_sweep["length"].iloc[0], methods.index(method)
                x = [sizes.index(size) for size in part["size"]]
                _line(axis, x, part, f"{method}, {length}", number, "" if solid else style.DASHES[1])
            axis.axhline(baseline, color="black", linewidth=1, linestyle=":", label="frozen features, scaled")
            axis.axhline(of_sweep["chance"].mean(), **CHANCE)
            axis.set_xticks(range(len(sizes)), [size or "all" for size in sizes])
            axis.set_xlabel(title)
        axes[0].set_ylabel(f"MAP@{k} (%)")
        figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _line(
    axis: plt.Axes, x: Sequence[float], part: pd.DataFrame, label: str, number: int, dashes: str | tuple[float, ...]
) -> None:
    axis.errorbar(
        x,
        part["ours"],
        yerr=part["spread"],
        label=label,
        color=style.PALETTE[number],
        marker=style.MARKERS[number % len(style.MARKERS)],
        dashes=dashes or (None, None),
        markersize=4,
        linewidth=1.2,
        capsize=2,
    )


def differences(tests: pd.DataFrame) -> Figure:
    """What methods gain or lose against another one, a row each, with 95 % intervals; galleries side by side.

    tests: columns rule (the gallery), first, second, k, difference, low, high (percentage points).
    """
    names, rules = (list(dict.fromkeys(tests[name])) for name in ("first", "rule"))
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 0.9 + 0.32 * len(names)))
        for number, (rule, part) in enumerate(tests.groupby("rule", sort=False)):
            y = np.array([names.index(name) for name in part["first"]]) + 0.22 * (number - (len(rules) - 1) / 2)
            ends = np.abs(part[["low", "high"]].to_numpy().T - part["difference"].to_numpy())
            look = {"color": style.PALETTE[number], "marker": style.MARKERS[number], "label": f"{rule} gallery"}
            axis.errorbar(part["difference"], y, xerr=ends, linestyle="none", markersize=5, capsize=2, **look)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(names)), names)
        axis.invert_yaxis()
        axis.set_title(f"against {tests['second'].iloc[0]}", loc="left")
        axis.set_xlabel(f"difference of MAP@{tests['k'].iloc[0]} (percentage points)")
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def gains(results: Mapping[str, Evidence]) -> Figure:
    """Both distributions of a mean gain and both intervals, as they should be drawn (Fig. 3, LP-5): a row per title.

    The sign-flip null and its 95 % range at the left of the legend, the bootstrap and the confidence interval beside.
    Where fewer than two groups allow no test, the observed gain stands alone and the title says so.
    """
    with style.house():
        size = (style.WIDTH, 0.6 + 1.45 * len(results))
        figure, axes = plt.subplots(len(results), 1, figsize=size, squeeze=False)
        for axis, (title, one) in zip(axes[:, 0], results.items(), strict=True):
            if one.test.n_units > 1:
                _distributions(axis, one)
            if one.test.n_units > 0:
                axis.axvline(one.test.difference, color="black", linewidth=1.6, label="observed gain")
            untested = ": fewer than two groups, no test" if one.test.n_units < 2 else ""
            axis.set_title(f"{title}{untested}", loc="left")
            axis.set_ylabel("resamples (%)")
        axes[-1, 0].set_xlabel("mean gain of AP (percentage points)")
        handles = {}
        for axis in axes[:, 0]:
            handles = dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True)) | handles
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _distributions(axis: plt.Axes, one: Evidence) -> None:
    """Both distributions as histograms, and both ends of their intervals."""
    ends = (one.null_low, one.null_high), (one.test.low, one.test.high)
    kinds = ("no difference (signs flipped)", "bootstrap of the gain")
    bins = np.histogram_bin_edges(np.concatenate([one.null, one.bootstrap]), 80)
    for number, (values, interval, kind) in enumerate(zip((one.null, one.bootstrap), ends, kinds, strict=True)):
        look = {"color": style.PALETTE[number]}
        share = np.full(len(values), 100 / len(values))
        style_of = {"alpha": 0.55, "hatch": ("", "////")[number], "edgecolor": style.PALETTE[number]}
        axis.hist(values, bins, weights=share, label=kind, histtype="stepfilled", **look, **style_of)
        name = ("95 % of the null", "95 % confidence interval (Student's t)")[number]
        for end in interval:
            axis.axvline(end, linestyle=("--", "-.")[number], linewidth=1.2, label=name, **look)


def components(parts: Mapping[str, tuple[np.ndarray, Sequence[float]]], labels: Sequence[str]) -> Figure:
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
