"""What the notebooks of this paper decide alike: class weights, α where none is chosen, and how choices are told."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.losses.acir import StructureAware, class_weights
from lib.results.markdown import markdown_table
from lib.training.methods import Answer


def of_classes(labels: np.ndarray, rows: np.ndarray) -> tuple[float, ...]:
    """w of every class of ``labels: (n,)`` (Equation 16), counted over the images ``rows``; 1 where there is none.

    Where patients are parted, all of a rare class may ask: then no pair meets its weight.

    >>> of_classes(np.array([0, 0, 0, 2, 1]), np.array([0, 1, 2, 3]))
    (0.6666666666666666, 1.0, 2.0)
    """
    there, counted = np.unique(labels[rows], return_inverse=True)
    found = np.ones(labels.max() + 1)
    found[there] = class_weights(counted)
    return tuple(found.tolist())


def weights(labels: np.ndarray, rows: np.ndarray, names: Sequence[str]) -> pd.DataFrame:
    """How much of a loss over pairs a class carries, with and without its weight w (Equations 16 and 17).

    Columns class, images (of ``rows``), weight, pairs (the share of pairs of one class that are of this one, percent)
    and weighted (the same, each pair counting w squared).

    >>> rows = weights(np.array([0, 0, 0, 1, 1]), np.arange(5), ["duct", "fat"])
    >>> rows[["pairs", "weighted"]].round(1).values.tolist()
    [[75.0, 57.1], [25.0, 42.9]]
    """
    classes, counts = np.unique(labels[rows], return_counts=True)
    w, pairs = np.array(of_classes(labels, rows))[classes], counts * (counts - 1)
    shares = {name: 100 * part / part.sum() for name, part in (("pairs", pairs), ("weighted", w**2 * pairs))}
    return pd.DataFrame({"class": [names[c] for c in classes], "images": counts, "weight": w} | shares)


def weights_layout(rows: pd.DataFrame) -> str:
    """:func:`weights` as Markdown."""
    numbers = {"weight": rows["weight"].map("{:.2f}".format)}
    numbers |= {name: rows[name].map("{:.1f} %".format) for name in ("pairs", "weighted")}
    titles = {"weight": "weight w", "pairs": "of the pairs of one class", "weighted": "of their weight"}
    return markdown_table(rows.assign(**numbers).rename(columns=titles))


ALPHA = 0.0
"""What Equation 17 comes to as printed, whatever α is: its quantisation term has no gradient (AC-4)."""


def l_wsc(labels: np.ndarray, rows: np.ndarray, fingerprint: int) -> StructureAware:
    """L_WSC at :data:`ALPHA`, with the class weights of the images ``rows`` that teach."""
    return StructureAware(alpha=ALPHA, fingerprint=fingerprint, class_weights=of_classes(labels, rows))


def at_an_end(tried: pd.DataFrame, by: str = "method") -> str:
    """Who was given the first or the last learning rate of its row, where a better one may lie beyond.

    tried: columns ``by``, lr and chosen.

    >>> rows = pd.DataFrame({"method": ["a"] * 3, "lr": [1, 2, 3], "chosen": [False, True, False]})
    >>> at_an_end(rows)
    'every learning rate lies inside its row'
    >>> at_an_end(rows.assign(chosen=[False, False, True]))
    'at an end of the row, where a better rate may lie beyond: a (3)'
    >>> at_an_end(rows.iloc[:2])
    '2 learning rates were tried, so that none lies inside: a better one may lie beyond'
    """
    if (n := tried["lr"].nunique()) < 3:
        return f"{n} learning rates were tried, so that none lies inside: a better one may lie beyond"
    ends = tried["lr"].min(), tried["lr"].max()
    there = tried[tried["chosen"] & tried["lr"].isin(ends)]
    if there.empty:
        return "every learning rate lies inside its row"
    told = ", ".join(f"{name} ({lr:g})" for name, lr in zip(there[by], there["lr"], strict=True))
    return f"at an end of the row, where a better rate may lie beyond: {told}"


def ends(tried: pd.DataFrame) -> list[str]:
    """:func:`at_an_end` of a committed table: of several methods (column method), networks (name), or ACIR's alone.

    >>> ends(pd.DataFrame({"lr": [1, 2, 3], "chosen": [False, False, True]}))
    ['at an end of the row, where a better rate may lie beyond: ACIR (3)']
    """
    by = next((column for column in ("method", "name") if column in tried), None)
    return [at_an_end(tried, by) if by else at_an_end(tried.assign(method="ACIR"))]


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


def few(n: int, enough: int = 5) -> str:
    """What stands behind a sentence about ``n`` trainings; nothing where they are enough.

    >>> few(2), few(5)
    (' (2 trainings, no test: not to be ranked)', '')
    """
    return "" if n >= enough else f" ({n} training{'s' * (n != 1)}, no test: not to be ranked)"
