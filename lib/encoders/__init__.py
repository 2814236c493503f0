"""Images to vectors: the texture descriptor, frozen backbones, and features cached with their provenance."""

from typing import Any

from lib.encoders.cache import Encoder, Features, extract, load
from lib.encoders.texture import Texture

__all__ = ["Encoder", "Features", "Texture", "extract", "load", "make"]


def make(name: str, **options: Any) -> Encoder:
    """The encoder of that name.

    name: "texture"; "demo_vit", whose weights come with this package; one of :data:`lib.encoders.zoo.MODELS`
        ("dino_vits16", "uni2_h"); a timm model ("resnet50"); a network's name with "-untrained" behind it is the same
        network with random weights.
    options: of :func:`lib.encoders.backbones.load` (device, bf16, batch_size, seed) for networks.

    Raises InputError for an unknown name and MissingWeights where trained weights cannot be had.
    """
    if name == "texture":
        return Texture(**options)
    from lib.encoders import backbones, small_vit  # torch and timm take seconds to import, texture needs neither

    if name == small_vit.NAME:
        return small_vit.load(**options)
    if name == small_vit.NAME + backbones.UNTRAINED:
        return small_vit.load(None, **options)
    if name.endswith(backbones.UNTRAINED):
        return backbones.load(name.removesuffix(backbones.UNTRAINED), weights="untrained", **options)
    return backbones.load(name, **options)
