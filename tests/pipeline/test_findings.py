"""Findings are committed tests and scores, and no more: what is clear, on which dataset, by which table."""

import shutil

import pandas as pd
import pytest

from lib import paths
from lib.pipeline import findings, scores
from lib.pipeline.findings import COMPARED, FIRST, LIST, PLAIN
from lib.study import measures
from lib.study.markdown import percent, points

TEST = {"n_units": 9, "n_tests": 8, "p_floor": 0.002, "low": -1.0, "high": 1.0, "title": "Kather"}
CLEAR, NOT, FEW = TEST | {"p_holm": 0.01}, TEST | {"p_holm": 0.5}, TEST | {"p_holm": 0.5, "p_floor": 0.05}
HEADS = r"^ball|^Hyp(?:, end|$)|Hyperbolic|Hyp-ViT head, ball"
TWINS = r"^flat|^Sph(?:, end|$)|Euclidean|sphere"


@pytest.mark.parametrize(
    ("test", "difference", "answer"),
    [
        (CLEAR, 2.0, "yes: **+2.00**"),
        (CLEAR, -2.0, "no: **-2.00**"),
        (NOT, 2.0, "unclear: +2.00 (1.6)"),  # Student's t of 9 groups and 8 tests against that of one test
        (FEW, 2.0, "unclear: +2.00 (none)"),
        (CLEAR | {"p_floor": 0.05}, 2.0, "yes: **+2.00**"),
        (CLEAR | {"at_rim": 27.0}, 2.0, "yes: +2.00 (rim)"),
    ],
)
def test_bold_is_what_is_clear_and_else_stands_what_could_have_been(test, difference, answer):
    rows = pd.DataFrame([test | {"difference": difference}])
    assert findings.answer(next(rows.itertuples())) == answer


def test_a_difference_has_the_sign_of_its_name_and_is_that_of_its_metric(monkeypatch):
    rows = [CLEAR | {"method": "ball", "k": LIST, "metric": metric, "difference": -9.5} for metric in ("ap_min", "x")]
    rows += [CLEAR | {"method": PLAIN, "k": LIST, "metric": "ap_min", "difference": 1.25}]
    monkeypatch.setattr(findings, "read", lambda *of: pd.DataFrame(rows))
    assert findings.tests(COMPARED["own"])["difference"].tolist() == [9.5]
    assert findings.tests(COMPARED["own_plain"])["difference"].tolist() == [-1.25]


def test_a_table_that_is_not_there_leaves_its_rows_out(monkeypatch):
    read = findings.read
    monkeypatch.setattr(findings, "read", lambda *of: pd.DataFrame() if of[0] == findings.BY_CLASS else read(*of))
    names = set(findings.differences()["difference"])
    assert {of.name for of in COMPARED.values() if of.place == findings.BY_CLASS}.isdisjoint(names)
    assert {of.name for of in COMPARED.values() if of.place != findings.BY_CLASS} <= names


def test_every_difference_is_that_of_its_committed_table():
    rows = findings.differences().set_index(["difference", "of"])
    folder = paths.report("hyper_dino", "sample", "ham10000", "beyond")
    tests = measures.by(pd.read_csv(folder / "table_gallery_tests.csv"))
    tests = tests.query(f"rule == 'open' and second == '{PLAIN}'")
    shown = findings.tests(COMPARED["new"]).query("title == 'HAM10000'").set_index("k")["difference"]
    assert shown.to_dict() == tests.set_index("k")["difference"].to_dict() and set(shown.index) >= {FIRST, LIST}
    for dataset, title in {"kather": "Kather", "bh200x": "BreakHis", "ham10000": "HAM10000"}.items():
        margins = pd.read_csv(paths.report("beyond", "sample", dataset, "factors") / "table_margins.csv")
        margins = margins.query("head == 'ball' and m0 == 0.5 and k == 20 and archive.str.startswith('closed, by ')")
        norm = margins.query("archive != 'closed, by image'")["norm"].item()
        length = rows.loc[("length of a step, times that at the centre", "median image"), title]
        assert length == percent(1 / (1 - norm**2))


def test_every_committed_test_of_a_head_and_its_flat_twin_is_counted_once():
    counted = findings.curvature()
    columns = counted[["better", "worse", "not clear", "could not tell"]]
    assert (columns.map(lambda cell: int(cell.partition(" ")[0])).sum(axis=1) == counted["tests"]).all()
    committed = 0
    for file in [*paths.REPORTS.glob("*/sample/*/*/table_*tests*.csv"), *paths.REPORTS.glob("*/gpu/*/*/*_tests*.csv")]:
        tests, large = measures.by(pd.read_csv(file)), file.parts[-4] == "gpu"
        left_out = (file.parts[-5], file.parts[-2]) in {("hyper_dino", "retrieval"), ("linear_prototypes", "retrieval")}
        apart = file.stem.endswith(("by_class", "label_tests"))  # the same heads, weighed otherwise
        apart |= file.stem.endswith("end_to_end") and not large
        if not left_out and not apart and "second" in tests:
            heads = tests["first"].str.contains(HEADS) & tests["second"].str.contains(TWINS)
            heads &= tests["first"].str.endswith("head") | (not large)  # their encoders have no twin in a ball
            same = tests["first"].str.partition(" (")[0] == tests["second"].str.partition(" (")[0]
            heads &= same | ~tests["first"].str.contains("Hyperbolic")
            heads &= ~tests.get("measure", pd.Series("", tests.index)).str.contains("class mean")
            committed += int((heads & ~(tests.get("at_rim", 0) > 5)).sum())
    assert counted["tests"].sum() == committed > 150


def test_large_trainings_stand_beside_the_sample_and_are_their_own():
    rows = findings.tests(COMPARED["along"])
    folders = paths.REPORTS.glob("hyper_dino/gpu/*/beyond/table_end_to_end_tests.csv")
    tests = pd.concat(map(pd.read_csv, folders)).query("first == 'ball, end to end, head' and rule != 'by image'")
    tests = measures.by(tests[tests["second"].str.startswith("flat")])
    assert sorted(rows["difference"]) == sorted(tests["difference"]) and len(rows) > 3


def test_a_clear_gain_of_the_ball_is_counted_on_its_dataset():
    folder = paths.report("label_tree", "sample", "ham10000", "results")
    tests = pd.read_csv(folder / "table_tests.csv").query("question == 'is the ball better than the sphere?'")
    gains = tests.query("measure == 'Top-1' and difference > 0 and p_holm <= 0.05")
    (row,) = findings.curvature().query("`ball compared with` == 'sphere: Top-1'").to_dict("records")
    assert len(gains) and row["better"] == f"{len(gains)} (HAM10000 {len(gains)})"


def rows_of(paper: str) -> pd.DataFrame:
    return scores.claims(paper).set_index(["method and measure", "images", "compared with"]).sort_index()


@pytest.mark.parametrize("paper", scores.CLAIMS)
def test_every_claim_stands_on_every_dataset_of_its_section(paper):
    rows = scores.claims(paper)
    for claim in scores.CLAIMS[paper]:
        folders = list((paths.REPORTS / paper / "sample").glob(f"*/{claim.section}"))
        built = [any((folder / f"{name}.csv").exists() for name in claim.tables) for folder in folders]
        assert rows["method and measure"].eq(claim.name).sum() == sum(built) * len(claim.against) > 0


def test_a_claims_scores_and_gains_are_those_of_its_tables_and_tests():
    rows, folder = rows_of("hyp_vit"), paths.report("hyp_vit", "sample", "cub", "retrieval")
    rows = rows.loc["Hyp: head on a frozen network, Recall@1", "CUB-200-2011 birds"]
    values = pd.read_csv(folder / "table_2.csv").query("k == 1").set_index("method")["ours"]
    assert rows.loc["plain features", "its score"] == percent(values["no head"])
    assert set(rows["method's score"]) == {percent(values["Hyp"])}
    tests = pd.read_csv(folder / "table_tests.csv").query("first == 'Hyp' and k == 1").set_index("second")
    assert rows.loc["Sph", "difference"] == findings.cell(next(tests.loc[["Sph"]].itertuples()))
    assert rows.loc["plain features", "difference"] == f"**{points(tests.loc['no head', 'difference'])}**"


ONE_LAYER = "ACIR: its loss only, one layer, MAP@100 ÷"


def test_a_gain_over_a_list_stands_under_both_denominators():
    rows, folder = rows_of("acir"), paths.report("acir", "sample", "ham10000", "hashing")
    tests = pd.read_csv(folder / "table_tests.csv").query("first == 'ACIR-16bit' and second == 'features, no code'")
    for denominator, metric in {"min(100, R)": "ap_min", "hits": "ap_hits"}.items():
        shown = rows.loc[f"{ONE_LAYER} {denominator}", "HAM10000", "plain features"]
        assert shown["difference"] == findings.cell(next(measures.by(tests, metric).itertuples()))


def test_a_gain_that_was_not_tested_by_its_measure_says_so(tmp_path):
    folder = shutil.copytree(paths.report("acir", "sample", "ham10000", "hashing"), tmp_path / "hashing")
    tests = pd.read_csv(folder / "table_tests.csv")
    measures.by(tests).drop(columns="metric").to_csv(folder / "table_tests.csv")
    (claim,) = (claim for claim in scores.CLAIMS["acir"] if claim.name == f"{ONE_LAYER} hits")
    codes = pd.read_csv(folder / "table_1.csv").query(claim.rows).set_index("method")["ours"]
    shown = next(row for row in scores.claimed(claim, folder / "table_1.csv") if row["compared with"] == "CSQ")
    assert shown["difference"] == f"{points(codes['ACIR'] - codes['CSQ'])} untested"
