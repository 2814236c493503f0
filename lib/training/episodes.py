"""Episodes of the linear prototypes: a support of K images per class, and queries that are not among them.

The paper has K = 5 and M "randomly selected" queries, but neither M nor the number of episodes in an epoch (erratum
LP-8). Here M is the batch size, and an epoch has as many episodes as batches would cover the images once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.errors import InputError
from lib.training.fit import Schedule


@dataclass(frozen=True)
class Episodes(Schedule):
    """A :class:`~lib.training.fit.Schedule` whose batches begin with their support; defaults as in Section III-B.

    ``k``: images of each class in a support (published: 5); ``batch_size``: queries of an episode; ``views``: the rows
    of the features are so many views of the same images, one block of images after the other, and every drawn image
    shows one of its views. A query is never a view of an image of its own support. Raises InputError for a value
    without meaning.
    """

    weight_decay: float = 1e-4
    k: int = 5
    views: int = 1

    def steps(self, n: int) -> int:
        """Episodes in one epoch of ``n`` rows."""
        return super().steps(n // self.views)

    def batches(self, labels: Tensor, seed: int) -> Iterator[Tensor]:
        """Rows of every episode: k of class 0, k of class 1 ..., then the queries, all drawn anew from the seed.

        ``labels: (views * n,)`` classes 0 to N − 1. Fewer queries than ``batch_size`` only where no more images are
        left. Raises InputError where a class has fewer than k + 1 images.
        """
        n = len(labels) // self.views
        labels = labels[:n]
        counts = torch.bincount(labels)
        if (few := counts < self.k + 1).any():
            number = few.nonzero()[0].item()
            raise InputError(
                f"class number {number} has {counts[number]} images to learn from; K = {self.k} needs at least "
                f"{self.k + 1} of each class, as no query is in its own support. Choose a smaller K"
            )
        generator = torch.Generator().manual_seed(seed)
        for _ in range(self.epochs * self.steps(n * self.views)):
            order = torch.randperm(n, generator=generator)
            by_class = order[labels[order].argsort(stable=True)]  # shuffled within each class
            first = counts.cumsum(0) - counts
            support = by_class[(first[:, None] + torch.arange(self.k)).flatten()]
            free = torch.ones(n, dtype=torch.bool)
            free[support] = False
            images = torch.cat([support, order[free[order]][: self.batch_size]])
            yield images + n * torch.randint(self.views, (len(images),), generator=generator)
