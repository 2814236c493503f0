"""Metric learning: a method learns from whole categories, and queries are of others that it has never seen."""

from dataclasses import dataclass

import numpy as np

from lib.datasets.table import ImageTable
from lib.errors import InputError

PARTS = (("train",), ("test", "query"), ("test", "gallery"))
"""What a column split calls training images, queries and the gallery."""

ASIDE = 0.25
"""Of the training categories, the share that learning rates and steps are chosen by."""


@dataclass(frozen=True, eq=False)
class Halves:
    """Images by what they are for, as row numbers of a table.

    names: (n,) the category of every image. codes: (n,) the same as numbers, training categories first. learnt: images
    of the training categories. queries, gallery: of all others; one set, from which a query is left out itself, unless
    the dataset divides them. left_out: how many images are of categories with too few.
    """

    names: np.ndarray
    codes: np.ndarray
    learnt: np.ndarray
    queries: np.ndarray
    gallery: np.ndarray
    left_out: int

    def count(self, rows: np.ndarray) -> int:
        """How many categories the images ``rows`` have."""
        return len(np.unique(self.codes[rows]))

    def __str__(self) -> str:
        same = np.array_equal(self.queries, self.gallery)
        left_out = f"; {self.left_out} images of categories with too few are left out" * bool(self.left_out)
        return (
            f"training: {len(self.learnt)} images of {self.count(self.learnt)} categories; queries: "
            f"{len(self.queries)} images of {self.count(self.queries)} other categories; gallery: "
            f"{'the other queries' if same else f'{len(self.gallery)} images'}{left_out}"
        )


def halves(table: ImageTable, by: str = "label", *, seed: int = 0, least: int = 2) -> Halves:
    """The standard split of a dataset if it has one (a column split), else half of the categories drawn at random.

    Args:
        table: with a column ``by``, what a category is: "label", "group" (all images of one lesion), another column, or
            several joined by "/".
        seed: of the drawing; an odd category goes to the training half.
        least: categories with fewer images are left out: they make no pair.

    Raises:
        InputError: for an unknown column, and fewer than two categories in a half.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"image_id": list("uvwxyz"), "path": list("uvwxyz"), "label": list("aabbcd")})
    >>> parts = halves(ImageTable("mine", ".", rows.assign(group=rows["image_id"]), "image"), seed=1, least=1)
    >>> print(parts)
    training: 4 images of 2 categories; queries: 2 images of 2 other categories; gallery: the other queries
    """
    columns = by.split("/")
    if unknown := [name for name in columns if name not in table.rows]:
        raise InputError(f"{table.name} has no column {', '.join(unknown)}; choose of {', '.join(table.rows.columns)}")
    names = table.rows[columns].astype(str).agg("/".join, axis=1).to_numpy()
    categories, codes, counts = np.unique(names, return_inverse=True, return_counts=True)
    enough = counts[codes] >= least
    part = _standard(table) if "split" in table.rows else _drawn(codes, counts >= least, seed)
    learnt, queries, gallery = (np.flatnonzero(enough & np.isin(part, of)) for of in PARTS)
    for what, rows in (("learn from", learnt), ("search", gallery)):
        if len(np.unique(codes[rows])) < 2:
            raise InputError(
                f"{table.name} has {len(categories)} categories by {by}, of which {(counts >= least).sum()} with "
                f"{least} images or more: too few to {what}. Choose another column"
            )
    if both := np.intersect1d(names[learnt], names[np.union1d(queries, gallery)]).tolist():
        raise InputError(f"{table.name}: {len(both)} categories, such as {both[0]}, are on both sides of its split")
    order = np.argsort(~np.isin(np.arange(len(categories)), codes[learnt]), kind="stable")
    return Halves(names, np.argsort(order)[codes], learnt, queries, gallery, int((~enough).sum()))


def _standard(table: ImageTable) -> np.ndarray:
    split = table.rows["split"].astype(str)
    if unknown := set(split) - {name for part in PARTS for name in part}:
        raise InputError(f"{table.name}: split is {min(unknown)!r} somewhere; it may be train, test, query, gallery")
    return split.to_numpy()


def _drawn(codes: np.ndarray, enough: np.ndarray, seed: int) -> np.ndarray:
    usable = np.flatnonzero(enough)
    learnt = np.random.default_rng(seed).permutation(usable)[: (len(usable) + 1) // 2]
    return np.where(np.isin(codes, learnt), "train", "test")


def held_out(parts: Halves, seed: int, share: float = ASIDE) -> tuple[np.ndarray, np.ndarray]:
    """The training images, divided into those to learn from and those of categories set aside to choose by."""
    categories = np.unique(parts.codes[parts.learnt])
    n = max(2, round(share * len(categories)))
    if n > len(categories) - 2:
        raise InputError(f"{len(categories)} categories cannot be divided into some to learn from and {n} to choose by")
    aside = np.random.default_rng((seed, 1)).permutation(categories)[:n]
    chosen_by = np.isin(parts.codes[parts.learnt], aside)
    return parts.learnt[~chosen_by], parts.learnt[chosen_by]
