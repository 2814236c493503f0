"""Student and teacher of a self-distillation (DINO): how they start, what one step changes, and checkpoints."""

import math
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from lib import checks
from lib.encoders import small_vit
from lib.heads.dino import ProjectionHead
from lib.losses import dino
from lib.training import checkpoint, kept
from lib.training.divergence import Diverged, longest, norms


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


class Pair:
    """Student and teacher, each a network with its head, and all that one step changes."""

    def __init__(self, settings: Settings, seed: int, device: torch.device, bf16: bool) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            student = nn.Sequential(small_vit.SmallViT(), ProjectionHead(small_vit.DIM, settings.prototypes))
        self.student = student.to(device).train()
        self.teacher = deepcopy(self.student).requires_grad_(False)
        self.centre = torch.zeros(settings.prototypes, device=device)
        # Weight decay is for linear layers and convolutions; biases, norms and token embeddings go without.
        decayed = [p for p in self.student.parameters() if p.ndim in (2, 4)]
        free = [p for p in self.student.parameters() if p.ndim not in (2, 4)]
        groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": free, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=settings.lr[0], fused=True)
        self.settings, self.device, self.bf16 = settings, device, bf16
        self.good, self.longest = self.state(), longest(p[None] for p in self.student.parameters())

    def step(self, step: int, crops: list[Tensor]) -> dict[str, float]:
        """One step on crops of one batch; what is worth knowing about it.

        Raises Diverged when the loss or its gradient is not finite, or the step leads to weights beyond float32.
        """
        settings = self.settings
        large, small = torch.cat(crops[:2]), crops[2:]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            with torch.no_grad():
                features = self.teacher[0](normalised(large))
                teacher = self.teacher[1](features).unflatten(0, (2, -1)).float()
            parts = [large] + ([torch.cat(small)] if small else [])
            student = torch.cat([self.student(normalised(part)) for part in parts]).unflatten(0, (len(crops), -1))
        if step == 0:  # from 0 one prototype would win every image until the centre has caught up with it
            self.centre = dino.moved_centre(self.centre, teacher, momentum=0.0)
        wanted = dino.targets(teacher, self.centre, settings.teacher_temperature)
        loss = dino.cross_view(student, wanted, settings.student_temperature)
        self.optimiser.zero_grad()
        loss.backward()
        length = nn.utils.clip_grad_norm_(self.student.parameters(), 3.0)
        if not (math.isfinite(loss.item()) and length.isfinite()):
            raise Diverged(loss.item(), step, self.good, "self-distillation")
        self.good = self.state()
        for group in self.optimiser.param_groups:
            group["lr"] = settings.learning_rate(step)
        self.optimiser.step()
        if not norms(p[None] for p in self.student.parameters()) <= self.longest:
            raise Diverged(loss.item(), step, self.good, "self-distillation")
        self.follow(settings.teacher_momentum(step))
        self.centre = dino.moved_centre(self.centre, teacher, settings.centre_momentum)
        single, mean = dino.entropy(wanted).mean(), dino.entropy(wanted.flatten(0, 1).mean(dim=0))
        watched = {"loss": loss, "entropy": single, "information": mean - single}
        watched |= {"spread": spread(features), "rank": effective_rank(features)}
        return {name: value.item() for name, value in watched.items()}

    def state(self) -> dict[str, Tensor]:
        """A copy of the student's parameters, on the CPU."""
        return {name: value.detach().cpu().clone() for name, value in self.student.named_parameters()}

    @torch.no_grad()
    def follow(self, momentum: float) -> None:
        """Move the teacher's weights towards the student's; its batch statistics are its own."""
        for mine, theirs in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
            mine.lerp_(theirs, 1 - momentum)

    def keep(self, store: Path, key: str, history: list[dict[str, float]]) -> None:
        """Write a checkpoint."""
        state = {name: getattr(self, name).state_dict() for name in ("student", "teacher", "optimiser")}
        kept.write(store, state | {"key": key, "centre": self.centre, "history": history})

    def resume(self, store: Path | None, key: str) -> list[dict[str, float]]:
        """Take over the checkpoint in ``store`` if there is one of this training; its history."""
        with checkpoint.read(store) as state:
            if state is None or state["key"] != key:
                return []
            for name in ("student", "teacher", "optimiser"):
                getattr(self, name).load_state_dict(state[name])
            self.centre, self.good = state["centre"].to(self.device), self.state()
        return state["history"]


def spread(features: Tensor) -> Tensor:
    """How far apart features (n, d) are: the standard deviation of a number of the unit vectors, times sqrt(d).

    0 if all are the same, 1 if they point into all directions alike (Chen and He 2021, section 4.1).
    """
    unit = functional.normalize(features.float(), dim=-1)
    return unit.std(dim=0, correction=0).mean() * features.shape[-1] ** 0.5


def spectrum(features: Tensor) -> Tensor:
    """The share of the variance of features (n, d) along each principal direction, the largest first; NaN without any.

    >>> spectrum(torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
    tensor([0.9000, 0.1000], dtype=torch.float64)
    """
    centred = features.double() - features.double().mean(dim=0)
    variances = torch.linalg.svdvals(centred).square()
    return variances / variances.sum()


def effective_rank(features: Tensor) -> Tensor:
    """How many directions features (n, d) use: exp of the entropy of their :func:`spectrum` (Roy and Vetterli 2007).

    All of them if the variance is the same along each, 1 if the features lie on a line. Features can spread and still
    use few directions: a collapse of dimensions, which :func:`spread` does not see.
    """
    return dino.entropy(spectrum(features)).exp()


def normalised(pixels: Tensor) -> Tensor:
    """Pixels from 0 to 1 as the encoder's transform hands them over."""
    mean, std = (torch.tensor(v, device=pixels.device)[:, None, None] for v in (small_vit.MEAN, small_vit.STD))
    return (pixels - mean) / std
