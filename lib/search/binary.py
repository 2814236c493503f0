"""Packed hash codes in FAISS: all of them, a graph, or lists around centres, with ties in one order.

faiss is the optional extra ``index``: ``pip install 'hyperbolic-retrieval-companion[index]'``.
"""

from typing import Any, Literal

import numpy as np

from lib import checks
from lib.errors import InputError
from lib.metrics.hashing import check_packed, distance_dtype, hamming
from lib.search import recall
from lib.search.index import library

Kind = Literal["flat", "hnsw", "ivf"]
KINDS: tuple[Kind, ...] = ("flat", "hnsw", "ivf")
"""All codes compared; a navigable graph; lists around centres, of which a few are looked through."""


def exact(query: np.ndarray, gallery: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of packed codes by comparing all: distances and indices, (q, k) each, equal distances by index.

    >>> exact(np.array([[0]], np.uint8), np.array([[3], [1], [2]], np.uint8), k=2)[1].tolist()
    [[1, 2]]
    """
    checks.within(k, len(gallery), f"gallery has {len(gallery)} codes")
    distance = hamming(query, gallery)
    # Distance and index in one whole number: smallest k of it are the answer, ties included.
    key = distance.astype(np.int64) * len(gallery) + np.arange(len(gallery))
    key = np.sort(np.partition(key, k - 1, axis=1)[:, :k], axis=1)
    return (key // len(gallery)).astype(distance.dtype), key % len(gallery)


class BinaryIndex:
    """Packed codes (m, bytes), found by FAISS; :meth:`search` gives distances as :func:`lib.metrics.hashing.hamming`.

    Args:
        codes: (m, bytes) uint8, as :func:`lib.metrics.hashing.pack` makes them.
        kind: one of :data:`KINDS`.
        neighbours: of a code in the graph. lists: around so many centres, 4·√m if None; probes: looked through.

    ``recall``: the share of its own neighbours that it finds (:mod:`lib.search.recall`), with a warning below 99 %.
    Codes have no norms that could spread, so there is no radius at which a graph loses them.

    Raises:
        InputError: for another kind, numbers without meaning, codes that are not packed, a graph that finds less than
            90 %, and where faiss is not installed.
    """

    def __init__(
        self,
        codes: np.ndarray,
        kind: Kind = "flat",
        *,
        neighbours: int = 32,
        lists: int | None = None,
        probes: int = 16,
    ) -> None:
        check_packed("gallery", codes)
        checks.values(neighbours=neighbours, probes=probes, **{} if lists is None else {"lists": lists})
        faiss, bits = library("faiss"), 8 * codes.shape[1]
        self.codes = np.ascontiguousarray(codes)
        self.index: Any
        if kind == "flat":
            self.index = faiss.IndexBinaryFlat(bits)
        elif kind == "hnsw":
            self.index = faiss.IndexBinaryHNSW(bits, int(neighbours))
        elif kind == "ivf":
            n = min(int(lists or round(4 * len(codes) ** 0.5)), len(codes))
            self.quantiser = faiss.IndexBinaryFlat(bits)  # kept: FAISS does not own it
            self.index = faiss.IndexBinaryIVF(self.quantiser, bits, n)
            self.index.train(self.codes)
            self.index.nprobe = int(probes)
        else:
            raise InputError(f"kind = {kind!r} is unknown; choose one of {', '.join(KINDS)}")
        self.index.add(self.codes)
        self.recall = recall.on_itself(self._near, lambda rows, k: exact(self.codes[rows], self.codes, k), len(codes))
        way_out = "compare all codes (flat), or take more neighbours (hnsw) or probes (ivf)"
        recall.judge(self.recall, f"a binary {kind} index", way_out, least=0 if kind == "ivf" else recall.ENOUGH)

    def _near(self, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self.search(self.codes[rows], k)

    def search(self, query: np.ndarray, k: int, candidates: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Distances and indices of k codes near each query, (q, k) each, nearest first, equal distances by index.

        Of codes at the largest distance some are left out, and which ones FAISS decides; ``candidates`` (4k + 16 if
        None) are asked for, so that these are few. Where a structure finds fewer than k, a row ends in index −1 and
        distance −1. Raises InputError for codes of another length, and k beyond the gallery.
        """
        if query.dtype != np.uint8 or query.ndim != 2 or query.shape[1] != self.codes.shape[1]:
            width = self.codes.shape[1]
            raise InputError(f"queries are {query.dtype} of shape {query.shape}; the index holds {width} bytes")
        checks.within(k, len(self.codes), f"gallery has {len(self.codes)} codes")
        checks.values(**{} if candidates is None else {"candidates": candidates})
        n = min(max(k, 4 * k + 16 if candidates is None else candidates), len(self.codes))
        distance, index = self.index.search(np.ascontiguousarray(query), n)
        lost = index < 0
        order = np.lexsort((index, np.where(lost, np.iinfo(np.int32).max, distance)), axis=1)[:, :k]
        distance, index = (np.take_along_axis(x, order, axis=1) for x in (distance, index))
        return np.where(index < 0, -1, distance).astype(distance_dtype(self.codes.shape[1])), index
