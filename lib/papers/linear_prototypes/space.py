"""What a head does to the space of the embeddings: compactness, separation, and is it linear?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import balanced_accuracy_score, davies_bouldin_score, silhouette_score
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lib.papers.linear_prototypes import figures
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Figure, Table
from lib.results.store import Run
from lib.training.methods import Fitted

MEASURES = {
    "compactness": "within / between",
    "silhouette": "silhouette",
    "davies_bouldin": "Davies–Bouldin",
    "linear": "linear classifier, %",
    "kernel": "kernel classifier, %",
    "centroid": "nearest centroid, %",
    "effective_rank": "effective rank",
}
AXES = ("component_1", "component_2", "component_3")
"""Coordinates of Fig. 4: they turn with the slightest change."""


@dataclass(frozen=True, eq=False)
class Space:
    """Embeddings of one method on one split: of the training images and of the held-out ones."""

    train: np.ndarray
    held_out: np.ndarray
    train_labels: np.ndarray
    held_out_labels: np.ndarray


def embed(fitted: Fitted, x: np.ndarray, labels: np.ndarray) -> Space:
    """Both parts of the split of ``fitted``, rows scaled to length 1, as cosine search sees them.

    x: (n, dim) features, labels: (n,).
    """
    train, held_out = fitted.split.train, fitted.split.held_out
    parts = [fitted.embed(x[rows]).double().numpy() for rows in (train, held_out)]
    unit = [part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12) for part in parts]  # 0 stays 0
    return Space(*unit, labels[train], labels[held_out])


def compactness(x: np.ndarray, labels: np.ndarray) -> float:
    """Mean squared distance to the centroid of the own class over that between the centroids of two classes.

    >>> float(compactness(np.array([[0.0], [2.0], [10.0], [12.0]]), np.array([0, 0, 1, 1])))
    0.01
    """
    names = np.unique(labels)
    centres = np.stack([x[labels == name].mean(axis=0) for name in names])
    within = np.mean([((x[labels == n] - centre) ** 2).sum(1).mean() for n, centre in zip(names, centres, strict=True)])
    first, second = np.triu_indices(len(names), k=1)
    return within / ((centres[first] - centres[second]) ** 2).sum(1).mean()


def effective_rank(x: np.ndarray) -> float:
    """How many directions share the variance: exp of the entropy of the eigenvalues of the covariance.

    >>> round(effective_rank(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])), 6)
    2.0
    """
    share = np.linalg.svd(x - x.mean(axis=0), compute_uv=False) ** 2
    share = share[share > 0] / share.sum()
    return float(np.exp(-(share * np.log(share)).sum()))


def measure(space: Space, seed: int = 0) -> dict[str, float]:
    """All of :data:`MEASURES` on the held-out images; classifiers learn from the training images.

    Accuracies are the mean over the classes, in percent. A class with one held-out image has no silhouette; a class
    that the training images lack is left out. With fewer than two classes left everything is NaN.
    """
    known = np.isin(space.held_out_labels, np.unique(space.train_labels))
    counts = pd.Series(space.held_out_labels[known]).value_counts()
    known &= np.isin(space.held_out_labels, counts.index[counts > 1])
    x, y = space.held_out[known], space.held_out_labels[known]
    if len(np.unique(y)) < 2:
        return dict.fromkeys(MEASURES, np.nan)
    ridge = RidgeClassifierCV(np.logspace(-2, 4, 7), class_weight="balanced")  # strength by leave-one-out in training
    kernel = Nystroem(gamma=1 / x.shape[1], n_components=min(500, len(space.train)), random_state=seed)
    classifiers = {
        "linear": make_pipeline(StandardScaler(), ridge),
        "kernel": make_pipeline(StandardScaler(), kernel, ridge),
        "centroid": NearestCentroid(),
    }
    return {
        "compactness": compactness(x, y),
        "silhouette": silhouette_score(x, y),
        "davies_bouldin": davies_bouldin_score(x, y),
        "effective_rank": effective_rank(x),
    } | {
        name: 100 * balanced_accuracy_score(y, one.fit(space.train, space.train_labels).predict(x))
        for name, one in classifiers.items()
    }


def rows(spaces: Mapping[str, Sequence[Space]], seed: int = 0) -> pd.DataFrame:
    """One row per method and measure: method, measure, ours (mean over the splits), spread."""
    frames = [
        pd.DataFrame([measure(one, seed) for one in of_splits]).assign(method=name)
        for name, of_splits in spaces.items()
    ]
    long = pd.concat(frames).melt(id_vars="method", value_vars=list(MEASURES), var_name="measure")
    grouped = long.groupby(["method", "measure"], sort=False)["value"]
    return grouped.agg(ours="mean", spread="std").reset_index()


def layout(table: pd.DataFrame) -> str:
    """A row per method, a column per measure, as Markdown."""
    cells = table.assign(cell=[f"{percent(row.ours)} ± {percent(row.spread)}" for row in table.itertuples()])
    wide = cells.pivot_table(index="method", columns="measure", values="cell", aggfunc="first", sort=False)
    return markdown_table(wide[list(MEASURES)].rename(columns=MEASURES).reset_index())


def first_components(space: Space, n: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (m, n) of the held-out images on components of the training images, and their variance (percent)."""
    pca = PCA(n, svd_solver="full").fit(space.train)
    xyz = pca.transform(space.held_out)
    signs = np.where(np.abs(xyz).max(0) == xyz.max(0), 1, -1)  # the sign of a component means nothing: fix it
    return signs * xyz, 100 * pca.explained_variance_ratio_


def verdicts(table: pd.DataFrame) -> list[str]:
    """What the numbers say about the title's claim; a difference counts if it is above the larger of two spreads."""
    plain, head, linear = table["method"].unique()
    cells = table.set_index(["method", "measure"])

    def compared(first: tuple[str, str], second: tuple[str, str]) -> str:
        gain = cells.loc[first, "ours"] - cells.loc[second, "ours"]
        if not abs(gain) > max(cells.loc[first, "spread"], cells.loc[second, "spread"]):
            return "not clearly different from"
        return "higher than" if gain > 0 else "lower than"

    return [
        f"silhouette of unseen images: {head} is {compared((head, 'silhouette'), (plain, 'silhouette'))} {plain}",
        f"linear classifier: {head} is {compared((head, 'linear'), (plain, 'linear'))} {plain}",
        f"on {plain}, a kernel classifier is {compared((plain, 'kernel'), (plain, 'linear'))} a linear one",
        f"on {head}, a kernel classifier is {compared((head, 'kernel'), (head, 'linear'))} a linear one",
        f"nearest centroid: {linear} is {compared((linear, 'centroid'), (head, 'centroid'))} {head}",
    ]


def table(run: Run, measures: pd.DataFrame) -> Table:
    """The measures, as :func:`rows` makes them."""
    text = (
        f"Mean ± standard deviation over {run.parameters['folds']} folds by {run.parameters['groups']}; {_about(run)} "
        "Classifiers learn from the training images; accuracies are means over the classes."
    )
    return Table("the space of the embeddings", measures, text, markdown=layout(measures))


def figure_4(run: Run, spaces: Mapping[str, Space], labels: Sequence[str]) -> Figure:
    """Fig. 4: the first components of each method's space, all of one split; labels: of its held-out images."""
    parts = {name: first_components(one) for name, one in spaces.items()}
    frames = [pd.DataFrame(xyz, columns=AXES).assign(method=name, label=labels) for name, (xyz, _) in parts.items()]
    text = f"First three principal components of the training images, fold 0; shown are {_about(run)}"
    drawn = figures.components(parts, labels)
    return Figure("the space of the embeddings", pd.concat(frames), text, free=AXES, figure=drawn)


def _about(run: Run) -> str:
    return (
        f"embeddings of length 1 of {run.parameters['groups']}s that were held out; heads trained for "
        f"{run.parameters['epochs']} epochs (published: 100) by episodes on the others."
    )
