"""What each profile runs, read from ``params.yaml`` and ``pipelines/<profile>/``."""

import re
from typing import Any

import yaml

from lib import paths
from lib.datasets.catalogue import DATASETS
from lib.encoders import zoo
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
    text = (paths.PIPELINES / "demo" / "dvc.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["stages"]


def commands() -> dict[str, str]:
    """Stage → its command, with templates."""
    return {name: stage.get("do", stage)["cmd"] for name, stage in stages().items()}


def notebooks() -> dict[str, str]:
    """Stage → the notebook that it runs."""
    found = {stage: re.search(r"notebooks run (\w+)", command) for stage, command in commands().items()}
    return {stage: match[1] for stage, match in found.items() if match}


def check(name: str) -> None:
    """Raise InputError for what the profile ``name`` cannot run, see :func:`lib.pipeline.params.check_runs`."""
    where, content = f"pipelines/{name}/params.yaml", profile(name)
    known, encoders = list(DATASETS), zoo.names()
    defaults = {stage: parameters(read(paths.NOTEBOOKS / f"{one}.ipynb")) for stage, one in notebooks().items()}
    params.check_runs(content.get("runs"), defaults, known, encoders, where)
    for features in ("features", "features_more"):
        params.check_names("dataset", content[features]["datasets"], known, where)
        params.check_names("encoder", content[features]["encoders"], encoders, where)
