"""Hyper-DINO's Tables 2 to 6: our values in the paper's layout, the published ones beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib import paths
from lib.datasets import DATASETS
from lib.metrics.significance import paired_permutation
from lib.results.store import Run, markdown_table, percent
from lib.training.fit import Schedule
from lib.training.hyper_dino import Outcome, Recipe

TABLES = {
    "kather": "hyper_dino_table2_kather",
    "bh40x": "hyper_dino_table3_bh40x",
    "bh100x": "hyper_dino_table4_bh100x",
    "bh200x": "hyper_dino_table5_bh200x",
    "bh400x": "hyper_dino_table6_bh400x",
}
DINO_DIM = 384
KEYS = ["rule", "source", "dim_in", "family", "metric", "k"]
FAMILIES = {"baseline": "PCA, Euclidean", "32": "Hyper-DINO(·, 32)", "dim_in": "Hyper-DINO(·, dim_in)"}


def published(dataset: str) -> pd.DataFrame:
    """The paper's MAP@k for one of its datasets: columns source, dim_in, family, k, published (percent).

    ``source`` is ``"scaled"`` for the [CLS] row, ``"PCA"`` for all others (each cell is the better of PCA and NCA).

    Raises:
        KeyError: if the paper has no table for ``dataset``.
    """
    table = pd.read_csv(paths.PUBLISHED / f"{TABLES[dataset]}.csv")
    family = {"baseline_pca_nca_dino": "baseline", "hyper_dino_32": "32", "hyper_dino_dim_in": "dim_in"}
    return pd.DataFrame(
        {
            "source": np.where(table["variant"] == "[CLS]", "scaled", "PCA"),
            "dim_in": table["dim_in"],
            "family": table["features"].map(family),
            "k": table["k"],
            "published": table["value"],
        }
    )


def tidy(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """One row per recipe, fold, metric and k; values in percent, queries without a relevant image counted apart."""
    frames = []
    for outcome in outcomes:
        recipe = outcome.recipe
        keys = {"source": recipe.source, "dim_in": recipe.dim_in, "family": recipe.family, "fold": outcome.fold}
        frames.append(outcome.per_query.mean().assign(**keys))
    rows = pd.concat(frames, ignore_index=True)
    return rows.assign(value=100 * rows["value"])


def retrieval_table(outcomes: Mapping[str, Sequence[Outcome]], dim: int, reference: str) -> pd.DataFrame:
    """Mean and spread over the folds, with the published value of the same row beside each MAP@k.

    Args:
        outcomes: per fold rule, the outcomes of all recipes on all folds.
        dim: length of our encoder's features; the paper's is 384, so our full length stands beside its 384.
        reference: the paper's dataset to compare with, or ``"none"``.

    Returns:
        Columns rule, source, dim_in, family, metric, k, ours, spread (standard deviation over folds), n_queries,
        n_without_relevant, published; all values in percent.
    """
    rows = pd.concat([tidy(found).assign(rule=rule) for rule, found in outcomes.items()], ignore_index=True)
    grouped = rows.groupby(KEYS, sort=False)
    table = grouped.agg(
        ours=("value", "mean"),
        spread=("value", "std"),
        n_queries=("n_queries", "sum"),
        n_without_relevant=("n_without_relevant", "sum"),
    ).reset_index()
    if reference == "none":
        return table.assign(published=np.nan)
    ours = table.assign(their_dim=table["dim_in"].where(table["dim_in"] != dim, DINO_DIM))
    theirs = published(reference).rename(columns={"dim_in": "their_dim"})
    joined = ours.merge(theirs, how="left", on=["source", "their_dim", "family", "k"]).drop(columns="their_dim")
    is_map = joined["metric"].isin(["ap_min", "ap_hits", "ap_k"])
    return joined.assign(published=joined["published"].where(is_map))


def layout(table: pd.DataFrame, rule: str, metric: str = "ap_min") -> str:
    """The paper's layout as Markdown: rows by input, for each k the three families, ``ours ± spread (published)``."""
    part = table[(table["rule"] == rule) & (table["metric"] == metric)]
    lines = []
    for (source, dim_in), row in part.groupby(["source", "dim_in"], sort=False):
        cells = {"input": f"{dim_in} scaled" if source == "scaled" else f"PCA({dim_in})"}
        for k in sorted(part["k"].unique()):
            for family in FAMILIES:
                cell = row[(row["k"] == k) & (row["family"] == family)]
                cells[f"k={k} {family}"] = _cell(cell.iloc[0]) if len(cell) else "–"
        lines.append((source != "scaled", -dim_in, cells))
    return markdown_table(pd.DataFrame([cells for *_, cells in sorted(lines, key=lambda line: line[:2])]))


def _cell(row: pd.Series) -> str:
    theirs = "" if pd.isna(row["published"]) else f" ({percent(row['published'])})"
    return f"{percent(row['ours'])} ± {percent(row['spread'])}{theirs}"


def definitions(table: pd.DataFrame, rule: str, k: int) -> str:
    """The same rankings under the three definitions of AP@k, with precision and hit rate, as Markdown."""
    part = table[(table["rule"] == rule) & (table["k"] == k)]
    wide = part.pivot_table(index=["family", "source", "dim_in"], columns="metric", values="ours", sort=False)
    names = {
        "ap_min": f"MAP@{k}, ÷ min(k, relevant)",
        "ap_hits": f"MAP@{k}, ÷ hits",
        "ap_k": f"MAP@{k}, ÷ k",
        "precision": f"precision@{k}",
        "hit_rate": f"Recall@{k} (hit rate)",
    }
    shown = wide.reset_index().rename(columns=names)
    for name in names.values():
        shown[name] = shown[name].map(percent)
    return markdown_table(shown[["family", "source", "dim_in", *names.values()]])


def paired_tests(
    outcomes: Mapping[str, Sequence[Outcome]],
    groups: np.ndarray,
    folds_of: Mapping[str, np.ndarray],
    pairs: Sequence[tuple[Recipe, Recipe]],
    ks: Sequence[int],
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Paired permutation tests of MAP@k (min(k, relevant)) between recipes; groups of images are the unit.

    Args:
        outcomes: per fold rule, the outcomes of all recipes on all folds.
        groups: (n,) the group (patient, lesion, source image) of each image.
        folds_of: per fold rule, (n,) the test fold of each image.
        pairs: which recipe is compared with which.
        ks: list lengths.
        seed: of the random sign flips.

    Returns:
        One row per rule, pair and k: first, second, difference (first minus second, percentage points), p_value,
        p_floor (the smallest p that this test can give), n_units, low and high (95 % interval).
    """
    lines = []
    for rule, fold_of in folds_of.items():
        values = {(o.recipe, o.fold): o.per_query.values["ap_min"] for o in outcomes[rule]}
        fold_ids = sorted(set(fold_of.tolist()))
        units = np.concatenate([groups[fold_of == fold] for fold in fold_ids])
        for first, second in pairs:
            for k in ks:
                a, b = (
                    np.concatenate([values[recipe, fold][k].to_numpy() for fold in fold_ids])
                    for recipe in (first, second)
                )
                test = paired_permutation(100 * a, 100 * b, groups=units, seed=seed)
                lines.append({"rule": rule, "first": first.name, "second": second.name, "k": k} | asdict(test))
    return pd.DataFrame(lines)


def panels(table: pd.DataFrame, reference: str) -> dict[str, pd.DataFrame]:
    """What the figure by length shows: PCA inputs under each fold rule, then the published values if there are any."""
    part = table[(table["metric"] == "ap_min") & (table["source"] == "PCA")]
    columns = ["family", "dim_in", "k", "value", "spread"]
    shown = {
        f"folds {rule}": part[part["rule"] == rule].rename(columns={"ours": "value"})[columns]
        for rule in part["rule"].unique()
    }
    if reference != "none":
        theirs = published(reference).query("source == 'PCA'")
        shown[f"published: {DATASETS[reference].title}"] = theirs.rename(columns={"published": "value"}).assign(
            spread=np.nan
        )[columns]
    return shown


def tests_layout(tests: pd.DataFrame) -> str:
    """The paired tests as Markdown."""
    rows = []
    for test in tests.itertuples():
        at_floor = test.p_value <= test.p_floor
        rows.append(
            {
                "folds": test.rule,
                "first": test.first,
                "second": test.second,
                "k": test.k,
                "first − second, pp": f"{test.difference:+.2f}",
                "95 % interval": f"{test.low:+.2f} to {test.high:+.2f}",
                "p": f"≤ {test.p_floor:.4f}" if at_floor else f"{test.p_value:.4f}",
                "groups": test.n_units,
            }
        )
    return markdown_table(pd.DataFrame(rows))


def verdicts(tests: pd.DataFrame, level: float = 0.05) -> list[str]:
    """One sentence per paired test, with three possible outcomes."""
    sentences = []
    for test in tests.itertuples():
        clear = "is better than" if test.difference > 0 else "is worse than"
        word = clear if test.p_value <= level else "is not clearly different from"
        sentences.append(f"k = {test.k}, folds {test.rule}: {test.first} {word} {test.second}")
    return sentences


def save_retrieval(run: Run, name: str, table: pd.DataFrame, reference: str) -> None:
    """Write the retrieval table: the paper's layout under each fold rule, then the definitions of MAP@k."""
    largest = int(table["k"].max())
    parts = []
    for rule in table["rule"].unique():
        left_out = table[table["rule"] == rule]["n_without_relevant"].max()
        parts += [f"## Folds {rule}", layout(table, rule), f"Queries without any relevant image: {left_out}."]
        parts += [f"The same rankings at k = {largest} under other definitions:", definitions(table, rule, largest)]
    run.save_table(name, f"Hyper-DINO, MAP@k on {run.dataset}", table, "\n\n".join(parts), caption(run, reference))


def caption(run: Run, reference: str) -> str:
    """What the numbers of the retrieval table are, and why they differ from the published ones."""
    ours = (
        "MAP@k in percent, AP divided by min(k, relevant); mean ± standard deviation over "
        f"{run.parameters['folds']} folds, test images against training images; mappers trained for "
        f"{run.parameters['epochs']} epochs (published: {Schedule().epochs})."
    )
    if reference == "none":
        return f"{ours} The paper has no such table."
    theirs = (
        f"In brackets the published value for {DATASETS[reference].title} (DINO ViT-S/16, the better of PCA and NCA)."
    )
    why = {
        "demo": "Ours are procedural tiles and another encoder: the layout can be compared, the values cannot.",
        "sample": "Ours saw fewer images, another encoder and PCA alone, so a difference has at least these reasons.",
        "paper": "Ours has PCA alone and folds of its own (the paper's folds are not published, HD-13).",
    }
    return f"{ours} {theirs} {why[run.profile]}"


def save_figure_3(run: Run, figure: Figure, table: pd.DataFrame, reference: str) -> None:
    """Write the figure by length with what it draws."""
    drawn = table[(table["metric"] == "ap_min") & (table["source"] == "PCA")].drop(columns=["source", "metric"])
    text = "MAP@k over the number of PCA components that go in; bars are one standard deviation over folds."
    if reference != "none":
        text += " Published values have a panel of their own: other images and encoder, the better of PCA and NCA."
    run.save_figure("figure_3", f"Hyper-DINO, MAP@k over input length on {run.dataset}", figure, drawn, text)


def save_tests(run: Run, tests: pd.DataFrame) -> None:
    """Write the paired tests."""
    text = (
        "Difference of MAP@k (min(k, relevant)) in percentage points, averaged per group first; two-sided sign-flip "
        "test with 10,000 resamples, percentile bootstrap over groups. p is not corrected for the number of rows."
    )
    title = f"Hyper-DINO, paired tests on {run.dataset}"
    run.save_table("table_tests", title, tests, tests_layout(tests), text)
