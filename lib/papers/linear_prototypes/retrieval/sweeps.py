"""How many images per prototype, and how many labels? Sweeps over K and over the number of labelled images."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib import checks
from lib.datasets.drawing import of_each_class
from lib.papers.linear_prototypes import figures
from lib.results import answers
from lib.results.shown import Figure, Table
from lib.results.store import Run
from lib.training.episodes import Episodes
from lib.training.experiment import ask, fit
from lib.training.methods import Answer, Method
from lib.training.splits import Split

STEPS, EPOCHS = "equal steps", "equal epochs"
"""How long a head with few labels is trained: with as many steps as one with all labels, or for as many epochs."""


def supports(
    views: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    splits: Sequence[Split],
    sizes: Sequence[int],
    head: Method,
    ks: Sequence[int],
) -> dict[int, list[Answer]]:
    """K → answers of ``head`` with K support images of each class; all training images have labels.

    An epoch has as many episodes with any K, so that all take the same number of steps.
    """
    checks.values(supports=sizes, ks=ks)
    methods = [replace(head, name=f"K = {k}", schedule=replace(head.schedule, k=k)) for k in sizes]
    fitted = fit(views, labels, methods, splits, what="support")
    found = ask(fitted, views[0], labels, ks, groups=groups, what="support, queries")
    return dict(zip(sizes, found.values(), strict=True))


def label_efficiency(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    splits: Sequence[Split],
    sizes: Sequence[int],
    heads: Sequence[Method],
    ks: Sequence[int],
) -> dict[int, Mapping[tuple[str, str], list[Answer]]]:
    """Labelled images per class → (head, STEPS or EPOCHS) → answers; all training images are searched, labelled or not.

    All heads get the same images, the original ones, ``x: (n, dim)``; every split draws those with labels by its own
    seed. K of an episode is that of its head, or one less than there are labels, so that a query is left; one labelled
    image per class makes neither a query nor a positive pair, so 2 is the smallest size.
    """
    checks.values(labelled=sizes, ks=ks)
    whole, results = min(len(split.train) for split in splits), {}
    for size in sizes:
        few = [
            replace(split, labelled=of_each_class(labels, split.seed, rows=split.train, per_class=size))
            for split in splits
        ]
        n = min(len(split.labelled) for split in few)
        methods = {
            (head.name, steps): _scheduled(head, size, n, whole, steps) for head in heads for steps in (STEPS, EPOCHS)
        }
        fitted = fit(x, labels, list(methods.values()), few, what=f"{size} labels per class")
        found = ask(fitted, x, labels, ks, groups=groups, what=f"{size} labels per class, queries")
        results[size] = {key: found[method.name] for key, method in methods.items()}
    return results


def _scheduled(head: Method, size: int, n: int, whole: int, steps: str) -> Method:
    """``head`` for ``n`` labelled images of ``whole``, ``size`` of each class."""
    schedule = head.schedule
    if isinstance(schedule, Episodes):
        schedule = replace(schedule, k=min(schedule.k, size - 1))
    schedule = schedule.equal_steps(n, whole) if steps == STEPS else schedule
    return replace(head, name=f"{head.name}, {steps}", schedule=schedule)


def support_rows(found: Mapping[int, Sequence[Answer]], k: int) -> pd.DataFrame:
    """MAP@k over the size of the support, with the columns of :func:`label_rows`."""
    return _rows({size: {("linear prototypes", STEPS): done} for size, done in found.items()}, k).assign(
        sweep="support"
    )


def label_rows(
    found: Mapping[int, Mapping[tuple[str, str], Sequence[Answer]]], k: int, everything: int
) -> pd.DataFrame:
    """MAP@k over the number of labels, as :func:`lib.results.answers.values` and sweep, method, length, size.

    Length: how long the head was trained, STEPS or EPOCHS. ``everything`` is the size that is written as 0, for "all".
    """
    rows = _rows(found, k)
    return rows.assign(size=rows["size"].where(rows["size"] != everything, 0), sweep="labels")


def both(support: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Both sweeps, as :func:`support_rows` and :func:`label_rows` have them, one below the other."""
    return pd.concat([support, labels], ignore_index=True)


def _rows(found: Mapping[int, Mapping[tuple[str, str], Sequence[Answer]]], k: int) -> pd.DataFrame:
    frames = [
        answers.values({"": {head: done}}).assign(length=length, size=size)
        for size, methods in found.items()
        for (head, length), done in methods.items()
    ]
    rows = pd.concat(frames, ignore_index=True)
    return rows[(rows["metric"] == "ap_min") & (rows["k"] == k)].drop(columns="rule")


def table(run: Run, rows: pd.DataFrame, k: int) -> Table:
    """Both sweeps as a table; ``rows``: of :func:`both`."""
    text = (
        f"MAP@{k} in percent, AP divided by min(k, relevant); closed gallery, cosine search, Hyper-DINO's mapper by "
        "its own distance. Mean over folds and seeds ± one standard deviation over the folds, ± seeds over the "
        f"trainings. {answers.CLASS_MEAN} Chance: a gallery in random order. At the rim: worst "
        "training, a dash where the space has no rim. " + _about(run, rows)
    )
    return Table("support and labels", rows, text, markdown=layout(rows))


def figure(run: Run, rows: pd.DataFrame, baseline: float, k: int) -> Figure:
    """Both sweeps as lines; ``rows``: of :func:`both`; ``baseline``: MAP@k of the frozen features, scaled (percent)."""
    text = (
        f"MAP@{k} over the size of the support (left) and over the number of labels (right), closed gallery. Points: "
        "means over folds and seeds; bars: one standard deviation over the folds. Solid: as many steps as with all "
        "labels; dashed: as many epochs, and so fewer steps for fewer labels. Dotted: the frozen features, scaled; "
        "thin line: chance. " + _about(run, rows)
    )
    return Figure("support and labels", rows, text, figure=figures.by_labels(rows, baseline, k))


def _about(run: Run, rows: pd.DataFrame) -> str:
    """How the heads of both sweeps were trained."""
    of, seeds = run.parameters, rows.groupby("sweep")["n_seeds"].max()
    return (
        f"With all labels {of['epochs']} epochs (published: 100), Hyper-DINO's mapper {of['mapper_epochs']}. Support: "
        f"K as given, all labels, {of['views']} views of each image; trainings of each: {seeds['support']}. Labels: "
        f"K = {of['K']} or one less than there are labels, the images themselves without augmented views; trainings of "
        f"each: {seeds['labels']}, and each draws its labelled images anew."
    )


def layout(rows: pd.DataFrame) -> str:
    """Both sweeps as Markdown, a table each: :func:`lib.results.answers.layout` with the size for a rule."""
    sizes = rows["size"].map(lambda size: str(size or "all"))
    named = rows["method"].where(rows["sweep"] == "support", rows["method"] + ", " + rows["length"])
    parts = rows.assign(rule=sizes, method=named).groupby("sweep", sort=False)
    return "\n\n".join(answers.layout(part, SIZES[sweep]) for sweep, part in parts)


SIZES = {"support": "K, support images per class", "labels": "labelled images per class"}
"""What the sizes of each sweep count."""
