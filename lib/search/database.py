"""Vectors with ids, and texts to filter by, in a Milvus database: what is said to the database, and what goes wrong."""

import atexit
import hashlib
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from lib.errors import InputError
from lib.search.index import library

LARGEST = 16_384
"""How many answers, and how many ids, a Milvus database takes in one request."""

AT_ONCE = 100
"""Queries in one request, which among millions of points takes as many times as long as one."""

PATIENCE = 120.0
"""Seconds that a request may take, and that a server which was just started gets to make a collection ready."""

Filter = tuple[int, Literal["in", "not in"], Sequence[str]]
"""The place of a field, and the texts that an answer has one, or none, of."""

_REACH = 10.0  # seconds in which a server must be reached
_STARTING = {101, 103, 401, 503}  # Milvus's numbers for: not loaded, or not wholly yet; no replica, no channel yet


class Collection:
    """Vectors with ids, and texts to filter by, in a database; of a text it holds a number that ``key`` makes of it.

    Every request that fails raises InputError with the place of the database.
    """

    def __init__(self, place: str | None, name: str, key: bytes, uri: str) -> None:
        self.place, self.name, self.key, self._uri, self._client = place, name, key, uri, None

    @classmethod
    def at(cls, place: str | Path | None, name: str = "", key: bytes = b"") -> "Collection":
        """The collection ``name`` of the database at ``place``, or a new one; InputError for what is no place."""
        if place is not None and "://" in str(place):
            if "@" in (place := str(place)):
                raise InputError(
                    "the URL of a database would be saved with its password; put user:password into the environment "
                    f"variable MILVUS_TOKEN, and name {place.split('://')[0]}://{place.rpartition('@')[2]}"
                )
        elif place is not None:
            file = Path(place).resolve()
            if file.suffix != ".db":
                raise InputError(f"{place} is no place for a database: name a file that ends in .db, or a URL")
            place = str(file)
            if not name:
                file.parent.mkdir(parents=True, exist_ok=True)
            elif not file.parent.is_dir():  # of another machine, or of a folder that has moved
                place = None
        return cls(place, name or _a_name(), key or secrets.token_bytes(16), place or _passing_file())

    def another(self) -> "Collection":
        """A new one in the same database, with the same numbers for texts."""
        return Collection(self.place, _a_name(), self.key, self._uri)

    @property
    def remote(self) -> bool:
        """Whether it lies on a server."""
        return "://" in self._uri

    def about(self) -> dict[str, str | None]:
        return {"place": self.place, "name": self.name, "key": self.key.hex()}

    def create(self, dim: int, fields: int) -> None:
        """Begin it, for vectors of ``dim`` numbers and so many ``fields``."""
        milvus = _pymilvus()
        schema = milvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", milvus.DataType.INT64, is_primary=True)
        schema.add_field("vector", milvus.DataType.FLOAT_VECTOR, dim=dim)
        for place in range(fields):
            schema.add_field(f"field{place}", milvus.DataType.INT64)
        index = milvus.MilvusClient.prepare_index_params()
        index.add_index("vector", index_type="FLAT", metric_type="IP", params={})
        # A session sees what it has written itself, at once. To wait for others' ("Strong") takes a search 0.2 s more.
        self._ask("create_collection", schema=schema, index_params=index, consistency_level="Session")

    def insert(self, ids: Sequence[int], vectors: np.ndarray, fields: Sequence[Sequence[str]]) -> None:
        """Add ``vectors: (m, dim)`` float32 with their ``ids: (m,)`` and the texts of each field, (m,)."""
        number = {text: self._number(text) for texts in fields for text in texts}
        rows = [{"id": id, "vector": vector} for id, vector in zip(ids, vectors, strict=True)]
        for place, texts in enumerate(fields):
            for row, text in zip(rows, texts, strict=True):
                row[f"field{place}"] = number[text]
        self._ask("insert", data=rows)

    def delete(self, ids: np.ndarray) -> None:
        for part in np.split(ids, range(LARGEST, len(ids), LARGEST)):
            if len(part):
                self._ask("delete", ids=part.tolist())

    def search(self, vectors: np.ndarray, n: int, last: int, filters: Sequence[Filter]) -> np.ndarray:
        """The ids up to ``last`` of the n largest inner products with each of ``vectors``, (q, n); -1 for none."""
        wanted = [f"id <= {last}"]
        wanted += [f"field{place} {how} {[self._number(text) for text in texts]}" for place, how, texts in filters]
        found = np.full((len(vectors), n), -1, dtype=np.int64)
        for start in range(0, len(vectors), AT_ONCE):
            data = list(vectors[start : start + AT_ONCE])
            options = {"search_params": {"metric_type": "IP"}, "filter": " and ".join(wanted)}
            for row, hits in zip(found[start:], self._ask("search", data=data, limit=n, **options), strict=False):
                row[: len(hits)] = [hit["id"] for hit in hits]
        return found

    def count(self, wanted: str = "") -> int:
        """How many vectors there are, whoever has written them."""
        options = {"output_fields": ["count(*)"], "consistency_level": "Strong"}
        return int(self._ask("query", filter=wanted, **options)[0]["count(*)"])

    def ids(self) -> np.ndarray:
        """The ids of all vectors, ascending."""
        found: list[int] = []
        with self._speaking() as client:
            pages = client.query_iterator(self.name, batch_size=LARGEST, filter="id >= 0", output_fields=["id"])
            while page := pages.next():
                found += [row["id"] for row in page]
            pages.close()
        return np.unique(np.array(found, dtype=np.int64))

    def ready(self) -> bool:
        """Whether it is there. A server that was just started needs a moment to make it ready; this waits for it."""
        if there := self._ask("has_collection"):
            self._ask("load_collection")
        return there

    def settle(self) -> None:
        """Have the database write down what it holds in memory, and clear away what was deleted."""
        self._ask("flush")
        self._ask("compact")

    def drop(self) -> None:
        self._ask("drop_collection")

    def _number(self, text: str) -> int:
        """A whole number that says nothing of the text to those without the key: 63 bits, as an INT64 holds them."""
        hashed = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=self.key)
        return int.from_bytes(hashed.digest(), "big") >> 1

    def _ask(self, request: str, **options: Any) -> Any:
        """Make a request about this collection; a server that is still starting is asked again."""
        end = time.monotonic() + PATIENCE
        with self._speaking() as client:
            while True:
                try:
                    return getattr(client, request)(self.name, timeout=PATIENCE, **options)
                except _pymilvus().MilvusException as error:
                    if error.code not in _STARTING or time.monotonic() > end:
                        raise
                    time.sleep(0.5)

    @contextmanager
    def _speaking(self) -> Iterator[Any]:
        """The client of the database; what goes wrong with it is raised as InputError."""
        milvus = _pymilvus()
        try:
            if self._client is None:
                # A file is served by this very process, which takes offence at being asked whether it is still there.
                options = {} if self.remote else {"grpc_options": {"grpc.keepalive_time_ms": 2**31 - 1}}
                token = os.environ.get("MILVUS_TOKEN", "")
                self._client = milvus.MilvusClient(self._uri, token=token, timeout=_REACH, **options)
            yield self._client
        except (milvus.MilvusException, library("grpc").RpcError) as error:
            said = getattr(error, "message", None) or error.details()
            said = " ".join(said.split()).rstrip(".")
            way_out = "One program at a time can use such a file, and it needs room on its disk"
            if self.remote:
                way_out = "See that it runs, can be reached from here and has room, then do the same again"
            raise InputError(f"the database {self._uri} did not do what it was asked: {said}. {way_out}") from error


def _a_name() -> str:
    return f"gallery_{secrets.token_hex(8)}"


def _passing_file() -> str:
    """The place of a database that is gone when the program ends."""
    folder = tempfile.mkdtemp(prefix="milvus")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(Path(folder) / "gallery.db")


def _pymilvus() -> ModuleType:
    """The library; it would also write what it raises on the screen."""
    milvus = library("pymilvus")
    for name in ("pymilvus", "milvus_lite"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return milvus
