"""Heads on frozen features: half of the categories teach, the others, never seen, search each other (section 3.3).

A head of Table 2 is declared once, in :data:`HEADS`: its learning rate, row, colour and tests follow.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lib.datasets.categories import Halves, held_out
from lib.losses.hyp_vit import PRINTED_SPHERICAL
from lib.study.run import Arm, Study
from lib.training import classifier
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings, flat, spherical
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

METRIC = "hit_rate"
NONE, NCA, LINEAR = "no head", "NCA", "linear classifier"
HYP, SPH, FLAT, UNCLIPPED = "Hyp", "Sph", "flat", "Hyp, not clipped"
ONE, LEARNT = "Sph, τ and rate of Hyp", "Hyp, c learnt"
"""What is trained only together with the encoder."""
BY_COSINE = ", by D_cos"
"""The same network, searched by the cosine."""
END = ", end to end, "
"""Between the kind of head and the place, head or encoder."""
PLACES = ("head", "encoder")
BEFORE = "before training, encoder"
"""The encoder that trainings end to end begin with, on images of their size."""
UNTRAINED = "untrained encoder, "
"""In front of the head: its features are those of the same network with random weights."""

HEAD, BALL, END_TO_END = "does a head help?", "ball or sphere?", "does training the encoder help?"
CLIP, START = "does clipping help?", "does it matter where the head begins?"
PRETRAINED, ALONE = "what does pretraining give?", "without pretraining?"
TEMPERATURE = "temperature or curvature?"
FROZEN, TRAINED, LARGE = "on a frozen encoder only", "end to end, too", "end to end, too, in the large trainings"


@dataclass(frozen=True)
class Kind:
    """A head of Table 2.

    settings: what it makes of the paper's. question: what the paired test of Hyp against it answers. trained: one of
    :data:`FROZEN`, :data:`TRAINED` and :data:`LARGE`.
    """

    settings: Callable[[Settings], Settings]
    question: str
    trained: str = FROZEN


HEADS = {
    HYP: Kind(lambda paper: paper, HEAD, TRAINED),
    SPH: Kind(spherical, BALL, TRAINED),
    "Sph, τ as printed": Kind(lambda paper: spherical(paper, PRINTED_SPHERICAL), BALL),
    FLAT: Kind(flat, BALL, LARGE),
    UNCLIPPED: Kind(lambda paper: replace(paper, clip_radius=None), CLIP),
    # Untrained outputs are brought to half of the clip radius, so that clipping leaves them alone.
    "Hyp, begun inside": Kind(lambda paper: replace(paper, start_norm=(paper.clip_radius or 2.0) / 2), START),
}
"""The paper's head in the ball and on the sphere, and one thing changed at a time."""


def study(
    features: Mapping[str, np.ndarray], parts: Halves, ks: Sequence[int], n_seeds: int = 1, seed: int = 0
) -> Study:
    """The query categories search each other, no image finds itself; a quarter of the others choose the rates."""
    learnt, aside = held_out(parts, seed)
    whole, each = Split(0, parts.learnt, parts.queries, seed, held_out=parts.gallery), np.arange(len(parts.codes))
    choosing = Split(0, learnt, aside, seed)
    return Study(features, parts.codes, parts.names, [whole], choosing, ks, METRIC, "open", each, n_seeds)


def heads(
    settings: Settings, dim: int, dim_out: int, schedule: ByClass, kinds: Iterable[str] = tuple(HEADS)
) -> list[Method]:
    """The heads of :data:`HEADS`, or some ``kinds`` of them, from ``dim`` numbers to ``dim_out``."""
    recipe = Recipe("raw", dim, dim_out)
    return [Method(name, recipe, HEADS[name].settings(settings), schedule) for name in kinds]


def by_cosine(methods: Iterable[Method]) -> list[Method]:
    """The same networks, searched by the cosine, under a longer name."""
    return [replace(method, name=f"{method.name}{BY_COSINE}", search="cosine") for method in methods]


def baselines(settings: Settings, dim: int, dim_out: int, n: int, schedule: ByClass) -> list[Method]:
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
    for encoder, prefix in whose.items():
        dim = features[encoder].shape[1]
        none = Method(NONE, Recipe("raw", dim, 0), settings, search="cosine")
        methods = [none, *heads(settings, dim, dim_out, schedule, (HYP, SPH))]
        rows += arms((replace(method, name=f"{prefix}{method.name}") for method in methods), encoder)
    return rows


def arms(methods: Iterable[Method], encoder: str) -> list[Arm]:
    """Methods on the features of one encoder."""
    return [Arm(method, encoder) for method in methods]
