"""What each profile runs, read from ``params.yaml`` and ``pipelines/<profile>/``."""

import re
import string
from collections.abc import Collection, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from lib import checks, paths
from lib.datasets.catalogue import DATASETS
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


def own(name: str) -> dict[str, Any]:
    """What one's own images called ``name`` run, as :func:`profile`; ``papers``: what the papers' notebooks add."""
    template = string.Template((paths.PIPELINES / "own.yaml").read_text(encoding="utf-8"))
    return yaml.safe_load(template.substitute(name=name))


def runs(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Stage → dataset → parameters of one profile; nothing of a stage that it does not name."""
    return {stage: {} for stage in notebooks()} | profile(name)["runs"]


def features(content: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Stage, dataset and encoder of all features that a :func:`profile` extracts."""
    for block in FEATURES:
        for dataset, encoder in product(content[block]["datasets"], content[block]["encoders"]):
            yield f"{block}@{dataset}-{encoder}", dataset, encoder


def stages() -> dict[str, dict[str, Any]]:
    """Stage → its entry in the one text that all profiles share."""
    return params.load(paths.PIPELINES / "demo" / "dvc.yaml")["stages"]


def commands() -> dict[str, str]:
    """Stage → its command, with templates."""
    return {name: stage.get("do", stage)["cmd"] for name, stage in stages().items()}


def notebooks() -> dict[str, str]:
    """Stage → the notebook that it runs."""
    matches = {stage: re.search(r"notebooks run (\w+)", command) for stage, command in commands().items()}
    return {stage: match[1] for stage, match in matches.items() if match}


def needing_others() -> set[str]:
    """The stages with a notebook that read what another notebook wrote."""
    texts = stages()
    entries = {stage: texts[stage]["do"] for stage in notebooks()}
    made = {out for entry in entries.values() for outs in entry["outs"] for out in outs}
    return {stage for stage, entry in entries.items() if made & set(entry["deps"])}


def check(file: Path, own: str | None = None) -> None:
    """Refuse a profile's ``params.yaml`` that cannot be run, before anything is; ``own``: name of one's own images.

    Raises InputError for what does not fit, with what was meant (:mod:`lib.pipeline.params`).
    """
    content, where = params.load(file), "/".join(file.parts[-3:])
    if list(faults(content, own, OURS)):  # perhaps a network of timm, whose names take seconds to load
        params.refuse(where, faults(content, own, registry.names()))


def faults(content: dict[str, Any], own: str | None, encoders: Collection[str]) -> Iterator[str]:
    """What is wrong with a profile; ``encoders``: names of those that there are."""
    keys = (*KEYS, "order") if content.get("profile") == "gpu" else KEYS
    wrong = [*params.of_keys(content, keys)]
    for block in FEATURES:
        wrong += params.of_keys(content.get(block), ("datasets", "encoders"))
    if wrong:
        yield from wrong
        return
    known = [*DATASETS, *filter(None, [own])]
    defaults = {stage: parameters(read(paths.NOTEBOOKS / f"{file}.ipynb")) for stage, file in notebooks().items()}
    if wrong := [*params.of_runs(content["runs"], defaults, known, encoders)]:
        yield from wrong
        return
    runs = {stage: [name for name in datasets if name in known] for stage, datasets in content["runs"].items()}
    lists = {"views": [*content["views"]], **runs} | {block: content[block]["datasets"] for block in FEATURES}
    yield from params.of_names("dataset", content["datasets"], known)
    for place, names in lists.items():
        yield from (f"{place}: {fault}" for fault in params.of_names("dataset", names, content["datasets"]))
    for names in ([*content["views"].values()], *(content[block]["encoders"] for block in FEATURES)):
        yield from params.of_names("encoder", names, encoders)
    stages = [f"{stage}@{dataset}" for stage, datasets in content["runs"].items() for dataset in datasets]
    yield from params.of_names("stage", content.get("order", []), stages)
    try:
        checks.whole("n_views", content["n_views"], least=2)
    except InputError as error:
        yield str(error)
