"""Measure everything, print it, and write ``reports/bench/``: tables of speed, recall by radius and latency.

On a GPU: what a GPU is for, in a table of its own named after the card, ``reports/bench/<card>.csv``, written as it
goes. A room whose peers are not installed there is left out.
"""

import argparse
import os
import platform
import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd
import torch

from bench.timing import REPEATS
from lib import devices, errors, files, paths
from lib.errors import InputError
from lib.progress import track
from lib.study.markdown import markdown_table

PEERS = ("geoopt", "faiss-cpu", "pymilvus", "torchmetrics", "pytorch-metric-learning")
FOLDER = paths.REPORTS / "bench"
ON_ANY = ("ceilings", "images", "distances", "sweeping")
ON_CPU = ("searching", "hashes", "scoring")
COLUMNS = ["group", "what", "unit", "ours", "our_value", "peer", "peer_value", "ratio", "aim", "check"]
NOTE = (
    "Ratio: how many times less we need than the peer, or how many times more a second; below 1 the peer is better. "
    f"Medians of {REPEATS} turns, one for what takes seconds."
)


def machine() -> str:
    """What the numbers were measured on."""
    gpu = devices.name() if devices.pick().type == "cuda" else "no GPU"
    peers = "".join(f", {name} {found}" for name in PEERS if (found := _version(name)))
    return (
        f"{os.cpu_count()} processors ({platform.machine()}), {gpu}, torch {torch.__version__} with "
        f"{torch.get_num_threads()} threads, Python {platform.python_version()}{peers}"
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the tables (default: %(default)s)")
    parser.add_argument("--resume", action="store_true", help="keep the groups that the tables there have")
    arguments = parser.parse_args()
    folder, resume = arguments.out, arguments.resume
    if devices.pick().type == "cuda":
        speed(folder, re.sub(r"\W+", "-", devices.name().lower()), ON_ANY, resume)
        return
    from bench import latency, recall
    from lib.figures import style
    from lib.papers.beyond.storage import figure_latency

    speed(folder, "bench", (*ON_ANY, *ON_CPU), resume)
    where = f"Measured on {machine()}."
    title = "Recall by hyperbolic radius"
    print(_write(folder, "recall", title, recall.measure(), f"{recall.CAPTION} {where}"))
    times = latency.measure()
    print(_write(folder, "latency", "Latency and cost of an index", times, f"{latency.CAPTION} {where}"))
    style.save(figure_latency(times), folder / "latency.png")


def speed(folder: Path, name: str, rooms: tuple[str, ...], resume: bool = False) -> None:
    """Measure the ``rooms`` and write the table after each; ``resume`` keeps those that the table has.

    Raises:
        InputError: at the end, if some could not be measured: which, and why.
    """
    file, faults, text = folder / f"{name}.csv", [], ""
    table = pd.read_csv(file) if resume and file.exists() else pd.DataFrame(columns=COLUMNS)
    left = [room for room in rooms if room not in set(table["group"])]
    for room in track(left, total=len(left), what="bench", unit="groups"):
        try:
            rows = pd.DataFrame([row.cells() | {"group": room} for row in import_module(f"bench.{room}").rows()])
        except Exception as error:  # a package that is missing, memory that is too small: others can still be measured
            faults.append(f"{room} is not measured: {type(error).__name__}: {error}")
            continue
        table = pd.concat([table, rows[COLUMNS]], ignore_index=True) if len(table) else rows[COLUMNS]
        text = _write(folder, name, "Speed and memory", table, f"{NOTE} Measured on {machine()}.")
    print(text)
    if faults:
        raise InputError("\n".join(faults))


def _write(folder: Path, name: str, title: str, table: pd.DataFrame, note: str) -> str:
    text = f"# {title}\n\n{markdown_table(table.fillna('–'))}\n\n{note}\n"
    with files.whole(folder / f"{name}.csv") as draft:
        table.to_csv(draft, index=False, lineterminator="\n")
    with files.whole(folder / f"{name}.md") as draft:
        draft.write_text(text, encoding="utf-8")
    return text


if __name__ == "__main__":
    errors.one_message(main)
