"""Heads on frozen features: half of the categories teach, the others, never seen, search each other (section 3.3)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lib.datasets.categories import Halves, held_out
from lib.losses.hyp_vit import PRINTED_SPHERICAL
from lib.papers.hyp_vit.names import FLAT, HYP, INSIDE, LINEAR, NCA, NONE, PRINTED, SPH, UNCLIPPED
from lib.study.run import Arm, Study
from lib.training import classifier
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings, flat, spherical
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

METRIC, BY_COSINE = "hit_rate", ", by D_cos"


def study(
    features: Mapping[str, np.ndarray], parts: Halves, ks: Sequence[int], n_seeds: int = 1, seed: int = 0
) -> Study:
    """The query categories search each other, no image finds itself; a quarter of the others choose the rates."""
    learnt, aside = held_out(parts, seed)
    whole, each = Split(0, parts.learnt, parts.queries, seed, held_out=parts.gallery), np.arange(len(parts.codes))
    choosing = Split(0, learnt, aside, seed)
    return Study(features, parts.codes, parts.names, [whole], choosing, ks, METRIC, "open", each, n_seeds)


def heads(settings: Settings, dim: int, dim_out: int, schedule: ByClass) -> list[Method]:
    """The paper's head in the ball and on the sphere, and one thing changed at a time.

    Begun inside: the untrained outputs are brought to half of the clip radius, so that clipping leaves them alone.
    """
    kinds = {
        HYP: settings,
        SPH: spherical(settings),
        PRINTED: spherical(settings, PRINTED_SPHERICAL),
        FLAT: flat(settings),
        UNCLIPPED: replace(settings, clip_radius=None),
        INSIDE: replace(settings, start_norm=(settings.clip_radius or 2.0) / 2),
    }
    return [Method(name, Recipe("raw", dim, dim_out), kind, schedule) for name, kind in kinds.items()]


def by_cosine(methods: Iterable[Method]) -> list[Method]:
    """The same networks, searched by the cosine, under a longer name."""
    return [replace(one, name=f"{one.name}{BY_COSINE}", search="cosine") for one in methods]


def opponents(settings: Settings, dim: int, dim_out: int, n: int, schedule: ByClass) -> list[Method]:
    """The features as they are, NCA, and a linear classifier of ``n`` categories, which learns at a rate of its own."""
    seen = Recipe("raw", dim, 0)
    return [
        Method(NONE, seen, settings, search="cosine"),
        Method(NCA, Recipe("NCA", min(dim_out, dim), 0), settings),
        classifier.method(LINEAR, seen, n, schedule, schedule.lr),
    ]


def further(
    settings: Settings, features: Mapping[str, np.ndarray], dim_out: int, schedule: ByClass, whose: Mapping[str, str]
) -> list[Arm]:
    """No head, Hyp and Sph on the features of other encoders; whose: encoder → what the names of its rows begin with.

    The untrained encoder is the control.
    """
    rows = []
    for encoder, before in whose.items():
        dim = features[encoder].shape[1]
        none = Method(NONE, Recipe("raw", dim, 0), settings, search="cosine")
        methods = [none, *heads(settings, dim, dim_out, schedule)[:2]]
        rows += [Arm(replace(method, name=f"{before}{method.name}"), encoder) for method in methods]
    return rows


def arms(methods: Iterable[Method], encoder: str) -> list[Arm]:
    """Methods on the features of one encoder."""
    return [Arm(method, encoder) for method in methods]
