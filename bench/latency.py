"""How long does one answer take, and what does an index cost? From a thousand codes to a million."""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import faiss
import numpy as np
import pandas as pd
import torch
from torch import Tensor

from bench import milvus_server
from lib.geometry import PoincareBall
from lib.geometry.inner import InnerProduct
from lib.papers.beyond.storage import overlap
from lib.progress import track
from lib.search import nearest
from lib.search.index import Index
from lib.search.local import Exact
from lib.search.milvus import Milvus
from lib.search.quick import Quick
from lib.search.synthetic import hierarchy

BALL = PoincareBall(1.0)
SIZES = (1_000, 10_000, 100_000, 1_000_000)
DIM, K, QUERIES, SINGLE, BATCHES, TURNS = 32, 20, 200, 30, 3, 3

CAPTION = (
    f"Codes of {DIM} numbers on a made-up hierarchy, the {K} nearest of each query. single_ms: median of {SINGLE} "
    f"queries, one at a time; batch_ms: each of {QUERIES} that come at once, median of {BATCHES}; the structures take "
    f"turns, {TURNS} each. build_s: the measuring of the own recall included; bytes: one code on disk; recall: share "
    "of the exact neighbours. FAISS flat: faiss.IndexFlatIP on d + 2 numbers, alone, with the preparation of the "
    "query. exact, no index: lib.search.nearest, which prepares the gallery anew for every call. Milvus: a database on "
    "this machine, as a file and as a server; what the database itself writes is not counted."
)

Search = Callable[[Tensor], Tensor]


def measure(sizes: tuple[int, ...] = SIZES) -> pd.DataFrame:
    """One row per structure and size.

    Columns: structure, size, numbers (of a code), build_s (seconds to build), bytes (per code on disk), single_ms
    (median of queries that come alone), batch_ms (per query, when 200 come at once), recall (of the 20 nearest).
    """
    query, rows = hierarchy(QUERIES, DIM, seed=1), []
    for size in track(sizes, total=len(sizes), what="latency", unit="sizes"):
        gallery = hierarchy(size, DIM, seed=2)
        truth = nearest(query, gallery, K, BALL)[1]
        here = {name: make for name, (make, largest) in DATABASES.items() if SMALLEST <= size <= largest}
        made = {name: make(gallery) for name, make in (STRUCTURES | here).items()}
        found = {name: search(query) for name, (search, _, _) in made.items()}
        single = _turns({name: search for name, (search, _, _) in made.items()}, query[:SINGLE].split(1))
        batch = _turns({name: search for name, (search, _, _) in made.items()}, [query] * BATCHES)
        for name, (_, seconds, bytes_) in made.items():
            values = {"build_s": seconds, "bytes": bytes_ / size, "single_ms": single[name]}
            values |= {"batch_ms": batch[name] / len(query), "recall": overlap(found[name], truth)}
            row = {"structure": name, "size": size, "numbers": DIM}
            rows.append(row | {key: float(f"{value:.4g}") for key, value in values.items()})
    return pd.DataFrame(rows)


def _turns(searches: dict[str, Search], queries: list[Tensor]) -> dict[str, float]:
    """Median milliseconds of each search for the ``queries``; the searches take turns, a third of the queries in each.

    Not one query each: the threads of a library go on waiting for work for a while, and hold up the next one's.
    """
    times: dict[str, list[float]] = {name: [] for name in searches}
    for turn in range(TURNS):
        for name, search in searches.items():
            for query in queries[turn::TURNS]:
                start = time.perf_counter()
                search(query)
                times[name].append(time.perf_counter() - start)
    return {name: 1000 * float(np.median(taken)) for name, taken in times.items()}


def _none(gallery: Tensor) -> tuple[Search, float, float]:
    return lambda query: nearest(query, gallery, K, BALL)[1], 0.0, 4.0 * gallery.numel()


def _flat(gallery: Tensor) -> tuple[Search, float, float]:
    start = time.perf_counter()
    form = InnerProduct.about(BALL, gallery)
    flat = faiss.IndexFlatIP(DIM + 2)
    flat.add(form.gallery(gallery).numpy())
    seconds = time.perf_counter() - start

    def search(query: Tensor) -> Tensor:
        return torch.from_numpy(flat.search(form.query(query).numpy(), K)[1])

    return search, seconds, 4.0 * (DIM + 2) * len(gallery)


def _kept(kind: type[Index], gallery: Tensor, **options: str) -> tuple[Search, float, float]:
    start = time.perf_counter()
    index = kind.build(gallery, BALL, "hierarchy", **options)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        index.save(Path(folder) / "index")
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return lambda query: index.search(query, K)[1], seconds, size


def _server(gallery: Tensor) -> tuple[Search, float, float]:
    return _kept(Milvus, gallery, place=milvus_server.running().url)


Make = Callable[[Tensor], tuple[Search, float, float]]
"""Makes of a gallery a search, and says in how many seconds and of how many bytes."""

STRUCTURES: dict[str, Make] = {
    "FAISS flat": _flat,
    "exact, no index": _none,
    "exact": partial(_kept, Exact),
    "quick": partial(_kept, Quick),
}

DATABASES: dict[str, tuple[Make, int]] = {"Milvus, a file": (partial(_kept, Milvus), 100_000)}
if milvus_server.installed():
    DATABASES["Milvus, a server"] = (_server, 1_000_000)
"""Each with the largest size that it is meant for."""

SMALLEST = 100_000
"""Databases are measured from so many codes on: to fill one takes time."""
