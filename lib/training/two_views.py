"""Train encoder and head together by a loss over two views of every image (Climbing the Label Tree, Section 4.2).

As in :mod:`lib.training.finetune`, the encoder's first layer and its batch norm stay as they are, what is random in a
step depends on the seed and the step alone, and several processes may share every batch
(:mod:`lib.training.together`). Views are "standard color/blur/crop augmentations" (Section 3.4) of which
the paper prints no amounts: random crops, mirrored half of the time; :class:`Augmented` changes colour and blurs too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from lib import checks
from lib.datasets.pixels import decode
from lib.datasets.table import ImageTable
from lib.training import changes, loop, together
from lib.training.divergence import Watch
from lib.training.finetune import adamw, thaw
from lib.training.photos import Preparation, random_views
from lib.training.together import fabric, part

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
        """The share of both learning rates in one step."""
        return loop.warmed_cosine(step, self.steps)


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
        loss: takes ``images``, which rows are views of one, as those of :mod:`lib.losses.label_tree`; what it learns
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
    thaw(encoder)
    network, loss = nn.Sequential(encoder.eval(), head.train()).to(place.device), loss.to(place.device)
    rates = {"lr": settings.lr, "head_lr": settings.head_lr}
    weights = adamw(encoder, head, loss, **rates, weight_decay=settings.weight_decay)
    shared, optimiser = together.setup(place, encoder, weights)
    watch = Watch.of(network, what, settings.steps)
    parts = {"network": network, "loss": loss, "optimiser": optimiser, "watch": watch}
    checkpoint = loop.Checkpoint(store, parts, place)
    checkpoint.read()
    images, codes = decode(table).to(place.device), torch.tensor(classes, dtype=torch.long)
    batches = list(enumerate(_batches(len(codes), settings, seed)))[len(watch.losses) :]
    # A step draws twice: its first views under an even number, its second under an odd one.
    drawn = ((2 * number + view, rows) for number, rows in batches for view in (0, 1))
    views = random_views(images, drawn, preparation, seed, place.device, part=own)

    def step(number: int, batch: tuple[int, Tensor]) -> tuple[Tensor, bool]:
        """The encoder embeds the own part of the batch. Head and loss have all of it in every process.

        So the statistics of the head's batch norm, pairs of images, and prototypes are those of the whole.
        """
        both = batch[1].view(place.world_size, 1, -1).expand(-1, 2, -1).flatten()  # every process has two views
        known, images_of = codes[both].to(place.device), both.to(place.device)
        loop.set_rates(optimiser, settings.rate(number))
        pixels = torch.cat([next(views), next(views)])
        given = place, shared, optimiser, pixels, lambda features: loss(head(features), known, images=images_of)
        return together.step(*given, others=(head, loss))

    options = {"checkpoint": checkpoint, "what": what if place.is_global_zero else ""}
    loop.run(step, batches, watch, every=KEPT_EVERY, **options)
    return network.eval(), watch.history()[0].tolist()


def _batches(n: int, settings: Settings, seed: int) -> Iterator[Tensor]:
    """Rows (b,) of every step, shuffled anew in each pass over the images; what fills no batch waits for the next."""
    generator = torch.Generator().manual_seed(seed)
    size, left = min(settings.batch_size, n), settings.steps
    while left:
        for rows in torch.randperm(n, generator=generator)[: n // size * size].split(size)[:left]:
            left -= 1
            yield rows
