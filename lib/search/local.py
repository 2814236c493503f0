"""Galleries in the memory and the files of this machine; :class:`Exact` compares all points."""

import json
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lib.errors import InputError
from lib.search.exact import Prepared, measured
from lib.search.fields import Field
from lib.search.index import Index

POINTS = "points.safetensors"


@dataclass(frozen=True)
class Kept:
    """What a local index holds. It never changes: whoever adds or removes puts another one in its place."""

    points: Tensor
    ids: Tensor
    fields: dict[str, Field]
    structure: Any


class Local(Index):
    """An index in the memory and the files of this machine; a kind adds the structure that it searches by."""

    kept: Kept

    @property
    def ids(self) -> np.ndarray:
        return self.kept.ids.numpy()

    @property
    def fields(self) -> dict[str, np.ndarray]:
        return {name: field.texts() for name, field in self.kept.fields.items()}

    @property
    def field_names(self) -> list[str]:
        return list(self.kept.fields)

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

    def _begin(self, points: Tensor, fields: list[str], **options: Any) -> None:
        none = {name: Field.none() for name in fields}
        self.kept = Kept(points[:0], torch.empty(0, dtype=torch.int64), none, self._empty(points, **options))

    def _add(self, points: Tensor, ids: np.ndarray, fields: dict[str, list[str]]) -> None:
        old = self.kept
        points = torch.cat([old.points, points]) if len(old.ids) else points
        self.kept = Kept(
            points,
            torch.cat([old.ids, torch.from_numpy(ids)]),
            {name: field.followed_by(fields[name]) for name, field in old.fields.items()},
            self._grown(old.structure, points),
        )

    def _remove(self, ids: np.ndarray) -> None:
        old = self.kept
        keep = torch.from_numpy(~np.isin(old.ids.numpy(), ids))
        fields = {name: field.where(keep) for name, field in old.fields.items()}
        points = old.points[keep]
        self.kept = Kept(points, old.ids[keep], fields, self._shrunk(old.structure, points, keep))

    def _search(
        self, query: Tensor, k: int, only: dict[str, list[str]], without: dict[str, list[str]]
    ) -> tuple[Tensor, Tensor]:
        kept = self.kept
        distances, ids = torch.full((len(query), k), torch.inf), torch.full((len(query), k), -1)
        if n := min(k, len(kept.points)):
            found = self._find(kept, query, n, self._open_to(kept, only, without))
            distances[:, :n], found = measured(query, kept.points, found, self.provenance.geometry)
            ids[:, :n] = kept.ids[found].masked_fill_(found < 0, -1)
        return distances, ids

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

    def _write(self, folder: Path) -> None:
        kept = self.kept
        codes = {f"field {place}": field.codes for place, field in enumerate(kept.fields.values())}
        names = {name: field.names for name, field in kept.fields.items()}
        tensors = {"points": kept.points, "ids": kept.ids, **codes, **self._tensors(kept)}
        save_file(tensors, folder / POINTS)
        (folder / "fields.json").write_text(json.dumps(names, ensure_ascii=False) + "\n", encoding="utf-8")

    def _read(self, folder: Path) -> None:
        file = folder / POINTS
        try:
            names = json.loads((folder / "fields.json").read_text(encoding="utf-8"))
            with safe_open(file, framework="pt") as opened:  # maps the file, and reads what is looked at
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            fields = {name: Field(some, tensors[f"field {place}"]) for place, (name, some) in enumerate(names.items())}
            points, ids = tensors["points"], tensors["ids"]
            if points.shape != (self.provenance.size, self.provenance.dim) or len(ids) != len(points):
                raise ValueError(f"{tuple(points.shape)} points with {len(ids)} ids")
            self.kept = Kept(points, ids, fields, self._structure(tensors))
        except (OSError, SafetensorError, KeyError, ValueError, AttributeError) as error:
            raise InputError(f"{file} cannot be read ({error}); build the index again") from error

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


class Exact(Local):
    """All points, compared by one matrix product; the answers are in the order of float64, ties by id.

    Its structure is a :class:`lib.search.exact.Prepared`.
    """

    kind = "exact"

    def _recall(self, points: Tensor) -> float:
        return 1.0

    def _find(self, kept: Kept, query: Tensor, k: int, open_to: Tensor | None) -> Tensor:
        hidden = None if open_to is None else lambda rows, columns: ~open_to[columns]
        return kept.structure.find(query, k, hidden)

    def _empty(self, points: Tensor) -> Prepared:
        return Prepared.of(points[:0], self.form)

    def _grown(self, structure: Prepared, points: Tensor) -> Prepared:
        return structure.grown(points) if len(structure.points) else Prepared.of(points, self.form).led()

    def _shrunk(self, structure: Prepared, points: Tensor, keep: Tensor) -> Prepared:
        return structure.shrunk(points, keep)

    def _tensors(self, kept: Kept) -> dict[str, Tensor]:
        made = {name: getattr(kept.structure, name) for name in ("codes", "axes", "lead")}
        return {name: tensor for name, tensor in made.items() if tensor is not None}

    def _structure(self, tensors: dict[str, Tensor]) -> Prepared:
        points, codes, axes, lead = (tensors.get(name) for name in ("points", "codes", "axes", "lead"))
        size, dim = self.provenance.size, self.provenance.dim
        if codes is None or codes.shape != (dim + 3, size) or (lead is not None and lead.shape != (dim // 4 + 3, size)):
            raise ValueError("the codes do not fit the points")
        return Prepared(points, self.form, codes, axes, lead)
