"""A method: features → reduction → head → distance. What it is, what it becomes when fitted, and what it answers.

A paper brings its head (:class:`Head`): what the network is, what it learns from, and how its output is stored.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from lib.errors import InputError
from lib.geometry import Euclidean, Geometry, PoincareBall, Sphere
from lib.heads import Reduction
from lib.metrics import retrieval
from lib.training import sweep
from lib.training.fit import Schedule
from lib.training.recipes import Recipe
from lib.training.splits import Split

SEARCHES = ("own", "cosine", "euclidean")
"""How embeddings are compared: by the distance that the head was trained with, by cosine, or by Euclidean distance."""

RIM = 0.99
"""A point is at the rim from this share of the radius on that its head may reach: gradients there are next to zero."""


@dataclass(frozen=True, eq=False)
class Lessons:
    """What a head learns from: features (rows, n) and classes (rows,), the loss of a batch, and the schedule."""

    x: np.ndarray
    labels: np.ndarray
    loss: sweep.Loss
    schedule: Schedule


class Head(ABC):
    """A paper's head: a dataclass of frozen settings, equal to others that do the same.

    geometry: where embeddings live. loss: what a batch of them costs. half: round what goes in and out to float16.
    nca_images: as in :class:`lib.heads.reduction.Reduction`. reach: the part of the ball's radius that embeddings may
    reach. at_once: how many heads are trained side by side on a CPU.
    """

    geometry: Geometry
    loss: sweep.Loss
    half: bool = False
    nca_images: int = 2000
    at_once: int = sweep.CHUNK
    reach: float = 1.0

    @abstractmethod
    def make(self, recipe: Recipe, seed: int) -> nn.Module:
        """The untrained network."""

    def start(self, network: nn.Module, x: np.ndarray) -> None:  # noqa: B027, most heads begin as they are made
        """Fit the untrained network to the reduced training images ``x: (m, n)``, without their labels."""

    def lessons(self, views: np.ndarray, labels: np.ndarray, schedule: Schedule, where: str) -> Lessons:
        """From reduced features of all views ``(V, m, n)`` and labels ``(m,)`` from 0 on; ``where`` for messages.

        All views one after the other, in as many steps as the images alone would take.
        """
        x = np.concatenate(list(views))
        return Lessons(x, np.tile(labels, len(views)), self.loss, schedule.equal_steps(len(x), len(labels)))

    def embed(self, network: nn.Module | None, values: Tensor) -> Tensor:
        """Embeddings of reduced features ``values: (m, n)`` as they are stored; without a network the values."""
        return values if network is None else network(values)


@dataclass(frozen=True)
class Method:
    """Features → reduction and length (``recipe``) → head → distance (``search``, one of :data:`SEARCHES`).

    head: of a paper; it is not used where the recipe has no output length. augmented: the head learns from all views
    of an image that there are, not only from the image itself.
    """

    name: str
    recipe: Recipe
    head: Head
    schedule: Schedule = field(default_factory=Schedule)
    search: str = "own"
    augmented: bool = True

    def __post_init__(self) -> None:
        if self.search not in SEARCHES:
            raise InputError(f"search = {self.search!r} is unknown; choose one of {', '.join(SEARCHES)}")

    @property
    def training(self) -> Hashable:
        """Methods in which this is equal are one network, searched in several ways."""
        return self.recipe, self.head, self.schedule, self.augmented


def of_recipes(recipes: Sequence[Recipe], head: Head, schedule: Schedule | None = None) -> list[Method]:
    """Each recipe, once, as a method of its name; ``schedule``: Hyper-DINO's if not given, baselines need none."""
    return [Method(recipe.name, recipe, head, schedule or Schedule()) for recipe in dict.fromkeys(recipes)]


@dataclass(frozen=True)
class Health:
    """How a training ended: the mean loss of the last epoch, training images at the rim (percent), steps taken.

    NaN where there is no head, or no rim.
    """

    loss: float = np.nan
    rim: float = np.nan
    steps: int = 0


@dataclass(frozen=True, eq=False)
class Fitted:
    """A method fitted on one split: its map from features to embeddings, the loss of every epoch, and its health."""

    method: Method
    split: Split
    reduction: Reduction
    network: nn.Module | None
    history: list[float]
    health: Health

    @property
    def geometry(self) -> Geometry:
        """Where the embeddings live: flat space without a head."""
        return Euclidean() if self.network is None else self.method.head.geometry

    @property
    def space(self) -> Geometry:
        """The geometry whose distance ranks the gallery."""
        return {"own": self.geometry, "cosine": Sphere(), "euclidean": Euclidean()}[self.method.search]

    def embed(self, x: np.ndarray) -> Tensor:
        """Embeddings (n, d) of features ``x: (n, dim)``."""
        return self.placed(self.reduction(x))

    def placed(self, reduced: np.ndarray) -> Tensor:
        """Embeddings (n, d) of what the reduction gave, ``reduced: (n, dim_in)``."""
        return _embed(self.method.head, self.network, reduced)


@dataclass(frozen=True, eq=False)
class Answer:
    """One method on one split: the values of every query, norms of the gallery's embeddings, health of the training."""

    method: Method
    split: Split
    health: Health
    history: list[float]
    norms: np.ndarray
    per_query: retrieval.PerQuery


@torch.inference_mode()
def _embed(head: Head, network: nn.Module | None, reduced: np.ndarray) -> Tensor:
    return head.embed(network, torch.from_numpy(reduced))


def measured(
    head: Head, network: nn.Module | None, reduced: np.ndarray, lessons: Lessons | None, history: Sequence[float]
) -> Health:
    """The health of a ``network`` whose training images are ``reduced: (m, n)``; see :class:`Health`."""
    if network is None or lessons is None:
        return Health()
    steps = lessons.schedule.epochs * lessons.schedule.steps(len(lessons.x))
    return Health(history[-1] if history else np.nan, at_rim(head, network, reduced), steps)


def at_rim(head: Head, network: nn.Module, reduced: np.ndarray) -> float:
    """How many of the images ``reduced: (m, n)`` a ``network`` sends to the rim (percent); NaN where there is none."""
    return points_at_rim(head, _embed(head, network, reduced))


def points_at_rim(head: Head, points: Tensor) -> float:
    """How many of the embeddings ``points: (m, d)`` of a head are at the rim (percent); NaN where there is none."""
    if not isinstance(head.geometry, PoincareBall) or not head.geometry.c:
        return np.nan
    radius = head.geometry.c**0.5 * points.norm(dim=-1)
    return 100 * (radius >= RIM * head.reach).double().mean().item()
