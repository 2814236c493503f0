"""What a profile would run: stages, datasets, weights and a rough time, before anything is started."""

import math
from typing import Any

import pandas as pd

from lib import paths
from lib.datasets import DATASETS
from lib.results.index import params
from lib.results.store import markdown_table
from lib.training.hyper_dino import recipes

RULES = 2  # folds by image and by group
WEIGHTS = {
    "dino_vits16": "DINO ViT-S/16 (timm vit_small_patch16_224.dino, about 87 MB, Apache-2.0): timm downloads it at the "
    "first use; without a network put the file into weights/vit_small_patch16_224.dino.safetensors"
}


def head_hours(run: dict[str, Any], n_images: int, dim: int, settings: dict[str, Any]) -> float:
    """Hours of training for one run of ``hyper_dino_retrieval`` at the assumed time per step."""
    training, protocol = settings["hyper_dino"]["training"], settings["hyper_dino"]["protocol"]
    todo = recipes(dim, run["lengths"], settings["hyper_dino"]["mapper"]["dim_out"])
    heads = RULES * protocol["n_folds"] * sum(recipe.dim_out > 0 for recipe in todo)
    n_train = n_images * (protocol["n_folds"] - 1) / protocol["n_folds"]
    steps = heads * training["epochs"] * math.ceil(n_train / training["batch_size"])
    return steps * settings["plan"]["seconds_per_step"] / 3600


def table(profile: str, settings: dict[str, Any]) -> pd.DataFrame:
    """One row per run of ``profile``: stage, dataset, images, encoder, whether the images are here, hours."""
    assumed = settings["plan"]
    rows = []
    for stage in settings["artefacts"]:
        for dataset, run in settings[profile].get(stage, {}).items():
            facts = DATASETS[dataset]
            n = settings["demo"]["tissue"]["n_tiles"] if dataset == "tissue" else facts.images or 0
            dim = assumed["dimensions"][run["encoder"]]
            hours = n / assumed["images_per_second"][run["encoder"]] / 3600 + head_hours(run, n, dim, settings)
            rows.append(
                {
                    "stage": f"{stage}@{dataset}",
                    "dataset": facts.title,
                    "images": f"{n:,}" if n else "yours",
                    "encoder": run["encoder"],
                    "here": "yes" if paths.images(dataset).exists() else "no",
                    "hours": round(hours, 2) if n else float("nan"),
                }
            )
    return pd.DataFrame(rows)


def text(profile: str) -> str:
    """The plan as people read it: the table, then every dataset and weight that is missing and how to get it."""
    settings = params()
    plan, assumed = table(profile, settings), settings["plan"]
    speeds = ", ".join(f"{encoder} {speed}" for encoder, speed in assumed["images_per_second"].items())
    parts = [
        f"Profile {profile} would run {len(plan)} stages, {plan['hours'].sum():.1f} hours by estimate.",
        markdown_table(plan),
        f"The hours are an estimate, not a measurement: {assumed['machine']}, "
        f"{assumed['seconds_per_step'] * 1000:g} ms for a training step of one mapper, images per second: {speeds}.",
    ]
    for dataset in settings[profile]["datasets"]:
        if not paths.images(dataset).exists():
            facts = DATASETS[dataset]
            parts.append(
                f"needs {dataset}: {facts.summary()}.\n  Expected: {facts.layout}.\n"
                f"  Get it, then: make reproduce PROFILE={profile} DATA=<folder that holds it>"
            )
    parts += [f"needs weights: {WEIGHTS[encoder]}" for encoder in settings[profile]["encoders"] if encoder in WEIGHTS]
    return "\n\n".join(parts)
