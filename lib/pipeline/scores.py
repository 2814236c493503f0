"""The tables of scores of every paper, ours beside the published values, from the committed ``reports/``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib import paths
from lib.metrics.significance import could_show
from lib.papers.hyper_dino.published import TABLES, headlines, published
from lib.papers.linear_prototypes.published import DATASETS as THEIR_NAMES
from lib.papers.linear_prototypes.published import PT, TL, gains
from lib.pipeline import index, profiles
from lib.results import denominators, paired, saved
from lib.results.markdown import percent, points

OTHER_MAGNIFICATIONS = paths.DRAWN[1:]
TABLES_OF = {"hyper_dino": "table_opponents", "linear_prototypes": "table_results"}
PLAIN = "raw features, cosine"
CELLS = [f"{where}: {what}" for where in ("by image", "by group", "published") for what in ("first", "list")]


@dataclass(frozen=True)
class Claim:
    """What a paper claims: a measure, and its method, features as they are, and the rival that it names.

    Rows are those of the section's table where the columns of ``where`` have these values; ``of`` are those of its
    ``table_tests`` (first, second, and columns), and with ``plain`` as the second the gain over plain features;
    ``by_class`` of its tests of class means, and ``classes`` their table; ``beside``: what else a method is held
    against: a simple opponent, or a rule that does not look at images; ``divided``: the denominator of its tests, as
    :func:`lib.results.denominators.ways` calls it.
    """

    name: str
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
    divided: str = ""


TREE, FLAT_TREE, BLIND = "HWC+LAM (Euclidean)", "SupCon (Euclidean)", "always the commonest class"
LINEAR = "linear classifier, no code"
SIMPLE = {BLIND: "commonest class", LINEAR: "linear classifier"}
"""What a method is held against besides its rival, in a narrow column."""


def _by_tree(measure: str, key: str, by_class: bool) -> Claim:
    """The label tree's claim in one measure, with tests of class means where they are made."""
    of = {"first": TREE, "second": FLAT_TREE, "measure": measure}
    return Claim(
        "",
        "results",
        ("table_1", "table_2", "table_3", "table_results"),
        measure,
        {"measure": key},
        "no head",
        TREE,
        FLAT_TREE,
        of,
        by_class=of | {"measure": f"{measure}, class mean"} if by_class else {},
        beside=BLIND,
    )


def _loss_of_acir(table: str, measure: str, divided: str) -> Claim:
    of = {"first": "ACIR-16bit", "second": "CSQ-16bit"}
    return Claim(
        "its loss only, one layer",
        "hashing",
        (table,),
        measure,
        {"gallery": "closed", "bits": [16, np.nan]},
        "features, no code",
        "ACIR",
        "CSQ",
        of,
        "table_tests_by_class",
        of,
        LINEAR,
        divided,
    )


CLAIMS = {
    "hyp_vit": (
        Claim(
            "head on a frozen network",
            "retrieval",
            ("table_2",),
            "Recall@1",
            {"k": 1},
            "no head",
            "Hyp",
            "Sph",
            {"first": "Hyp", "second": "Sph", "k": 1},
        ),
        Claim(
            "end to end, few steps",
            "retrieval",
            ("table_3",),
            "Recall@1",
            {"k": 1},
            "before training, encoder",
            "Hyp, end to end, encoder",
            "Sph, end to end, encoder",
            {"first": "Hyp, end to end, encoder", "second": "Sph, end to end, encoder", "k": 1},
        ),
    ),
    "acir": (
        _loss_of_acir("table_1_min", "MAP@100 ÷ min(100, R)", ""),
        _loss_of_acir("table_1", "MAP@100 ÷ hits", ", ÷ hits"),
        Claim(
            "network, frozen stem",
            "ranking",
            ("table_ties",),
            "MAP@100 ÷ min(100, R)",
            {"bits": 16},
            "",
            "ACIR, mean of all levels",
            "CSQ, Hamming alone",
            {"first": "ACIR, mean of all levels", "second": "CSQ, Hamming alone", "measure": "ap_min", "bits": 16},
        ),
    ),
    "label_tree": (_by_tree("PC-Order", "order", False), _by_tree("HF1", "hf1", True), _by_tree("Top-1", "top1", True)),
}
"""What each paper claims first, in the measures that it claims it in."""


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
            record = saved.record(file)
            named, count, *_, groups = record["images"].split(", ")
            encoder = record["encoder"].partition(" (")[0]  # the first, which leads
            rows = pd.read_csv(file).query("metric == 'ap_min'")
            shown = (
                f"{named}, {count.replace(' of ', '/')}, {groups}"
                if paper == "hyper_dino"
                else _described(record["images"], rows, encoder)
            )
            about = {"paper": index.PAPERS[paper], "images": shown, "encoder": encoder}
            ours = _ours(paper, rows, encoder)
            theirs = _published(paper, dataset) if profile == "sample" else {}
            lines.append(about | dict.fromkeys(CELLS, "–") | ours | theirs)
    return lines


def _described(images: str, rows: pd.DataFrame, encoder: str) -> str:
    """Which images, and how many queries of how many classes: the queries of the prototypes are few."""
    first = rows.query("gallery == 'closed' and encoder == @encoder").iloc[0]
    named, *about = images.split(", ")
    classes = next(part for part in about if part.endswith(" classes"))
    return f"{named}, {first['n_queries']} queries, {first['n_classes']}/{classes}"


def claims(paper: str) -> pd.DataFrame:
    """A row for each of a paper's :data:`CLAIMS`, real dataset that is built, and opponent of the method."""
    lines = []
    for claim in CLAIMS[paper]:
        for dataset in profiles.runs("sample")[f"{paper}_{claim.section}"]:
            folder = paths.report(paper, "sample", dataset, claim.section)
            files_of = [file for name in claim.tables if (file := folder / f"{name}.csv").exists()]
            if files_of:
                record = saved.record(files_of[0])
                lines += _claimed(claim, folder, files_of[0], record["images"].partition(",")[0])
    return pd.DataFrame(lines)


def _claimed(claim: Claim, folder: Path, file: Path, images: str) -> list[dict[str, str]]:
    """Rows of :func:`claims`: scores in percent, differences in points, averaged per group first."""
    rows = chosen(pd.read_csv(file), claim.where)
    names = rows["method"] if "ranking" not in rows else rows["method"] + ", " + rows["ranking"]
    ours = rows.get("ours", rows.get("ap_min")).set_axis(names)

    def gain(name: str, of: Mapping[str, Any], untested: str) -> str:
        if not of:
            return "–"
        tests = denominators.ways(pd.read_csv(folder / f"{name}.csv")).get(claim.divided, pd.DataFrame())
        tests = chosen(tests, of) if len(tests) else tests
        return gain_cell(next(tests.itertuples())) if len(tests) else untested

    def of(tests: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        return tests if name == claim.rival or not tests else {**tests, "second": name}

    titles = {claim.plain: "plain features", claim.beside: SIMPLE.get(claim.beside), claim.rival: short(claim.rival)}
    part = f": {claim.name}" if claim.name else ""
    return [
        {
            "method and measure": f"{short(claim.ours)}{part}, {claim.measure}",
            "images": images,
            "method's score": percent(ours[claim.ours]),
            "compared with": title,
            "its score": percent(ours[name]),
            "difference": "–"
            if name == BLIND
            else gain("table_tests", of(claim.of, name), f"{points(ours[claim.ours] - ours[name])} untested"),
            "difference, classes alike": gain(claim.classes, of(claim.by_class, name), "–"),
        }
        for name, title in titles.items()
        if name
    ]


def short(method: str) -> str:
    """A method's name in a narrow column.

    >>> short("HWC+LAM (Euclidean)"), short("Hyp, end to end, encoder"), short("CSQ, Hamming alone")
    ('HWC+LAM', 'Hyp', 'CSQ')
    """
    return method.removesuffix(" (Euclidean)").partition(",")[0]


def gain_cell(test: Any) -> str:
    """A test's difference in points: bold where clear, else with the smallest one that its set could have shown.

    "rim": of a head that is held at the rim, and is not counted; "equal": the two methods differ in nothing.

    test: a row of :func:`lib.results.differences.together`.

    >>> from types import SimpleNamespace as Test
    >>> test = {"p_floor": 0.002, "n_units": 3, "n_tests": 1, "low": -4.302653, "high": 4.302653}
    >>> gain_cell(Test(difference=1.5, p_holm=0.01, **test)), gain_cell(Test(difference=-2.0, p_holm=0.2, **test))
    ('**+1.50**', '-2.00 (4.3)')
    >>> gain_cell(Test(difference=-2.0, p_holm=0.2, **test | {"n_tests": 100}))
    '-2.00 (none)'
    """
    gain = points(test.difference)
    if getattr(test, "at_rim", 0) > paired.MOST_AT_RIM:
        return f"{gain} (rim)"
    if paired.relation(test) in paired.CLEAR:
        return f"**{gain}**"
    least = could_show(test)
    told = "equal" if np.isnan(least) else f"{least:.1f}" if np.isfinite(least) else "none"
    return f"{gain} ({told})"


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
