"""How a hash head is trained on frozen features with any loss of :mod:`lib.losses.hashing`, or that of ACIR."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry import Euclidean, Geometry
from lib.heads.hashing import HashHead
from lib.losses.acir import StructureAware
from lib.training import sweep
from lib.training.fit import Schedule
from lib.training.methods import Head
from lib.training.recipes import Recipe


@dataclass(frozen=True)
class Even(Schedule):
    """A schedule whose batches are of one size, up to one image: as many as ``batch_size`` asks for, or more.

    A loss of pairs is a mean over the pairs of a batch. Of 900 images in batches of 128 the last has 4, perhaps without
    a pair of one class, and its step is as long as any. With an eighth of all steps taken like this, 16 bits on drawn
    tiles came to an mAP of 66 (DBDH) and 85 (ACIR), with even batches to 90 and 92.
    """

    def batches(self, labels: Tensor, seed: int) -> Iterator[Tensor]:
        """Rows of every batch, shuffled anew each epoch; ``labels: (n,)`` classes of the images."""
        generator = torch.Generator().manual_seed(seed)
        for _ in range(self.epochs):
            yield from torch.randperm(len(labels), generator=generator).tensor_split(self.steps(len(labels)))


@dataclass(frozen=True)
class Settings(Head):
    """Hash head and loss, a :class:`lib.training.methods.Head`; the length of its output is that of the code.

    loss: what a batch of codes costs; ACIR's with labels alone if not given. kind, hidden: of
    :class:`lib.heads.hashing.HashHead`. start_spread: of its :meth:`start`. binary: embeddings are codes of −1 and +1,
    of which the Euclidean distance ranks as the Hamming distance does, ties included; else what the tanh says. Both
    search one network.

    **Fingerprints.** The last ``fingerprint`` numbers of a row are the image's fingerprint and no feature. A loss that
    ``looks`` gets them as ``prints``, others do not. Take rows raw: scaling would change what looks alike, and the head
    scales the features itself. Fingerprints are not searched.

    **Without a head** (a recipe without output length) the code is the sign of what the reduction gives: of principal
    components, or of NCA's. Raises InputError for a value without meaning.
    """

    loss: sweep.Loss = field(default_factory=StructureAware)
    kind: str = "linear"
    hidden: int = 256
    start_spread: float = 0.5
    fingerprint: int = 0
    binary: bool = field(default=True, compare=False)
    nca_images: int = 2000
    geometry: ClassVar[Geometry] = Euclidean()

    def __post_init__(self) -> None:
        checks.positive("start_spread", self.start_spread)
        checks.whole("hidden", self.hidden)
        checks.values(nca_images=self.nca_images)
        checks.switch("binary", self.binary)
        checks.whole("fingerprint", self.fingerprint, least=0)
        if getattr(self.loss, "looks", False) and not self.fingerprint:
            raise InputError("the loss looks at fingerprints, but rows have none: set fingerprint, or looks = False")

    def make(self, recipe: Recipe, seed: int) -> HashHead:
        """The untrained head of a recipe."""
        return HashHead(
            recipe.dim_in,
            recipe.dim_out,
            kind=self.kind,
            hidden=self.hidden,
            fingerprint=self.fingerprint,
            generator=torch.Generator().manual_seed(seed),
        )

    def start(self, network: HashHead, x: np.ndarray) -> None:
        """Bring each bit of the training images ``x: (m, dim_in)`` to the mean 0 and ``start_spread``."""
        network.start(torch.from_numpy(x).float(), self.start_spread)

    def embed(self, network: HashHead | None, values: Tensor) -> Tensor:
        """Codes of reduced features ``values: (n, dim_in)``, (n, bits); 0 counts as +1."""
        h = values[:, : values.shape[1] - self.fingerprint] if network is None else network(values)
        return torch.where(h >= 0, 1.0, -1.0) if self.binary else h.float()
