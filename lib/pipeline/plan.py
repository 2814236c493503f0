"""What a profile would run: stages, datasets, weights and a rough time, before anything is started."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from lib import paths
from lib.datasets import catalogue
from lib.datasets.catalogue import DATASETS
from lib.encoders.models import MODELS, OURS, PACKAGED, UNTRAINED
from lib.errors import InputError
from lib.pipeline import params, profiles
from lib.pipeline.notebooks import parameters, read
from lib.study.markdown import markdown_table

GPU = "gpu"
NETWORKS = ("encoder", "beside", "network", "also")
"""Parameters of a run that name networks."""
OF_TABLE_1 = {model.architecture: name for name, model in MODELS.items() if not model.repository}
"""timm's names of networks that have one of our own: the weights are the same."""
BACK_AND_FORTH = 3
"""How much longer an image takes in a training than in a forward pass: the way back is about twice the way there."""


def text(profile: str) -> str:
    """The plan as people read it: the table, then every dataset and weight that is missing and how to get it."""
    profiles.check(paths.PIPELINES / profile / "params.yaml")
    settings = profiles.settings()
    rows, assumed = table(profile, settings), settings["plan"]
    if profile == GPU:
        order = "\n".join(f"{place}. {stage}" for place, stage in enumerate(profiles.profile(GPU)["order"], 1))
        parts = [
            f"Profile gpu would run {len(rows)} stages; how long they take there is not known.",
            markdown_table(rows.drop(columns="hours")),
            f"`make gpu` runs them in this order until its time is up, and keeps what it has trained:\n\n{order}",
        ]
    else:
        speeds = ", ".join(f"{encoder} {speed}" for encoder, speed in assumed["images_per_second"].items())
        parts = [
            f"Profile {profile} would run {len(rows)} stages, {rows['hours'].sum():.1f} hours by estimate, half of it "
            "where two run at once.",
            markdown_table(rows.assign(hours=rows["hours"].map("{:.2f}".format))),
            f"The hours are an estimate for {assumed['machine']}. Features: images per second, {speeds}, others "
            f"{assumed['other_images_per_second']}. Notebooks: the demo's time, times images, epochs and lengths. "
            f"Encoder and head together: steps x batch x trainings, an image as long as {BACK_AND_FORTH} of its "
            "features.",
        ]
    for dataset in dict.fromkeys(stage.rpartition("@")[2].partition("-")[0] for stage in rows["stage"]):
        if dataset in DATASETS and not paths.images(dataset).exists():
            parts.append(str(catalogue.missing(dataset, paths.images(dataset), "is not there", profile)))
    for name in backbones(profile):
        from lib.encoders import zoo  # which takes seconds to import

        if how := zoo.wanting(name):
            known = f"{MODELS[name].row} ({name})" if name in MODELS else name
            parts.append(f"needs weights of {known}: {how}")
    return "\n\n".join(parts)


def table(profile: str, settings: dict[str, Any]) -> pd.DataFrame:
    """One row per stage of ``profile``: images, encoder, whether the images are here, estimated hours without a GPU."""
    content, rows = profiles.profile(profile), []

    def add(stage: str, dataset: str, encoder: str, hours: float) -> None:
        known = dataset in DATASETS
        n = f"{_images(profile, dataset, settings):,}" if known else "–"
        here = "yes" if not known or paths.images(dataset).exists() else "no"
        title = DATASETS[dataset].title if known else "no images"
        rows.append(
            {"stage": stage, "dataset": title, "images": n, "encoder": encoder, "here": here, "hours": float(hours)}
        )

    def seen(dataset: str, encoder: str) -> float:
        return _images(profile, dataset, settings) / images_per_second(encoder, settings) / 3600

    for stage, dataset, encoder in profiles.features(content):
        add(stage, dataset, encoder, seen(dataset, encoder))
    for dataset, encoder in content["views"].items():
        add(f"views@{dataset}", dataset, encoder, (content["n_views"] - 1) * seen(dataset, encoder))
    for stage, datasets in content["runs"].items():
        for dataset, run in datasets.items():
            hours = scaled_hours(stage, run, _images(profile, dataset, settings), settings)
            add(f"{stage}@{dataset}", dataset, run.get("encoder", "–"), hours)
    return pd.DataFrame(rows)


def _images(profile: str, dataset: str, settings: dict[str, Any]) -> int:
    """How many images a dataset has: in its table, if that is built; else whole; the demo's where none are needed."""
    if (built := paths.table(profile, dataset)).exists():
        return len(pd.read_csv(built, usecols=["image_id"]))
    drawn = settings["drawn"].get(dataset, settings["drawn"]["tissue"])
    return (DATASETS[dataset].images if dataset in DATASETS else None) or drawn["n_tiles"]


def images_per_second(encoder: str, settings: dict[str, Any]) -> float:
    """Images that an encoder takes in a second, forward; untrained as many as trained."""
    known, other = settings["plan"]["images_per_second"], settings["plan"]["other_images_per_second"]
    return known.get(encoder) or known.get(encoder.removesuffix(UNTRAINED), other)


@cache
def _demo_runs() -> dict[str, dict[str, Any]]:
    """What the demo runs: read once, since YAML takes a third of a second."""
    return profiles.runs("demo")


@cache
def _notebooks() -> dict[str, str]:
    """Stage → its notebook, read once."""
    return profiles.notebooks()


@cache
def _defaults(stage: str) -> dict[str, Any]:
    """The parameters of a stage's notebook where a run does not name them."""
    return parameters(read(paths.NOTEBOOKS / f"{_notebooks()[stage]}.ipynb"))


# Hours on processors


def demo_seconds(stage: str, settings: dict[str, Any]) -> float:
    """Seconds of a notebook on the demo's tiles. Raises InputError for one that nobody has timed yet."""
    known = settings["plan"]["demo_seconds"]
    if stage not in known:
        raise InputError(f"params.yaml: plan.demo_seconds has no {stage}: add how many seconds its notebook takes")
    return known[stage]


def scaled_hours(stage: str, run: dict[str, Any], n_images: int, settings: dict[str, Any]) -> float:
    """Hours of a notebook's run: the demo's seconds, times images, epochs and lengths of the embedding or code.

    What trains encoder and head together grows with none of these, and is counted by itself (:func:`together_seconds`).
    """
    demo = next(iter(_demo_runs()[stage].values()))
    paper = "linear_prototypes" if stage.startswith("linear_prototypes") else "hyper_dino"
    epochs = settings[paper]["training"]["epochs"]
    n_tiles = settings["drawn"]["tissue"]["n_tiles"]
    longer = n_images / n_tiles * run.get("epochs", epochs) / demo.get("epochs", epochs)
    longer *= len(run.get("lengths", [1])) / len(demo.get("lengths", [1]))
    rest = max(0.0, demo_seconds(stage, settings) - together_seconds(stage, demo, n_tiles, settings))
    return (rest * longer + together_seconds(stage, run, n_images, settings)) / 3600


def together_seconds(stage: str, run: dict[str, Any], n_images: int, settings: dict[str, Any]) -> float:
    """Seconds of training encoder and head together, 0 where nothing does: images seen in all trainings of all losses.

    A notebook says for how many steps of how many images, or, ACIR's, for how many epochs.
    """
    given = _defaults(stage) | run
    if given.get("network", "none") == "none":
        return 0.0
    crops = 2 * given.get("end_to_end_batch", 0)  # of the label tree: each image twice
    if "end_to_end_epochs" in given:
        seen = given["end_to_end_epochs"] * n_images
    else:
        seen = given["steps"] * (crops or given["n_classes"] * given["samples"])
    rates = [] if given.get("published_rates") else given.get("end_to_end_rates", [])
    n_choosing = run.get("n_choosing", settings["hyp_vit"]["training"]["n_choosing"])
    seen *= given["n_trainings"] + max(1, len(rates) * n_choosing) - 1  # the chosen rate's first is the first of them
    seconds = sum(kinds / images_per_second(network, settings) for network, kinds in _networks(stage, given).items())
    return BACK_AND_FORTH * seen * seconds


def _networks(stage: str, given: dict[str, Any]) -> dict[str, int]:
    """Network → with how many losses or settings it is trained end to end."""
    if "end_to_end" in given:
        return {given["network"]: len(given["end_to_end"])}
    if "end_to_end_epochs" in given:
        return {given["network"]: 3}  # ACIR and two rivals
    if stage != "hyp_vit_retrieval":
        return {given["network"]: 2}  # SupCon and HWC+LAM
    both = dict.fromkeys([given["network"], *given["beside"]], 2)  # Hyp and Sph; those in ``also`` with Hyp
    return both | {name: both.get(name, 0) + 1 for name in given.get("also", [])}


# Weights


def backbones(profile: str) -> list[str]:
    """The pretrained networks that some stage of the profile wants and that do not come with the project."""
    content = profiles.profile(profile)
    names = [name for block in profiles.FEATURES for name in content[block]["encoders"]] + [*content["views"].values()]
    runs = [run for datasets in content["runs"].values() for run in datasets.values()]
    names += [name for run in runs for key in NETWORKS for name in np.atleast_1d(run.get(key, [])).tolist()]
    return list(dict.fromkeys(OF_TABLE_1.get(name, name) for name in names if not _ours(name)))


def _ours(name: str) -> bool:
    """Whether a network needs no weights from elsewhere: those of the project, untrained ones, and none at all.

    >>> [_ours(name) for name in ("texture", "efficientnet_lite0_128px", "resnet50-untrained", "resnet50", "uni")]
    [True, True, True, False, False]
    """
    return params.network(name) in PACKAGED or name.endswith(UNTRAINED) or name in {"none", *OURS} - set(MODELS)
