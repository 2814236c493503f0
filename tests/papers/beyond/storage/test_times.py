"""What the benchmark of latency says is read from its rows, and what nobody measured is said to be reckoned."""

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.bench import latency
from lib.geometry import PoincareBall
from lib.papers.beyond.storage import times
from lib.search.index import FaissFlat
from lib.search.synthetic import hierarchy


def bench() -> pd.DataFrame:
    rows = [
        ("FAISS flat", 1000, 1.0, 0.5, 1.0),
        ("FAISS flat", 10_000, 9.2, 10.0, 1.0),
        ("FAISS HNSW", 1000, 1.0, 0.5, 1.0),
        ("FAISS HNSW", 10_000, 1.25, 1.0, 0.995),
        ("Qdrant, embedded", 1000, 3.0, 0.5, 1.0),
    ]
    table = pd.DataFrame(rows, columns=["structure", "size", "single_ms", "batch_ms", "recall"])
    return table.assign(build_s=1.0, bytes=128.0)


def test_what_the_benchmark_says_is_read_from_its_rows():
    assert times.at_scale(bench()) == [
        "from 1,000 to 10,000 codes, 10 times as many, a query takes",
        "  FAISS HNSW: 1.2 times as long alone (more slowly than the gallery), "
        "2.0 times as long among 200 (more slowly than the gallery)",
        "  FAISS flat: 9.2 times as long alone (about in proportion), "
        "20.0 times as long among 200 (faster than the gallery)",
        "recall is below 1 for FAISS HNSW at 10,000 codes, 0.995",
    ]
    assert times.at_scale(bench().assign(recall=1.0))[-1] == "recall is 1 everywhere"


def test_the_benchmark_is_headed_in_words_and_says_why_a_line_ends():
    table, figure = times.largest(bench()), times.figure_latency(bench(), "2 processors")
    head, _, *lines = table.markdown.splitlines()
    assert "| build (s) | bytes per code on disk | one query alone (ms) |" in head and "_" not in head
    assert len(lines) == 2 and table.caption.startswith("10,000 codes.")
    assert "Qdrant, embedded ends at 1,000 codes: its embedded mode" in figure.caption
    assert "FAISS HNSW ends" not in figure.caption and "on 2 processors." in figure.caption
    for name in times.SHORT:  # the reason stands where the limit is set
        assert latency.STRUCTURES[name][1] < max(latency.SIZES)


def test_a_billion_is_reckoned_in_proportion_to_codes_and_to_their_numbers():
    """In FAISS flat 264 bytes are 32 numbers: 9.2 ms for ten thousand codes are 920 s for a billion."""
    head, short, long = times.at_a_billion(bench().assign(bytes=264.1), [15, 32])
    assert head.startswith("1,000,000,000 codes, by proportion from 10,000 codes of 32 numbers; an extrapolation")
    assert long == (
        "  32 numbers: 64 GB stored in float16; exact search (FAISS flat): 264 GB in memory, "
        "920.0 s for a query alone, 1000.0 s for one of 200"
    )
    assert short.startswith("  15 numbers: 30 GB stored") and "128 GB in memory, 460.0 s for a query alone" in short
    assert times.at_a_billion(bench().query("structure != 'FAISS flat'"), [32]) == []


def test_what_faiss_flat_is_said_to_hold_is_what_it_holds(tmp_path):
    sizes = []
    for n in (1000, 2000):  # what comes with every index, whatever its size, falls out
        FaissFlat.build(hierarchy(n, 8, seed=1), PoincareBall(1.0), "codes").save(tmp_path / str(n))
        sizes.append(sum(file.stat().st_size for file in (tmp_path / str(n)).iterdir()))
    assert np.diff(sizes).item() / 1000 == pytest.approx(times.flat_bytes(8), abs=0.1)


def test_the_committed_benchmark_is_of_the_length_that_its_bytes_say():
    rows = pd.read_csv(paths.ROOT / "reports/bench/latency.csv")
    assert f"codes of {latency.DIM} numbers" in times.at_a_billion(rows, [latency.DIM])[0]
