"""One balanced experiment: every head on every encoder, on the same splits, with the same input and as many steps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lib import checks
from lib.papers.beyond.factors.heads import EvenSettings
from lib.study.run import Arm, Study
from lib.training import classifier, hyper_dino, linear_prototypes
from lib.training.episodes import Episodes
from lib.training.experiment import fit, search
from lib.training.fit import Schedule
from lib.training.methods import Answer, Fitted, Method
from lib.training.recipes import Recipe
from lib.training.splits import galleries, repeated, splits

NONE, STANDARDISED, NCA = "no head", "no head, standardised", "NCA"
LOGITS, PROBABILITY = "linear classifier, logits", "linear classifier, probability"
PROTOTYPES, FLAT, BALL = "prototype head", "flat head", "ball"
LONGER = 4
"""How many times the steps the controls of the even push take."""
EVEN_BALL, EVEN_FLAT = "ball, even push", "flat head, even push"
LONG_BALL, LONG_EVEN = f"ball, {LONGER} times the steps", f"ball, even push, {LONGER} times the steps"

Results = dict[str, dict[str, list[Answer]]]
"""Archive (which gallery, and how folds are made) → method, or "encoder, method" → its answer on each split."""


def studies(
    features: Mapping[str, np.ndarray],
    labels: np.ndarray,
    groups: np.ndarray,
    fold_of: Mapping[str, np.ndarray],
    ks: Sequence[int],
    folds_used: int,
    n_seeds: int,
    seed: int,
) -> dict[str, Study]:
    """Archive → its study: the training images under every fold rule, and new images under the last one.

    That open archive is left out, with a warning, where it is too small for a list of ``max(ks)``.
    """
    archives = {}
    for rule, fold in fold_of.items():
        parts = splits(fold, seed)[:folds_used]
        itself = np.arange(len(labels))
        study = Study(features, labels, groups, parts, parts[0], ks, apart=itself, n_seeds=n_seeds)
        archives[f"closed, {rule}"] = study
    if "open" in galleries(parts, groups, max(ks)):
        archives[f"open, {rule}"] = replace(study, gallery="open", apart=groups)
    return archives


def run(archives: Mapping[str, Study], arms: Sequence[Arm], what: str) -> Results:
    """What every archive answers; the arms of one fold rule are trained once, and read from the store then."""
    return {name: study.answers(arms, f"{what}, {name}")["own"] for name, study in archives.items()}


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
    each class and the cosine search of its paper. NCA sees all numbers, as Hyper-DINO has it.
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


def on(encoder: str, methods: Sequence[Method], named: bool = False) -> list[Arm]:
    """``methods`` as arms; ``named``: the encoder stands before their names."""
    first = f"{encoder}, " * named
    return [Arm(replace(method, name=first + method.name), encoder) for method in methods]


def alone(results: Results, encoder: str) -> Results:
    """The answers of one encoder, without its name."""
    first = f"{encoder}, "
    return {
        archive: {name.removeprefix(first): answers for name, answers in by_method.items() if name.startswith(first)}
        for archive, by_method in results.items()
    }


def with_margin(kind: str, m0: float) -> str:
    """The name of the ball, or of the flat head beside it, at another margin.

    >>> with_margin("flat head", 2.0)
    'flat head, m0 = 2'
    """
    return f"{kind}, m0 = {m0:g}"


def margins(recipe: Recipe, settings: hyper_dino.Settings, schedule: Schedule, m0s: Sequence[float]) -> list[Method]:
    """The ball with each margin of ``m0s``, and the flat head with half of it."""
    checks.values(margins=m0s)
    kinds = [(m0, (BALL, replace(settings, m0=m0)), (FLAT, hyper_dino.flat(settings, m0 / 2))) for m0 in m0s]
    return [Method(with_margin(name, m0), recipe, head, schedule) for m0, *both in kinds for name, head in both]


def even(recipe: Recipe, settings: hyper_dino.Settings, schedule: Schedule) -> list[Method]:
    """The ball of ``settings`` with an even push, the flat head beside it, and the ball with both losses for longer."""
    pushed, long = EvenSettings(**vars(settings)), replace(schedule, epochs=LONGER * schedule.epochs)
    return [
        Method(EVEN_FLAT, recipe, hyper_dino.flat(pushed, settings.m0 / 2), schedule),
        Method(EVEN_BALL, recipe, pushed, schedule),
        Method(LONG_BALL, recipe, settings, long),
        Method(LONG_EVEN, recipe, pushed, long),
    ]


def relatives(study: Study, arms: Sequence[Arm], above: np.ndarray) -> dict[str, list[Answer]]:
    """Queries search the training images without those of their own class: is the nearest one a relative?

    above: (n,) the class above each image's class in a tree, such as the family of a species; what shares it is
    relevant. Nobody has learnt it: it is order that an embedding keeps, or makes, by itself.
    """
    x, parts = study.features[arms[0].encoder], repeated(study.splits, study.n_seeds)
    fitted = fit(x, study.labels, [arm.method for arm in arms], parts, what="relatives")

    def answer(head: Fitted) -> Answer:
        where = head.split.test, head.split.train, study.ks
        return Answer(head.method, head.split, head.health, head.history, *search(head, x, above, *where, study.labels))

    return {name: [answer(head) for head in heads] for name, heads in fitted.items()}
