"""Galleries that are kept: built once, searched often, added to, removed from, saved and opened again.

Every kind of :class:`Index` has the same methods. :class:`lib.search.local.Exact` answers in the order of float64, to
the bit what :func:`lib.search.nearest` says; :class:`lib.search.quick.Quick` proposes by short codes of FAISS and sorts
what it proposes by true distance. Points are in one of three spaces; texts such as class and patient are kept with
them::

    index = Exact.build(points, "poincare", encoder="mine, weights of May", fields={"patient": patients})
    distances, ids = index.search(query, k=20, without={"patient": ["p17"]})
    index.remove(ids[0])  # these points are in no file after the next save
    index.save(folder)
    index = Exact.load(folder, encoder="mine, weights of May")
"""

import importlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from lib import checks, files, geometry
from lib.errors import InputError
from lib.geometry.inner import InnerProduct
from lib.geometry.points import Points, as_tensor
from lib.search import fields as texts
from lib.search import provenance, recall
from lib.search.exact import Prepared, measured
from lib.search.fields import Field, Texts
from lib.search.provenance import Provenance

FOLDER, POINTS = "search index", "points.safetensors"


@dataclass(frozen=True)
class Kept:
    """What an index holds. It never changes: whoever adds or removes puts another one in its place."""

    points: Tensor
    ids: Tensor
    fields: dict[str, Field]
    structure: Any


class Index(ABC):
    """Points of one space with ids and texts, and their nearest neighbours; a kind adds what it searches by.

    An id is given once: in order from 0 when the index is built, then on with every :meth:`add`. It stays with its
    point, and no other point gets it after a :meth:`remove`.
    """

    kept: Kept
    kind: ClassVar[str]
    way_out: ClassVar[str] = "search exactly, by lib.search.local.Exact"
    """What to do where too few are found."""

    def __init__(self, provenance: Provenance, centre: Tensor, next_id: int = 0) -> None:
        self.provenance, self.next_id = provenance, next_id
        self.form = InnerProduct(provenance.geometry, centre)

    @classmethod
    def build(
        cls, points: Points, space: str | geometry.Geometry, encoder: str, fields: Texts | None = None, **options: Any
    ) -> "Index":
        """Index ``points: (m, d)`` of ``space`` (or its name), embedded by ``encoder``; they are kept in float32.

        ``fields``: name → one text per point. Raises InputError for an empty gallery, NaN, points on the rim of the
        ball or beyond it, ``options`` without meaning, a missing library, naming how to install it, and where an
        approximate search finds less than 99 % of the gallery's own neighbours at some radius.
        """
        points, space = as_tensor(points, "gallery"), geometry.by_name(space)
        points = _checked(points, "gallery", space)
        fields = texts.checked(fields, len(points))
        about = Provenance(encoder, space.name, float(getattr(space, "c", 0.0)), points.shape[1])
        index = cls(about, InnerProduct.about(space, points).centre)
        index._begin(points, list(fields), **options)
        index._take(points, fields)
        index.provenance = replace(index.provenance, recall=index._recall(points))
        return index

    def search(
        self, query: Points, k: int, only: Texts | None = None, without: Texts | None = None
    ) -> tuple[Tensor, Tensor]:
        """Distances and ids of the k nearest points, (q, k) float32 and int64, nearest first, equal distances by id.

        Args:
            query: (q, d) points, embedded as the gallery was.
            k: how many; a row with fewer points to choose from ends in id -1 and distance inf.
            only: name of a field → texts: every answer has one of them, in each of these fields.
            without: name of a field → texts: no answer has one of them.

        Raises:
            InputError: for another dimension, NaN, points outside the ball, and fields that are not kept.
        """
        query = _checked(as_tensor(query, "query"), "query", self.provenance.geometry, self.provenance.dim)
        checks.values(k=k)
        k, kept = int(k), self.kept
        only, without = texts.wanted("only", only, kept.fields), texts.wanted("without", without, kept.fields)
        distances, ids = torch.full((len(query), k), torch.inf), torch.full((len(query), k), -1)
        if n := min(k, len(kept.points)):
            found = self._find(kept, query, n, self._open_to(kept, only, without))
            distances[:, :n], found = measured(query, kept.points, found, self.provenance.geometry)
            ids[:, :n] = kept.ids[found].masked_fill_(found < 0, -1)
        return distances, ids

    def add(self, points: Points, fields: Texts | None = None) -> np.ndarray:
        """Index ``points: (n, d)`` as well, with a text for each in every field of the index; their new ids, (n,)."""
        points = _checked(as_tensor(points, "points"), "points", self.provenance.geometry, self.provenance.dim)
        return self._take(points, texts.checked(fields, len(points), self.kept.fields))

    def remove(self, ids: ArrayLike) -> None:
        """Forget the points with these ids, (n,); raises InputError, and forgets none, where an id is not there."""
        ids = np.asarray(ids).reshape(-1)
        if len(ids) and ids.dtype.kind not in "iu":
            raise InputError(f"ids are whole numbers, and not {ids.dtype}")
        if (gone := ~np.isin(ids, self.ids)).any():
            raise InputError(f"there is no point with the id {ids[gone.argmax()]}; index.ids are those that there are")
        self._remove(np.unique(ids).astype(np.int64))
        self.provenance = replace(self.provenance, size=len(self))

    def save(self, folder: Path) -> None:
        """Write the index into ``folder``, which appears whole or not at all; an older one is replaced.

        Raises InputError for a folder with anything else in it: nothing but an index is ever replaced.
        """
        with files.whole(folder, FOLDER) as draft:
            draft.mkdir()
            provenance.write(draft, self.kind, self.provenance, self.form.centre, self.next_id)
            kept = self.kept
            codes = {f"field {place}": field.codes for place, field in enumerate(kept.fields.values())}
            names = {name: field.names for name, field in kept.fields.items()}
            save_file({"points": kept.points, "ids": kept.ids, **codes, **self._tensors(kept)}, draft / POINTS)
            (draft / "fields.json").write_text(json.dumps(names, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, **expected: object) -> "Index":
        """Open a saved index and check that it has the ``expected`` encoder, space, c or dim.

        Its files are read once, to compare them with their checksums; what is searched is mapped into memory.
        Raises InputError where the folder is no index of this kind, is not what was saved to the bit, or differs from
        what is expected.
        """
        folder = Path(folder).resolve()
        files.sweep(folder.parent)  # an index that was being replaced when the process was killed
        files.check(folder, FOLDER)
        about, centre, next_id = provenance.read(folder, cls.kind)
        about.check(**expected)
        index = cls(about, centre, next_id)
        index._read(folder)
        return index

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def ids(self) -> np.ndarray:
        """The ids of all points, (m,) int64, ascending."""
        return self.kept.ids.numpy()

    @property
    def fields(self) -> dict[str, np.ndarray]:
        """Name of a field → the text of each point, in the order of :attr:`ids`."""
        return {name: field.texts() for name, field in self.kept.fields.items()}

    @property
    def points(self) -> Tensor:
        """The points themselves, (m, d) float32, in the order of :attr:`ids`."""
        return self.kept.points

    def vectors(self, ids: ArrayLike) -> Tensor:
        """The points with these ``ids: (n,)``, (n, d); raises InputError where one is not there."""
        places = pd.Index(self.ids).get_indexer(np.asarray(ids).reshape(-1))
        if (places < 0).any():
            raise InputError(f"there is no point with the id {np.asarray(ids).reshape(-1)[places.argmin()]}")
        return self.points[places]

    def _take(self, points: Tensor, fields: dict[str, list[str]]) -> np.ndarray:
        ids = np.arange(self.next_id, self.next_id + len(points))
        self._add(points, ids, fields)
        self.next_id += len(points)
        self.provenance = replace(self.provenance, size=len(self))
        return ids

    def _recall(self, points: Tensor) -> float:
        """The recall on the gallery ``points`` itself, where it is least by radius; refused where it is too small."""
        worst = self._worst(points)
        what = f"the {self.kind} index of {len(points):,} points, at radius {worst.low:.3g} to {worst.high:.3g},"
        recall.judge(worst.recall, what, self.way_out, least=recall.GOOD)
        return worst.recall

    def _worst(self, points: Tensor) -> recall.Band:
        """Where the index finds least of its gallery ``points``, and how much."""
        radius = recall.radii(points, self.provenance.geometry)
        prepared = Prepared.of(points, self.form)

        def exact(rows: np.ndarray, k: int) -> tuple[Tensor, Tensor]:
            query = points[rows]
            return measured(query, points, prepared.find(query, k), self.provenance.geometry)

        bands = recall.by_radius(lambda rows, k: self.search(points[rows], k), exact, radius)
        return min(bands, key=lambda band: band.recall)

    def _begin(self, points: Tensor, fields: list[str], **options: Any) -> None:
        """Make ready for points like these ``points: (m, d)`` and texts of these ``fields``; still without any."""
        none = {name: Field.none() for name in fields}
        self.kept = Kept(points[:0], torch.empty(0, dtype=torch.int64), none, self._empty(points, **options))

    def _add(self, points: Tensor, ids: np.ndarray, fields: dict[str, list[str]]) -> None:
        """Keep ``points: (n, d)`` float32 with ``ids: (n,)``, larger than all that there are, and their texts."""
        old = self.kept
        points = torch.cat([old.points, points]) if len(old.ids) else points
        self.kept = Kept(
            points,
            torch.cat([old.ids, torch.from_numpy(ids)]),
            {name: field.followed_by(fields[name]) for name, field in old.fields.items()},
            self._grown(old.structure, points),
        )

    def _remove(self, ids: np.ndarray) -> None:
        """Forget the points with these ``ids: (n,)``, which are there."""
        old = self.kept
        keep = torch.from_numpy(~np.isin(old.ids.numpy(), ids))
        fields = {name: field.where(keep) for name, field in old.fields.items()}
        points = old.points[keep]
        self.kept = Kept(points, old.ids[keep], fields, self._shrunk(old.structure, points, keep))

    def _open_to(self, kept: Kept, only: dict[str, list[str]], without: dict[str, list[str]]) -> Any:
        """Which points may answer, in the words of :meth:`_find`."""
        parts = [kept.fields[name].among(some) for name, some in only.items()]
        parts += [~kept.fields[name].among(some) for name, some in without.items()]
        return torch.stack(parts).all(0) if parts else None

    def _nearest_of(self, kept: Kept, query: Tensor, k: int, places: Tensor, closed: Tensor) -> Tensor:
        """What :meth:`_find` gives, of ``places: (q, n)`` that ascend in each row and are not ``closed: (q, n)``."""
        keys = self.form.keys(query, kept.points[places]).masked_fill_(closed, torch.inf)
        keys, order = keys.sort(dim=1, stable=True)
        return places.gather(1, order)[:, :k].masked_fill(keys[:, :k] == torch.inf, -1)

    def _read(self, folder: Path) -> None:
        """Read what :meth:`save` has written of the points and the structure."""
        file = folder / POINTS
        try:
            names = json.loads((folder / "fields.json").read_text(encoding="utf-8"))
            tensors = load_file(file)  # maps the file, and reads what is looked at
            fields = {name: Field(some, tensors[f"field {place}"]) for place, (name, some) in enumerate(names.items())}
            points, ids = tensors["points"], tensors["ids"]
            if points.shape != (self.provenance.size, self.provenance.dim) or len(ids) != len(points):
                raise ValueError(f"{tuple(points.shape)} points with {len(ids)} ids")
            self.kept = Kept(points, ids, fields, self._structure(tensors))
        except (OSError, SafetensorError, KeyError, ValueError, AttributeError) as error:
            raise InputError(f"{file} cannot be read ({error}); build the index again") from error

    # What a kind is made of.

    @abstractmethod
    def _find(self, kept: Kept, query: Tensor, k: int, open_to: Tensor | None) -> Tensor:
        """Places (q, k) of the k nearest among the points that are ``open_to`` answer, (m,) or all; -1 for none."""

    @abstractmethod
    def _empty(self, points: Tensor, **options: Any) -> Any:
        """The structure for points like these, still without any."""

    @abstractmethod
    def _grown(self, structure: Any, points: Tensor) -> Any:
        """The structure of ``points: (m, d)``, of which it has the first; the old one stays as it is."""

    @abstractmethod
    def _shrunk(self, structure: Any, points: Tensor, keep: Tensor) -> Any:
        """The structure of the remaining ``points: (n, d)``, which of the old ones to ``keep: (m,)``."""

    @abstractmethod
    def _tensors(self, kept: Kept) -> dict[str, Tensor]:
        """The structure as tensors for the file of the points."""

    @abstractmethod
    def _structure(self, tensors: dict[str, Tensor]) -> Any:
        """The structure that :meth:`_tensors` has kept."""


def _checked(points: Tensor, what: str, space: geometry.Geometry, dim: int | None = None) -> Tensor:
    """``points`` as (n, d) float32 on the CPU; raises InputError for what cannot be points of ``space``."""
    wrong = points.ndim != 2 or not points.numel()
    if wrong or points.shape[1] != (dim or points.shape[1]):
        single = f" (a single point is the set {what}[None])" if points.ndim == 1 else ""
        here = "with at least one point" if dim is None or wrong else f": the index holds {dim} numbers"
        raise InputError(f"the {what} has the shape {tuple(points.shape)}{single}; expected (n, {dim or 'd'}) {here}")
    points = points.detach().cpu().float().contiguous()
    if not points.isfinite().all():
        row = (~points.isfinite().all(1)).nonzero()[0].item()
        raise InputError(f"{what} row {row} holds NaN or infinity; drop or repair it")
    if isinstance(space, geometry.PoincareBall):
        space.check_inside(points, f"{what} row")
    return points


def library(name: str) -> ModuleType:
    """The package ``name`` of the extra ``index``; raises InputError, naming the way out, where it is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{name} is not installed: pip install 'hyperbolic-retrieval-companion[index]', or search exactly, by "
            "lib.search.local.Exact or lib.search.nearest"
        ) from error
