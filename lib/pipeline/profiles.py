"""What each profile runs, read from ``params.yaml`` and ``pipelines/<profile>/``."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from lib import checks, paths
from lib.datasets.loaders import LOADERS
from lib.encoders import registry
from lib.encoders.models import OURS
from lib.errors import InputError
from lib.pipeline import params
from lib.pipeline.notebooks import parameters, read

FEATURES = ("features", "features_few", "features_more")
"""Blocks of datasets and encoders: frozen features of all of one with all of the other."""
KEYS = ("profile", "images", "datasets", *FEATURES, "views", "n_views", "runs")


def settings() -> dict[str, Any]:
    """params.yaml: published hyper-parameters, speeds."""
    return params.load(paths.ROOT / "params.yaml")


def profile(name: str) -> dict[str, Any]:
    """What ``demo``, ``sample``, ``gpu`` or ``paper`` runs: images, features, ``runs`` (stage → dataset → parameters).

    Of ``gpu`` also ``order``: its stages as stage@dataset, those worth most first.
    """
    return params.load(paths.PIPELINES / name / "params.yaml")


def runs(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Stage → dataset → parameters of one profile; nothing of a stage that it does not name."""
    return {stage: {} for stage in notebooks()} | profile(name)["runs"]


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


def needing_others() -> set[str]:
    """The stages with a notebook that read what another notebook wrote."""
    texts = stages()
    entries = {stage: texts[stage]["do"] for stage in notebooks()}
    made = {out for entry in entries.values() for outs in entry["outs"] for out in outs}
    return {stage for stage, entry in entries.items() if made & set(entry["deps"])}


def check(file: Path, own: str | None = None) -> None:
    """Refuse a profile's ``params.yaml`` that cannot be run, before anything is; ``own``: name of one's own images.

    Raises InputError for what does not fit, with what was meant; see :func:`lib.pipeline.params.check_runs`.
    """
    content, where = params.load(file), "/".join(file.parts[-3:])
    try:
        _check(content, where, own, OURS)
    except InputError:  # perhaps a network of timm, whose names take seconds to load
        _check(content, where, own, registry.names())


def _check(content: dict[str, Any], where: str, own: str | None, known: Collection[str]) -> None:
    """``known``: names of encoders."""
    datasets = [*LOADERS, *filter(None, [own])]
    defaults = {stage: parameters(read(paths.NOTEBOOKS / f"{one}.ipynb")) for stage, one in notebooks().items()}
    params.check_runs(content.get("runs"), defaults, datasets, known, where)
    params.check_keys(content, (*KEYS, "order") if content.get("profile") == "gpu" else KEYS, where)
    stages = [f"{stage}@{dataset}" for stage, by_dataset in content["runs"].items() for dataset in by_dataset]
    params.check_names("stage", content.get("order", []), stages, f"{where}, order")
    params.check_names("dataset", content["datasets"], datasets, where)
    params.check_names("dataset", [*content["views"]], content["datasets"], f"{where}, views")
    params.check_names("encoder", [*content["views"].values()], known, f"{where}, views")
    checks.whole("n_views", content["n_views"], least=2)
    for stage, by_dataset in content["runs"].items():
        there = [dataset for dataset in by_dataset if dataset in datasets]
        params.check_names("dataset", there, content["datasets"], f"{where}, {stage}")
    for features in FEATURES:
        params.check_keys(content[features], ("datasets", "encoders"), f"{where}, {features}")
        params.check_names("dataset", content[features]["datasets"], content["datasets"], f"{where}, {features}")
        params.check_names("encoder", content[features]["encoders"], known, where)
