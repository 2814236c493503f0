"""Measure everything, print it, and write ``reports/bench/bench.{csv,md}``."""

import os
import platform
from importlib.metadata import version

import pandas as pd
import torch

from lib import errors, paths
from lib.bench import distances, scoring, searching, sweeping
from lib.bench.timing import REPEATS, Row
from lib.progress import track
from lib.results.store import markdown_table

PEERS = ("geoopt", "faiss-cpu", "qdrant-client", "torchmetrics", "pytorch-metric-learning")
ROOMS = (distances, searching, scoring, sweeping)


def machine() -> str:
    """What the numbers were measured on."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    peers = ", ".join(f"{name} {version(name)}" for name in PEERS)
    return (
        f"{os.cpu_count()} processors ({platform.machine()}), {device}, torch {torch.__version__} with "
        f"{torch.get_num_threads()} threads, Python {platform.python_version()}, {peers}"
    )


def main() -> None:
    """Measure, print, write."""
    found: list[Row] = []
    for room in track(ROOMS, total=len(ROOMS), what="bench", unit="groups"):
        found += room.rows()
    columns = ["what", "unit", "ours", "our_value", "peer", "peer_value", "ratio", "aim", "check"]
    table = pd.DataFrame([row.cells() for row in found])[columns]
    text = (
        f"# Speed and memory\n\nRatio: how many times less we need than the peer; below 1 the peer is better.\n\n"
        f"{markdown_table(table)}\n\nMedians of {REPEATS} turns (one for what takes seconds), on {machine()}.\n"
    )
    folder = paths.REPORTS / "bench"
    with paths.whole(folder / "bench.csv") as draft:
        table.to_csv(draft, index=False, lineterminator="\n")
    with paths.whole(folder / "bench.md") as draft:
        draft.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    errors.one_message(main)
