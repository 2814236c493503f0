"""Table 1 of Hyp-ViT and what stands beside it, as tables to save."""

import numpy as np
import pandas as pd

from lib.datasets.catalogue import facts
from lib.papers.hyp_vit import verdicts
from lib.papers.hyp_vit.hyperbolicity import measures
from lib.papers.hyp_vit.hyperbolicity.measures import curvature
from lib.papers.hyp_vit.published import DATASETS, curvatures, delta
from lib.results import paired
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Table
from lib.results.store import Run

DRAWS = (
    "Relative Gromov δ = 2δ/diameter of Euclidean distances, the first point as base; mean over {draws} draws of "
    "{size} images and its 95 % interval (Student's t over the draws: it speaks of these images, not of others)."
)
"""What every δ of this notebook is; to be filled from the run's parameters."""


def says(run: Run) -> str:
    """How δ was taken in this run."""
    return DRAWS.format(**run.parameters)


def three(value: float, sign: str = "") -> str:
    """A number with three digits, from the four that the reports keep: a table and its csv then say the same.

    >>> three(0.25847), three(0.2585), three(0.1365, "+")
    ('0.259', '0.259', '+0.137')
    """
    return f"{round(value, 4):{sign}.3f}"


def interval(low: float, high: float) -> str:
    """An interval of δ or of c, a dash where there is none.

    >>> interval(0.2311, 0.2457), interval(float("nan"), float("nan"))
    ('0.231 to 0.246', '–')
    """
    return "–" if np.isnan(low) else f"{low:.3f} to {high:.3f}"


PUBLISHED, OURS = "published", "ours"
"""Whose rows stand in Table 1; ours of larger draws begin alike."""


def beside_published(ours: pd.DataFrame, dataset: str, ladder: pd.DataFrame, size: int) -> pd.DataFrame:
    """Published and own values, a row each: source, encoder, dataset, relative, low, high, c, c_low, c_high.

    Args:
        ours: encoder, relative, low, high of :func:`lib.papers.hyp_vit.hyperbolicity.measures.over_draws`.
        dataset: short name of our images.
        ladder: the same with a column size, of which the largest draws, where larger than ``size``, have rows, too.
        size: images of a draw of ``ours``.
    """
    most = ladder["size"].max()
    parts = [delta().assign(source=PUBLISHED), ours.assign(source=OURS, dataset=dataset)]
    if most > size:
        largest = ladder[ladder["size"] == most]
        parts.append(largest.assign(source=f"{OURS}, {most:,} images a draw", dataset=dataset))
    rows = pd.concat(parts)
    rows = rows.assign(c=curvature(rows["relative"]), c_low=curvature(rows["high"]), c_high=curvature(rows["low"]))
    columns = ["source", "encoder", "dataset", "relative", "low", "high", "c", "c_low", "c_high"]
    return rows[columns].reset_index(drop=True)


def layout(rows: pd.DataFrame, value: str, low: str, high: str) -> str:
    """Table 1's layout: a row per encoder, a column per dataset, our dataset last where the paper has it not."""
    names = dict.fromkeys([*DATASETS, *rows["dataset"]])
    titles = {name: DATASETS.get(name) or facts(name).title for name in names}
    number = three if value == "relative" else "{:.3f}".format  # sentences read δ alone from the csv
    lines = []
    for (source, encoder), part in rows.groupby(["source", "encoder"], sort=False):
        cells = {"": source, "encoder": encoder} | dict.fromkeys(titles.values(), "–")
        for _, row in part.iterrows():
            spread = "" if np.isnan(row[low]) else f" ({interval(row[low], row[high])})"
            cells[titles[row["dataset"]]] = f"{number(row[value])}{spread}"
        lines.append(cells)
    return markdown_table(pd.DataFrame(lines))


LARGER = "Where the images are enough for larger draws, these have rows of their own."
"""Below tables of :func:`beside_published`."""


def table_1(run: Run, rows: pd.DataFrame) -> Table:
    """δ in the paper's layout, from the rows of :func:`beside_published`."""
    text = (
        f"Ours: {says(run)} {LARGER} Published: Table 1, the paper's encoders on its datasets; it prints neither how "
        "many images a draw has nor how they are scaled (HV-4). In brackets: the interval. A dash: not in Table 1, or "
        "not of this run's images."
    )
    numbers = rows[["source", "encoder", "dataset", "relative", "low", "high"]]
    return Table("relative δ (Table 1)", numbers, text, markdown=layout(rows, "relative", "low", "high"))


def table_curvature(run: Run, rows: pd.DataFrame) -> Table:
    """The curvature that the paper derives from δ, from the rows of :func:`beside_published`."""
    said, used = curvatures()
    text = (
        f"c(X) = (0.144/δ)² of the cells of Table 1, ours with the interval of δ carried over. {says(run)} {LARGER} "
        f"The paper calls its estimate close to {said:g} and trains with {used:g} (HV-3); without the factor 2 in "
        "relative δ every c would be four times as large (HV-4)."
    )
    numbers = rows[["source", "encoder", "dataset", "c", "c_low", "c_high"]]
    return Table("curvature from δ", numbers, text, markdown=layout(rows, "c", "c_low", "c_high"))


WITHOUT_FACTOR = "without the factor 2"


def procedures(
    own: pd.DataFrame, unit: pd.DataFrame, ladder: pd.DataFrame, every_base: pd.DataFrame, size: int
) -> pd.DataFrame:
    """The same features by every reading of the procedure: encoder, procedure, relative, low, high, n_draws, c.

    Args:
        own, unit: the draws of the features as they are, and at unit length.
        ladder: :func:`lib.papers.hyp_vit.hyperbolicity.measures.sizes`.
        every_base: of :func:`lib.papers.hyp_vit.hyperbolicity.measures.bases`.
        size: images of a draw of ``own``.
    """
    few = int(every_base["base"].max()) + 1
    smallest = ladder[ladder["size"] == ladder["size"].min()].drop(columns="size")
    largest = every_base.groupby(["encoder", "draw"], sort=False)["relative"].max().reset_index()
    half = own.assign(relative=own["relative"] / 2)
    parts = {
        "as in this notebook": measures.over_draws(own, "encoder"),
        "L2-normalised": measures.over_draws(unit, "encoder"),
        WITHOUT_FACTOR: measures.over_draws(half, "encoder"),
        f"{ladder['size'].min()} instead of {size} images": smallest,
        f"{few} images, first point as base": measures.over_draws(every_base[every_base["base"] == 0], "encoder"),
        f"{few} images, the worst of all base points": measures.over_draws(largest, "encoder"),
    }
    rows = pd.concat([part.assign(procedure=name) for name, part in parts.items()])
    rows = rows.assign(c=curvature(rows["relative"]))
    order = {name: place for place, name in enumerate(own["encoder"].unique())}
    rows = rows.sort_values("encoder", key=lambda column: column.map(order), kind="stable", ignore_index=True)
    return rows[["encoder", "procedure", "relative", "low", "high", "n_draws", "c"]]


def table_procedure(run: Run, rows: pd.DataFrame) -> Table:
    """What the unprinted choices do, from the rows of :func:`procedures`."""
    shown = pd.DataFrame(
        {
            "encoder": rows["encoder"],
            "procedure": rows["procedure"],
            "relative δ": rows["relative"].map(three),
            "95 % interval": [interval(row.low, row.high) for row in rows.itertuples()],
            "c(X)": rows["c"].map("{:.3f}".format),
        }
    )
    text = (
        f"{says(run)} Every other line changes one thing (HV-4). With one base point δ is at most a factor of 2 too "
        "small."
    )
    return Table("one δ by several procedures", rows, text, markdown=markdown_table(shown))


def table_copies(run: Run, rows: pd.DataFrame) -> Table:
    """Real features against copies without their structure, from the rows of ``measures.changes``."""
    shown = pd.DataFrame(
        {
            "encoder": rows["encoder"],
            "copy": rows["features"],
            "δ of the features": rows["own_relative"].map(three),
            "δ of the copy": rows["relative"].map(three),
            "copy − features": [three(value, "+") for value in rows["difference"]],
            "95 % interval": [f"{three(row.low, '+')} to {three(row.high, '+')}" for row in rows.itertuples()],
            "directions of the features": rows["own_directions"].map("{:.1f}".format),
            "of the copy": rows["directions"].map("{:.1f}".format),
        }
    )
    text = (
        f"{says(run)} Features and copies are compared draw by draw. Columns shuffled: every number of the feature "
        "permuted over the images by itself. Gaussian: random points with the mean and the covariance of the draw. "
        "Directions: (Σλ)²/Σλ² of the variances λ along the principal axes, 1 for a line."
    )
    return Table("features against copies without structure", rows, text, markdown=markdown_table(shown))


def table_search(run: Run, rows: pd.DataFrame) -> Table:
    """Both distances on the same features, from the rows of ``measures.searched``."""
    lines = [
        {
            "encoder": row.rule,
            "relative δ": three(row.relative),
            "c(X)": f"{row.c:.3f}",
            "median radius": f"{row.radius:.0f} %",
            "k": row.k,
            "MAP@k Euclidean": percent(row.euclidean),
            "MAP@k hyperbolic": percent(row.hyperbolic),
            "chance": percent(row.chance),
        }
        | paired.cells(row, "hyperbolic − Euclidean, pp")
        for row in rows.itertuples()
    ]
    text = (
        "MAP@k in percent, AP divided by min(k, relevant), without any training. The same centred features searched by "
        f"Euclidean and by hyperbolic distance; {run.parameters['folds']} folds, {run.parameters['rule']}. The longest "
        f"feature of the gallery has norm {measures.CLIP:g}, the paper's clipping radius, before exp0; c = c(X) of its "
        "own δ, which like c is of all images, queries as well, without their labels; median radius: of the queries, "
        "100 % is the rim. "
    )
    layout = markdown_table(pd.DataFrame(lines).drop(columns="seeds"))
    return Table("retrieval with the curvature from δ", rows, text + verdicts.SAYS, markdown=layout)
