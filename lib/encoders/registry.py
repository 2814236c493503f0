"""Encoders by name. What takes seconds to import (timm, torch, scikit-image) is imported by who needs it."""

from typing import Any

from lib.encoders.cache import Encoder


def make(name: str, **options: Any) -> Encoder:
    """The encoder of that name.

    name: "texture"; "efficientnet_lite0" or "densenet121", whose weights come with the environment, or
        "efficientnet_lite0_96px" for images of 96 pixels; "demo_vit", whose weights come with this package; one of
        :data:`lib.encoders.models.MODELS` ("dino_vits16", "uni2_h"); a timm model ("resnet50"); a network's name with
        "-untrained" behind it is the same network with random weights.
    options: of :func:`lib.encoders.networks.load`.

    Raises InputError for an unknown name and MissingWeights where trained weights cannot be had.
    """
    if name == "texture":
        from lib.encoders.texture import Texture

        return Texture(**options)
    from lib.encoders import networks

    return networks.load(name, **options)


def names() -> list[str]:
    """Every name that :func:`make` knows, ours first; each but "texture" also with "-untrained" behind it."""
    from lib.encoders import zoo

    return zoo.names()
