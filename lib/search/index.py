"""Index structures behind one interface: FAISS (flat, HNSW) and Qdrant, with an exact re-rank of what they propose.

They search inner products of :class:`lib.search.inner.InnerProduct`, so one index serves flat, spherical and hyperbolic
embeddings. What comes back are distances of the geometry, computed from the stored points.

faiss and qdrant-client are the optional extra ``index``: ``pip install 'hyperbolic-retrieval-companion[index]'``.
"""

import importlib
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lib import checks, files, geometry
from lib.errors import InputError
from lib.geometry.points import Points, as_tensor
from lib.search import provenance
from lib.search.exact import measured
from lib.search.inner import InnerProduct, beside_sphere, on_sphere
from lib.search.provenance import Provenance

FOLDER = "search index"


class Index(ABC):
    """Points (m, d), found by an approximate or exact inner-product search and sorted by their true distance.

    Build one with :meth:`build`, keep it with :meth:`save`, open it with :meth:`load`.
    """

    kind: ClassVar[str]

    def __init__(self, points: Tensor, centre: Tensor, provenance: Provenance) -> None:
        self.points, self.provenance = points, provenance
        self.form = InnerProduct(provenance.geometry, centre)

    @classmethod
    def build(cls, points: Points, space: str | geometry.Geometry, encoder: str, **options: Any) -> "Index":
        """Index ``points: (m, d)`` of ``space`` (or its name), embedded by ``encoder``; they are kept in float32.

        Raises InputError for an empty gallery, NaN, points on the rim of the ball or beyond it, and for a missing
        library, naming the extra that has it.
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
        return index

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
        checks.values(k=k)
        if k > len(self.points):
            raise InputError(
                f"k = {k}: the gallery has {len(self.points)} items, ask for 1 to {len(self.points)} of them"
            )
        n = min(max(k, 4 * k + 16 if candidates is None else candidates), len(self.points))
        found = torch.from_numpy(self.propose(self.form.query(query), n)).sort(dim=1).values
        missing = found < 0
        keys = self.form.keys(query, self.points[found.clamp_min(0)]).masked_fill(missing, torch.inf)
        keys, order = keys.sort(dim=1, stable=True)
        indices = found.gather(1, order)[:, :k].masked_fill(keys[:, :k] == torch.inf, -1)
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
    extra = 2  # numbers of a vector beyond those of a point

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
        found, wanted = (self.index.ntotal, self.index.d), (len(self.points), self.points.shape[1] + self.extra)
        if found != wanted:
            raise InputError(
                f"{file} holds {found[0]} vectors of {found[1]} numbers, but these points need {wanted[0]} of "
                f"{wanted[1]}; build the index again"
            )


class FaissHnsw(FaissFlat):
    """FAISS's navigable small-world graph: approximate, but its time hardly grows with the gallery.

    A larger ``effort`` finds more and takes longer: it is the number of points that stay in view on the way. It may be
    changed at any time.
    """

    kind = "faiss hnsw"
    extra = 3
    effort = 256

    def fill(self, vectors: Tensor, neighbours: int = 32, build_effort: int = 200) -> None:
        faiss, upright = library("faiss"), on_sphere(vectors)
        self.index = faiss.IndexHNSWFlat(upright.shape[1], neighbours, faiss.METRIC_INNER_PRODUCT)
        self.index.hnsw.efConstruction = build_effort
        self.index.add(upright.numpy())

    def propose(self, vectors: Tensor, n: int) -> np.ndarray:
        self.index.hnsw.efSearch = max(self.effort, n)
        return super().propose(beside_sphere(vectors), n)


class Qdrant(Index):
    """A Qdrant collection: embedded in this process, or on a server or cluster by its ``url``; the code is the same.

    The embedded one compares all vectors, a server builds a graph. A saved index holds the points; its collection is
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
        found = np.full((len(vectors), n), -1)
        for row, answer in zip(found, self.client.query_batch_points(self.collection, requests), strict=True):
            ids = [point.id for point in answer.points]
            row[: len(ids)] = ids
        return found

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
