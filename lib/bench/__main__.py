"""Measure everything, print it, and write ``reports/bench/``: tables of speed, recall by radius and latency."""

import os
import platform
from importlib.metadata import version

import pandas as pd
import torch

from lib import errors, files, paths
from lib.bench import distances, hashes, latency, recall, scoring, searching, sweeping
from lib.bench.timing import REPEATS, Row
from lib.figures import style
from lib.papers.beyond.storage import figures
from lib.progress import track
from lib.results.markdown import markdown_table

PEERS = ("geoopt", "faiss-cpu", "qdrant-client", "torchmetrics", "pytorch-metric-learning")
FOLDER = paths.REPORTS / "bench"
ROOMS = (distances, searching, hashes, scoring, sweeping)


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
    ratios = pd.DataFrame([row.cells() for row in found])[columns]
    where = f"Measured on {machine()}."
    note = f"Ratio: how many times less we need than the peer; below 1 the peer is better. Medians of {REPEATS} turns, "
    _write("bench", "Speed and memory", ratios, f"{note}one for what takes seconds. {where}")
    _write("recall", "Recall of a graph by hyperbolic radius", recall.measure(), f"{recall.CAPTION} {where}")
    times = latency.measure()
    _write("latency", "Latency and cost of an index", times, f"{latency.CAPTION} {where}")
    style.save(figures.latency(times), FOLDER / "latency.png")


def _write(name: str, title: str, table: pd.DataFrame, note: str) -> None:
    text = f"# {title}\n\n{markdown_table(table)}\n\n{note}\n"
    with files.whole(FOLDER / f"{name}.csv") as draft:
        table.to_csv(draft, index=False, lineterminator="\n")
    with files.whole(FOLDER / f"{name}.md") as draft:
        draft.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    errors.one_message(main)
