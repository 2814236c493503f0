"""What each paper claims, on real images: its method's score, its rivals', and the difference with its test."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd

from lib import paths
from lib.pipeline import profiles
from lib.pipeline.findings import CLASSIFIER, PLAIN, cell
from lib.study import measures, saved
from lib.study.markdown import percent, points


@dataclass(frozen=True)
class Claim:
    """What a paper claims: the method and a measure, and whom it is compared with.

    section, tables: where its scores are, in the first of these tables that a dataset has; rows: which of them.
    ours: the method there (``*`` for what differs between datasets); against: others → what a narrow column calls them.
    tests: which rows of the section's ``table_tests``. alike: those of its tests of class means, and their table.
    metric: what the tests compare.
    """

    name: str
    section: str
    tables: tuple[str, ...]
    rows: str
    ours: str
    against: Mapping[str, str]
    tests: str
    alike: tuple[str, str] = ("", "")
    metric: str = measures.FIRST
    theirs: Mapping[str, str] = field(default_factory=dict)


def _hyper_dino(k: int, rule: str, folds: str) -> Claim:
    against = {PLAIN: "plain features", CLASSIFIER: "linear classifier"}
    rows = f"{rule} and k == {k}"
    return Claim(
        f"Hyper-DINO, {folds}, MAP@{k}",
        "retrieval",
        ("table_opponents",),
        f"{rows} and metric == 'ap_min'",
        "Hyper-DINO(*",
        against,
        rows,
        ("table_tests_by_class", rows),
    )


def _label_tree(measure: str, key: str, alike: bool) -> Claim:
    against = {
        "no head": "plain features",
        "always the commonest class": "commonest class",
        "SupCon (Euclidean)": "SupCon",
    }
    by_class = ("table_tests", f"measure == '{measure}, class mean'") if alike else ("", "")
    tables = ("table_1", "table_2", "table_3", "table_results")
    rows, tests = f"measure == '{key}'", f"measure == '{measure}'"
    return Claim(f"HWC+LAM, {measure}", "results", tables, rows, "HWC+LAM (Euclidean)", against, tests, by_class)


def _hyp_vit(trained: str, table: str, methods: tuple[str, str, str]) -> Claim:
    ours, plain, sphere = methods
    against = {plain: "plain features", sphere: "Sph"}
    return Claim(f"Hyp: {trained}, Recall@1", "retrieval", (table,), "k == 1", ours, against, "k == 1")


def _acir(denominator: str, table: str, metric: str, alike: tuple[str, str] = ("", "")) -> Claim:
    name = f"ACIR: its loss only, one layer, MAP@100 ÷ {denominator}"
    return Claim(name, "hashing", (table,), CODES, "ACIR", ONE_LAYER, "", alike, metric, IN_TESTS)


ONE_LAYER = {"features, no code": "plain features", "linear classifier, no code": "linear classifier", "CSQ": "CSQ"}
IN_TESTS = {"ACIR": "ACIR-16bit", "CSQ": "CSQ-16bit"}
CODES = "gallery == 'closed' and (bits == 16 or bits.isna())"
CLAIMS = {
    "hyper_dino": (
        _hyper_dino(1, "rule != 'by image'", "by group"),
        _hyper_dino(20, "rule != 'by image'", "by group"),
        _hyper_dino(20, "rule == 'by image'", "by image"),
    ),
    "hyp_vit": (
        _hyp_vit("head on a frozen network", "table_2", ("Hyp", "no head", "Sph")),
        _hyp_vit(
            "end to end, few steps",
            "table_3",
            ("Hyp, end to end, encoder", "before training, encoder", "Sph, end to end, encoder"),
        ),
    ),
    "acir": (
        _acir("min(100, R)", "table_1_min", measures.FIRST, ("table_tests_by_class", "")),
        _acir("hits", "table_1", "ap_hits"),
        Claim(
            "ACIR: network, frozen stem, MAP@100 ÷ min(100, R)",
            "ranking",
            ("table_ties",),
            "bits == 16",
            "ACIR, mean of all levels",
            {"CSQ, Hamming alone": "CSQ"},
            "measure == 'ap_min' and bits == 16",
        ),
    ),
    "linear_prototypes": tuple(
        Claim(
            f"Prototypes, MAP@{k}",
            "retrieval",
            ("table_results",),
            f"gallery == 'closed' and metric == 'ap_min' and k == {k}",
            "efficientnet_lite0, TL",
            {"efficientnet_lite0, PT, as they are": "plain features"},
            f"k == {k}",
        )
        for k in (1, 15)
    ),
    "label_tree": (
        _label_tree("PC-Order", "order", False),
        _label_tree("HF1", "hf1", True),
        _label_tree("Top-1", "top1", True),
    ),
}
"""What each paper claims first, in the measures that it claims it in."""


def claims(paper: str) -> pd.DataFrame:
    """A row for each of a paper's :data:`CLAIMS`, real dataset that is built, and opponent of the method."""
    runs, lines = profiles.runs("sample"), []
    for claim in CLAIMS[paper]:
        for dataset in runs[f"{paper}_{claim.section}"]:
            folder = paths.report(paper, "sample", dataset, claim.section)
            file = next((file for name in claim.tables if (file := folder / f"{name}.csv").exists()), None)
            lines += claimed(claim, file) if file else []
    return pd.DataFrame(lines)


def claimed(claim: Claim, file: Path) -> list[dict[str, str]]:
    """The rows of a claim on one dataset: scores in percent, differences in points, averaged per group first."""
    rows = pd.read_csv(file).query(claim.rows)
    names = rows["name"] if "name" in rows else rows["method"]
    scores = rows["ours" if "ours" in rows else "ap_min"].set_axis(
        names + ", " + rows["ranking"] if "ranking" in rows else names
    )
    ours = next(name for name in scores.index if fnmatchcase(name, claim.ours))
    lines = []
    for name, title in claim.against.items():
        pair = [claim.theirs.get(method, method) for method in (ours, name)]
        untested = f"{points(scores[ours] - scores[name])} untested"
        lines.append(
            {
                "method and measure": claim.name,
                "images": saved.record(file)["images"].partition(",")[0],
                "method's score": percent(scores[ours]),
                "compared with": title,
                "its score": percent(scores[name]),
                "difference": _tested(file.with_name("table_tests.csv"), claim.tests, pair, claim.metric) or untested,
                "classes alike": _tested(file.with_name(f"{claim.alike[0]}.csv"), claim.alike[1], pair) or "–",
            }
        )
    return lines


def _tested(file: Path, rows: str, pair: list[str], metric: str = measures.FIRST) -> str:
    """The test of a pair of methods as a cell; nothing where none was made."""
    if not file.exists():
        return ""
    tests = measures.by(pd.read_csv(file), metric)
    tests = tests[(tests["first"] == pair[0]) & (tests["second"] == pair[1])]
    tests = tests.query(rows) if rows else tests
    return cell(next(tests.itertuples())) if len(tests) else ""
