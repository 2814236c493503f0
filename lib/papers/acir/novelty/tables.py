"""Table 3 and the tables around it: how their csv become Markdown."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.papers.acir import published
from lib.papers.acir.novelty import experiment
from lib.papers.acir.novelty.experiment import Coder
from lib.papers.acir.novelty.scene import FAR, KNOWN, NEAR, PARTS, SORTS, Scene
from lib.study import paired
from lib.study.columns import Column, Layout, printed
from lib.training.rebuild import Rebuilder


def parts(scene: Scene) -> pd.DataFrame:
    """Who is who: part, what, kinds (classes, or kinds of pictures), n_images, n_groups."""
    lines = []
    for part, text in PARTS.items():
        rows = scene.rows(part)
        kinds = ", ".join(sorted(set(scene.kind[rows].tolist())))
        counts = {"n_images": len(rows), "n_groups": len(set(scene.groups[rows]))}
        lines.append({"part": part, "what": text, "kinds": kinds} | counts)
    return pd.DataFrame(lines)


def health(scene: Scene, coders: Mapping[str, Sequence[Coder]], decoders: Sequence[Rebuilder]) -> pd.DataFrame:
    """How every training went: method, repeat, loss_first, loss_last, steps; right (known queries that
    go to their own class by the nearest centre, percent; NaN for decoders)."""
    rows = []
    for name, trainings in coders.items():
        for repeat, one in enumerate(trainings):
            cells = {"method": name, "repeat": repeat, "loss_first": one.loss_first, "loss_last": one.loss_last}
            rows.append(cells | {"steps": one.steps, "right": 100 * experiment.right(one, scene, KNOWN).mean()})
    for repeat, one in enumerate(decoders):
        cells = {"method": "decoder", "repeat": repeat, "loss_first": one.history[0], "loss_last": one.history[-1]}
        rows.append(cells | {"steps": one.steps, "right": np.nan})
    return pd.DataFrame(rows)


def table_3(rows: pd.DataFrame) -> str:
    """Published rows first, then ours; rows: of :func:`.rules.table_3`."""
    theirs = published.novelty()
    variants = theirs["variant"].map(lambda name: "" if name == "full" else f", {name}")
    names = "published: " + theirs["method"] + theirs["bits"].map(", {:.0f} bits".format) + variants
    first = theirs[["precision", "recall"]].assign(rule=names, far=theirs["detected"] / 5)
    columns = [
        Column("rule"),
        Column("macro precision", "precision", pm="precision_spread"),
        Column("macro recall", "recall", pm="recall_spread"),
        Column("OOD detected", FAR, "1 %"),
        Column("left-out class detected", NEAR, "1 %"),
        Column("false alarms", KNOWN, "1 %"),
    ]
    return Layout(columns, ["rule"], repeats="repeat")(pd.concat([first, rows], ignore_index=True))


def table_scores(rows: pd.DataFrame) -> str:
    """AUROC, its mean per patient with the interval, and FPR@95; rows: of :func:`.scores.separations` and intervals."""
    low, high = (rows[end].map(lambda value: printed(value, "1")) for end in ("low", "high"))
    columns = [Column("score")]
    for part, title in SORTS.items():
        columns += [
            Column(f"AUROC, {title}", "auroc", pm="auroc_spread", at=("novel", part)),
            Column(f"per patient, {title}", "mean", "1", brackets="interval", at=("novel", part)),
            Column(f"FPR@95, {title}", "fpr95", pm="fpr95_spread", at=("novel", part)),
        ]
    return Layout(columns, ["score"], repeats="repeat")(rows.assign(interval=low + " to " + high))


def tests_layout(rows: pd.DataFrame) -> str:
    """The paired tests of AUROC as Markdown."""
    named = rows.assign(gallery=rows["gallery"].map(SORTS))
    return paired.tests_layout(named, {"gallery": "novel"} | paired.METHODS, "first − second, points of AUROC")


LAYOUTS = {
    "table_parts": Layout(
        [
            Column("part"),
            Column("what"),
            Column("classes or kinds", "kinds"),
            Column("images", "n_images", "0"),
            Column("groups", "n_groups", "0"),
        ],
        ["part"],
    ),
    "table_training": Layout(
        [
            Column("method"),
            Column("loss, first epoch", "loss_first", "3"),
            Column("last epoch", "loss_last", "3"),
            Column("steps", form="0"),
            Column("trainings", "n_seeds", "0"),
            Column("right class, nearest centre", "right", pm="right_spread"),
        ],
        repeats="repeat",
    ),
    "table_balls": Layout(
        [
            Column("bits", form="0"),
            Column("radius", form="0"),
            Column("random codes in a ball, 16 centres", "chance_16", "{:.3g} %"),
            Column("as many centres as here", "chance", "{:.3g} %"),
            Column("known outside", KNOWN, "1 %"),
            Column("left-out class outside", NEAR, "1 %"),
            Column("OOD outside", FAR, "1 %"),
            Column("AUROC of the distance, OOD", "far_auroc"),
        ],
        ["bits"],
    ),
    "table_limits": Layout(
        [
            Column("score"),
            Column("limit from", "part", PARTS.__getitem__),
            Column("mean", form="{:.3g}"),
            Column("standard deviation", "deviation", "{:.2g}"),
            Column("limit", form="{:.3g}"),
            Column("beyond it, of themselves", "own", "1 %"),
            Column("false alarms", KNOWN, "1 %"),
            Column("left-out class", NEAR, "1 %"),
            Column("OOD", FAR, "1 %"),
        ],
        ["score", "part"],
        repeats="repeat",
    ),
    "table_3": table_3,
    "table_scores": table_scores,
    "table_classes": Layout(
        [Column("left out", "class"), Column("images", "n", "0"), Column("{}", "auroc", "1", over="score")], ["class"]
    ),
}
