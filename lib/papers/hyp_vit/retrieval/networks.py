"""Hyp and Sph on further networks, frozen and end to end: with three of them, the paper's six formulations.

And the control of the trainings end to end: Hyp on a network with random weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from lib.datasets.categories import Halves
from lib.datasets.table import ImageTable
from lib.encoders.weights import UNTRAINED as WITHOUT
from lib.papers.hyp_vit import published
from lib.papers.hyp_vit.names import BEFORE, HYP
from lib.papers.hyp_vit.retrieval import control, end_to_end
from lib.papers.hyp_vit.retrieval.end_to_end import EndToEnd
from lib.training.hyp_vit import Settings
from lib.training.methods import Answer

Found = dict[str, list[Answer]]


def frozen(features: Mapping[str, np.ndarray], *arguments: Any, **options: Any) -> tuple[Found, pd.DataFrame]:
    """:func:`.control.answers` of every network, and the learning rates tried; features: network → (n, dim)."""
    found, tried = {}, [pd.DataFrame()]
    for name, x in features.items():
        of_one, rates = control.answers(x, *arguments, whose=control.whose(name), **options)
        found |= of_one
        tried.append(rates)
    return found, pd.concat(tried, ignore_index=True)


def plans(
    kinds: Mapping[str, Settings], plan: EndToEnd, beside: Sequence[str], also: Sequence[str] = ()
) -> list[tuple[dict, EndToEnd]]:
    """What is trained end to end: the kinds under plain names, then of each network ``beside`` under its own.

    Of each network in ``also`` Hyp alone; the plan's own network without its pretraining is "untrained encoder".
    """
    several = [(dict(kinds), plan)]
    for one in [*beside, *also]:
        before = control.UNTRAINED if one == f"{plan.encoder}{WITHOUT}" else control.whose(one)
        of_one = {f"{before}{kind}": of for kind, of in kinds.items() if kind == HYP or one in beside}
        several.append((of_one, replace(plan, encoder=one)))
    return several


def rates(
    images: ImageTable, parts: Halves, several: Sequence[tuple], candidates: Sequence[float], **options: Any
) -> pd.DataFrame:
    """:func:`.end_to_end.rates` of every plan of :func:`plans`; without candidates, of the published rate alone."""
    tried = [
        end_to_end.rates(images, parts, kinds, plan, candidates or [published.rate(plan.encoder)], **options)
        for kinds, plan in several
    ]
    return pd.concat(tried, ignore_index=True)


def published_rates(several: Sequence[tuple]) -> list[str]:
    """The published rate of every kind of :func:`plans`, for a column of the table of rates."""
    return [f"{published.rate(plan.encoder):g}" for kinds, plan in several for _ in kinds]


def trained(
    images: ImageTable, parts: Halves, several: Sequence[tuple], ks: Sequence[int], **options: Any
) -> tuple[Found, pd.DataFrame]:
    """:func:`.end_to_end.end_to_end` of every plan of :func:`plans`: all answers, and the course of all trainings."""
    found, courses = {}, []
    for kinds, plan in several:
        of_one, course = end_to_end.end_to_end(images, parts, kinds, plan, ks, **options)
        first = next(iter(kinds))
        before = first.removesuffix(HYP) if first.endswith(HYP) else ""
        found |= {f"{before}{name}" if name == BEFORE else name: answers for name, answers in of_one.items()}
        courses.append(course)
    return found, pd.concat(courses, ignore_index=True)


def says(beside: Sequence[str]) -> str:
    """A sentence for captions; empty without further networks."""
    listed = ", ".join(beside)
    return (
        f" Other networks ({listed}): heads and trainings as those of the first, rates chosen in the same way."
        if beside
        else ""
    )
