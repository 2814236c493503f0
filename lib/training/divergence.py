"""When a training has gone wrong: its loss is no number, or its weights have outgrown what float32 can tell apart.

The loss alone does not always show it. A head that has run away can send all images to the rim of the ball, or to unit
vectors, where distances, and so the loss, are finite, and no gradient leads back.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

GROWTH = 2.0**24
"""Weights that have become so many times longer have lost their start: next to them float32 rounds it away."""
SHOWN = 10
"""So many norms are read; an encoder has hundreds."""


class Diverged(RuntimeError):
    """A training that has gone wrong; carries the loss, the step and the last state that was still good.

    The message has the norms of that state, the largest first, and :data:`SHOWN` of them at most.
    """

    def __init__(self, loss: float, step: int, last_good: dict[str, Tensor], who: str = "the head") -> None:
        lengths = sorted(((tensor.norm().item(), name) for name, tensor in last_good.items()), reverse=True)
        norms = ", ".join(f"{name} {length:.3g}" for length, name in lengths[:SHOWN])
        smaller = f" and {len(lengths) - SHOWN} smaller ones" if len(lengths) > SHOWN else ""
        hidden = ", but its weights or their gradient have outgrown float32" if math.isfinite(loss) else ""
        super().__init__(
            f"the loss of {who} is {loss:.4g} at step {step}{hidden}; norms of the last good state: {norms}{smaller}. "
            "Try a lower learning rate"
        )
        self.loss = loss
        self.step = step
        self.last_good = last_good
        self.who = who

    def __reduce__(self) -> tuple:
        return type(self), (self.loss, self.step, self.last_good, self.who)  # to come home from another process


def norms(weights: Iterable[Tensor]) -> Tensor:
    """The lengths (S,) of the weights of S networks that are stacked in ``weights``: (S, ...) each."""
    return torch.stack([value.detach().double().reshape(len(value), -1).norm(dim=1) for value in weights]).norm(dim=0)


def longest(weights: Iterable[Tensor]) -> Tensor:
    """The lengths (S,) that these weights, as they are at the start, must not outgrow; a head may start from 0."""
    return GROWTH * norms(weights).clamp_min(1)


class Watch:
    """Looks after heads that are trained side by side: keeps their losses, and raises Diverged where one goes wrong.

    Args:
        weights: name → (S, ...) the weights of all heads, which the training changes in place.
        names: of the heads.
        lasts: the last step of each head; what becomes of it later does not matter.
        shapes: of each head, name → the shape of its own weights, which lie first in those of all; all if not given.
    """

    def __init__(
        self,
        weights: dict[str, Tensor],
        names: Sequence[str],
        lasts: Sequence[float],
        shapes: Sequence[Mapping[str, torch.Size]] | None = None,
    ) -> None:
        self.weights, self.names, self.lasts = weights, names, lasts
        self.shapes = shapes or [{name: value.shape[1:] for name, value in weights.items()}] * len(names)
        self.longest = longest(weights.values())
        self.good = self.copy()
        self.losses: list[Tensor] = []
        self.checked = 0

    def copy(self) -> dict[str, Tensor]:
        """The weights of all heads as they are now."""
        return {name: value.detach().clone() for name, value in self.weights.items()}

    def states(self, rows: Iterable[int], weights: Mapping[str, Tensor] | None = None) -> list[dict[str, Tensor]]:
        """The states of the heads ``rows``, on the CPU, from the weights of all as they are, or as they were."""
        wide = {name: value.detach().cpu() for name, value in (weights or self.weights).items()}
        own = [[(name, (row, *map(slice, shape))) for name, shape in self.shapes[row].items()] for row in rows]
        return [{name: wide[name][part].clone() for name, part in parts} for parts in own]

    def add(self, losses: Tensor) -> None:
        """Note the losses (S,) of one step, which the weights as they are have given."""
        self.losses.append(losses.detach())

    def check(self, weights: dict[str, Tensor] | None = None) -> None:
        """Raise Diverged for the first head with a loss that is not finite, or whose weights have outgrown float32.

        weights: a copy of those that gave the last loss, if they have changed since. They count as good from then on;
        what follows the last step has yet to show it.
        """
        if new := self.losses[self.checked :]:
            for step, row in (~torch.stack(new).isfinite()).nonzero().tolist():
                self._blame(row, self.checked + step)
        for row in (~(norms((weights or self.weights).values()) <= self.longest)).nonzero()[:, 0].tolist():
            self._blame(row, len(self.losses) - 1)
        if new:
            self.good, self.checked = weights or self.copy(), len(self.losses)

    def history(self) -> np.ndarray:
        """All losses, (S, steps) float64."""
        return torch.stack(self.losses).double().T.cpu().numpy()

    def _blame(self, row: int, step: int) -> None:
        if step <= self.lasts[row]:
            raise Diverged(self.losses[step][row].item(), step, self.states([row], self.good)[0], self.names[row])
