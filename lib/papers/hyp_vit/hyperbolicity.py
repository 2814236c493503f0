"""How tree-like are features? Table 1 and what is needed to read it (section 2.3)."""

import matplotlib.pyplot as plt
import pandas as pd

from lib.datasets.catalogue import facts
from lib.figures import style
from lib.papers.hyp_vit import delta
from lib.papers.hyp_vit.published import DATASETS
from lib.papers.hyp_vit.published import delta as published
from lib.study import captions, paired
from lib.study.columns import Column, Layout, printed
from lib.study.shown import Figure, Table
from lib.study.store import Run

DRAWS = (
    "Relative Gromov δ = 2δ/diameter of Euclidean distances, the first point as base. Mean over {draws} draws of "
    "{size} images. Intervals: 95 %, Student's t over the draws: they speak of these images, not of others."
)
WITHOUT_FACTOR = "without the factor 2"


def _with_ends(rows: pd.DataFrame) -> pd.DataFrame:
    """``rows`` with the title of each dataset, and the interval as text."""
    low, high = (rows[end].map(lambda value: printed(value, "3")) for end in ("low", "high"))
    title = rows["dataset"].map(lambda name: DATASETS.get(name) or facts(name).title)
    return rows.assign(title=title, ends=(low + " to " + high).where(rows["low"].notna()))


TESTED = {"rule": "encoder", "relative": "relative δ", "c": "c(X)", "radius": "median radius", "k": "k"} | {
    "euclidean": "MAP@k Euclidean",
    "hyperbolic": "MAP@k hyperbolic",
    "chance": "chance",
}
FORMS = {"relative": "3", "c": "3", "radius": "0 %", "euclidean": "2", "hyperbolic": "2", "chance": "2"}
LAYOUTS = {
    "table_1": Layout(
        [Column("", "source"), Column("encoder"), Column("{}", "relative", "3", brackets="ends", over="title")],
        ("source", "encoder"),
        prepare=_with_ends,
    ),
    "table_procedure": Layout(
        [
            Column("encoder"),
            Column("procedure"),
            Column("relative δ", "relative", "3"),
            Column("from", "low", "3"),
            Column("to", "high", "3"),
            Column("c(X)", "c", "3"),
        ],
        ("encoder", "procedure"),
    ),
    "table_copies": Layout(
        [
            Column("encoder"),
            Column("copy", "features"),
            Column("δ of the features", "own_relative", "3"),
            Column("δ of the copy", "relative", "3"),
            Column("copy − features", "difference", "+3"),
            Column("from", "low", "+3"),
            Column("to", "high", "+3"),
            Column("directions of the features", "own_directions", "1"),
            Column("of the copy", "directions", "1"),
        ],
        ("encoder", "features"),
    ),
    "table_search": paired.tests_layout(TESTED, "hyperbolic − Euclidean, pp", FORMS),
}
SAYS = {
    "figure_yardstick": (
        "relative δ beside known spaces",
        f"{DRAWS} Controls: as many points per draw, new ones each time. Grey: the range of the paper's Table 1, which "
        "names no size of the draw (2,000 images in the authors' code). Left: every control and encoder. Right: "
        "Gaussian clouds over their length, and the encoders at theirs.",
    ),
    "table_1": (
        "relative δ (Table 1)",
        f"Ours: {DRAWS} Where the images are enough for larger draws, these have rows of their own. Published: Table "
        "1, the paper's encoders on its datasets; it prints neither how many images a draw has nor how they are scaled "
        "(HV-4). In brackets: the interval.",
    ),
    "table_procedure": (
        "one δ by several procedures",
        f"{DRAWS} Every other line changes one thing (HV-4). With one base point δ is at most a factor of 2 too small. "
        "From, to: 95 % interval.",
    ),
    "table_copies": (
        "features against copies without structure",
        f"{DRAWS} Features and copies are compared draw by draw; from, to: 95 % interval. Columns shuffled: every "
        "number permuted over the images by itself. Gaussian: random points with the mean and the covariance of the "
        "draw. Directions: (Σλ)²/Σλ² of the variances λ along the principal axes, 1 for a line.",
    ),
    "table_search": (
        "retrieval with the curvature from δ",
        "MAP@k in percent, AP divided by min(k, relevant), without any training. The same centred features searched by "
        "both distances; {folds} folds, {rule}. The longest feature of the gallery has norm "
        f"{delta.CLIP:g}, the paper's clipping radius, before exp0; c = c(X) of its own δ, which is of all images, "
        f"queries as well, without their labels; median radius: of the queries, 100 % is the rim. {paired.SAYS}",
    ),
}
"""Table or figure → its title and caption, with the run's parameters in braces."""


def table(run: Run, name: str, rows: pd.DataFrame) -> Table:
    """A table of :data:`LAYOUTS`."""
    return captions.table(run, SAYS, name, rows)


def with_published(ours: pd.DataFrame, dataset: str, ladder: pd.DataFrame, size: int) -> pd.DataFrame:
    """Published and own values, a row each: source, encoder, dataset, relative, low, high.

    Args:
        ours: encoder, relative, low, high of :func:`.delta.over_draws`, of draws of ``size`` images.
        dataset: short name of our images.
        ladder: the same with a column size, of which the largest draws, if larger than ``size``, have rows, too.
    """
    most = ladder["size"].max()
    parts = [published().assign(source="published"), ours.assign(source="ours", dataset=dataset)]
    if most > size:
        largest = ladder[ladder["size"] == most]
        parts.append(largest.assign(source=f"ours, {most:,} images a draw", dataset=dataset))
    columns = ["source", "encoder", "dataset", "relative", "low", "high"]
    return pd.concat(parts)[columns].reset_index(drop=True)


def procedures(
    own: pd.DataFrame, unit: pd.DataFrame, ladder: pd.DataFrame, every_base: pd.DataFrame, size: int
) -> pd.DataFrame:
    """The same features by every reading of the procedure: encoder, procedure, relative, low, high, n_draws, c.

    own, unit: the draws of the features as they are, of ``size`` images, and at unit length. ladder, every_base: of
    :func:`.delta.sizes` and :func:`.delta.bases`.
    """
    few = int(every_base["base"].max()) + 1
    smallest = ladder[ladder["size"] == ladder["size"].min()].drop(columns="size")
    largest = every_base.groupby(["encoder", "draw"], sort=False)["relative"].max().reset_index()
    parts = {
        "as in this notebook": delta.over_draws(own, "encoder"),
        "L2-normalised": delta.over_draws(unit, "encoder"),
        WITHOUT_FACTOR: delta.over_draws(own.assign(relative=own["relative"] / 2), "encoder"),
        f"{ladder['size'].min()} instead of {size} images": smallest,
        f"{few} images, first point as base": delta.over_draws(every_base[every_base["base"] == 0], "encoder"),
        f"{few} images, the worst of all base points": delta.over_draws(largest, "encoder"),
    }
    rows = pd.concat([part.assign(procedure=name) for name, part in parts.items()])
    rows = rows.assign(c=delta.curvature(rows["relative"]))
    places = list(own["encoder"].unique())
    rows = rows.sort_values("encoder", key=lambda names: names.map(places.index), kind="stable", ignore_index=True)
    return rows[["encoder", "procedure", "relative", "low", "high", "n_draws", "c"]]


def figure_yardstick(run: Run, known: pd.DataFrame, ours: pd.DataFrame) -> Figure:
    """Relative δ of controls (control, dim, relative, low, high) and encoders (encoder, …); the paper's range grey."""
    rows = pd.concat([known.rename(columns={"control": "points"}), ours.rename(columns={"encoder": "points"})])
    n_known, names, theirs = len(known), [style.legible(name) for name in rows["points"]], published()["relative"]
    errors = rows[["low", "high"]].sub(rows["relative"], axis=0).abs().to_numpy()[:, :, None]
    clouds = rows[:n_known][rows["points"][:n_known].str.startswith("Gaussian")].sort_values("dim")
    with style.house():
        figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, 4.0), width_ratios=[1.25, 1])
        right.plot(clouds["dim"], clouds["relative"], color=style.PALETTE[0], marker="o", label="Gaussian cloud")
        for place, row in enumerate(rows.itertuples()):
            number = max(0, place + 1 - n_known)
            look = {"color": style.PALETTE[number], "marker": style.MARKERS[number], "linestyle": "", "capsize": 2}
            left.errorbar(row.relative, place, xerr=errors[place], **look)
            if number:
                right.errorbar(row.dim, row.relative, yerr=errors[place], label=names[place], **look)
        left.axhline(n_known - 0.5, color="black", linewidth=0.6)
        left.set_yticks(range(len(names)), names)
        left.invert_yaxis()
        left.set(xlim=(-0.03, 1.0), xlabel="relative δ (0: a tree)")
        left.axvspan(theirs.min(), theirs.max(), color="0.8", zorder=0)
        right.axhspan(theirs.min(), theirs.max(), color="0.8", zorder=0, label="published, Table 1")
        right.set(xscale="log", xlabel="length of the feature", ylabel="relative δ", ylim=(0, None))
        figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return captions.figure(run, SAYS, "figure_yardstick", rows, figure)
