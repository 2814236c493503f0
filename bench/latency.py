"""How long does one answer take, and what does an index cost? From a thousand codes to a million."""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from torch import Tensor

from lib.geometry import PoincareBall
from lib.papers.beyond.storage import overlap
from lib.progress import track
from lib.search import nearest
from lib.search.index import FaissFlat, FaissHnsw, Index, Qdrant
from lib.search.synthetic import hierarchy

BALL = PoincareBall(1.0)
SIZES = (1_000, 10_000, 100_000, 1_000_000)
DIM, K, QUERIES = 32, 20, 200
STRUCTURES: dict[str, tuple[type[Index], int]] = {
    "FAISS flat": (FaissFlat, 10**9),
    "FAISS HNSW": (FaissHnsw, 10**9),
    "Qdrant, embedded": (Qdrant, 10_000),  # meant for trials: it compares all vectors in Python
}
"""Each with the largest gallery that it is asked to hold here."""

CAPTION = (
    f"Codes of {DIM} numbers on a made-up hierarchy, the {K} nearest of each query, every answer re-ranked by its true "
    f"distance. single_ms: median of 30 queries, one at a time; batch_ms: each of {QUERIES} that come at once; bytes: "
    "one code on disk; recall: share of the exact neighbours. The search without an index prepares the gallery anew "
    f"for every call. Qdrant: its embedded mode, up to {STRUCTURES['Qdrant, embedded'][1]:,} codes, not its server."
)

Search = Callable[[Tensor], tuple[Tensor, Tensor]]


def measure(sizes: tuple[int, ...] = SIZES) -> pd.DataFrame:
    """One row per structure and size.

    Columns: structure, size, build_s (seconds to build), bytes (per code on disk), single_ms (median of queries that
    come alone), batch_ms (per query, when 200 come at once), recall (of the 20 nearest, after the re-rank).
    """
    rows = []
    jobs = [(size, name) for size in sizes for name, (_, most) in STRUCTURES.items() if size <= most]
    query = hierarchy(QUERIES, DIM, seed=1)
    for size, name in track(jobs, total=len(jobs), what="latency", unit="indexes"):
        gallery = hierarchy(size, DIM, seed=2)
        exact = partial(nearest, gallery=gallery, k=K, geometry=BALL)
        truth = exact(query)[1]
        if name == next(iter(STRUCTURES)):
            rows.append(_row("exact, no index", size, exact, query, truth, 0.0, 4.0 * DIM))
        start = time.perf_counter()
        index = STRUCTURES[name][0].build(gallery, BALL, "hierarchy")
        seconds = time.perf_counter() - start
        rows.append(_row(name, size, partial(index.search, k=K), query, truth, seconds, _bytes(index) / size))
    return pd.DataFrame(rows)


def _row(
    name: str, size: int, search: Search, query: Tensor, truth: Tensor, build_s: float, size_of_one: float
) -> dict[str, object]:
    single = []
    for one in query[:30].split(1):
        start = time.perf_counter()
        search(one)
        single.append(time.perf_counter() - start)
    start = time.perf_counter()
    found = search(query)[1]
    batch = time.perf_counter() - start
    values = {"build_s": build_s, "bytes": size_of_one, "single_ms": 1000 * float(np.median(single))}
    values |= {"batch_ms": 1000 * batch / len(query), "recall": overlap(found, truth)}
    return {"structure": name, "size": size} | {key: float(f"{value:.4g}") for key, value in values.items()}


def _bytes(index: Index) -> int:
    with tempfile.TemporaryDirectory() as folder:
        index.save(Path(folder) / "index")
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
