"""What timm builds for a name, which weights are missing for it, and Table I as it can be run."""

from dataclasses import replace

import pandas as pd
import timm
import torch
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.layers import SwiGLUPacked
from timm.models import PretrainedCfg, get_pretrained_cfg

from lib import paths
from lib.encoders.models import MODELS, OURS, SIZE
from lib.encoders.weights import Source, local_file, missing
from lib.errors import InputError, suggestion

SWIGLU = {"mlp_layer": SwiGLUPacked, "act_layer": torch.nn.SiLU}


def names() -> list[str]:
    """Every name that :func:`.registry.make` knows, ours first; each but "texture" also with "-untrained" behind."""
    return [*OURS, *timm.list_models(), *timm.list_pretrained()]


def source(name: str) -> Source:
    """What timm needs to build the model of that name, and where its weights are.

    name: of :data:`MODELS`, or of timm with or without the tag of the weights. Raises InputError for any other.
    """
    if name not in MODELS:
        try:
            cfg = get_pretrained_cfg(name, allow_unregistered=False)
        except RuntimeError:
            raise InputError(f"Unknown encoder {name!r}: {suggestion(name, names())}") from None
        return Source(f"{cfg.architecture}.{cfg.tag}" if cfg.tag else cfg.architecture, cfg)
    model = MODELS[name]
    changes = {**model.changes, **(SWIGLU if model.swiglu else {})}
    if not model.repository:
        cfg = replace(get_pretrained_cfg(model.architecture), **model.preprocessing)
        return Source(model.architecture, cfg, changes=changes, licence=model.licence)
    cfg = PretrainedCfg(
        architecture=model.architecture,
        hf_hub_id=model.repository,
        input_size=SIZE,
        fixed_input_size=True,
        num_classes=0,
        mean=IMAGENET_DEFAULT_MEAN,
        std=IMAGENET_DEFAULT_STD,
        first_conv="patch_embed.proj",
        classifier="head",
        license=model.licence,
        **{"interpolation": "bicubic", "crop_pct": 1.0, **model.preprocessing},
    )
    return Source(name, cfg, model.file, changes, model.licence, model.gated)


def table() -> pd.DataFrame:
    """Table I as it can be run: a row per model, ours and the published numbers side by side.

    Columns name (to load it by), model (in Table I), timm, dim, parameters_millions (counted, without the classifier),
    licence, gated, weights_here (a file or a cache entry exists), and those of :func:`published`.
    """
    rows = []
    for name, model in MODELS.items():
        skeleton = source(name).skeleton(num_classes=0)
        rows.append(
            {
                "name": name,
                "model": model.row,
                "timm": model.architecture,
                "dim": skeleton.num_features,
                "parameters_millions": sum(weight.numel() for weight in skeleton.parameters()) / 1e6,
                "licence": model.licence,
                "gated": model.gated,
                "weights_here": local_file(source(name)) is not None,
            }
        )
    return pd.DataFrame(rows).merge(published(), how="left", on="model", validate="one_to_one")


def published() -> pd.DataFrame:
    """Table I as printed: columns model, data, learning, published_dim, published_parameters_millions."""
    cells = pd.read_csv(paths.PUBLISHED / "linear_prototypes_table1_models.csv")
    keys = {"method": "model", "pretraining_data": "data", "learning": "learning"}
    wide = cells.pivot(index=list(keys), columns="metric", values="value").reset_index().rename(columns=keys)
    wide = wide.rename(columns={"embedding dimension": "published_dim", "parameters": "published_parameters_millions"})
    columns = [*keys.values(), "published_dim", "published_parameters_millions"]
    return wide[columns].rename_axis(columns=None).astype({"published_dim": int})


def wanting(name: str) -> str | None:
    """How to get the weights of a network, named as for :func:`source`; None if they are on this machine."""
    wanted = source(name)
    return None if local_file(wanted) else str(missing(wanted, "they do not come with this project"))
