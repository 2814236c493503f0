"""A whole table of mappers trained at once against one head after another."""

import numpy as np

from lib.bench.timing import Row, milliseconds
from lib.papers.hyper_dino.recipes import LENGTHS, recipes
from lib.training import sweep
from lib.training.fit import Schedule, fit_head
from lib.training.hyper_dino import Settings

N_TRAIN, DIM, CLASSES, FOLDS = 4000, 384, 8, 5  # Kather 2016 and DINO ViT-S/16


def rows(epochs: int = 3) -> list[Row]:
    """All 62 mappers of Table 1 on five folds at Kather's size, for ``epochs`` epochs: the sweep, and one by one.

    The loop is :func:`lib.training.fit.fit_head` on a CPU with all its threads, the sweep as notebooks call it.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_TRAIN, DIM)).astype(np.float32)
    labels = rng.integers(0, CLASSES, N_TRAIN)
    settings, schedule = Settings(), Schedule(epochs=epochs)
    loss = settings.loss
    todo = [recipe for recipe in recipes(DIM, LENGTHS) if recipe.dim_out]

    def tasks() -> list[sweep.Task]:
        return [
            sweep.Task(recipe.name, settings.make(recipe, fold), x[:, : recipe.dim_in], labels, fold)
            for fold in range(FOLDS)
            for recipe in todo
        ]

    def at_once() -> None:
        sweep.fit(tasks(), loss, schedule, what="sweep")

    def one_by_one() -> None:
        for task in tasks():
            fit_head(task.head, loss, task.x, task.labels, schedule, seed=task.seed)

    sweep.fit(tasks()[: 4 * sweep.CHUNK], loss, schedule, what="warming up")  # processes start once
    ours, peer = milliseconds(at_once, one_by_one, repeats=1, warm=False)
    steps = len(todo) * FOLDS * epochs * schedule.steps(N_TRAIN)
    what = f"{len(todo)} mappers × {FOLDS} folds × {epochs} of 100 epochs, {N_TRAIN:,} × {DIM} training features"
    check = f"{ours / steps:.2f} and {peer / steps:.2f} ms for a step of a head"
    return [Row(what, "ms", "training.sweep", "one head after another", ours, peer, "≥ 3", check)]
