"""One experiment for Tables 1 to 3 and Fig. 2: train objectives on splits, and measure their embeddings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from lib.datasets import folds, trees
from lib.datasets.table import ImageTable
from lib.geometry import Geometry, Sphere
from lib.losses.label_tree import distance
from lib.metrics import hierarchy, retrieval
from lib.papers.label_tree.names import CHANCE, COMMONEST, NONE
from lib.processes import spread
from lib.progress import track
from lib.study.inputs import Inputs
from lib.study.store import Run
from lib.taxonomy import Taxonomy
from lib.training import kept, label_tree, probe
from lib.training.label_tree import Objective, Schedule, Task
from lib.training.methods import Health
from lib.training.splits import Split, repeated, splits

SHARES = ["top1", "hf1", "hf1_below_root", "h_acc", "order", "violation", "hit5", "hit1", "top1_unscaled"]
"""What is measured of every image, each from 0 to 1."""


@dataclass(frozen=True, eq=False)
class Images:
    """Views (V, n, dim) of n images, the first the image itself; their leaves (n,) in a tree, and their groups (n,)."""

    views: np.ndarray
    leaves: np.ndarray
    tree: Taxonomy
    groups: np.ndarray

    def cut(self, level: int) -> "Images":
        """The same images, known no further than to a level of the tree."""
        shallow = self.tree.cut(level)
        return replace(self, leaves=self.tree.ancestor_codes(level)[self.leaves], tree=shallow)


def images(data: Inputs, encoder: str, which: str) -> Images:
    """The views of an encoder, with the tree called ``which``, as far as the images have its leaves."""
    names = trees.leaves(data.images, which)
    tree = trees.of(data.images, which).keep(names)
    return Images(data[encoder], tree.codes(names), tree, data.images.groups)


def stamped(run: Run, table: ImageTable, seen: Images) -> Run:
    """The run, whose stamp counts leaves of the tree if these are not the classes of the ``table``."""
    classes, leaves = f"{len(table.classes)} classes", len(seen.tree.leaves)
    if leaves == len(table.classes):
        return run
    return replace(run, images=run.images.replace(classes, f"{leaves} leaves of the tree in {classes}"))


@dataclass(frozen=True, eq=False)
class Scored:
    """How one training did: a row of ``values`` for each test image.

    Columns of ``values``: :data:`SHARES`; shared_depth, leaf, predicted (codes); group. history: the loss of every
    epoch, none where nothing was trained.
    """

    name: str
    split: Split
    health: Health
    history: list[float]
    values: pd.DataFrame


def by_group(seen: Images, n_folds: int, folds_used: int, n_seeds: int, seed: int) -> list[Split]:
    """Splits that keep groups apart, each of the first ``folds_used`` with ``n_seeds`` trainings."""
    names = np.array(seen.tree.leaves)[seen.leaves]
    fold_of = folds.by_group(names, seen.groups, n_folds, seed)
    return repeated(splits(fold_of, seed)[:folds_used], n_seeds)


def validation(seen: Images, split: Split, seed: int, n_folds: int = 3) -> Split:
    """A third of the groups that a split learns from, to choose by; its own test images stay out of it."""
    names = np.array(seen.tree.leaves)[seen.leaves[split.train]]
    aside = folds.by_group(names, seen.groups[split.train], n_folds, seed) == 0
    return replace(
        split, train=split.train[~aside], labelled=split.train[~aside], test=split.train[aside], held_out=None
    )


def run(
    seen: Images,
    objectives: Mapping[str, Objective],
    splits: Sequence[Split],
    schedule: Schedule,
    *,
    what: str = "heads",
    store: kept.Store = "trained",
    workers: int = -1,
) -> dict[str, list[Scored]]:
    """Every objective trained and measured on every split: name → one per split.

    ``NONE`` among the names is the encoder's feature without a head, by the cosine; its objective is not used.
    """
    store = kept.folder(store)
    heads = {name: objective for name, objective in objectives.items() if name != NONE}
    tasks = [Task(name, objective, split.train, split.seed) for name, objective in heads.items() for split in splits]
    options = {"store": store, "workers": workers, "what": what}
    trained = label_tree.fit(seen.views, seen.leaves, seen.tree, tasks, schedule, **options)
    jobs = [
        (head.task.name, split, head.z, head.task.objective.geometry, head.health, head.history)
        for head, split in zip(trained, [*splits] * len(heads), strict=True)
    ]
    if NONE in objectives:
        features = torch.tensor(seen.views[0], dtype=torch.float32)
        jobs += [(NONE, split, features, Sphere(), Health(), []) for split in splits if split.repeat == 0]
    code = measuring()
    work = (joblib.delayed(measured)(z, space, seen, split, store, code) for _, split, z, space, *_ in jobs)
    done = track(spread(work, workers), total=len(jobs), what=f"{what}, measures", unit="heads")
    scores: dict[str, list[Scored]] = {name: [] for name in objectives}
    for (name, split, _, _, health, history), values in zip(jobs, done, strict=True):
        scores[name].append(Scored(name, split, health, history, values))
    if NONE in objectives:
        of_fold = {score.split.fold: score for score in scores[NONE]}
        scores[NONE] = [replace(of_fold[split.fold], split=split) for split in splits]
    return scores


def measuring() -> str:
    """The fingerprint of the code that measures: reading it takes longer than a measurement, so once for all."""
    return kept.code({__name__, probe.__name__, hierarchy.__name__, retrieval.__name__}, "torch", "sklearn")


def measured(z: Tensor, space: Geometry, seen: Images, split: Split, store: kept.Store, code: str) -> pd.DataFrame:
    """:func:`measures`, with groups, kept in ``store`` for the next time; ``code`` of :func:`measuring`."""
    key = kept.key(z, repr(space), seen.leaves, sorted(seen.tree.parents.items()), split.train, split.test, code)
    values = kept.once(store, key, lambda: measures(z, space, seen.leaves, seen.tree, split).to_dict("list"))
    return pd.DataFrame(values).assign(group=seen.groups[split.test])


def measures(z: Tensor, space: Geometry, leaves: np.ndarray, tree: Taxonomy, split: Split) -> pd.DataFrame:
    """What embeddings ``z: (n, d)`` of all images know of the test images of a split, as :class:`Scored` has it.

    The classifier reads points of the ball in the tangent space at the origin, and unit vectors on the sphere (LT-16
    leaves both open). Prototypes, of the training images, stand for the level above the leaves; in a tree of one level
    there is none, and order and violation are NaN. hit5: an image of its own leaf among the five nearest training ones;
    hit1: the nearest. top1_unscaled: of a classifier that reads coordinates as they are (LT-18).
    """
    train, test = split.train, split.test
    coordinates = space.log0(z).numpy()
    predicted = probe.predictions(coordinates[train], leaves[train], coordinates[test])
    table = hierarchy.of_predictions(leaves[test], predicted, tree)
    unscaled = probe.predictions(coordinates[train], leaves[train], coordinates[test], scaled=False)
    nearest = retrieval.evaluate(z[test], z[train], leaves[test], leaves[train], space, (1, 5))
    # A leaf without a training image is never found.
    hits = {f"hit{k}": nearest.values["hit_rate", k].fillna(0).to_numpy() for k in (1, 5)}
    table = table.assign(**hits, top1_unscaled=(unscaled == leaves[test]).astype(float))
    table = table.assign(leaf=leaves[test], predicted=predicted)
    if tree.is_flat:
        return table.assign(order=np.nan, violation=np.nan)
    order = parents(z, space, leaves, tree, split)
    return table.assign(order=order.order, violation=order.violation)


def parents(z: Tensor, space: Geometry, leaves: np.ndarray, tree: Taxonomy, split: Split) -> hierarchy.ParentOrder:
    """Which prototype above the leaves each test image is nearest to; prototypes are means of the training images."""
    level = tree.depth - 1
    nodes = tree.ancestor_codes(level)[leaves]
    centres = hierarchy.prototypes(z[split.train], nodes[split.train], len(tree.level(level)), space)
    return hierarchy.parent_order(distance(space, z[split.test], centres), nodes[split.test])


BY_CLASS = " by class"
"""After the name of a measure: each leaf that asks counts alike."""


def blind(leaves: np.ndarray, tree: Taxonomy, splits: Sequence[Split]) -> dict[str, dict[str, float]]:
    """What answers score that do not look at the image: drawn as often as each leaf has training images, and always
    the leaf that has most of them. Means over the folds, and :data:`BY_CLASS` over the queries of all folds.

    The nearest parent is then that of the answer; of chance, the five nearest images are drawn from the training
    images, and of the commonest leaf all five are its own.
    """
    first = [split for split in splits if split.repeat == 0]
    queries = np.stack([np.bincount(leaves[split.test], minlength=len(tree.leaves)) for split in first])
    of_leaf = queries.sum(axis=0).clip(min=1)  # a leaf without queries has no weight in any fold
    shares = {
        "": queries / queries.sum(axis=1, keepdims=True) / len(first),
        BY_CLASS: queries / of_leaf / np.count_nonzero(queries.sum(axis=0)),
    }
    parts = [_blind(leaves, tree, split) for split in first]
    return {
        name: {
            measure + how: float((share * np.stack([part[name][measure] for part in parts])).sum())
            for how, share in shares.items()
            for measure in parts[0][name]
        }
        for name in (CHANCE, COMMONEST)
    }


def _blind(leaves: np.ndarray, tree: Taxonomy, split: Split) -> dict[str, dict[str, np.ndarray]]:
    """:func:`blind` of one fold: the value of every measure for a query of each leaf, (n,)."""
    n = len(tree.leaves)
    counts = np.bincount(leaves[split.train], minlength=n)
    often, most = counts / counts.sum(), np.eye(n)[counts.argmax()]
    nobody = stats.hypergeom.pmf(0, counts.sum(), counts, min(5, counts.sum()))  # of five images drawn, none is right
    by_answer = {CHANCE: (often, 1 - nobody), COMMONEST: (most, most)}
    of_pairs = _of_pairs(tree).items()
    return {
        name: {measure: matrix @ answer for measure, matrix in of_pairs} | {"hit5": hit5}
        for name, (answer, hit5) in by_answer.items()
    }


def _of_pairs(tree: Taxonomy) -> dict[str, np.ndarray]:
    """Every measure of one answer, (n, n): of the leaf in the row, answered with the leaf in the column."""
    n = len(tree.leaves)
    every = hierarchy.of_predictions(*np.indices((n, n)).reshape(2, -1), tree).drop(columns="shared_depth")
    matrices = {measure: every[measure].to_numpy(dtype=float).reshape(n, n) for measure in every}
    if not tree.is_flat:
        above = tree.ancestor_codes(tree.depth - 1)
        order = (above[:, None] == above).astype(float)
        matrices |= {"order": order, "violation": 1 - order}
    return matrices
