"""Feature maps from inside a frozen convolutional network, where ACIR taps it: a shallow and a deep one (Section 3.2).

A pooled feature has lost where things are; attention over pixels needs maps. They are kept as float16, named by what
they depend on, so that they are made once.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from PIL import Image
from safetensors import SafetensorError
from safetensors.numpy import load_file, save
from torch import Tensor, nn

from lib import checks, files, paths, pins
from lib.datasets.images import READING
from lib.datasets.pixels import decode
from lib.datasets.table import ImageTable
from lib.encoders import networks
from lib.errors import InputError
from lib.progress import track

if TYPE_CHECKING:
    from lib.encoders.backbones import Backbone  # which takes seconds to import

log = logging.getLogger(__name__)

SHALLOW, DEEP = 8, 32
"""The strides of the two maps: of a ResNet-50 those of its second and its last block, as in the paper."""

AT_ONCE, BATCH = 64, 16
"""Images that are worked on at a time, and in one forward pass, as in :mod:`lib.encoders.backbones`."""


class Taps(NamedTuple):
    """Feature maps of n images from a frozen encoder.

    shallow: (n, C1, h1, w1) float16, of stride 8. deep: (n, C2, h2, w2) float16, of stride 32. Of
    efficientnet_lite0_96px: 40 channels of 12 × 12, and 320 of 3 × 3.
    """

    shallow: np.ndarray
    deep: np.ndarray

    def take(self, rows: np.ndarray | slice) -> "Taps":
        """The maps of some of the images."""
        return Taps(self.shallow[rows], self.deep[rows])


def pooled(taps: Taps) -> np.ndarray:
    """The mean of each deep channel over its pixels, (n, C2) float32."""
    return taps.deep.mean(axis=(2, 3), dtype=np.float32)


class Stem(nn.Module):
    """A convolutional network of timm up to its last map: images (b, 3, H, W), normalised, to (shallow, deep).

    Everything behind the last map is cut off. Raises InputError for a network without maps of strides 8 and 32.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        strides = [level["reduction"] for level in getattr(model, "feature_info", [])]
        if SHALLOW not in strides or strides[-1] != DEEP:
            raise InputError(
                f"{type(model).__name__} has no maps of strides {SHALLOW} and {DEEP}: take a convolutional network, "
                "such as efficientnet_lite0_96px or resnet50"
            )
        self.model, self.indices = model, [strides.index(SHALLOW), len(strides) - 1]
        self.channels = tuple(model.feature_info[index]["num_chs"] for index in self.indices)
        model.prune_intermediate_layers(self.indices, prune_head=True)

    @property
    def pretrained_cfg(self) -> dict:
        """What timm knows of the network; :func:`lib.training.finetune.thaw` asks for its first layer."""
        known = dict(self.model.pretrained_cfg)
        first = known["first_conv"]
        names = [first] if isinstance(first, str) else first
        return known | {"first_conv": [f"model.{name}" for name in names]}

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        shallow, deep = self.model.forward_intermediates(x, indices=self.indices, intermediates_only=True)
        return shallow, deep


def stem(encoder: str) -> Stem:
    """The network of that name as a :class:`Stem`, in evaluation mode, weights trainable.

    encoder: efficientnet_lite0 with any side behind it, a ResNet or another convolutional network of timm; each with
    "-untrained" behind its name, too.

    Raises InputError for any other, MissingWeights as :func:`lib.encoders.networks.load`.
    """
    return _parts(encoder)[1].requires_grad_(True)


def extract(images: ImageTable, encoder: str, *, flipped: bool = False) -> Taps:
    """The maps of all images, kept among what was trained.

    flipped: of every image's mirror image, left for right. Raises BrokenImage for a file that cannot be read, and
    InputError for an encoder without maps, or with values that float16 cannot hold.
    """
    backbone, network = _parts(encoder)
    values = _once(
        images, {**backbone.provenance, "flipped": str(flipped)}, lambda: _seen(images, backbone, network, flipped)
    )
    return Taps(values["shallow"], values["deep"])


def pixels(images: ImageTable, encoder: str) -> np.ndarray:
    """What the encoder sees of every image, before it is normalised: (n, 3, H, W) uint8."""
    backbone, decoded = _backbone(encoder), decode(images).images
    return np.concatenate([backbone.seen(decoded[part]).cpu().numpy() for part in _slices(len(decoded), BATCH)])


def scale(encoder: str) -> tuple[Tensor, Tensor]:
    """Mean and deviation, (3, 1, 1) each, by which the encoder normalises pixels from 0 to 1."""
    from timm.data import resolve_model_data_config  # which takes seconds to import

    known = resolve_model_data_config(_backbone(encoder).model)
    return tuple(torch.tensor(known[values]).reshape(3, 1, 1) for values in ("mean", "std"))


def _parts(encoder: str) -> "tuple[Backbone, Stem]":
    backbone = _backbone(encoder)
    return backbone, Stem(backbone.model).eval()


def _backbone(encoder: str) -> "Backbone":
    if encoder == "texture":
        raise InputError("texture has no feature maps: take a convolutional network")
    return networks.load(encoder, device="cpu")


def _seen(images: ImageTable, backbone: "Backbone", network: Stem, flipped: bool) -> dict[str, np.ndarray]:
    decoded = decode(images).images
    what = f"{backbone.name} maps of {images.name}"
    parts = track(
        _slices(len(decoded), AT_ONCE), total=len(decoded), what=what, unit="images", size=lambda x: x.stop - x.start
    )
    made = [maps(decoded[part], backbone, network, flipped) for part in parts]
    return {name: np.concatenate([getattr(part, name) for part in made]) for name in Taps._fields}


def _slices(n: int, at_once: int) -> list[slice]:
    return [slice(start, min(start + at_once, n)) for start in range(0, n, at_once)]


def maps(images: Sequence[Image.Image | Tensor], backbone: "Backbone", network: Stem, flipped: bool = False) -> Taps:
    """The maps of images of any size, :data:`BATCH` at a time, side by side on a CPU."""

    @torch.inference_mode()
    def forward(part: slice) -> tuple[Tensor, Tensor]:
        x = backbone.prepared(images[part])
        return network(x.flip(3) if flipped else x)

    with ThreadPoolExecutor(1 if torch.get_num_threads() > 1 else os.cpu_count()) as pool:
        shallow, deep = (torch.cat(x) for x in zip(*pool.map(forward, _slices(len(images), BATCH)), strict=True))
    for name, values in (("shallow", shallow), ("deep", deep)):
        what = f"{backbone.name}: values of the {name} map"
        checks.fits(what, values.abs().max().item(), 16, "take another encoder")
    return Taps(shallow.half().cpu().numpy(), deep.half().cpu().numpy())


def _once(
    images: ImageTable, about: dict[str, str], compute: Callable[[], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """What ``compute`` returns, or returned before for these images (by content) and this encoder."""
    if paths.TRAINED is None:
        return compute()
    digest = hashlib.sha256(json.dumps([about, pins.settings(), torch.__version__, SHALLOW, DEEP, READING]).encode())
    for i in range(len(images)):
        digest.update(hashlib.sha256(images.path(i).read_bytes()).digest() if images.path(i).is_file() else b"missing")
    file = paths.TRAINED / f"{digest.hexdigest()}.taps.safetensors"
    if file.is_file():
        try:
            return load_file(file)
        except SafetensorError as error:
            log.warning("%s is damaged (%s): computing it again.", file, error)
    values = compute()
    with files.whole(file) as draft:
        draft.write_bytes(save({name: np.ascontiguousarray(value) for name, value in values.items()}))
    return values
