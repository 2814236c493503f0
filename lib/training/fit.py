"""Fit one head on cached features."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from lib import checks
from lib.training import loop
from lib.training.divergence import Watch


@dataclass(frozen=True)
class Schedule:
    """How long and how fast a head is trained; the defaults are those of Hyper-DINO, section 3.2.

    Raises InputError for a value without meaning.
    """

    epochs: int = 100
    batch_size: int = 128
    lr: float = 1e-3
    weight_decay: float = 1e-5

    def __post_init__(self) -> None:
        checks.values(**vars(self))

    def steps(self, n: int) -> int:
        """Batches in one epoch of ``n`` images."""
        return math.ceil(n / self.batch_size)

    def equal_steps(self, n: int, whole: int) -> "Schedule":
        """This schedule for ``n`` images, its epochs multiplied so that it takes the steps of ``whole`` images.

        Without it a curve over the number of images or labels is one over the number of steps as well.

        >>> Schedule(epochs=10, batch_size=100).equal_steps(200, 1000).epochs
        50
        """
        return replace(self, epochs=max(1, round(self.epochs * self.steps(whole) / self.steps(n))))

    def batches(self, labels: Tensor, seed: int) -> Iterator[Tensor]:
        """Rows of every batch of the whole training, shuffled anew each epoch; the last of an epoch may be smaller.

        ``labels: (n,)`` classes of the images. The paper does not say what happens to the last batch (HD-14).
        """
        generator = torch.Generator().manual_seed(seed)
        for _ in range(self.epochs):
            yield from torch.randperm(len(labels), generator=generator).split(self.batch_size)


def fit_head(
    head: nn.Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    x: np.ndarray,
    labels: np.ndarray,
    schedule: Schedule,
    *,
    seed: int,
) -> list[float]:
    """Train ``head`` in place with Adam; :mod:`lib.training.sweep` does the same with many heads at once.

    Args:
        head: maps features (n, dim) to embeddings; trained on the device that it is on.
        loss: takes the embeddings of a batch and its labels, returns a scalar.
        x: (n, dim) float32 features.
        labels: (n,) integer classes.
        schedule: epochs, batch size, learning rate, weight decay.
        seed: decides the order of the images.

    Returns:
        The mean loss of every epoch.

    Raises:
        Diverged: when the loss is not finite or the weights have outgrown float32; says where, gives the norms of the
            parameters, keeps the last good state.
    """
    device = next(head.parameters()).device
    features, classes = torch.from_numpy(x).to(device), torch.from_numpy(labels).to(device)
    optimiser = torch.optim.Adam(head.parameters(), lr=schedule.lr, weight_decay=schedule.weight_decay, fused=True)
    watch = Watch.of(head, "the head", schedule.epochs * schedule.steps(len(x)))

    def cost(rows: Tensor) -> Tensor:
        return loss(head(features[rows]), classes[rows])

    return loop.train(cost, schedule.batches(torch.from_numpy(labels), seed), optimiser, watch, schedule.epochs)
