"""Notebook 10, frozen features (section 2.1): what PCA keeps, and Euclidean retrieval with scaled, PCA and NCA."""

from collections.abc import Mapping, Sequence

import joblib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib import paths
from lib.figures.lines import lines, look, with_level
from lib.papers.hyper_dino.recipes import recipes
from lib.papers.hyper_dino.retrieval import retrieval_table
from lib.processes import spread
from lib.study.columns import Column, Layout
from lib.study.markdown import markdown_table
from lib.study.scores import Answers
from lib.training import reductions
from lib.training.recipes import Recipe
from lib.training.splits import Split

LAYOUTS = {
    "table_duplicates": markdown_table,
    "table_baselines": Layout(
        [
            *(Column("folds", "rule"), Column("encoder"), Column("input", "source"), Column("numbers", "dim_in", "0")),
            Column("MAP@{}", "value", over="k", pm="spread", brackets="class_mean", chance="chance"),
            Column("published MAP@{}", "published", over="k", optional=True),
        ],
        by=("encoder", "source", "dim_in"),
        block="rule",
    ),
}


def baselines(
    dim: int, lengths: Sequence[int | str], nca_lengths: Sequence[int | str], longest: int | None = None
) -> list[Recipe]:
    """Euclidean retrieval, the method of [9]: the scaled features, PCA, whitened PCA and NCA; arguments as `recipes`.

    An NCA of a length that is not among ``lengths`` has a PCA of that length beside it.

    >>> [recipe.name for recipe in baselines(8, [2, "full"], [3])]
    ['8 scaled', 'PCA(2)', 'PCA(8)', 'whitened(2)', 'whitened(8)', 'PCA(3)', 'NCA(3)']
    """
    todo = recipes(dim, lengths, longest=longest, sources=("PCA", "whitened"))
    todo += recipes(dim, nca_lengths, longest=longest, sources=("PCA",))
    todo += recipes(dim, nca_lengths, longest=longest, sources=("NCA",))
    return [recipe for recipe in dict.fromkeys(todo) if not recipe.dim_out]


def kept_variance(x: np.ndarray, labels: np.ndarray, where: Sequence[Split], longest: int) -> pd.DataFrame:
    """How much of the scaled features' variance the first n principal components keep, mean over the splits.

    Columns part ("training": the images that scaler and PCA were fitted on, or "test"), n up to ``longest``, kept
    (percent of the sum of squares around the training mean).
    """
    each = list(spread(joblib.delayed(_kept)(x, labels, split, longest) for split in where))
    kept = {part: np.mean([of_split[part] for of_split in each], axis=0) for part in ("training", "test")}
    frames = [pd.DataFrame({"part": part, "n": np.arange(1, longest + 1), "kept": kept[part]}) for part in kept]
    return pd.concat(frames, ignore_index=True)


def _kept(x: np.ndarray, labels: np.ndarray, split: Split, longest: int) -> dict[str, np.ndarray]:
    pca = reductions.fit(x[split.train], labels[split.train], "PCA", longest, store=paths.TRAINED, half=False)
    kept = {}
    for part, rows in (("training", split.train), ("test", split.test)):
        whole = (pca.scaler.transform(x[rows].astype(np.float64)) ** 2).sum()
        kept[part] = 100 * (pca(x[rows]).astype(np.float64) ** 2).sum(axis=0).cumsum() / whole
    return kept


def values(answers: Mapping[str, Answers], dim: int, reference: str) -> pd.DataFrame:
    """MAP@k (min(k, relevant)) of every baseline under each fold rule, percent; arguments as `retrieval_table`.

    Column published: the better of the paper's PCA and NCA, so none for scaled and whitened.
    """
    rows = retrieval_table(answers, dim, reference).query("metric == 'ap_min'").rename(columns={"ours": "value"})
    rows["published"] = rows["published"].where(rows["source"].isin(["PCA", "NCA"]))
    columns = ["rule", "source", "dim_in", "k", "value", "spread", "class_mean", "chance", "class_chance"]
    return rows[[*columns, "n_queries", "n_without_relevant", "published"]].reset_index(drop=True)


def figure_variance(curves: pd.DataFrame) -> Figure:
    """The rows of :func:`kept_variance`, a panel per rule."""
    rows = curves.assign(panel="folds " + curves["rule"], line=curves["part"] + " images", x=curves["n"])
    looks = {f"{part} images": look(n) | {"marker": ""} for n, part in enumerate(curves["part"].unique())}
    labels = {"xlabel": "principal components (number)", "ylabel": "variance kept (%)"}
    return lines(rows.assign(y=curves["kept"]), log=True, looks=looks, **labels)


def figure_baselines(rows: pd.DataFrame) -> Figure:
    """The rows of :func:`values` over the length of the feature, a panel per k and rule."""
    panel = "MAP@" + rows["k"].astype(str) + ", " + rows["rule"]
    shown = rows.assign(panel=panel, line=rows["source"], x=rows["dim_in"], y=rows["value"])
    looks = {"chance": {"color": "black", "linestyle": ":"}}
    every = with_level(shown).sort_values(["k", "x"], kind="stable")
    return lines(every, xlabel="numbers", ylabel="MAP@k (%)", log=True, looks=looks, height=2.8)
