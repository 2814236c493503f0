"""What the nearest images vote for: how pathology's image search is judged (arXiv 2409.04631, 2605.00902)."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.metrics import f1_score

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry
from lib.geometry.points import Points, as_tensor
from lib.metrics.keys import DISTANCES, classes_of, rank_keys

KS = (1, 3, 5)
"""The first answer, and the majority of the first 3 and 5."""


@torch.no_grad()
def votes(
    query: Points,
    gallery: Points,
    gallery_labels: ArrayLike,
    geometry: str | Geometry,
    ks: Sequence[int] = KS,
    query_ids: ArrayLike | None = None,
    gallery_ids: ArrayLike | None = None,
) -> np.ndarray:
    """The class that most of the first k gallery items have, for each query and k: (q, len(ks)).

    ``query``: (q, d), ``gallery``: (m, d) in ``geometry`` (or its name), ``gallery_labels``: (m,). A gallery item with
    the query's id is left out. Of classes with as many votes the one wins whose first item is nearest; items at equal
    distance come in the order of the gallery. Raises InputError as :func:`lib.metrics.retrieval.evaluate`, and where a
    query has fewer than k items to search.

    The nearest is an "a", two of the first three are "b":

    >>> from lib.geometry import Euclidean
    >>> gallery = torch.tensor([[1.0], [2.0], [3.0]])
    >>> votes(torch.zeros(1, 1), gallery, ["a", "b", "b"], Euclidean(), ks=(1, 3)).tolist()
    [['a', 'b']]
    """
    checks.values(ks=ks)
    query, gallery = as_tensor(query, "query"), as_tensor(gallery, "gallery")
    key = rank_keys(query, gallery, geometry, query_ids, gallery_ids)
    classes, codes = classes_of(gallery_labels, "gallery row")
    if len(codes) != len(gallery):
        raise InputError(f"there are {len(codes)} gallery labels, but {len(gallery)} gallery rows")
    depth = max(ks)
    if depth > len(gallery):
        raise InputError(f"k = {depth}, but the gallery has {len(gallery)} images. Use a smaller k")
    block = max(1, DISTANCES // len(gallery))
    nearest = []
    for start in range(0, len(query), block):
        keys, order = key(slice(start, start + block), slice(None)).sort(dim=1, stable=True)
        if (few := keys[:, depth - 1].isinf()).any():
            row = start + few.nonzero()[0].item()
            raise InputError(f"query row {row} has fewer than k = {depth} images to search. Use a smaller k")
        nearest.append(order[:, :depth].cpu())
    order = codes[torch.cat(nearest).numpy()]
    return classes[np.stack([_majority(order[:, :k], len(classes)) for k in ks], axis=1)]


def _majority(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """The most frequent code of every row ``(q, k)``; of several the first that comes."""
    counts = (codes[:, :, None] == np.arange(n_classes)).sum(axis=1)
    of_each = np.take_along_axis(counts, codes, axis=1)
    return np.take_along_axis(codes, of_each.argmax(axis=1)[:, None], axis=1)[:, 0]


def macro_f1(labels: ArrayLike, voted: ArrayLike) -> float:
    """F1 of each class, averaged over the classes that ``labels: (q,)`` have; ``voted``: (q,) as :func:`votes`.

    Give it the queries that have an answer, an image of their class in the gallery. A class of which no query has one
    has F1 = 0 by construction and is no class of the mean then; and its queries, whose votes are wrong whatever the
    method, are no false alarms of other classes. Raises InputError without a query, for another number of votes than of
    labels, for a missing one, and where some are text and others numbers.

    Class "a" has precision 1 and recall 1/2, "b" precision 1/2 and recall 1:

    >>> round(macro_f1(["a", "a", "b"], ["a", "b", "b"]), 4)
    0.6667
    """
    labels, voted = np.asarray(labels, dtype=object), np.asarray(voted, dtype=object)
    if labels.ndim != 1 or labels.shape != voted.shape or not len(labels):
        raise InputError(f"there are labels {labels.shape} and votes {voted.shape}; expected one of each for a query")
    for name, values in (("query", labels), ("vote", voted)):
        classes_of(values, name)
    own, voted = np.split(classes_of(np.concatenate([labels, voted]), "image")[1], 2)
    return float(f1_score(own, voted, labels=np.unique(own), average="macro", zero_division=0))
