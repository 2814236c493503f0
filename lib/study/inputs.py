"""What a notebook begins with: the table of its images and their features, as earlier stages wrote them."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib import devices, paths
from lib.datasets import folds
from lib.datasets.catalogue import describe, missing
from lib.datasets.table import ImageTable
from lib.encoders import cache
from lib.encoders.cache import Features
from lib.errors import InputError, MissingWeights
from lib.study.store import Run


@dataclass(frozen=True, eq=False)
class Inputs:
    """Images and what frozen encoders see in them.

    Attributes:
        profile, dataset: whose they are.
        images: a row per image that every encoder could read.
        features: encoder → (n, dim) float32, or (V, n, dim) of V views of each image, the first the image itself.
        digest: a hash of the images that the first encoder saw.
        skipped: how many images could not be read.
    """

    profile: str
    dataset: str
    images: ImageTable
    features: Mapping[str, np.ndarray]
    digest: str
    skipped: int

    def __getitem__(self, encoder: str) -> np.ndarray:
        return self.features[encoder]

    def __str__(self) -> str:
        lines = [describe(self.images)]
        for name, x in self.features.items():
            views = f"{len(x)} views of " if x.ndim == 3 else ""
            lines.append(f"{name}: {views}{x.shape[-2]} images × {x.shape[-1]} numbers")
        return "\n".join([*lines, *([f"{self.skipped} images could not be read"] * bool(self.skipped))])

    def run(self, notebook: str, encoders: Sequence[str] = (), **parameters: Any) -> Run:
        """What the tables and figures of a notebook have in common.

        notebook: file name without suffix. encoders: those that they rest on, if not the first alone. parameters: the
        notebook's, by the names that captions use.
        """
        chosen = list(encoders) or [next(iter(self.features))]
        views = {name: f", {len(x)} views" if x.ndim == 3 else "" for name, x in self.features.items()}
        encoder = ", ".join(f"{name} ({self.features[name].shape[-1]} numbers{views[name]})" for name in chosen)
        images = describe(self.images)
        return Run(notebook, self.profile, self.dataset, images, self.digest, encoder, parameters)


def load(
    profile: str,
    dataset: str,
    encoders: Sequence[str],
    *,
    n_folds: int | None = None,
    n_views: int = 1,
    seed: int = 0,
) -> Inputs:
    """The images of a dataset and their features; from here on the profile decides the device (:mod:`lib.devices`).

    Args:
        profile, dataset: whose ``build/tables`` and ``build/features`` are read.
        encoders: names; one after the first whose weights are not on this machine is left out with a warning.
        n_folds: if so many folds are to be made, classes that are too small for them are left out
            (:func:`lib.datasets.folds.usable`, which ``seed`` is for).
        n_views: how many views of each image the first encoder's features are of; the others' are of the image alone.

    Raises:
        InputError: for a table or features that are not there; the message says which command writes them.
        MissingWeights: if the first encoder has none.
    """
    devices.of_profile(profile)
    images = _table(profile, dataset)
    if n_folds is not None:
        images = folds.usable(images, n_folds, seed)
    by_encoder = {encoders[0]: _features(profile, dataset, encoders[0], n_views)}
    for name in encoders[1:]:
        try:
            by_encoder[name] = _features(profile, dataset, name)
        except MissingWeights as error:
            warnings.warn(f"{name} is left out: {error}", stacklevel=2)
    n, views = len(images), [features for of_one in by_encoder.values() for features in of_one]
    images, values = cache.align(images, views)
    main, *others = by_encoder
    features = {main: np.stack(values[:n_views]) if n_views > 1 else values[0]}
    features |= dict(zip(others, values[n_views:], strict=True))
    return Inputs(profile, dataset, images, features, views[0].provenance["images_sha256"], n - len(images))


def _table(profile: str, dataset: str) -> ImageTable:
    """The table of images; where there is none, how to get the images, or the command that writes it."""
    file, root = paths.table(profile, dataset), paths.images(dataset)
    if file.is_file():
        return ImageTable.read(file)
    if not root.is_dir():
        raise missing(dataset, root, "is not there", profile)
    raise InputError(
        f"There is no table of images {file} yet. Write it: "
        f"python -m lib.datasets --dataset {dataset} --root {root} --target {file}"
    )


def _features(profile: str, dataset: str, encoder: str, n_views: int = 1) -> list[Features]:
    """The features of each view; where there are none, the command that extracts them."""
    file = paths.features(profile, dataset, encoder)
    absent = [view for view in cache.view_files(file, n_views) if not view.is_file()]
    if absent:
        views = f" --n-views {n_views}" if n_views > 1 else ""
        raise InputError(
            f"There is no feature file {absent[0]} yet. Extract it: python -m lib.encoders "
            f"--table {paths.table(profile, dataset)} --encoder {encoder} --target {file}{views}"
        )
    return cache.load_views(file, n_views)
