"""Train encoder and head together by a loss over two views of every image (Climbing the Label Tree, Section 4.2).

As in :mod:`lib.training.finetune`, the encoder's first layer and its batch norm stay as they are, and what is random in
a step depends on the seed and the step alone. Views are "standard color/blur/crop augmentations" (Section 3.4) of which
the paper prints no amounts: random crops, mirrored half of the time; :class:`Augmented` changes colour and blurs too.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torchvision.transforms import v2

from lib import checks
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.files import whole
from lib.progress import track
from lib.training import label_tree
from lib.training.divergence import Diverged
from lib.training.finetune import thaw
from lib.training.photos import Preparation, random_views

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

    color: how far brightness, contrast and saturation may go from 1; the hue goes a quarter as far, and no further than
    0.5 allows. blur: the least and most standard deviation, in pixels. Test images are untouched. The amounts are
    SimCLR's at half strength (Chen et al. 2020), as tiles differ in stain already. Raises InputError as above.
    """

    color: float = 0.4
    blur: tuple[float, float] = (0.1, 2.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.fraction("color", self.color)
        checks.pair("blur", self.blur, checks.positive)

    def training(self) -> v2.Compose:
        """Crop and mirror as :meth:`lib.training.photos.Preparation.training`, colour and blur before the pixels."""
        crop, mirror, *pixels = super().training().transforms
        jitter = v2.ColorJitter(self.color, self.color, self.color, self.color / 4)
        width = 2 * round(self.size / 20) + 1  # about a tenth of the image, as SimCLR has it, and odd
        blur = v2.GaussianBlur(width, self.blur)
        return v2.Compose([crop, mirror, v2.RandomApply([jitter], 0.8), v2.RandomApply([blur], 0.5), *pixels])


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
) -> list[float]:
    """Train ``encoder`` and ``head`` in place with AdamW; the loss of every step.

    Args:
        encoder: a timm model, images (b, 3, size, size) to features (b, dim).
        head: features to embeddings; in training mode meanwhile, in evaluation mode afterwards.
        loss: called with embeddings, classes and numbers of images, as in :mod:`lib.losses.label_tree`.
        table: images to learn from. classes: (n,) of them, as numbers.
        settings, preparation: see there.
        seed: decides batches and crops.
        device: "cpu", "cuda", or "auto" for cuda where there is one.
        store: a checkpoint, written every :data:`KEPT_EVERY` steps and gone at the end; a training that broke off goes
            on from there to the same result. Its name has to tell all that the training depends on.
        what: the name of the work in the progress bar.

    Raises:
        Diverged: when the loss or its gradient is not finite, before a step is taken with it.
        BrokenImage: for a file that cannot be read.
        InputError: for a checkpoint that is damaged.
    """
    target = torch.device("cuda" if device == "auto" and torch.cuda.is_available() else device.replace("auto", "cpu"))
    thaw(encoder)
    network = nn.Sequential(encoder.eval(), head.train()).to(target)
    loss.to(target)
    groups = [
        {"params": [weight for weight in encoder.parameters() if weight.requires_grad], "lr": settings.lr},
        {"params": [*head.parameters(), *loss.parameters()], "lr": settings.head_lr},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=settings.weight_decay, fused=True)
    highest = [group["lr"] for group in groups]
    codes = torch.tensor(classes, dtype=torch.long)
    parts = {"network": network, "loss": loss, "optimiser": optimiser}
    history = _resumed(store, parts)

    def run() -> Iterator[float]:
        batches = list(enumerate(_batches(len(codes), settings, seed)))[len(history) :]
        # A step draws twice: its first views under an even number, its second under an odd one.
        asked = ((2 * step + view, rows) for step, rows in batches for view in (0, 1))
        views = random_views(table, asked, preparation, seed)
        for step, rows in batches:
            pixels = torch.cat([next(views), next(views)])
            for group, lr in zip(optimiser.param_groups, highest, strict=True):
                group["lr"] = lr * settings.rate(step)
            value = loss(
                network(pixels.to(target)).float(), codes[rows].repeat(2).to(target), rows.repeat(2).to(target)
            )
            optimiser.zero_grad()
            value.backward()
            slopes = [weight.grad for group in groups for weight in group["params"] if weight.grad is not None]
            if not (math.isfinite(value.item()) and torch.nn.utils.get_total_norm(slopes).isfinite()):
                raise Diverged(value.item(), step, {name: x.detach() for name, x in network.named_parameters()}, what)
            optimiser.step()
            history.append(value.item())
            if store is not None and len(history) % KEPT_EVERY == 0:
                with whole(store) as draft:
                    torch.save({name: one.state_dict() for name, one in parts.items()} | {"history": history}, draft)
            yield value.item()

    left = settings.steps - len(history)
    for _ in track(run(), total=left, what=what, unit="steps", note=lambda x: f"loss {x:.3f}"):
        pass
    network.eval()
    if store is not None:
        store.unlink(missing_ok=True)
    return history


def _resumed(store: Path | None, parts: Mapping[str, Any]) -> list[float]:
    """Take over the checkpoint in ``store`` if there is one: the losses of the steps that it has done."""
    if store is None or not store.is_file():
        return []
    try:
        state = torch.load(store, map_location="cpu", weights_only=True)
        for name, one in parts.items():
            one.load_state_dict(state[name])
        return list(state["history"])
    except Exception as error:  # junk can fail with anything
        raise InputError(f"{store}: the checkpoint is damaged. Remove it to start anew.") from error


def _batches(n: int, settings: Settings, seed: int) -> Iterator[Tensor]:
    """Rows (b,) of every step, shuffled anew in each pass over the images; what fills no batch waits for the next."""
    generator = torch.Generator().manual_seed(seed)
    size, left = min(settings.batch_size, n), settings.steps
    while left:
        for rows in torch.randperm(n, generator=generator)[: n // size * size].split(size)[:left]:
            left -= 1
            yield rows
