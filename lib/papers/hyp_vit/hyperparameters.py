"""What the settings of the head change, and what the network sees of an image (section 3.4, Tables 4 and 5).

A row is the paper's head with one setting changed. Other batches take about as many steps, in whole epochs.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.datasets.categories import Halves, held_out
from lib.datasets.table import ImageTable
from lib.errors import InputError, suggestion
from lib.figures.lines import lines
from lib.geometry import PoincareBall
from lib.papers.hyp_vit import end_to_end, published, retrieval
from lib.papers.hyp_vit.heads import END, HYP, METRIC, NONE, PLACES, SPH, UNTRAINED
from lib.study import paired
from lib.study.columns import HEALTH, Column, Layout
from lib.study.rates import best_rates
from lib.study.run import Arm
from lib.study.scores import Answers, of_answers
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.hyp_vit_end_to_end import EndToEnd
from lib.training.methods import Method
from lib.training.recipes import Recipe

DEFAULT, SAME_ROOM, SAME_ALL = "default", "c = 1, same √c·r", "c = 1, same √c·r and √c·τ"
BATCH = ByClass.batch_size
CHANGED = {"none": DEFAULT, "c": "c", "head_dim": "numbers", "batch_size": "batch", "room": "room"}
QUESTIONS = {"c": "curvature", "head_dim": "length", "batch_size": "batch", "room": "c taken apart"}
SIZES, PRETRAINED, ALONE = "what the network sees", "pretraining", "head without pretraining"
SEARCHED = {128: "head", 384: "encoder"}
"""How many numbers a published row of Table 4 has → what is searched."""


def default(settings: Settings, dim: int, dim_out: int, schedule: ByClass) -> Method:
    """The head that every other row is compared with."""
    return Method(DEFAULT, Recipe("raw", dim, dim_out), settings, schedule)


def arms(paper: Method, encoder: str, parts: Halves, seed: int = 0) -> list[Arm]:
    """The rows of Table 5, the default first, then c taken apart; each is searched by D_hyp and by the cosine.

    Batches are those of the paper in proportion to its 900, as far as the categories go that are left to learn from
    while rates are chosen; those that come to the same size are one row.

    Where every point is clipped, √c‖z‖ = tanh(√c·r) of each, and D_hyp = f(angle; √c·r)/√c. So c and r act through
    √c·r, the room, and c once more as a temperature, √c·τ. Of the rows "room", r is halved and doubled; c = 1 has the
    default's room; and then the default's temperature too, which is the default rescaled.
    """
    head, most, n = paper.head, parts.count(held_out(parts, seed)[0]), len(parts.learnt)
    changed = {
        "none": lambda value: paper,
        "c": lambda c: replace(paper, name=f"c = {c:g}", head=replace(head, geometry=PoincareBall(c))),
        "head_dim": lambda n: replace(paper, name=f"{n:g} numbers", recipe=replace(paper.recipe, dim_out=int(n))),
        "batch_size": lambda size: batched(paper, size / BATCH, most, n),
    }
    rows = [(row.of, row.value, changed[row.of](row.value)) for row in published.settings().itertuples()]
    rows = list({method.name: (of, value, method) for of, value, method in reversed(rows)}.values())[::-1]
    r, stretch = head.clip_radius, (1 / head.geometry.c) ** 0.5
    same = replace(head, geometry=PoincareBall(1.0), clip_radius=r / stretch)
    room = {f"r = {r / 2:g}": replace(head, clip_radius=r / 2), f"r = {r * 2:g}": replace(head, clip_radius=r * 2)}
    room |= {SAME_ROOM: same, SAME_ALL: replace(same, temperature=same.temperature / stretch)}
    rows += [("room", np.nan, replace(paper, name=name, head=kind)) for name, kind in room.items()]
    return [Arm(method, encoder, {"of": of, "value": value}, also=["cosine"]) for of, value, method in rows]


def batched(method: Method, part: float, most: int, n: int) -> Method:
    """Batches of ``part`` times as many classes, from two to ``most``, in about as many steps on n images."""
    schedule = method.schedule
    size = schedule.samples * min(most, max(2, round(part * schedule.batch_size / schedule.samples)))
    other = replace(schedule, batch_size=size)
    epochs = max(1, round(schedule.epochs * schedule.steps(n) / other.steps(n)))
    return replace(method, name=f"batch of {size}", schedule=replace(other, epochs=epochs))


def sizes(paper: Method, encoders: Sequence[str]) -> list[Arm]:
    """Table 4: head and encoder on images of other sizes, as "64 px, head"."""
    bare = replace(paper, recipe=replace(paper.recipe, dim_out=0), search="cosine")
    kinds = {"head": paper, "encoder": bare}
    return [
        Arm(replace(kind, name=f"{sees(name)}, {place}"), name) for name in encoders for place, kind in kinds.items()
    ]


def sees(encoder: str) -> str:
    """What an encoder sees: the side of its square where its name tells it, or the patches of a transformer.

    >>> sees("efficientnet_lite0_96px"), sees("efficientnet_lite0"), sees("vit_small_patch8_224.dino")
    ('96 px', '224 px', 'patches of 8')
    >>> sees("dino_vits16")
    'patches of 16'
    """
    if patch := re.search(r"patch(\d+)|vits(\d+)$", encoder):
        return f"patches of {patch[1] or patch[2]}"
    side = re.search(r"_(\d+)px", encoder)
    return f"{side[1] if side else 224} px"


def trained(
    images: ImageTable,
    parts: Halves,
    rows: Sequence[Arm],
    settings: Sequence[str],
    plan: EndToEnd,
    ks: Sequence[int],
    **options: Any,
) -> Answers:
    """Rows of Table 5 trained end to end, Hyp only, in as many steps each; settings: as "default", "c=0.01".

    options: as :func:`.end_to_end.end_to_end`. Raises InputError for a setting that no row has.
    """
    named = [(arm, arm.about["of"], arm.about["value"]) for arm in rows if arm.about["of"] != "room"]
    known = {DEFAULT if of == "none" else f"{of}={value:g}": arm.method for arm, of, value in named}
    if unknown := [name for name in settings if name not in known]:
        raise InputError(f"end_to_end: there is no setting {unknown[0]!r}: {suggestion(unknown[0], known)}")
    answers = {}
    for method in map(known.get, settings):
        schedule = replace(plan.settings, batch_size=method.schedule.batch_size)
        own = replace(plan, dim_out=method.recipe.dim_out, settings=schedule)
        answers |= end_to_end.end_to_end(images, parts, {method.name: method.head}, own, ks, **options)[0]
    return answers


def caption(plan: EndToEnd, answers: Answers, n_trainings: int) -> str:
    """How rows were trained end to end; empty where none was."""
    rates = f"encoder {plan.settings.lr:g}, head {plan.settings.head_lr or plan.settings.lr:g}"
    how = f"{plan.encoder}, {n_trainings} trainings each of at most {plan.settings.steps} steps"
    return (
        f"End to end: {how} at {plan.preparation.size} px, from three quarters of the training categories; the others "
        f"choose the step. Rates: {rates}, the same for every setting."
        if answers
        else ""
    )


def settings(
    answers: Mapping[str, Answers], rows: Sequence[Arm], tried: pd.DataFrame, k: int, alone: str, together: Answers
) -> pd.DataFrame:
    """Recall@k of every row, heads and encoders, beside what the paper has for it; percent.

    answers: of :meth:`lib.study.run.Study.answers`; alone: the name of the encoder without a head in it; together: of
    :func:`trained`. Columns encoder and head are published; frozen is our encoder alone, the same in every row; hyp and
    cosine are our head by D_hyp and by D_cos; room is how far out clipping lets points come (percent of the radius),
    clipped how many unseen images rest there (percent); lr was chosen.
    """
    own, cosine, trained = (_at(k, rows) for rows in (answers["own"], answers["cosine"], together))
    about = [{"method": arm.name, "batch": arm.method.schedule.batch_size} | dict(arm.about) for arm in rows]
    table = pd.DataFrame(about).merge(published.settings(), how="left", on=["of", "value"])
    names, lr = table["method"], best_rates(tried)
    health = {name: names.map(own[name]) for name in ("seeds_spread", "class_mean", "chance", "loss", "rim", "steps")}
    table = table[["of", "value", "method", "batch", "encoder", "head"]].assign(**health)
    table = table.assign(steps=table["steps"].astype(float), frozen=own["ours"][alone])
    table = table.assign(frozen_class_mean=own["class_mean"][alone], hyp=names.map(own["ours"]))
    table = table.assign(cosine=names.map(cosine["ours"]))
    for place in PLACES:
        searched = names + f"{END}{place}"
        table[f"trained_{place}"] = searched.map(trained["ours"])
        table[f"trained_{place}_spread"] = searched.map(trained["seeds_spread"])
    heads = [(arm.method.head, answers["own"][arm.name]) for arm in rows]
    at_bound = [np.mean([retrieval.clipped(head, answer.norms) for answer in rows]) for head, rows in heads]
    return table.assign(room=[retrieval.bound(head) for head, _ in heads], clipped=at_bound, lr=names.map(lr))


def _at(k: int, answers: Answers) -> pd.DataFrame:
    """Recall@k and health by method."""
    if not answers:
        return pd.DataFrame({"ours": [], "seeds_spread": []}, dtype=float)
    return retrieval.recall(answers).query("k == @k").set_index("method")


TABLE_5 = Layout(
    [
        Column("changed", "of", CHANGED.get),
        Column("published value", "value", "{:g}"),
        Column("published encoder", "encoder", "{:.1f}"),
        Column("published head", "head", "{:.1f}"),
        Column("ours", "method"),
        Column("end to end: encoder", "trained_encoder", pm="trained_encoder_spread", chance="chance", optional=True),
        Column("end to end: head", "trained_head", pm="trained_head_spread", chance="chance", optional=True),
        Column("frozen encoder: head, D_hyp", "hyp", pm="seeds_spread", chance="chance"),
        Column("class mean, D_hyp", "class_mean"),
        Column("head, D_cos", "cosine", chance="chance"),
        Column("outermost allowed radius", "room", "1 %"),
        Column("images at it", "clipped", "1 %"),
        Column("rate", "lr", "{:g}"),
        *HEALTH,
    ]
)


def _patches() -> pd.DataFrame:
    """Published rows, named by what is searched and how large patches are."""
    theirs = published.patches()
    patch, place = theirs["patch"].map(", patches of {:g}, ".format), theirs["dim"].map(SEARCHED)
    return theirs.assign(method=theirs["method"].where(theirs["patch"].isna(), theirs["method"] + patch + place))


LAYOUTS = {"table_4": retrieval.layout(_patches()), "table_5": TABLE_5, "table_room": TABLE_5}


def questions(rows: Sequence[Arm], others: Sequence[Arm], own: str) -> dict[str, list[tuple[str, str]]]:
    """What was changed → what is tested: every setting against the default, but for what is the default rescaled.

    others: of :func:`sizes`, tested against those of the size ``own``; then the encoder against the untrained one, and
    the heads on that.
    """
    changed = [arm for arm in rows if arm.name not in (DEFAULT, SAME_ALL)]
    pairs = {what: [(arm.name, DEFAULT) for arm in changed if arm.about["of"] == of] for of, what in QUESTIONS.items()}
    names = [arm.name.partition(", ") for arm in others]
    pairs[SIZES] = [(f"{size}, {place}", f"{own}, {place}") for size, _, place in names if size != own]
    pairs[PRETRAINED] = [(DEFAULT, f"{UNTRAINED}{HYP}"), (f"{own}, encoder", f"{UNTRAINED}{NONE}")]
    pairs[ALONE] = [(f"{UNTRAINED}{HYP}", f"{UNTRAINED}{name}") for name in (NONE, SPH)]
    return pairs


def tests(
    answers: Answers, names: np.ndarray, questions: Mapping[str, Sequence[tuple[str, str]]], k: int, seed: int = 0
) -> pd.DataFrame:
    """Paired tests of Recall@k over categories (``names: (n,)`` of all images) and trainings.

    questions: what was changed → pairs of methods; it is the column changed.
    """
    pairs = [(what, pair) for what, of_what in questions.items() for pair in of_what]
    scores = of_answers({retrieval.UNSEEN: answers}, names)
    table = scores.tests([pair for _, pair in pairs], [k], metric=METRIC, seed=seed)
    return table.rename(columns={"rule": "changed"}).assign(changed=[what for what, _ in pairs])


def tests_layout(rows: pd.DataFrame) -> Layout:
    """The tests, with the rate behind the name of every row (of :func:`settings`) that has not the default's."""
    lr = rows.set_index("method")["lr"]
    names = {name: f"{name} (rate {rate:g})" for name, rate in lr[lr != lr[DEFAULT]].items()}
    titles = {"changed": "changed"} | retrieval.TEST_NAMES
    return paired.tests_layout(titles, forms={"first": lambda name: names.get(name, name)})


LINES = {
    "published_head": ("published head, In-Shop", "head", None),
    "published_encoder": ("published encoder, In-Shop", "encoder", None),
    "hyp": ("ours, head by D_hyp", "hyp", "seeds_spread"),
    "cosine": ("ours, head by D_cos", "cosine", None),
    "trained": ("ours, encoder, trained too", "trained_encoder", "trained_encoder_spread"),
    "frozen": ("ours, encoder, frozen", None, None),
}
"""Line of the figure → its label, its column in :func:`settings`, and that of its spread."""
PANELS = {"c": "c", "head_dim": "numbers of the head", "batch_size": "batch, published (ours)", "seen": SIZES}


def drawn(rows: pd.DataFrame, seen: pd.DataFrame, paper: Method, own: str) -> pd.DataFrame:
    """Differences from the default, for the figure: columns of, value (as text), line, difference (points), spread.

    rows: of :func:`settings`, the default first; seen: Recall@1 of heads and encoders at each size; ``paper``: the
    default; ``own``: its size. A batch's value is the published one, and ours.
    """
    columns = ["of", "value", "line", "difference", "spread"]
    frames = []
    for of, value in {"c": paper.head.geometry.c, "head_dim": paper.recipe.dim_out, "batch_size": BATCH}.items():
        part = pd.concat([rows.head(1).assign(of=of, value=float(value)), rows[rows["of"] == of]])
        text = part["value"].map("{:g}".format) + (part["batch"].map(" ({})".format) if of == "batch_size" else "")
        for line, (_, column, spread) in LINES.items():
            values = part[column] if column else text.map({})
            frame = part.assign(value=text, line=line, difference=values - values.iloc[0])
            frame = frame.assign(spread=part[spread] if spread else np.nan).dropna(subset="difference")[columns]
            frames += [frame] * (len(frame) > 1)  # a line has two ends
    size, ours = seen["method"].str.extract(r"(?P<value>.*), (?P<place>.*)"), seen.set_index("method")["ours"]
    seen = seen.assign(of="seen", value=size["value"], line=size["place"].map({"head": "hyp", "encoder": "frozen"}))
    seen["difference"] = seen["ours"].to_numpy() - ours[f"{own}, " + size["place"]].to_numpy()
    seen["spread"] = seen["seeds_spread"].where(size["place"] == "head")
    return pd.concat([*frames, seen[columns]], ignore_index=True)


def figure(points: pd.DataFrame) -> Figure:
    """A panel per setting: Recall@1 minus the default's, over the values in their order; points: of :func:`drawn`."""
    number = points["value"].str.extract(r"([\d.e+-]*\d)", expand=False).astype(float)
    rows = points.assign(panel=points["of"].map(PANELS), line=points["line"].map(lambda line: LINES[line][0]))
    rows = rows.iloc[number.argsort(kind="stable")].rename(columns={"value": "x", "difference": "y"})
    label = "minus the default\n(points of Recall@1)"
    return lines(rows, xlabel="", ylabel=label, zero=True, panels=[*PANELS.values()])
