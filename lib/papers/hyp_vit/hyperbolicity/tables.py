"""Table 1 of Hyp-ViT and what stands beside it, as tables to save and as sentences."""

import numpy as np
import pandas as pd

from lib.datasets.catalogue import facts
from lib.papers.hyp_vit import verdicts
from lib.papers.hyp_vit.hyperbolicity import measures
from lib.papers.hyp_vit.hyperbolicity.measures import curvature
from lib.papers.hyp_vit.published import DATASETS, curvatures, delta
from lib.results import paired
from lib.results.markdown import markdown_table, percent, points
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


def beside_published(ours: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Published and own values, a row each: source, encoder, dataset, relative, low, high, c, c_low, c_high.

    ours: encoder, relative, low, high of :func:`lib.papers.hyp_vit.hyperbolicity.measures.over_draws`.
    """
    rows = pd.concat([delta().assign(source="published"), ours.assign(source="ours", dataset=dataset)])
    rows = rows.assign(c=curvature(rows["relative"]), c_low=curvature(rows["high"]), c_high=curvature(rows["low"]))
    columns = ["source", "encoder", "dataset", "relative", "low", "high", "c", "c_low", "c_high"]
    return rows[columns].reset_index(drop=True)


def layout(rows: pd.DataFrame, value: str, low: str, high: str) -> str:
    """Table 1's layout: a row per encoder, a column per dataset, our dataset last where the paper has it not."""
    names = dict.fromkeys([*DATASETS, *rows["dataset"]])
    titles = {name: DATASETS.get(name) or facts(name).title for name in names}
    lines = []
    for (source, encoder), part in rows.groupby(["source", "encoder"], sort=False):
        cells = {"": source, "encoder": encoder} | dict.fromkeys(titles.values(), "–")
        for _, row in part.iterrows():
            spread = "" if np.isnan(row[low]) else f" ({interval(row[low], row[high])})"
            cells[titles[row["dataset"]]] = f"{row[value]:.3f}{spread}"
        lines.append(cells)
    return markdown_table(pd.DataFrame(lines))


def table_1(run: Run, rows: pd.DataFrame) -> Table:
    """δ in the paper's layout, from the rows of :func:`beside_published`."""
    text = (
        f"Ours: {says(run)} Published: Table 1, other encoders and other images; the paper prints neither sample size "
        "nor rescaling (HV-4). In brackets: the interval. A dash: not in Table 1, or not of this run's images."
    )
    numbers = rows[["source", "encoder", "dataset", "relative", "low", "high"]]
    return Table("relative δ (Table 1)", numbers, text, markdown=layout(rows, "relative", "low", "high"))


def table_curvature(run: Run, rows: pd.DataFrame) -> Table:
    """The curvature that the paper derives from δ, from the rows of :func:`beside_published`."""
    said, used = curvatures()
    text = (
        f"c(X) = (0.144/δ)² of the cells of Table 1, ours with the interval of δ carried over. {says(run)} The paper "
        f"calls its estimate close to {said:g} and trains with {used:g} (HV-3); without the factor 2 in relative δ "
        "every c would be four times as large (HV-4)."
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
            "relative δ": rows["relative"].map("{:.3f}".format),
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
            "relative δ": f"{row.relative:.3f}",
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


def copy_sentences(rows: pd.DataFrame) -> list[str]:
    """Per encoder and copy: whether taking structure away makes the cloud look more like a tree, or less.

    rows: of ``measures.changes``.
    """
    lines = []
    for row in rows.itertuples():
        how = "does not clearly change" if row.low <= 0 <= row.high else "lowers" if row.difference < 0 else "raises"
        looks = {"lowers": "more like a tree", "raises": "less like a tree"}.get(how, "neither more nor less like one")
        lines.append(
            f"{row.encoder}, {row.features}: {how} relative δ, from {three(row.own_relative)} to {three(row.relative)} "
            f"({three(row.difference, '+')}, {three(row.low, '+')} to {three(row.high, '+')}): {looks}; directions "
            f"from {row.own_directions:.1f} to {row.directions:.1f}"
        )
    return lines


def encoder_sentences(own: pd.DataFrame) -> list[str]:
    """Every encoder against the first, paired by draw; rows of ``measures.of_features``."""
    wide = own.pivot(index="draw", columns="encoder", values="relative")
    first, *others = own["encoder"].unique()
    lines = []
    for other in others:
        rows = pd.DataFrame({"encoder": other, "difference": wide[other] - wide[first]})
        found = measures.over_draws(rows, "encoder", "difference").iloc[0]
        how = "no clear difference" if found.low <= 0 <= found.high else "more" if found.difference < 0 else "less"
        verdict = how if how.startswith("no") else f"{how} like a tree"
        lines.append(
            f"{other} minus {first}: {found.difference:+.3f} ({found.low:+.3f} to {found.high:+.3f}), {verdict}"
        )
    return lines


def yardstick(known: pd.DataFrame, ours: pd.DataFrame) -> list[str]:
    """Between which controls the encoders and the published values lie.

    Args:
        known: control, dim, relative of the controls, averaged over the draws.
        ours: encoder, relative of the encoders.
    """
    clouds = known[known["control"].str.startswith("Gaussian")]
    printed = delta()["relative"]
    nearest = clouds.loc[(clouds["relative"] - printed.mean()).abs().idxmin()]
    longest = clouds.loc[clouds["dim"].idxmax()]
    lines = [
        f"{known['control'].iloc[0]}: {known['relative'].iloc[0]:.3f}; {longest.control}: {longest.relative:.3f}",
        f"published: {printed.min():.3f} to {printed.max():.3f}, mean {printed.mean():.3f}; the nearest of our "
        f"Gaussian clouds has {nearest.dim} numbers ({nearest.relative:.3f}), in draws of our size",
    ]
    for row in ours.itertuples():
        near = known.loc[(known["relative"] - row.relative).abs().idxmin()]
        lines.append(f"{row.encoder}: {row.relative:.3f}; nearest control: {near.control} ({near.relative:.3f})")
    return lines


def procedure_sentences(rows: pd.DataFrame) -> list[str]:
    """Per encoder: by how much each unprinted choice moves δ, and what c becomes; rows of :func:`procedures`.

    c without the factor 2 stands apart: 0.144, which δ is divided by, belongs to the convention with it.
    """
    lines = []
    for encoder, part in rows.groupby("encoder", sort=False):
        usual, *others = part.itertuples()
        one, every = others[-2:]
        told = [f"{row.procedure} × {row.relative / usual.relative:.2f}" for row in others[:-2]]
        told.append(f"{every.procedure} × {every.relative / one.relative:.2f} of the first")
        halved = part["procedure"] == WITHOUT_FACTOR
        c = part["c"][~halved]
        ends = f"c(X) from {c.min():.2f} to {c.max():.2f}, {WITHOUT_FACTOR} {part['c'][halved].item():.2f}"
        lines.append(f"{encoder}: {usual.relative:.3f}; {'; '.join(told)}; {ends}")
    return lines


def curvature_sentences(rows: pd.DataFrame) -> list[str]:
    """The range of c in the published cells and in ours, from the rows of :func:`beside_published`."""
    said, used = curvatures()
    lines = []
    for source, part in rows.groupby("source", sort=False):
        c = part["c"]
        spread = f"from {c.min():.3f} to {c.max():.3f}, mean {c.mean():.3f}, median {c.median():.3f}"
        above = [f"{(c > bound).sum()} lie above {bound:g}" for bound in (said, used)]
        lines.append(f"{source}: c(X) runs {spread}; of {len(c)}, {' and '.join(above)}")
    return lines


def disk_sentence(known: pd.DataFrame) -> str:
    """What the rule makes of the disks, which are all cut from the plane with c = 1; controls as :func:`yardstick`."""
    disks = known[known["control"].str.startswith("hyperbolic disk")]
    told = [f"{row.control.rpartition(', ')[2]} c(X) = {curvature(row.relative):.2f}" for row in disks.itertuples()]
    return f"disks of one and the same hyperbolic plane, c = 1: {', '.join(told)}"


def came_out(known: pd.DataFrame, ours: pd.DataFrame, changed: pd.DataFrame, tested: pd.DataFrame) -> list[str]:
    """The notebook in a few sentences: controls and encoders over the draws, the copies, both distances.

    known, ours: as :func:`yardstick`, ours with dim too, of which known has a Gaussian cloud each; changed: of
    ``measures.changes``; tested: of ``searched``.
    """
    lowest, highest = (ours.loc[place] for place in (ours["relative"].idxmin(), ours["relative"].idxmax()))
    clouds = known[known["control"].str.startswith("Gaussian")].set_index("dim")["relative"]
    alike = ours["dim"].map(clouds)
    told = ", ".join(f"{dim:,} numbers: {clouds[dim]:.3f}" for dim in sorted(set(ours["dim"])))
    lines = [
        f"relative δ of the encoders: from {lowest.relative:.3f} ({lowest.encoder}) to {highest.relative:.3f} "
        f"({highest.encoder}); {(ours['relative'] < alike).sum()} of {len(ours)} lie below a Gaussian cloud of their "
        f"own length ({told})"
    ]
    for copy, rows in changed.groupby("features", sort=False):
        lower, higher = (rows["high"] < 0).sum(), (rows["low"] > 0).sum()
        lines.append(
            f"{copy}: δ clearly lower than the features' with {lower} of {len(rows)} encoders, higher with {higher}"
        )
    outcomes = [paired.relation(test) for test in tested.itertuples()]
    better, worse = (outcomes.count(outcome) for outcome in paired.CLEAR)
    lines.append(
        f"hyperbolic distance with the c of δ, against Euclidean: better in {better}, worse in {worse} of "
        f"{len(outcomes)} comparisons; {points(tested['difference'].min())} to {points(tested['difference'].max())} "
        "points of MAP@k"
    )
    return lines
