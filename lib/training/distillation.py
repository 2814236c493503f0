"""Student and teacher of a self-distillation (DINO): how they start, what one step changes."""

import math
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lib import checks
from lib.encoders import small_vit
from lib.heads.dino import ProjectionHead
from lib.losses import dino
from lib.metrics.directions import effective_rank, spread
from lib.training import loop

LONGEST_GRADIENT = 3.0
"""The gradient of all weights together is clipped to this norm."""


@dataclass(frozen=True)
class Settings:
    """How the training goes; the defaults suit a few thousand tiles and two processors.

    ``momentum`` of the teacher and the learning rate follow half a cosine from the first to the second value; the
    learning rate rises linearly from 0 during the first tenth. ``area`` is what a crop covers of the image. Raises
    InputError for a value without meaning.
    """

    steps: int = 300
    batch_size: int = 64
    prototypes: int = 1024
    local_crops: int = 2
    global_area: tuple[float, float] = (0.4, 1.0)
    local_area: tuple[float, float] = (0.1, 0.4)
    stain: float = 0.2
    lr: tuple[float, float] = (1e-3, 1e-6)
    weight_decay: float = 0.04
    momentum: tuple[float, float] = (0.99, 0.9985)
    centre_momentum: float = 0.9
    teacher_temperature: float = 0.04
    student_temperature: float = 0.1

    def __post_init__(self) -> None:
        checks.values(**{name: value for name, value in vars(self).items() if name != "lr"})
        checks.pair("lr", self.lr, checks.not_negative)
        checks.positive("lr[0]", self.lr[0])

    def learning_rate(self, step: int) -> float:
        """Learning rate of step ``step``, counted from 0."""
        rising = max(1, self.steps // 10)
        if step < rising:
            return self.lr[0] * (step + 1) / rising
        return cosine(*self.lr, (step - rising) / max(1, self.steps - 1 - rising))

    def teacher_momentum(self, step: int) -> float:
        """How much of itself the teacher keeps after step ``step``."""
        return cosine(*self.momentum, step / max(1, self.steps - 1))


def cosine(first: float, last: float, done: float) -> float:
    """Half a cosine from ``first`` (done = 0) to ``last`` (done = 1).

    >>> cosine(1.0, 0.0, 0.5)
    0.5
    """
    return last + (first - last) * (1 + math.cos(math.pi * done)) / 2


class Pair(nn.Module):
    """Student, teacher and the centre of its answers, and all that one step changes; ``notes``: what was worth knowing.

    They are the same for one seed, and trained in bfloat16 autocast with ``bf16``.
    """

    def __init__(self, settings: Settings, seed: int, device: torch.device, bf16: bool) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            student = nn.Sequential(small_vit.SmallViT(), ProjectionHead(small_vit.DIM, settings.prototypes))
        self.student = student.to(device).train()
        self.teacher = deepcopy(self.student).requires_grad_(False)
        self.register_buffer("centre", torch.zeros(settings.prototypes, device=device))
        # Weight decay is for linear layers and convolutions; biases, norms and token embeddings go without.
        decayed = [p for p in self.student.parameters() if p.ndim in (2, 4)]
        free = [p for p in self.student.parameters() if p.ndim not in (2, 4)]
        groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": free, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=1.0, fused=True)
        self.settings, self.bf16, self.notes = settings, bf16, []

    def forward(self, crops: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """The student's logits of all crops (V, n, K), the teacher's of the first two (2, n, K), and its features.

        crops: of the same n images each, from 0 to 1, the two large ones first.
        """
        large, small = torch.cat(crops[:2]), crops[2:]
        with torch.autocast(large.device.type, torch.bfloat16, enabled=self.bf16):
            with torch.no_grad():
                features = self.teacher[0](normalised(large))
                teacher = self.teacher[1](features).unflatten(0, (2, -1)).float()
            parts = [large] + ([torch.cat(small)] if small else [])
            student = torch.cat([self.student(normalised(part)) for part in parts]).unflatten(0, (len(crops), -1))
        return student, teacher, features

    def loss(self, student: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of a batch, and what the student should have answered."""
        wanted = dino.targets(teacher, self.centre, self.settings.teacher_temperature)
        return dino.cross_view(student, wanted, self.settings.student_temperature), wanted

    def step(self, step: int, crops: list[Tensor]) -> tuple[Tensor, bool]:
        """One step on crops of one batch, a :data:`lib.training.loop.Step`."""
        settings = self.settings
        student, teacher, features = self(crops)
        if step == 0:  # from 0 one prototype would win every image until the centre has caught up with it
            self.centre = dino.moved_centre(self.centre, teacher, momentum=0.0)
        loss, wanted = self.loss(student, teacher)
        clipped = {"clipped": self.student.parameters(), "longest": LONGEST_GRADIENT}
        if not loop.descend(self.optimiser, loss, settings.learning_rate(step), **clipped):
            return loss.detach()[None], False
        self.follow(settings.teacher_momentum(step))
        self.centre = dino.moved_centre(self.centre, teacher, settings.centre_momentum)
        single, mean = dino.entropy(wanted).mean(), dino.entropy(wanted.flatten(0, 1).mean(dim=0))
        watched = {"loss": loss, "entropy": single, "information": mean - single}
        watched |= {"spread": spread(features), "rank": effective_rank(features)}
        self.notes.append({"step": step} | {name: value.item() for name, value in watched.items()})
        return loss.detach()[None], True

    @torch.no_grad()
    def follow(self, momentum: float) -> None:
        """Move the teacher's weights towards the student's; its batch statistics are its own."""
        for mean, weight in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
            mean.lerp_(weight, 1 - momentum)


def normalised(pixels: Tensor) -> Tensor:
    """Pixels from 0 to 1 as the encoder's transform hands them over."""
    mean, std = (torch.tensor(v, device=pixels.device)[:, None, None] for v in (small_vit.MEAN, small_vit.STD))
    return (pixels - mean) / std
