"""Checked rank keys of queries and a gallery, block by block: what metrics and search sort by."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lib.errors import InputError
from lib.geometry import Geometry, PoincareBall, by_name
from lib.geometry.points import Points, as_tensor, unfit

DISTANCES = 2**25
"""How many distances exist at a time."""


def rank_keys(
    query: Points,
    gallery: Points,
    geometry: str | Geometry,
    query_ids: ArrayLike | None = None,
    gallery_ids: ArrayLike | None = None,
    wide: bool = False,
) -> Callable[[slice | Tensor, slice], Tensor]:
    """Check the input once and return ``key(rows, columns)``, the rank keys of that block, inf where ids are equal.

    ``query``: (q, d), ``gallery``: (m, d) in ``geometry`` (or its name), ids one per row, both or neither; ``wide``:
    compute the keys in float64. Raises InputError for an empty or mismatched input, a missing id, a point on the rim
    of the ball or beyond it, and a distance that is not finite.
    """
    query, gallery, geometry = as_tensor(query, "query"), as_tensor(gallery, "gallery"), by_name(geometry)
    if query.ndim != 2 or gallery.ndim != 2 or query.shape[1] != gallery.shape[1]:
        shapes = unfit(query, gallery, ("query", "gallery"))
        raise InputError(f"query and gallery have {shapes}; expected (q, d) and (m, d) with the same d")
    if query.dtype != gallery.dtype:
        raise InputError(f"query is {query.dtype} but gallery is {gallery.dtype}; convert one of them")
    for name, points in (("query", query), ("gallery", gallery)):
        if points.numel() == 0:
            raise InputError(f"the {name} is empty (shape {tuple(points.shape)})")
        if not torch.stack(points.aminmax()).isfinite().all():
            row = (~points.isfinite()).nonzero()[0, 0].item()
            raise InputError(f"{name} row {row} holds NaN or infinity; drop or repair it")
        if isinstance(geometry, PoincareBall):
            geometry.check_inside(points, f"{name} row")
    if (query_ids is None) != (gallery_ids is None):
        raise InputError("give both query_ids and gallery_ids, or neither")
    ids = None if query_ids is None else common_codes(query_ids, gallery_ids, query, gallery, "id")

    dtype = torch.float64 if wide else query.dtype

    def key(rows: slice | Tensor, columns: slice) -> Tensor:
        keys = geometry.rank_key(query[rows].to(dtype), gallery[columns].to(dtype))
        if not torch.stack(keys.aminmax()).isfinite().all():
            row, column = (~keys.isfinite()).nonzero()[0].tolist()
            row = torch.arange(len(query))[rows][row]
            pair = f"query row {row} to gallery row {column + (columns.start or 0)}"
            raise InputError(f"the {geometry.name} distance of {pair} is not finite; project the points first")
        return keys if ids is None else keys.masked_fill(ids[0][rows, None] == ids[1][columns], torch.inf)

    return key


def common_codes(
    query_values: ArrayLike, gallery_values: ArrayLike, query: Tensor, gallery: Tensor, what: str
) -> tuple[Tensor, Tensor]:
    """Integer codes, equal where the values of query and gallery rows are equal: (q,) and (m,) on their device.

    Raises InputError where the number or the type of values does not fit or one is missing; ``what`` names them.
    """
    sides = (("query", query_values, query), ("gallery", gallery_values, gallery))
    arrays = [np.asarray(values) for _, values, _ in sides]
    for (name, _, points), array in zip(sides, arrays, strict=True):
        if array.shape != (len(points),):
            raise InputError(f"{name} {what}s have shape {array.shape}, but there are {len(points)} {name} rows")
        if (missing := pd.isna(array)).any():
            raise InputError(f"{name} row {missing.argmax()} has no {what}")
    kinds = [pd.api.types.infer_dtype(array) for array in arrays]
    if kinds[0] != kinds[1]:
        raise InputError(f"query {what}s are {kinds[0]} but gallery {what}s are {kinds[1]}; convert one of them")
    codes, _ = pd.factorize(np.concatenate(arrays))
    query_codes, gallery_codes = torch.from_numpy(codes).to(query.device).split([len(query), len(gallery)])
    return query_codes, gallery_codes


def counts(classes: tuple[Tensor, Tensor], ids: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
    """Relevant items and all items of each query's gallery, (q,) each, from :func:`common_codes` of classes and ids.

    >>> counts((torch.tensor([0, 1]), torch.tensor([0, 0, 1])), (torch.tensor([7, 8]), torch.tensor([7, 9, 9])))
    (tensor([1, 1]), tensor([2, 3]))
    """
    relevant, size = _alike(*classes), torch.full_like(classes[0], len(classes[1]))
    if ids is None:
        return relevant, size
    width = 1 + max(codes.max() for codes in ids)
    both = (of_class * width + of_id for of_class, of_id in zip(classes, ids, strict=True))
    return relevant - _alike(*both), size - _alike(*ids)


def _alike(query: Tensor, gallery: Tensor) -> Tensor:
    """How many of the gallery's codes are the query's, (q,)."""
    codes, n = gallery.unique(return_counts=True)
    place = torch.searchsorted(codes, query).clamp_max(len(codes) - 1)
    return n[place] * (codes[place] == query)


def classes_of(labels: ArrayLike, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The classes (C,), sorted, and each label's place among them (n,); ``name`` is what the rows are called.

    Raises InputError where a label is missing, and where some are text and others numbers.

    >>> classes, codes = classes_of(["b", "a", "b"], "gallery row")
    >>> classes.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    labels = np.asarray(labels, dtype=object if isinstance(labels, list | tuple) else None)
    if (missing := pd.isna(labels)).any():
        raise InputError(f"{name} {missing.argmax()} has no label. Leave out images without a class")
    if pd.api.types.infer_dtype(labels.reshape(-1)) in ("mixed", "mixed-integer"):
        raise InputError(f"the labels of the {name}s are text and numbers, or other things; make text of all of them")
    return np.unique(np.array(labels.tolist()) if labels.dtype == object else labels, return_inverse=True)
