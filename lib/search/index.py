"""Index structures behind one interface: FAISS (flat, HNSW) and Qdrant, with an exact re-rank of what they propose.

They search inner products of :class:`lib.search.inner.InnerProduct`, so one index serves flat, spherical and hyperbolic
embeddings. What comes back are distances of the geometry, computed from the stored points. Every index measures its
recall on its own gallery when it is built (:mod:`lib.search.recall`), and keeps it in its provenance.

faiss and qdrant-client are the optional extra ``index``: ``pip install 'hyperbolic-retrieval-companion[index]'``.
"""

import importlib
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lib import checks, files, geometry
from lib.errors import InputError
from lib.geometry.points import Points, as_tensor
from lib.search import provenance, recall
from lib.search.exact import measured, nearest
from lib.search.inner import InnerProduct, beside_sphere, on_sphere
from lib.search.provenance import Provenance

FOLDER = "search index"


class Index(ABC):
    """Points (m, d), found by an approximate or exact inner-product search and sorted by their true distance.

    Build one with :meth:`build`, keep it with :meth:`save`, open it with :meth:`load`.
    """

    kind: ClassVar[str]
    finds_more: ClassVar[str] = ""
    """What else than an exact search finds more, if anything does."""

    def __init__(self, points: Tensor, centre: Tensor, provenance: Provenance) -> None:
        self.points, self.provenance = points, provenance
        self.form = InnerProduct(provenance.geometry, centre)

    @classmethod
    def build(cls, points: Points, space: str | geometry.Geometry, encoder: str, **options: Any) -> "Index":
        """Index ``points: (m, d)`` of ``space`` (or its name), embedded by ``encoder``; they are kept in float32.

        Warns where less than 99 % of the gallery's own neighbours are found. Raises InputError where it is less than
        90 %, for an empty gallery, NaN, points on the rim of the ball or beyond it, ``options`` without meaning, and
        for a missing library, naming the extra that has it.
        """
        points, space = as_tensor(points, "gallery"), geometry.by_name(space)
        if points.ndim != 2 or not points.numel():
            raise InputError(
                f"the gallery has the shape {tuple(points.shape)}; expected (m, d) with at least one point"
            )
        if not points.isfinite().all():
            row = (~points.isfinite().all(1)).nonzero()[0].item()
            raise InputError(f"gallery row {row} holds NaN or infinity; drop or repair it")
        points = points.detach().float().contiguous()
        c = float(getattr(space, "c", 0.0))
        about = Provenance(encoder, space.name, c, points.shape[1], len(points))
        index = cls(points, InnerProduct.about(space, points).centre, about)
        index.fill(index.form.gallery(points), **options)
        index.provenance = replace(about, recall=index._recall())
        return index

    def _recall(self) -> float:
        """Recall on the gallery itself, judged."""
        points, space = self.points, self.provenance.geometry

        def exact(rows: np.ndarray, k: int) -> tuple[Tensor, Tensor]:
            return nearest(points[rows], points, k, space)

        share = recall.on_itself(lambda rows, k: self.search(points[rows], k), exact, len(points))
        radius = space.between(points, torch.zeros_like(points))
        where = "" if space.name == "sphere" else f" (radius {radius.min():.3g} to {radius.max():.3g})"
        what = f"{self.kind} among {len(points):,} points{where}"
        recall.judge(share, what, f"search exactly (FaissFlat, lib.search.nearest){self.finds_more}")
        return share

    def search(self, query: Points, k: int, candidates: int | None = None) -> tuple[Tensor, Tensor]:
        """Distances and indices of the k nearest points, (q, k) each, nearest first, equal distances by index.

        Args:
            query: (q, d) points, embedded as the gallery was.
            k: at most the number of points.
            candidates: how many the index proposes for each query; 4k + 16 if None. A structure that proposes fewer
                than k of them ends the row in index -1 and distance inf.

        Raises:
            InputError: for another dimension, NaN, points outside the ball, or k beyond the size of the gallery.
        """
        query = as_tensor(query, "query").float()
        if query.ndim != 2 or query.shape[1] != self.provenance.dim:
            single = " (a single query is the set query[None])" if query.ndim == 1 else ""
            raise InputError(
                f"queries have the shape {tuple(query.shape)}{single}; the index holds {self.provenance.dim} numbers"
            )
        if not query.isfinite().all():
            row = (~query.isfinite().all(1)).nonzero()[0].item()
            raise InputError(f"query row {row} holds NaN or infinity; drop or repair it")
        checks.within(k, len(self.points), f"gallery has {len(self.points)} items")
        checks.values(**{} if candidates is None else {"candidates": candidates})
        n = min(max(k, 4 * k + 16 if candidates is None else candidates), len(self.points))
        proposed = torch.from_numpy(self.propose(self.form.query(query), n)).sort(dim=1).values
        missing = proposed < 0
        keys = self.form.keys(query, self.points[proposed.clamp_min(0)]).masked_fill(missing, torch.inf)
        keys, order = keys.sort(dim=1, stable=True)
        indices = proposed.gather(1, order)[:, :k].masked_fill(keys[:, :k] == torch.inf, -1)
        return measured(query, self.points, indices, self.provenance.geometry)

    def save(self, folder: Path) -> None:
        """Write the index into ``folder``, which appears whole or not at all; an older one is replaced.

        Raises InputError for a folder with anything else in it: nothing but an index is ever replaced.
        """
        with files.whole(folder, FOLDER, older=provenance.holds_index) as draft:
            draft.mkdir()
            provenance.write(draft, self.kind, self.provenance, self.points, self.form.centre)
            self.write(draft)

    @classmethod
    def load(cls, folder: Path, **expected: object) -> "Index":
        """Open a saved index and check that it has the ``expected`` encoder, space, c or dim.

        Raises InputError where the folder is no index of this kind, is not what was saved to the bit, or differs from
        what is expected.
        """
        folder = Path(folder).resolve()
        files.sweep(folder.parent)  # an index that was being replaced when the process was killed
        files.check(folder, FOLDER)
        about, points, centre = provenance.read(folder, cls.kind)
        about.check(**expected)
        index = cls(points, centre, about)
        index.read(folder)
        return index

    @abstractmethod
    def fill(self, vectors: Tensor, **options: Any) -> None:
        """Index ``vectors: (m, d + 2)`` float32."""

    @abstractmethod
    def propose(self, vectors: Tensor, n: int) -> np.ndarray:
        """The numbers (q, n) int64 of n stored vectors with large inner products, -1 where there are fewer."""

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Write the structure into an empty ``folder``."""

    @abstractmethod
    def read(self, folder: Path) -> None:
        """Read what :meth:`write` has written."""


class FaissFlat(Index):
    """All inner products by FAISS: exact but for rounding, which the re-rank repairs."""

    kind = "faiss flat"

    def fill(self, vectors: Tensor) -> None:
        self.index = library("faiss").IndexFlatIP(vectors.shape[1])
        self.index.add(vectors.numpy())

    def propose(self, vectors: Tensor, n: int) -> np.ndarray:
        return self.index.search(vectors.numpy(), n)[1]

    def write(self, folder: Path) -> None:
        library("faiss").write_index(self.index, str(folder / "vectors.faiss"))

    def read(self, folder: Path) -> None:
        file = folder / "vectors.faiss"
        try:
            self.index = library("faiss").read_index(str(file))
        except RuntimeError as error:
            raise InputError(f"{file} cannot be read ({error}); build the index again") from error
        stored, wanted = (self.index.ntotal, self.index.d), (len(self.points), self.points.shape[1] + 2)
        if stored != wanted:
            raise InputError(
                f"{file} holds {stored[0]} vectors of {stored[1]} numbers, but these points need {wanted[0]} of "
                f"{wanted[1]}; build the index again"
            )


class FaissHnsw(FaissFlat):
    """FAISS's navigable small-world graph: approximate, but its time hardly grows with the gallery.

    The graph joins neighbours among the tangent vectors at the origin (in flat space the points themselves), and the
    way through it is by the exact keys. A graph among the vectors of d + 2 numbers themselves loses recall where their
    norms spread, as they do near the rim beside points near the centre: ``reports/bench/recall.md`` has both by radius.
    Of a gallery that lies far to one side of the origin it finds less, a recall@10 of about 0.96 and below where this
    was measured; :meth:`build` warns of it below 0.99 and refuses below 0.9 (:mod:`lib.search.recall`).

    Options of :meth:`build`: ``neighbours`` of a point in the graph, ``build_effort`` and ``effort``: how many points
    stay in view while it is built and searched. More of each finds more and takes longer; ``effort`` may be changed
    at any time.
    """

    kind = "faiss hnsw"
    finds_more = ", or build with more neighbours (64), build_effort (500) or effort (1000)"

    def fill(self, vectors: Tensor, neighbours: int = 32, build_effort: int = 200, effort: int = 256) -> None:
        checks.values(neighbours=neighbours, build_effort=build_effort, effort=effort)
        faiss = library("faiss")
        places = self.provenance.geometry.log0(self.points.double()).float()
        graph = faiss.IndexHNSWFlat(places.shape[1], int(neighbours))
        graph.hnsw.efConstruction = int(build_effort)
        graph.add(places.numpy())
        self.index = faiss.IndexHNSWFlat(vectors.shape[1], int(neighbours), faiss.METRIC_INNER_PRODUCT)
        faiss.downcast_index(self.index.storage).add(vectors.numpy())
        self.index.hnsw, self.index.ntotal = graph.hnsw, graph.ntotal
        self.index.hnsw.is_similarity = True  # the largest product is the nearest, as the smallest distance was
        self.effort = effort

    @property
    def effort(self) -> int:
        """How many points stay in view during a search, or as many as it proposes where these are more."""
        return self.index.hnsw.efSearch

    @effort.setter
    def effort(self, effort: int) -> None:
        checks.values(effort=effort)
        self.index.hnsw.efSearch = min(int(effort), len(self.points))


class Qdrant(Index):
    """A Qdrant collection: embedded in this process, or on a server or cluster by its ``url``; the code is the same.

    The embedded one compares all vectors, a server builds a graph among unit vectors of d + 3 numbers
    (:func:`lib.search.inner.on_sphere`). No server was at hand, but FAISS's graph among the same vectors finds less
    than a third of the nearest at hyperbolic radius 0 to 12 (``reports/bench/recall.md``, d + 2). Right after the
    upload a server may still compare all vectors, so the recall that :meth:`build` measures is no promise there:
    compare with :func:`lib.search.nearest` once its graph is built. A saved index holds the points; its collection is
    filled anew when it is loaded.
    """

    kind = "qdrant"
    collection = "gallery"

    def fill(self, vectors: Tensor, url: str | None = None) -> None:
        qdrant, upright = library("qdrant_client"), on_sphere(vectors).numpy()
        self.client = qdrant.QdrantClient(url=url) if url else qdrant.QdrantClient(":memory:")
        models = qdrant.models
        size = models.VectorParams(size=upright.shape[1], distance=models.Distance.DOT)
        if self.client.collection_exists(self.collection):
            raise InputError(f"{url} already has a collection {self.collection}; remove it or use another server")
        self.client.create_collection(self.collection, vectors_config=size)
        self.client.upload_collection(self.collection, vectors=upright, ids=range(len(upright)))

    def propose(self, vectors: Tensor, n: int) -> np.ndarray:
        models = library("qdrant_client").models
        requests = [models.QueryRequest(query=vector, limit=n) for vector in beside_sphere(vectors).tolist()]
        proposed = np.full((len(vectors), n), -1)
        for row, answer in zip(proposed, self.client.query_batch_points(self.collection, requests), strict=True):
            ids = [point.id for point in answer.points]
            row[: len(ids)] = ids
        return proposed

    def write(self, folder: Path) -> None:
        pass

    def read(self, folder: Path) -> None:
        self.fill(self.form.gallery(self.points))


def library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{name} is not installed: pip install 'hyperbolic-retrieval-companion[index]', or search without an index "
            "by lib.search.nearest, which is exact"
        ) from error
