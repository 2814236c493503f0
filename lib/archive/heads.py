"""A fitted head in one file, without code: what it is in words, its weights and its reduction as numbers."""

import dataclasses
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from sklearn.preprocessing import StandardScaler

from lib.errors import InputError
from lib.heads import Reduction
from lib.training.methods import Fitted, Health, Method
from lib.training.splits import Split

NETWORK, SCALER = "network.", ("mean_", "var_", "scale_")


def write(file: Path, fitted: Fitted) -> None:
    """Write what :func:`read` needs to embed as ``fitted`` does; the images that it has learnt from are no part."""
    scaler, matrix = fitted.reduction.scaler, fitted.reduction.matrix
    numbers = {name: value for name in SCALER if (value := getattr(scaler, name)) is not None}
    tensors = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in numbers.items()}
    if matrix is not None:
        tensors["matrix"] = torch.from_numpy(np.ascontiguousarray(matrix))
    if fitted.network is not None:
        tensors |= {NETWORK + name: value.contiguous() for name, value in fitted.network.state_dict().items()}
    about = {
        "method": _words(fitted.method),
        "seed": fitted.split.seed,
        "half": fitted.reduction.half,
        "numbers": int(scaler.n_features_in_),
    }
    save_file(tensors, file, {"about": json.dumps(about, sort_keys=True)})


def read(file: Path) -> Fitted:
    """What :func:`write` wrote; its ``split`` holds no images.

    Raises InputError, naming the file, where it is damaged or of another version of this project.
    """
    try:
        with safe_open(file, framework="pt") as opened:
            about = json.loads(opened.metadata()["about"])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118, it is no dict
        method = _meant(about["method"])
        if not isinstance(method, Method):
            raise ValueError(f"it holds a {type(method).__name__}, not a method")
        reduction = Reduction(_scaler(tensors, about["numbers"]), _array(tensors, "matrix"), about["half"])
        network = None
        if method.recipe.dim_out:
            weights = {name.removeprefix(NETWORK): t for name, t in tensors.items() if name.startswith(NETWORK)}
            network = method.head.make(method.recipe, about["seed"])
            network.load_state_dict(weights)
            network.eval()
    except (OSError, SafetensorError, LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(
            f"{file} is damaged, or was written by another version of this project ({why}). Build the archive again."
        ) from error
    none = np.arange(0)
    return Fitted(method, Split(0, none, none, about["seed"]), reduction, network, [], Health())


def _scaler(tensors: dict[str, torch.Tensor], numbers: int) -> StandardScaler:
    scaler = StandardScaler(with_mean="mean_" in tensors, with_std="scale_" in tensors)
    scaler.n_features_in_ = numbers
    for name in SCALER:
        setattr(scaler, name, _array(tensors, name))
    return scaler


def _array(tensors: dict[str, torch.Tensor], name: str) -> np.ndarray | None:
    return tensors[name].numpy() if name in tensors else None


def _words(value: Any) -> Any:
    """Settings as JSON holds them: a dataclass by its name and fields, a tuple as such."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: _words(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
        return {"of": f"{type(value).__module__}:{type(value).__qualname__}", "fields": fields}
    if isinstance(value, tuple):
        return {"tuple": [_words(item) for item in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a setting of the kind {type(value).__name__} has no form in a file")


def _meant(words: Any) -> Any:
    """What :func:`_words` put down; only dataclasses of this project are made."""
    if not isinstance(words, dict):
        return words
    if "tuple" in words:
        return tuple(map(_meant, words["tuple"]))
    module, _, name = words["of"].partition(":")
    if module.partition(".")[0] != "lib":
        raise ValueError(f"{words['of']} is not of this project")
    kind = getattr(importlib.import_module(module), name)
    if not dataclasses.is_dataclass(kind):
        raise ValueError(f"{words['of']} is no setting")
    return kind(**{field: _meant(value) for field, value in words["fields"].items()})
