"""Batches of N classes x d images of each, as a loss over the pairs of a batch needs them (Hyp-ViT, Section 2.2).

What is drawn in step ``i`` depends on the seed and on ``i`` alone, so that a training that was interrupted goes on with
the batches that it would have had.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.training.fit import Schedule


@dataclass(frozen=True)
class ByClass(Schedule):
    """A :class:`~lib.training.fit.Schedule` of batches of ``batch_size / samples`` classes x ``samples`` images.

    The defaults are those of Section 3.2 for ViT-S and DeiT-S. ``samples`` is d; the text has d ≥ 2, and in the
    authors' commands it is 9 on CUB (batch 900) and Cars (882), 2 on SOP and In-Shop (erratum HV-7). An epoch has as
    many batches as would cover the images once. Raises InputError for a value without meaning, and a batch that is not
    a whole number of classes, two at least.
    """

    batch_size: int = 900
    lr: float = 3e-5
    weight_decay: float = 0.01
    samples: int = 2

    def __post_init__(self) -> None:
        checks.values(epochs=self.epochs, batch_size=self.batch_size, lr=self.lr, weight_decay=self.weight_decay)
        checks.two_or_more("samples", self.samples)
        if self.batch_size % self.samples or self.batch_size < 2 * self.samples:
            raise InputError(
                f"batch_size = {self.batch_size} is not two or more classes of samples = {self.samples} images each: "
                f"choose a multiple of {self.samples} from {2 * self.samples} on"
            )

    def batches(self, labels: Tensor, seed: int) -> Iterator[Tensor]:
        """Rows of every batch of the whole training; arguments and errors as in :func:`by_class`."""
        n_classes = self.batch_size // self.samples
        return islice(by_class(labels, n_classes, self.samples, seed), self.epochs * self.steps(len(labels)))


def by_class(labels: ArrayLike, n_classes: int, samples: int, seed: int, start: int = 0) -> Iterator[Tensor]:
    """Rows of one batch after the other without end, from step ``start`` on.

    Args:
        labels: (n,) classes of the images: numbers or names.
        n_classes: N, classes in a batch. All classes take turns, in a new order each lap; those that are left at the
            end of a lap, fewer than N, wait for the next.
        samples: d ≥ 2, different images of each class, drawn anew for every batch.
        seed: decides all of it.
        start: the step to go on with.

    Yields:
        (N·d,) rows, the d images of a class one after the other.

    Raises:
        InputError: where a batch has more classes than there are (HV-7), or a class fewer than d images.

    >>> [rows.tolist() for rows in islice(by_class(list("aabbcc"), 2, 2, seed=3), 2)]
    [[4, 5, 2, 3], [5, 4, 0, 1]]
    """
    names, classes, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    check_classes(names, counts, n_classes, samples)
    return _drawn(classes, counts, n_classes, samples, seed, start)


def check_classes(names: np.ndarray, counts: np.ndarray, n_classes: int, samples: int) -> None:
    """Raise InputError where classes ``names`` (C,) of ``counts`` (C,) images cannot fill a batch."""
    checks.two_or_more("n_classes", n_classes)
    checks.two_or_more("samples", samples)
    if (few := counts < samples).any():
        raise InputError(
            f"{few.sum()} of {len(names)} classes have fewer than samples = {samples} images to learn from, such as "
            f"class {names[few][0]} with {counts[few][0]}: leave them out, or take fewer samples of each class"
        )
    if n_classes > len(names):
        more = -(-n_classes * samples // len(names))
        also = f", or samples = {more} of each" if more <= counts.min() else ""
        raise InputError(
            f"a batch of {n_classes * samples} is {n_classes} classes x {samples} images, but there are only "
            f"{len(names)} classes to learn from: take at most {len(names) * samples} images in a batch{also}"
        )


def _drawn(
    classes: np.ndarray, counts: np.ndarray, n_classes: int, samples: int, seed: int, start: int
) -> Iterator[Tensor]:
    first, per_lap = counts.cumsum() - counts, len(counts) // n_classes
    step = start
    while True:
        lap, place = divmod(step, per_lap)
        turns = np.random.default_rng((seed, 0, lap)).permutation(len(counts))
        chosen = turns[place * n_classes : (place + 1) * n_classes]
        shuffled = np.random.default_rng((seed, 1, step)).random(len(classes))
        order = np.lexsort((shuffled, classes))
        yield torch.from_numpy(order[(first[chosen][:, None] + np.arange(samples)).ravel()])
        step += 1
