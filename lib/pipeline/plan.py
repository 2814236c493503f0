"""What a profile would run: stages, datasets, weights and a rough time, before anything is started."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from lib import paths
from lib.datasets import catalogue
from lib.datasets.catalogue import DATASETS
from lib.encoders.models import MODELS, OURS
from lib.pipeline import params, profiles
from lib.pipeline.notebooks import parameters, read
from lib.results.markdown import markdown_table

KINDS = 2
"""Losses that a notebook trains an encoder with: Hyp and Sph, SupCon and HWC+LAM."""
SEVERAL = "hyp_vit_retrieval"
"""The stage that trains further networks end to end: those ``beside`` with both losses, those in ``also`` with Hyp."""
METHODS = 3
"""ACIR and the two codes that it is trained end to end beside."""
NETWORKS = ("encoder", "beside", "network", "also")
"""Parameters of a run that name networks."""
OF_TABLE_1 = {model.architecture: name for name, model in MODELS.items() if not model.repository}
"""timm's names of networks that have one of our own: the weights are the same."""
BACK_AND_FORTH = 3
"""How much longer an image takes in a training than in a forward pass: the way back is about twice the way there."""


def scaled_hours(stage: str, run: dict[str, Any], n_images: int, settings: dict[str, Any]) -> float:
    """Hours of a notebook's run: the demo's seconds, times images, epochs and lengths of the embedding or code.

    What trains encoder and head together grows with none of these, and is counted by itself (:func:`together_seconds`).
    """
    demo = next(iter(profiles.runs("demo")[stage].values()))
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
    if "end_to_end_epochs" in given:
        seen = given["end_to_end_epochs"] * n_images
    else:
        crops = 2 * given.get("end_to_end_batch", 0)  # of the label tree: each image twice
        seen = given["steps"] * (crops or given["n_classes"] * given["samples"])
    rates = [] if given.get("published_rates") else given.get("end_to_end_rates", [])
    n_choosing = run.get("n_choosing", settings["hyp_vit"]["training"]["n_choosing"])
    seen *= given["n_trainings"] + max(1, len(rates) * n_choosing) - 1  # the chosen rate's first is the first of them
    seconds = sum(kinds / _speed(network, settings) for network, kinds in _networks(stage, given).items())
    return BACK_AND_FORTH * seen * seconds


def _networks(stage: str, given: dict[str, Any]) -> dict[str, int]:
    """Network → with how many losses or settings it is trained end to end."""
    if "end_to_end" in given:
        return {given["network"]: len(given["end_to_end"])}
    if "end_to_end_epochs" in given:
        return {given["network"]: METHODS}
    if stage != SEVERAL:
        return {given["network"]: KINDS}
    both = dict.fromkeys([given["network"], *given["beside"]], KINDS)
    return both | {name: both.get(name, 0) + 1 for name in given.get("also", [])}


@cache
def _defaults(stage: str) -> dict[str, Any]:
    """The parameters of a stage's notebook where a run does not name them."""
    return parameters(read(paths.NOTEBOOKS / f"{profiles.notebooks()[stage]}.ipynb"))


def demo_seconds(stage: str, settings: dict[str, Any]) -> float:
    """Seconds of a notebook on the demo's tiles; one that nobody has timed yet counts as most do."""
    return settings["plan"]["demo_seconds"].get(stage, settings["plan"]["other_demo_seconds"])


def table(profile: str, settings: dict[str, Any]) -> pd.DataFrame:
    """One row per stage of ``profile``: images, encoder, whether the images are here, estimated hours."""
    rows = []
    content = profiles.profile(profile)
    for block in profiles.FEATURES:
        wanted = content[block]
        for dataset in wanted["datasets"]:
            for encoder in wanted["encoders"]:
                n = _images(profile, dataset, settings)
                rows.append(_row(f"{block}@{dataset}-{encoder}", dataset, n, encoder, _hours(n, encoder, settings)))
    for dataset, encoder in content["views"].items():
        n = _images(profile, dataset, settings)
        hours = (content["n_views"] - 1) * _hours(n, encoder, settings)
        rows.append(_row(f"views@{dataset}", dataset, n, encoder, hours))
    for stage, datasets in content["runs"].items():
        for dataset, run in datasets.items():
            n, encoder = _images(profile, dataset, settings), run.get("encoder", "–")
            rows.append(_row(f"{stage}@{dataset}", dataset, n, encoder, scaled_hours(stage, run, n, settings)))
    return pd.DataFrame(rows)


def _row(stage: str, dataset: str, n: int, encoder: str, hours: float) -> dict[str, Any]:
    known = dataset in DATASETS
    return {
        "stage": stage,
        "dataset": DATASETS[dataset].title if known else "no images",
        "images": f"{n:,}" if known else "–",
        "encoder": encoder,
        "here": "yes" if not known or paths.images(dataset).exists() else "no",
        "hours": hours,
    }


def _hours(n: int, encoder: str, settings: dict[str, Any]) -> float:
    """Hours that an encoder needs for ``n`` images."""
    return n / _speed(encoder, settings) / 3600


def _speed(encoder: str, settings: dict[str, Any]) -> float:
    """Images that an encoder takes in a second, forward; untrained as many as trained."""
    known, other = settings["plan"]["images_per_second"], settings["plan"]["other_images_per_second"]
    return known.get(encoder) or known.get(encoder.removesuffix(params.UNTRAINED), other)


def _images(profile: str, dataset: str, settings: dict[str, Any]) -> int:
    """How many images a dataset has: in its table, if that is built; else whole; the demo's where none are needed."""
    if (built := paths.table(profile, dataset)).exists():
        return len(pd.read_csv(built, usecols=["image_id"]))
    drawn = settings["drawn"].get(dataset, settings["drawn"]["tissue"])
    return (DATASETS[dataset].images if dataset in DATASETS else None) or drawn["n_tiles"]


def text(profile: str) -> str:
    """The plan as people read it: the table, then every dataset and weight that is missing and how to get it."""
    profiles.check(paths.PIPELINES / profile / "params.yaml")
    settings = profiles.settings()
    rows, assumed = table(profile, settings), settings["plan"]
    speeds = ", ".join(f"{encoder} {speed}" for encoder, speed in assumed["images_per_second"].items())
    shown = rows.assign(hours=rows["hours"].map("{:.2f}".format))
    parts = [
        f"Profile {profile} would run {len(rows)} stages, {rows['hours'].sum():.1f} hours by estimate, half of it "
        "where two run at once.",
        markdown_table(shown),
        f"The hours are an estimate for {assumed['machine']}. Features: images per second, {speeds}, others "
        f"{assumed['other_images_per_second']}. Notebooks: the demo's time, times images, epochs and lengths. "
        f"Encoder and head together: steps x batch x trainings, an image as long as {BACK_AND_FORTH} of its features.",
    ]
    datasets = [stage.rpartition("@")[2].partition("-")[0] for stage in rows["stage"]]
    for dataset in dict.fromkeys(datasets):
        if dataset in DATASETS and not paths.images(dataset).exists():
            parts.append(str(catalogue.missing(dataset, paths.images(dataset), "is not there", profile)))
    for name in backbones(profile):
        from lib.encoders import absent  # which takes seconds to import

        if how := absent.wanting(name):
            known = f"{MODELS[name].row} ({name})" if name in MODELS else name
            parts.append(f"needs weights of {known}: {how}")
    return "\n\n".join(parts)


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
    sized = name.startswith("efficientnet_lite0")
    return sized or name.endswith(params.UNTRAINED) or name in {"none", *OURS} - set(MODELS)
