"""What a profile would run: stages, datasets, weights and a rough time, before anything is started."""

import math
from typing import Any

import numpy as np
import pandas as pd

from lib import paths
from lib.datasets import DATASETS
from lib.encoders import zoo
from lib.encoders.weights import local_file, missing
from lib.results.index import expected, params
from lib.results.store import markdown_table
from lib.training.recipes import recipes

TABLES = "hyper_dino_retrieval"
RULES = 2  # folds by image and by group


def head_hours(run: dict[str, Any], n_images: int, dim: int, settings: dict[str, Any]) -> float:
    """Hours of training for one run of ``hyper_dino_retrieval`` at the assumed time per step."""
    training, protocol = settings["hyper_dino"]["training"], settings["hyper_dino"]["protocol"]
    todo = recipes(dim, run["lengths"], settings["hyper_dino"]["mapper"]["dim_out"])
    heads = RULES * protocol["n_folds"] * sum(recipe.dim_out > 0 for recipe in todo)
    n_train = n_images * (protocol["n_folds"] - 1) / protocol["n_folds"]
    steps = heads * run.get("epochs", training["epochs"]) * math.ceil(n_train / training["batch_size"])
    return steps * settings["plan"]["seconds_per_step"] / 3600


def table(profile: str, settings: dict[str, Any]) -> pd.DataFrame:
    """One row per run of ``profile``: stage, dataset, images, encoder, whether the images are here, hours.

    Only the retrieval tables take hours worth estimating: the features of their encoder and all their mappers.
    """
    assumed = settings["plan"]
    rows = []
    for stage in settings["artefacts"]:
        for dataset, run in settings[profile].get(stage, {}).items():
            n = _images(dataset, settings)
            hours = float("nan")
            if stage == TABLES and n:
                encoding = n / assumed["images_per_second"][run["encoder"]] / 3600
                hours = encoding + head_hours(run, n, assumed["dimensions"][run["encoder"]], settings)
            here = dataset not in DATASETS or paths.images(dataset).exists()
            rows.append(
                {
                    "stage": f"{stage}@{dataset}",
                    "dataset": DATASETS[dataset].title if dataset in DATASETS else "no images",
                    "images": f"{n:,}" if n else "yours" if dataset == "folder" else "–",
                    "encoder": run.get("encoder", "–"),
                    "here": "yes" if here else "no",
                    "hours": "–" if math.isnan(hours) else f"{hours:.2f}",
                    "estimate": hours,
                }
            )
    return pd.DataFrame(rows)


def _images(dataset: str, settings: dict[str, Any]) -> int:
    """How many images a dataset has; 0 for your own, and where a notebook needs none."""
    if dataset == "tissue":
        return settings["demo"]["tissue"]["n_tiles"]
    return (DATASETS[dataset].images or 0) if dataset in DATASETS else 0


def text(profile: str) -> str:
    """The plan as people read it: the table, then every dataset and weight that is missing and how to get it."""
    settings = params()
    plan, assumed = table(profile, settings), settings["plan"]
    speeds = ", ".join(f"{encoder} {speed}" for encoder, speed in assumed["images_per_second"].items())
    parts = [
        f"Profile {profile} would run {len(plan)} stages; tables: {plan['estimate'].sum():.1f} hours by estimate.",
        markdown_table(plan.drop(columns="estimate")),
        f"The hours are an estimate for {assumed['machine']}: "
        f"{assumed['seconds_per_step'] * 1000:g} ms for a training step of one mapper, images per second: {speeds}.",
    ]
    for dataset in settings[profile]["datasets"]:
        if not paths.images(dataset).exists():
            facts = DATASETS[dataset]
            parts.append(
                f"needs {dataset}: {facts.summary()}.\n  Expected: {facts.layout}.\n"
                f"  Get it, then: make reproduce PROFILE={profile} DATA=<folder that holds it>"
            )
    for name in weights(profile, settings):
        how = missing(zoo.source(name), "they do not come with this project")
        parts.append(f"needs weights of {zoo.MODELS[name].row} ({name}): {how}")
    return "\n\n".join(parts)


def weights(profile: str, settings: dict[str, Any]) -> list[str]:
    """Backbones that some run of the profile wants and whose weights are not on this machine."""
    runs = [item["run"] for item in expected(settings) if item["profile"] == profile]
    wanted = {name for run in runs for name in [run.get("encoder"), *np.atleast_1d(run.get("beside", []))]}
    return [name for name in zoo.MODELS if name in wanted and local_file(zoo.source(name)) is None]
