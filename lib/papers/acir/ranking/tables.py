"""What rankings are worth, as rows, as Markdown and as sentences."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.papers.acir import radius
from lib.papers.acir.hashing.experiment import ACIR, TOP
from lib.papers.acir.published import content_gain
from lib.papers.acir.ranking.experiment import (
    BEST,
    HAMMING,
    LEVEL,
    LEVELS,
    OPPONENTS,
    POOLED,
    WITHIN,
    WORST,
    Coder,
    Scene,
)
from lib.results.markdown import markdown_table, percent, points

KEYS = ("method", "bits", "ranking")
MAP = "ap_min"


def finer_of(images: ImageTable, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Columns of the table of images that say something finer than the class, such as the subtype: name → (n,).

    "none" is none. Raises InputError for a column that is not there.
    """
    names = [name for name in names if name != "none"]
    if lacking := [name for name in names if name not in images.rows]:
        raise InputError(f"{images.name}: the table has no column {', '.join(lacking)}; finer: [none] takes none")
    return {name: images.rows[name].to_numpy(dtype=str) for name in names}


def beside(values: pd.DataFrame, own: pd.DataFrame, name: str) -> pd.DataFrame:
    """``values`` with the column ``name`` of the same queries, trainings and rankings in another archive, ``own``."""
    keys = [*KEYS, "repeat", "query"]
    return values.merge(own[[*keys, name]], on=keys, how="left", validate="one_to_one")


def chances_of(*scenes: Scene) -> dict[str, float]:
    """What is finer → percent that share it among the images of the query's class."""
    return {name: scene.chance(name) for scene in scenes for name in scene.finer}


def health(coders: Sequence[Coder]) -> pd.DataFrame:
    """How training ended: columns method, bits, loss_first, loss_last (mean of an epoch, over trainings), steps."""
    rows = [
        {"method": one.method, "bits": one.bits, "loss_first": one.history[0], "loss_last": one.history[-1]}
        | {"steps": one.steps}
        for one in coders
    ]
    return pd.DataFrame(rows).groupby(["method", "bits"], sort=False).mean().reset_index()


def health_layout(rows: pd.DataFrame) -> str:
    """The same as Markdown."""
    numbers = {name: rows[name].map("{:.3f}".format) for name in ("loss_first", "loss_last")}
    names = {"loss_first": "loss of the first epoch", "loss_last": "of the last"}
    return markdown_table(rows.assign(**numbers, steps=rows["steps"].map("{:.0f}".format)).rename(columns=names))


def radii(coders: Sequence[Coder], scene: Scene, bits: int, several: Sequence[int]) -> pd.DataFrame:
    """Table 6 of all methods at one length: the columns of :func:`lib.papers.acir.radius.by_radius`, and repeat.

    Last comes the trivial answer, :data:`lib.papers.acir.radius.COMMONEST`.
    """
    frames = [
        radius.by_radius(*_codes(one, scene), several).assign(method=one.method, repeat=one.repeat)
        for one in coders
        if one.bits == bits
    ]
    labels = scene.labels[scene.queries], scene.labels[scene.gallery]
    return pd.concat([*frames, radius.commonest(*labels, several)], ignore_index=True)


def centralised(coders: Sequence[Coder], scene: Scene, bits: int) -> pd.DataFrame:
    """How close the codes of a class lie: those of :func:`lib.papers.acir.radius.centralisation`, a row a training."""
    rows = [
        {"method": one.method, "repeat": one.repeat} | radius.centralisation(*_codes(one, scene))
        for one in coders
        if one.bits == bits
    ]
    return pd.DataFrame(rows)


def _codes(one: Coder, scene: Scene) -> tuple[np.ndarray, ...]:
    sides = scene.queries, scene.gallery
    return *(one.h[rows] for rows in sides), *(scene.labels[rows] for rows in sides)


def centralisation_sentences(rows: pd.DataFrame) -> list[str]:
    """Whose codes of a class lie closest together, and what R = 0 answers."""
    by = radius.means(rows).set_index("method")
    return [
        f"different codes of a class, fewest first: {_ranked(by['distinct'])}",
        f"bits between two images of a class, closest first: {_ranked(by['spread'])}",
        f"queries answered at R = 0, percent: {_ranked(-by['answered'], sign=-1)}; of these right: "
        f"{_ranked(-by['right'], sign=-1)}",
    ]


def _ranked(values: pd.Series, sign: int = 1) -> str:
    return ", ".join(f"{name} {sign * value:.1f}" for name, value in values.sort_values().items())


def summary(values: pd.DataFrame) -> pd.DataFrame:
    """Means over queries and trainings: :data:`KEYS`, then the measures of ``values``, spread (± of mAP), n_seeds.

    values: of :func:`lib.papers.acir.ranking.experiment.measured`.
    """
    measures = [name for name in values.columns if name not in (*KEYS, "repeat", "query")]
    trainings = values.groupby([*KEYS, "repeat"], sort=False)[measures].mean()
    grouped = trainings.groupby(list(KEYS), sort=False)
    return grouped.mean().assign(spread=grouped[MAP].std(), n_seeds=grouped.size()).reset_index()


def ties_layout(rows: pd.DataFrame, chance: float) -> str:
    """What ties cost: a row per method and length; rows: of :func:`summary`; chance: of a random order, percent."""
    lines = []
    for (method, bits), part in rows.groupby(["method", "bits"], sort=False):
        by = part.set_index("ranking")
        lines.append(
            {
                "method": method,
                "bits": bits,
                f"tied pairs in the first {TOP}": f"{by.loc[HAMMING, 'tied']:.1f} %",
                "mAP, worst order": percent(by.loc[WORST, MAP]),
                "in expectation": percent(by.loc[HAMMING, MAP]),
                "best order": percent(by.loc[BEST, MAP]),
                "by the pooled feature": percent(by.loc[POOLED, MAP]),
                "by ACIR's levels": percent(by.loc[LEVELS, MAP]) if LEVELS in by.index else "–",
                "± over trainings": percent(by.loc[HAMMING, "spread"]),
            }
        )
    lines.append({"method": "chance", "in expectation": percent(chance)})
    return markdown_table(pd.DataFrame(lines, dtype=object).fillna("–"))


def levels_layout(rows: pd.DataFrame, chance: float) -> str:
    """ACIR's mAP by what breaks its ties: a row per content, a column per length, with the gain in brackets.

    chance: of a random order, percent.
    """
    part = rows[(rows["method"] == ACIR) & ~rows["ranking"].isin([BEST, WORST])]
    by = part.set_index(["ranking", "bits"])[MAP]
    lines = []
    for name in part["ranking"].unique():
        cells = {"ties broken by": name.removeprefix(LEVEL) if name != HAMMING else "nothing (in expectation)"}
        for bits in sorted(part["bits"].unique()):
            gain = "" if name == HAMMING else f" ({points(by[name, bits] - by[HAMMING, bits])})"
            cells[f"{bits} bits"] = percent(by[name, bits]) + gain
        lines.append(cells)
    lines.append({"ties broken by": "chance"} | {f"{bits} bits": percent(chance) for bits in part["bits"].unique()})
    return markdown_table(pd.DataFrame(lines))


def within_layout(rows: pd.DataFrame, chances: Mapping[str, float]) -> str:
    """What is finer than the class: a row per ranking; chances: name → percent of the images of the class."""
    part = rows[~rows["ranking"].isin([BEST, WORST])]
    lines = [
        {"method": row["method"], "ranking": row["ranking"]} | {f"same {name}": percent(row[name]) for name in chances}
        for _, row in part.iterrows()
    ]
    lines.append({"method": "chance", "ranking": "–"} | {f"same {name}": percent(v) for name, v in chances.items()})
    return markdown_table(pd.DataFrame(lines))


def ties_sentences(rows: pd.DataFrame) -> list[str]:
    """How much ACIR's ties leave open, at every length, and what content makes of it."""
    own = rows[rows["method"] == ACIR]
    lines = []
    for bits, part in own.groupby("bits"):
        by = part.set_index("ranking")
        ap = by[MAP]
        lines.append(
            f"{bits} bits: {by.loc[HAMMING, 'tied']:.0f} % of the pairs are tied, mAP {ap[WORST]:.1f} to {ap[BEST]:.1f}"
            f" by their order, {ap[HAMMING]:.1f} in expectation; content adds {ap[LEVELS] - ap[HAMMING]:+.1f} (levels),"
            f" {ap[POOLED] - ap[HAMMING]:+.1f} (pooled feature)"
        )
    return lines


def gain_sentence(rows: pd.DataFrame, bits: int) -> str:
    """The gain by content beside the published one, and the opponents' with a feature that needs no ACIR."""
    hits = rows[rows["bits"] == bits].set_index(["method", "ranking"])["ap_hits"]
    others = {name: hits[name, POOLED] - hits[name, HAMMING] for name in OPPONENTS}
    told = ", ".join(f"{name} {gain:+.1f}" for name, gain in others.items())
    return (
        f"{bits} bits, hits, as the paper counts: content adds {hits[ACIR, LEVELS] - hits[ACIR, HAMMING]:+.1f} to ACIR "
        f"by its levels and {hits[ACIR, POOLED] - hits[ACIR, HAMMING]:+.1f} by the pooled feature (published: "
        f"{content_gain():+.1f}); by the pooled feature it adds to the others: {told}"
    )


def within_sentences(rows: pd.DataFrame, chances: Mapping[str, float]) -> list[str]:
    """What the first of the class share beyond it, beside chance."""
    by = rows[rows["method"] == ACIR].set_index("ranking")
    csq = rows[rows["method"] == "CSQ"].set_index("ranking").loc[POOLED]
    return [
        f"same {name} among the first {WITHIN} of the class: {by.loc[HAMMING, name]:.1f} % by Hamming alone, "
        f"{by.loc[LEVELS, name]:.1f} % by the levels, {by.loc[POOLED, name]:.1f} % by the pooled feature; CSQ by the "
        f"pooled feature {csq[name]:.1f} %; chance {chance:.1f} %"
        for name, chance in chances.items()
    ]
