"""Some images of each class, drawn at random."""

from collections.abc import Iterable

import numpy as np

from lib import checks


def of_each_class(
    labels: np.ndarray,
    seed: int,
    *,
    rows: np.ndarray | None = None,
    per_class: int | None = None,
    fraction: float = 1.0,
    classes: Iterable | None = None,
) -> np.ndarray:
    """Ascending indices of at most ``per_class`` images, or of a ``fraction``, at least one, of each class.

    A smaller draw from the same seed is a part of a larger one.

    Args:
        labels: (n,) of all images.
        seed: decides the draw.
        rows: indices to draw from; all images if not given.
        per_class, fraction: how many; both limits hold.
        classes: which of the labels; all that ``rows`` have if not given. One that is not there gives no image.

    Raises InputError for a number below 1, and a fraction that is not above 0 and at most 1.

    >>> of_each_class(np.array([0, 0, 0, 1, 1, 2]), seed=0, per_class=2, classes=[0, 1]).tolist()
    [0, 2, 3, 4]
    """
    most = len(labels) if per_class is None else per_class
    checks.values(seed=seed)
    checks.whole("per_class", most)
    checks.portion("fraction", fraction)
    rows = np.arange(len(labels)) if rows is None else rows
    rng = np.random.default_rng(seed)
    drawn = [rows[:0]]
    for name in np.unique(labels[rows]) if classes is None else classes:
        mine = rng.permutation(rows[labels[rows] == name])
        drawn.append(mine[: min(most, max(1, round(fraction * len(mine))))])
    return np.sort(np.concatenate(drawn))
