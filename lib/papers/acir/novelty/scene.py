"""Training images, validation, queries, and which pictures belong to no class of the archive."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from lib import checks, paths
from lib.datasets import loaders, odd
from lib.datasets.catalogue import facts
from lib.datasets.drawing import of_each_class
from lib.datasets.table import ImageTable
from lib.encoders import taps as maps
from lib.encoders.taps import Taps
from lib.errors import InputError, MissingDataset
from lib.losses.acir import fingerprints

LEARNT, HELD_OUT, ASIDE, KNOWN, NEAR, FAR = "learnt", "held out", "aside", "known", "near", "far"
PARTS = {
    LEARNT: "known classes, learnt from",
    HELD_OUT: "known classes, other images of the same groups",
    ASIDE: "known classes, groups set aside",
    KNOWN: "known classes, query groups",
    NEAR: "a class left out, query groups",
    FAR: "pictures of other kinds",
}
"""What an image is in the experiment."""
SORTS = {NEAR: "left-out class", FAR: "OOD"}
"""The two sorts of novelty, as tables and sentences name them."""

UNUSED = "unused"
"""The left-out class among training images, and classes of which all images belong to others."""

HELD_OUT_SHARE = 1 / 6
AT_ONCE = 256
"""Images that become fingerprints at a time."""


@dataclass(frozen=True, eq=False)
class Scene:
    """Images of the archive, then those that belong to none of its classes.

    Attributes:
        tables: where images are, one after the other; the first is the archive's.
        taps: their feature maps, n of all tables together.
        pixels: (n, 3, H, W) uint8, what the encoder sees.
        labels: (n,) numbers of known classes, −1 for all others.
        classes: the names of these numbers.
        part: (n,) of :data:`PARTS`, or unused.
        kind: (n,) the class, or what an odd picture is.
        groups: (n,) patients; of a picture made from an image that image's.
        fold: of the archive's images, as :func:`asking`.
    """

    tables: tuple[ImageTable, ...]
    taps: Taps
    pixels: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]
    part: np.ndarray
    kind: np.ndarray
    groups: np.ndarray
    fold: np.ndarray

    def rows(self, *parts: str) -> np.ndarray:
        """Indices of the images of these parts."""
        return np.flatnonzero(np.isin(self.part, parts))

    def kinds(self) -> list[str]:
        """What odd pictures there are, in their order."""
        return list(dict.fromkeys(self.kind[self.rows(FAR)].tolist()))

    def features(self) -> np.ndarray:
        """The stem's pooled deep map, (n, C) float32."""
        return maps.pooled(self.taps)

    def prints(self, side: int) -> np.ndarray:
        """The fingerprint of every image as the encoder sees it, (n, 3 · side²) float32 from 0 to 1."""
        parts = torch.from_numpy(self.pixels).split(AT_ONCE)
        return np.concatenate([fingerprints(some.float() / 255, side).numpy() for some in parts])

    def without(self, name: str, seed: int) -> "Scene":
        """The same images with another class left out; odd pictures stay as they are."""
        return _parted(self, name, seed)


def at_most(images: ImageTable, fold: np.ndarray, per_class: int, seed: int) -> tuple[ImageTable, np.ndarray]:
    """At most ``per_class`` images of each class, drawn at random, and their ``fold: (n,)``."""
    chosen = of_each_class(images.labels, seed, per_class=per_class)
    return images.take(images.rows["image_id"].iloc[chosen].tolist()), fold[chosen]


def asking(fold_of: np.ndarray) -> np.ndarray:
    """0 for query images, half of the folds; 2 for validation, one fold; 1 for training.

    Raises InputError for fewer than three folds.
    """
    n = len(set(fold_of.tolist()))
    if n < 3:
        raise InputError(f"there are {n} folds: one holds query images, one validates, one trains. Use three or more")
    return np.where(fold_of < n // 2, 0, np.where(fold_of == n - 1, 2, 1))


def novel_tables(names: Sequence[str], n_each: int, seed: int) -> tuple[list[ImageTable], list[str]]:
    """At most ``n_each`` images of each of these datasets, and for what is not there a line that says what it needs."""
    checks.whole("n_novel", n_each)
    known, needs = [], []
    for name in names:
        title = facts(name).title
        try:
            table = loaders.load(name, paths.images(name))
        except MissingDataset:
            needs.append(f"{title}: needs {name}")
            continue
        chosen = np.sort(np.random.default_rng(seed).permutation(len(table))[:n_each])
        rows = table.rows.iloc[chosen]
        rows = rows.assign(image_id=f"{name}/" + rows["image_id"], group=f"{name}/" + rows["group"], label=title)
        known.append(replace(table, rows=rows))
    return known, needs


def build(
    images: ImageTable,
    fold: np.ndarray,
    left_out: str,
    novel: Sequence[ImageTable],
    encoder: str,
    n_each: int,
    place: tuple[str, str],
    seed: int,
) -> Scene:
    """All images of the experiment with their maps.

    Args:
        images: the archive's.
        fold: (n,) of :func:`asking`.
        left_out: the class that nothing learns from.
        novel: tables of other datasets; pictures made from the archive's images and, without other datasets, drawn
            ones come before them.
        encoder: whose maps.
        n_each: odd pictures of a kind.
        place: profile and dataset, where odd pictures are drawn to.
        seed: decides who is held out, and every odd picture.

    Raises:
        InputError: for a class that is not there, or without a query.
    """
    if left_out not in images.classes:
        raise InputError(f"there is no class {left_out!r} to leave out; there are: {', '.join(images.classes)}")
    if not (fold[images.labels == left_out] == 0).any():
        possible = ", ".join(sorted(set(images.labels[fold == 0].tolist())))
        raise InputError(f"no query image is of class {left_out!r}. Leave out one of these: {possible}")
    sources = images.take(images.rows["image_id"][(fold == 0) & (images.labels != left_out)].tolist())
    folder = paths.BUILD.joinpath("novel", *place)
    drawn = odd.write(folder, sources, n_each, seed, skip=tuple(odd.DRAWN) if novel else ())
    tables = (images, drawn, *novel)
    own_maps = [maps.extract(table, encoder) for table in tables]
    pixels = np.concatenate([maps.pixels(table, encoder) for table in tables])
    n = len(pixels)
    scene = Scene(
        tables=tables,
        taps=Taps(*(np.concatenate(level) for level in zip(*own_maps, strict=True))),
        pixels=pixels,
        labels=np.full(n, -1),
        classes=(),
        part=np.full(n, FAR, dtype="<U8"),
        kind=np.concatenate([table.labels for table in tables]),
        groups=np.concatenate([table.groups for table in tables]),
        fold=fold,
    )
    return _parted(scene, left_out, seed)


def _parted(scene: Scene, left_out: str, seed: int) -> Scene:
    """The scene with parts and labels for a class that is left out."""
    own, fold = len(scene.tables[0]), scene.fold
    out = scene.kind[:own] == left_out
    classes = tuple(sorted(set(scene.kind[:own].tolist()) - {left_out}))
    held = np.random.default_rng([seed, 1]).random(own) < HELD_OUT_SHARE
    part = scene.part.copy()
    part[:own] = np.select(
        [out & (fold == 0), out, fold == 0, fold == 2, held], [NEAR, UNUSED, KNOWN, ASIDE, HELD_OUT], LEARNT
    )
    labels = np.full(len(part), -1)
    learnt = set(scene.kind[:own][part[:own] == LEARNT].tolist())
    classes = tuple(name for name in classes if name in learnt)
    if len(classes) < 2:
        raise InputError(f"{len(classes)} classes are left to learn from: take more images or fewer folds")
    number = {name: c for c, name in enumerate(classes)}
    labels[:own] = [number.get(name, -1) for name in scene.kind[:own]]
    part[:own][(labels[:own] < 0) & ~out] = UNUSED
    return replace(scene, labels=labels, classes=classes, part=part)


def parts(scene: Scene) -> pd.DataFrame:
    """Who is who: part, what, kinds (classes, or kinds of pictures), n_images, n_groups."""
    lines = []
    for part, text in PARTS.items():
        rows = scene.rows(part)
        kinds = ", ".join(sorted(set(scene.kind[rows].tolist())))
        counts = {"n_images": len(rows), "n_groups": len(set(scene.groups[rows]))}
        lines.append({"part": part, "what": text, "kinds": kinds} | counts)
    return pd.DataFrame(lines)
