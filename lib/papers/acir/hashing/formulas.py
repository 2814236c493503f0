"""Formulas that can be read in two ways, computed in both: Equation 12 (AC-6), Equation 4 and W_M (AC-7)."""

import numpy as np
import pandas as pd
import torch

from lib.losses.acir import StructureAware, class_weights, pearson
from lib.results.markdown import markdown_table

BITS, BATCH = "over the bits of a code", "over the batch, bit by bit"
"""What the mean in Equation 12 may be taken over; the first is ours."""


def correlations(h: np.ndarray, reading: str = BITS) -> np.ndarray:
    """Equation 12 of all pairs of codes ``h: (n, bits)`` before the sign, (n, n), its mean as ``reading`` says."""
    codes = torch.as_tensor(np.asarray(h), dtype=torch.float64)
    if reading == BITS:
        return pearson(codes).numpy()
    centred = torch.nn.functional.normalize(codes - codes.mean(0), dim=1)
    return (centred @ centred.mT).numpy()


def readings(h: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    """Both readings of Equation 12 on codes ``h: (n, bits)`` of images with ``labels: (n,)``.

    Columns reading; one_class, two_classes (mean S of such pairs); one_shifted (the largest change of any S if 1 is
    added to every bit of the first code) and all_shifted (if 1 is added to the first bit of every code).
    """
    same, other = (np.triu(mask, k=1) for mask in _pairs(labels))
    one, every = np.array(h, dtype=float), np.array(h, dtype=float)
    one[0] += 1
    every[:, 0] += 1
    rows = []
    for reading in (BITS, BATCH):
        s = correlations(h, reading)
        cells = {"reading": reading, "one_class": s[same].mean(), "two_classes": s[other].mean()}
        for name, moved in (("one_shifted", one), ("all_shifted", every)):
            cells[name] = np.abs(correlations(moved, reading) - s).max()
        rows.append(cells)
    return pd.DataFrame(rows)


def _pairs(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    same = labels[:, None] == labels
    return same, ~same


def negative_sentence(h: np.ndarray, labels: np.ndarray) -> str:
    """How many pairs of codes ``h: (n, bits)`` have a coefficient below 0, which has no log (AC-3)."""
    r = correlations(h)
    shares = [(r[np.triu(mask, k=1)] < 0).mean() for mask in _pairs(labels)]
    return f"negative coefficients, whose log is not defined: {shares[0]:.0%} of one class, {shares[1]:.0%} of two"


def readings_layout(rows: pd.DataFrame) -> str:
    """Both readings as Markdown."""
    names = {"reading": "mean of Equation 12", "one_class": "S of one class", "two_classes": "of two classes"}
    names |= {"one_shifted": "change, 1 added to one code", "all_shifted": "1 added to one bit of all codes"}
    numbers = {name: rows[name].map("{:.3f}".format) for name in rows.columns if name != "reading"}
    return markdown_table(rows.assign(**numbers).rename(columns=names))


def signs() -> list[str]:
    """Which S Equation 4 asks for, of a pair of one class: as printed, and with its minus sign inside (AC-7)."""
    s = np.linspace(0.1, 0.9, 9)
    log_p = np.log(s)  # Equation 5 for a pair of one class
    loss = StructureAware(alpha=0.0)
    codes = torch.tensor([[[1.0, -1.0, 1.0, -1.0], [1.0, -1.0, 1.0, end]] for end in (-1.0, 1.0)])
    alike, apart = loss(codes, torch.zeros(2, 2, dtype=torch.long)).tolist()
    return [
        f"S from {s[0]:.1f} to {s[-1]:.1f}, two images of one class. Equation 4 as printed, argmin of log P: S = "
        f"{s[log_p.argmin()]:.1f}, as unlike as can be; with the minus sign inside: S = {s[(-log_p).argmin()]:.1f}",
        f"Equation 13 has the sign inside: equal codes of one class cost {alike:.2f}, unequal ones {apart:.2f}",
    ]


def weights(labels: np.ndarray) -> pd.DataFrame:
    """How much a pair's loss counts in both readings of W_M L_SC, w from ``labels: (n,)`` (Equation 16).

    Columns first, second (classes of i and j), pairs (ordered, of two images), element (w_i w_j) and product: the
    factor of L_ij in the sum of all elements of the matrix product, w_i Σ w.
    """
    w = np.array(class_weights(labels))[labels]
    rows = []
    for first in np.unique(labels):
        for second in np.unique(labels):
            i, j = np.flatnonzero(labels == first)[0], np.flatnonzero(labels == second)[-1]
            n = (
                int((labels == first).sum()) * int((labels == second).sum())
                - (first == second) * (labels == first).sum()
            )
            if n:
                cells = {"first": first, "second": second, "pairs": int(n), "element": w[i] * w[j]}
                rows.append(cells | {"product": w[i] * w.sum()})
    return pd.DataFrame(rows)


def weights_sentence(labels: np.ndarray) -> str:
    """Why W_M times the loss is taken element by element, on images with ``labels: (n,)``, two classes (AC-7)."""
    by = weights(labels).set_index(["first", "second"])
    few, many = 1, 0
    pair, turned = by.loc[(many, few)], by.loc[(few, many)]
    return (
        f"{(labels == many).sum()} images of a frequent class, {(labels == few).sum()} of a rare one: element by "
        f"element a pair of both counts {pair['element']:.2f} whichever comes first; as a product of matrices "
        f"{pair['product']:.2f} or {turned['product']:.2f}, by which image comes first, and its second image's class "
        "does not matter"
    )
