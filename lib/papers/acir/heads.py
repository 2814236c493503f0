"""Hash heads on frozen features that several sections train: who is learnt from, the losses, and how each is tuned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.losses.acir import StructureAware, class_weights, fingerprints
from lib.losses.hashing import CSQ, DBDH, DCH, DPN, DSDH, QSMIH, Triplet
from lib.study import rates
from lib.training import classifier, experiment
from lib.training.fit import Schedule
from lib.training.hashing import Settings
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, repeated
from lib.training.sweep import Loss

ACIR, LABELS, UNWEIGHTED = "ACIR", "ACIR, labels alone", "ACIR, no class weights"
OWN_LOSSES = (ACIR, LABELS, UNWEIGHTED)
"""ACIR's loss, without its fingerprints, and without its class weights: each has an α."""
NONE, LINEAR, PCA = "features, no code", "linear classifier, no code", "signs of PCA"
TOP = 100
"""The length of the lists behind the paper's mAP (Section 4.2)."""
ALPHA, PUBLISHED_ALPHA, PRINTED_ALPHA = 0.1, 0.5, 0.0
"""α of the quantisation term: where none is tuned, in the paper, and what any α of the printed term, which has no
gradient, comes to (AC-4)."""


def parts(fold_of: np.ndarray, seed: int = 0) -> tuple[Split, Split]:
    """The split of the tables, and the one inside of its training images by which we tune; folds by group, (n,).

    The first half of the folds holds the queries; the others are learnt from, and are the closed gallery. To tune, the
    last fold queries the rest of those. Raises InputError for fewer than four folds.
    """
    n = len(set(fold_of.tolist()))
    if n < 4:
        raise InputError(
            f"there are {n} folds: half hold the query images, and the others are split again. Use four or more"
        )
    queries, aside = fold_of < n // 2, fold_of == n - 1
    main = Split(0, np.flatnonzero(~queries), np.flatnonzero(queries), seed)
    return main, Split(0, np.flatnonzero(~queries & ~aside), np.flatnonzero(aside), seed)


def answerable(labels: np.ndarray, queries: np.ndarray, gallery: np.ndarray) -> str:
    """How many queries have an image of their class in the gallery; the others are left out of every mean and test.

    >>> answerable(np.array([0, 1, 0, 2]), np.array([0, 1]), np.array([2, 3]))
    '1 of 2 queries; 1 have no image of their class in the archive'
    """
    lost = int((~np.isin(labels[queries], labels[gallery])).sum())
    rest = f"; {lost} have no image of their class in the archive" if lost else ""
    return f"{len(queries) - lost} of {len(queries)} queries{rest}"


def of_classes(labels: np.ndarray, rows: np.ndarray) -> tuple[float, ...]:
    """w of every class of ``labels: (n,)`` (Equation 16), counted over the images ``rows``; 1 where there is none.

    With a split by patient all images of a rare class may be queries: then no pair meets its weight.

    >>> of_classes(np.array([0, 0, 0, 2, 1]), np.array([0, 1, 2, 3]))
    (0.6666666666666666, 1.0, 2.0)
    """
    there, counted = np.unique(labels[rows], return_inverse=True)
    weights = np.ones(labels.max() + 1)
    weights[there] = class_weights(counted)
    return tuple(weights.tolist())


def l_wsc(labels: np.ndarray, rows: np.ndarray) -> StructureAware:
    """L_WSC at :data:`PRINTED_ALPHA`, with the class weights of the training images ``rows``."""
    return StructureAware(alpha=PRINTED_ALPHA, looks=True, class_weights=of_classes(labels, rows))


def small_copies(images: ImageTable, side: int) -> np.ndarray:
    """The fingerprint of every image, (n, 3·side²) float32, values from 0 to 1."""
    files = (read_image(images.path(i)) for i in range(len(images)))
    pixels = (torch.from_numpy(np.array(file)).permute(2, 0, 1)[None].float() / 255 for file in files)
    return np.concatenate([fingerprints(image, side).numpy() for image in pixels])


@dataclass(frozen=True)
class Plan:
    """What all heads share: numbers of a feature and of the fingerprint behind it, classes, and the schedule.

    class_weights: of ACIR's losses (Equation 16), all alike if empty.
    """

    dim: int
    fingerprint: int
    n_classes: int
    schedule: Schedule
    class_weights: tuple[float, ...] = ()

    def of(self, labels: np.ndarray, split: Split) -> "Plan":
        """With the class weights of the images that ``split`` learns from."""
        return replace(self, class_weights=of_classes(labels, split.train))

    def method(self, name: str, loss: Loss, bits: int, lr: float | None = None) -> Method:
        """A linear head of ``bits`` outputs with this loss."""
        schedule = self.schedule if lr is None else replace(self.schedule, lr=lr)
        recipe = Recipe("raw", self.dim + self.fingerprint, bits)
        return Method(f"{name}-{bits}bit", recipe, Settings(loss, fingerprint=self.fingerprint), schedule)


def losses(plan: Plan, bits: int, alphas: Mapping[str, float] | None = None) -> dict[str, Loss]:
    """The rivals of Table 1, and ACIR's loss: without fingerprints, without class weights, and as it is.

    alphas: α of these three (:data:`OWN_LOSSES`); :data:`ALPHA` where it is not given.
    """
    alpha = dict.fromkeys(OWN_LOSSES, ALPHA) | dict(alphas or {})
    plain = StructureAware(class_weights=plan.class_weights)
    return {
        "CSQ": CSQ(plan.n_classes, bits),
        "DPN": DPN(plan.n_classes, bits),
        "DBDH": DBDH(),
        "DCH": DCH(),
        "DSDH": DSDH(),
        "QSMIH": QSMIH(),
        "Triplet": Triplet(),
        LABELS: replace(plain, alpha=alpha[LABELS]),
        UNWEIGHTED: replace(plain, alpha=alpha[UNWEIGHTED], looks=True, class_weights=()),
        ACIR: replace(plain, alpha=alpha[ACIR], looks=True),
    }


def opponents(plan: Plan, lengths: Sequence[int], classifier_lr: float) -> list[Method]:
    """What needs no hash loss, on features without fingerprints: no code at all, and the signs of components.

    The classifier's images are compared by the probabilities of their classes, which serve it best.
    """
    none, plain = Settings(binary=False), Recipe("raw", plan.dim, 0)
    codes = [Method(f"{PCA}-{bits}bit", Recipe("PCA", bits, 0), Settings()) for bits in lengths]
    whole = replace(plain, dim_out=plan.n_classes)
    linear = classifier.method(LINEAR, whole, plan.n_classes, plan.schedule, classifier_lr, ranking="probability")
    return [Method(NONE, plain, none, search="cosine"), linear, *codes]


def choose(
    x: np.ndarray,
    labels: np.ndarray,
    plan: Plan,
    bits: int,
    candidates: Sequence[float],
    split: Split,
    groups: np.ndarray,
    alphas: Sequence[float] = (ALPHA,),
    n_seeds: int = 1,
) -> pd.DataFrame:
    """mAP of every loss at each learning rate, ACIR's at each α too, on validation images, mean of ``n_seeds``.

    groups: (n,) over which candidates are paired. Columns method, alpha (NaN where there is none), lr, and those of
    :func:`lib.study.rates.choose_middle`, in the order of lr, then α. Class weights are those of the images that
    ``split`` learns from.
    """
    rows, values, plan, splits = [], [], plan.of(labels, split), repeated([split], n_seeds)
    for lr in candidates:
        for alpha in alphas:
            own = dict.fromkeys(OWN_LOSSES, alpha)
            known = losses(plan, bits, own).items()
            methods = {n: plan.method(n, loss, bits, lr) for n, loss in known if n in own or alpha == alphas[0]}
            what = f"learning rate {lr:g}, α {alpha:g}"
            got = experiment.answers(x, labels, list(methods.values()), splits, [TOP], what=what)
            for name, method in methods.items():
                values.append([100 * answer.per_query.values["ap_min", TOP] for answer in got[method.name]])
                rows.append({"method": name, "alpha": own.get(name, np.nan), "lr": lr})
    return rates.choose_middle(pd.DataFrame(rows), values, groups[split.test], order=["lr", "alpha"])


def alphas(chosen: pd.DataFrame) -> dict[str, float]:
    """The α of ACIR's losses that :func:`choose` chose."""
    return rates.best_rates(chosen.dropna(subset="alpha"), value="alpha")
