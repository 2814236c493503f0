"""Prototypes of a few labelled images, and the loss that pulls a query to its own (Linear prototypes, Section II-B).

The paper compares by squared Euclidean distance in training (Equation 3) and by cosine in search (Equation 5), so what
the norm of an embedding has learnt is thrown away (erratum LP-6). Here a :class:`Comparison` says how a query and a
prototype are compared, in training as in search, and which mean a prototype is.
"""

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lib import checks
from lib.errors import InputError
from lib.geometry import Euclidean, Geometry, PoincareBall, Sphere
from lib.losses.batch import check, image_mean, reordered, which

NAMES = ("squared euclidean", "euclidean", "cosine", "poincare")


@dataclass(frozen=True)
class Comparison:
    """How an embedding is compared with a prototype.

    ============================  =======================  ==========================================
    name                          prototype                dissimilarity
    ============================  =======================  ==========================================
    squared euclidean             average                  d²: the paper's Equations 2 and 3
    euclidean                     average                  d: the paper's Fig. 1
    cosine                        direction of the sum     1 − cos, the order of the paper's search
    poincare                      gyromidpoint             d in the ball, as Khrulkov et al. (2020)
    ============================  =======================  ==========================================

    ``c`` is the curvature of the ball (−c). Raises InputError for another name, and a c that is not a number ≥ 0.

    >>> support = torch.tensor([[[0.0, 0.0], [2.0, 0.0]], [[0.0, 4.0], [2.0, 4.0]]])  # two classes, K = 2
    >>> squared = Comparison("squared euclidean")
    >>> squared.dissimilarity(torch.tensor([[1.0, 1.0]]), squared.prototypes(support))
    tensor([[1., 9.]])
    """

    name: str = "squared euclidean"
    c: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise InputError(f'unknown comparison "{self.name}": choose one of {", ".join(NAMES)}')
        checks.not_negative("c", self.c)

    @property
    def geometry(self) -> Geometry:
        """The space in which embeddings are points, for training and for search."""
        return _geometry(self.name, self.c)

    def prototypes(self, support: Tensor) -> Tensor:
        """Equation 2: ``support: (..., N, K, d)``, K embeddings of each of N classes, to (..., N, d)."""
        return self.geometry.mean(support)

    def dissimilarity(self, query: Tensor, prototypes: Tensor) -> Tensor:
        """``query: (..., M, d)`` against ``prototypes: (..., N, d)``, returns (..., M, N)."""
        distance = self.geometry.pairwise(query, prototypes)
        if self.name == "squared euclidean":
            return distance.square()
        # 1 − cos a = 2 sin²(a/2) keeps its digits for small angles.
        return 2 * (distance / 2).sin().square() if self.name == "cosine" else distance


@cache
def _geometry(name: str, c: float) -> Geometry:
    """Made once, and not in every step: a ball reads and checks its c."""
    return {"cosine": Sphere(), "poincare": PoincareBall(c)}.get(name, Euclidean())


def log_likelihood(
    dissimilarity: Tensor, labels: Tensor, *, valid: Tensor | None = None, temperature: float = 1.0
) -> Tensor:
    """Equation 4: the mean over the queries of −log softmax(−dissimilarity/temperature) of the true class.

    Args:
        dissimilarity: (..., M, N).
        labels: (..., M) the class of each query, 0 to N − 1.
        valid: (..., M) bool, which queries count; all if None.
        temperature: from 1e-6 on (published: none, which is 1).

    Returns:
        (...), 0 where no query counts.

    Raises InputError for labels that are no such numbers, and a temperature without meaning.
    """
    n = dissimilarity.shape[-1]
    checks.values(temperature=temperature)
    check(dissimilarity, labels, n, f"there are {n} classes")
    logits = (-dissimilarity / temperature).flatten(0, -2)
    each = cross_entropy(logits, labels.flatten().long(), reduction="none").view(labels.shape)
    return image_mean(each, valid)


@dataclass(frozen=True)
class EpisodeLoss:
    """The loss of an episode: the first ``k`` rows of each class are its support, all others are queries.

    Raises InputError for a value without meaning.
    """

    k: int
    n_classes: int
    comparison: Comparison = Comparison()
    temperature: float = 1.0
    by_distance = recordable = True
    """See :data:`lib.training.stacks.Loss`."""

    def __post_init__(self) -> None:
        checks.values(**vars(self))

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        """Embeddings (..., B, d): the mean negative log-likelihood of the queries, (...).

        Raises InputError for a batch that does not fit, and for a class with fewer than k rows.
        """
        check(h, labels, self.n_classes, f"the episode has {self.n_classes} classes")
        valid = which(labels, valid)
        of_class = valid[..., None] & (labels[..., None] == torch.arange(self.n_classes, device=labels.device))
        number = of_class.cumsum(-2).gather(-1, labels[..., None].long())[..., 0]  # of a row in its class, from 1 on
        # Supports class by class, then queries: an episode that stands like that already stays as it is.
        order = labels.masked_fill(~valid | (number > self.k), self.n_classes).argsort(dim=-1, stable=True)
        h, labels, valid = reordered(order, h, labels, valid)
        n = self.k * self.n_classes
        self._check_support(labels[..., :n], valid[..., n:].any(-1, keepdim=True))
        prototypes = self.comparison.prototypes(h[..., :n, :].unflatten(-2, (self.n_classes, self.k)))
        compared = self.comparison.dissimilarity(h[..., n:, :], prototypes)
        return log_likelihood(compared, labels[..., n:], valid=valid[..., n:], temperature=self.temperature)

    def _check_support(self, labels: Tensor, counts: Tensor) -> None:
        """Raise InputError unless the support ``labels: (..., n)`` has k rows of each class; not looked at on a GPU."""
        if not checks.at_hand(labels):
            return
        wanted = torch.arange(self.n_classes).repeat_interleave(self.k)[: labels.shape[-1]]
        if len(wanted) < self.k * self.n_classes or ((labels != wanted) & counts).any():
            raise InputError(
                f"a class has fewer than k = {self.k} rows for its support: take batches of lib.training.episodes"
            )
