"""The figures of storage and search draw what they are given."""

import pandas as pd

from lib.papers.beyond.storage import figures as storage


def test_storage_has_a_line_per_method_and_codec():
    rows = pd.DataFrame(
        {
            "method": ["mapper"] * 4 + ["no mapper"] * 2,
            "codec": ["float32", "float32", "float16 ball", "float16 ball", "float32", "float32"],
            "bytes": [32, 16, 16, 8, 32, 16],
            "map_5": [60.0, 50.0, 59.0, 49.0, 40.0, 30.0],
            "recall": [100.0, 100.0, 99.0, 98.0, 100.0, 100.0],
        }
    )
    figure = storage.storage(rows, 5)
    left, right = figure.axes
    assert [line.get_label() for line in left.lines] == [
        "mapper, float32",
        "mapper, float16 ball",
        "no mapper, float32",
    ]
    assert left.lines[1].get_xdata().tolist() == [8, 16] and left.lines[1].get_ydata().tolist() == [49.0, 59.0]
    assert right.lines[1].get_ydata().tolist() == [98.0, 99.0]
    assert len({(line.get_marker(), line.get_color()) for line in left.lines}) == 3
    full, _, bare = right.lines  # both at 100 %: the full sign is seen inside the open one
    assert bare.get_markerfacecolor() == "none" and bare.get_markersize() > 1.5 * full.get_markersize()


def test_latency_leaves_out_what_was_not_built():
    rows = pd.DataFrame(
        {
            "structure": ["exact, no index"] * 2 + ["FAISS HNSW"] * 2,
            "size": [1000, 10000] * 2,
            "single_ms": [1.0, 10.0, 0.5, 0.6],
            "batch_ms": [0.1, 1.0, 0.2, 0.3],
            "build_s": [0.0, 0.0, 0.1, 1.0],
        }
    )
    alone, _, build = storage.latency(rows).axes
    assert [len(line.get_xdata()) for line in alone.lines] == [2, 2]
    assert [len(line.get_xdata()) for line in build.lines] == [0, 2]
    assert alone.get_xscale() == alone.get_yscale() == "log"
