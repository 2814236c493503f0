"""Frozen backbones from timm: one image in, one vector out, nothing trainable.

The vector is what the model itself pools when its classifier is taken off: for the vision transformers of the papers
the normalised [CLS] token, for convolutional networks the averaged feature map; ``provenance["pooling"]`` says which.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import timm
import torch
from PIL import Image
from timm.data import create_transform, resolve_model_data_config
from torch import Tensor
from torchvision import transforms
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2.functional import center_crop, to_pil_image

from lib import devices
from lib.datasets import crops
from lib.encoders import zoo
from lib.encoders.models import UNTRAINED
from lib.encoders.weights import Source, downloading, fetch, fitting, from_transformers, local_file, one_line, read
from lib.errors import InputError

log = logging.getLogger(__name__)

BATCH, GPU_BATCH = 16, 256
"""Images per forward pass. Of the 64 that a cache asks for at a time, four processors take a batch each."""

Images = Sequence[Image.Image | np.ndarray | Tensor]
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

    def encode(self, images: Images) -> np.ndarray:
        """Features of images as (n, dim) float32, computed ``batch_size`` at a time.

        images: of any size, of Pillow in any mode, (h, w, 3) uint8, or as tensors (3, h, w). Where torch has one thread
        (:mod:`lib.pins`), batches run side by side on a CPU. On a GPU without memory enough, batches are halved, with a
        notice.
        """
        batches = [images[start : start + self.batch_size] for start in range(0, len(images), self.batch_size)]
        single = self.device.type != "cpu" or torch.get_num_threads() > 1
        try:
            with ThreadPoolExecutor(1 if single else os.cpu_count()) as pool:
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

    def seen(self, images: Images) -> Tensor:
        """What the model sees of one or more images before they are normalised: (n, 3, H, W) uint8 on the device."""
        return self.cut([crops.planes(image) for image in images], self.device)

    def prepared(self, images: Images) -> Tensor:
        """One or more images as the model takes them: (n, 3, H, W) float32 on the device."""
        layout = torch.contiguous_format if self.device.type == "cpu" else torch.channels_last
        return self.normalise(self.seen(images).contiguous(memory_format=layout))

    @torch.inference_mode()
    def _forward(self, images: Images) -> Tensor:
        x = self.prepared(images)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            return self.model(x).float()


def load(name: str, trained: bool = True, seed: int = 0, **options: Any) -> Backbone:
    """A timm model as a frozen encoder.

    name: a timm name with or without its weights tag ("vit_small_patch16_224.dino"), or one of
        :data:`lib.encoders.models.MODELS` ("dino_vits16", "uni2_h").
    trained: weights from ``weights/<timm name>.safetensors``, ``.pth`` or ``.bin`` (``weights/<name>`` for those
        of the zoo that timm does not register), else from the Hugging Face cache, else downloaded. Otherwise timm's
        random initialisation under ``seed``, and "-untrained" in the name.
    options: of :func:`frozen`.

    Raises InputError for a name that timm does not know or a weights file that does not fit, MissingWeights
    where trained weights cannot be had.
    """
    source = zoo.source(name)
    if trained:
        return frozen(_pretrained(source), name, source.model, "pretrained", **options)
    with seeded(seed):
        model = source.create(pretrained=False, num_classes=0)
    return frozen(model, name + UNTRAINED, source.model, f"untrained, seed {seed}", **options)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Torch's random numbers depend on ``seed`` alone; afterwards its generator is as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def frozen(
    model: torch.nn.Module,
    name: str,
    architecture: str,
    weights: str,
    device: str = "auto",
    dtype: torch.dtype | None = None,
    batch_size: int | None = None,
) -> Backbone:
    """A network of timm as an encoder.

    name, architecture, weights: of the encoder, as its provenance says them.
    device: see :func:`lib.devices.pick`.
    dtype: that the network computes in, by autocast; by default float16 on a GPU, where it is twice as fast as float32,
        which TF32 rounds as roughly there. EfficientNet-Lite0's features move by 0.6 percent, with bfloat16 by 6, so
        that one nearest neighbour in ten is another.
    batch_size: images per forward pass; by default :data:`BATCH`, on a GPU :data:`GPU_BATCH`.
    """
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
        "encoder": name,
        "model": architecture,
        "weights": weights,
        "weights_sha256": state_sha256(model),
        "pooling": one_line(getattr(model, "global_pool", "the model's own")),
        "transform": f"{one_line(transform)} by {by}, {scale}",
        "dtype": str(dtype).removeprefix("torch.") + " autocast" * (dtype != torch.float32),
        "timm": timm.__version__,
    }
    batch_size = batch_size or (GPU_BATCH if graphics else BATCH)
    normalise = partial(crops.normalised, **scale)
    return Backbone(name, dim, provenance, model, cut, normalise, target, dtype, batch_size)


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


def _pretrained(source: Source) -> torch.nn.Module:
    """The model with trained weights and without its classifier."""
    file = local_file(source) or (fetch(source) if source.file else None)
    if file is None:
        with downloading(source):
            model = source.create(pretrained=True)
    else:
        # With its own classifier the model loads strictly: a file that does not fit is an error, not random weights.
        with fitting(file, source.name, "Fetch the file again, or remove it."):
            overlay = {"state_dict": from_transformers(read(file))}
            model = source.create(pretrained=True, pretrained_cfg_overlay=overlay)
        model.pretrained_cfg.pop("state_dict")
    model.reset_classifier(0)
    return model
