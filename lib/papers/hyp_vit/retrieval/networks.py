"""What is trained end to end: Hyp and Sph, on further networks too, each at a temperature and rate of its own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from lib.datasets.categories import Halves
from lib.datasets.table import ImageTable
from lib.encoders.weights import UNTRAINED as WITHOUT
from lib.papers.hyp_vit import published
from lib.papers.hyp_vit.names import BEFORE, FLAT, HYP, LEARNT, ONE, SPH, UNCLIPPED, UNTRAINED
from lib.papers.hyp_vit.retrieval import end_to_end
from lib.papers.hyp_vit.retrieval.end_to_end import EndToEnd
from lib.study.rates import best_rates
from lib.study.scores import Answers
from lib.training.hyp_vit import Settings, flat, spherical, warmed

Plan = tuple[dict[str, Settings], EndToEnd]
"""Heads by name, and how each is trained together with an encoder."""


def plans(
    settings: Settings, plan: EndToEnd, beside: Sequence[str], also: Sequence[str] = (), tempered: bool = False
) -> list[Plan]:
    """Hyp and Sph under plain names, then of each network ``beside`` under its own; of those in ``also`` Hyp only.

    The plan's own network without its pretraining is "untrained encoder". tempered: the flat head is trained too.
    """
    kinds = {HYP: settings, SPH: spherical(settings)} | ({FLAT: flat(settings)} if tempered else {})
    several = [(kinds, plan)]
    for name in [*beside, *also]:
        whose = UNTRAINED if name == f"{plan.encoder}{WITHOUT}" else f"{name}, "
        own = {f"{whose}{kind}": head for kind, head in kinds.items() if kind == HYP or name in beside}
        several.append((own, replace(plan, encoder=name)))
    return several


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
    return [(first[0] | {ONE: warmed(first[0][SPH], own[HYP])}, first[1]), *others]


def variants(plans: Sequence[Plan]) -> list[Plan]:
    """Hyp of the first network at its own τ, not clipped, and with a c that learns along."""
    kinds, plan = plans[0]
    return [({UNCLIPPED: replace(kinds[HYP], clip_radius=None), LEARNT: replace(kinds[HYP], learn_c=True)}, plan)]


def rates(tried: pd.DataFrame) -> dict[str, float]:
    """Head → its chosen rate of the encoder; Sph at Hyp's τ and the variants have that of Hyp."""
    own = best_rates(tried)
    return own | dict.fromkeys((ONE, UNCLIPPED, LEARNT), own[HYP]) if "temperature" in tried else own


def trained(
    images: ImageTable, parts: Halves, plans: Sequence[Plan], ks: Sequence[int], **options: Any
) -> tuple[Answers, pd.DataFrame]:
    """:func:`.end_to_end.end_to_end` of every plan: all answers, and the course of all trainings."""
    answers, courses = {}, []
    for kinds, plan in plans:
        of_plan, course = end_to_end.end_to_end(images, parts, kinds, plan, ks, **options)
        first = next(iter(kinds))
        whose = first.removesuffix(HYP) if first.endswith(HYP) else ""
        answers |= {f"{whose}{name}" if name == BEFORE else name: rows for name, rows in of_plan.items()}
        courses.append(course)
    return answers, pd.concat(courses, ignore_index=True)


def named(tried: pd.DataFrame) -> pd.DataFrame:
    """``tried`` with τ behind the names, so that a table of rates has a row for each."""
    tau = "" if "temperature" not in tried else ", τ = " + tried["temperature"].map("{:g}".format)
    return tried.assign(method=tried["method"] + tau)


def published_rates(plans: Sequence[Plan], tried: pd.DataFrame) -> dict[str, list[str]]:
    """A column of the table of rates: the published one of every head; none where temperatures are tried."""
    rates = [f"{published.rate(plan.encoder):g}" for kinds, plan in plans for _ in kinds]
    return {} if "temperature" in tried else {"published": rates}
