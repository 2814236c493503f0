"""What is trained end to end: Hyp and Sph, on further networks too, each at a temperature and rate of its own.

Below: the course of these trainings.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.datasets.categories import Halves
from lib.datasets.table import ImageTable
from lib.encoders.weights import UNTRAINED as WITHOUT
from lib.figures import style
from lib.papers.hyp_vit import end_to_end, heads, published
from lib.study.rates import best_rates
from lib.study.scores import Answers
from lib.training.hyp_vit import Settings, warmed
from lib.training.hyp_vit_end_to_end import EndToEnd

Plan = tuple[dict[str, Settings], EndToEnd]
"""Heads by name, and how each is trained together with an encoder."""


def plans(
    settings: Settings, plan: EndToEnd, beside: Sequence[str], also: Sequence[str] = (), tempered: bool = False
) -> list[Plan]:
    """What :data:`.HEADS` has trained, under plain names, then of each network ``beside`` under its own.

    Of those in ``also`` Hyp only. The plan's own network without its pretraining is "untrained encoder". tempered: one
    of the large trainings.
    """
    wanted = (heads.TRAINED, heads.LARGE) if tempered else (heads.TRAINED,)
    kinds = {name: kind.settings(settings) for name, kind in heads.HEADS.items() if kind.trained in wanted}
    plans = [(kinds, plan)]
    for name in [*beside, *also]:
        whose = heads.UNTRAINED if name == f"{plan.encoder}{WITHOUT}" else f"{name}, "
        own = {f"{whose}{kind}": head for kind, head in kinds.items() if kind == heads.HYP or name in beside}
        plans.append((own, replace(plan, encoder=name)))
    return plans


def shorter(plans: Sequence[Plan], steps: int) -> list[Plan]:
    """The plans in so many steps and without a look at query images, to choose rates by; 0 leaves them as they are."""
    if not steps:
        return list(plans)
    return [(kinds, replace(plan, settings=replace(plan.settings, steps=steps), unseen=False)) for kinds, plan in plans]


def choose(
    images: ImageTable, parts: Halves, plans: Sequence[Plan], candidates: Sequence[float], **options: Any
) -> pd.DataFrame:
    """:func:`.end_to_end.rates` of every plan; without candidates, of the published rate only."""
    tried = [
        end_to_end.rates(images, parts, kinds, plan, candidates or [published.rate(plan.encoder)], **options)
        for kinds, plan in plans
    ]
    return pd.concat(tried, ignore_index=True)


def at_chosen(plans: Sequence[Plan], tried: pd.DataFrame) -> list[Plan]:
    """Every head at its own τ, and Sph of the first network at that of Hyp as well; as they were if none was tried."""
    if "temperature" not in tried:
        return list(plans)
    own = best_rates(tried, value="temperature")
    first, *others = [({name: warmed(kind, own[name]) for name, kind in kinds.items()}, plan) for kinds, plan in plans]
    return [(first[0] | {heads.ONE: warmed(first[0][heads.SPH], own[heads.HYP])}, first[1]), *others]


def variants(plans: Sequence[Plan]) -> list[Plan]:
    """Hyp of the first network at its own τ, not clipped, and with a c that learns along."""
    kinds, plan = plans[0]
    hyp = kinds[heads.HYP]
    return [({heads.UNCLIPPED: replace(hyp, clip_radius=None), heads.LEARNT: replace(hyp, learn_c=True)}, plan)]


def rates(tried: pd.DataFrame) -> dict[str, float]:
    """Head → its chosen rate of the encoder; Sph at Hyp's τ and the variants have that of Hyp."""
    own = best_rates(tried)
    if "temperature" not in tried:
        return own
    return own | dict.fromkeys((heads.ONE, heads.UNCLIPPED, heads.LEARNT), own[heads.HYP])


def trained(
    images: ImageTable, parts: Halves, plans: Sequence[Plan], ks: Sequence[int], **options: Any
) -> tuple[Answers, pd.DataFrame]:
    """:func:`.end_to_end.end_to_end` of every plan: all answers, and the course of all trainings."""
    answers, courses = {}, []
    for kinds, plan in plans:
        of_plan, course = end_to_end.end_to_end(images, parts, kinds, plan, ks, **options)
        first = next(iter(kinds))
        whose = first.removesuffix(heads.HYP) if first.endswith(heads.HYP) else ""
        answers |= {f"{whose}{name}" if name == heads.BEFORE else name: rows for name, rows in of_plan.items()}
        courses.append(course)
    return answers, pd.concat(courses, ignore_index=True)


def named(tried: pd.DataFrame) -> pd.DataFrame:
    """``tried`` with τ behind the names, so that a table of rates has a row for each."""
    tau = "" if "temperature" not in tried else ", τ = " + tried["temperature"].map("{:g}".format)
    return tried.assign(method=tried["method"] + tau)


def published_rates(plans: Sequence[Plan], tried: pd.DataFrame) -> dict[str, dict[str, str]]:
    """A column of the table of rates: the published one of every head; none if temperatures are tried."""
    rates = {name: f"{published.rate(plan.encoder):g}" for kinds, plan in plans for name in kinds}
    return {} if "temperature" in tried else {"published": rates}


def steps(course: pd.DataFrame) -> pd.DataFrame:
    """Recall@1 of unseen categories at fixed steps, and at the step that validation picks; c where it is learnt.

    course: of :func:`trained` with unseen images. Columns method, place, at ("25", or "chosen"), ours
    (mean, percent; of place "c" the curvature), spread (over trainings) and n_seeds.
    """
    looked = course.dropna(subset=["head"])
    best = looked.loc[looked.groupby(["method", "repeat"], sort=False)["head"].idxmax()].assign(at="chosen")
    both = pd.concat([looked.assign(at=looked["step"].map("{:.0f}".format)), best])
    values = {place: f"unseen_{place}" for place in heads.PLACES} | ({"c": "c"} if "c" in course else {})
    both = both[["method", "at", *values.values()]].rename(columns={column: place for place, column in values.items()})
    long = both.melt(["method", "at"], var_name="place").dropna(subset="value")
    means = long.groupby(["place", "method", "at"], sort=False)["value"].agg(ours="mean", spread="std", n_seeds="size")
    return means.reset_index()[["method", "place", "at", "ours", "spread", "n_seeds"]]


DASHES = dict(zip(heads.PLACES, ("-", ":"), strict=True))
"""What is searched after a training end to end, and how its line is drawn."""


ABREAST = 3
"""Methods side by side on a page."""


def course(rows: pd.DataFrame) -> Figure:
    """A column per method: its loss, and below Recall@1 on categories set aside, over the steps.

    A line per training, solid the head, dotted the encoder; the step that its head chose is ringed. Losses of two heads
    cannot be compared. Recall@1 has one scale for all trained encoders and another for untrained ones.

    rows: columns method, repeat, step, loss, head, encoder (percent); NaN where a step has no value.
    """
    methods = list(dict.fromkeys(rows["method"]))
    n_wide = min(ABREAST, len(methods))
    n_high = 2 * math.ceil(len(methods) / n_wide)
    with style.house():
        figure, axes = plt.subplots(n_high, n_wide, figsize=(style.WIDTH, 2.2 * n_high), squeeze=False)
        pairs = [pair for two in np.split(axes, n_high // 2) for pair in two.T]  # of loss and score
        for axis in np.ravel(pairs[len(methods) :]):
            axis.remove()
        below: dict[bool, list[plt.Axes]] = {}
        for number, (method, (loss, score)) in enumerate(zip(methods, pairs, strict=False)):
            for _, part in rows[rows["method"] == method].groupby("repeat"):
                losses = part.dropna(subset="loss")
                means = losses["loss"].rolling(10, min_periods=1).mean()
                loss.plot(losses["step"], means, color=style.PALETTE[number], linewidth=1.1)
                _scores(score, part, number)
            loss.set(title=method.removesuffix(heads.END.rstrip(", ")))
            score.set(xlabel="training steps")
            below.setdefault(method.startswith(heads.UNTRAINED), []).append(score)
        for alike in below.values():
            limits = [axis.get_ylim() for axis in alike]
            for axis in alike:
                axis.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
        for row, axis in enumerate(axes[:, 0]):
            axis.set_ylabel("Recall@1 (%)" if row % 2 else "loss")
        handles = dict(zip(*axes[1, 0].get_legend_handles_labels()[::-1], strict=True))
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _scores(axis: plt.Axes, part: pd.DataFrame, number: int) -> None:
    """Head and encoder over the steps of one training; the head's best step, of equal ones the first, is ringed."""
    look = {"color": style.PALETTE[number], "marker": style.MARKERS[number % len(style.MARKERS)], "markersize": 4}
    for place, dashes in DASHES.items():
        scores = part.dropna(subset=place)
        axis.plot(scores["step"], scores[place], dashes, label=place, linewidth=1.1, **look)
    best = part.loc[part["head"].idxmax()]
    ring = {"color": "black", "markerfacecolor": "none", "markersize": 9}
    axis.plot(best["step"], best["head"], "o", label="step that the head chose", **ring)
