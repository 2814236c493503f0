"""Networks by name, pretrained or untrained; :mod:`lib.encoders.registry` knows the descriptor without one, too."""

from typing import Any

from lib.encoders import backbones, lite0, small_vit
from lib.encoders.backbones import Backbone


def load(name: str, **options: Any) -> Backbone:
    """The network of that name; with "-untrained" behind it the same network with random weights.

    options: of :func:`lib.encoders.backbones.load` (device, dtype, batch_size, seed).

    Raises InputError for an unknown name and MissingWeights where trained weights cannot be had.
    """
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
