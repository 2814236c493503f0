"""Sections 3.3 and 4.3: what hash codes of one layer are worth, by every loss (Table 1, Fig. 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from lib.figures.lines import lines
from lib.geometry import Euclidean
from lib.losses.acir import StructureAware, likeness
from lib.metrics import hashing
from lib.metrics.votes import votes
from lib.papers.acir import published
from lib.papers.acir.heads import ACIR, ALPHA, LINEAR, PUBLISHED_ALPHA, TOP, Plan
from lib.papers.acir.training import first_loss, of_head, search
from lib.study import answers, measures, paired
from lib.study.columns import Column, Layout, printed, steps
from lib.study.rates import rates_layout
from lib.study.scores import Answers, of_answers
from lib.training.experiment import Voted
from lib.training.methods import Fitted, Method
from lib.training.splits import Split

THREE = "three kinds of pairs"
"""Positive, neutral and negative, as Section 3.3 announces them (AC-6)."""
HITS = "ap_hits"
"""The mAP of deep hashing, and of the authors' code: divided by the hits in the list."""


def variants(plan: Plan, bits: int, lr: float, neutral: float) -> list[Method]:
    """ACIR's loss with one thing changed at a time, from α = :data:`ALPHA`.

    neutral: the likeness below which a pair of one class is neutral (:func:`neutral_limit`).
    """
    ours = StructureAware(alpha=ALPHA, looks=True, class_weights=plan.class_weights)
    kinds = {
        f"ours, α = {ALPHA:g}": ours,
        f"ours, α = {PUBLISHED_ALPHA:g}": replace(ours, alpha=PUBLISHED_ALPHA),
        "α = 0": replace(ours, alpha=0.0),
        f"L_Q as printed, α = {PUBLISHED_ALPHA:g}": replace(ours, alpha=PUBLISHED_ALPHA, quantisation="printed"),
        f"L_Q of the code, α = {PUBLISHED_ALPHA:g}": replace(ours, alpha=PUBLISHED_ALPHA, quantisation="code"),
        "S clamped": replace(ours, clamped=True),
        "likeness by cosine": replace(ours, likeness="cosine"),
        THREE: replace(ours, neutral=neutral),
        "every pair at the mean likeness": replace(ours, even=True),
        "labels alone": replace(ours, looks=False),
        "no class weights": replace(ours, class_weights=()),
    }
    return [plan.method(name, loss, bits, lr) for name, loss in kinds.items()]


def neutral_limit(prints: np.ndarray, labels: np.ndarray, split: Split) -> float:
    """The median likeness of fingerprints (n, p) of two training images of one class."""
    classes = labels[split.train]
    first, second = np.triu_indices(len(classes), k=1)
    h = likeness(torch.from_numpy(prints[split.train])).numpy()[first, second]
    return float(np.median(h[classes[first] == classes[second]]))


Heads = Mapping[str, Sequence[Fitted]]
"""Loss → its trainings."""


def of_length(trained: Heads, bits: int) -> dict[str, Sequence[Fitted]]:
    """Those with codes of that length, by the name of their loss."""
    end = f"-{bits}bit"
    return {name.removesuffix(end): heads for name, heads in trained.items() if name.endswith(end)}


def maps(got: Mapping[str, Answers]) -> pd.DataFrame:
    """Table 1: mAP and maAP of every method in every gallery, as :meth:`lib.study.scores.Scores.means`.

    bits is taken out of the method's name (NaN without a code); loss_first is the loss of the first epoch.
    """
    rows = of_answers(got, measure=first_loss, rule="gallery").means().drop(columns="spread")
    names = rows["method"].str.extract(r"^(?P<name>.*?)(?:-(?P<bits>\d+)bit)?$")
    rows["method"] = names["name"]
    rows.insert(2, "bits", names["bits"].astype(float))
    return rows[rows["metric"].isin([HITS, "ap_min"])].reset_index(drop=True)


def bits_used(trained: Heads, x: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    """What becomes of the bits, a row a training.

    Columns method, repeat, codes (mAP, min(k, R), percent), codes_class (maAP), numbers and numbers_class (the same
    before the sign), distinct (codes in the gallery), off (mean of ||h| − 1|) and loss_last (mean of the last epoch).
    """
    rows = []
    for name, fitted in ((name, fitted) for name, trainings in trained.items() for fitted in trainings):
        h, cells = of_head(name, fitted, x).h, {"method": name, "repeat": fitted.split.repeat}
        for what, z in (("codes", np.where(h >= 0, np.float32(1), np.float32(-1))), ("numbers", h)):
            mean = search(z, labels, fitted.split, Euclidean()).mean().set_index(["metric", "k"]).loc[("ap_min", TOP)]
            cells |= {what: 100 * mean["value"], f"{what}_class": 100 * mean["class_mean"]}
        learnt = torch.from_numpy(h[fitted.split.train])
        distinct, off = len(np.unique(hashing.pack(learnt), axis=0)), (learnt.abs() - 1).abs().mean().item()
        rows.append(cells | {"distinct": distinct, "off": off, "loss_last": fitted.history[-1]})
    return pd.DataFrame(rows)


def first_answers(trained: Heads, x: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    """What the nearest images of the closed gallery vote for: :func:`lib.study.answers.votes`.

    Queries whose class the gallery lacks are left out. Images at one distance stand in an order drawn by the training's
    seed: in that of the gallery its first class would win all ties.
    """
    voted = {name: [_vote(fitted, x, labels) for fitted in trainings] for name, trainings in trained.items()}
    return answers.votes({"closed": voted})


def _vote(fitted: Fitted, x: np.ndarray, labels: np.ndarray) -> Voted:
    split = fitted.split
    gallery = np.random.default_rng(split.seed).permutation(split.train)
    queries = split.test[np.isin(labels[split.test], labels[gallery])]
    voted = votes(fitted.embed(x[queries]), fitted.embed(x[gallery]), labels[gallery], fitted.space)
    return Voted(split.repeat, labels[queries], voted, len(split.test) - len(queries))


def tests(got: Answers, groups: np.ndarray, bits: int, seed: int = 0, *, by_class: bool = False) -> pd.DataFrame:
    """Paired tests of mAP, or maAP, of ACIR against every other method, by both denominators."""
    subject = f"{ACIR}-{bits}bit"
    pairs = [(subject, name) for name in got if name != subject]
    compared = measures.compare({"closed": got}, groups, pairs, [TOP], by_class=by_class, seed=seed)
    return compared.drop(columns="rule")


def figure_3(rows: pd.DataFrame) -> Figure:
    """mAP and maAP over the length of the code, and the classifier, which has no code, as a level line."""
    level = (
        rows[rows["method"] == LINEAR].drop(columns="bits").merge(rows[["bits"]].dropna().drop_duplicates(), "cross")
    )
    drawn = pd.concat([rows.dropna(subset="bits").sort_values("bits", kind="stable"), level])
    drawn = drawn.assign(x=drawn["bits"].map("{:.0f}".format), line=drawn["method"])
    panels = [drawn.assign(panel=name, y=drawn[column]) for name, column in (("mAP", "ours"), ("maAP", "class_mean"))]
    looks = {ACIR: {"color": "black", "marker": "o", "linewidth": 2}, LINEAR: {"color": "black", "linestyle": "--"}}
    return lines(pd.concat(panels), xlabel="bits", ylabel="percent", looks=looks, height=4.6)


CODES = (
    Column("method"),
    Column("gallery"),
    Column("{} bits", "ours", over="bits", brackets="class_mean"),
    Column("no code", "plain", brackets="plain_class"),
    Column("± over trainings, at most", "seeds_spread"),
    Column("chance", "chance", brackets="class_chance"),
    Column("first loss", "first_losses"),
    Column("last loss", "last_losses"),
    Column("steps", "steps", steps),
)


def table_1(rows: pd.DataFrame) -> str:
    """:func:`maps` of one metric; by hits, as the paper counts, its own rows stand first."""
    by = rows.groupby(["gallery", "method"], sort=False)
    without = rows["bits"].isna()
    ours = rows.assign(
        plain=rows["ours"].where(without),
        plain_class=rows["class_mean"].where(without),
        seeds_spread=by["seeds_spread"].transform("max"),
        first_losses=by["loss_first"].transform(_listed),
        last_losses=by["loss"].transform(_listed),
    )
    return Layout(CODES, by=("gallery", "method"))(pd.concat([_published(rows), ours]))


def _published(rows: pd.DataFrame) -> pd.DataFrame:
    """Table 1 of the paper at the lengths of ``rows``; it has nothing by min(k, R)."""
    theirs = published.maps().sort_values("dataset", ascending=False, kind="stable")  # RadIN-CT first
    theirs = theirs[theirs["bits"].isin(rows["bits"]) & (rows["metric"] == HITS).all()]
    cells = [f"{row.mAP:.1f} ({row.maAP:.1f})" for row in theirs.itertuples()]
    return theirs.assign(gallery="published, " + theirs["dataset"].map(published.DATASETS), ours=cells)


def _listed(losses: pd.Series) -> str:
    return " / ".join(printed(loss, "3") for loss in losses.dropna()) or "–"


BITS = Layout(
    (
        Column("method"),
        Column("mAP (maAP) of codes", "codes", pm="codes_spread", brackets="codes_class"),
        Column("of the numbers before the sign", "numbers", brackets="numbers_class"),
        Column("distinct codes", "distinct", form="0"),
        Column("mean distance from a bit", "off", form="3"),
        Column("last loss", "loss_last", form="3"),
    ),
    repeats="repeat",
)


def _by_alpha(rows: pd.DataFrame) -> pd.DataFrame:
    """:func:`lib.papers.acir.heads.choose` with α behind the name of a loss: a line for each, a column per rate."""
    alpha = rows["alpha"].map(lambda value: "" if np.isnan(value) else f", α = {value:g}")
    return RATES.prepare(rows.assign(method=rows["method"] + alpha))


RATES = rates_layout()
LAYOUTS = {
    "table_1": table_1,
    "table_1_min": table_1,
    "table_first": answers.VOTED,
    "table_quantisation": BITS,
    **{f"table_{name}": paired.tests_layout(paired.METHODS | {"k": "k"}) for name in ("tests", "tests_by_class")},
    "table_rates": replace(RATES, prepare=_by_alpha),
}
