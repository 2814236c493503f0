"""One small head trained with every combination of the values of its loss, kept at every stage: for teaching."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, vmap

from lib import checks
from lib.errors import InputError
from lib.heads import HyperbolicMapper
from lib.losses import hyper_dino
from lib.progress import track
from lib.training.divergence import Watch


@dataclass(frozen=True, eq=False)
class Grid:
    """Embeddings of the same images, by what their mapper was trained with.

    Attributes:
        m0, alpha, norm_weight: values of the loss, see :func:`lib.losses.hyper_dino.contrastive`.
        steps: numbers of training steps at which the embeddings were kept.
        labels: (n,) integer classes.
        embeddings: (m0, alpha, norm_weight, steps, n, d).
        head: the untrained mapper that all of them start from.
    """

    m0: tuple[float, ...]
    alpha: tuple[float, ...]
    norm_weight: tuple[float, ...]
    steps: tuple[int, ...]
    labels: Tensor
    embeddings: Tensor
    head: HyperbolicMapper

    def at(self, m0: float, alpha: float, norm_weight: float, step: int) -> Tensor:
        """The embedding (n, d) trained with these values; InputError for a value that was not trained."""
        index = [
            _index(name, values, value)
            for name, values, value in (
                ("m0", self.m0, m0),
                ("alpha", self.alpha, alpha),
                ("norm_weight", self.norm_weight, norm_weight),
                ("step", self.steps, step),
            )
        ]
        return self.embeddings[tuple(index)]


def _index(name: str, values: Sequence[float], value: float) -> int:
    """Where ``value`` stands; a slider adds up its steps, so the last digit may differ."""
    found = np.flatnonzero(np.isclose(values, value, rtol=1e-6, atol=1e-9))
    if not len(found):
        raise InputError(f"{name} = {value:g} was not trained: choose one of {', '.join(f'{v:g}' for v in values)}")
    return int(found[0])


def fit(
    head: HyperbolicMapper,
    x: np.ndarray,
    labels: np.ndarray,
    m0: Sequence[float],
    alpha: Sequence[float],
    norm_weight: Sequence[float],
    steps: Sequence[int],
    lr: float = 1e-3,
    weight_decay: float = 1e-5,
) -> Grid:
    """Train a copy of ``head`` for every combination of values; every step sees all images.

    A copy ends as :func:`lib.training.fit.fit_head` would leave it with a batch of all images, up to rounding.

    Args:
        head: maps (n, dim) to (n, d); left as it is.
        x: (n, dim) float32 features.
        labels: (n,) integer classes.
        m0, alpha, norm_weight: values of the loss.
        steps: when to keep the embeddings, increasing; 0 is before training.
        lr, weight_decay: of Adam; the defaults are the published values.

    Raises:
        InputError: for a value without meaning.
        Diverged: when a loss is not finite or weights have outgrown float32; names the values and the step.
    """
    for name, given in {"m0": m0, "alpha": alpha, "norm_weight": norm_weight}.items():
        checks.several(name, given, checks.not_negative)
    checks.several("steps", steps, partial(checks.whole, least=0))
    checks.values(lr=lr, weight_decay=weight_decay)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that the result does not depend on how many processors there are
    features, classes = torch.from_numpy(x), torch.from_numpy(labels)
    every = list(product(m0, alpha, norm_weight))
    parts = [every[start : start + 64] for start in range(0, len(every), 64)]  # these fit into a processor's cache
    shown = track(parts, total=len(every), what="values of the loss", unit="heads", size=len)
    try:
        kept = torch.cat([_fit(head, features, classes, torch.tensor(p), steps, lr, weight_decay) for p in shown])
    finally:
        torch.set_num_threads(threads)
    shape = (len(m0), len(alpha), len(norm_weight), *kept.shape[1:])
    return Grid(tuple(m0), tuple(alpha), tuple(norm_weight), tuple(steps), classes, kept.reshape(shape), head)


def _fit(
    head: HyperbolicMapper,
    x: Tensor,
    labels: Tensor,
    values: Tensor,
    steps: Sequence[int],
    lr: float,
    weight_decay: float,
) -> Tensor:
    """Embeddings (heads, steps, n, d) of heads trained with ``values: (heads, 3)``."""
    weights = {
        name: value.detach().repeat(len(values), *[1] * value.ndim).requires_grad_()
        for name, value in head.state_dict().items()
    }
    apply = vmap(lambda state, batch: functional_call(head, state, (batch,)), in_dims=(0, None))
    optimiser = torch.optim.Adam(weights.values(), lr=lr, weight_decay=weight_decay, fused=True)
    m0, alpha, norm_weight = values.unbind(-1)
    names = ["the head with m0 {:g}, alpha {:g}, norm_weight {:g}".format(*each) for each in values.tolist()]
    watch = Watch(weights, names, [max(steps)] * len(names))
    kept = []
    for step in range(max(steps) + 1):
        h = apply(weights, x)
        if step in steps:
            kept.append(h.detach())
        loss = hyper_dino.contrastive(
            h, labels.expand(len(values), -1), head.geometry, m0=m0, alpha=alpha, norm_weight=norm_weight
        )
        watch.add(loss.total)
        if step in steps:
            watch.check()
        optimiser.zero_grad()
        loss.total.sum().backward()
        optimiser.step()
    return torch.stack(kept, dim=1)
