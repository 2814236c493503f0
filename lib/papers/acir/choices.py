"""What the notebooks of this paper decide alike: class weights, and α where none is chosen."""

from collections.abc import Mapping, Sequence

import numpy as np

from lib.losses.acir import StructureAware, class_weights
from lib.training.methods import Answer


def of_classes(labels: np.ndarray, rows: np.ndarray) -> tuple[float, ...]:
    """w of every class of ``labels: (n,)`` (Equation 16), counted over the images ``rows``; 1 where there is none.

    Where patients are parted, all images of a rare class may be queries: then no pair meets its weight.

    >>> of_classes(np.array([0, 0, 0, 2, 1]), np.array([0, 1, 2, 3]))
    (0.6666666666666666, 1.0, 2.0)
    """
    there, counted = np.unique(labels[rows], return_inverse=True)
    found = np.ones(labels.max() + 1)
    found[there] = class_weights(counted)
    return tuple(found.tolist())


ALPHA = 0.0
"""What Equation 17 comes to as printed, whatever α is: its quantisation term has no gradient (AC-4)."""


def l_wsc(labels: np.ndarray, rows: np.ndarray, fingerprint: int) -> StructureAware:
    """L_WSC at :data:`ALPHA`, with the class weights of the images ``rows`` that teach."""
    return StructureAware(alpha=ALPHA, fingerprint=fingerprint, class_weights=of_classes(labels, rows))


def answerable(labels: np.ndarray, asks: np.ndarray, archive: np.ndarray) -> str:
    """How many queries have an image of their class in the archive; the others are left out of every mean and test.

    >>> answerable(np.array([0, 1, 0, 2]), np.array([0, 1]), np.array([2, 3]))
    '1 of 2 queries; 1 have no image of their class in the archive'
    """
    lost = int((~np.isin(labels[asks], labels[archive])).sum())
    rest = f"; {lost} have no image of their class in the archive" if lost else ""
    return f"{len(asks) - lost} of {len(asks)} queries{rest}"


def first_losses(found: Mapping[str, Sequence[Answer]]) -> dict[str, float]:
    """Method → the loss of its first epoch, the mean over trainings; NaN where nothing was trained."""
    return {
        name: float(np.mean([one.history[0] if len(one.history) else np.nan for one in several]))
        for name, several in found.items()
    }
