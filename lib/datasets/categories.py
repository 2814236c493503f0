"""Metric learning: whole categories are learnt from, and others, never seen, ask each other."""

from dataclasses import dataclass

import numpy as np

from lib.datasets.table import ImageTable
from lib.errors import InputError


@dataclass(frozen=True, eq=False)
class Halves:
    """Images by what they are for, as row numbers of a table.

    names: (n,) the category of every image. codes: (n,) the same as numbers,
    those that are learnt from first. learnt: images of the categories that are
    learnt from. queries, gallery: of all others; one set, from which a query is left out itself, where a dataset does
    not divide them. left_out: images of categories with too few images.
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
        one = "the same" if np.array_equal(self.queries, self.gallery) else f"{len(self.gallery)} images"
        return (
            f"learnt from: {len(self.learnt)} images of {self.count(self.learnt)} categories; asking: "
            f"{len(self.queries)} images of {self.count(self.queries)} others; searched: {one}; left out, "
            f"in categories with too few images: {self.left_out}"
        )


def halves(table: ImageTable, by: str = "label", *, seed: int = 0, least: int = 2) -> Halves:
    """The standard split of a dataset where it has one (a column split), else half of the categories drawn at random.

    Args:
        table: with a column ``by``, what a category is: "label", "group" (all images of one lesion), another column, or
            several joined by "/".
        seed: of the drawing; an odd category goes to the half that is learnt from.
        least: categories with fewer images are left out: they make no pair.

    Raises:
        InputError: for an unknown column, and fewer than two categories in a half.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"image_id": list("uvwxyz"), "path": list("uvwxyz"), "label": list("aabbcd")})
    >>> found = halves(ImageTable("mine", ".", rows.assign(group=rows["image_id"]), "image"), seed=1, least=1)
    >>> sorted(map(found.count, (found.learnt, found.queries))), set(found.learnt) & set(found.queries)
    ([2, 2], set())
    >>> bool(found.codes[found.learnt].max() < found.codes[found.queries].min())
    True
    """
    columns = by.split("/")
    if unknown := [name for name in columns if name not in table.rows]:
        raise InputError(f"{table.name} has no column {', '.join(unknown)}; choose of {', '.join(table.rows.columns)}")
    names = table.rows[columns].astype(str).agg("/".join, axis=1).to_numpy()
    categories, codes, counts = np.unique(names, return_inverse=True, return_counts=True)
    enough = counts[codes] >= least
    part = _standard(table) if "split" in table.rows else _drawn(codes, counts >= least, seed)
    learnt, queries, gallery = (np.flatnonzero(enough & np.isin(part, of)) for of in PARTS)
    for what, rows in (("learnt from", learnt), ("searched", gallery)):
        if len(np.unique(codes[rows])) < 2:
            raise InputError(
                f"{table.name} has {len(categories)} categories by {by}, of which {(counts >= least).sum()} with "
                f"{least} images or more: too few to be {what}. Choose another column"
            )
    if both := np.intersect1d(names[learnt], names[np.union1d(queries, gallery)]).tolist():
        raise InputError(f"{table.name}: {len(both)} categories, such as {both[0]}, are on both sides of its split")
    order = np.argsort(~np.isin(np.arange(len(categories)), codes[learnt]), kind="stable")
    return Halves(names, np.argsort(order)[codes], learnt, queries, gallery, int((~enough).sum()))


PARTS = (("train",), ("test", "query"), ("test", "gallery"))
"""What a column split says of images that are learnt from, that ask, and that are searched."""


def _standard(table: ImageTable) -> np.ndarray:
    part = table.rows["split"].astype(str)
    if unknown := set(part) - {name for several in PARTS for name in several}:
        raise InputError(
            f"{table.name}: split is {sorted(unknown)[0]!r} somewhere; it may be train, test, query, gallery"
        )
    return part.to_numpy()


def _drawn(codes: np.ndarray, enough: np.ndarray, seed: int) -> np.ndarray:
    usable = np.flatnonzero(enough)
    learnt = np.random.default_rng(seed).permutation(usable)[: (len(usable) + 1) // 2]
    return np.where(np.isin(codes, learnt), "train", "test")


ASIDE = 0.25
"""Of the categories that are learnt from, the share that learning rates and steps are chosen by."""


def held_out(found: Halves, seed: int, share: float = ASIDE) -> tuple[np.ndarray, np.ndarray]:
    """Of the images that are learnt from, those to learn from and those of categories set aside to choose by."""
    categories = np.unique(found.codes[found.learnt])
    n = max(2, round(share * len(categories)))
    if n > len(categories) - 2:
        raise InputError(f"{len(categories)} categories cannot be divided into some to learn from and {n} to choose by")
    aside = np.random.default_rng((seed, 1)).permutation(categories)[:n]
    chosen_by = np.isin(found.codes[found.learnt], aside)
    return found.learnt[~chosen_by], found.learnt[chosen_by]
