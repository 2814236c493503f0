"""Fit one head on cached features."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn


class Diverged(RuntimeError):
    """A loss stopped being a number; carries the step and the last state that was still good."""

    def __init__(self, message: str, step: int, last_good: dict[str, Tensor]) -> None:
        super().__init__(message)
        self.step = step
        self.last_good = last_good


@dataclass(frozen=True)
class Schedule:
    """How long and how fast a head is trained; the defaults are those of Hyper-DINO, section 3.2."""

    epochs: int = 100
    batch_size: int = 128
    lr: float = 1e-3
    weight_decay: float = 1e-5


def fit_head(
    head: nn.Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    x: np.ndarray,
    labels: np.ndarray,
    schedule: Schedule,
    *,
    seed: int,
) -> list[float]:
    """Train ``head`` in place with Adam on shuffled batches; the last batch of an epoch may be smaller (HD-14).

    Args:
        head: maps features (n, dim) to embeddings.
        loss: takes the embeddings of a batch and its labels, returns a scalar.
        x: (n, dim) float32 features.
        labels: (n,) integer classes.
        schedule: epochs, batch size, learning rate, weight decay.
        seed: decides the order of the images.

    Returns:
        The mean loss of every epoch.

    Raises:
        Diverged: when the loss is not finite; says where, gives the parameter norms, keeps the last good state.
    """
    generator = torch.Generator().manual_seed(seed)
    features, classes = torch.from_numpy(x), torch.from_numpy(labels)
    optimiser = torch.optim.Adam(head.parameters(), lr=schedule.lr, weight_decay=schedule.weight_decay)
    history: list[float] = []
    for epoch in range(schedule.epochs):
        last_good = {name: value.clone() for name, value in head.state_dict().items()}
        total = 0.0
        for batch, rows in enumerate(torch.randperm(len(x), generator=generator).split(schedule.batch_size)):
            value = loss(head(features[rows]), classes[rows])
            if not math.isfinite(value.item()):
                step = epoch * math.ceil(len(x) / schedule.batch_size) + batch
                norms = ", ".join(f"{name} {tensor.norm():.3g}" for name, tensor in last_good.items())
                raise Diverged(
                    f"the loss is {value.item()} at step {step} (epoch {epoch}); norms when the epoch began: {norms}",
                    step,
                    last_good,
                )
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
            total += value.item() * len(rows)
        history.append(total / len(x))
    return history
