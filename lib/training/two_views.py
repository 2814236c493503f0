"""Train encoder and head together by a loss over two views of every image (Climbing the Label Tree, Section 4.2).

As in :mod:`lib.training.finetune`, the encoder's first layer and its batch norm stay as they are, what is random in a
step depends on the seed and the step alone, and several processes may share every batch
(:mod:`lib.training.together`). Views are "standard color/blur/crop augmentations" (Section 3.4) of which
the paper prints no amounts: random crops, mirrored half of the time; :class:`Augmented` changes colour and blurs too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from lib import checks
from lib.datasets.pixels import decode
from lib.datasets.table import ImageTable
from lib.training import changes, checkpoint, label_tree, together
from lib.training.divergence import Diverged
from lib.training.finetune import adamw, thaw
from lib.training.photos import Preparation, random_views
from lib.training.together import fabric, follow, part

if TYPE_CHECKING:
    from lightning_fabric import Fabric

KEPT_EVERY = 20
"""Steps between two checkpoints; an interruption loses no more."""


@dataclass(frozen=True)
class Settings:
    """How long and how fast; rates and decay are those of Section 4.2 (published: 100 epochs, batches of 256).

    steps: of the optimiser. batch_size: images, each in two views. lr: of the encoder; head_lr: of the head.
    hidden, dim_out: of the head. Raises InputError for a value without meaning.
    """

    steps: int = 100
    batch_size: int = 256
    lr: float = 1e-4
    head_lr: float = 1e-3
    weight_decay: float = 1e-4
    hidden: int = 2048
    dim_out: int = 256

    def __post_init__(self) -> None:
        checks.values(**vars(self))

    def rate(self, step: int) -> float:
        """The share of both learning rates in one step, as :meth:`lib.training.label_tree.Schedule.rate`."""
        return label_tree.Schedule().rate(step, self.steps)


@dataclass(frozen=True)
class Augmented(Preparation):
    """Training crops that change in colour four times out of five and are blurred half of the time.

    color: how far brightness, contrast and saturation, changed in this order, may go from 1; then the hue goes a
    quarter as far. (torchvision draws an order for each image.) blur: the least and most standard deviation, in pixels.
    Test images are untouched. The amounts are SimCLR's at half strength (Chen et al. 2020), as tiles differ in stain
    already. Raises InputError as above.
    """

    color: float = 0.4
    blur: tuple[float, float] = (0.1, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.fraction("color", self.color)
        checks.pair("blur", self.blur, checks.positive)

    def varied(self, x: Tensor, u: Tensor) -> Tensor:
        """Crops mirrored as :meth:`lib.training.photos.Preparation.varied`, then changed in colour, and blurred."""
        x, u = super().varied(x, u) / 255, u.double()
        coloured, blurred = u[:, 1] < 0.8, (u[:, 2] < 0.5).nonzero()[:, 0]
        amounts = coloured[:, None] * self.color * (2 * u[:, 3:7] - 1)
        x = changes.recoloured(x, *(1 + amounts[:, :3]).T, amounts[:, 3] / 4)
        width = 2 * round(self.size / 20) + 1  # about a tenth of the image, as SimCLR has it, and odd
        low, high = self.blur
        if len(blurred):
            x[blurred] = changes.blurred(x[blurred], low + (high - low) * u[blurred, 7], width)
        return (255 * x).round().byte()


def train(
    encoder: nn.Module,
    head: nn.Module,
    loss: nn.Module,
    table: ImageTable,
    classes: np.ndarray,
    settings: Settings,
    preparation: Preparation,
    *,
    seed: int,
    device: str = "auto",
    store: Path | None = None,
    what: str = "two views",
) -> tuple[nn.Sequential, list[float]]:
    """Train ``encoder`` and ``head`` in place with AdamW; the two as one network, and the loss of every step.

    Args:
        encoder: a timm model, images (b, 3, size, size) to features (b, dim).
        head: features to embeddings; in training mode meanwhile, in evaluation mode afterwards.
        loss: called with embeddings, classes and numbers of images, as in :mod:`lib.losses.label_tree`; what it learns
            itself has the rate of the head.
        table: images to learn from. classes: (n,) of them, as numbers.
        settings, preparation: see there.
        seed: decides batches and crops.
        device: see :func:`lib.devices.pick`; a GPU has the encoder in bfloat16 autocast.
        store: a checkpoint, written every :data:`KEPT_EVERY` steps and gone at the end; a training that broke off goes
            on from there to the same result. Its name has to tell all that the training depends on.
        what: the name of the work in the progress bar.

    Raises:
        Diverged: when the loss or its gradient is not finite, before a step is taken with it.
        BrokenImage: for a file that cannot be read.
        InputError: for a checkpoint that is damaged, and batches that the processes cannot share.
    """
    place = fabric(device)
    own = part(place, min(settings.batch_size, len(classes)))
    training = _Training(encoder, head, loss, settings, place, what)
    training.resume(store)
    images, codes = decode(table).to(place.device), torch.tensor(classes, dtype=torch.long)
    batches = list(enumerate(_batches(len(codes), settings, seed)))[len(training.history) :]

    def run() -> Iterator[float]:
        # A step draws twice: its first views under an even number, its second under an odd one.
        asked = ((2 * step + view, rows) for step, rows in batches for view in (0, 1))
        views = random_views(images, asked, preparation, seed, place.device, part=own)
        for step, rows in batches:
            both = rows.view(place.world_size, 1, -1).expand(-1, 2, -1).flatten()  # every process has two views
            yield training.step(step, torch.cat([next(views), next(views)]), codes[both], both)
            if (step + 1) % KEPT_EVERY == 0:
                training.keep(store)

    follow(place, run(), len(batches), what)
    checkpoint.remove(place, store)
    return training.network.eval(), training.history


class _Training:
    """The network, its loss and optimiser, the loss of every step, and checkpoints of all of it.

    A process embeds its part of a batch by the encoder. Head and loss have all of it in every process: the statistics
    of the head's batch norm, pairs of images, and prototypes are those of the whole.
    """

    def __init__(
        self, encoder: nn.Module, head: nn.Module, loss: nn.Module, settings: Settings, place: "Fabric", what: str
    ) -> None:
        thaw(encoder)
        self.network = nn.Sequential(encoder.eval(), head.train()).to(place.device)
        self.head, self.loss, self.settings, self.place, self.what = head, loss.to(place.device), settings, place, what
        self.rates = {"lr": settings.lr, "head_lr": settings.head_lr}
        optimiser = adamw(encoder, head, loss, **self.rates, weight_decay=settings.weight_decay)
        self.shared, self.optimiser = together.setup(place, encoder, optimiser)
        self.parts = {"network": self.network, "loss": self.loss, "optimiser": self.optimiser}
        self.history: list[float] = []

    def step(self, step: int, pixels: Tensor, classes: Tensor, images: Tensor) -> float:
        """One step on views of the own part of a batch, ``classes`` and ``images: (B,)`` of all of it; its loss.

        Raises Diverged where the loss or its gradient is not finite.
        """
        for group, lr in zip(self.optimiser.param_groups, self.rates.values(), strict=True):
            group["lr"] = lr * self.settings.rate(step)
        known = classes.to(self.place.device), images.to(self.place.device)
        given = self.place, self.shared, self.optimiser, pixels, lambda features: self.loss(self.head(features), *known)
        value, taken = together.step(*given, alone=(self.head, self.loss))
        if not taken:
            good = {name: weight.detach() for name, weight in self.network.named_parameters()}
            raise Diverged(value, step, good, self.what)
        self.history.append(value)
        return value

    def keep(self, store: Path | None) -> None:
        """Write a checkpoint."""
        state = {name: one.state_dict() for name, one in self.parts.items()}
        checkpoint.write(self.place, store, state | {"history": self.history})

    def resume(self, store: Path | None) -> None:
        """Take over the checkpoint in ``store`` if there is one."""
        with checkpoint.read(store) as state:
            if state is not None:
                for name, one in self.parts.items():
                    one.load_state_dict(state[name])
                self.history = list(state["history"])


def _batches(n: int, settings: Settings, seed: int) -> Iterator[Tensor]:
    """Rows (b,) of every step, shuffled anew in each pass over the images; what fills no batch waits for the next."""
    generator = torch.Generator().manual_seed(seed)
    size, left = min(settings.batch_size, n), settings.steps
    while left:
        for rows in torch.randperm(n, generator=generator)[: n // size * size].split(size)[:left]:
            left -= 1
            yield rows
