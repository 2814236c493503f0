"""Tables 2 and 3, which differences are tested, the course of trainings, and where embeddings rest (section 3.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.datasets.categories import Halves
from lib.errors import InputError
from lib.figures import style
from lib.geometry import PoincareBall
from lib.papers.hyp_vit import labels, published
from lib.papers.hyp_vit.heads import (
    ALONE,
    BALL,
    BEFORE,
    BY_COSINE,
    CLIP,
    END,
    END_TO_END,
    FROZEN,
    HEAD,
    HEADS,
    HYP,
    LEARNT,
    LINEAR,
    METRIC,
    NCA,
    NONE,
    ONE,
    PLACES,
    PRETRAINED,
    SPH,
    TEMPERATURE,
    UNCLIPPED,
    UNTRAINED,
)
from lib.papers.hyp_vit.loss import reach
from lib.study import paired
from lib.study.columns import HEALTH, Column, Layout
from lib.study.markdown import percent
from lib.study.scores import Answers, of_answers
from lib.training.hyp_vit import Settings
from lib.training.methods import Answer

UNSEEN = "unseen categories"
SAYS = paired.SAYS.replace("per group", "per category")
"""What the paired tests say about themselves, where the groups are categories."""
ABOUT = (
    "Recall@K (hit rate) in percent: the share of queries with an image of their own category among the first K. No "
    "query category was learnt from here; the encoder's pretraining may have known it. Class mean: averaged per "
    "category first. ± standard deviation over trainings."
)
PUBLISHED = (
    "Published rows: other encoders at 224 px, and all images of the unseen half as queries. Fewer categories are an "
    "easier task, so these rows are no yardstick for ours."
)
METHODS = (
    "No head: features as they are, by their cosine. NCA: features standardised, a linear map learnt so that the "
    "nearest images are of the same category, by Euclidean distance. Linear classifier: by the cosine of its logits."
)
CONTROL = (
    "Untrained encoder: the same network with random weights, drawn once; its heads were trained in as many steps, at "
    "rates chosen in the same way."
)


def described(parts: Halves) -> str:
    """How many query images of how many categories there are, how large these are, and how many images are left out.

    >>> rows = np.arange(5)
    >>> described(Halves(np.array(list("aabbb")), np.array([0, 0, 1, 1, 1]), rows[:0], rows, rows, 0))
    '5 query images of 2 categories, 2 to 3 of each (median 2.5).'
    """
    sizes = np.unique(parts.codes[parts.queries], return_counts=True)[1]
    left_out = f" Left out, as alone in their category: {parts.left_out:,} images." if parts.left_out else ""
    counts = f"{len(parts.queries):,} query images of {len(sizes)} categories"
    if sizes.min() == sizes.max():
        return f"{counts}, {sizes.min()} of each.{left_out}"
    return f"{counts}, {sizes.min()} to {sizes.max()} of each (median {np.median(sizes):g}).{left_out}"


def recall(answers: Answers) -> pd.DataFrame:
    """Recall@K and health of every method: as :meth:`lib.study.scores.Scores.means`, with dim and steps_each.

    steps_each: the steps of every training, where they differ: which of them is kept is chosen. loss: of trainings
    that kept a step after the first, since before it nothing has been learnt.
    """

    def last_loss(answer: Answer) -> dict[str, float]:
        return {"loss": answer.health.loss if answer.health.steps else np.nan}

    scores = of_answers({UNSEEN: answers}, measure=last_loss)
    rows = scores.means().query("metric == @METRIC").drop(columns=["rule", "metric", "spread"])
    recipes = {name: first.method.recipe for name, (first, *_) in answers.items()}
    dims = {name: recipe.dim_out or recipe.dim_in for name, recipe in recipes.items()}
    more = {"dim": dims, "steps_each": {name: _steps(trainings) for name, trainings in answers.items()}}
    return rows.assign(**{name: rows["method"].map(of) for name, of in more.items()}).reset_index(drop=True)


def _steps(trainings: Sequence[Answer]) -> str:
    """The steps of several trainings, once where they are the same; a dash where nothing was trained."""
    steps = [str(answer.health.steps) for answer in trainings]
    return "–" if np.isnan(trainings[0].health.loss) else " / ".join(steps if len(set(steps)) > 1 else steps[:1])


def layout(theirs: pd.DataFrame | None = None) -> Layout:
    """Published rows of one dataset (of :mod:`lib.papers.hyp_vit.published`), then ours, of :func:`recall`; chance."""
    columns = [
        Column("method"),
        Column("whose"),
        Column("numbers", "dim", "0"),
        Column("Recall@{}", "cell", over="k", chance="chance"),
        Column("± at 1", "seeds_spread"),
        Column("class mean@1", "class_mean"),
        *HEALTH[:2],
        Column("steps", "steps_each", "{}"),
    ]
    return Layout(columns, prepare=partial(_beside, theirs))


def _beside(theirs: pd.DataFrame | None, rows: pd.DataFrame) -> pd.DataFrame:
    trained = rows["steps_each"].astype(str) != "–"
    spread = rows["seeds_spread"].where(trained)
    both = rows.assign(whose="ours", cell=rows["ours"].map(percent), seeds_spread=spread)
    if theirs is None or not len(theirs):
        return both
    theirs = theirs[theirs["k"].isin(rows["k"])]
    names, cells = theirs["method"] + " (" + theirs["encoder"] + ")", theirs["value"].map("{:.1f}".format)
    theirs = theirs.assign(method=names, whose="published", cell=cells)
    return pd.concat([theirs[["method", "whose", "dim", "k", "cell"]], both], ignore_index=True)


def of_dataset(table: int, dataset: str) -> pd.DataFrame:
    """The published rows of Table 2 or 3 for a dataset; none where the paper has not this one."""
    return published.recall(table).query("dataset == @dataset")


TEST_NAMES = paired.METHODS | {"k": "K"}
QUESTIONS = {"question": "question"} | TEST_NAMES


def pairs(answers: Mapping[str, object]) -> dict[str, list[tuple[str, str]]]:
    """Question → what is compared with what, of the methods in ``answers``; Hyp is compared as :data:`.HEADS` says.

    Further networks are known by their ``"..., Hyp"``, and answer the same questions as the first. Where temperatures
    were tried, Hyp is compared end to end with Sph at its own τ and rate, and at those of Hyp.

    >>> pairs({HYP: 0, NONE: 0, SPH: 0})
    {'does a head help?': [('Hyp', 'no head')], 'ball or sphere?': [('Hyp', 'Sph')]}
    """
    others = [name.removesuffix(HYP) for name in answers if name.endswith(f", {HYP}") and name != f"{UNTRAINED}{HYP}"]
    rivals = [name for name in HEADS if name != HYP]
    trained = [name for name in rivals if HEADS[name].trained != FROZEN]
    tempered = f"{ONE}{END}head" in answers
    together = [(f"{name}{HYP}", f"{name}{it}") for name in ([] if tempered else [""]) + others for it in trained]
    apart = [(HYP, ONE), *((HYP, name) for name in trained), (SPH, ONE)] if tempered else []
    questions = {
        HEAD: [(HYP, name) for name in (NONE, NCA, LINEAR)] + [(f"{name}{HYP}", f"{name}{NONE}") for name in others],
        BALL: [],
        CLIP: [],
    }
    for name in rivals:
        questions.setdefault(HEADS[name].question, []).append((HYP, name))
    questions[BALL] += [(f"{name}{HYP}", f"{name}{SPH}") for name in others] + _end_to_end(together)
    questions[CLIP].append((HYP, f"{UNCLIPPED}{BY_COSINE}"))
    questions |= {
        END_TO_END: [
            (f"{name}{kind}{END}encoder", f"{name}{BEFORE}") for name in ("", *others) for kind in (HYP, *trained)
        ],
        PRETRAINED: [(name, f"{UNTRAINED}{name}") for name in (NONE, HYP, *(f"{HYP}{END}{place}" for place in PLACES))],
        ALONE: [(f"{UNTRAINED}{HYP}", f"{UNTRAINED}{name}") for name in (NONE, SPH)]
        + [(f"{UNTRAINED}{HYP}{END}encoder", f"{UNTRAINED}{BEFORE}")],
        TEMPERATURE: _end_to_end(apart),
    }
    known = {what: [pair for pair in pairs if set(pair) <= set(answers)] for what, pairs in questions.items()}
    return {what: pairs for what, pairs in known.items() if pairs}


def _end_to_end(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The same heads trained together with the encoder, by head and by encoder."""
    return [(f"{first}{END}{place}", f"{second}{END}{place}") for first, second in pairs for place in PLACES]


ONCE = [f"{name}{END}{place}" for name in (UNCLIPPED, LEARNT) for place in PLACES]
"""What is trained a single time and therefore tested against nothing."""


def tests(
    answers: Answers, names: np.ndarray, ks: Sequence[int], lr: Mapping[str, float], seed: int = 0
) -> pd.DataFrame:
    """Paired tests of Recall@K over categories (``names: (n,)`` of all images) and trainings, question by question.

    lr: learning rates of the heads, and of the encoder in trainings end to end, as "Hyp, end to end". Columns question,
    first_rate and second_rate (NaN of what has none), and those of :meth:`lib.study.scores.Scores.tests`, with p
    corrected for the tests of a question. Raises InputError for a method that no question names.
    """
    questions = pairs(answers)
    named = {name for of_question in questions.values() for pair in of_question for name in pair}
    if untested := [name for name in answers if name not in named and name not in ONCE]:
        raise InputError(f"no question compares {untested[0]!r} with another method: declare it in heads.HEADS")

    def rate(name: str) -> float:
        kind, trained, _ = name.partition(END)
        return lr.get(f"{kind}{END.rstrip(', ')}" if trained else name.removesuffix(BY_COSINE), np.nan)

    frames, scores = [], of_answers({UNSEEN: answers}, names)
    for question, of_question in questions.items():
        table = scores.tests(of_question, ks, metric=METRIC, seed=seed).drop(columns="rule")
        rates = {f"{side}_rate": table[side].map(rate) for side in paired.METHODS}
        frames.append(table.assign(question=question, **rates))
    return pd.concat(frames, ignore_index=True)


def marked(tests: pd.DataFrame) -> pd.DataFrame:
    """The tests with the learning rate behind both names where the two were trained at different ones.

    >>> one = {"first": "Hyp", "second": "Sph", "first_rate": 0.001, "second_rate": 0.0003}
    >>> marked(pd.DataFrame([one]))[["first", "second"]].iloc[0].tolist()
    ['Hyp (rate 0.001)', 'Sph (rate 0.0003)']
    """
    apart = tests[["first_rate", "second_rate"]].notna().all(axis=1) & (tests["first_rate"] != tests["second_rate"])
    rates = {side: " (rate " + tests[f"{side}_rate"].map("{:g}".format) + ")" for side in paired.METHODS}
    return tests.assign(**{side: tests[side].mask(apart, tests[side] + rate) for side, rate in rates.items()})


LAYOUTS = {
    "table_2": layout(),
    "table_3": layout(),
    "table_labels": labels.LAYOUT,
    "table_label_tests": paired.tests_layout(TEST_NAMES),
    "table_steps": Layout(
        [Column("method"), Column("place"), Column("step {}", "ours", "{:#.4g}", over="at")], by=("method", "place")
    ),
    "table_tests": replace(paired.tests_layout(QUESTIONS), prepare=lambda tests: paired.outcomes(marked(tests))),
}


def rest(answers: Answers) -> pd.DataFrame:
    """Where embeddings in the ball rest: columns method and share (of the ball's radius, percent).

    A row per image of the first training's gallery.
    """
    frames = []
    for name, (answer, *_) in answers.items():
        if curved(answer) and answer.method.search == "own" and not name.endswith("encoder"):
            frames.append(pd.DataFrame({"method": name, "share": shares(answer.method.head, answer.norms)}))
    return pd.concat(frames, ignore_index=True)


def curved(answer: Answer) -> bool:
    """Whether a method has a head in the ball."""
    head, recipe = answer.method.head, answer.method.recipe
    return isinstance(head, Settings) and isinstance(head.geometry, PoincareBall) and bool(recipe.dim_out)


def shares(head: Settings, norms: np.ndarray) -> np.ndarray:
    """Norms of points in the ball as percent of its radius.

    >>> shares(Settings(PoincareBall(0.25)), np.array([1.0])).tolist()
    [50.0]
    """
    return 100 * head.geometry.c**0.5 * norms


def bounds(answers: Answers) -> dict[str, float]:
    """Method → :func:`bound` of its head, of those that :func:`rest` has."""
    return {name: bound(answer.method.head) for name, (answer, *_) in answers.items() if curved(answer)}


def bound(settings: Settings) -> float:
    """How far out clipping lets a point come, as percent of the ball's radius; 100 without clipping."""
    return reach(settings.geometry.c, settings.clip_radius or np.inf)


def clipped(settings: Settings, norms: np.ndarray) -> float:
    """How many of the points rest at the bound that clipping sets, in percent.

    >>> clipped(Settings(), np.array([1.0, np.tanh(0.1**0.5 * 2.3) / 0.1**0.5]))
    50.0
    """
    return 100 * float((shares(settings, norms) > bound(settings) - 0.01).mean())


def colour(method: str) -> str:
    """The colour of a method's head, by its place in :data:`.HEADS`; an encoder may stand before the head.

    Raises InputError for a method that begins with no head's name.

    >>> colour("Hyp, end to end, head") == colour("untrained encoder, Hyp") != colour("Hyp, not clipped")
    True
    >>> colour("Sph, τ and rate of Hyp, end to end, head") == colour("Sph")
    True
    """
    for name in (method, method.partition(", ")[2]):
        if begin := [head for head in HEADS if f"{name}, ".startswith(f"{head}, ")]:
            return style.PALETTE[[*HEADS].index(max(begin, key=len)) % len(style.PALETTE)]
    raise InputError(f"{method!r} is no head of Table 2: add it to HEADS, which has {', '.join(HEADS)}")


def rest_figure(rows: pd.DataFrame, bounds: Mapping[str, float]) -> Figure:
    """Where embeddings rest: median, quartiles and extremes of every method; dashed, the bound that clipping sets.

    rows: of :func:`rest`; bounds: method → its bound, percent.
    """
    ends = rows.groupby("method", sort=False)["share"].quantile([0, 0.25, 0.5, 0.75, 1]).unstack()
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 1.0 + 0.35 * len(ends)))
        for place, (method, (low, first, middle, third, high)) in enumerate(ends.iterrows()):
            axis.plot([low, high], [place, place], color="0.5", linewidth=1)
            axis.plot([first, third], [place, place], color=colour(method), linewidth=6, solid_capstyle="butt")
            axis.plot([middle], [place], "o", color="black", markersize=4)
            label = "bound set by clipping" if place == 0 else None
            axis.plot(2 * [bounds[method]], [place - 0.45, place + 0.45], "k--", linewidth=1, label=label)
        axis.axvline(100, color="black", linewidth=1.5, label="rim")
        axis.set(xlim=(0, 102), xlabel="distance from the centre on paper (% of the ball's radius)")
        axis.set_yticks(range(len(ends)), ends.index)
        axis.set_ylim(len(ends) - 0.5, -0.5)
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure
