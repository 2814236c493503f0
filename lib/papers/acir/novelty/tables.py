"""Table 3 in the paper's layout, thresholds, balls and scores, as Markdown."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.papers.acir.novelty import experiment
from lib.papers.acir.novelty.experiment import Coder
from lib.papers.acir.novelty.scene import FAR, KNOWN, NEAR, PARTS, SORTS, Scene
from lib.papers.acir.novelty.scores import LIMITED
from lib.results import paired
from lib.results.markdown import markdown_table, percent
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


def parts_layout(scene: Scene) -> str:
    """The same as Markdown; OOD pictures have no groups of their own."""
    table = parts(scene)
    groups = table["n_groups"].astype(str).where(table["part"] != FAR, "–")
    shown = table.drop(columns="n_groups").rename(columns={"n_images": "images", "kinds": "classes or kinds"})
    return markdown_table(shown.assign(**{f"{scene.tables[0].group_kind}s": groups}))


def health(scene: Scene, coders: Mapping[str, Sequence[Coder]], decoders: Sequence[Rebuilder]) -> pd.DataFrame:
    """How every training went: method, repeat, loss_first, loss_last, steps; right (known images of those who ask that
    go to their own class by the nearest centre, percent; NaN for decoders)."""
    rows = []
    for name, several in coders.items():
        for repeat, one in enumerate(several):
            cells = {"method": name, "repeat": repeat, "loss_first": one.loss_first, "loss_last": one.loss_last}
            rows.append(cells | {"steps": one.steps, "right": 100 * experiment.right(one, scene, KNOWN).mean()})
    for repeat, one in enumerate(decoders):
        cells = {"method": "decoder", "repeat": repeat, "loss_first": one.history[0], "loss_last": one.history[-1]}
        rows.append(cells | {"steps": one.steps, "right": np.nan})
    return pd.DataFrame(rows)


def health_layout(rows: pd.DataFrame) -> str:
    """The health of all trainings, a row per method."""
    lines = []
    for name, part in rows.groupby("method", sort=False):
        lines.append(
            {
                "method": name,
                "loss, first epoch": f"{part['loss_first'].mean():.3f}",
                "last epoch": f"{part['loss_last'].mean():.3f}",
                "steps": int(part["steps"].max()),
                "trainings": len(part),
                "right class, nearest centre": _spread(part["right"]),
            }
        )
    return markdown_table(pd.DataFrame(lines))


def _spread(values: pd.Series) -> str:
    """Mean ± standard deviation over trainings, a dash where there is none."""
    if values.isna().all():
        return "–"
    return percent(values.mean()) + (f" ± {percent(values.std())}" if len(values) > 1 else "")


def table_3_layout(rows: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """Table 3: published rows first, then ours, mean ± over trainings; detected as a count of all, as in the paper.

    theirs: of :func:`lib.papers.acir.published.novelty`.
    """
    lines = [
        {
            "rule": f"{row.method}, {row.bits} bits" + ("" if row.variant == "full" else f", {row.variant}"),
            "whose": "published",
            "macro precision": f"{row.precision:.1f}",
            "macro recall": f"{row.recall:.1f}",
            "OOD detected": f"{row.detected:.0f}/500",
        }
        for row in theirs.itertuples()
    ]
    for name, part in rows.groupby("rule", sort=False):
        n = int(part["n_far"].iloc[0])
        lines.append(
            {
                "rule": name,
                "whose": "ours",
                "macro precision": _spread(part["precision"]),
                "macro recall": _spread(part["recall"]),
                "OOD detected": f"{part['far'].mean() * n / 100:.0f}/{n} ({part['far'].mean():.1f} %)",
                "left-out class detected": f"{part['near'].mean():.1f} %",
                "false alarms": f"{part['known'].mean():.1f} %",
            }
        )
    return markdown_table(pd.DataFrame(lines, dtype=object).fillna("–"))


def balls_layout(rows: pd.DataFrame) -> str:
    """What a ball of radius bits/4 + 1 holds, at each length."""
    lines = [
        {
            "bits": int(row.bits),
            "radius": int(row.radius),
            "random codes in a ball, 16 centres": f"{row.chance_16:.3g} %",
            "as many centres as here": f"{row.chance:.3g} %",
            "known outside": f"{row.known:.1f} %",
            "left-out class outside": f"{row.near:.1f} %",
            "OOD outside": f"{row.far:.1f} %",
            "AUROC of the distance, OOD": percent(row.far_auroc),
        }
        for row in rows.itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def scores_layout(rows: pd.DataFrame, ends: pd.DataFrame) -> str:
    """AUROC and FPR@95 of every score; rows: of ``scores.separations``, ends: of ``scores.intervals``."""
    known = ends.set_index(["score", "novel"])
    lines = []
    for name, of_one in rows.groupby("score", sort=False):
        cells = {"score": name}
        for part, title in SORTS.items():
            several, interval = of_one[of_one["novel"] == part], known.loc[(name, part)]
            cells[f"AUROC, {title}"] = _or_fixed(several["auroc"])
            cells[f"per patient, {title}"] = f"{interval['mean']:.1f} ({interval['low']:.1f} to {interval['high']:.1f})"
            cells[f"FPR@95, {title}"] = _or_fixed(several["fpr95"])
        lines.append(cells)
    return markdown_table(pd.DataFrame(lines))


def _or_fixed(values: pd.Series) -> str:
    """Mean ± over trainings; without ± where nothing was trained."""
    return percent(values.mean()) if values.std() < 1e-9 else _spread(values)


def limits_layout(rows: pd.DataFrame) -> str:
    """Three sources of a limit, a row per score and source."""
    shown = rows[rows["score"].isin(LIMITED)]
    lines = []
    for (name, part), of_one in shown.groupby(["score", "part"], sort=False):
        mean = of_one.mean(numeric_only=True)
        lines.append(
            {
                "score": name,
                "limit from": PARTS[part].removeprefix("known classes, "),
                "mean": f"{mean['mean']:.3g}",
                "standard deviation": f"{mean['deviation']:.2g}",
                "limit": f"{mean['limit']:.3g}",
                "beyond it, of themselves": f"{mean['own']:.1f} %",
                "false alarms": f"{mean[KNOWN]:.1f} %",
                "left-out class": f"{mean[NEAR]:.1f} %",
                "OOD": f"{mean[FAR]:.1f} %",
            }
        )
    return markdown_table(pd.DataFrame(lines))


def tests_layout(table: pd.DataFrame) -> str:
    """The paired tests of AUROC as Markdown."""
    named = table.assign(gallery=table["gallery"].map(SORTS))
    return paired.tests_layout(named, {"gallery": "novel"} | paired.METHODS, "first − second, points of AUROC")


def each_class_layout(rows: pd.DataFrame) -> str:
    """AUROC of every score where each class in turn is left out."""
    wide = rows.pivot_table(index="class", columns="score", values="auroc", sort=False)
    mean = wide.mean().to_frame("mean").T.rename_axis("class")
    shown = pd.concat([wide, mean]).map("{:.1f}".format)
    shown.insert(0, "images", [*rows.drop_duplicates("class")["n"], "–"])
    return markdown_table(shown.rename_axis("left out").reset_index())
