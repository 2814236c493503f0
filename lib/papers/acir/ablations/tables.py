"""What the queries of every row got, as rows, tests, and the paper's tables."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.figures.forest import forest
from lib.metrics.classes import over_classes
from lib.papers.acir import published
from lib.papers.acir.ablations.networks import Scored
from lib.papers.acir.ablations.rows import (
    CAUCHY,
    CNN,
    FULL,
    FUSED,
    HYBRID,
    LAYER,
    PLAIN_RANKING,
    PRETRAINED,
    STRUCTURE,
    TURNED,
    UNTRAINED,
    VIT,
    WITHOUT,
    switched_on,
)
from lib.papers.acir.heads import TOP
from lib.study import differences, paired
from lib.study.columns import Column, Layout, steps
from lib.study.markdown import markdown_table, points
from lib.training.acir import Design

Scores = Mapping[str, Sequence[Scored]]
"""Row → one per training."""

MEASURES = {"mAP": ("ap_hits", TOP), "mAP_min": ("ap_min", TOP), "first": ("ap_min", 1)}
CLASS_MEANS = {"mAP": "maAP", "mAP_min": "maAP_min", "first": "first_class"}
"""Means over queries → metric and k; each has a class mean."""


def frame(scores: Scores) -> pd.DataFrame:
    """A row per training: mAP and maAP (by hits), mAP_min and maAP_min (min(k, R)), first and first_class (the first
    answer), percent; chance of each; n_queries, n_without_relevant, and the health of the training."""
    return pd.DataFrame([_cells(name, one) for name, trainings in scores.items() for one in trainings])


def _cells(name: str, one: Scored) -> dict[str, object]:
    cells: dict[str, object] = {"name": name, "repeat": one.repeat}
    for start, values in (("", one.per_query.values), ("chance_", one.per_query.chance)):
        for measure, column in MEASURES.items():
            cells[f"{start}{measure}"] = 100 * values[column].mean()
            cells[f"{start}{CLASS_MEANS[measure]}"] = 100 * over_classes(values[column], one.per_query.classes)
    counts = one.per_query.mean().iloc[0]
    cells |= {count: int(counts[count]) for count in ("n_queries", "n_without_relevant")}
    first, last = (one.history[0], one.history[-1]) if len(one.history) else (np.nan, np.nan)
    health = {"loss_first": first, "loss_last": last, "steps": one.steps, "parameters": one.parameters}
    return cells | health | {"size": one.size}


def tests(
    scores: Scores, pairs: Sequence[tuple[str, str]], groups: np.ndarray, seed: int = 0, *, by_class: bool = False
) -> pd.DataFrame:
    """Paired tests of mAP (min(k, R)) over groups (q,) and trainings, corrected together; by_class: of maAP."""
    lines = []
    for first, second in pairs:
        a, b = ([one.per_query for one in scores[name]] for name in (first, second))
        n = len(a)
        how = {"repeats": np.repeat(np.arange(n), len(groups)), "by_class": by_class, "seed": seed}
        test = differences.difference(a, b, np.tile(groups, n), TOP, **how)
        lines.append({"first": first, "second": second} | test)
    return differences.together(lines)


def alpha_tests(
    scores: Mapping[tuple[str, float], Sequence[Scored]], groups: np.ndarray, seed: int = 0
) -> pd.DataFrame:
    """Our term at each α against α = 0; scores: of :func:`by_alpha`."""
    ours = {f"α = {alpha:g}": trainings for (form, alpha), trainings in scores.items() if form == "ours"}
    more = [alpha for form, alpha in scores if form == "ours" and alpha]
    return tests(ours, [(f"α = {alpha:g}", "α = 0") for alpha in more], groups, seed).assign(alpha=more)


ON = {
    "L_WSC (CNN)": (f"{CNN} + L_WSC", CNN),
    "L_WSC (ViT)": (f"{VIT} + L_WSC", VIT),
    "L_WSC (hybrid)": (f"{HYBRID} + L_WSC", HYBRID),
    "PiT (hybrid over CNN)": (HYBRID, CNN),
    "hybrid over ViT": (HYBRID, VIT),
    "DaRF": (FUSED, f"{HYBRID} + L_WSC"),
    "KAN": (PLAIN_RANKING, FUSED),
    "CGR": (FULL, PLAIN_RANKING),
}
"""The steps of Table 2: the first row has the part, the second does not."""
OFF = ("L_WSC", "fingerprints", "class weights", "PiT", "DaRF", "ConvMSA", "KAN")
OPPONENTS = {
    "DaRF as printed, over shallow queries": (FULL, TURNED),
    "all but CGR, over CNN": (PLAIN_RANKING, CNN),
} | {f"all but CGR, over {LAYER.format(loss)}": (PLAIN_RANKING, LAYER.format(loss)) for loss in (CAUCHY, STRUCTURE)}
WHERE = {"on": "switched on", "off": "taken out of the whole", "ours": "the whole and an opponent"}


def gains(scores: Scores, groups: np.ndarray, seed: int = 0, *, by_class: bool = False) -> pd.DataFrame:
    """What every part earns: columns part, where (of :data:`WHERE`), first, second, those of the paired test of mAP
    (min(k, R)), hits (the same difference by hits) and published (by hits; NaN where there is none).

    groups: (q,) of the queries. by_class: of maAP, where each class counts alike.
    """
    known = {"on": ON, "off": {part: (FULL, f"{WITHOUT}{part}") for part in OFF}, "ours": OPPONENTS}
    all_pairs = [(part, where, *pair) for where, pairs in known.items() for part, pair in pairs.items()]
    there = [(part, where, a, b) for part, where, a, b in all_pairs if a in scores and b in scores]
    tested = tests(scores, [(a, b) for _, _, a, b in there], groups, seed, by_class=by_class)
    measure = "maAP" if by_class else "mAP"
    value, theirs = frame(scores).groupby("name")[measure].mean(), published_gains(measure)
    return pd.concat(
        [
            pd.DataFrame({"part": [part for part, *_ in there], "where": [where for _, where, *_ in there]}),
            tested.assign(
                hits=[value[a] - value[b] for *_, a, b in there],
                published=[theirs[part] if where == "on" else np.nan for part, where, *_ in there],
            ),
        ],
        axis=1,
    )


def published_rows() -> pd.DataFrame:
    """Table 2 as printed, by the names of :func:`switched_on`: columns mAP, maAP."""
    names = [row.name for row in switched_on(Design())]
    return published.ablation().set_axis(names)[["mAP", "maAP"]]


def published_gains(measure: str = "mAP") -> dict[str, float]:
    """Part → what switching it on adds to mAP, or maAP, in Table 2, in points.

    >>> {part: round(gain, 1) for part, gain in published_gains().items()}["L_WSC (ViT)"]
    3.7
    """
    value = published_rows()[measure]
    return {part: float(value[first] - value[second]) for part, (first, second) in ON.items()}


def gains_layout(rows: pd.DataFrame) -> str:
    """What every part earns, as Markdown."""
    lines = [
        {"part": row.part, "comparison": WHERE[row.where]}
        | paired.cells(row, "gain, points")
        | {"by hits": points(row.hits), "published, by hits": points(row.published)}
        for row in rows.itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def gains_figure(rows: pd.DataFrame) -> Figure:
    """Every gain with its interval, one below the other; filled: clear after the correction.

    The axis ends where the second largest gain does: one that is far beyond all others would press them together.
    """
    named = rows.assign(name=rows["part"], series=rows["where"].map(WHERE), clear=rows["p_holm"] <= 0.05)
    figure = forest(named, xlabel="gain in mAP (percentage points)", row_height=0.14)
    others = rows.drop(index=rows["difference"].abs().idxmax())
    if len(others):
        figure.axes[0].set_xlim(min(others["low"].min(), 0) - 1, max(others["high"].max(), 0) + 1)
    return figure


SCORES = (
    Column("ours", "mAP", pm="mAP_spread", brackets="maAP", chance="chance_mAP"),
    Column("min(k, R)", "mAP_min", pm="mAP_min_spread", brackets="maAP_min", chance="chance_mAP_min"),
    Column("first answer", "first", brackets="first_class", chance="chance_first"),
    Column("first loss", "loss_first", "3"),
    Column("last loss", "loss_last", "3"),
    Column("steps", form=steps),
    Column("parameters", form=lambda n: f"{n:,.0f}" if n else "–"),
)
NAME, PUBLISHED = Column("row", "name"), Column("published", "theirs")


def _beside(rows: pd.DataFrame, theirs: pd.DataFrame, by: Sequence[str] = ("name",)) -> pd.DataFrame:
    """``rows`` with the published mAP (maAP) in a column theirs; what is published only stands first.

    theirs: columns ``by``, mAP, maAP.
    """
    text = theirs["mAP"].map("{:.1f}".format) + " (" + theirs["maAP"].map("{:.1f}".format) + ")"
    known, keys = theirs[list(by)].assign(theirs=text), list(by)
    only = ~known.set_index(keys).index.isin(rows.set_index(keys).index)
    return pd.concat([known[only], rows.merge(known, on=keys, how="left")], ignore_index=True)


def table_2(rows: pd.DataFrame) -> str:
    """The published rows and ours, then those without one part; rows: of :func:`frame`."""
    theirs = published_rows().rename_axis("name").reset_index()
    return Layout([NAME, PUBLISHED, *SCORES], ["name"], repeats="repeat")(_beside(rows, theirs))


def table_4(rows: pd.DataFrame) -> str:
    """With and without pretraining; the paper's codes have three lengths."""
    theirs = published.pretraining()
    eyes = theirs["pretrained"].map({False: UNTRAINED, True: PRETRAINED})
    theirs = theirs.assign(name=theirs["method"] + ", " + eyes)
    shown = _beside(rows, theirs).merge(theirs[["name", "bits"]], on="name", how="left")
    columns = [NAME, Column("published bits", "bits", "0"), PUBLISHED, *SCORES]
    return Layout(columns, ["name"], repeats="repeat")(shown)


def table_5(rows: pd.DataFrame) -> str:
    """Long codes, and no codes; published values of 16 and 64 bits are those of Table 1 on RadIN-CT."""
    theirs = pd.concat([published.maps().query("dataset == 'radin_ct'"), published.long_codes()])
    theirs = theirs.assign(name=theirs["method"] + theirs["bits"].map(", {:.0f} bits".format))
    theirs = theirs[theirs["name"].isin(rows["name"]) | (theirs["method"] == "ViT-LLaMa")]
    columns = [NAME, Column("bytes", "size", "{:g}"), PUBLISHED, *SCORES]
    return Layout(columns, ["name"], repeats="repeat")(_beside(rows, theirs))


def table_alpha(rows: pd.DataFrame) -> str:
    """Published, ours, as printed, and of the authors' code, at each α."""
    shown = _beside(rows, published.alphas().assign(form="ours"), ("form", "alpha"))
    columns = [Column("L_Q", "form"), Column("α", "alpha", "{:g}"), PUBLISHED, *SCORES]
    return Layout(columns, ["form", "alpha"], repeats="repeat")(shown.sort_values("alpha", kind="stable"))


LAYOUTS = {
    "table_2": table_2,
    "table_4": table_4,
    "table_5": table_5,
    "table_alpha": table_alpha,
    "table_longer": Layout([NAME, *SCORES], ["name"], repeats="repeat"),
}
END_TO_END = LAYOUTS["table_longer"]
