"""Fine-tune an encoder together with its head, end to end (Hyperbolic Vision Transformers, Section 3.2).

Everything random in step ``i`` depends on the seed and on ``i`` alone, so a training that was killed goes on from its
checkpoint as if nothing had happened. It runs through Lightning Fabric (:mod:`lib.training.together`): on the CPU, on a
GPU, or on several, whose processes share every batch, and the loss is that of one process.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import islice, tee
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lib import checks
from lib.datasets.pixels import Decoded, decode
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.geometry import Sphere
from lib.metrics.retrieval import evaluate
from lib.training import loop, together
from lib.training.by_class import ByClass, by_class
from lib.training.divergence import Watch
from lib.training.photos import Preparation, central_views, random_views
from lib.training.together import fabric, part

LONGEST_GRADIENT = 3.0
"""The gradient of all weights together is clipped to this norm (Section 3.2)."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""Takes embeddings (B, d) and labels (B,), samples of one class after the other; returns a scalar."""


@dataclass(frozen=True)
class Settings:
    """How long and how fast; the defaults are those of Section 3.2 for ViT-S and DeiT-S on CUB.

    ``steps`` of the optimiser (published: 200 for CUB, 600, 25,000 and 2,200 for the others; the authors' commands come
    to other numbers, HV-10). ``batch_size``, ``samples``: of each class, see :mod:`lib.training.by_class` (HV-7).
    ``lr``: 1e-5 for DINO. ``head_lr``: of the head, that of the encoder if None, as published. ``check_every``: after
    so many steps the validation classes are looked at and a checkpoint is written. Raises InputError for a value
    without meaning.
    """

    steps: int = 200
    batch_size: int = 900
    samples: int = 9
    lr: float = 3e-5
    head_lr: float | None = None
    weight_decay: float = 0.01
    check_every: int = 50

    def __post_init__(self) -> None:
        ByClass(1, self.batch_size, self.lr, self.weight_decay, self.samples)  # which checks them
        checks.values(steps=self.steps)
        checks.whole("check_every", self.check_every)
        if self.head_lr is not None:
            checks.positive("head_lr", self.head_lr)


@dataclass(frozen=True, eq=False)
class Finetuned:
    """The network, encoder then head, as it was at its best step, and how the training went.

    ``history``: columns step, loss. ``scores``: Recall@1 (hit rate) of the validation images among themselves, columns
    step (0 is before training), head (in the head's geometry) and encoder (by D_cos); unseen_head and unseen_encoder
    of images that choose nothing, where some were given; c, where it is learnt. The best is that of the head, of equal
    ones the first.
    """

    network: nn.Sequential
    history: pd.DataFrame
    scores: pd.DataFrame

    @property
    def best(self) -> pd.Series:
        """The row of ``scores`` that the network is from."""
        return self.scores.loc[self.scores["head"].idxmax()]


def finetune(
    encoder: nn.Module,
    head: nn.Module,
    loss: Loss,
    table: ImageTable,
    validation: ImageTable,
    settings: Settings,
    preparation: Preparation,
    *,
    seed: int,
    unseen: ImageTable | None = None,
    store: Path | None = None,
    device: str = "auto",
    bf16: bool | None = None,
    what: str = "fine-tuning",
) -> Finetuned:
    """Train ``encoder`` and ``head`` in place with AdamW.

    Args:
        encoder: images (b, 3, size, size) to features (b, dim), a timm model; its first layer stays as it is, and its
            batch norm (:func:`thaw`). It is in evaluation mode throughout: no dropout, no moving statistics.
        head: features to points of ``head.geometry``, such as :class:`lib.heads.hyp_vit.ClippedProjection`.
        loss: of a batch, such as :class:`lib.losses.hyp_vit.PairwiseCrossEntropy` with the same ``samples``.
        table: images to learn from.
        validation: images of other classes, by which the best step is chosen.
        settings, preparation: see there.
        seed: decides batches and crops.
        unseen: images that are looked at whenever the validation images are, and choose nothing.
        store: checkpoint file, written at every look at the validation classes and removed at the end; a training that
            was killed goes on from it. Its name has to tell all that the training depends on.
        device: see :func:`lib.devices.pick`.
        bf16: trains in bfloat16 autocast, on a GPU alone by default. (The paper has float16 with master weights.)
        what: the name of the work in the progress bar.

    Raises:
        InputError: for batches that the classes do not allow, classes on both sides, and weights that are not finite.
        Diverged: when the loss or its gradient is not finite, or the weights have outgrown float32.
        BrokenImage: for a file that cannot be read.
    """
    if both := set(table.classes) & set(validation.classes):
        raise InputError(
            f"{len(both)} classes, such as {min(both)}, are learnt from and chosen by: hold whole classes out"
        )
    if not validation.rows["label"].duplicated().any():
        raise InputError(f"no class of the {len(validation)} validation images has two of them: nothing can be found")
    place = fabric(device, bf16)
    own = part(place, settings.batch_size)
    thaw(encoder)
    network = nn.Sequential(encoder, head).eval()
    rates = {"lr": settings.lr, "head_lr": settings.head_lr or settings.lr}
    weights = adamw(encoder, head, **rates, weight_decay=settings.weight_decay)
    shared, optimiser = together.setup(place, network, weights)
    watch = Watch.of(network, what, settings.steps)
    if not watch.longest.isfinite():
        raise InputError("the encoder or its head has weights that are not finite: load or make it anew")
    learnt, codes = decode(table).to(place.device), torch.from_numpy(table.codes)
    seen = {"": validation} | ({} if unseen is None else {"unseen_": unseen})
    decoded = {name: (decode(images).to(place.device), images) for name, images in seen.items()}
    judge = _Judge(network, decoded, preparation)
    parts = {"network": network, "optimiser": optimiser, "watch": watch, "scores": judge.scores, "best": judge.best}
    checkpoint = loop.Checkpoint(store, parts, place)
    checkpoint.read()
    start = len(watch.losses)
    drawn = by_class(table.labels, settings.batch_size // settings.samples, settings.samples, seed, start)
    batches, again = tee(islice(drawn, settings.steps - start))

    def step(number: int, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, bool]:
        labels, pixels = codes[batch[0]].to(place.device), batch[1]
        given = place, shared, optimiser, pixels, lambda h: loss(h, labels)
        return together.step(*given, longest=LONGEST_GRADIENT)

    if start == 0:
        judge(0)
    views = random_views(learnt, enumerate(again, start), preparation, seed, place.device, part=own)
    options = {"look": judge, "checkpoint": checkpoint, "what": what if place.is_global_zero else ""}
    loop.run(step, zip(batches, views, strict=True), watch, every=settings.check_every, **options)
    network.load_state_dict(judge.best.state_dict())
    history = pd.DataFrame({"step": range(settings.steps), "loss": watch.history()[0]})
    return Finetuned(network, history, pd.DataFrame(judge.scores))


class _Judge:
    """How well images find each other after so many steps, and the network as it was when the first ones did so best.

    seen: what the names of scores begin with → images and their table; the first choose.
    """

    def __init__(
        self, network: nn.Sequential, seen: dict[str, tuple[Decoded, ImageTable]], preparation: Preparation
    ) -> None:
        self.network, self.seen, self.preparation = network, seen, preparation
        self.best, self.scores = deepcopy(network).cpu(), []  # one network less on the GPU

    def __call__(self, step: int) -> None:
        score = {"step": step}
        for name, (images, table) in self.seen.items():
            score |= {f"{name}{place}": value for place, value in self.recall(images, table).items()}
        if getattr(self.network[1], "learn_c", False):
            score["c"] = self.network[1].c.item()
        if not self.scores or score["head"] > max(earlier["head"] for earlier in self.scores):
            self.best.load_state_dict(self.network.state_dict())
        self.scores.append(score)

    def recall(self, images: Decoded, table: ImageTable) -> dict[str, float]:
        """Recall@1 of images among themselves, by the head's embedding and by the encoder's feature.

        In float32, also where bfloat16 trains, which changes one nearest neighbour in ten: so a step is chosen, and
        the unseen images are found, as they are in the end.
        """
        features, embeddings = embed(self.network, images, self.preparation)
        labels, ids = table.labels, table.rows["image_id"].to_numpy(dtype=str)
        space = self.network[1].geometry
        if getattr(self.network[1], "learn_c", False):
            space = replace(space, c=space.c.item())  # the embeddings are on the CPU, where the weight may not be
        spaces = {"head": (embeddings, space), "encoder": (features, Sphere())}
        return {
            name: float(evaluate(points, points, labels, labels, space, (1,), ids, ids).values["hit_rate", 1].mean())
            for name, (points, space) in spaces.items()
        }


def thaw(encoder: nn.Module) -> None:
    """Make every weight of a timm ``encoder`` trainable, but for its first layer and its batch norm.

    The first layer is the linear projection of the patches, or the stem of a convolutional network: "low-level feature
    extraction" (Section 3.2). Raises InputError for an encoder that does not say which layer that is.
    """
    first = getattr(encoder, "pretrained_cfg", {}).get("first_conv")
    if not first:
        raise InputError(f"{type(encoder).__name__} does not name its first layer: take an encoder of timm")
    encoder.requires_grad_(True)
    frozen = [encoder.get_submodule(name) for name in ([first] if isinstance(first, str) else first)]
    for module in (*frozen, *(module for module in encoder.modules() if isinstance(module, _BatchNorm))):
        module.requires_grad_(False)


def adamw(encoder: nn.Module, *others: nn.Module, lr: float, head_lr: float, weight_decay: float) -> torch.optim.AdamW:
    """AdamW for the weights of ``encoder`` that are not frozen, at ``lr``, and all of ``others``, at ``head_lr``."""
    groups = [
        {"params": [weight for weight in encoder.parameters() if weight.requires_grad], "lr": lr},
        {"params": [weight for module in others for weight in module.parameters()], "lr": head_lr},
    ]
    return torch.optim.AdamW(groups, weight_decay=weight_decay, fused=True)


@torch.inference_mode()
def embed(
    network: nn.Sequential,
    images: Decoded,
    preparation: Preparation,
    *,
    batch_size: int = 64,
) -> tuple[Tensor, Tensor]:
    """Features of the encoder (n, dim) and embeddings of the head (n, d) of all images, on the CPU."""
    encoder, head = network
    device = next(network.parameters()).device
    parts = []
    for pixels in central_views(images, preparation, batch_size, device):
        features = encoder(pixels.contiguous(memory_format=torch.channels_last))
        parts.append((features.cpu(), head(features).cpu()))
    features, embeddings = zip(*parts, strict=True)
    return torch.cat(features), torch.cat(embeddings)
