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
from lib.figures.lines import lines, look
from lib.heads.reduction import standard
from lib.metrics.directions import effective_rank, spectrum
from lib.study import paired
from lib.study.answers import ends
from lib.study.columns import Column, Layout
from lib.study.scores import Scores, of_answers
from lib.training.experiment import ask, fit
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

GALLERIES = ("closed", "open")
BY_COSINE = ", by cosine"
"""Behind an encoder's name: its features unscaled, searched by the cosine."""
HELD = 98
"""Percent of the variance: how many directions hold so much?"""

ENCODERS = Layout(
    [
        *(Column("encoder"), Column("numbers", "dim", "0")),
        Column("{}", "ours", over="at", brackets="class_mean", chance="chance"),
    ],
    by=("encoder",),
)


def encoders_layout(rows: pd.DataFrame) -> str:
    """MAP@k of :func:`values` in each gallery, for the shortest and the longest list."""
    part = ends(rows[rows["metric"] == "ap_min"])
    return ENCODERS(part.assign(at=part["gallery"] + ", MAP@" + part["k"].astype(str)))


LAYOUTS = {
    "table_encoders": encoders_layout,
    "table_encoders_tests": paired.by_length("gallery", "gallery"),
    "table_spectra": Layout(
        [
            *(Column("encoder"), Column("numbers", form="0"), Column("effective rank", "rank", "1")),
            Column(f"directions that hold {HELD} % of the variance", "directions", "0"),
        ],
        by=("encoder",),
    ),
}


def search(
    features: Mapping[str, np.ndarray], labels: np.ndarray, groups: np.ndarray, split: Split, ks: Sequence[int]
) -> Scores:
    """The queries of ``split`` search both galleries, in the open one without their own group.

    features: encoder → (n, dim); by the Euclidean distance of scaled features, and by the cosine of features as they
    are. labels, groups: (n,). The scores are told apart by gallery and method.
    """
    answers: dict[str, dict[str, list[Answer]]] = {gallery: {} for gallery in GALLERIES}
    for encoder, x in features.items():
        scaled_features, plain = (Recipe(source, x.shape[1], 0) for source in ("scaled", "raw"))
        methods = [
            Method(encoder, scaled_features, Settings(half=False)),
            Method(f"{encoder}{BY_COSINE}", plain, Settings(half=False), search="cosine"),
        ]
        fitted = fit(x, labels, methods, [split], what=encoder)
        for gallery, of_gallery in answers.items():
            of_gallery |= ask(fitted, x, labels, ks, gallery=gallery, groups=groups, what=f"{encoder}, {gallery}")
    return of_answers(answers, groups, rule="gallery")


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


def values(scores: Scores, features: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """A row per gallery, encoder, metric and k; ours (mean over queries), class_mean and chance in percent."""
    rows = scores.means().rename(columns={"method": "encoder"})
    dims = {name: x.shape[1] for name, x in features.items()}
    rows["dim"] = rows["encoder"].str.removesuffix(BY_COSINE).map(dims)
    columns = ["gallery", "encoder", "dim", "metric", "k", "ours", "class_mean", "chance"]
    return rows[[*columns, "n_queries", "n_without_relevant"]]


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
