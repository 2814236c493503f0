"""The trees of the datasets, as YAML files beside this module; a comment in each says why a class stands where it does.

A dataset whose classes are too many to be listed (the garments of In-Shop, the species of iNaturalist) has a tree that
is made of its table, and so have your own class folders: :func:`of` gives either kind.
"""

from pathlib import Path

import numpy as np

from lib import paths
from lib.datasets.catalogue import DATASETS
from lib.datasets.table import ImageTable
from lib.errors import InputError, suggestion
from lib.taxonomy import Taxonomy, from_paths, from_yaml

HERE = Path(__file__).parent
OWN_FILE = "taxonomy.yaml"
"""Beside somebody's own class folders: their tree, as :func:`lib.taxonomy.from_yaml` reads it."""

RANKS = ("kingdom", "phylum", "class", "order", "family", "genus", "label")
MADE: dict[str, dict[str, tuple[str, ...]]] = {
    "in_shop": {"category": ("category", "label")},
    "inaturalist": {"taxonomy": RANKS},
}
"""Dataset → tree → the columns of its table that are its levels, from the root down."""

LEAF: dict[str, str] = {"tissue": "subtype"}
"""Dataset → the column that holds the leaf, if that is not the label."""


def names(dataset: str) -> list[str]:
    """The trees of a dataset; of your own class folders the one called "own".

    >>> names("ham10000"), names("bh200x"), names("in_shop"), names("my_slides")
    (['malignancy', 'origin'], ['tumour'], ['category'], ['own'])
    """
    family = _family(dataset)
    if family in MADE:
        return list(MADE[family])
    files = [file.stem.removeprefix(f"{family}_") for file in sorted(HERE.glob(f"{family}_*.yaml"))]
    return files or ([] if family in DATASETS else ["own"])


def load(dataset: str, which: str) -> Taxonomy:
    """The tree ``which`` of a dataset (:func:`names`) with all classes that it is published with.

    Raises:
        InputError: for an unknown tree, and one that is made of the table (use :func:`of`).

    >>> load("bh40x", "tumour").level(1)
    ('benign', 'malignant')
    """
    family, known = _family(dataset), names(dataset)
    if which not in known:
        there = suggestion(which, known) if known else "it has none"
        raise InputError(f"{dataset} has no tree {which!r}; {there}")
    if family in MADE or which == "own":
        raise InputError(f"the tree {which!r} of {dataset} is made of its images: call of(table, {which!r})")
    return from_yaml(HERE / f"{family}_{which}.yaml")


def of(table: ImageTable, which: str) -> Taxonomy:
    """The tree ``which`` for the images of a table: as :func:`load` if a file has it, else made of the table.

    Your own class folders have the tree of their ``taxonomy.yaml``, if it lies beside them, else that of their labels,
    where "colon/tumour/solid" tells the way; labels without "/" make a flat tree.

    Raises:
        InputError: for an unknown tree, and as :func:`lib.taxonomy.from_paths` and :func:`lib.taxonomy.from_yaml`.
    """
    family = _family(table.name)
    if which not in names(table.name):
        return load(table.name, which)
    if family in MADE:
        return from_paths(f"{table.name}, {which}", leaves(table, which))
    if which != "own":
        return load(table.name, which)
    file = table.root / OWN_FILE
    return from_yaml(file) if file.is_file() else from_paths(table.name, table.labels)


def leaves(table: ImageTable, which: str) -> np.ndarray:
    """(n,) the leaf of every image in the tree ``which``, as text; ``of(table, which).codes`` makes numbers of it.

    Raises:
        InputError: for an unknown tree, and a table without a column that it needs.
    """
    family, known = _family(table.name), names(table.name)
    if which not in known:
        load(table.name, which)
    columns = MADE[family][which] if family in MADE else (LEAF.get(family, "label"),)
    if lacking := [column for column in columns if column not in table.rows]:
        raise InputError(f"{table.name}: the tree {which!r} needs the column {', '.join(lacking)}, which is not there")
    return table.rows[list(columns)].astype(str).agg("/".join, axis=1).to_numpy(dtype=str)


def _family(dataset: str) -> str:
    """The dataset whose trees these are: bh200x is BreakHis, tissue_40x is tissue."""
    if dataset in paths.DRAWN:
        return "tissue"
    return "breakhis" if dataset in DATASETS and DATASETS[dataset].magnifications else dataset
