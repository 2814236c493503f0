"""When a training has gone wrong: its loss is no number, or its weights have outgrown what float32 can tell apart.

The loss alone does not always show it. A head that has run away can send all images to the rim of the ball, or to unit
vectors, where distances, and so the loss, are finite, and no gradient leads back.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

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


class Watch:
    """Looks after networks that are trained side by side: keeps their losses, raises Diverged where one goes wrong.

    Args:
        weights: name → (S, ...) the weights of all networks, which the training changes in place.
        names: of the networks.
        lasts: the last step of each network; what becomes of it later does not matter.
        shapes: of each network, name → the shape of its own weights, which lie first in those of all; all if not given.
    """

    def __init__(
        self,
        weights: dict[str, Tensor],
        names: Sequence[str],
        lasts: Sequence[int],
        shapes: Sequence[Mapping[str, torch.Size]] | None = None,
    ) -> None:
        self.weights, self.names, self.lasts = weights, names, lasts
        self.shapes = shapes or [{name: value.shape[1:] for name, value in weights.items()}] * len(names)
        self.longest = GROWTH * self.norms().clamp_min(1)  # a head may start from 0
        self.good = self.copy()
        self.losses: list[Tensor] = []
        self.checked = 0

    @classmethod
    def of(cls, network: nn.Module, name: str, steps: int) -> "Watch":
        """A watch over one network that is trained for so many steps, where its weights lie now."""
        return cls({key: w[None] for key, w in network.named_parameters() if w.requires_grad}, [name], [steps - 1])

    @property
    def steps(self) -> int:
        """How many there are, of the network that is trained longest."""
        return max(self.lasts) + 1

    def norms(self) -> Tensor:
        """The lengths (S,) of the weights of each network, as they are now."""
        lengths = [value.detach().double().reshape(len(value), -1).norm(dim=1) for value in self.weights.values()]
        return torch.stack(lengths).norm(dim=0)

    def copy(self) -> dict[str, Tensor]:
        """The weights of all networks as they are now."""
        return {name: value.detach().clone() for name, value in self.weights.items()}

    def states(self, rows: Iterable[int], weights: Mapping[str, Tensor] | None = None) -> list[dict[str, Tensor]]:
        """The states of the networks ``rows``, on the CPU, from the weights of all as they are, or as they were."""
        wide = {name: value.detach().cpu() for name, value in (weights or self.weights).items()}
        own = [[(name, (row, *map(slice, shape))) for name, shape in self.shapes[row].items()] for row in rows]
        return [{name: wide[name][part].clone() for name, part in parts} for parts in own]

    def add(self, losses: Tensor) -> None:
        """Note the losses (S,) of one step."""
        self.losses.append(losses.detach())

    def check(self, taken: bool = True) -> None:
        """Raise Diverged for the first network whose loss is not finite, or whose weights have outgrown float32.

        taken: whether the last step was; it is not where its gradient is not finite. Weights that pass count as good.
        """
        if new := self.losses[self.checked :]:
            for step, row in (~torch.stack(new).isfinite()).nonzero().tolist():
                self._blame(row, self.checked + step)
        lost = ~(self.norms() <= self.longest) if taken else torch.ones(len(self.names))
        for row in lost.nonzero()[:, 0].tolist():
            self._blame(row, len(self.losses) - 1)
        self.good, self.checked = self.copy(), len(self.losses)

    def history(self) -> np.ndarray:
        """All losses, (S, steps) float64."""
        return torch.stack(self.losses).double().T.cpu().numpy()

    def state_dict(self) -> dict[str, Any]:
        """The losses and the last good weights, for a checkpoint."""
        return {"losses": self.losses, "good": self.good}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a :meth:`state_dict`."""
        device = next(iter(self.good.values())).device
        self.good = {name: value.to(device) for name, value in state["good"].items()}
        self.losses = [losses.to(device) for losses in state["losses"]]
        self.checked = len(self.losses)

    def _blame(self, row: int, step: int) -> None:
        if step <= self.lasts[row]:
            raise Diverged(self.losses[step][row].item(), step, self.states([row], self.good)[0], self.names[row])
