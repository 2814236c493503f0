"""The README's findings follow from tests, and are not what anybody would like them to be."""

import pandas as pd
import pytest

from lib import paths
from lib.pipeline import findings
from lib.pipeline.scores import PLAIN

GROUPS = {"n_units": 9, "n_tests": 8, "p_floor": 0.002, "low": -1.0, "high": 1.0, "title": "Kather"}
GAINS = [("raw features, cosine", 20, 2.75, 0.2), ("raw features, cosine", 1, 4.5, 0.001), ("NCA(32)", 1, 8, 0.01)]
RARE = [("raw features, cosine", 20, -6.25, 0.01), ("linear classifier, probability", 20, -7.75, 0.01)]
LARGER = [("closed, by slide", 1, -3.25, 0.01), ("closed, by slide", 20, 1, 0.5), ("open, by slide", 20, 1.5, 0.01)]
NEW = [("raw features, cosine", 20, 4.25, 0.6), ("raw features, cosine", 1, -2.25, 0.01), ("no mapper", 1, 9, 0.01)]
NEW += [("flat, half margin", 20, -4.5, 0.02)]
AGAIN = [("own slide in the archive (ball)", "closed, by slide", 20, 9.75, 0.3)]
AGAIN += [("head: ball, not none", "open, by slide", 20, 8.25, 0.3)]
AGAIN += [("head: ball, not linear classifier (probability)", "open, by slide", 20, -9.0, 0.2)]
AGAIN += [("encoder: pretrained, not texture (linear classifier on both)", "closed, by slide", 1, -14.25, 0.3)]
HEAD = "Hyper-DINO(PCA(8), 4)"
VOTES = [(HEAD, "closed", 1, 68.4), (HEAD, "whole", 3, 14.14), ("raw features, cosine", "closed", 1, 66.45)]
VOTES += [("raw features, cosine", "whole", 3, 20.59), ("NCA(32)", "open", 3, 99)]
SCORES = [(HEAD, "ap_hits", 61.5), ("raw features, cosine", "ap_hits", 60.25), (HEAD, "ap_min", 99)]


def frame(rows: list[tuple], *names: str, **same: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(names)).assign(**GROUPS, **same)


@pytest.fixture
def tables(monkeypatch) -> dict[findings.Place, pd.DataFrame]:
    """Committed tables of one dataset, as they might be."""
    names, by_slide = ("k", "difference", "p_holm"), {"rule": "by slide"}
    leak = [("ball", 20, -9.5, 0.01), ("raw features, cosine", 20, 1.25, 0.5), ("no mapper", 20, 8.25, 0.01)]
    control = [("flat, half margin", 20, -3.5, 0.01), ("no mapper", 20, 7.75, 0.2)]
    rests = [("closed, by image", 0.9, 0.5), ("closed, by slide", 0.5, 0.5), ("closed, by slide", 0.7, 4.0)]
    made = {
        findings.LEAKAGE: frame(leak, "method", *names),
        findings.FACTORS: frame(AGAIN, "factor", "archive", *names),
        findings.FACTORS_BY_CLASS: frame(AGAIN[2:3], "factor", "archive", *names),
        findings.CONTROL: frame(control, "second", *names, first="ball", **by_slide),
        findings.MARGINS: frame(LARGER, "rule", *names, first="ball, m0 = 4"),
        findings.REST: frame(rests, "archive", "norm", "m0", head="ball").assign(k=20),
        findings.TESTS: frame(
            [*GAINS, ("linear classifier, probability", 20, -1.5, 0.03)], "second", *names, **by_slide
        ),
        findings.BY_CLASS: frame(RARE, "second", *names, **by_slide),
        findings.GALLERY: frame(NEW, "second", *names, rule="open"),
        findings.VOTES: frame(VOTES, "method", "archive", "k", "macro_f1"),
        findings.SCORES: frame(SCORES, "method", "metric", "ours", **by_slide).assign(k=20),
    }
    monkeypatch.setattr(findings, "read", made.__getitem__)
    return made


def test_only_a_difference_above_0_that_is_clear_is_counted(tables):
    own, curvature, gain, unseen, texture = findings.findings()
    assert "clearly on 1 of 1 dataset**. With other folds and components (in notebook 90): on 0 of 1 dataset." in own
    assert (
        "helps on 0 of 1 dataset**" in curvature
        and "at the centre (median images, by group). At a larger margin (4)" in curvature
    )
    assert "a step there is 1.33 to 1.33 times as long" in curvature
    assert "the ball wins 1 of 3 comparisons and loses 1 (Kather)." in curvature
    assert "on 0 of 1 dataset over a list of 20, and on 1 of 1 dataset for the first answer**. If all classes" in gain
    assert "the gain over the list is +1.25 on Kather; these are means over queries and untested." in gain, (
        "the other denominator stands beside"
    )
    assert "classifier beats the head on 1 and loses on 0. If all classes count alike, it beats the head on 1" in gain
    assert "features on 0 of 1 dataset over the list and loses on 0.** For the first answer, it wins on 0 and" in unseen
    assert "flat space beats it on 1 (Kather) and loses on 0; in notebook 90 on 0 and 0 of 0 datasets." in unseen
    assert unseen.endswith("The linear classifier (in notebook 90) beats it on 0 and loses on 0.")
    assert texture.endswith(
        "classifier by +14.25 on Kather. Clear gains: 0; clear losses: 0; what is not clear could have shown 1.59."
    )


def test_what_is_not_clear_says_what_it_could_have_shown(tables):
    tables[findings.CONTROL]["p_holm"] = 0.4
    assert "helps on 0 of 1 dataset**; what is not clear could have shown 1.59. At" in findings.findings()[1]


def test_the_table_holds_every_difference_and_what_is_clear_is_bold(tables):
    rows = findings.differences().set_index("finding")
    least = "(1.6)"  # Student's t of 9 groups and 8 tests against that of one test
    cells = {number: rows.loc[[number], "Kather"].tolist() for number in (1, 2, 3, 4)}
    assert cells[1] == ["**+9.50**", f"+9.75 {least}", f"-1.25 {least}"]
    assert cells[2] == ["**-3.50**", "**-3.25**", f"+1.00 {least}", "**+1.50**"]
    f1, hits = "66.45 → 68.40", "+1.25"
    assert cells[3] == ["**+4.50**", f"+2.75 {least}", hits, "**-6.25**", f1, "**-1.50**", "**-7.75**"]
    assert cells[4][:2] == ["**-2.25**", f"+4.25 {least}"] and cells[4][3:5] == ["20.59 → 14.14", "**-4.50**"]
    assert rows["of"].loc[[3]].tolist()[:3] == ["first answer", "list of 20", "list of 20"]
    voted = rows[rows["difference"] == "F1, whole archive: plain → head"]
    assert voted["of"].tolist() == ["majority of 3"]


def test_a_set_that_could_not_have_shown_a_difference_is_no_no(tables):
    tables[findings.LEAKAGE]["p_floor"] = 0.05
    assert "clearly on 1 of 1 dataset" in findings.findings()[0], "one that is clear counts whatever the floor says"
    tables[findings.LEAKAGE]["p_holm"] = 0.4
    assert "clearly on 0 of 0 datasets that could tell (1 could not)" in findings.findings()[0]
    assert findings.differences()["Kather"].iloc[0] == "+9.50 (none)"


def test_a_head_that_rests_at_the_rim_enters_no_count(tables):
    tables[findings.MARGINS]["at_rim"] = [27.0, 27.0, 0.0]
    assert "the ball wins 1 of 1 comparison (2 at the rim) and loses 0." in findings.findings()[1]


def test_a_table_that_is_not_there_leaves_its_rows_out(tables):
    tables[findings.BY_CLASS] = tables[findings.VOTES] = pd.DataFrame()
    assert findings.differences()["finding"].tolist() == [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 5]
    assert "If all classes count alike, it does so on 0 and 0." in findings.findings()[2]


def test_the_committed_first_answer_in_a_new_archive_is_what_notebook_16_says():
    tests = findings.tests("new", ks=(findings.FIRST,)).set_index("title")
    folder = paths.report("hyper_dino", "sample", "ham10000", "beyond")
    row = pd.read_csv(folder / "table_gallery_tests.csv").query(
        "rule == 'open' and k == 1 and second == '" + PLAIN + "'"
    )
    assert tests.loc["HAM10000", "difference"] == row["difference"].item()
    assert f"wins on 0 and loses on {findings.losses(tests)} (HAM10000)." in findings.findings()[3]


def test_the_ruler_is_that_of_the_committed_norms():
    norms = [
        pd.read_csv(paths.report("beyond", "sample", name, "factors") / "table_margins.csv")
        .query("head == 'ball' and m0 == 0.5 and k == 20 and archive.str.startswith('closed, by ')")
        .query("archive != 'closed, by image'")["norm"]
        .item()
        for name in ("kather", "bh200x", "ham10000")
    ]
    told = sorted(1 / (1 - norm**2) for norm in norms)
    assert findings.rulers() == f"{told[0]:.2f} to {told[-1]:.2f}"
