"""Networks by name, pretrained or untrained; :mod:`lib.encoders.registry` knows the descriptor without one, too."""

from typing import Any

from lib.encoders import backbones, packaged, small_vit
from lib.encoders.backbones import Backbone
from lib.encoders.models import UNTRAINED


def load(name: str, **options: Any) -> Backbone:
    """The network of that name, as :func:`lib.encoders.registry.make`; texture is none.

    options: seed, of random weights, and those of :func:`lib.encoders.backbones.frozen` (device, dtype, batch_size).

    Raises InputError for an unknown name and MissingWeights where trained weights cannot be had.
    """
    plain = name.removesuffix(UNTRAINED)
    if packaged.sized(plain):
        return packaged.load(plain, trained=plain == name, **options)
    if plain == small_vit.NAME:
        return small_vit.load(small_vit.WEIGHTS if plain == name else None, **options)
    return backbones.load(plain, trained=plain == name, **options)
