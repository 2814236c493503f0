"""What a profile would run: stages, datasets, weights and a rough time, before anything is started."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib import paths
from lib.datasets import catalogue
from lib.datasets.catalogue import DATASETS
from lib.encoders.models import MODELS, OURS
from lib.pipeline import budget, params, profiles
from lib.pipeline.notebooks import parameters, read
from lib.results.markdown import markdown_table
from lib.results.papers import PAPERS

BENCH = paths.COMMITTED / "bench"
MEASURED = ("features from files", "fine-tuning")
"""How the rows of :mod:`lib.bench.images` begin that an estimate rests on."""

GPU = "gpu"
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
                rows.append(
                    _row(f"{block}@{dataset}-{encoder}", dataset, n, encoder, _hours(n, encoder, settings, profile))
                )
    for dataset, encoder in content["views"].items():
        n = _images(profile, dataset, settings)
        hours = (content["n_views"] - 1) * _hours(n, encoder, settings, profile)
        rows.append(_row(f"views@{dataset}", dataset, n, encoder, hours))
    for stage, datasets in content["runs"].items():
        for dataset, run in datasets.items():
            n, encoder = _images(profile, dataset, settings), run.get("encoder", "–")
            of_gpu = work(stage, dataset, run, n, settings).seconds(settings["plan"]["gpu"]) if profile == GPU else 0
            hours = of_gpu / 3600 or scaled_hours(stage, run, n, settings)
            rows.append(_row(f"{stage}@{dataset}", dataset, n, encoder, hours))
    return pd.DataFrame(rows)


def work(stage: str, dataset: str, run: dict[str, Any], n: int, settings: dict[str, Any]) -> budget.Work:
    """What a stage of profile gpu comes to; of ``n`` images those count that another shares its category with."""
    shared = {name: value for group in settings[_paper(stage)].values() for name, value in group.items()}
    given = _defaults(stage) | shared | run
    if (built := paths.table(GPU, dataset)).exists() and "category" in given:
        names = pd.read_csv(built, usecols=given["category"].split("/"), dtype=str)
        n = int(names.duplicated(keep=False).sum())
    return budget.STAGES[stage](given, n)


def _paper(stage: str) -> str:
    """The paper of a stage, as params.yaml calls it."""
    return next(paper for paper in PAPERS if stage.startswith(f"{paper}_"))


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


def _hours(n: int, encoder: str, settings: dict[str, Any], profile: str = "") -> float:
    """Hours that an encoder needs for ``n`` images."""
    speed = settings["plan"]["gpu"]["features_per_second"] if profile == GPU else _speed(encoder, settings)
    return n / speed / 3600


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
    if profile == GPU:
        parts = [f"Profile gpu would run {len(rows)} stages.", markdown_table(shown), *_of_gpu(settings)]
    else:
        parts = [
            f"Profile {profile} would run {len(rows)} stages, {rows['hours'].sum():.1f} hours by estimate, half of it "
            "where two run at once.",
            markdown_table(shown),
            f"The hours are an estimate for {assumed['machine']}. Features: images per second, {speeds}, others "
            f"{assumed['other_images_per_second']}. Notebooks: the demo's time, times images, epochs and lengths. "
            "Encoder and head together: steps x batch x trainings, an image as long as "
            f"{BACK_AND_FORTH} of its features.",
            on_gpu(profile, rows, settings),
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


def on_gpu(profile: str, rows: pd.DataFrame, settings: dict[str, Any]) -> str:
    """What a GPU makes of features and end-to-end trainings, by what ``make bench`` measured on one, if it ever did.

    rows: the profile's :func:`table`. A network is as many times faster there as EfficientNet-Lite0.
    """
    if profile == "demo":
        return "The demo stays on the CPU, also beside a GPU, so that its tables are the committed ones."
    told = [_on_card(card, profile, rows, settings) for card in sorted(BENCH.glob("nvidia*.csv"))]
    return "\n\n".join(filter(None, told)) or (
        "On a GPU: not measured. `make bench` on a machine with one writes reports/bench/<card>.csv, and the hours "
        "that follow from it then stand here."
    )


def _on_card(card: Path, profile: str, rows: pd.DataFrame, settings: dict[str, Any]) -> str:
    measured = pd.read_csv(card).set_index("what")["our_value"]
    there = [measured[[what.startswith(name) for what in measured.index]].mean() for name in MEASURED]
    if np.isnan(there).any():
        return ""
    here = _speed("efficientnet_lite0", settings)
    times = [there[0] / here, there[1] / (here / BACK_AND_FORTH)]
    features = rows.loc[rows["stage"].str.match("features|views"), "hours"].sum()
    together = sum(
        together_seconds(stage, run, _images(profile, dataset, settings), settings) / 3600
        for stage, datasets in profiles.profile(profile)["runs"].items()
        for dataset, run in datasets.items()
    )
    return (
        f"On a GPU (reports/bench/{card.name}: {there[0]:,.0f} features and {there[1]:,.0f} training images a second): "
        f"features {features / times[0]:.1f} hours instead of {features:.1f}, encoder and head together "
        f"{together / times[1]:.1f} instead of {together:.1f}. Heads on frozen features: not measured."
    )


def _of_gpu(settings: dict[str, Any]) -> list[str]:
    """The arithmetic of profile gpu: every stage in its order of value, its images and its seconds."""
    content, speed = profiles.profile(GPU), settings["plan"]["gpu"]
    rows = []
    for name in content["order"]:
        stage, _, dataset = name.partition("@")
        one = work(stage, dataset, content["runs"][stage][dataset], _images(GPU, dataset, settings), settings)
        counts = {"trainings": one.trainings, "images learnt from": f"{one.learnt:,.0f}", "seen": f"{one.seen:,.0f}"}
        rows.append({"stage": name} | counts | {"seconds": round(one.seconds(speed))})
    total = sum(row["seconds"] for row in rows)
    said = (
        f"In this order, about {total / 60:.1f} minutes for {speed['machine']}, if it reaches what the feeder is built "
        f"for: {speed['training_per_second']:,} images learnt from a second, {speed['features_per_second']:,} others, "
        f"{speed['start_seconds']} s for a notebook to start, {speed['training_seconds']} s beside every training. "
        "None of this is measured: `make bench` on a GPU does. A finished training is kept; a stage goes on from it."
    )
    return [markdown_table(pd.DataFrame(rows)), said]


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
