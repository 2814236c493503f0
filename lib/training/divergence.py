"""When a training has gone wrong: its loss is no number, or its weights have outgrown what float32 can tell apart.

The loss alone does not always show it. A head that has run away can send all images to the rim of the ball, or to unit
vectors, where distances, and so the loss, are finite, and no gradient leads back.
"""

import math
from collections.abc import Iterable, Sequence

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
    """

    def __init__(self, weights: dict[str, Tensor], names: Sequence[str], lasts: Sequence[float]) -> None:
        self.weights, self.names, self.lasts = weights, names, lasts
        self.longest = longest(weights.values())
        self.good = self.states()
        self.losses: list[Tensor] = []
        self.checked = 0

    def states(self) -> list[dict[str, Tensor]]:
        """The state of every head, on the CPU."""
        copies = {name: value.detach().cpu() for name, value in self.weights.items()}
        return [{name: value[row].clone() for name, value in copies.items()} for row in range(len(self.names))]

    def add(self, losses: Tensor) -> None:
        """Note the losses (S,) of one step, which the weights as they are have given."""
        self.losses.append(losses.detach())

    def check(self) -> None:
        """Raise Diverged for the first head with a loss that is not finite, or whose weights have outgrown float32.

        Between a loss and its step the state counts as good from then on; after the last step it has yet to show it.
        """
        if new := self.losses[self.checked :]:
            for step, row in (~torch.stack(new).isfinite()).nonzero().tolist():
                self._blame(row, self.checked + step)
        for row in (~(norms(self.weights.values()) <= self.longest)).nonzero()[:, 0].tolist():
            self._blame(row, len(self.losses) - 1)
        if new:
            self.good, self.checked = self.states(), len(self.losses)

    def history(self) -> np.ndarray:
        """All losses, (S, steps) float64."""
        return torch.stack(self.losses).double().T.cpu().numpy()

    def _blame(self, row: int, step: int) -> None:
        if step <= self.lasts[row]:
            raise Diverged(self.losses[step][row].item(), step, self.good[row], self.names[row])
