"""Notebook 15, self-distillation of the small encoder: how it went, how many directions features use, what they find.

Images of unseen groups search two galleries: the training images (closed), and each other (open).
"""

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from lib.figures import style
from lib.figures.forest import forest
from lib.figures.lines import lines, look
from lib.geometry import Euclidean, Sphere
from lib.heads.reduction import standard
from lib.metrics import retrieval
from lib.metrics.retrieval import PerQuery
from lib.study import differences
from lib.study.columns import Column, Layout
from lib.training.distillation import effective_rank, spectrum

GALLERIES = ("closed", "open")
BY_COSINE = ", by cosine"
"""Behind an encoder's name: its features unscaled, searched by the cosine."""
HELD = 98
"""Percent of the variance: how many directions hold so much?"""

Results = Mapping[str, Mapping[str, PerQuery]]
"""Encoder → gallery → values per query."""

ENCODERS = Layout(
    [
        *(Column("encoder"), Column("numbers", "dim", "0")),
        Column("{}", "ours", over="at", brackets="class_mean", chance="chance"),
    ],
    by=("encoder",),
)


def encoders_layout(rows: pd.DataFrame) -> str:
    """MAP@k of :func:`values` in each gallery, for the shortest and the longest list."""
    part = rows[(rows["metric"] == "ap_min") & rows["k"].isin([rows["k"].min(), rows["k"].max()])]
    return ENCODERS(part.assign(at=part["gallery"] + ", MAP@" + part["k"].astype(str)))


LAYOUTS = {
    "table_encoders": encoders_layout,
    "table_spectra": Layout(
        [
            *(Column("encoder"), Column("numbers", form="0"), Column("effective rank", "rank", "1")),
            Column(f"directions that hold {HELD} % of the variance", "directions", "0"),
        ],
        by=("encoder",),
    ),
}


def search(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    ks: Sequence[int],
    *,
    cosine: bool = False,
) -> dict[str, PerQuery]:
    """The images ``test`` search both galleries, in the open one without the query's own group.

    x: (n, dim) features. labels, groups: (n,). train, test: indices, without a group in common; the scaler is fitted on
    ``train``. cosine: of features as they are, in place of the Euclidean distance of scaled ones.
    """
    space = Sphere() if cosine else Euclidean()
    known, query = (torch.from_numpy(x[rows]) if cosine else scaled(x, train, rows) for rows in (train, test))
    of = labels[test]
    closed = retrieval.evaluate(query, known, of, labels[train], space, ks)
    opened = retrieval.evaluate(query, query, of, of, space, ks, groups[test], groups[test])
    return dict(zip(GALLERIES, (closed, opened), strict=True))


def scaled(x: np.ndarray, train: np.ndarray, rows: np.ndarray) -> torch.Tensor:
    """The features of the images ``rows``, scaled by the mean and deviation of the images ``train``."""
    return torch.from_numpy(standard(x[train]).transform(x[rows]).astype(np.float32))


def spectra(features: Mapping[str, torch.Tensor]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How many directions the scaled features (n, dim) of unseen images use, by encoder.

    Returns columns encoder, direction (from 1), held (percent of the variance that the first directions hold together);
    and a row per encoder: encoder, numbers (dim), rank (effective rank), directions (that hold :data:`HELD`).
    """
    curves, ranks = [], []
    for encoder, of_images in features.items():
        held = 100 * spectrum(of_images).cumsum(0).numpy()
        curves.append(pd.DataFrame({"encoder": encoder, "direction": np.arange(1, len(held) + 1), "held": held}))
        facts = {"encoder": encoder, "numbers": of_images.shape[1], "rank": effective_rank(of_images).item()}
        ranks.append(facts | {"directions": int(np.searchsorted(held, HELD) + 1)})
    return pd.concat(curves, ignore_index=True), pd.DataFrame(ranks)


def values(results: Results, dims: Mapping[str, int]) -> pd.DataFrame:
    """A row per gallery, encoder, metric and k; ours (mean over queries), class_mean and chance in percent."""
    frames = [
        per_query.mean().assign(gallery=gallery, encoder=encoder, dim=dims[encoder])
        for encoder, galleries in results.items()
        for gallery, per_query in galleries.items()
    ]
    rows = pd.concat(frames, ignore_index=True).rename(columns={"value": "ours"})
    shares = ["ours", "class_mean", "chance"]
    rows[shares] *= 100
    return rows[["gallery", "encoder", "dim", "metric", "k", *shares, "n_queries", "n_without_relevant"]]


def tests(
    results: Results, groups: np.ndarray, pairs: Sequence[tuple[str, str]], ks: Sequence[int], *, seed: int
) -> pd.DataFrame:
    """Paired tests of MAP@k between ``pairs`` of encoders in each gallery; groups (q,) of the queries are the unit."""
    lines = []
    for first, second in pairs:
        for gallery in results[first]:
            a, b = ([results[name][gallery]] for name in (first, second))
            for k in ks:
                at = {"gallery": gallery, "first": first, "second": second, "k": k}
                lines.append(at | differences.difference(a, b, groups, k, seed=seed))
    return differences.together(lines)


def figure_pretraining(history: pd.DataFrame, prototypes: int) -> Figure:
    """Loss, entropies, spread and effective rank of the features over the steps, one panel each.

    history: of :class:`lib.training.dino.Distilled`. prototypes: their number K; log K is the highest entropy there is.
    """
    step = history["step"] + 1
    with style.house():
        figure, axes = plt.subplots(2, 2, figsize=(style.WIDTH, 4.2), sharex=True)
        loss, entropy, spread, rank = axes.flat
        entropy.axhline(math.log(prototypes), color="0.4", linestyle=":", label="log K, all equal")
        mean_answer = history["entropy"] + history["information"]
        entropy.plot(step, mean_answer, color=style.PALETTE[1], linestyle="--", label="of the batch's mean answer")
        entropy.plot(step, history["entropy"], label="of an answer, mean")
        entropy.set_ylabel("teacher's entropy (nats)")
        panels = {"loss": (loss, "loss (nats)"), "spread": (spread, "spread of the features")}
        for column, (axis, label) in (panels | {"rank": (rank, "effective rank")}).items():
            axis.plot(step, history[column])
            axis.set_ylabel(label)
        for axis in axes.flat:
            axis.set_ylim(bottom=0)
        for axis in axes[-1]:
            axis.set_xlabel("step")
        handles = entropy.get_legend_handles_labels()
        figure.legend(*handles, title="teacher's entropy", loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def figure_spectra(rows: pd.DataFrame) -> Figure:
    """The curves of :func:`spectra`."""
    shown = rows.rename(columns={"encoder": "line", "direction": "x", "held": "y"})
    looks = {line: look(number) | {"marker": ""} for number, line in enumerate(shown["line"].unique())}
    labels = {"xlabel": "principal directions, the widest first", "ylabel": "share of the variance (%)"}
    return lines(shown, log=True, looks=looks, **labels)


def figure_encoders(rows: pd.DataFrame) -> Figure:
    """MAP@k of each encoder in both galleries, from :func:`values` of one metric; dashed: chance in the closed one."""
    shown = rows.assign(name=rows["encoder"], series=rows["gallery"] + " gallery", difference=rows["ours"])
    shown = shown.assign(panel="MAP@" + rows["k"].astype(str), low=np.nan, high=np.nan, clear=True)
    figure = forest(shown, xlabel="MAP@k (%)", zero=False)
    for axis, (_, part) in zip(figure.axes, rows.groupby("k", sort=False), strict=True):
        axis.axvline(part["chance"].iloc[0], color="black", linestyle="--", linewidth=1)
    return figure
