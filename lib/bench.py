"""How fast is it? Ratios of times measured in one run on one machine, written to ``reports/bench/``.

``python -m lib.bench`` prints them. A ratio travels from machine to machine better than seconds do.
"""

import os
import platform
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch

from lib import errors, paths
from lib.results.store import markdown_table
from lib.training import sweep
from lib.training.fit import Schedule, fit_head
from lib.training.hyper_dino import Settings
from lib.training.recipes import LENGTHS, recipes

N_TRAIN, DIM, CLASSES, FOLDS = 4000, 384, 8, 5  # Kather 2016 and DINO ViT-S/16
REPEATS = 3


def median_seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median wall time of ``work()``, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def sweep_against_loop(epochs: int = 3) -> dict[str, object]:
    """All 62 mappers of Table 1 on five folds at Kather's size, for ``epochs`` epochs: the sweep, and one by one.

    The loop is :func:`lib.training.fit.fit_head` on a CPU with all its threads, the sweep as notebooks call it.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_TRAIN, DIM)).astype(np.float32)
    labels = rng.integers(0, CLASSES, N_TRAIN)
    settings, schedule = Settings(), Schedule(epochs=epochs)
    todo = [recipe for recipe in recipes(DIM, LENGTHS) if recipe.dim_out]

    def tasks() -> list[sweep.Task]:
        return [
            sweep.Task(recipe.name, settings.mapper(recipe, fold), x[:, : recipe.dim_in], labels, fold)
            for fold in range(FOLDS)
            for recipe in todo
        ]

    def one_by_one() -> None:
        for task in tasks():
            fit_head(task.head, settings.loss, task.x, task.labels, schedule, seed=task.seed)

    sweep.fit(tasks()[: 4 * sweep.CHUNK], settings.loss, schedule, what="warming up")  # processes start once
    at_once = median_seconds(lambda: sweep.fit(tasks(), settings.loss, schedule, what="sweep"))
    alone = median_seconds(one_by_one, repeats=1)
    steps = len(todo) * FOLDS * epochs * schedule.steps(N_TRAIN)
    return {
        "what": f"{len(todo)} mappers × {FOLDS} folds × {epochs} of 100 epochs, {N_TRAIN:,} × {DIM} training features",
        "ours": "sweep",
        "peer": "one head after another",
        "ours_s": at_once,
        "peer_s": alone,
        "ours_ms_per_head_step": 1000 * at_once / steps,
        "peer_ms_per_head_step": 1000 * alone / steps,
        "ratio": alone / at_once,
    }


def machine() -> str:
    """What the numbers were measured on."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return (
        f"{os.cpu_count()} processors ({platform.machine()}), {device}, torch {torch.__version__}, "
        f"Python {platform.python_version()}"
    )


def main() -> None:
    """Measure, print, and write ``reports/bench/bench.{csv,md}``."""
    rows = pd.DataFrame([sweep_against_loop()]).round(3)
    text = f"# Speed\n\n{markdown_table(rows)}\n\nMedians of {REPEATS} (peer: one run), on {machine()}.\n"
    folder = paths.REPORTS / "bench"
    with paths.whole(folder / "bench.csv") as draft:
        rows.to_csv(draft, index=False, lineterminator="\n")
    with paths.whole(folder / "bench.md") as draft:
        draft.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    errors.one_message(main)
