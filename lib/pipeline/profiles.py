"""What each profile runs, read from ``params.yaml`` and ``pipelines/<profile>/``."""

import re
from pathlib import Path
from typing import Any

from lib import paths
from lib.datasets import LOADERS
from lib.encoders.zoo import MODELS
from lib.pipeline import params
from lib.pipeline.notebooks import parameters, read

PROFILES = {"demo": "demo", "sample": "real sample", "paper": "published setting", "own": "your own images"}
"""Short name and the words that reports have for it."""


def settings() -> dict[str, Any]:
    """params.yaml: published hyper-parameters, tolerances, speeds."""
    return params.load(paths.ROOT / "params.yaml")


def profile(name: str) -> dict[str, Any]:
    """What ``demo``, ``sample`` or ``paper`` runs: images, features, and ``runs``: stage → dataset → parameters."""
    return params.load(paths.PIPELINES / name / "params.yaml")


def runs(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Stage → dataset → parameters of one profile."""
    return profile(name)["runs"]


def stages() -> dict[str, dict[str, Any]]:
    """Stage → its entry in the one text that all profiles share."""
    return params.load(paths.PIPELINES / "demo" / "dvc.yaml")["stages"]


def commands() -> dict[str, str]:
    """Stage → its command, with templates."""
    return {name: stage.get("do", stage)["cmd"] for name, stage in stages().items()}


def notebooks() -> dict[str, str]:
    """Stage → the notebook that it runs."""
    found = {stage: re.search(r"notebooks run (\w+)", command) for stage, command in commands().items()}
    return {stage: match[1] for stage, match in found.items() if match}


def check(file: Path, own: str | None = None) -> None:
    """Refuse a profile's ``params.yaml`` that cannot be run, before anything is; ``own``: name of one's own images.

    Raises InputError naming every stage, dataset, encoder, parameter or value that does not fit, with what was meant.
    """
    content = params.load(file)
    defaults = {stage: parameters(read(paths.NOTEBOOKS / f"{name}.ipynb")) for stage, name in notebooks().items()}
    datasets, encoders = [*LOADERS, *filter(None, [own])], _encoders(content)
    for block in ("features", "features_more"):
        params.check_names("dataset", content[block]["datasets"], datasets, f"{file}, {block}")
        params.check_names("encoder", content[block]["encoders"], encoders, f"{file}, {block}")
    params.check_runs(content["runs"], defaults, datasets, encoders, str(file))


def _encoders(content: dict[str, Any]) -> list[str]:
    """Names that an encoder can have: those of this project, and if ``content`` has others, all that timm knows."""
    ours = ["texture", "demo_vit", *MODELS]
    runs = [run for datasets in content["runs"].values() for run in datasets.values()]
    used = {name.removesuffix("-untrained") for run in runs for name in [run.get("encoder", "texture")]}
    if used <= set(ours):
        return ours
    import timm  # takes seconds, and is needed only where somebody brings a network of their own

    return [*ours, *timm.list_models()]
