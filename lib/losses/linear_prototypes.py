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


def log_likelihood(dissimilarity: Tensor, labels: Tensor, valid: Tensor, temperature: float = 1.0) -> Tensor:
    """Equation 4: the mean over the queries of −log softmax(−dissimilarity/temperature) of the true class.

    Args:
        dissimilarity: (..., M, N).
        labels: (..., M) the class of each query, 0 to N − 1.
        valid: (..., M) bool, which queries count.
        temperature: from 1e-6 on (published: none, which is 1).

    Returns:
        (...), 0 where no query counts.

    Raises InputError for labels that are no such numbers, and a temperature without meaning.
    """
    n = dissimilarity.shape[-1]
    checks.values(temperature=temperature)
    checks.codes("labels", labels, n, f"there are {n} classes")
    logits = (-dissimilarity / temperature).flatten(0, -2)
    each = cross_entropy(logits, labels.flatten().long(), reduction="none").view(labels.shape)
    return (each * valid).sum(-1) / valid.sum(-1).clamp_min(1)


@dataclass(frozen=True)
class EpisodeLoss:
    """The loss of an episode whose first rows are its support, K of class 0, K of class 1 ..., and the rest queries.

    Called as a stack of :mod:`lib.training.sweep` is: embeddings (..., B, d), labels (..., B), valid (..., B).
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

    def __call__(self, h: Tensor, labels: Tensor, valid: Tensor | None = None) -> Tensor:
        """The mean negative log-likelihood of the queries, (...)."""
        n = self.k * self.n_classes
        support, query = h[..., :n, :].unflatten(-2, (self.n_classes, self.k)), h[..., n:, :]
        counts = torch.ones_like(labels, dtype=torch.bool) if valid is None else valid
        compared = self.comparison.dissimilarity(query, self.comparison.prototypes(support))
        return log_likelihood(compared, labels[..., n:], counts[..., n:], self.temperature)
