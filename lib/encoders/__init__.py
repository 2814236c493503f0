"""Images to vectors: the texture descriptor, frozen backbones, and features cached with their provenance."""

from typing import Any

from lib.encoders.cache import Encoder, Features, extract, load
from lib.encoders.texture import Texture

__all__ = ["Encoder", "Features", "Texture", "extract", "load", "make"]


def make(name: str, **options: Any) -> Encoder:
    """The encoder of that name.

    name: "texture"; a timm model or alias ("dino_vits16", "resnet50"); with "-untrained" behind it the same model
        with random weights.
    options: of :func:`lib.encoders.backbones.load` (device, bf16, batch_size, seed) for timm models.

    Raises InputError for an unknown name and MissingWeights where trained weights cannot be had.
    """
    if name == "texture":
        return Texture(**options)
    from lib.encoders import backbones  # torch and timm take seconds to import and texture needs neither

    if name.endswith(backbones.UNTRAINED):
        return backbones.load(name.removesuffix(backbones.UNTRAINED), weights="untrained", **options)
    return backbones.load(name, **options)
