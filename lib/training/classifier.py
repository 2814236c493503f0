"""The fair opponent of every head that learns from labels: one linear layer, cross-entropy, search in its output."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from torch import Generator, Tensor, nn

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry, Sphere
from lib.heads import PrototypeEncoder
from lib.losses.linear_prototypes import log_likelihood
from lib.training.fit import Schedule
from lib.training.methods import Head, Method
from lib.training.recipes import Recipe

RANKINGS = ("logits", "probability")
"""What of a classifier's output two images are compared by."""


def method(
    name: str,
    recipe: Recipe,
    n_classes: int,
    schedule: Schedule,
    lr: float,
    ranking: str = "logits",
    half: bool = False,
) -> Method:
    """The classifier that sees what a head sees, in as many steps of the same size, at a learning rate of its own.

    A single layer, it needs another rate than a head to come as far.

    Args:
        recipe: of the head, whose output length is replaced by the number of classes.
        schedule: of the head; of episodes, epochs and batches alone count.
        ranking, half: as in :class:`Settings`.
    """
    steps = Schedule(schedule.epochs, schedule.batch_size, lr, schedule.weight_decay)
    return Method(name, replace(recipe, dim_out=n_classes), Settings(ranking, half), steps)


@dataclass(frozen=True)
class CrossEntropy:
    """The mean over the images of −log softmax(logits) of the true class, of logits (..., B, C)."""

    recordable = True

    def __call__(self, logits: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        """The mean of the images that count, (...); 0 where none does."""
        return log_likelihood(-logits, labels, valid=valid)


@dataclass(frozen=True)
class Settings(Head):
    """A linear classifier as a :class:`lib.training.methods.Head`; the length of its output is the number of classes.

    ``ranking``: one of :data:`RANKINGS`. "logits": the cosine of the logits, centred for each image, since softmax does
    not see what is added to all of them. "probability": the square roots of the class probabilities are unit vectors
    whose cosine is the Bhattacharyya coefficient of two images. Both search one network, so settings that differ in
    nothing else are equal, and trained once.
    Raises InputError for a value without meaning.
    """

    ranking: str = field(default="logits", compare=False)
    half: bool = False
    geometry: ClassVar[Geometry] = Sphere()
    loss: ClassVar[CrossEntropy] = CrossEntropy()

    def __post_init__(self) -> None:
        checks.values(half=self.half)
        if self.ranking not in RANKINGS:
            raise InputError(f"ranking = {self.ranking!r} is unknown; choose one of {', '.join(RANKINGS)}")

    def make(self, recipe: Recipe, seed: int) -> PrototypeEncoder:
        """The untrained layer of a recipe, ``W x + b``."""
        return PrototypeEncoder(recipe.dim_in, recipe.dim_out, hidden=0, generator=Generator().manual_seed(seed))

    def embed(self, network: nn.Module | None, values: Tensor) -> Tensor:
        """Embeddings of reduced features ``values: (n, dim_in)`` by the ranking, the features without a ``network``."""
        if network is None:
            return values
        logits = network(values)
        if self.ranking == "logits":
            return logits - logits.mean(-1, keepdim=True)
        return (logits.log_softmax(-1) / 2).exp()
