"""Encoders by name. What takes seconds to import (timm, torch, scikit-image) is imported by who needs it."""

from typing import Any

from lib.encoders.cache import Encoder


def make(name: str, **options: Any) -> Encoder:
    """The encoder of that name.

    name: "texture"; "efficientnet_lite0", whose weights come with the environment, or "efficientnet_lite0_96px" for
        images of 96 pixels; "demo_vit", whose weights come with this package; one of :data:`lib.encoders.models.MODELS`
        ("dino_vits16", "uni2_h"); a timm model ("resnet50"); a network's name with "-untrained" behind it is the same
        network with random weights.
    options: of :func:`lib.encoders.backbones.load` (device, bf16, batch_size, seed) for networks.

    Raises InputError for an unknown name and MissingWeights where trained weights cannot be had.
    """
    if name == "texture":
        from lib.encoders.texture import Texture

        return Texture(**options)
    from lib.encoders import backbones, lite0, small_vit

    plain = name.removesuffix(backbones.UNTRAINED)
    if lite0.size(plain):
        return lite0.load(plain, weights="pretrained" if name == plain else "untrained", **options)
    if name == small_vit.NAME:
        return small_vit.load(**options)
    if name == small_vit.NAME + backbones.UNTRAINED:
        return small_vit.load(None, **options)
    if name.endswith(backbones.UNTRAINED):
        return backbones.load(plain, weights="untrained", **options)
    return backbones.load(name, **options)


def names() -> list[str]:
    """Every name that :func:`make` knows, ours first; each but "texture" also with "-untrained" behind it."""
    from lib.encoders import zoo

    return zoo.names()


def wanting(name: str) -> str | None:
    """How to get the weights of a model of :data:`lib.encoders.models.MODELS`; None if they are on this machine."""
    from lib.encoders import weights, zoo

    source = zoo.source(name)
    here = weights.local_file(source) is not None
    return None if here else str(weights.missing(source, "they do not come with this project"))
