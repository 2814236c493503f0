"""The control: the same network with random weights, frozen as well, without a head and with trained ones."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.datasets.categories import Halves
from lib.papers.hyp_vit.names import HYP, NONE, SPH, UNTRAINED
from lib.papers.hyp_vit.retrieval import frozen
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.methods import Answer, Method
from lib.training.recipes import Recipe

SAYS = (
    "Untrained encoder: the same network with random weights, drawn once; its heads were trained in as many steps, at "
    "rates chosen in the same way."
)


def whose(network: str) -> str:
    """What the names of a further network's rows begin with.

    >>> whose("dino_vits16") + HYP
    'dino_vits16, Hyp'
    """
    return f"{network}, "


def methods(settings: Settings, dim: int, dim_out: int, schedule: ByClass, whose: str = UNTRAINED) -> list[Method]:
    """No head, Hyp and Sph, under names that begin with ``whose`` features they see."""
    none = Method(NONE, Recipe("raw", dim, 0), settings, search="cosine")
    trained = [one for one in frozen.heads(settings, dim, dim_out, schedule) if one.name in (HYP, SPH)]
    return [replace(one, name=f"{whose}{one.name}") for one in (none, *trained)]


def answers(
    x: np.ndarray,
    parts: Halves,
    settings: Settings,
    dim_out: int,
    schedule: ByClass,
    candidates: Sequence[float],
    ks: Sequence[int],
    *,
    n_choosing: int = 1,
    n_seeds: int = 1,
    seed: int = 0,
    whose: str = UNTRAINED,
) -> tuple[dict[str, list[Answer]], pd.DataFrame]:
    """Answers of :func:`methods` on features ``x: (n, dim)``, of the untrained encoder, and what learning rates gave.

    The rates are as of :func:`lib.papers.hyp_vit.retrieval.frozen.rates`, of ``n_choosing`` trainings, and so is the
    rest. ``whose``: another encoder's features, with a comma and a space behind its name.
    """
    none, *heads = methods(settings, x.shape[1], dim_out, schedule, whose)
    chosen = frozen.rates(x, parts, heads, candidates, n_seeds=n_choosing, seed=seed)
    several = [none, *frozen.at_rates(heads, chosen)]
    found = frozen.answers(x, parts, several, ks, n_seeds=n_seeds, seed=seed, what=whose.removesuffix(", "))
    return found, chosen
