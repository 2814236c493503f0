"""Hash heads on frozen features: one head, one schedule, and every loss (section 4.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib.errors import InputError
from lib.losses.acir import StructureAware
from lib.losses.hashing import CSQ, DBDH, DCH, DPN, DSDH, QSMIH, Triplet
from lib.papers.acir.choices import of_classes
from lib.results.rates import choose_middle
from lib.training import classifier, experiment
from lib.training.fit import Schedule
from lib.training.hashing import Settings
from lib.training.methods import Answer, Fitted, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, repeated
from lib.training.sweep import Loss

ACIR, LABELS, UNWEIGHTED = "ACIR", "ACIR, labels alone", "ACIR, no class weights"
OWN_LOSSES = (ACIR, LABELS, UNWEIGHTED)
"""ACIR's loss, without its fingerprints, and without its class weights: each has an α."""
TRIPLET = "Triplet"
"""What ATH and MTH of the paper's Table 1 share."""
NONE, LINEAR, PCA = "features, no code", "linear classifier, no code", "signs of PCA"
TOP = 100
"""The length of the lists behind the paper's mAP (Section 4.2)."""
PUBLISHED_ALPHA = 0.5


def parts(fold_of: np.ndarray, seed: int = 0) -> tuple[Split, Split]:
    """Who asks and who teaches, and who of those that teach chooses: folds by group, (n,).

    The first half of the folds asks; the others teach, and are the closed gallery. For choices the last fold asks what
    the rest of those that teach have taught. Raises InputError for fewer than four folds.
    """
    n = len(set(fold_of.tolist()))
    if n < 4:
        raise InputError(
            f"there are {n} folds: half hold the query images, and the others are split again. Use four or more"
        )
    asks, chooses = fold_of < n // 2, fold_of == n - 1
    main = Split(0, np.flatnonzero(~asks), np.flatnonzero(asks), seed)
    return main, Split(0, np.flatnonzero(~asks & ~chooses), np.flatnonzero(chooses), seed)


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
        """With the class weights of the images that teach in ``split``."""
        return replace(self, class_weights=of_classes(labels, split.train))

    def method(self, name: str, loss: Loss, bits: int, lr: float | None = None, **options: object) -> Method:
        """A linear head of ``bits`` outputs with this loss; ``options``: of :class:`lib.training.hashing.Settings`."""
        head = Settings(loss, fingerprint=self.fingerprint, **options)
        schedule = self.schedule if lr is None else replace(self.schedule, lr=lr)
        return Method(f"{name}-{bits}bit", Recipe("raw", self.dim + self.fingerprint, bits), head, schedule)


ALPHA = 0.1
"""Weight of the quantisation term where none was chosen."""
OURS, MEAN, BY_LABELS = f"ours, α = {ALPHA:g}", "every pair at the mean likeness", "labels alone"
"""ACIR's loss, changed one thing at a time, as it is, and two controls of its fingerprints."""
THREE = "three kinds of pairs"
"""Positive, neutral and negative, as Section 3.3 announces them (AC-6)."""


def losses(plan: Plan, bits: int, alphas: Mapping[str, float] | None = None) -> dict[str, Loss]:
    """The opponents of Table 1, and ACIR's loss as it is, without fingerprints, and without class weights.

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
        TRIPLET: Triplet(),
        LABELS: replace(plain, alpha=alpha[LABELS]),
        UNWEIGHTED: replace(plain, alpha=alpha[UNWEIGHTED], fingerprint=plan.fingerprint, class_weights=()),
        ACIR: replace(plain, alpha=alpha[ACIR], fingerprint=plan.fingerprint),
    }


def heads(
    plan: Plan, lengths: Sequence[int], rates: Mapping[str, float], alphas: Mapping[str, float] | None = None
) -> list[Method]:
    """Every loss at every length, each at its learning rate, ACIR's with their α."""
    return [
        plan.method(name, loss, bits, rates[name])
        for bits in lengths
        for name, loss in losses(plan, bits, alphas).items()
    ]


def opponents(plan: Plan, lengths: Sequence[int], classifier_lr: float) -> list[Method]:
    """What needs no hash loss, on features without fingerprints: no code at all, and the signs of components.

    The classifier's images are compared by the probabilities of their classes, which serve it best.
    """
    none, plain = Settings(binary=False), Recipe("raw", plan.dim, 0)
    codes = [Method(f"{PCA}-{bits}bit", Recipe("PCA", bits, 0), Settings()) for bits in lengths]
    whole = replace(plain, dim_out=plan.n_classes)
    linear = classifier.method(LINEAR, whole, plan.n_classes, plan.schedule, classifier_lr, ranking="probability")
    return [Method(NONE, plain, none, search="cosine"), linear, *codes]


def variants(plan: Plan, bits: int, lr: float, neutral: float) -> list[Method]:
    """ACIR's loss with one thing changed at a time, from α = :data:`ALPHA`.

    neutral: likeness of the fingerprints of a pair of one class below which it is neutral where there are three kinds.
    """
    ours = StructureAware(alpha=ALPHA, fingerprint=plan.fingerprint, class_weights=plan.class_weights)
    kinds = {
        OURS: ours,
        f"ours, α = {PUBLISHED_ALPHA:g}": replace(ours, alpha=PUBLISHED_ALPHA),
        "α = 0": replace(ours, alpha=0.0),
        f"L_Q as printed, α = {PUBLISHED_ALPHA:g}": replace(ours, alpha=PUBLISHED_ALPHA, quantisation="printed"),
        f"L_Q of the code, α = {PUBLISHED_ALPHA:g}": replace(ours, alpha=PUBLISHED_ALPHA, quantisation="code"),
        "S clamped": replace(ours, clamped=True),
        "likeness by cosine": replace(ours, likeness="cosine"),
        THREE: replace(ours, neutral=neutral),
        MEAN: replace(ours, even=True),
        BY_LABELS: replace(ours, fingerprint=0),
        "no class weights": replace(ours, class_weights=()),
    }
    return [plan.method(name, loss, bits, lr) for name, loss in kinds.items()]


def choose(
    x: np.ndarray,
    labels: np.ndarray,
    plan: Plan,
    bits: int,
    candidates: Sequence[float],
    split: Split,
    *,
    alphas: Sequence[float] = (ALPHA,),
    n_seeds: int = 1,
    groups: np.ndarray | None = None,
    workers: int = -1,
) -> pd.DataFrame:
    """mAP of every loss at each learning rate, ACIR's at each α too, on images set aside, mean of ``n_seeds``.

    groups: (n,) over which candidates are paired. Columns method, alpha (NaN where there is none), lr, and those of
    :func:`lib.results.rates.choose_middle`, in the order of lr, then α. Class weights are those of the images that
    teach there.
    """
    rows, values, plan, several = [], [], plan.of(labels, split), repeated([split], n_seeds)
    for lr in candidates:
        for alpha in alphas:
            own = dict.fromkeys(OWN_LOSSES, alpha)
            known = losses(plan, bits, own)
            methods = {
                name: plan.method(name, loss, bits, lr)
                for name, loss in known.items()
                if name in own or alpha == alphas[0]
            }
            what = f"learning rate {lr:g}, α {alpha:g}"
            found = experiment.answers(x, labels, list(methods.values()), several, [TOP], workers=workers, what=what)
            for name, method in methods.items():
                values.append([100 * one.per_query.values["ap_min", TOP] for one in found[method.name]])
                rows.append({"method": name, "alpha": own.get(name, np.nan), "lr": lr})
    paired_over = None if groups is None else groups[split.test]
    return choose_middle(pd.DataFrame(rows), values, paired_over, order=["lr", "alpha"])


def alphas(chosen: pd.DataFrame) -> dict[str, float]:
    """The α of ACIR's losses that :func:`choose` chose."""
    return chosen[chosen["chosen"]].set_index("method")["alpha"].dropna().to_dict()


def fitted(
    x: np.ndarray,
    labels: np.ndarray,
    methods: Sequence[Method],
    split: Split,
    n_seeds: int,
    *,
    workers: int = -1,
    what: str = "heads",
) -> dict[str, list[Fitted]]:
    """Every method fitted ``n_seeds`` times on the images that are learnt from."""
    return experiment.fit(x, labels, methods, repeated([split], n_seeds), workers=workers, what=what)


def of_length(several: Mapping[str, Sequence[Fitted]], bits: int) -> dict[str, Sequence[Fitted]]:
    """Those with codes of that length, by the name of their loss."""
    end = f"-{bits}bit"
    return {name.removesuffix(end): ones for name, ones in several.items() if name.endswith(end)}


def ask_open(
    several: Mapping[str, Sequence[Fitted]],
    bits: int,
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    ks: Sequence[int],
    *,
    workers: int = -1,
) -> dict[str, list[Answer]]:
    """Codes of one length in the open gallery: images of unseen groups, and never of the query's own."""
    chosen = {name: ones for name, ones in several.items() if name.endswith(f"-{bits}bit")}
    return experiment.ask(chosen, x, labels, ks, gallery="open", groups=groups, workers=workers, what="open gallery")
