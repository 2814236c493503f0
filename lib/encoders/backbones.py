"""Frozen backbones from timm: one image in, one vector out, nothing trainable.

The vector is what the model itself pools when its classifier is taken off: for the vision transformers of the papers
the normalised [CLS] token, for convolutional networks the averaged feature map; ``provenance["pooling"]`` says which.
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import huggingface_hub
import numpy as np
import timm
import torch
from PIL import Image
from timm.data import create_transform, resolve_model_data_config
from timm.models import get_pretrained_cfg

from lib.encoders.models import MODELS
from lib.encoders.weights import (
    UNREADABLE,
    UNTRAINED,
    Source,
    ask_hub,
    fetch,
    from_transformers,
    local_file,
    missing,
    one_line,
    read,
)
from lib.encoders.zoo import names, source
from lib.errors import InputError, suggestion

BATCH = 16
"""Images per forward pass: of the 64 that a cache asks for at a time, four processors take a batch each."""


@dataclass(frozen=True, eq=False)
class Backbone:
    """A frozen timm model with its own preprocessing, behind the interface of an encoder."""

    name: str
    dim: int
    provenance: dict[str, str]
    model: torch.nn.Module
    transform: Callable[[Image.Image], torch.Tensor]
    device: torch.device
    bf16: bool
    batch_size: int

    def encode(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Features of images of any size and mode as (n, dim) float32, computed ``batch_size`` at a time.

        Where torch has one thread (:mod:`lib.pins`), batches run side by side on a CPU.
        """
        chunks = [images[start : start + self.batch_size] for start in range(0, len(images), self.batch_size)]
        alone = self.device.type != "cpu" or torch.get_num_threads() > 1
        with ThreadPoolExecutor(1 if alone else os.cpu_count()) as pool:
            rows = list(pool.map(self._forward, chunks))
        return np.concatenate([np.empty((0, self.dim), np.float32), *rows])

    @torch.inference_mode()
    def _forward(self, images: Sequence[Image.Image]) -> np.ndarray:
        pixels = torch.stack([self.transform(image.convert("RGB")) for image in images])
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            features = self.model(pixels.to(self.device))
        return features.float().cpu().numpy()


def load(
    name: str,
    weights: str = "pretrained",
    device: str | None = None,
    bf16: bool = False,
    batch_size: int = BATCH,
    seed: int = 0,
) -> Backbone:
    """A timm model as a frozen encoder.

    name: a timm name with or without its weights tag ("vit_small_patch16_224.dino"), or one of
        :data:`lib.encoders.models.MODELS` ("dino_vits16", "uni2_h").
    weights: "pretrained": from ``weights/<timm name>.safetensors``, ``.pth`` or ``.bin`` (``weights/<name>`` for those
        of the zoo that timm does not register), else from the Hugging Face cache, else downloaded;
        "untrained": timm's random initialisation under ``seed``, "-untrained" in the name.
    device: "cpu", "cuda", ...; by default cuda where there is one.
    bf16: bfloat16 autocast: faster, about three significant digits.
    batch_size: images per forward pass.

    Raises InputError for a name that timm does not know or a weights file that does not fit, MissingWeights
    where trained weights cannot be had.
    """
    if weights not in ("pretrained", "untrained"):
        raise InputError(f"weights must be 'pretrained' or 'untrained', not {weights!r}.")
    source = _source(name)
    if weights == "untrained":
        name += UNTRAINED
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = source.create(pretrained=False, num_classes=0)
    else:
        model = _pretrained(source)
    described = {"encoder": name, "model": source.model}
    described["weights"] = weights if weights == "pretrained" else f"untrained, seed {seed}"
    return frozen(model, described, device=device, bf16=bf16, batch_size=batch_size)


def frozen(
    model: torch.nn.Module, described: Mapping[str, str], *, device: str | None, bf16: bool, batch_size: int
) -> Backbone:
    """A network of timm as an encoder; ``described``: encoder (its name), model, weights. Others as :func:`load`."""
    target = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    model = model.eval().requires_grad_(False).to(target)
    data = resolve_model_data_config(model)
    transform = create_transform(**data, is_training=False)
    with torch.inference_mode():
        dim = model(torch.zeros(1, *data["input_size"], device=target)).shape[1]
    provenance = {
        **described,
        "weights_sha256": state_sha256(model),
        "pooling": one_line(getattr(model, "global_pool", "the model's own")),
        "transform": one_line(transform),
        "dtype": "bfloat16 autocast" if bf16 else "float32",
        "timm": timm.__version__,
    }
    return Backbone(described["encoder"], dim, provenance, model, transform, target, bf16, batch_size)


def state_sha256(model: torch.nn.Module) -> str:
    """SHA-256 over names, dtypes, shapes and bytes of a model's parameters and buffers, in order of name."""
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _source(name: str) -> Source:
    """Architecture and weights behind a name."""
    if name in MODELS:
        return source(name)
    try:
        cfg = get_pretrained_cfg(name, allow_unregistered=False)
    except RuntimeError:
        raise InputError(f"Unknown encoder {name!r}: {suggestion(name, names())}") from None
    return Source(f"{cfg.architecture}.{cfg.tag}" if cfg.tag else cfg.architecture, cfg)


def _pretrained(source: Source) -> torch.nn.Module:
    """The model with trained weights and without its classifier."""
    file = local_file(source) or (fetch(source) if source.file else None)
    if file is None:
        ask_hub(source)
        try:
            model = source.create(pretrained=True)
        except (OSError, huggingface_hub.errors.HTTPError) as error:
            raise missing(source, f"the download failed ({one_line(error)[:200]})") from error
    else:
        # With its own classifier the model loads strictly: a file that does not fit is an error, not random weights.
        try:
            overlay = {"state_dict": from_transformers(read(file))}
            model = source.create(pretrained=True, pretrained_cfg_overlay=overlay)
        except UNREADABLE as error:
            raise InputError(
                f"{file} cannot be used as weights of {source.name} ({one_line(error)[:200]}). "
                "Fetch the file again, or remove it."
            ) from error
        model.pretrained_cfg.pop("state_dict")
    model.reset_classifier(0)
    return model
