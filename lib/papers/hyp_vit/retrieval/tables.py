"""Recall@K of heads and encoders in the layout of Tables 2 and 3, and what the numbers say."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.datasets.categories import Halves
from lib.geometry import PoincareBall
from lib.papers.hyp_vit import verdicts
from lib.papers.hyp_vit.names import END, HYP
from lib.results import answers, paired
from lib.results.markdown import markdown_table, percent
from lib.results.rates import best_rates
from lib.results.shown import Table
from lib.results.store import Run
from lib.training.hyp_vit import Settings
from lib.training.methods import Answer, Health

UNSEEN = "unseen categories"
METRIC = "hit_rate"
SAYS = verdicts.SAYS.replace("averaged per group first", "averaged per category first").replace("groups", "categories")
"""What the paired tests say about themselves, where the groups are categories."""
TEST_NAMES = paired.METHODS | {"k": "K"}
"""What names a test over categories, for :func:`lib.results.paired.tests_layout`."""
ABOUT = (
    "Recall@K (hit rate) in percent: the share of queries with an image of their own category among the first K. No "
    "category that asks was learnt from here; the encoder's pretraining may have known it. Class mean: averaged per "
    "category first. ± standard deviation over trainings."
)


PUBLISHED = (
    "Published rows: other encoders at 224 px, asked by the whole unseen half of the dataset. Fewer categories are an "
    "easier task, so they are no yardstick for ours."
)


def asking(parts: Halves) -> str:
    """How many images of how many categories ask, how large these are, and how many others are left out.

    >>> rows = np.arange(5)
    >>> asking(Halves(np.array(list("aabbb")), np.array([0, 0, 1, 1, 1]), rows[:0], rows, rows, 0))
    '5 images of 2 categories ask, 2 to 3 of each (median 2.5).'
    """
    sizes = np.unique(parts.codes[parts.queries], return_counts=True)[1]
    left_out = f" Left out, as alone in their category: {parts.left_out:,} images." if parts.left_out else ""
    return (
        f"{len(parts.queries):,} images of {len(sizes)} categories ask, {sizes.min()} to {sizes.max()} of each "
        f"(median {np.median(sizes):g}).{left_out}"
    )


def recall(found: Mapping[str, Sequence[Answer]]) -> pd.DataFrame:
    """Recall@K and the health of every method: columns as :func:`lib.results.answers.values`; dim, steps_each.

    steps_each: the steps of every training, where they differ: which of them is kept is chosen. loss: of trainings
    that kept a step after the first, since before it nothing has been learnt.
    """
    rows = answers.values({UNSEEN: found}).query("metric == @METRIC").drop(columns=["rule", "metric", "spread"])
    dims = {name: _dim(several[0]) for name, several in found.items()}
    each = {name: _each([answer.health for answer in several]) for name, several in found.items()}
    losses = {name: _loss([answer.health for answer in several]) for name, several in found.items()}
    more = {"dim": dims, "steps_each": each, "loss": losses}
    return rows.assign(**{name: rows["method"].map(of) for name, of in more.items()}).reset_index(drop=True)


def _loss(several: Sequence[Health]) -> float:
    """The mean last loss of the trainings that kept a step after 0; NaN if none did.

    >>> _loss([Health(0.5, 0.0, 20), Health(2.5, 0.0, 0)]), _loss([Health(2.5, 0.0, 0)])
    (0.5, nan)
    """
    losses = [one.loss for one in several if one.steps]
    return float(np.mean(losses)) if losses else np.nan


def _each(several: Sequence[Health]) -> str:
    """Steps of several trainings; a dash where nothing was trained.

    >>> _each([Health(0.5, 0.0, 20), Health(2.5, 0.0, 0)]), _each([Health(0.5, 0.0, 375)] * 2), _each([Health()])
    ('20 / 0', '375', '–')
    """
    if np.isnan(several[0].loss):
        return "–"
    steps = [one.steps for one in several]
    return " / ".join(map(str, steps if len(set(steps)) > 1 else steps[:1]))


def _dim(answer: Answer) -> int:
    recipe = answer.method.recipe
    return recipe.dim_out or recipe.dim_in


def layout(rows: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """Published rows, then ours, then chance, as Markdown; theirs: of one dataset, as published.recall has them."""
    ks = sorted(rows["k"].unique())
    lines = [_published(name, of_one, ks) for name, of_one in theirs.groupby("method", sort=False)]
    for method, of_one in rows.groupby("method", sort=False):
        first = of_one.iloc[0]
        cells = {"method": method, "whose": "ours", "numbers": int(first["dim"])}
        cells |= {f"Recall@{row.k}": percent(row.ours) for row in of_one.itertuples()}
        cells |= {f"± at {ks[0]}": _spread(first), f"class mean@{ks[0]}": percent(first["class_mean"])}
        lines.append(cells | answers.health(first) | {"steps": first["steps_each"]})
    chance = rows.drop_duplicates("k").set_index("k")["chance"]
    lines.append({"method": "chance"} | {f"Recall@{k}": percent(chance[k]) for k in ks})
    columns = max(lines, key=len)
    return markdown_table(pd.DataFrame(lines, columns=list(columns), dtype=object).fillna("–"))


def _spread(row: pd.Series) -> str:
    """The standard deviation over trainings; a dash where nothing was trained.

    >>> _spread(pd.Series({"seeds_spread": 0.0, "steps_each": "–"}))
    '–'
    """
    return "–" if row["steps_each"] == "–" else percent(row["seeds_spread"])


def _published(name: str, rows: pd.DataFrame, ks: Sequence[int]) -> dict[str, object]:
    values = rows.set_index("k")["value"]
    cells = {"method": f"{name} ({rows['encoder'].iloc[0]})", "whose": "published", "numbers": int(rows["dim"].iloc[0])}
    return cells | {f"Recall@{k}": f"{values[k]:.1f}" for k in ks if k in values}


def numbered(run: Run, rows: pd.DataFrame, theirs: pd.DataFrame, title: str, text: str) -> Table:
    """Table 2 (heads) or Table 3 (encoders): ours below the published rows of this dataset, if it has any.

    theirs: of :func:`lib.papers.hyp_vit.published.recall`, all datasets.
    """
    theirs = theirs[theirs["dataset"] == run.dataset]
    differ = PUBLISHED if len(theirs) else ""
    return Table(title, rows, f"{ABOUT} {text} {differ}".strip(), markdown=layout(rows, theirs))


def rest(found: Mapping[str, Sequence[Answer]]) -> pd.DataFrame:
    """Where embeddings in the ball rest: columns method and share (of the ball's radius, percent).

    A row per image of the first training's gallery.
    """
    frames = []
    for name, several in found.items():
        method, norms = several[0].method, several[0].norms
        curved = isinstance(method.head, Settings) and isinstance(method.head.geometry, PoincareBall)
        if curved and method.search == "own" and method.recipe.dim_out and not name.endswith("encoder"):
            frames.append(pd.DataFrame({"method": name, "share": shares(method.head, norms)}))
    return pd.concat(frames, ignore_index=True)


def shares(head: Settings, norms: np.ndarray) -> np.ndarray:
    """Norms of points in the ball as percent of its radius.

    >>> shares(Settings(PoincareBall(0.25)), np.array([1.0])).tolist()
    [50.0]
    """
    return 100 * head.geometry.c**0.5 * norms


def bound(settings: Settings) -> float:
    """How far out clipping lets a point come, as percent of the ball's radius (HV-9).

    >>> round(bound(Settings()), 1)
    62.1
    """
    return 100 * float(np.tanh(settings.geometry.c**0.5 * settings.clip_radius))


def clipped(settings: Settings, norms: np.ndarray) -> float:
    """How many of the points rest at the bound that clipping sets, in percent.

    >>> clipped(Settings(), np.array([1.0, np.tanh(0.1**0.5 * 2.3) / 0.1**0.5]))
    50.0
    """
    return 100 * float((shares(settings, norms) > bound(settings) - 0.01).mean())


def rest_sentences(rows: pd.DataFrame, settings: Settings) -> list[str]:
    """How far out the embeddings rest, and how many at the bound that clipping sets."""
    c, r, furthest = settings.geometry.c, settings.clip_radius, bound(settings)
    lines = [f"clipped at r = {r:g} with c = {c:g}, no point can be further out than {furthest:.1f} % of the radius"]
    for name, part in rows.groupby("method", sort=False):
        at_bound = 100 * (part["share"] > furthest - 0.01).mean()
        lines.append(
            f"{name}: median {part['share'].median():.1f} %, largest {part['share'].max():.1f} % of the radius; "
            f"{at_bound:.0f} % of the images are at that bound or beyond"
        )
    return lines


STEP_0 = {
    "encoder": "the encoder before training: no difference from it by construction",
    "head": "a random projection that has learnt nothing",
}
"""What is searched where a training end to end keeps step 0."""


def untrained(rows: pd.DataFrame) -> list[str]:
    """What was trained end to end and of which some training kept step 0; columns as :func:`recall`."""
    lines = []
    for row in rows.drop_duplicates("method").itertuples():
        _, trained, place = row.method.partition(END)
        steps = str(row.steps_each).split(" / ")
        steps *= row.n_seeds if len(steps) == 1 else 1
        if trained and "0" in steps:
            lines.append(f"{row.method}: {steps.count('0')} of {len(steps)} trainings kept step 0, {STEP_0[place]}")
    return lines


def course_sentences(course: pd.DataFrame) -> list[str]:
    """What the encoder loses on validation categories because the head chooses the step, and what the budget ended.

    course: as :func:`lib.papers.hyp_vit.retrieval.end_to_end.end_to_end` returns it.
    """
    lines = []
    for method, of_one in course.dropna(subset=["head", "encoder"]).groupby("method", sort=False):
        several = [part.set_index("step") for _, part in of_one.groupby("repeat")]
        by_head, own = ([one[place].idxmax() for one in several] for place in ("head", "encoder"))
        there, best = (
            np.mean([one["encoder"][step] for one, step in zip(several, steps, strict=True)])
            for steps in (by_head, own)
        )
        lines.append(
            f"{method}, the encoder's Recall@1 on the categories set aside: {there:.2f} at the steps that the heads "
            f"chose ({_listed(by_head)}), {best:.2f} at its own best ({_listed(own)})"
        )
    return lines + budget(course)


def budget(course: pd.DataFrame) -> list[str]:
    """A sentence, where the head of some training was best at its last step, so that more might have given more."""
    told = []
    for method, of_one in course.dropna(subset=["head"]).groupby("method", sort=False):
        several = [part.set_index("step")["head"] for _, part in of_one.groupby("repeat")]
        ended = sum(head.idxmax() == head.index.max() for head in several)
        told += [f"{method}, {ended} of {len(several)} trainings"] if ended else []
    said = "best at the last step, where the budget ended them and more steps may give more"
    return [f"{said}: {'; '.join(told)}"] if told else []


def _listed(steps: Sequence[float]) -> str:
    return " / ".join(f"{step:.0f}" for step in steps)


def rates_apart(tried: pd.DataFrame) -> list[str]:
    """Which heads learnt at another rate than Hyp on the same features, each chosen on categories set aside."""
    lr, lines = best_rates(tried), []
    others = tuple(name.removesuffix(HYP) for name in lr if name.endswith(f", {HYP}"))
    for before in ("", *others):
        if (hyp := f"{before}{HYP}") in lr:
            same = [name for name in lr if (name.startswith(before) if before else not name.startswith(others))]
            told = "; ".join(f"{name} (rate {lr[name]:g})" for name in same if lr[name] != lr[hyp]) or "none"
            lines.append(
                f"trained at another rate than {hyp} ({lr[hyp]:g}), and so different from it in that as well: {told}"
            )
    return lines


def edges(rows: pd.DataFrame) -> list[str]:
    """Which methods chose the smallest or the largest of their candidates; rows: of :func:`frozen.rates`.

    >>> rows = pd.DataFrame({"method": ["Hyp"] * 2, "lr": [0.1, 0.2], "chosen": [False, True]})
    >>> edges(rows)
    ['chosen at the largest of their candidates, beyond which there may be a better rate: Hyp (0.2)']
    """
    told: dict[str, list[str]] = {"smallest": [], "largest": []}
    for method, of_one in rows.groupby("method", sort=False):
        (lr,) = of_one.loc[of_one["chosen"], "lr"]
        for which, end in (("smallest", of_one["lr"].min()), ("largest", of_one["lr"].max())):
            told[which] += [f"{method} ({lr:g})"] if lr == end and len(of_one) > 1 else []
    return [
        f"chosen at the {which} of their candidates, beyond which there may be a better rate: {'; '.join(names)}"
        for which, names in told.items()
        if names
    ]
