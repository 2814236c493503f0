"""A whole table of mappers trained at once against one head after another."""

from itertools import product

import numpy as np

from bench.timing import Row, milliseconds
from lib import devices
from lib.papers.hyper_dino.recipes import LENGTHS, recipes
from lib.training import sweep
from lib.training.fit import Schedule, fit_head
from lib.training.hyper_dino import Settings

N_TRAIN, DIM, CLASSES, FOLDS = 4000, 384, 8, 5  # Kather 2016 and DINO ViT-S/16
SIZES = {"cuda": (1, 3), "cpu": (4, 1)}
"""On a device, one of so many mappers is trained, for so many epochs."""


def rows(device: str = "auto", size: tuple[int, int] | None = None) -> list[Row]:
    """A step of a head: of the 62 mappers of Table 1 on five folds at Kather's size, and of one after the other.

    The sweep as notebooks call it, on a CPU with all its processors; :func:`lib.training.fit.fit_head`, on a CPU with
    all its threads, of the first fold for an epoch, as a step takes as long in any.

    device: see :func:`lib.devices.pick`. size: as in :data:`SIZES`.
    """
    device = devices.pick(device).type
    every, epochs = size or SIZES[device]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(FOLDS, N_TRAIN, DIM)).astype(np.float32)
    labels = rng.integers(0, CLASSES, N_TRAIN)
    settings, schedule = Settings(), Schedule(epochs=epochs)
    todo = [recipe for recipe in recipes(DIM, LENGTHS) if recipe.dim_out][::every]
    inputs = {(fold, r.input): x[fold, :, : r.dim_in].copy() for fold, r in product(range(FOLDS), todo)}

    def tasks(folds: int) -> list[sweep.Task]:
        return [
            sweep.Task(r.name, settings.make(r, fold), inputs[fold, r.input], labels, fold)
            for fold, r in product(range(folds), todo)
        ]

    def at_once() -> None:
        losses[0] = sweep.fit(together, settings.loss, schedule, device=device, what="sweep")

    def one_by_one() -> None:
        losses[1] = [
            fit_head(task.head, settings.loss, task.x, labels, Schedule(epochs=1), seed=task.seed) for task in single
        ]

    sweep.fit(tasks(1), settings.loss, Schedule(epochs=1), device=device, what="warming up")  # processes start once
    together, single, losses = tasks(FOLDS), tasks(1), {}
    for task in single:
        task.head.to(device)
    times = milliseconds(at_once, one_by_one, repeats=1, warm=False)
    ours, peer = (ms / schedule.steps(N_TRAIN) for ms in times)
    apart = max(abs(a[0] - b[0]) / b[0] for a, b in zip(losses[0][: len(single)], losses[1], strict=True))
    what = f"{len(todo)} mappers × {FOLDS} folds × {epochs} of 100 epochs, {N_TRAIN:,} × {DIM} training features"
    return [
        Row(
            f"a step of a head; {what}",
            "ms",
            "training.sweep",
            "one head after another",
            ours / (epochs * len(together)),
            peer / len(single),
            "≥ 3",
            f"losses of an epoch differ by {apart:.0e} at most",
        )
    ]
