"""Fine-tune an encoder together with its head, end to end (Hyperbolic Vision Transformers, Section 3.2).

Everything random in step ``i`` depends on the seed and on ``i`` alone, so a training that was killed goes on from its
checkpoint as if nothing had happened. It runs through Lightning Fabric (:mod:`lib.training.together`): on the CPU, on a
GPU, or on several, whose processes share every batch, and the loss is that of one process.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lib import checks
from lib.datasets.content import content
from lib.datasets.pixels import Decoded, decode
from lib.datasets.table import ImageTable
from lib.encoders.backbones import state_sha256
from lib.errors import InputError
from lib.geometry import Sphere
from lib.metrics.retrieval import evaluate
from lib.training import checkpoint, together
from lib.training.by_class import ByClass, by_class
from lib.training.divergence import Diverged, longest, norms
from lib.training.photos import Preparation, central_views, random_views
from lib.training.together import fabric, follow, part

if TYPE_CHECKING:
    from lightning_fabric import Fabric

LONGEST_GRADIENT = 3.0
"""The gradient of all weights together is clipped to this norm (Section 3.2)."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""Takes embeddings (B, d) and labels (B,), samples of one class after the other; returns a scalar."""

Seen = tuple[Decoded, ImageTable]
"""Decoded images and their table."""


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
            was killed goes on from it. A checkpoint of other images, weights, settings or seed is not used.
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
    training = _Training(encoder, head, loss, settings, place, what)
    key = training.key([table, validation, *([] if unseen is None else [unseen])], preparation, seed, bf16)
    start = training.resume(store, key)
    learnt = decode(table).to(place.device)
    chosen = decode(validation).to(place.device), validation
    watched = None if unseen is None else (decode(unseen).to(place.device), unseen)
    n_classes = settings.batch_size // settings.samples
    codes = torch.from_numpy(table.codes)

    def batches() -> Iterator[tuple[int, Tensor]]:
        drawn = by_class(table.labels, n_classes, settings.samples, seed, start)
        return zip(range(start, settings.steps), drawn, strict=False)

    def run() -> Iterator[float]:
        views = random_views(learnt, batches(), preparation, seed, place.device, part=own)
        if start == 0:
            training.judge(0, chosen, watched, preparation)
        for (step, rows), pixels in zip(batches(), views, strict=True):
            yield training.step(step, pixels, codes[rows])
            if (step + 1) % settings.check_every == 0 or step + 1 == settings.steps:
                training.judge(step + 1, chosen, watched, preparation)
                training.keep(store, key)

    follow(place, run(), settings.steps - start, what)
    checkpoint.remove(place, store)
    training.network.load_state_dict(training.best)
    return Finetuned(training.network, pd.DataFrame(training.history), pd.DataFrame(training.scores))


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
        {"params": [weight for one in others for weight in one.parameters()], "lr": head_lr},
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


class _Training:
    """The network, its optimiser, what they have been through, and checkpoints of all of it."""

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        loss: Loss,
        settings: Settings,
        place: "Fabric",
        what: str,
    ) -> None:
        thaw(encoder)
        self.network = nn.Sequential(encoder, head).eval()
        self.loss, self.settings, self.place, self.what = loss, settings, place, what
        self.weights = [weight for weight in self.network.parameters() if weight.requires_grad]
        rates = {"lr": settings.lr, "head_lr": settings.head_lr or settings.lr}
        optimiser = adamw(encoder, head, **rates, weight_decay=settings.weight_decay)
        self.shared, self.optimiser = together.setup(place, self.network, optimiser)
        self.longest = longest(weight[None] for weight in self.weights)
        if not self.longest.isfinite():
            raise InputError("the encoder or its head has weights that are not finite: load or make it anew")
        self.history: list[dict[str, float]] = []
        self.scores: list[dict[str, float]] = []
        self.best = self.good = self.state()

    def step(self, step: int, pixels: Tensor, labels: Tensor) -> float:
        """One step on the own part of a batch, ``labels`` those of all of it; the loss of the whole batch."""
        labels = labels.to(self.place.device)
        given = self.place, self.shared, self.optimiser, pixels, lambda h: self.loss(h, labels)
        value, taken = together.step(*given, longest=LONGEST_GRADIENT)
        if not taken:
            raise self.diverged(value, step)
        self.history.append({"step": step, "loss": value})
        return value

    def judge(self, step: int, validation: Seen, unseen: Seen | None, preparation: Preparation) -> None:
        """Note how well the validation images find each other after ``step`` steps, and keep the best state.

        validation, unseen: images and their table. Raises Diverged where weights have outgrown float32.
        """
        if not norms(weight[None] for weight in self.weights) <= self.longest:
            raise self.diverged(self.history[-1]["loss"], step - 1)
        score = {"step": step} | self.recall(validation, preparation)
        if unseen is not None:
            score |= {f"unseen_{name}": value for name, value in self.recall(unseen, preparation).items()}
        if getattr(self.network[1], "learn_c", False):
            score["c"] = self.network[1].c.item()
        self.good = self.state()
        if not self.scores or score["head"] > max(earlier["head"] for earlier in self.scores):
            self.best = self.good
        self.scores.append(score)

    def recall(self, seen: Seen, preparation: Preparation) -> dict[str, float]:
        """Recall@1 of images among themselves, by the head's embedding and by the encoder's feature.

        In float32, also where bfloat16 trains, which changes one nearest neighbour in ten: so a step is chosen, and
        the unseen images are found, as they are in the end.
        """
        images, table = seen
        features, embeddings = embed(self.network, images, preparation)
        labels, ids = table.labels, table.rows["image_id"].to_numpy(dtype=str)
        space = self.network[1].geometry
        if getattr(self.network[1], "learn_c", False):
            space = replace(space, c=space.c.item())  # the embeddings are on the CPU, where the weight may not be
        spaces = {"head": (embeddings, space), "encoder": (features, Sphere())}
        return {
            name: float(evaluate(points, points, labels, labels, space, (1,), ids, ids).values["hit_rate", 1].mean())
            for name, (points, space) in spaces.items()
        }

    def diverged(self, loss: float, step: int) -> Diverged:
        """The error with the weights that the last look at the validation classes found good."""
        good = {name: self.good[name] for name, weight in self.network.named_parameters() if weight.requires_grad}
        return Diverged(loss, step, good, self.what)

    def state(self) -> dict[str, Tensor]:
        """A copy of all weights and statistics, on the CPU."""
        return {name: value.detach().cpu().clone() for name, value in self.network.state_dict().items()}

    def key(self, several: Sequence[ImageTable], preparation: Preparation, seed: int, bf16: bool | None) -> str:
        """A hash of everything that the training depends on; images count by their files and classes."""
        place = f"{self.place.device.type} {bf16} {state_sha256(self.network)}"
        digest = hashlib.sha256(f"{self.settings} {preparation} {self.loss} {seed} {place}".encode())
        for images in several:
            digest.update(images.rows[["image_id", "label"]].to_csv().encode() + content(images).encode())
        return digest.hexdigest()

    def keep(self, store: Path | None, key: str) -> None:
        """Write a checkpoint."""
        state = {name: getattr(self, name) for name in ("good", "best", "history", "scores")}
        checkpoint.write(self.place, store, state | {"key": key, "optimiser": self.optimiser.state_dict()})

    def resume(self, store: Path | None, key: str) -> int:
        """Take over the checkpoint in ``store`` if there is one of this training; the steps that it has done."""
        with checkpoint.read(store) as state:
            if state is None or state["key"] != key:
                return 0
            for name in ("good", "best", "history", "scores"):
                setattr(self, name, state[name])
            self.network.load_state_dict(self.good)
            self.optimiser.load_state_dict(state["optimiser"])
        return len(self.history)
