"""An index in a Milvus database: a file on this machine, or a server or cluster by its URL, with the same code.

The database holds the numbers of :class:`lib.geometry.inner.InnerProduct` and compares all of them, so what it proposes
is right at every radius. What comes back is sorted by true distance, from the points, which the index keeps itself.

Nothing leaves this machine unless you name a server by its URL. A server is sent the vectors and, for every text of a
field, a number that says nothing without a key, which stays in the saved folder: never an image, and never the name of
a patient or a class. Whoever can read a server can still compare its vectors, so name one that may hold them.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lib.errors import InputError
from lib.search.database import LARGEST, Collection, Filter
from lib.search.fields import Field
from lib.search.index import Index, Kept

REQUEST = 8 * 2**20
"""Bytes of vectors that are sent at a time; a server refuses 64 MB."""

MANY = 1000
"""Points that are written down as soon as they are added: among what it only holds in memory a database is slow."""

SPARE = 16
"""So many candidates, and four times as many as are asked for, are sorted by their true distance."""


class Milvus(Index):
    """Points whose nearest neighbours, and filters, are looked up in a Milvus database.

    ``place``, an option of :meth:`build`, says where the database is: the path of a file "….db" (by milvus-lite, meant
    for up to about 10⁵ points), the URL of a server, "http://archive:19530", or None for a file that is gone when the
    program ends. A server that asks for a password gets the environment variable ``MILVUS_TOKEN``, "user:password".

    Any number of programs may search a server at once, while one adds and removes; a file is for one program at a time.
    A saved folder holds the points too. What a program or a server that ended in the middle of something has left
    behind, or lost, is put right when the folder is opened. Each folder has a collection of its own; a folder that you
    copy by hand shares it, so do not change both. Opened where its file "….db" is not, it makes one for the time being.

    Removed points are gone from a file at the next :meth:`save`. A server is told to clear them away, and does so in
    its own time.
    """

    kind = "milvus"

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self._folder: Path | None = None  # whose collection it is
        self._removed = False  # since the last save
        self._torn = False  # a change of the database was begun and not finished
        self._mending = Lock()

    def save(self, folder: Path) -> None:
        folder = Path(folder).resolve()
        self._mend()
        old, mine = self._collection, self._folder in (None, folder)
        if not mine or (self._removed and not old.remote):
            self.kept = replace(self.kept, structure=old.another())
            with self._changing():
                self._agree()
            if mine:
                old.drop()
        self._collection.settle()
        super().save(folder)
        self._folder, self._removed = folder, False

    def drop(self) -> None:
        """Remove the collection from the database. A saved folder that is opened later makes it anew."""
        self._collection.drop()

    @property
    def _collection(self) -> Collection:
        return self.kept.structure

    def _empty(self, points: Tensor, place: str | Path | None = None) -> Collection:
        return Collection.at(place)

    def _grown(self, structure: Collection, points: Tensor) -> Collection:
        return structure

    def _shrunk(self, structure: Collection, points: Tensor, keep: Tensor) -> Collection:
        return structure

    def _begin(self, points: Tensor, fields: list[str], **options: Any) -> None:
        super()._begin(points, fields, **options)
        self._agree()

    def _add(self, points: Tensor, ids: np.ndarray, fields: dict[str, list[str]]) -> None:
        new = {name: Field.none().followed_by(fields[name]) for name in self.kept.fields}
        with self._changing():
            self._insert(Kept(points, torch.from_numpy(ids), new, None))
        super()._add(points, ids, fields)

    def _remove(self, ids: np.ndarray) -> None:
        self._removed = True
        with self._changing():
            self._collection.delete(ids)
        super()._remove(ids)

    def _open_to(self, kept: Kept, only: dict[str, list[str]], without: dict[str, list[str]]) -> list[Filter]:
        place = {name: place for place, name in enumerate(kept.fields)}
        filters: list[Filter] = [(place[name], "in", some) for name, some in only.items()]
        return filters + [(place[name], "not in", some) for name, some in without.items()]

    def _find(self, kept: Kept, query: Tensor, k: int, open_to: list[Filter]) -> Tensor:
        self._mend()
        if k > LARGEST:
            raise InputError(f"k = {k:,}, but a Milvus database gives no more than {LARGEST:,} answers")
        vectors, candidates = self.form.query(query).numpy(), min(4 * k + SPARE, len(kept.points), LARGEST)
        proposed = torch.from_numpy(kept.structure.search(vectors, candidates, int(kept.ids[-1]), open_to))
        proposed = proposed.sort(dim=1).values
        places = torch.searchsorted(kept.ids, proposed).clamp_max_(len(kept.ids) - 1)
        others = kept.ids[places] != proposed  # none, or a point that another program has added or removed
        return self._nearest_of(kept, query, k, places, others)

    def _insert(self, some: Kept) -> None:
        """Give points with ids and texts to the database."""
        texts = [field.texts().tolist() for field in some.fields.values()]
        rows = max(1, REQUEST // (4 * (self.provenance.dim + 2)))
        for start in range(0, len(some.ids), rows):
            part = slice(start, start + rows)
            vectors = self.form.gallery(some.points[part]).numpy()
            self._collection.insert(some.ids[part].tolist(), vectors, [field[part] for field in texts])
        if len(some.ids) >= MANY:
            self._collection.settle()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A change of the database, which is mended before the next request if it does not come to its end."""
        self._mend()
        try:
            yield
        except BaseException:
            self._torn = True
            if not len(self):  # it was being built, and nobody will come back to it
                with suppress(InputError):
                    self.drop()
            raise

    def _mend(self) -> None:
        with self._mending:
            if self._torn:
                self._agree()
                self._torn = False

    def _agree(self) -> None:
        """Let the database hold what this index holds: neither less nor more."""
        kept, there = self.kept, self._collection
        if not there.ready():
            there.create(self.provenance.dim + 2, len(kept.fields))
        elif there.count() == there.count(f"id < {self.next_id}") == len(kept.ids):
            return
        stored, ours = there.ids(), kept.ids.numpy()
        if len(others := np.setdiff1d(stored, ours)):
            self._removed = True
            there.delete(others)
        lost = torch.from_numpy(np.isin(ours, stored, invert=True))
        fields = {name: field.where(lost) for name, field in kept.fields.items()}
        self._insert(Kept(kept.points[lost], kept.ids[lost], fields, None))

    def _tensors(self, kept: Kept) -> dict[str, Tensor]:
        return {"database": torch.tensor(list(json.dumps(kept.structure.about()).encode()), dtype=torch.uint8)}

    def _structure(self, tensors: dict[str, Tensor]) -> Collection:
        about = json.loads(bytes(tensors["database"].tolist()))
        return Collection.at(about["place"], about["name"], bytes.fromhex(about["key"]))

    def _read(self, folder: Path) -> None:
        super()._read(folder)
        self._folder = folder
        self._agree()
