"""The tables of scores in the README say what the committed reports and the papers say."""

import pandas as pd

from lib import paths
from lib.pipeline import scores
from lib.results import saved
from lib.results.markdown import percent, points


def test_every_paper_and_dataset_has_one_row_of_the_committed_values():
    rows = scores.table().set_index(["paper", "images"])
    assert rows.index.is_unique and set(rows.index.get_level_values(0)) == {"Hyper-DINO", "Linear prototypes"}
    built = {file.parts[-3] for file in (paths.ROOT / "reports/hyper_dino/sample").glob("*/retrieval/table_beside.csv")}
    assert sum(paper == "Hyper-DINO" for paper, _ in rows.index) == len(built)
    file = paths.report("hyper_dino", "sample", "bh200x", "retrieval") / "table_opponents.csv"
    values = pd.read_csv(file).set_index(["rule", "method", "metric", "k"])["ours"].sort_index()
    names = "raw features, cosine", "Hyper-DINO(PCA(384), 32)"
    plain, head = (values["by patient", name, "ap_min", 20] for name in names)
    row = rows.xs("Hyper-DINO").filter(like="BreakHis at 200X", axis=0).iloc[0]
    assert row["by group: list"] == f"{percent(plain)} → {percent(head)}"


def test_the_published_values_are_those_of_the_abstract_and_the_text():
    rows = scores.table()
    printed = {(row["paper"], row["images"].split(",")[0]): row["published: list"] for row in rows.to_dict("records")}
    assert printed["Hyper-DINO", "Kather 2016"] == "88.46 → 94.61"
    assert printed["Hyper-DINO", "BreakHis at 200X"] == "53.48 → 78.91"  # the baseline stands in the text alone
    assert scores._published("linear_prototypes", "ham10000") == {
        "published: list": "DINO 52.81 → Phikon-v2 68.15, k not stated"
    }


def test_a_value_that_is_printed_after_the_head_alone_says_so():
    rows = scores.table().set_index("images")["published: first"]
    assert rows.filter(like="BreakHis at 200X, 801").item() == "– → 79.00"


def test_prototypes_say_how_many_queries_and_classes_they_rest_on():
    file = paths.report("linear_prototypes", "sample", "bh200x", "retrieval") / "table_results.csv"
    first = pd.read_csv(file).query("gallery == 'closed'").iloc[0]
    rows = scores.table().query("paper == 'Linear prototypes'")["images"].tolist()
    assert f"BreakHis at 200X, {first['n_queries']} queries, {first['n_classes']}/8 classes" in rows


def test_scores_are_rounded_as_in_the_tables_themselves():
    """A mean of 21.4850 in the csv was a little more before it was written: both say 21.49."""
    folder = paths.report("linear_prototypes", "sample", "bh200x", "retrieval")
    row = scores.table().query("paper == 'Linear prototypes' and images.str.startswith('BreakHis')").iloc[0]
    plain, head = row["by group: list"].split(" → ")
    lines = saved.text(folder / "table_results.csv").splitlines()
    (of_plain,) = [line for line in lines if line.startswith("| closed | efficientnet_lite0, PT, as they are |")]
    (of_head,) = [line for line in lines if line.startswith("| closed | efficientnet_lite0, TL |")]
    assert f"| {plain} ±" in of_plain and f"| {head} ±" in of_head


def test_without_real_images_the_drawn_tiles_stand_and_nothing_published(monkeypatch):
    found = scores.profiles.runs
    monkeypatch.setattr(
        scores.profiles, "runs", lambda name: found("demo") if name == "demo" else {key: {} for key in found(name)}
    )
    rows = scores.table()
    assert set(rows["paper"]) == {"Hyper-DINO", "Linear prototypes"}
    assert rows["images"].str.startswith("procedural").all() and set(rows["published: list"]) == {"–"}


def rows_of(paper: str) -> pd.DataFrame:
    return scores.claims(paper).set_index(["method and measure", "images", "compared with"]).sort_index()


def test_each_paper_is_shown_by_its_own_claim_first():
    measures = scores.claims("label_tree")["method and measure"].unique().tolist()
    assert measures == [f"HWC+LAM, {measure}" for measure in ("PC-Order", "HF1", "Top-1")]
    assert {"its loss only, one layer", "network, frozen stem"} <= {claim.name for claim in scores.CLAIMS["acir"]}
    assert [claim.section for claim in scores.CLAIMS["hyp_vit"]] == ["retrieval"] * 2, "frozen, and end to end"


def test_a_claims_scores_and_gains_are_those_of_its_tables_and_tests():
    rows, folder = rows_of("hyp_vit"), paths.report("hyp_vit", "sample", "cub", "retrieval")
    rows = rows.loc["Hyp: head on a frozen network, Recall@1", "CUB-200-2011 birds"]
    values = pd.read_csv(folder / "table_2.csv").query("k == 1").set_index("method")["ours"]
    assert rows.loc["plain features", "its score"] == percent(values["no head"])
    assert set(rows["method's score"]) == {percent(values["Hyp"])}
    tests = pd.read_csv(folder / "table_tests.csv").query("first == 'Hyp' and k == 1").set_index("second")
    assert rows.loc["Sph", "difference"] == scores.gain_cell(next(tests.loc[["Sph"]].itertuples()))
    assert rows.loc["plain features", "difference"] == f"**{points(tests.loc['no head', 'difference'])}**"
    tree = pd.read_csv(paths.REPORTS / "label_tree/sample/odir/results/table_2.csv").query("measure == 'order'")
    values = tree.set_index("method")["ours"]
    rows = rows_of("label_tree").loc["HWC+LAM, PC-Order", "ODIR-5K fundus photographs"]
    assert rows.loc["plain features", "its score"] == percent(values["no head"])
    assert rows.loc["commonest class", "its score"] == percent(values[scores.BLIND])
    assert rows.loc["commonest class", "difference"] == "–"


def test_a_gain_over_a_list_stands_under_both_denominators_and_says_where_it_is_untested():
    rows, folder = rows_of("acir"), paths.report("acir", "sample", "ham10000", "hashing")
    tests = pd.read_csv(folder / "table_tests.csv").query("first == 'ACIR-16bit'").set_index("second")
    name = "ACIR: its loss only, one layer, MAP@100 ÷"
    by_min = rows.loc[f"{name} min(100, R)", "HAM10000", "plain features"]
    assert by_min["difference"] == f"**{points(tests.loc['features, no code', 'difference'])}**"
    codes = pd.read_csv(folder / "table_1.csv").query("gallery == 'closed' and (bits == 16 or bits.isna())")
    values, by_hits = codes.set_index("method")["ours"], rows.loc[f"{name} hits", "HAM10000", "plain features"]
    assert by_hits["difference"] == f"{points(values['ACIR'] - values['features, no code'])} untested"
