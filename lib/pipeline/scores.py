"""The two tables of scores in the README, ours beside the published values, from the committed ``reports/``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib import paths
from lib.papers.hyper_dino.published import TABLES, headlines, published
from lib.papers.linear_prototypes.published import DATASETS as THEIR_NAMES
from lib.papers.linear_prototypes.published import PT, TL, gains
from lib.pipeline import index, profiles
from lib.results.markdown import percent, points

OTHER_MAGNIFICATIONS = paths.DRAWN[1:]
TABLES_OF = {"hyper_dino": "table_opponents", "linear_prototypes": "table_results"}
PLAIN = "raw features, cosine"
LEVEL = 0.05
"""Of p after Holm's correction: at most this is clear."""
CELLS = [f"{where}: {what}" for where in ("by image", "by group", "published") for what in ("first", "list")]


@dataclass(frozen=True)
class Claim:
    """What a paper's README row shows: a measure, and its method, features as they are, and the rival that it names.

    Rows are those of the section's table where the columns of ``where`` have these values; ``of`` are those of its
    ``table_tests`` (first, second, and columns), and with ``plain`` as the second the gain over plain features;
    ``by_class`` of its tests of class means, and ``classes`` their table; ``beside``: what else a method is held
    against, behind a stroke after the plain features: a simple opponent, or an answer that does not look at images.
    """

    section: str
    tables: tuple[str, ...]
    measure: str
    where: Mapping[str, Any]
    plain: str
    ours: str
    rival: str
    of: Mapping[str, Any] = field(default_factory=dict)
    classes: str = "table_tests"
    by_class: Mapping[str, Any] = field(default_factory=dict)
    beside: str = ""


CLAIMS = {
    "hyp_vit": Claim(
        "retrieval",
        ("table_2",),
        "Recall@1",
        {"k": 1},
        "no head",
        "Hyp",
        "Sph",
        {"first": "Hyp", "second": "Sph", "k": 1},
    ),
    "acir": Claim(
        "hashing",
        ("table_1_min",),
        "MAP@100",
        {"gallery": "closed", "bits": [16, np.nan]},
        "features, no code",
        "ACIR",
        "CSQ",
        {"first": "ACIR-16bit", "second": "CSQ-16bit"},
        "table_tests_by_class",
        {"first": "ACIR-16bit", "second": "CSQ-16bit"},
        "linear classifier, no code",
    ),
    "label_tree": Claim(
        "results",
        ("table_1", "table_2", "table_3", "table_results"),
        "HF1",
        {"measure": "hf1"},
        "no head",
        "HWC+LAM (Euclidean)",
        "SupCon (Euclidean)",
        {"first": "HWC+LAM (Euclidean)", "second": "SupCon (Euclidean)", "measure": "HF1"},
        by_class={"first": "HWC+LAM (Euclidean)", "second": "SupCon (Euclidean)", "measure": "HF1, class mean"},
        beside="always the commonest class",
    ),
}


def table() -> pd.DataFrame:
    """One row for each paper and dataset that is built: paper, images, encoder and :data:`CELLS`.

    Drawn tiles stand only where a paper has no real images.
    """
    lines = []
    for paper in TABLES_OF:
        lines += _rows(paper, "sample") or _rows(paper, "demo")
    return pd.DataFrame(lines)


def _rows(paper: str, profile: str) -> list[dict[str, str]]:
    lines = []
    for dataset in profiles.runs(profile)[f"{paper}_retrieval"]:
        file = paths.report(paper, profile, dataset, "retrieval") / f"{TABLES_OF[paper]}.csv"
        if file.exists() and dataset not in OTHER_MAGNIFICATIONS:
            record = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
            named, count, *_, groups = record["images"].split(", ")
            encoder = record["encoder"].partition(" (")[0]  # the first, which leads
            rows = pd.read_csv(file).query("metric == 'ap_min'")
            shown = (
                f"{named}, {count.replace(' of ', '/')}, {groups}"
                if paper == "hyper_dino"
                else _asked(record["images"], rows, encoder)
            )
            about = {"paper": index.PAPERS[paper], "images": shown, "encoder": encoder}
            ours = _ours(paper, rows, encoder)
            theirs = _published(paper, dataset) if profile == "sample" else {}
            lines.append(about | dict.fromkeys(CELLS, "–") | ours | theirs)
    return lines


def _asked(images: str, rows: pd.DataFrame, encoder: str) -> str:
    """Which images, and how many of them ask for how many of the classes: the queries of the prototypes are few."""
    first = rows.query("gallery == 'closed' and encoder == @encoder").iloc[0]
    named, *about = images.split(", ")
    classes = next(part for part in about if part.endswith(" classes"))
    return f"{named}, {first['n_queries']} queries, {first['n_classes']}/{classes}"


def others() -> pd.DataFrame:
    """One row for each of :data:`CLAIMS` and real dataset that is built."""
    lines = []
    for paper, claim in CLAIMS.items():
        for dataset in profiles.runs("sample")[f"{paper}_{claim.section}"]:
            folder = paths.report(paper, "sample", dataset, claim.section)
            files_of = [file for name in claim.tables if (file := folder / f"{name}.csv").exists()]
            if files_of:
                record = json.loads(files_of[0].with_suffix(".json").read_text(encoding="utf-8"))
                rows = chosen(pd.read_csv(files_of[0]), claim.where).set_index("method")["ours"]
                over = {**claim.of, "second": claim.plain}
                gains = {"over plain": ("table_tests", over), "difference": ("table_tests", claim.of)}
                gains |= {"by class": (claim.classes, claim.by_class)}
                about = {"paper": index.PAPERS[paper], "images": record["images"].partition(",")[0]}
                names = {"plain": claim.plain, _named("ours"): claim.ours, _named("rival"): claim.rival}
                cells = {"measure": claim.measure} | {column: percent(rows[name]) for column, name in names.items()}
                if claim.beside:
                    cells["plain"] += f"/{percent(rows[claim.beside])}"
                lines.append(about | cells | {column: _gain(folder, *of) for column, of in gains.items()})
    return pd.DataFrame(lines)


def _gain(folder: Path, name: str, of: Mapping[str, Any]) -> str:
    """The difference of the only test of a table where the columns have these values, bold if clear; a dash if none."""
    tests = chosen(pd.read_csv(folder / f"{name}.csv"), of)
    if not of or tests.empty:
        return "–"
    (test,) = tests.to_dict("records")
    return marked(test["difference"], test["p_holm"])


def marked(difference: float, p_holm: float) -> str:
    """A difference in points, bold where it is clear.

    >>> marked(1.5, 0.01), marked(-2.0, 0.2)
    ('**+1.50**', '-2.00')
    """
    gain = points(difference)
    return f"**{gain}**" if p_holm <= LEVEL else gain


def _named(which: str) -> str:
    """The methods of all papers, without their geometry: the head of a column."""
    return ", ".join(getattr(claim, which).removesuffix(" (Euclidean)") for claim in CLAIMS.values())


def chosen(rows: pd.DataFrame, where: Mapping[str, Any]) -> pd.DataFrame:
    """The rows that have these values; of a list of values any (NaN among them: where there is none).

    >>> chosen(pd.DataFrame({"bits": [16, 64, float("nan")]}), {"bits": [16, float("nan")]}).index.to_list()
    [0, 2]
    """
    for column, value in where.items():
        rows = rows[rows[column].isin(np.atleast_1d(value))]
    return rows


def _ours(paper: str, rows: pd.DataFrame, encoder: str) -> dict[str, str]:
    """The features as they are, compared by cosine, and with the paper's head.

    Hyper-DINO: test images of both fold rules; linear prototypes: queries of groups that nothing was fitted on.
    """
    if paper == "hyper_dino":
        head = next(name for name in rows["method"] if name.startswith("Hyper-DINO("))
        ways, where = rows["method"].map({PLAIN: "plain", head: "head"}), rows["rule"]
    else:
        rows = rows.query("gallery == 'closed' and encoder == @encoder")
        ways, where = rows["method"].map({PT: "plain", TL: "head"}), pd.Series("by group", rows.index)
    where = where.where(where == "by image", "by group")
    values = rows.assign(way=ways, where=where).pivot_table(index=["where", "k"], columns="way", values="ours")
    return {f"{rule}: {what}": arrow(**best) for rule in set(where) for what, best in _ends(values.loc[rule])}


def _ends(values: pd.DataFrame) -> list[tuple[str, dict[str, float]]]:
    """The rows of the smallest and of the largest k."""
    return [("first", dict(values.loc[values.index.min()])), ("list", dict(values.loc[values.index.max()]))]


def _published(paper: str, dataset: str) -> dict[str, str]:
    """The best published rows for a dataset; nothing where the paper has none."""
    if paper == "hyper_dino" and dataset in TABLES:
        best = published(dataset).pivot_table(index="k", columns="family", values="published", aggfunc="max")
        best = best.reindex(columns=["baseline", "32"]).set_axis(["plain", "head"], axis=1)
        in_text = headlines().set_index("dataset")["baseline"]  # the table of BreakHis 200X has no baseline
        best["plain"] = best["plain"].fillna(pd.Series({20: in_text[dataset]}))
        return {f"published: {what}": arrow(**cells) for what, cells in _ends(best)}
    if paper == "linear_prototypes" and dataset in THEIR_NAMES:
        best = gains().set_index("dataset").loc[THEIR_NAMES[dataset]]
        before, after = f"{best['best_pt']} {percent(best['pt'])}", f"{best['best_tl']} {percent(best['tl'])}"
        return {"published: list": f"{before} → {after}, k not stated"}
    return {}


def arrow(plain: float, head: float) -> str:
    """``plain → head``, with a dash for the first where it is not printed.

    >>> arrow(88.46, 94.61), arrow(float("nan"), 78.91)
    ('88.46 → 94.61', '– → 78.91')
    """
    return f"{percent(plain)} → {percent(head)}"
