"""Nearest hash codes: exact against FAISS's binary indexes, and codes against the numbers that they stand for."""

import faiss
import numpy as np

from bench.timing import Row, milliseconds
from lib.search.binary import BinaryIndex, exact

K = 20


def drawn(n: int, bits: int, seed: int) -> np.ndarray:
    """``n`` packed codes of 50 classes: a code of the class, of which each bit is turned with probability 0.1."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).integers(0, 2, (50, bits), dtype=np.uint8)
    return np.packbits(centres[rng.integers(50, size=n)] ^ (rng.random((n, bits)) < 0.1), axis=1)


def rows(queries: int = 200, size: int = 100_000, bits: int = 64) -> list[Row]:
    """Top-20 of ``queries`` in ``size`` codes."""
    query, gallery = drawn(queries, bits, 1), drawn(size, bits, 2)
    what = f"top {K} of {queries:,} queries in {size:,} codes of {bits} bits"
    flat, hnsw, ivf = (BinaryIndex(gallery, kind) for kind in ("flat", "hnsw", "ivf"))
    truth = exact(query, gallery, K)[0]
    numbers = faiss.IndexFlatIP(bits)
    floats = [2 * np.unpackbits(codes, axis=1).astype(np.float32) - 1 for codes in (query, gallery)]
    numbers.add(floats[1])

    def timed(ours: str, index: BinaryIndex, peer: str, other: object, repeats: int = 5) -> Row:
        found = index.search(query, K)[0]
        share = (found == truth).mean()
        times = milliseconds(lambda: index.search(query, K), other, repeats)
        return Row(what, "ms", ours, peer, *times, "", f"distances equal to the exact ones: {share:.2%}")

    def ours() -> object:
        return exact(query, gallery, K)

    return [
        timed("FAISS binary flat", flat, "search.binary.exact", ours, repeats=3),
        timed("FAISS binary HNSW", hnsw, "FAISS binary flat", lambda: flat.search(query, K)),
        timed("FAISS binary IVF", ivf, "FAISS binary flat", lambda: flat.search(query, K)),
        timed("FAISS binary flat", flat, "FAISS flat on float32", lambda: numbers.search(floats[0], K)),
    ]
