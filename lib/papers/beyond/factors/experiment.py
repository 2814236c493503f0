"""One balanced experiment: every head on every encoder, on the same splits, with the same input and as many steps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lib import checks
from lib.training import classifier, hyper_dino, linear_prototypes
from lib.training.episodes import Episodes
from lib.training.experiment import ask, fit, search
from lib.training.fit import Schedule
from lib.training.methods import Answer, Fitted, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, galleries

NONE, STANDARDISED, NCA = "no head", "no head, standardised", "NCA"
LOGITS, PROBABILITY = "linear classifier, logits", "linear classifier, probability"
PROTOTYPES, FLAT, BALL = "prototype head", "flat head", "ball"
COMPARED = (NONE, NCA, LOGITS, PROBABILITY, PROTOTYPES, FLAT, BALL)
"""The methods that the picture shows; the other one is how the Hyper-DINO paper measures without a head."""

Results = dict[str, dict[str, list[Answer]]]
"""Archive (which gallery, and how folds are made) → method, or "encoder, method" → its answer on each split."""

Trained = dict[str, dict[str, list[Fitted]]]
"""Fold rule → method → what was fitted on each split."""


def methods(
    dim: int,
    dim_in: int,
    dim_out: int,
    n_classes: int,
    settings: hyper_dino.Settings,
    schedule: Schedule,
    support: int,
    classifier_lr: float,
) -> list[Method]:
    """All methods for features of ``dim`` numbers.

    Every head learns from the same ``dim_in`` principal components, in batches of one size and as many steps; the
    prototype head is as large as the ball's (its paper: 512 and 128 numbers), with episodes of ``support`` images of
    each class and the cosine search of its paper. The classifier has a learning rate of its own, ``classifier_lr``.
    NCA sees all numbers, as Hyper-DINO has it.
    """
    head = Recipe("PCA", dim_in, dim_out)
    linear = [
        classifier.method(name, head, n_classes, schedule, classifier_lr, by)
        for name, by in zip((LOGITS, PROBABILITY), classifier.RANKINGS, strict=True)
    ]
    episodes = Episodes(**vars(schedule), k=support)
    prototypes = linear_prototypes.Settings(hidden=settings.hidden)
    flat = hyper_dino.flat(settings, settings.m0 / 2)
    return [
        Method(NONE, Recipe("raw", dim, 0), settings, search="cosine"),
        Method(STANDARDISED, Recipe("scaled", dim, 0), settings),
        Method(NCA, Recipe("NCA", dim_out, 0), settings),
        *linear,
        Method(PROTOTYPES, head, prototypes, episodes, search="cosine"),
        Method(FLAT, head, flat, schedule),
        Method(BALL, head, settings, schedule),
    ]


def with_margin(kind: str, m0: float) -> str:
    """The name of the ball, or of the flat head beside it, at another margin.

    >>> with_margin("flat head", 2.0)
    'flat head, m0 = 2'
    """
    return f"{kind}, m0 = {m0:g}"


def margins(recipe: Recipe, settings: hyper_dino.Settings, schedule: Schedule, m0s: Sequence[float]) -> list[Method]:
    """The ball with each margin of ``m0s``, and the flat head with half of it."""
    checks.values(margins=m0s)
    found = []
    for m0 in m0s:
        found.append(Method(with_margin(BALL, m0), recipe, replace(settings, m0=m0), schedule))
        found.append(Method(with_margin(FLAT, m0), recipe, hyper_dino.flat(settings, m0 / 2), schedule))
    return found


def trained(
    x: np.ndarray,
    labels: np.ndarray,
    several: Sequence[Method],
    splits_of: Mapping[str, Sequence[Split]],
    what: str,
) -> Trained:
    """``several`` methods fitted under every fold rule; x: (n, dim), labels: (n,)."""
    found: Trained = {}
    for rule, parts in splits_of.items():
        found[rule] = fit(x, labels, several, parts, what=f"{what}, {rule}")
    return found


def archives(
    fitted: Trained,
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    ks: Sequence[int],
    what: str,
    workers: int = -1,
) -> Results:
    """The training images searched under every fold rule, and images that nothing was fitted on under the last.

    That open archive is left out, with a warning, where it is too small for a list of ``max(ks)``. ``what``,
    ``workers``: as in :func:`lib.training.experiment.ask`.
    """
    found = {}
    for rule, done in fitted.items():
        found[f"closed, {rule}"] = _asked(done, x, labels, ks, what=f"{what}, closed, {rule}", workers=workers)
    strictest, done = list(fitted.items())[-1]
    if "open" in galleries([one.split for one in next(iter(done.values()))], groups, max(ks)):
        options = {"gallery": "open", "groups": groups, "what": f"{what}, open, {strictest}", "workers": workers}
        found[f"open, {strictest}"] = _asked(done, x, labels, ks, **options)
    return found


def _asked(fitted: Mapping[str, Sequence[Fitted]], *arguments: Any, **options: Any) -> dict[str, list[Answer]]:
    """:func:`lib.training.experiment.ask`, once in place of once a training where nothing was trained."""
    first = {
        name: [one for one in several if one.network is not None or one.split.repeat == 0]
        for name, several in fitted.items()
    }
    answers = ask(first, *arguments, **options)
    for name, several in fitted.items():
        if len(answers[name]) < len(several):
            of_fold = {answer.split.fold: answer for answer in answers[name]}
            answers[name] = [replace(of_fold[one.split.fold], split=one.split) for one in several]
    return answers


def named(encoder: str, found: Results) -> Results:
    """The same answers under "encoder, method"."""
    return {
        archive: {f"{encoder}, {method}": answers for method, answers in by_method.items()}
        for archive, by_method in found.items()
    }


def together(*several: Results) -> Results:
    """Answers of several encoders, archive by archive."""
    found: Results = {}
    for results in several:
        for archive, by_method in results.items():
            found.setdefault(archive, {}).update(by_method)
    return found


def relatives(
    fitted: Mapping[str, Sequence[Fitted]],
    x: np.ndarray,
    labels: np.ndarray,
    above: np.ndarray,
    ks: Sequence[int],
) -> dict[str, list[Answer]]:
    """Queries search the training images without those of their own class: is the nearest one a relative?

    above: (n,) the class above each image's class in a tree, such as the family of a species; what shares it is
    relevant. Nobody has learnt it: it is order that an embedding keeps, or makes, by itself.
    """
    found = {}
    for name, several in fitted.items():
        found[name] = [
            Answer(
                one.method,
                one.split,
                one.health,
                one.history,
                *search(one, x, above, one.split.test, one.split.train, ks, ids=labels),
            )
            for one in several
        ]
    return found
