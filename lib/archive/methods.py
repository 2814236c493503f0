"""The methods that an archive of one's own can be searched with, and how each is made for its images.

They are those of notebook 90, which compared them with all else the same: one list of components for every head, as
many steps, and settings that no image of the archive has chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from lib.datasets.table import ImageTable
from lib.errors import InputError, suggestion
from lib.papers.beyond.factors import experiment, heads
from lib.training import hyper_dino
from lib.training.experiment import fit
from lib.training.fit import Schedule
from lib.training.linear_prototypes import allowed_support
from lib.training.methods import Fitted, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split


@dataclass(frozen=True)
class Kind:
    """A method by what people call it.

    title: in tables and sentences. about: what it does, in one line. source: what notebook 90 calls it.
    """

    title: str
    about: str
    source: str


PLAIN, TEXTURE = "plain", "texture"
METHODS: dict[str, Kind] = {
    PLAIN: Kind("plain features", "the encoder's numbers as they are, compared by the cosine", experiment.NONE),
    "linear": Kind(
        "linear classifier",
        "one layer that learns the classes; images are compared by the probabilities of their classes",
        experiment.PROBABILITY,
    ),
    "hyper_dino": Kind(
        "Hyper-DINO's mapper", "two layers into curved space, which draw a class together", experiment.BALL
    ),
    "prototypes": Kind(
        "linear prototypes", "two layers that draw each image to the mean of its class", experiment.PROTOTYPES
    ),
    "hyp_vit": Kind("Hyp-ViT's head", "one layer into curved space, no further than a fixed radius", heads.HYPERBOLIC),
    "supcon": Kind("SupCon", "two layers onto the sphere, which draw a class together", heads.SUPCON),
    "acir": Kind("ACIR's code", "64 bits for an image, compared by how many differ", heads.ACIR),
    "label_tree": Kind(
        "HWC + LAM", "two layers onto the sphere; the loss knows which classes hang on one branch", heads.TREE
    ),
}
"""The name for ``METHOD=`` → the method; the first is what all others are compared with."""

DIM_IN, HIDDEN, DIM_OUT, N_BITS, SUPPORT = 256, 256, 32, 64, 5
"""Components that every head sees, its width, numbers of an embedding, bits of a code, images behind a prototype."""
BATCH, LR, SINGLE_LR, WEIGHT_DECAY = 128, 1e-3, 1e-2, 1e-5
"""SINGLE_LR is that of single layers, which need larger steps."""
STEPS, STEPS_OF_A_CLASS, EPOCHS = 240, 15, 10
"""A head takes at least so many steps, so many for each class, and sees every image so often.

8 classes were learnt in 160 to 200 steps (Kather, BreakHis); 77 species of birds, and unequal classes, need 1,000.
"""


def named(name: str) -> Kind:
    """The method of a name; InputError, with what may have been meant, for another.

    >>> named("hyper_dino").title
    "Hyper-DINO's mapper"
    """
    if name not in METHODS:
        raise InputError(f"there is no method {name!r}: {suggestion(name, METHODS)}")
    return METHODS[name]


def branches(images: ImageTable, tree: str = "own") -> tuple[int, ...] | None:
    """Of each class the number of its branch in a ``tree``; None where there is no tree, or it tells nothing.

    A tree tells nothing where all classes hang on one branch, or each on its own.
    """
    labels = images.codes
    kin = heads.branches(labels, heads.above(images, tree))
    return None if kin is None or len(set(kin)) == len(kin) else kin


def schedule(labels: np.ndarray, parts: Sequence[np.ndarray]) -> Schedule:
    """How long every head is trained.

    labels: (n,) classes. parts: the images that are learnt from, indices, for each fold.

    >>> schedule(np.arange(300) % 4, [np.arange(240)]).epochs  # 2 steps of 128 images each
    120
    """
    n_classes, per_epoch = len(np.unique(labels)), ceil(max(map(len, parts)) / BATCH)
    steps = max(STEPS, STEPS_OF_A_CLASS * n_classes)
    return Schedule(max(EPOCHS, ceil(steps / per_epoch)), BATCH, LR, WEIGHT_DECAY)


def lacking(labels: np.ndarray, parts: Sequence[np.ndarray], kin: tuple[int, ...] | None = None) -> dict[str, str]:
    """The methods that these images do not allow, and why; arguments as :func:`made`."""
    counts = [np.sort(np.unique(labels[rows], return_counts=True)[1]) for rows in parts]
    why = {}
    if min(int(sizes[-2:][0]) for sizes in counts) < 2:
        why["prototypes"] = "it needs two images of two classes to learn from"
    if min(int(sizes[0]) for sizes in counts) < 2:
        why["hyp_vit"] = "it needs two images of every class to learn from"
    if kin is None:
        why["label_tree"] = "there is no tree of the classes (taxonomy.yaml beside the class folders)"
    return why


def made(
    dim: int, labels: np.ndarray, parts: Sequence[np.ndarray], kin: tuple[int, ...] | None = None
) -> dict[str, Method]:
    """Every method that these images allow, by its name, each called by its title.

    Args:
        dim: numbers of a feature.
        labels: (n,) classes from 0 on.
        parts: the images that are learnt from, indices, for each fold.
        kin: of :func:`branches`, None without a tree.
    """
    without = lacking(labels, parts, kin)
    n_classes, fewest, times = int(labels.max()) + 1, min(map(len, parts)), schedule(labels, parts)
    dim_in, dim_out = min(DIM_IN, dim, fewest), min(DIM_OUT, dim)
    settings = hyper_dino.Settings(hidden=HIDDEN, half=False)
    support = 1 if "prototypes" in without else allowed_support(labels, parts, SUPPORT)
    lengths = dim, dim_in, dim_out, n_classes
    recipe, by_class = Recipe("PCA", dim_in, dim_out), heads.by_class(times, labels, parts)
    methods = [
        *experiment.methods(*lengths, settings, times, support, SINGLE_LR),
        *heads.methods(recipe, times, SINGLE_LR, by_class, n_classes, kin, HIDDEN, N_BITS),
    ]
    known = {method.name: method for method in methods}
    return {name: replace(known[kind.source], name=kind.title) for name, kind in METHODS.items() if name not in without}


def plain(encoder: str, dim: int) -> Method:
    """The features of an encoder as they are; the numbers of the texture, of many units, are standardised first."""
    source = "scaled" if encoder == TEXTURE else "raw"
    return Method(METHODS[PLAIN].title, Recipe(source, dim, 0), hyper_dino.Settings(half=False), search="cosine")


def fit_splits(
    name: str,
    x: np.ndarray,
    labels: np.ndarray,
    splits: Sequence[Split],
    kin: tuple[int, ...] | None = None,
    encoder: str = "",
) -> list[Fitted]:
    """One method fitted on what each split learns from.

    Args:
        name: of :data:`METHODS`.
        x: (n, dim) features. labels: (n,) classes from 0 on.
        kin: of :func:`branches`, None without a tree.
        encoder: whose features they are, for :func:`plain`.

    Raises:
        InputError: for an unknown name, and a method that these images do not allow.
    """
    kind, parts = named(name), [split.train for split in splits]
    if why := lacking(labels, parts, kin).get(name):
        raise InputError(f"{kind.title} cannot be fitted here: {why}. Choose another METHOD")
    dim = x.shape[1]
    method = plain(encoder, dim) if name == PLAIN else made(dim, labels, parts, kin)[name]
    return fit(x, labels, [method], splits, what=kind.title)[kind.title]


def fit_all(
    name: str,
    x: np.ndarray,
    labels: np.ndarray,
    kin: tuple[int, ...] | None = None,
    encoder: str = "",
    *,
    seed: int = 0,
) -> Fitted:
    """One method fitted on all images of an archive, to search what comes later; arguments as :func:`fit_splits`."""
    rows = np.arange(len(labels))
    return fit_splits(name, x, labels, [Split(0, rows, rows, seed)], kin, encoder)[0]
