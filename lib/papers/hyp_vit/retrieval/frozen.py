"""Heads on frozen features: half of the categories teach, the others, never seen, ask each other (section 3.3)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.datasets.categories import Halves, held_out
from lib.losses.hyp_vit import PRINTED_SPHERICAL
from lib.papers.hyp_vit.names import FLAT, HYP, INSIDE, LINEAR, NCA, NONE, PRINTED, SPH, UNCLIPPED
from lib.results.rates import best_rates, choose_middle
from lib.training import classifier
from lib.training.by_class import ByClass
from lib.training.experiment import ask, fit
from lib.training.hyp_vit import Settings, flat, spherical
from lib.training.methods import Answer, Fitted, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, repeated

BY_COSINE = ", by D_cos"
"""The same network, searched by the cosine."""


def heads(settings: Settings, dim: int, dim_out: int, schedule: ByClass) -> list[Method]:
    """The paper's head in the ball and on the sphere, and one thing changed at a time.

    Begun inside: the untrained outputs are brought to half of the clip radius, so that clipping leaves them alone.
    """
    inside = replace(settings, start_norm=(settings.clip_radius or 2.0) / 2)
    kinds = {
        HYP: settings,
        SPH: spherical(settings),
        PRINTED: spherical(settings, PRINTED_SPHERICAL),
        FLAT: flat(settings),
        UNCLIPPED: replace(settings, clip_radius=None),
        INSIDE: inside,
    }
    return [Method(name, Recipe("raw", dim, dim_out), kind, schedule) for name, kind in kinds.items()]


def by_cosine(methods: Iterable[Method]) -> list[Method]:
    """The same networks, searched by the cosine, under a longer name."""
    return [replace(one, name=f"{one.name}{BY_COSINE}", search="cosine") for one in methods]


OPPONENTS = (
    "No head: features as they are, by their cosine. NCA: features standardised, a linear map learnt so that the "
    "nearest images are of the same category, by Euclidean distance. Linear classifier: by the cosine of its logits."
)
"""What captions say of the opponents of the heads."""


def opponents(settings: Settings, dim: int, dim_out: int) -> list[Method]:
    """The features as they are, and NCA."""
    seen = Recipe("raw", dim, dim_out)
    return [
        Method(NONE, replace(seen, dim_out=0), settings, search="cosine"),
        Method(NCA, Recipe("NCA", min(dim_out, dim), 0), settings),
    ]


def linear(dim: int, n: int, schedule: ByClass) -> Method:
    """A linear classifier of ``n`` categories; its rate is chosen as those of the heads are, of larger candidates."""
    return classifier.method(LINEAR, Recipe("raw", dim, 0), n, schedule, schedule.lr)


def answers(
    x: np.ndarray,
    halves: Halves,
    methods: Sequence[Method],
    ks: Sequence[int],
    *,
    n_seeds: int = 1,
    seed: int = 0,
    what: str = "heads",
) -> dict[str, list[Answer]]:
    """Fit ``methods`` on features ``x: (n, dim)`` of the categories that are learnt from; the others ask each other."""
    return asked(fitted(x, halves, methods, n_seeds=n_seeds, seed=seed, what=what), x, halves.codes, ks, what)


def fitted(
    x: np.ndarray, halves: Halves, methods: Sequence[Method], *, n_seeds: int = 1, seed: int = 0, what: str = "heads"
) -> dict[str, list[Fitted]]:
    """Every method fitted on the categories that are learnt from, once for each training."""
    split = Split(0, halves.learnt, halves.queries, seed, held_out=halves.gallery)
    return fit(x, halves.codes, methods, repeated([split], n_seeds), what=what)


def asked(
    several: Mapping[str, Sequence[Fitted]],
    x: np.ndarray,
    codes: np.ndarray,
    ks: Sequence[int],
    what: str = "heads",
    groups: np.ndarray | None = None,
) -> dict[str, list[Answer]]:
    """Fitted methods, asked by the images ``x: (n, dim)`` of other categories; ``codes: (n,)`` of all.

    groups: (n,) a query finds nothing of its own group; itself alone if None.
    """
    groups = np.arange(len(x)) if groups is None else groups
    return ask(several, x, codes, ks, gallery="open", groups=groups, what=f"{what}, queries")


def rates(
    x: np.ndarray,
    halves: Halves,
    methods: Sequence[Method],
    candidates: Sequence[float],
    *,
    n_seeds: int = 1,
    seed: int = 0,
) -> pd.DataFrame:
    """Recall@1 of every method at each learning rate, mean of ``n_seeds`` trainings, on training categories set aside.

    Columns method, lr, loss (mean), and those of :func:`lib.results.rates.choose_middle`, paired over these categories.
    """
    learnt, aside = held_out(halves, seed)
    splits, rows, values = repeated([Split(0, learnt, aside, seed)], n_seeds), [], []
    for lr in candidates:
        several = [replace(one, schedule=replace(one.schedule, lr=lr)) for one in methods]
        what = f"learning rate {lr:g}"
        heads = fit(x, halves.codes, several, splits, what=what)
        for name, found in asked(heads, x, halves.codes, [1], what).items():
            values.append([100 * answer.per_query.values["hit_rate", 1] for answer in found])
            rows.append({"method": name, "lr": lr, "loss": np.mean([answer.health.loss for answer in found])})
    table = choose_middle(pd.DataFrame(rows), values, halves.codes[aside])
    places = {one.name: number for number, one in enumerate(methods)}
    return table.sort_values("method", kind="stable", key=lambda names: names.map(places), ignore_index=True)


def at_rates(methods: Sequence[Method], chosen: pd.DataFrame) -> list[Method]:
    """``methods`` with the learning rates that :func:`rates` chose."""
    lr = best_rates(chosen)
    return [replace(one, schedule=replace(one.schedule, lr=lr[one.name])) for one in methods]
