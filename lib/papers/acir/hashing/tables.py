"""Tables 1, 2 and 6 in the paper's layout, and what the numbers say."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from lib.papers.acir import radius
from lib.papers.acir.choices import first_losses
from lib.papers.acir.hashing.experiment import (
    ACIR,
    ALPHA,
    BY_LABELS,
    LABELS,
    MEAN,
    OURS,
    OWN_LOSSES,
    PCA,
    TOP,
    UNWEIGHTED,
)
from lib.papers.acir.published import DATASETS, content_gain
from lib.results import answers, denominators, paired, rates
from lib.results.answers import Answers
from lib.results.markdown import markdown_table, percent, points
from lib.results.shown import Table

HITS = "ap_hits"
"""The mAP of deep hashing, and of the authors' code: divided by the hits in the list."""

OF_CLASSES = "Each class counts alike, as the mean of its queries."
"""What is added where they compare means over classes."""


def maps(found: Mapping[str, Answers]) -> pd.DataFrame:
    """mAP and maAP of every method in every gallery: the columns of :func:`lib.results.answers.values`, with gallery in
    place of rule, bits (NaN without a code), which is taken out of the method's name, and loss_first (of the first
    epoch).
    """
    rows = answers.values(found).rename(columns={"rule": "gallery"}).drop(columns="spread")
    first = {name: loss for several in found.values() for name, loss in first_losses(several).items()}
    rows = rows.assign(loss_first=rows["method"].map(first))
    parts = rows["method"].str.extract(r"^(?P<name>.*?)(?:-(?P<bits>\d+)bit)?$")
    rows["method"] = parts["name"]
    rows.insert(2, "bits", parts["bits"].astype(float))
    return rows[rows["metric"].isin([HITS, "ap_min"])].reset_index(drop=True)


def layout(rows: pd.DataFrame, theirs: pd.DataFrame, metric: str = HITS) -> str:
    """Table 1 as Markdown: a row per method and gallery, ``mAP (maAP)`` for each length; published rows first.

    theirs: of :func:`lib.papers.acir.published.maps`, one dataset after the other; it may be empty.
    """
    rows = rows[rows["metric"] == metric]
    lengths = sorted(rows["bits"].dropna().unique())
    lines = [
        {"method": name, "whose": f"published, {title}"}
        | {_bits(row.bits): f"{row.mAP:.1f} ({row.maAP:.1f})" for row in of_one.itertuples()}
        for dataset, title in DATASETS.items()
        for name, of_one in theirs[theirs["dataset"] == dataset].groupby("method", sort=False)
    ]
    for (gallery, method), of_one in rows.groupby(["gallery", "method"], sort=False):
        first = of_one.iloc[0]
        cells = {"method": method, "whose": "ours", "gallery": gallery}
        if pd.isna(first["bits"]):
            cells |= {_bits(bits): "" for bits in lengths} | {"no code": _cell(first)}
        else:
            cells |= {_bits(row["bits"]): _cell(row) for _, row in of_one.iterrows()}
        cells |= {"± over trainings, at most": percent(of_one["seeds_spread"].max())}
        lines.append(cells | _health(of_one))
    for gallery, of_one in rows.dropna(subset="bits").groupby("gallery", sort=False):
        lines.append({"method": "chance", "gallery": gallery} | {_bits(bits): _chance(of_one) for bits in lengths})
    columns = ["method", "whose", "gallery", *map(_bits, lengths), "no code", "± over trainings, at most"]
    columns += ["first loss", "last loss", "steps"]
    return markdown_table(pd.DataFrame(lines, columns=columns, dtype=object).fillna("–").replace("", "–"))


def table_1(rows: pd.DataFrame, theirs: pd.DataFrame, metric: str, text: str) -> Table:
    """Table 1 by one of the two metrics; theirs: published rows of all datasets, which are by hits."""
    theirs = theirs if metric == HITS else theirs.iloc[:0]
    title = "Table 1: codes" if metric == HITS else "Table 1 by min(k, R)"
    part = rows[rows["metric"] == metric]
    return Table(title, part, text, markdown=layout(part, theirs, metric))


def _health(rows: pd.DataFrame) -> dict[str, str]:
    """First and last loss at every length and steps; nothing where nothing was trained."""
    if not rows["steps"].max() > 0:
        return {}
    columns = {"first loss": "loss_first", "last loss": "loss"}
    losses = {title: " / ".join(rows[column].map("{:.3f}".format)) for title, column in columns.items()}
    return losses | {"steps": f"{rows['steps'].max():.0f}"}


def _bits(bits: float) -> str:
    return f"{bits:.0f} bits"


def _cell(row: pd.Series) -> str:
    return f"{percent(row['ours'])} ({percent(row['class_mean'])})"


def _chance(rows: pd.DataFrame) -> str:
    """``chance (its class mean)`` of the rows of a gallery."""
    return f"{percent(rows['chance'].mean())} ({percent(rows['class_chance'].mean())})"


def rates_layout(rows: pd.DataFrame) -> str:
    """mAP on validation images: a row per loss (and α), a column per learning rate."""
    named = rows["method"] + rows["alpha"].map(lambda alpha: "" if np.isnan(alpha) else f", α = {alpha:g}")
    return rates.rates_layout(rows.assign(method=named))


def looks_layout(rows: pd.DataFrame) -> str:
    """Quantiles of the likeness of fingerprints as Markdown."""
    numbers = {name: rows[name].map("{:.3f}".format) for name in ("low", "median", "high")}
    names = {"n_pairs": "number of pairs", "low": "10 %", "high": "90 %"}
    return markdown_table(rows.assign(**numbers).rename(columns=names))


def ranking_layout(rows: pd.DataFrame) -> str:
    """Content-guided ranking for everybody: mAP with ties in expectation, with content, and the gain."""
    spread = rows.groupby("method", sort=False)["plain"].std()
    lines = [
        {
            "method": row.method,
            f"items at the distance of rank {TOP}": f"{row.tied:.0f}",
            "mAP, ties in expectation": f"{percent(row.plain)} ± {percent(spread[row.method])}",
            "mAP, ties by content": percent(row.content),
            "gain": points(row.content - row.plain),
            "gain, min(k, R)": points(row.content_min - row.plain_min),
        }
        for row in radius.means(rows).itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def ranking_sentence(rows: pd.DataFrame) -> str:
    """Who gains by content, beside the published gain."""
    table = radius.means(rows).set_index("method")
    gain, by_min = table["content"] - table["plain"], table["content_min"] - table["plain_min"]
    more = int((gain.drop(ACIR) >= gain[ACIR]).sum())
    return (
        f"content-guided ranking adds {gain[ACIR]:+.1f} points of mAP ÷ hits to ACIR (÷ min(k, R): "
        f"{by_min[ACIR]:+.1f}; published: {content_gain():+.1f}), and "
        f"from {gain.drop(ACIR).min():+.1f} to {gain.drop(ACIR).max():+.1f} to the others; {more} of {len(gain) - 1} "
        "gain as much or more"
    )


def chance_sentence(rows: pd.DataFrame, metric: str = HITS) -> str:
    """What an archive in random order gives, closed gallery: mAP (maAP); rows: of :func:`maps`."""
    part = rows[(rows["metric"] == metric) & (rows["gallery"] == "closed") & (rows["k"] == TOP)]
    return f"Random order: {_chance(part)}."


def bits_layout(rows: pd.DataFrame) -> str:
    """What becomes of the bits, as Markdown: mAP ± over trainings, and in brackets maAP."""
    spread = rows.groupby("method", sort=False)["codes"].std()
    lines = [
        {
            "method": row.method,
            "mAP (maAP) of codes": f"{percent(row.codes)} ± {percent(spread[row.method])} ({percent(row.codes_class)})",
            "of the numbers before the sign": f"{percent(row.numbers)} ({percent(row.numbers_class)})",
            "distinct codes": f"{row.distinct:.0f}",
            "mean distance from a bit": f"{row.off:.3f}",
            "last loss": f"{row.loss_last:.3f}",
        }
        for row in radius.means(rows).itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def bits_sentences(rows: pd.DataFrame) -> list[str]:
    """Whether terms without a gradient differ from none at all, and what a sign costs."""
    table = radius.means(rows).set_index("method")
    none = [name for name in table.index if name.startswith("L_Q")]
    same = all((table.loc[name, ["codes", "off"]] == table.loc["α = 0", ["codes", "off"]]).all() for name in none)
    cost = table["numbers"] - table["codes"]
    return [
        f"{', '.join(none)}: {'the same' if same else 'not the same'} as α = 0, to the last digit",
        f"numbers before the sign have {cost.min():+.1f} to {cost.max():+.1f} points of mAP beside their codes",
    ]


def looks_sentence(rows: pd.DataFrame) -> str:
    """What it matters *which* pairs look alike: the loss as it is, with every pair at the mean likeness, and without.

    The mean likeness leaves the balance of pull and push as it is, which labels alone shift as well.
    """
    table = rows.groupby("method")["codes"].agg(["mean", "std"])
    told = ", ".join(
        f"{name} {table.loc[name, 'mean']:.1f} ± {table.loc[name, 'std']:.1f}" for name in (MEAN, BY_LABELS)
    )
    return f"mAP with fingerprints {table.loc[OURS, 'mean']:.1f} ± {table.loc[OURS, 'std']:.1f}; {told} (α = {ALPHA:g})"


def tests(found: Answers, groups: np.ndarray, bits: int, seed: int = 0, *, by_class: bool = False) -> pd.DataFrame:
    """Paired tests of mAP, or maAP, of ACIR against every other method, over groups and trainings.

    By both denominators, as :func:`lib.results.denominators.compare`.
    """
    subject = f"{ACIR}-{bits}bit"
    pairs = [(subject, name) for name in found if name != subject]
    tested = denominators.compare({"closed": found}, groups, pairs, [TOP], by_class=by_class, seed=seed)
    return tested.drop(columns="rule")


def tests_layout(tests: pd.DataFrame) -> str:
    """The rows of :func:`tests` as Markdown."""
    return paired.tests_layout(denominators.named(tests), paired.METHODS | {"k": "k"})


def answered(looks: pd.DataFrame, kept: pd.DataFrame, ranked: pd.DataFrame, tested: pd.DataFrame) -> list[str]:
    """The five questions of the notebook, each with what was measured."""
    cost = bits_sentences(kept)
    opponents = tested[~tested["second"].str.contains("|".join(["no code", "PCA", *OWN_LOSSES]))]
    medians = looks[looks["likeness"] == "pearson"].set_index("pairs")["median"]
    own, weights = (
        next(row for row in tested.itertuples() if row.second.startswith(name)) for name in (LABELS, UNWEIGHTED)
    )
    return [
        f"1. {cost[1]}, over all variants",
        f"2. against {opponents['second'].nunique()} other losses, {_clear(opponents)}; "
        f"with class weights it {paired.relation(weights)} without ({paired.size(weights)})",
        f"3. the median likeness of fingerprints is {medians['one class']:.3f} within a class and "
        f"{medians['two classes']:.3f} across; with them, ACIR {paired.relation(own)} ACIR with labels alone "
        f"({paired.size(own)}); {looks_sentence(kept)}",
        f"4. {cost[0]}",
        f"5. {ranking_sentence(ranked)}",
    ]


def _clear(tests: pd.DataFrame) -> str:
    """In how many tests ACIR is clearly better and worse, by each denominator."""
    told = []
    for metric, part in tests.groupby("metric", sort=False):
        better, worse, of = paired.tally(part)
        told.append(
            f"{denominators.DIVIDED[metric]} ACIR is clearly better in {better}, clearly worse in {worse} of {of}"
        )
    return ", ".join(told)


def came_out(tested: pd.DataFrame, rows: pd.DataFrame, bits: int) -> list[str]:
    """The best of all codes at a length, what a code costs, and every tested difference, by both denominators."""
    lines = []
    for metric, how in denominators.DIVIDED.items():
        part = rows[(rows["metric"] == metric) & (rows["gallery"] == "closed")]
        codes = part[part["bits"] == bits].set_index("method")["ours"]
        best = f"best of all codes of {bits} bits, {how}: {codes.idxmax()} ({codes.max():.1f})"
        lines.append(f"{best}; ACIR: {codes[ACIR]:.1f}")
    return [*lines, *denominators.sentences(tested)]


def by_class(rows: pd.DataFrame) -> list[str]:
    """The place of ACIR at each length, closed gallery: by mAP, and by maAP, where rare classes count as others do.

    By each denominator that ``rows`` have.
    """
    part = rows[(rows["gallery"] == "closed") & (rows["method"] != PCA)]
    lines = []
    for (bits, metric), of_one in part.dropna(subset="bits").groupby(["bits", "metric"]):
        table = of_one.set_index("method")
        place = table[["ours", "class_mean"]].rank(ascending=False, method="min").loc[ACIR].astype(int)
        first = table["class_mean"].idxmax()
        lines.append(
            f"{bits:.0f} bits, {denominators.DIVIDED[metric]}: ACIR is number {place['ours']} of {len(table)} by mAP "
            f"({table.loc[ACIR, 'ours']:.1f}), number {place['class_mean']} by maAP "
            f"({table.loc[ACIR, 'class_mean']:.1f}); first by maAP: {first} ({table.loc[first, 'class_mean']:.1f})"
        )
    return lines


def lengths_sentence(rows: pd.DataFrame) -> str:
    """Between which lengths mAP differs, the mean over losses."""
    part = rows[(rows["metric"] == "ap_min") & (rows["gallery"] == "closed")].dropna(subset="bits")
    part = part[part["method"] != PCA]
    by = part.groupby("bits")["ours"].mean()
    return "mean mAP (min(k, R)) of all losses: " + ", ".join(
        f"{value:.1f} at {bits:.0f} bits" for bits, value in by.items()
    )
