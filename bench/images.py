"""Images through a network: features from files and of decoded images, fine-tuning; against the network alone."""

import copy
import tempfile
import time
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from PIL import Image

from bench.timing import Row, milliseconds, settle
from lib import devices
from lib.datasets import loaders, pixels
from lib.datasets.table import ImageTable
from lib.encoders import cache, networks
from lib.encoders.backbones import Backbone
from lib.geometry import PoincareBall
from lib.heads.hyp_vit import ClippedProjection
from lib.losses.hyp_vit import PairwiseCrossEntropy
from lib.training.finetune import Settings, adamw, finetune, thaw
from lib.training.photos import Preparation

Thing = TypeVar("Thing", torch.Tensor, torch.nn.Module)

SIZES = {"cuda": (128, 32, 900, 9), "cpu": (17, 16, 32, 2)}
DISTINCT = 64
"""Images that are drawn; the others look like them."""


def rows(sizes: tuple[int, int, int, int] | None = None, side: int = 224) -> list[Row]:
    """EfficientNet-Lite0 on photographs; ``sizes``: classes, images of each, and a batch of fine-tuning and of a class.

    By default :data:`SIZES` of the device.
    """
    classes, each, batch, samples = sizes or SIZES[devices.pick().type]
    with tempfile.TemporaryDirectory() as folder:
        table = photographs(Path(folder) / "images", classes, each)
        encoder = networks.load(f"efficientnet_lite0_{side}px")
        return [*_features(table, encoder, Path(folder)), _finetuning(table, encoder, side, batch, samples)]


def photographs(folder: Path, classes: int, each: int) -> ImageTable:
    """Class folders of JPEGs of the size of CUB's photographs, drawn, without a likeness."""
    rng, drawn = np.random.default_rng(0), []
    for place in range(classes * each):
        file = folder / f"class_{place % classes:03}" / f"{place:05}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        if len(drawn) < DISTINCT:
            patches = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
            size = (500, int(rng.integers(333, 501)))
            patches.resize(size, Image.Resampling.BICUBIC).save(file, quality=90)
            drawn.append(file.read_bytes())
        else:
            file.write_bytes(drawn[place % DISTINCT] + str(place).encode())  # behind the picture: no two are equal
    return loaders.load("folder", folder)


def _features(table: ImageTable, encoder: Backbone, folder: Path) -> list[Row]:
    target, n = folder / "features.safetensors", len(table)
    decoded = pixels.decode(table).to(encoder.device)
    side = encoder.model.pretrained_cfg["input_size"][-1]
    seen = _channels_last(torch.randn(min(n, encoder.batch_size), 3, side, side, device=encoder.device))

    @torch.inference_mode()
    def alone() -> None:
        for _ in range(0, n, len(seen)):
            with torch.autocast(encoder.device.type, encoder.dtype, enabled=encoder.dtype != torch.float32):
                encoder.model(seen)

    def from_files() -> None:
        target.unlink(missing_ok=True)
        cache.extract(table, encoder, target)

    what, peer = f"{{}}, {n:,} photographs at {encoder.name}", "the network alone"
    ways = {
        "features from files": ("encoders.cache", from_files, "≥ 8,000 on a GPU"),
        "features once decoded": ("Backbone.encode", lambda: encoder.encode(decoded.images), "≥ 15,000 on a GPU"),
    }
    found = []
    for name, (ours, work, aim) in ways.items():
        mine, most = (1000 * n / ms for ms in milliseconds(work, alone, repeats=3))
        found.append(Row(what.format(name), "images/s", ours, peer, mine, most, aim))
    return found


def _finetuning(table: ImageTable, encoder: Backbone, side: int, batch: int, samples: int, steps: int = 4) -> Row:
    """Steps of a training, what it does before and after taken off: a long one less a short one."""
    first = table.labels == table.classes[0]
    learnt, chosen = (table.take(table.rows["image_id"][rows].tolist()) for rows in (~first, first))
    loss = PairwiseCrossEntropy(PoincareBall(0.1), temperature=0.2, samples=samples)

    def network() -> tuple[torch.nn.Module, torch.nn.Module]:
        return copy.deepcopy(encoder.model), ClippedProjection(encoder.dim)

    def training(n: int) -> float:
        settings = Settings(n, batch, samples, check_every=n)
        settle()
        start = time.perf_counter()
        finetune(*network(), loss, learnt, chosen, settings, Preparation.of(encoder.model, side), seed=0)
        settle()
        return time.perf_counter() - start

    training(1)  # the first one warms up
    ours = batch * steps / (training(1 + steps) - training(1))
    model, head = (part.to(encoder.device) for part in network())
    thaw(model)
    optimiser = adamw(model, head, lr=3e-5, head_lr=1e-3, weight_decay=0.01)
    model, x = map(_channels_last, (model, torch.randn(batch, 3, side, side, device=encoder.device)))

    def alone() -> None:
        optimiser.zero_grad()
        with torch.autocast(encoder.device.type, torch.bfloat16, enabled=encoder.device.type == "cuda"):
            value = head(model(x).float()).square().sum()
        value.backward()
        optimiser.step()

    peer = 1000 * batch / milliseconds(alone, lambda: None, repeats=3)[0]
    what = f"fine-tuning in batches of {batch}, {side} px, {encoder.name}"
    return Row(what, "images/s", "training.finetune", "forward, backward, AdamW alone", ours, peer, "≥ 4,500 on a GPU")


def _channels_last(thing: Thing) -> Thing:
    """As a GPU takes convolutions fastest; on a CPU as it is."""
    place = thing.device if isinstance(thing, torch.Tensor) else next(thing.parameters()).device
    return thing.to(memory_format=torch.channels_last) if place.type == "cuda" else thing
