"""Hyper-DINO's Tables 2 to 6: our values in the paper's layout, the published ones beside them."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib import paths
from lib.datasets.catalogue import DATASETS
from lib.papers.hyper_dino.published import FAMILIES, published
from lib.papers.hyper_dino.retrieval import figures
from lib.results import answers
from lib.results.answers import Answers, values
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Figure, Table
from lib.results.store import Run
from lib.training.fit import Schedule
from lib.training.methods import Answer
from lib.training.recipes import Recipe

DINO_DIM = 384
KEYS = ["rule", "source", "dim_in", "family", "metric", "k"]


def family(answer: Answer) -> dict[str, object]:
    """Where the row of an answer stands in the paper's tables."""
    recipe = answer.method.recipe
    return {"source": recipe.source, "dim_in": recipe.dim_in, "family": recipe.family}


def retrieval_table(found: Mapping[str, Answers], dim: int, reference: str) -> pd.DataFrame:
    """Mean and spread over the folds, with the published value of the same row beside each MAP@k.

    Args:
        found: per fold rule, the answers of every recipe.
        dim: length of our encoder's features; the paper's is 384. All of ours, scaled, stand beside its [CLS]; a PCA
            or NCA stands beside one of as many components, or, where our encoder has fewer, all beside all.
        reference: the paper's dataset to compare with, or ``"none"``.

    Returns:
        Columns rule, source, dim_in, family, then those of :func:`lib.results.answers.values`, and published; values in
        percent.
    """
    rows = {name: family(several[0]) for methods in found.values() for name, several in methods.items()}
    table = values(found).join(pd.DataFrame.from_dict(rows, orient="index"), on="method").drop(columns="method")
    table = table[[*KEYS, *(name for name in table if name not in KEYS)]]
    if reference == "none":
        return table.assign(published=np.nan)
    scaled = table["source"] == "scaled"
    whole = scaled | (table["dim_in"] == min(dim, DINO_DIM))
    ours = table.assign(cls=scaled, their_dim=table["dim_in"].mask(whole, DINO_DIM))
    theirs = published(reference).rename(columns={"dim_in": "their_dim"})
    joined = ours.merge(theirs, how="left", on=["cls", "their_dim", "family", "k"])
    is_map = joined["metric"].isin(["ap_min", "ap_hits", "ap_k"])
    return joined.assign(published=joined["published"].where(is_map)).drop(columns=["cls", "their_dim"])


def layout(table: pd.DataFrame, rule: str, metric: str = "ap_min") -> str:
    """The paper's layout as Markdown: rows by input, for each k the three families, ``ours ± spread (published)``.

    The last row is what a gallery in random order gives.
    """
    part = table[(table["rule"] == rule) & (table["metric"] == metric)]
    lines = []
    for (source, dim_in), row in part.groupby(["source", "dim_in"], sort=False):
        cells = {"input": Recipe(source, dim_in, 0).name}
        for k in sorted(part["k"].unique()):
            for family in FAMILIES:
                cell = row[(row["k"] == k) & (row["family"] == family)]
                cells[f"k={k} {family}"] = _cell(cell.iloc[0]) if len(cell) else "–"
        lines.append((source != "scaled", -dim_in, cells))
    rows = [cells for *_, cells in sorted(lines, key=lambda line: line[:2])]
    chance = part.groupby("k")["chance"].mean()
    rows.append(
        {"input": "chance"} | {f"k={k} {family}": percent(chance[k]) for k in chance.index for family in FAMILIES}
    )
    return markdown_table(pd.DataFrame(rows))


def health_layout(table: pd.DataFrame) -> str:
    """The rows of one fold rule at the smallest and the largest k, as :func:`lib.results.answers.layout` has them.

    Means over classes, chance and the health of every training: what the paper's layout has no room for.
    """
    names = [named(row.source, row.dim_in, row.family) for row in table.itertuples()]
    ends = table["k"].isin([table["k"].min(), table["k"].max()])
    return answers.layout(table.assign(method=names)[ends])


def named(source: str, dim_in: int, family: str) -> str:
    """What a row of the paper's tables is called.

    >>> named("PCA", 80, "32")
    'PCA(80), Hyper-DINO(·, 32)'
    """
    return f"{Recipe(source, int(dim_in), 0).name}, {FAMILIES[family]}"


def configurations(todo: Sequence[Recipe]) -> pd.DataFrame:
    """Table 1: one row per mapper, with its compression rate in numbers and in bytes (HD-15).

    Columns output, dim_out, input, dim_in, rate (numbers in per number out), bytes_in_float32, bytes_in_float16,
    bytes_out (float16), published (the paper's rate, where it has that row).
    """
    rows = pd.DataFrame(
        {
            "output": recipe.name,
            "dim_out": recipe.dim_out,
            "input": recipe.input,
            "dim_in": recipe.dim_in,
            "rate": recipe.dim_in / recipe.dim_out,
            "bytes_in_float32": 4 * recipe.dim_in,
            "bytes_in_float16": 2 * recipe.dim_in,
            "bytes_out": 2 * recipe.dim_out,
            "source": {"scaled": "[CLS]"}.get(recipe.source, f"{recipe.source}-DINO"),
        }
        for recipe in todo
        if recipe.dim_out
    )
    theirs = pd.read_csv(paths.PUBLISHED / "hyper_dino_table1_configurations.csv")
    theirs = theirs.rename(columns={"input_features": "source", "value": "published"})
    keys = ["source", "dim_in", "dim_out"]
    return rows.merge(theirs[[*keys, "published"]], how="left", on=keys).drop(columns="source")


def _cell(row: pd.Series) -> str:
    theirs = "" if pd.isna(row["published"]) else f" ({percent(row['published'])})"
    return f"{percent(row['ours'])} ± {percent(row['spread'])}{theirs}"


def definitions(table: pd.DataFrame, rule: str, k: int) -> str:
    """The rankings of the longest PCA under the three definitions of AP@k, as Markdown."""
    part = table[(table["rule"] == rule) & (table["k"] == k) & (table["source"] == "PCA")]
    part = part[part["dim_in"] == part["dim_in"].max()]
    wide = part.pivot_table(index="family", columns="metric", values="ours", sort=False)
    names = {"ap_min": "min(k, R)", "ap_hits": "hits", "ap_k": "k"}
    shown = pd.DataFrame({f"MAP@{k} ÷ {name}": wide[metric].map(percent) for metric, name in names.items()})
    shown.insert(0, "method", [named("PCA", part["dim_in"].iloc[0], family) for family in wide.index])
    return markdown_table(shown)


def panels(table: pd.DataFrame, reference: str) -> dict[str, pd.DataFrame]:
    """What Fig. 3 shows: PCA and NCA inputs under each fold rule, then the published values if there are any."""
    part = table[(table["metric"] == "ap_min") & table["source"].isin(["PCA", "NCA"])]
    columns = ["source", "family", "dim_in", "k", "value", "spread", "chance"]
    shown = {
        f"folds {rule}": part[part["rule"] == rule].rename(columns={"ours": "value"})[columns]
        for rule in part["rule"].unique()
    }
    if reference != "none":
        theirs = published(reference).query("not cls").rename(columns={"published": "value"})
        theirs = theirs.assign(source="better of both", spread=np.nan, chance=np.nan)
        shown[f"published: {DATASETS[reference].title}"] = theirs[columns]
    return shown


BESIDE = "The same scores with the mean over classes, and how the training of each mapper ended:"
"""What stands between the paper's layout and that of :func:`health_layout`."""


def retrieval(run: Run, table: pd.DataFrame, reference: str) -> Table:
    """The retrieval table: under each fold rule the paper's layout, class means and health, definitions of MAP@k."""
    largest = int(table["k"].max())
    parts = []
    for rule, of_rule in table.groupby("rule", sort=False):
        parts += [f"## Folds {rule}", layout(table, rule), BESIDE, health_layout(of_rule)]
        if "PCA" in set(of_rule["source"]):
            parts += [
                f"The same rankings at k = {largest} under the definitions of AP@k:",
                definitions(table, rule, largest),
            ]
    return Table("MAP@k", table, caption(run, reference), markdown="\n\n".join(parts))


def caption(run: Run, reference: str) -> str:
    """What the numbers of the retrieval table are, and why they differ from the published ones."""
    ours = (
        "MAP@k in percent, AP divided by min(k, relevant); mean ± standard deviation over "
        f"{run.parameters['folds']} folds, test images against training images; mappers trained for "
        f"{run.parameters['epochs']} epochs (published: {Schedule().epochs}), once each. Chance: a gallery in random "
        f"order. {answers.CLASS_MEAN} Left out: queries without any relevant image. At the rim: worst fold."
    )
    if reference == "none":
        return f"{ours} The paper has no such table."
    theirs = (
        f"In brackets the published value for {DATASETS[reference].title} (DINO ViT-S/16, the better of PCA and NCA)."
    )
    why = {
        "demo": "Ours are procedural tiles and another encoder: the layout can be compared, the values cannot.",
        "sample": "Ours saw fewer images and another encoder, so a difference has at least these two reasons.",
        "paper": "Ours has folds of its own (the paper's are not published, HD-13).",
    }
    return f"{ours} {theirs} {why[run.profile]}"


def table_1(todo: Sequence[Recipe]) -> Table:
    """Table 1: what is trained here, beside the published compression rate of the same row."""
    rows = configurations(todo)
    text = (
        f"{len(rows)} mappers (the paper: 62, from 384 numbers). The rate counts numbers, as the paper's 12 for 384 → "
        "32 does; in bytes that is 12 from float16 and 24 from float32 input (HD-15)."
    )
    shown = pd.DataFrame(
        {
            "mapper": rows["output"],
            "numbers in": rows["dim_in"],
            "numbers out": rows["dim_out"],
            "rate": rows["rate"],
            "published rate": rows["published"].map(lambda rate: "–" if pd.isna(rate) else f"{rate:g}"),
            "bytes out (float16)": rows["bytes_out"],
        }
    )
    return Table("Table 1: configurations", rows, text, markdown=markdown_table(shown))


def figure_3(table: pd.DataFrame, reference: str) -> Figure:
    """Fig. 3: MAP@k over the length of the input, the smallest k above the largest."""
    drawn = table[(table["metric"] == "ap_min") & table["source"].isin(["PCA", "NCA"])].drop(columns="metric")
    text = (
        "MAP@k over the number of PCA or NCA components that go in; bars are one standard deviation over folds, every "
        "mapper was trained once. Chance: a gallery in random order. The axes do not begin at 0."
    )
    if reference != "none":
        text += " Published values have a panel of their own: other images and encoder, the better of PCA and NCA."
    figure = figures.by_length(panels(table, reference), ks=(table["k"].min(), table["k"].max()))
    return Figure("MAP@k over input length", drawn, text, figure=figure)
