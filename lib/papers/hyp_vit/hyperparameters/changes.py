"""The head of the paper with one setting changed at a time; other batches take about as many steps, in whole epochs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib.datasets.categories import Halves, held_out
from lib.geometry import PoincareBall
from lib.papers.hyp_vit.names import NONE
from lib.papers.hyp_vit.retrieval import frozen
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.methods import Answer, Method
from lib.training.recipes import Recipe

DEFAULT = "default"
PUBLISHED_BATCH = ByClass.batch_size


@dataclass(frozen=True)
class Change:
    """A row: ``of`` says which setting differs from the default (c, head_dim, batch_size as published; r, room).

    value: of the setting, as published; NaN of the default and of what the paper has not. method: ours.
    """

    of: str
    value: float
    method: Method

    @property
    def setting(self) -> str:
        """What the row is called in the parameters of a run, by the published value.

        >>> Change("none", np.nan, None).setting, Change("batch_size", 200.0, None).setting
        ('default', 'batch_size=200')
        """
        return DEFAULT if self.of == "none" else f"{self.of}={self.value:g}"


def default(settings: Settings, dim: int, dim_out: int, schedule: ByClass) -> Method:
    """The head that every other row is compared with."""
    return Method(DEFAULT, Recipe("raw", dim, dim_out), settings, schedule)


def published(one: Method, theirs: pd.DataFrame, parts: Halves, seed: int = 0) -> list[Change]:
    """The rows of Table 5 (``theirs``, see :func:`lib.papers.hyp_vit.published.settings`), the default first.

    Batches are those of the paper in proportion to its 900, as far as the categories go that are left to learn from
    while learning rates are chosen; those that come to the same size are one row. They take about as many steps as the
    default, in whole epochs.
    """
    most = parts.count(held_out(parts, seed)[0])
    made = {
        "none": lambda value: one,
        "c": lambda value: curved(one, value),
        "head_dim": lambda value: long(one, int(value)),
        "batch_size": lambda value: batched(one, value / PUBLISHED_BATCH, most, len(parts.learnt)),
    }
    rows = [Change(row.of, row.value, made[row.of](row.value)) for row in theirs.itertuples()]
    return list({row.method.name: row for row in reversed(rows)}.values())[::-1]


def curved(one: Method, c: float) -> Method:
    """Another curvature, nothing else changed: how far out clipping lets points go changes with it."""
    return replace(one, name=f"c = {c:g}", head=replace(one.head, geometry=PoincareBall(c)))


def long(one: Method, length: int) -> Method:
    """Another length of the embedding."""
    return replace(one, name=f"{length} numbers", recipe=replace(one.recipe, dim_out=length))


def batched(one: Method, part: float, most: int, n: int) -> Method:
    """Batches of ``part`` times as many classes, from two to ``most``, in about as many steps on n images."""
    schedule = one.schedule
    classes = min(most, max(2, round(part * schedule.batch_size / schedule.samples)))
    size = schedule.samples * classes
    return replace(one, name=f"batch of {size}", schedule=in_batches(schedule, size, n))


def in_batches(schedule: ByClass, batch_size: int, n: int) -> ByClass:
    """``schedule`` in batches of another size, in as many steps on ``n`` images as whole epochs allow.

    >>> in_batches(ByClass(10, 20), 80, n=400).epochs, in_batches(ByClass(10, 20), 10, n=400).epochs
    (40, 5)
    """
    other = replace(schedule, batch_size=batch_size)
    return replace(other, epochs=max(1, round(schedule.epochs * schedule.steps(n) / other.steps(n))))


def room(one: Method) -> list[Change]:
    """What c does, taken apart: how far out points may go, and how warm the softmax is.

    Where every point is clipped, √c‖z‖ = tanh(√c·r) of each, and D_hyp = f(angle; √c·r)/√c. So c and r act through
    √c·r, the room, and c once more as a temperature, √c·τ. The rows: r halved and doubled; c = 1 with r divided by
    √(1/c), the default's room; and the same with τ divided as well, which is the default rescaled.
    """
    settings = one.head
    stretch = (1 / settings.geometry.c) ** 0.5
    same = replace(settings, geometry=PoincareBall(1.0), clip_radius=settings.clip_radius / stretch)
    kinds = {
        f"r = {settings.clip_radius / 2:g}": replace(settings, clip_radius=settings.clip_radius / 2),
        f"r = {settings.clip_radius * 2:g}": replace(settings, clip_radius=settings.clip_radius * 2),
        SAME_ROOM: same,
        SAME_ALL: replace(same, temperature=same.temperature / stretch),
    }
    return [Change("room", np.nan, replace(one, name=name, head=head)) for name, head in kinds.items()]


SAME_ROOM, SAME_ALL = "c = 1, same √c·r", "c = 1, same √c·r and √c·τ"


def answers(
    x: np.ndarray,
    parts: Halves,
    changes: Sequence[Change],
    chosen: pd.DataFrame,
    ks: Sequence[int],
    *,
    n_seeds: int = 1,
    seed: int = 0,
) -> dict[str, list[Answer]]:
    """Every row at its own learning rate, searched by D_hyp and, under a longer name, by the cosine; and no head.

    x, n_seeds, seed: as in :func:`lib.papers.hyp_vit.retrieval.frozen.answers`; chosen: of its ``rates``.
    """
    own = frozen.at_rates([change.method for change in changes], chosen)
    methods = [*own, *frozen.by_cosine(own), encoder_alone(own[0])]
    return frozen.answers(x, parts, methods, ks, n_seeds=n_seeds, seed=seed, what="settings")


def encoder_alone(one: Method) -> Method:
    """The features that ``one`` is trained on, searched by the cosine."""
    return Method(NONE, replace(one.recipe, dim_out=0), one.head, search="cosine")


def sees(encoder: str) -> str:
    """What an encoder sees: the side of its square where its name tells it, or the patches of a transformer.

    >>> sees("efficientnet_lite0_96px"), sees("efficientnet_lite0"), sees("vit_small_patch8_224.dino")
    ('96 px', '224 px', 'patches of 8')
    >>> sees("dino_vits16")
    'patches of 16'
    """
    if found := re.search(r"patch(\d+)|vits(\d+)$", encoder):
        return f"patches of {found[1] or found[2]}"
    found = re.search(r"_(\d+)px", encoder)
    return f"{found[1] if found else 224} px"


def sizes(
    features: dict[str, np.ndarray],
    parts: Halves,
    one: Method,
    candidates: Sequence[float],
    ks: Sequence[int],
    *,
    n_choosing: int = 1,
    n_seeds: int = 1,
    seed: int = 0,
) -> dict[str, list[Answer]]:
    """Table 4: head and encoder where the network sees images of other sizes, each head at its own learning rate.

    n_choosing: trainings that choose it.
    features: what is seen, see :func:`sees`, → (n, dim). Names are "64 px, head" and "64 px, encoder".
    """
    found = {}
    for size, x in features.items():
        chosen = frozen.rates(x, parts, [one], candidates, n_seeds=n_choosing, seed=seed)
        heads = frozen.at_rates([one], chosen)
        methods = [*heads, encoder_alone(one)]
        several = frozen.answers(x, parts, methods, ks, n_seeds=n_seeds, seed=seed, what=size)
        found |= {f"{size}, head": several[one.name], f"{size}, encoder": several[NONE]}
    return found
