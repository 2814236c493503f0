"""Frozen backbones from timm: one image in, one vector out, nothing trainable.

The vector is what the model itself pools when its classifier is taken off: for the vision transformers of the papers
the normalised [CLS] token, for convolutional networks the averaged feature map; ``provenance["pooling"]`` says which.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import huggingface_hub
import numpy as np
import timm
import torch
from PIL import Image
from timm.data import create_transform, resolve_model_data_config
from timm.models import get_pretrained_cfg
from torch import Tensor
from torchvision import transforms
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2.functional import center_crop, to_pil_image

from lib import devices
from lib.datasets import crops
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

log = logging.getLogger(__name__)

BATCH, GPU_BATCH = 16, 256
"""Images per forward pass. Of the 64 that a cache asks for at a time, four processors take a batch each."""


Cut = Callable[[Sequence[Tensor], torch.device], Tensor]


@dataclass(eq=False)
class Backbone:
    """A frozen timm model with its own preprocessing, behind the interface of an encoder.

    cut: what the model sees of images (3, h, w) uint8, on a device: (n, 3, H, W) uint8. normalise: makes it float32.
    """

    name: str
    dim: int
    provenance: dict[str, str]
    model: torch.nn.Module
    cut: Cut
    normalise: Callable[[Tensor], Tensor]
    device: torch.device
    dtype: torch.dtype
    batch_size: int

    def encode(self, images: Sequence[Image.Image | np.ndarray | Tensor]) -> np.ndarray:
        """Features of images as (n, dim) float32, computed ``batch_size`` at a time.

        images: of any size, of Pillow in any mode, (h, w, 3) uint8, or as tensors (3, h, w). Where torch has one thread
        (:mod:`lib.pins`), batches run side by side on a CPU. On a GPU without memory enough, batches are halved, with a
        notice.
        """
        batches = [images[start : start + self.batch_size] for start in range(0, len(images), self.batch_size)]
        alone = self.device.type != "cpu" or torch.get_num_threads() > 1
        try:
            with ThreadPoolExecutor(1 if alone else os.cpu_count()) as pool:
                rows = list(pool.map(self._forward, batches))
            return torch.cat([torch.empty(0, self.dim, device=self.device), *rows]).cpu().numpy()
        except torch.OutOfMemoryError as error:
            if self.batch_size == 1:
                raise InputError(
                    f"{self.name}: the memory of {self.device} is too small for one image. Close what else uses it, "
                    "or compute on the CPU: DEVICE=cpu."
                ) from error
        self.batch_size //= 2
        log.warning("%s: no memory on %s; going on with batches of %d.", self.name, self.device, self.batch_size)
        torch.cuda.empty_cache()
        return self.encode(images)

    def seen(self, images: Sequence[Image.Image | np.ndarray | Tensor]) -> Tensor:
        """What the model sees of one or more images before they are normalised: (n, 3, H, W) uint8 on the device."""
        return self.cut([crops.planes(image) for image in images], self.device)

    def prepared(self, images: Sequence[Image.Image | np.ndarray | Tensor]) -> Tensor:
        """One or more images as the model takes them: (n, 3, H, W) float32 on the device."""
        layout = torch.contiguous_format if self.device.type == "cpu" else torch.channels_last
        return self.normalise(self.seen(images).contiguous(memory_format=layout))

    @torch.inference_mode()
    def _forward(self, images: Sequence[Image.Image | np.ndarray | Tensor]) -> Tensor:
        x = self.prepared(images)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            return self.model(x).float()


def load(
    name: str,
    weights: str = "pretrained",
    device: str = "auto",
    dtype: torch.dtype | None = None,
    batch_size: int | None = None,
    seed: int = 0,
) -> Backbone:
    """A timm model as a frozen encoder.

    name: a timm name with or without its weights tag ("vit_small_patch16_224.dino"), or one of
        :data:`lib.encoders.models.MODELS` ("dino_vits16", "uni2_h").
    weights: "pretrained": from ``weights/<timm name>.safetensors``, ``.pth`` or ``.bin`` (``weights/<name>`` for those
        of the zoo that timm does not register), else from the Hugging Face cache, else downloaded;
        "untrained": timm's random initialisation under ``seed``, "-untrained" in the name.
    device: see :func:`lib.devices.pick`.
    dtype: that the network computes in, by autocast; by default float16 on a GPU, where it is twice as fast as float32,
        which TF32 rounds as roughly there. EfficientNet-Lite0's features move by 0.6 percent, with bfloat16 by 6, so
        that one nearest neighbour in ten is another.
    batch_size: images per forward pass; by default :data:`BATCH`, on a GPU :data:`GPU_BATCH`.

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
    return frozen(model, described, device=device, dtype=dtype, batch_size=batch_size)


def frozen(
    model: torch.nn.Module,
    described: Mapping[str, str],
    *,
    device: str,
    dtype: torch.dtype | None,
    batch_size: int | None,
) -> Backbone:
    """A network of timm as an encoder; ``described``: encoder (its name), model, weights. Others as :func:`load`."""
    target = devices.pick(device)
    graphics = target.type == "cuda"
    dtype = dtype or (torch.float16 if graphics else torch.float32)
    layout = torch.channels_last if graphics else torch.preserve_format
    model = model.eval().requires_grad_(False).to(target, memory_format=layout)
    data = resolve_model_data_config(model)
    transform = create_transform(**data, is_training=False, normalize=False)
    by, cut = cutting(transform)
    scale = {"mean": data["mean"], "std": data["std"]}
    with torch.inference_mode():
        dim = model(torch.zeros(1, *data["input_size"], device=target)).shape[1]
    provenance = {
        **described,
        "weights_sha256": state_sha256(model),
        "pooling": one_line(getattr(model, "global_pool", "the model's own")),
        "transform": f"{one_line(transform)} by {by}, {scale}",
        "dtype": str(dtype).removeprefix("torch.") + " autocast" * (dtype != torch.float32),
        "timm": timm.__version__,
    }
    batch_size = batch_size or (GPU_BATCH if graphics else BATCH)
    return Backbone(
        described["encoder"],
        dim,
        provenance,
        model,
        cut,
        partial(crops.normalised, **scale),
        target,
        dtype,
        batch_size,
    )


def cutting(transform: transforms.Compose) -> tuple[str, Cut]:
    """Who does what timm's ``transform`` does to one of Pillow's images, and how it is done to many.

    Pillow itself does what is not resizing by one of two filters and the middle cut out, one image after the other.
    """
    *steps, _ = transform.transforms  # the last makes a tensor of an image
    known = [type(step) for step in steps] == [transforms.Resize, transforms.CenterCrop]
    if not known or steps[0].interpolation not in (InterpolationMode.BICUBIC, InterpolationMode.BILINEAR):
        return "Pillow", lambda images, device: torch.stack([transform(to_pil_image(x)) for x in images]).to(device)
    size, middle, filtered = steps[0].size, list(steps[1].size), {"interpolation": steps[0].interpolation}
    if isinstance(size, int):  # of the shorter side
        return "torchvision", lambda images, device: crops.central(images, size, middle[0], device, **filtered)

    def squashed(images: Sequence[Tensor], device: torch.device) -> Tensor:
        boxes = crops.whole_boxes(crops.shapes_of(images))
        return center_crop(crops.cut(images, boxes, tuple(size), device, **filtered), middle)

    return "torchvision", squashed


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
