"""What the numbers of notebook 21 say, as sentences."""

from typing import Any

import pandas as pd

from lib.papers.hyp_vit.hyperbolicity import measures
from lib.papers.hyp_vit.hyperbolicity.measures import curvature
from lib.papers.hyp_vit.hyperbolicity.tables import PUBLISHED, WITHOUT_FACTOR, three
from lib.papers.hyp_vit.published import DATASETS, curvatures, delta
from lib.results import paired
from lib.results.markdown import points


def copies(rows: pd.DataFrame) -> list[str]:
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


def encoders(own: pd.DataFrame) -> list[str]:
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


def procedures(rows: pd.DataFrame) -> list[str]:
    """Per encoder: by how much each unprinted choice moves δ, and what c becomes; rows of ``tables.procedures``.

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


def curvature_range(rows: pd.DataFrame) -> list[str]:
    """The range of c in the published cells and in ours, from the rows of ``tables.beside_published``."""
    said, used = curvatures()
    lines = []
    for source, part in rows.groupby("source", sort=False):
        c = part["c"]
        spread = f"from {c.min():.3f} to {c.max():.3f}, mean {c.mean():.3f}, median {c.median():.3f}"
        above = [f"{(c > bound).sum()} lie above {bound:g}" for bound in (said, used)]
        lines.append(f"{source}: c(X) runs {spread}; of {len(c)}, {' and '.join(above)}")
    return lines


def disks(known: pd.DataFrame) -> str:
    """What the rule makes of the disks, which are all cut from the plane with c = 1; controls as :func:`yardstick`."""
    rows = known[known["control"].str.startswith("hyperbolic disk")]
    told = [f"{row.control.rpartition(', ')[2]} c(X) = {curvature(row.relative):.2f}" for row in rows.itertuples()]
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
    of_encoders = (
        f"relative δ of the encoders: from {lowest.relative:.3f} ({lowest.encoder}) to {highest.relative:.3f} "
        f"({highest.encoder}); {(ours['relative'] < alike).sum()} of {len(ours)} lie below a Gaussian cloud of their "
        f"own length ({told})"
    )
    return [of_encoders, *copies_in_short(changed), *search_in_short(tested)]


def copies_in_short(changed: pd.DataFrame) -> list[str]:
    """Of how many encoders δ is clearly lower or higher without structure; rows of ``measures.changes``."""
    lines = []
    for copy, rows in changed.groupby("features", sort=False):
        lower, higher = (rows["high"] < 0).sum(), (rows["low"] > 0).sum()
        lines.append(
            f"{copy}: δ clearly lower than the features' with {lower} of {len(rows)} encoders, higher with {higher}"
        )
    return lines


def search_in_short(tested: pd.DataFrame) -> list[str]:
    """In how many comparisons hyperbolic distance is better or worse than Euclidean; rows of ``measures.searched``."""
    better, worse, of = paired.tally(tested, "comparison")
    return [
        f"hyperbolic distance with the c of δ, against Euclidean: better in {better}, worse in {worse} of "
        f"{of}; {points(tested['difference'].min())} to {points(tested['difference'].max())} "
        "points of MAP@k"
    ]


def beside_printed(rows: pd.DataFrame) -> list[str]:
    """Our δ and c, of the largest draws, beside what the paper prints of the same dataset, or else of all of its.

    rows: source, encoder, dataset, relative, low, high of ``tables.beside_published``; ours is below or above where its
    interval is.
    """
    theirs, ours = rows[rows["source"] == PUBLISHED], rows[rows["source"] != PUBLISHED]
    source, dataset = ours[["source", "dataset"]].iloc[-1]
    same = theirs[theirs["dataset"] == dataset]
    if len(same):
        what, known = f"{DATASETS[dataset]} in the paper, {len(same)} encoders", same
    else:
        what, known = f"not in the paper; its {len(theirs)} cells", theirs
    low, high = known["relative"].min(), known["relative"].max()
    told = [_beside(row, low, high) for row in ours[ours["source"] == source].itertuples()]
    return [
        f"{what}: δ from {three(low)} to {three(high)}, c(X) from {curvature(high):.2f} to {curvature(low):.2f}; "
        f"{source}: {', '.join(told)}"
    ]


def _beside(row: Any, low: float, high: float) -> str:
    where = "below that" if row.high < low else "above that" if row.low > high else "not clearly outside that"
    return f"{row.encoder} {three(row.relative)} (c(X) {curvature(row.relative):.2f}; {where})"
