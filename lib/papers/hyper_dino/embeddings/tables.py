"""Hyper-DINO's inputs (section 2.1): what PCA keeps, Euclidean retrieval with them, and what float16 costs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import joblib
import numpy as np
import pandas as pd
import torch

from lib import paths
from lib.geometry import Euclidean
from lib.metrics import retrieval
from lib.papers.hyper_dino.recipes import recipes
from lib.papers.hyper_dino.retrieval import tables as hyper_dino
from lib.processes import spread
from lib.progress import track
from lib.results.answers import CLASS_MEAN, Answers
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Table
from lib.results.store import Run
from lib.search import nearest
from lib.training import reductions
from lib.training.recipes import Recipe
from lib.training.splits import Split


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

    x: (n, dim) features; labels: (n,); longest: the most components.
    Returns columns part ("training": the images that scaler and PCA were fitted on, or "test"), n, kept (percent of
    the sum of squares around the training mean).
    """
    found = list(spread(joblib.delayed(_kept)(x, labels, split, longest) for split in where))
    kept = {part: np.mean([one[part] for one in found], axis=0) for part in ("training", "test")}
    frames = [pd.DataFrame({"part": part, "n": np.arange(1, longest + 1), "kept": kept[part]}) for part in kept]
    return pd.concat(frames, ignore_index=True)


def _kept(x: np.ndarray, labels: np.ndarray, split: Split, longest: int) -> dict[str, np.ndarray]:
    pca = reductions.fit(x[split.train], labels[split.train], "PCA", longest, store=paths.TRAINED, half=False)
    kept = {}
    for part, rows in (("training", split.train), ("test", split.test)):
        whole = (pca.scaler.transform(x[rows].astype(np.float64)) ** 2).sum()
        kept[part] = 100 * (pca(x[rows]).astype(np.float64) ** 2).sum(axis=0).cumsum() / whole
    return kept


def baseline_table(found: Mapping[str, Answers], dim: int, reference: str) -> pd.DataFrame:
    """MAP@k (min(k, relevant)) of every baseline under each fold rule, percent; arguments as `retrieval_table`.

    Returns columns rule, source, dim_in, k, value, spread, class_mean, chance, class_chance, n_queries,
    n_without_relevant, published (the better of the paper's PCA and NCA, so none for scaled and whitened features).
    """
    table = hyper_dino.retrieval_table(found, dim, reference).query("metric == 'ap_min'")
    table = table.assign(published=table["published"].where(table["source"].isin(["PCA", "NCA"])))
    untrained = ["family", "metric", "seeds_spread", "n_seeds", "loss", "rim", "steps"]
    return table.rename(columns={"ours": "value"}).drop(columns=untrained).reset_index(drop=True)


def baseline_layout(table: pd.DataFrame) -> str:
    """The baselines as Markdown: a row per fold rule and input, a column per k, then the means over classes.

    The published value stands behind each k that has one; the last row of a rule is chance.
    """
    ends = [table["k"].min(), table["k"].max()]
    lines = []
    for rule, of_rule in table.groupby("rule", sort=False):
        for (source, dim_in), rows in of_rule.groupby(["source", "dim_in"], sort=False):
            cells = {"folds": rule, "input": Recipe(source, dim_in, 0).name}
            for row in rows.itertuples():
                cells[f"MAP@{row.k}"] = f"{percent(row.value)} ± {percent(row.spread)}"
                if table["published"].notna().any():
                    cells[f"published MAP@{row.k}"] = percent(row.published)
            means = rows[rows["k"].isin(ends)].itertuples()
            lines.append(cells | {f"class mean@{row.k}": percent(row.class_mean) for row in means})
        chance = of_rule.drop_duplicates("k").itertuples()
        lines.append({"folds": rule, "input": "chance"} | {f"MAP@{row.k}": percent(row.chance) for row in chance})
    return markdown_table(pd.DataFrame(lines).fillna("–"))


def enough(table: pd.DataFrame, k: int, within: float = 1.0) -> list[str]:
    """Per fold rule: the shortest PCA that comes ``within`` so many points of the best one, from `baseline_table`."""
    lines = []
    for rule, rows in table[(table["k"] == k) & (table["source"] == "PCA")].groupby("rule", sort=False):
        values = rows.set_index("dim_in")["value"].sort_index()
        short = values.index[values >= values.max() - within][0]
        best, parts = f"PCA is best with {values.idxmax()} numbers ({values.max():.1f})", []
        if short != values.idxmax():
            parts.append(f"{short} are within {within:g} point ({values[short]:.1f})")
        if values.index[-1] != values.idxmax():
            parts.append(f"all {values.index[-1]} give {values.iloc[-1]:.1f}")
        lines.append(f"k = {k}, folds {rule}: {best}{'; ' * bool(parts)}{', '.join(parts)}")
    return lines


def leaders(by_encoder: Mapping[str, pd.DataFrame], ks: Sequence[int]) -> list[str]:
    """Per fold rule and k: the best input of each encoder, the better encoder first; tables of `baseline_table`."""
    rows = pd.concat([table.assign(encoder=encoder) for encoder, table in by_encoder.items()], ignore_index=True)
    lines = []
    for (rule, k), part in rows[rows["k"].isin(ks)].groupby(["rule", "k"], sort=False):
        best = part.loc[part.groupby("encoder")["value"].idxmax()].sort_values("value", ascending=False)
        named = [
            f"{row.value:.1f} {row.encoder}, {Recipe(row.source, row.dim_in, 0).name}" for row in best.itertuples()
        ]
        lines.append(f"k = {k}, folds {rule}: {'; '.join(named)}")
    return lines


def moves(by_encoder: Mapping[str, pd.DataFrame], k: int) -> list[str]:
    """Per fold rule and encoder: the best input without labels, and what NCA and whitening all components change."""
    lines = []
    for rule in next(iter(by_encoder.values()))["rule"].unique():
        for encoder, table in by_encoder.items():
            rows = table[(table["rule"] == rule) & (table["k"] == k)]
            values = rows.set_index(["source", "dim_in"])["value"].sort_index()
            plain, nca = values.loc[["scaled", "PCA"]], values.loc[["NCA"]]
            whole = values["whitened"].index.max()
            whitened = values["whitened", whole] - values["PCA", whole]
            best, learnt = (Recipe(*part.idxmax(), 0).name for part in (plain, nca))
            lines.append(
                f"k = {k}, folds {rule}, {encoder}: {plain.max():.1f} without labels ({best}); {learnt} changes "
                f"that by {nca.max() - plain.max():+.1f} points, whitening changes PCA({whole}) by {whitened:+.1f}"
            )
    return lines


def said(table: pd.DataFrame) -> list[str]:
    """Which length is enough, which encoder leads, and what NCA and whitening change, in the longest list.

    table: the rows of :func:`table_baselines`, the leading encoder first.
    """
    by_encoder = dict(tuple(table.groupby("encoder", sort=False)))
    few, many = table["k"].min(), table["k"].max()
    return enough(next(iter(by_encoder.values())), many) + leaders(by_encoder, (few, many)) + moves(by_encoder, many)


def gaps(curves: pd.DataFrame, lengths: Sequence[int]) -> list[str]:
    """Per fold rule: where the training images keep most more variance than the test images, of these ``lengths``.

    curves: the rows of :func:`kept_variance` with their rule.
    """
    lines = []
    for rule, rows in curves[curves["n"].isin(lengths)].groupby("rule", sort=False):
        kept = rows.pivot(index="n", columns="part", values="kept")
        gap = kept["training"] - kept["test"]
        n = gap.idxmax()
        lines.append(
            f"folds {rule}: the gap is widest with {n} components, which keep {kept['training'][n]:.1f} % of the "
            f"training and {kept['test'][n]:.1f} % of the test images' variance: {gap[n]:.1f} points"
        )
    return lines


def against(table: pd.DataFrame, source: str, other: str) -> pd.DataFrame:
    """MAP@k of ``source`` minus ``other`` at every length that both have: columns rule, dim_in, k, difference (pp)."""
    keys = ["rule", "dim_in", "k"]
    first, second = (table[table["source"] == name].set_index(keys)["value"] for name in (source, other))
    return (first - second).dropna().rename("difference").reset_index()


def fitted_on_all(
    x: np.ndarray, labels: np.ndarray, where: Mapping[str, Sequence[Split]], todo: Sequence[Recipe], k: int
) -> pd.DataFrame:
    """MAP@k when scaler and PCA or NCA see the test images too: what must not be done (HD-12).

    where: the splits of each fold rule. Returns columns rule, source, dim_in, value (percent, mean over the folds).
    """
    fit = partial(reductions.fit, store=paths.TRAINED, seed=0)
    jobs = [joblib.delayed(fit)(x, labels, recipe.source, recipe.dim_in) for recipe in todo]
    lines = []
    for recipe, reduction in zip(todo, spread(jobs), strict=True):
        reduced = torch.from_numpy(reduction(x))
        for rule, splits in where.items():
            values = [_ap(reduced[s.test], reduced[s.train], labels, s, k).mean() for s in splits]
            line = {"rule": rule, "source": recipe.source, "dim_in": recipe.dim_in, "value": 100 * np.mean(values)}
            lines.append(line)
    return pd.DataFrame(lines)


ROTATED = "both float32"
"""How the row of :func:`float16` is named that changes no number format."""


def float16(x: np.ndarray, labels: np.ndarray, where: Sequence[Split], todo: Sequence[Recipe], k: int) -> pd.DataFrame:
    """What rounding the input features to float16 changes (section 2.1, HD-10), against float32 of the same fit.

    Where the longest PCA keeps all directions, a last row changes no number format: it replaces the scaled features by
    these components, which only rotates them (HD-6), and so shows what float32 itself costs.

    Args:
        x: (n, dim) features.
        labels: (n,) integer classes.
        where: the splits.
        todo: recipes of :func:`baselines`, with the scaled features and the longest PCA among them.
        k: length of the list.

    Returns:
        One row per change: change, feature (largest absolute difference of a number), distance and largest_distance
        (median and largest relative difference among the k nearest, percent), order and members (queries whose list
        of k has another order or another image, percent), before and after (MAP@k, percent), difference,
        largest_query (points).
    """
    changes = {f"{recipe.name}: float16 for float32": (recipe, recipe) for recipe in todo}
    scaled = next(recipe for recipe in todo if recipe.source == "scaled")
    longest = max((recipe for recipe in todo if recipe.source == "PCA"), key=lambda recipe: recipe.dim_in)
    if longest.dim_in == scaled.dim_in < min(len(split.train) for split in where):
        changes[f"{longest.name} for {scaled.name}, {ROTATED}"] = (scaled, longest)
    jobs = [joblib.delayed(_effect)(x, labels, split, *pair, k) for pair in changes.values() for split in where]
    effects = list(track(spread(jobs), total=len(jobs), what="float16", unit="inputs"))
    parts = [effects[i : i + len(where)] for i in range(0, len(effects), len(where))]
    return pd.DataFrame({"change": name} | _pooled(part) for name, part in zip(changes, parts, strict=True))


def _effect(
    x: np.ndarray, labels: np.ndarray, split: Split, first: Recipe, second: Recipe, k: int
) -> dict[str, float | np.ndarray]:
    """One split: largest differences, and per query whether the list changed and AP@k before and after."""
    fit = partial(reductions.fit, x[split.train], labels[split.train], store=paths.TRAINED, half=False, seed=split.seed)
    one = fit(first.source, first.dim_in)
    rounding = first == second
    two = replace(one, half=True) if rounding else fit(second.source, second.dim_in)
    parts = (split.test, split.train)
    old, old_gallery = (torch.from_numpy(one(x[rows])) for rows in parts)
    new, new_gallery = (torch.from_numpy(two(x[rows])) for rows in parts)
    old_distance, old_list = nearest(old, old_gallery, k, Euclidean())
    _, new_list = nearest(new, new_gallery, k, Euclidean())
    now = Euclidean().between(new[:, None], new_gallery[old_list])
    apart = old_distance > 0
    return {
        "feature": float((old - new).abs().max()) if rounding else np.nan,
        "distance": ((now - old_distance)[apart].abs() / old_distance[apart]).numpy(),
        "order": (old_list != new_list).any(dim=1).numpy(),
        "members": (old_list.sort(dim=1).values != new_list.sort(dim=1).values).any(dim=1).numpy(),
        "before": _ap(old, old_gallery, labels, split, k).to_numpy(),
        "after": _ap(new, new_gallery, labels, split, k).to_numpy(),
    }


def _pooled(effects: Sequence[dict]) -> dict[str, float]:
    """Largest differences, shares of all queries, and MAP as the mean over the splits; in percent."""
    before, after = (100 * np.mean([np.nanmean(one[name]) for one in effects]) for name in ("before", "after"))
    return {
        "feature": max(one["feature"] for one in effects),
        "distance": 100 * np.median(np.concatenate([one["distance"] for one in effects])),
        "largest_distance": 100 * max(one["distance"].max() for one in effects),
        "order": 100 * np.concatenate([one["order"] for one in effects]).mean(),
        "members": 100 * np.concatenate([one["members"] for one in effects]).mean(),
        "before": before,
        "after": after,
        "difference": after - before,
        "largest_query": 100 * max(np.nanmax(np.abs(one["after"] - one["before"])) for one in effects),
    }


def _ap(query: torch.Tensor, gallery: torch.Tensor, labels: np.ndarray, split: Split, k: int) -> pd.Series:
    """AP@k of each test query by Euclidean distance."""
    found = retrieval.evaluate(query, gallery, labels[split.test], labels[split.train], Euclidean(), (k,))
    return found.values["ap_min", k]


def float16_layout(table: pd.DataFrame, k: int) -> str:
    """The table of :func:`float16` as Markdown."""
    shown = pd.DataFrame(
        {
            "change": table["change"],
            "largest difference of a number": table["feature"].map(lambda v: "–" if pd.isna(v) else f"{v:.1e}"),
            "median of a distance": table["distance"].map("{:.4f} %".format),
            "largest of a distance": table["largest_distance"].map("{:.4f} %".format),
            f"lists of {k} in another order": table["order"].map("{:.1f} %".format),
            "with another image": table["members"].map("{:.1f} %".format),
            f"MAP@{k} before": table["before"].map(percent),
            "after": table["after"].map(percent),
            "difference, points": table["difference"].map("{:+.3f}".format),
            "largest for one query": table["largest_query"].map("{:.2f}".format),
        }
    )
    return markdown_table(shown)


def caption(run: Run, reference: str = "none") -> str:
    """What the numbers of the baselines are, and what stands beside them if there is a ``reference``."""
    text = (
        "MAP@k in percent by Euclidean distance without any mapper, AP divided by min(k, relevant); mean ± standard "
        f"deviation over {run.parameters['folds']} folds; chance: a gallery in random order. {CLASS_MEAN} "
        "Scaler, PCA and NCA are fitted on the training folds."
    )
    theirs = " Published: DINO ViT-S/16, all images, the better of PCA and NCA at that length."
    return text if reference == "none" else text + theirs


def table_baselines(run: Run, numbers: Mapping[str, pd.DataFrame], reference: str) -> Table:
    """Euclidean retrieval by length; ``numbers``: by encoder, as the run would name it, :func:`baseline_table`."""
    rows = pd.concat([part.assign(encoder=encoder) for encoder, part in numbers.items()], ignore_index=True)
    layouts = [f"## {encoder}\n\n{baseline_layout(part)}" for encoder, part in numbers.items()]
    return Table("Euclidean retrieval", rows, caption(run, reference), markdown="\n\n".join(layouts))


def table_float16(rows: pd.DataFrame, k: int) -> Table:
    """What float16 changes, from the rows of :func:`float16`."""
    largest = rows["difference"][rows["change"].str.contains("float16")].abs().max()
    rotated = " The last row is a rotation in float32." if rows["change"].str.endswith(ROTATED).any() else ""
    text = (
        f"Euclidean retrieval of {k} images with input features in float16 against float32; all folds by image, all "
        f"queries. MAP@{k} in percent, AP divided by min(k, relevant).{rotated} The "
        f"largest change of MAP@{k} by float16 is {largest:.3f} points."
    )
    free = ["distance", "largest_query"]
    return Table("float16 input features", rows, text, free=free, markdown=float16_layout(rows, k))
