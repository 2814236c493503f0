"""What is switched on and off in Tables 2, 4 and 5, the losses, and what the queries of each row got (Section 4.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.figures.forest import forest
from lib.losses.acir import StructureAware
from lib.losses.hashing import CSQ, DCH, QSMIH
from lib.metrics.classes import over_classes
from lib.papers.acir import published
from lib.papers.acir.heads import TOP, of_classes
from lib.papers.acir.training import Material, Sized, first_loss
from lib.study import paired
from lib.study.columns import Column, Layout, steps
from lib.study.rates import rates_layout
from lib.study.scores import of_answers
from lib.training.acir import Design
from lib.training.sweep import Loss

CNN, VIT, HYBRID, FULL = "CNN", "ViT", "Hybrid", "ACIR"
PRETRAINED, UNTRAINED, TOKEN = "pretrained stem", "untrained stem", "ViT feature"
"""What a network sees: feature maps of the encoder, those of the same encoder untrained, a ViT's class token."""
CAUCHY, STRUCTURE, PLAIN, UNWEIGHTED = "Cauchy", "L_WSC", "L_WSC, labels alone", "L_SC + α L_Q"
FUSED, WITHOUT = f"{HYBRID} + L_WSC + DaRF", f"{FULL} without "
PLAIN_RANKING = f"{WITHOUT}CGR"
TURNED = f"{FULL}, DaRF with shallow queries"
"""The direction of the sentence about Equation 9, and of the authors' code (AC-24)."""
LAYER = "one layer, {}"
"""One linear layer on the pooled map of all channels, as notebook 31 trains it, with this loss."""


@dataclass(frozen=True)
class Row:
    """A network, its loss (a key of :func:`losses`), and whether ties are broken by content.

    eye: what it sees. like: name of the row whose learning rate it takes.
    """

    name: str
    design: Design
    loss: str
    content: bool = False
    eye: str = PRETRAINED
    like: str = ""

    @property
    def rate(self) -> str:
        """The row whose learning rate this one has: its own, if it is like no other."""
        return self.like or self.name


def plain(design: Design) -> Design:
    """The network without its parts: a mean, and two layers."""
    return replace(design, pit=False, fusion=False, kan=False)


def switched_on(design: Design) -> list[Row]:
    """The rows of Table 2 in the paper's order; the last one is :data:`FULL`."""
    cnn = plain(design)
    hybrid, fused = replace(cnn, pit=True), replace(cnn, pit=True, fusion=True)
    return [
        Row(CNN, cnn, CAUCHY),
        Row(f"{CNN} + L_WSC", cnn, STRUCTURE),
        Row(VIT, cnn, CAUCHY, eye=TOKEN),
        Row(f"{VIT} + L_WSC", cnn, STRUCTURE, eye=TOKEN),
        Row(HYBRID, hybrid, CAUCHY),
        Row(f"{HYBRID} + L_WSC", hybrid, STRUCTURE),
        Row(FUSED, fused, STRUCTURE),
        Row(PLAIN_RANKING, design, STRUCTURE),
        Row(FULL, design, STRUCTURE, content=True, like=PLAIN_RANKING),
    ]


def switched_off(design: Design) -> list[Row]:
    """:data:`FULL` without one part at a time, each at a rate of its own but without KAN; and with DaRF turned.

    Without DaRF nothing reads what ConvMSA makes, so that both are gone; ConvMSA is taken out alone as well.
    """
    return [
        Row(f"{WITHOUT}L_WSC", design, CAUCHY, content=True),
        Row(f"{WITHOUT}fingerprints", design, PLAIN, content=True),
        Row(f"{WITHOUT}class weights", design, UNWEIGHTED, content=True),
        Row(f"{WITHOUT}PiT", replace(design, pit=False), STRUCTURE, content=True),
        Row(f"{WITHOUT}DaRF", replace(design, fusion=False), STRUCTURE, content=True),
        Row(f"{WITHOUT}ConvMSA", replace(design, windows=False), STRUCTURE, content=True),
        Row(f"{WITHOUT}KAN", replace(design, kan=False), STRUCTURE, content=True, like=FUSED),
        Row(TURNED, replace(design, queries="shallow"), STRUCTURE, content=True),
    ]


def pretraining(design: Design) -> list[Row]:
    """The networks of Table 4 that are no vision transformers, at one length of code: CSQ on a CNN, and ACIR."""
    return [
        *(Row(f"CSQ, {eye}", plain(design), "CSQ", eye=eye) for eye in (UNTRAINED, PRETRAINED)),
        Row(f"{FULL}, {UNTRAINED}", design, STRUCTURE, content=True, eye=UNTRAINED),
        Row(f"{FULL}, {PRETRAINED}", design, STRUCTURE, content=True, like=PLAIN_RANKING),
    ]


PRETRAINING_PAIRS = [
    (f"CSQ, {PRETRAINED}", f"CSQ, {UNTRAINED}"),
    (f"{FULL}, {PRETRAINED}", f"{FULL}, {UNTRAINED}"),
    (f"{FULL}, {UNTRAINED}", f"CSQ, {UNTRAINED}"),
    (f"{FULL}, {PRETRAINED}", f"CSQ, {PRETRAINED}"),
]


def long_codes(design: Design, lengths: Sequence[int]) -> list[Row]:
    """QSMIH on a CNN and ACIR at every length (Table 5), each at its rate for ``design.bits``."""
    cnn, like = plain(design), f"QSMIH, {design.bits} bits"
    rows = [Row(f"QSMIH, {bits} bits", replace(cnn, bits=bits), "QSMIH", like=like) for bits in lengths]
    ours = {"content": True, "like": PLAIN_RANKING}
    return rows + [Row(f"{FULL}, {bits} bits", replace(design, bits=bits), STRUCTURE, **ours) for bits in lengths]


def candidates(design: Design) -> list[Row]:
    """End to end: every loss on the network without its parts, and ACIR, which comes last."""
    by_name = {"CSQ": "CSQ", "DCH": CAUCHY, "QSMIH": "QSMIH", f"{CNN} + L_WSC": STRUCTURE}
    rows = [Row(name, plain(design), loss) for name, loss in by_name.items()]
    return [*rows, Row(FULL, design, STRUCTURE, content=True)]


def losses(
    material: Material, bits: int, rows: np.ndarray, alpha: float, quantisation: str = "ours"
) -> dict[str, Loss]:
    """The losses by name, class weights counted over the images ``rows``; ``alpha`` and ``quantisation`` are ACIR's."""
    weights = of_classes(material.labels, rows)
    ours = StructureAware(alpha, quantisation, looks=True, class_weights=weights)
    own = {STRUCTURE: ours, PLAIN: replace(ours, looks=False), UNWEIGHTED: replace(ours, class_weights=())}
    return {CAUCHY: DCH(), **own, "CSQ": CSQ(int(material.labels.max()) + 1, bits), "QSMIH": QSMIH()}


Scores = Mapping[str, Sequence[Sized]]
"""Row → one per training."""

MEASURES = {"mAP": ("ap_hits", TOP), "mAP_min": ("ap_min", TOP), "first": ("ap_min", 1)}
CLASS_MEANS = {"mAP": "maAP", "mAP_min": "maAP_min", "first": "first_class"}
"""Means over queries → metric and k; each has a class mean."""


def frame(scores: Scores) -> pd.DataFrame:
    """A row per training: mAP and maAP (by hits), mAP_min and maAP_min (min(k, R)), first and first_class (the first
    answer), percent; chance of each; n_queries, n_without_relevant, and the health of the training."""
    return pd.DataFrame([_cells(name, scored) for name, trainings in scores.items() for scored in trainings])


def _cells(name: str, scored: Sized) -> dict[str, object]:
    cells: dict[str, object] = {"name": name, "repeat": scored.split.repeat}
    for start, values in (("", scored.per_query.values), ("chance_", scored.per_query.chance)):
        for measure, column in MEASURES.items():
            cells[f"{start}{measure}"] = 100 * values[column].mean()
            cells[f"{start}{CLASS_MEANS[measure]}"] = 100 * over_classes(values[column], scored.per_query.classes)
    counts = scored.per_query.mean().iloc[0]
    cells |= {count: int(counts[count]) for count in ("n_queries", "n_without_relevant")} | first_loss(scored)
    cells |= {"loss_last": scored.health.loss, "steps": scored.steps}
    return cells | {"parameters": scored.parameters, "size": scored.size}


def tests(
    scores: Scores, pairs: Sequence[tuple[str, str]], groups: np.ndarray, seed: int = 0, *, by_class: bool = False
) -> pd.DataFrame:
    """Paired tests of mAP (min(k, R)) over groups (n,) and trainings, corrected together; by_class: of maAP."""
    tested = of_answers({"closed": scores}, groups).tests(pairs, [TOP], by_class=by_class, seed=seed)
    return tested.drop(columns=["rule", "k"])


def alpha_tests(scores: Mapping[tuple[str, float], Sequence[Sized]], groups: np.ndarray, seed: int = 0) -> pd.DataFrame:
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
WHERE = {"on": "switched on", "off": "within the whole", "ours": "the whole and an opponent"}


def gains(scores: Scores, groups: np.ndarray, seed: int = 0, *, by_class: bool = False) -> pd.DataFrame:
    """What every part earns: columns part, where (of :data:`WHERE`), first, second, those of the paired test of mAP
    (min(k, R)), hits (the same difference by hits) and published (by hits; NaN where there is none).

    groups: (n,) of all images. by_class: of maAP, where each class counts alike.
    """
    known = {"on": ON, "off": {part: (FULL, f"{WITHOUT}{part}") for part in OFF}, "ours": OPPONENTS}
    all_pairs = [(part, where, *pair) for where, pairs in known.items() for part, pair in pairs.items()]
    there = [place for place in all_pairs if place[2] in scores and place[3] in scores]
    tested = tests(scores, [(a, b) for *_, a, b in there], groups, seed, by_class=by_class)
    measure = "maAP" if by_class else "mAP"
    value, theirs = frame(scores).groupby("name")[measure].mean(), published_gains(measure)
    more = {
        "hits": [value[a] - value[b] for *_, a, b in there],
        "published": [theirs[part] if where == "on" else np.nan for part, where, *_ in there],
    }
    return pd.DataFrame([place[:2] for place in there], columns=["part", "where"]).join(tested.assign(**more))


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


GAINS = Layout(
    [
        Column("part"),
        Column("comparison", "where", WHERE.get),
        *paired.columns("gain, points"),
        Column("by hits", "hits", "+2"),
        Column("published, by hits", "published", "+2"),
    ],
    by=(),
    prepare=paired.outcomes,
)
"""What every part earns."""


def gains_figure(rows: pd.DataFrame) -> Figure:
    """Every gain with its interval, one below the other; filled: clear after the correction.

    The axis ends where the second largest gain does: one that is far beyond all others would press them together.
    """
    named = rows.assign(name=rows["part"], series=rows["where"].map(WHERE))
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


TESTED = ("4_tests", "alpha_tests", "end_to_end_tests", "end_to_end_tests_by_class")
LAYOUTS = {
    "table_2": table_2,
    "table_4": table_4,
    "table_5": table_5,
    "table_alpha": table_alpha,
    "table_parts": GAINS,
    "table_parts_by_class": GAINS,
    "table_rates": rates_layout("name"),
    **{f"table_{name}": paired.tests_layout() for name in TESTED},
    "table_end_to_end": Layout([NAME, *SCORES], ["name"], repeats="repeat"),
    "table_end_to_end_rates": rates_layout("name"),
}
