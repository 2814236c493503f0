"""Tests and sentences say what was planted: one factor helps, one costs, one does nothing."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lib.metrics.retrieval import PerQuery
from lib.papers.beyond.factors import costs, tables, verdicts
from lib.papers.beyond.factors.experiment import BALL, FLAT, LOGITS, NONE, PROBABILITY, with_margin
from lib.papers.beyond.factors.tables import CLASSIFIER
from lib.results import intervals, paired
from lib.results.answers import compare
from lib.training.methods import Answer, Health
from lib.training.splits import repeated, splits

N, SEEDS = 120, 3
GROUPS = np.array([f"p{i}" for i in np.arange(N) // 10])
LABELS = np.arange(N) % 4
RULES = {"by image": np.arange(N) % 3, "by patient": np.arange(N) // 10 % 3}


def answers(rule: str, level: float, noise: float = 0.01, health: Health | None = None) -> list[Answer]:
    """Every query's AP is about ``level``, that of a list half of it, and by hits an eighth."""
    done = []
    for split in repeated(splits(RULES[rule], 0), SEEDS):
        values = level + np.random.default_rng([split.seed, round(100 * level)]).normal(0, noise, size=len(split.test))
        columns = pd.MultiIndex.from_product([["ap_min", "ap_hits"], [1, 5]], names=["metric", "k"])
        per_query = PerQuery(
            pd.DataFrame(np.stack([values, values / 2, values, values / 8], axis=1), columns=columns),
            LABELS[split.test],
            np.full(len(split.test), 10),
            np.full(len(split.test), 40),
        )
        norms = np.full(4, level)
        done.append(Answer(SimpleNamespace(), split, health or Health(), [], norms, per_query))
    return done


ON_NET = {NONE: 0.5, LOGITS: 0.6, PROBABILITY: 0.4, BALL: 0.7, FLAT: 0.7}
LEVELS = {f"net, {name}": level for name, level in ON_NET.items()}
LEVELS |= {f"bare-untrained, {NONE}": 0.2, f"bare-untrained, {BALL}": 0.65, f"texture, {PROBABILITY}": 0.3}


@pytest.fixture(scope="module")
def found() -> dict:
    healthy = Health(0.1, 0.0, 30)
    return {
        archive: {
            name: answers(archive[-len(rule) :], level + bonus, health=healthy if BALL in name else None)
            for name, level in LEVELS.items()
        }
        for archive, rule, bonus in (
            ("closed, by image", "by image", 0.2),
            ("closed, by patient", "by patient", 0.0),
            ("open, by patient", "by patient", 0.0),
        )
    }


@pytest.fixture(scope="module")
def tests(found) -> pd.DataFrame:
    return tables.tested(found, "net", ["bare-untrained", "texture"], GROUPS, (1, 5), kind="patient")


def test_each_factor_earns_what_was_planted_and_the_own_group_too(tests):
    first = tests[(tests["k"] == 1) & (tests["archive"] == "closed, by patient")].set_index("factor")
    planted = {
        "encoder: pretrained, not untrained (no head on either)": 30,
        "encoder: pretrained, not untrained (ball on both)": 5,
        "encoder: pretrained, not texture (linear classifier on both)": 10,
        f"labels: {CLASSIFIER}, not none": -10,
        "head: ball, not none": 20,
        f"head: ball, not {CLASSIFIER}": 30,
        "curvature: ball, not flat": 0,
        "own patient in the archive (ball)": 20,
    }
    assert first["difference"].to_dict() == pytest.approx(planted, abs=0.5) and list(first.index) == list(planted)
    assert (first["low"] <= first["difference"]).all() and (first["n_seeds"] == SEEDS).all()
    assert set(tests["archive"]) == {"closed, by patient", "open, by patient"}
    own = tests["factor"].str.startswith("own")
    hits = tests["metric"] == "ap_hits"
    assert (len(tests), own.sum(), hits.sum()) == (7 * 2 * 3 + 2, 2, 7 * 2) and set(tests[hits]["k"]) == {5}
    wanted = np.where(own, 2, np.where(hits, 7 * 2, 7 * 2 * 2))
    assert (tests["n_tests"] == wanted).all(), "the own group is another question, and hits are the same ones again"


def test_sentences_name_gain_and_loss(tests):
    said = verdicts.sentences(tests)
    gain, curved, loss = (next(s for s in said if s.startswith(w)) for w in ("head: ball, not n", "curv", "labels"))
    by_hits = [line for line in said if ", ÷ hits: " in line]
    assert (len(said), len(by_hits)) == (8 + 7, 7) and "clearly a gain in 2 of 2" in by_hits[0]
    assert said[said.index(gain) + 1].startswith("head: ball, not none, ÷ hits: +2.")
    assert "clearly a gain in 4 of 4 tests, clearly a loss in 0" in gain
    assert "clearly a gain in 0 of 4 tests, clearly a loss in 4 (MAP@1, closed, by patient; " in loss
    assert "clearly a gain in 0 of 4 tests, clearly a loss in 0" in curved


def test_too_few_groups_are_said_to_be_too_few(found):
    few = np.where(np.arange(N) < 60, "p0", "p1")
    said = verdicts.sentences(tables.tested(found, "net", [], few, (1,)))
    assert not any(sentence.startswith("encoder") for sentence in said)
    assert all("clearly a gain in 0 of 0 tests that could tell (2 could not)" in s for s in said if "own" not in s)


def test_the_ranking_is_that_of_the_first_answers_differences(tests):
    head, *lines = verdicts.ranking(tests, 1)
    assert head == "MAP@1, closed, by patient, points earned:"
    earned = {line[9:]: float(line[:9]) for line in lines}
    assert list(earned.values()) == sorted(earned.values(), reverse=True)
    assert earned[f"labels: {CLASSIFIER}, not none"] == pytest.approx(-10, abs=0.5)
    head, *lines = verdicts.ranking(tests, 5)
    assert head == "MAP@5, closed, by patient, points earned (÷ hits):"
    assert next(line for line in lines if line.endswith("head: ball, not none")).startswith("  +10.0")
    assert sum("(" in line.partition("  ")[2][:18] for line in lines) == 7  # of the own group by min(k, R) alone


def test_what_came_out_counts_where_the_ball_is_better_and_worse_than_the_flat_head(tests):
    flat = tests[tests["factor"].str.startswith("curvature") & (tests["metric"] == "ap_min")]
    sure = flat.assign(p_holm=0.001, difference=[2.0, 2.0, -2.0, -2.0])
    other = sure.assign(second="net, no head")
    printed = sure.assign(first="ball, m0 = 0.5")  # the paper's own margin is not a larger one
    margin, tree = verdicts.came_out(pd.concat([sure, other, printed]), flat.assign(p_holm=1.0), 0.5)
    assert margin == "A larger margin, ball against flat head: of 4 tests 2 better, 2 worse"
    assert tree == "A tree of classes, ball against flat head: of 4 tests 0 better, 0 worse"
    assert len(verdicts.came_out(sure, None, 0.5)) == 1
    lines = verdicts.came_out(pd.concat([sure, sure.assign(metric="ap_hits", difference=-1.0)]), None, 0.5)
    assert lines[1] == "A larger margin, ball against flat head, ÷ hits: of 4 tests 0 better, 4 worse"


def margin_tests(differences: dict[float, list[float]], clear: float) -> pd.DataFrame:
    """Two tests of each margin; those of at least ``clear`` points are."""
    rows = [
        {"rule": "open", "first": f"{BALL}, m0 = {m0:g}", "second": FLAT, "k": k, "difference": found}
        for m0, several in differences.items()
        for k, found in zip((1, 20), several, strict=True)
    ]
    tests = pd.DataFrame(rows).assign(p_floor=1e-4, n_units=40, n_tests=8, low=-1.0, high=1.0)
    return tests.assign(p_holm=np.where(tests["difference"].abs() >= clear, 0.01, 0.5))


def test_larger_margins_are_summed_up_with_both_ways_where_there_are_both():
    head, two, four = verdicts.wider(margin_tests({0.5: [-9.0, 9.0], 2: [0.1, -0.2], 4: [-3.1, 1.6]}, 1.0), 0.5)
    assert head == "Larger margins, ball against flat head: the results go both ways"
    counts = "of 2 tests 0 better, 0 worse, 2 not clear (-0.20 to +0.10)"
    assert two == f"  m0 = 2: {counts}; what is not clear could have shown 1.43"
    assert four == "  m0 = 4: of 2 tests 1 better (open, MAP@20: +1.60), 1 worse (open, MAP@1: -3.10)"

    held = margin_tests({0.5: [-9.0, 9.0], 2: [0.1, -0.2], 4: [-3.1, 1.6]}, 1.0).assign(at_rim=[0, 0, 0, 0, 27.6, 27.6])
    head, _, four = verdicts.wider(held, 0.5)
    assert head.endswith("nothing is clear") and four == "  m0 = 4: of 0 tests (2 at the rim) 0 better, 0 worse"
    (margin,) = verdicts.came_out(held, None, 0.5)
    assert margin.endswith("of 2 tests (2 at the rim) 0 better, 0 worse")

    def said(several):
        return verdicts.wider(margin_tests({0.5: [-9.0, 9.0], 4: several}, 1.0), 0.5)[0].partition("head: ")[2]

    assert said([-3.0, -2.0]) == "the ball is worse wherever anything is clear"
    assert said([3.0, 0.2]) == "the ball is better wherever anything is clear"
    assert said([0.3, 0.2]) == "nothing is clear"
    assert verdicts.wider(margin_tests({0.5: [1.0, 2.0]}, 1.0), 0.5) == ["no margin above 0.5 was tested"]


def test_notebook_16_says_what_the_own_group_earns_where_its_table_has_what_is_lost():
    lost = {"method": BALL, "k": 1, "difference": -4.0, "low": -6.0, "high": -1.0, "p_value": 0.001, "p_holm": 0.01}
    lost |= {"p_floor": 1e-4, "n_units": 40, "n_tests": 2, "n_queries": 90, "group_kind": "lesion"}
    rows = pd.DataFrame([lost, lost | {"k": 20, "difference": 0.1, "p_holm": 0.6}, lost | {"method": "no mapper"}])
    first, last, over = verdicts.of_notebook_16(rows)
    assert first.endswith("MAP@1, earns points (+4.00 points, +1.00 to +6.00; p (Holm) = 0.010)")
    assert "MAP@20, no clear difference (-0.10 points" in last
    assert over.startswith("tested over the 90 images whose lesion has another one in the archive (40 lesions); a ")


def test_the_own_group_is_tested_where_it_can_touch(found, tests):
    """Half of the images are alone in their group: nothing of it is in the archive, and they are not tested."""
    alone = np.where(np.arange(N) < 60, [f"alone {i}" for i in range(N)], GROUPS)
    few = tables.tested(found, "net", [], alone, (1,), kind="lesion")
    own, all_of = (of[of["factor"].str.startswith("own")].iloc[0] for of in (few, tests))
    assert (own["n_queries"], own["n_units"]) == (60, 6) and (all_of["n_queries"], all_of["n_units"]) == (120, 12)
    over = "over the 60 images whose lesion has another one in the archive (6 lesions); a lesion is not a patient"
    assert over in tables.table_tests(few).caption
    assert sum(over in line for line in verdicts.answers(few)) == 1
    assert not any("over the" in line for line in verdicts.answers(few.drop(columns="n_queries")))


def test_a_head_at_the_rim_is_marked_in_the_tests(found):
    tests = compare({"open": found["open, by patient"]}, GROUPS, [(f"net, {BALL}", f"net, {FLAT}")], (1,))
    marked = tables.with_rim(tests, {"open": found["open, by patient"]})
    assert marked["at_rim"].tolist() == [0.0]
    held = [replace(one, health=Health(0.1, 27.6, 30)) for one in found["open, by patient"][f"net, {BALL}"]]
    marked = tables.with_rim(tests, {"open": found["open, by patient"] | {f"net, {BALL}": held}})
    layout = paired.tests_layout(marked)
    assert "| at the rim |" in layout and layout.endswith("| 27.6 %, not counted |")
    assert paired.sentences(marked)[0].endswith("; 28 % of a head at the rim, not counted)")


def test_caveats_name_who_is_left_out_and_what_class_means_turn_round():
    row = {"encoder": "net", "archive": "open", "k": 1, "n_queries": 10, "n_without_relevant": 4, "n_classes": 3}
    values = {tables.BALL: (50.0, 40.0), tables.NONE: (45.0, 35.0), tables.PROBABILITY: (48.0, 44.0)}
    rows = pd.DataFrame([row | {"method": name, "ours": o, "class_mean": c} for name, (o, c) in values.items()])
    left, turned = verdicts.caveats(rows)
    assert left == "open: 4 of 10 queries have no image of their class there, and are left out"
    assert turned.endswith("linear classifier, probability: +2.0 over queries, -4.0 over classes")
    few = verdicts.caveats(rows.assign(n_classes=1))
    assert few[1] == "open: only one class has any answer there; nothing can be concluded" and len(few) == 2
    assert verdicts.caveats(rows.drop(columns="n_classes")) == [left, turned]  # a report of an earlier version
    clean = rows.assign(n_without_relevant=0, class_mean=rows["ours"])
    assert verdicts.caveats(clean)[0].startswith("all queries have an answer")


def test_the_table_has_a_row_per_encoder_and_method_and_one_of_chance(found):
    rows = tables.all_values(found)
    lines = tables.factors_layout(rows).splitlines()
    assert len(lines) == 2 + len(LEVELS) + 1 and lines[-1].startswith("| chance | – | 25.0 (25.0) | ")
    ball = next(line for line in lines if f"| net | {BALL} |" in line).split(" | ")
    assert ball[2].startswith("90.") and ball[-3:] == ["0.100", "0.0 %", "30 |"]
    assert (
        set(rows["encoder"]) == {"net", "bare-untrained", "texture"}
        and set(rows["n_classes"]) == {4}
        and (rows["chance"] > 0).all()
    )


def test_the_health_of_several_archives_counts_each_fold_rule_once_in_both_tables(found):
    """Losses 0.1 and 0.5: closed and open archives of one rule are asked through the same trainings."""
    ended = {"by image": Health(0.1, 4.0, 30), "by patient": Health(0.5, 0.0, 30)}
    found = {
        archive: {name: [replace(one, health=ended[archive.partition(", ")[2]]) for one in several]}
        for archive, by_method in found.items()
        for name, several in by_method.items()
        if name == f"net, {BALL}"
    }
    by_bytes = tables.all_values(found).assign(bytes=64)
    for layout in (tables.factors_layout(by_bytes), costs.layout(by_bytes)):
        ball = next(line for line in layout.splitlines() if BALL in line)
        assert ball.endswith("| 0.300 | 4.0 % | 30 |")


def test_the_best_is_named_with_its_encoder(found):
    rows = tables.all_values(found)
    said = verdicts.best(rows[rows["method"] != FLAT], "bare-untrained", "open, by patient", 1)
    first, leading = re.fullmatch(
        rf"MAP@1, open, by patient: {BALL} on net has the highest score, (.+); on bare-untrained it is {BALL}, (.+)",
        said,
    ).groups()
    assert (float(first), float(leading)) == pytest.approx((70, 65), abs=0.5)


def test_margins_stand_side_by_side_with_the_norm_at_which_they_rest():
    planted = {(BALL, 1): 0.5, (FLAT, 1): 0.4, (BALL, 4): 0.6, (FLAT, 4): 0.3}
    levels = {with_margin(*where): level for where, level in planted.items()}
    ended = {name: Health(0.25 * level, 0.0, 30) for name, level in levels.items()}
    found = {"open, by patient": {name: answers("by patient", levels[name], 0, ended[name]) for name in levels}}
    rows = tables.margin_rows(found, [1.0, 4.0])
    by_head = rows[rows["k"] == 1].set_index(["head", "m0"])
    assert by_head["norm"].to_dict() == planted
    assert by_head["ours"].to_dict() == pytest.approx({where: 100 * level for where, level in planted.items()})
    lines = tables.table_margins(rows).markdown.splitlines()
    assert len(lines) == 4
    assert lines[-1].startswith("| open, by patient | 4 | 60.0 ± 0.0 (60.0) | 30.0 ± 0.0 (30.0) | 0.60 | 0.150 |")
    assert lines[0].count("last loss") == 2 and "0.0 % | 30 |" in lines[-1] and lines[-1].endswith(" 0.075 |")


def test_an_archive_in_which_too_few_classes_ask_is_not_tested(found):
    """All queries with an answer are of class 0, as on BreakHis, where one class has several patients."""

    def only_class_0(one):
        values = one.per_query.values.where(pd.Series(one.per_query.classes == 0), axis=0)
        return replace(one, per_query=replace(one.per_query, values=values))

    rest = found["open, by patient"].items()
    poor = found | {"open, by patient": {name: [only_class_0(one) for one in several] for name, several in rest}}
    assert list(tables.fair(poor)) == ["closed, by patient"] and tables.strict(poor) == tables.strict(found)
    assert set(tables.tested(poor, "net", [], GROUPS, (1,))["archive"]) == {"closed, by patient"}


def test_means_over_classes_are_tested_without_the_own_group(found):
    rows = tables.tested(found, "net", [], GROUPS, (1,), kind="patient", by_class=True)
    assert not rows["factor"].str.startswith("own").any() and (rows["n_tests"] == len(rows)).all()


def test_the_picture_has_a_full_bar_where_a_gain_is_clear_and_a_hollow_one_where_not(tests):
    shown = tables.figure_earned(tests)
    axis = shown.figure.axes[0]
    assert len(shown.rows) == len(axis.patches) == 8 and shown.rows["k"].eq(5).all()
    hollow = [patch.get_facecolor()[:3] == (1.0, 1.0, 1.0) for patch in axis.patches]
    ordered = shown.rows.sort_values("difference", ascending=False, kind="stable")
    assert hollow == (ordered["p_holm"] > 0.05).tolist() and any(hollow) and not all(hollow)
    dots = [line for line in axis.lines if line.get_marker() == "o"]
    assert [dot.get_xdata()[0] for dot in dots] == ordered["difference"].tolist()
    assert [dot.get_markerfacecolor() == "white" for dot in dots] == hollow
    assert "Full bars and dots are clear" in shown.caption


def test_the_picture_of_all_factors_says_that_its_intervals_are_not_corrected(found, tests):
    assert intervals.UNCORRECTED in tables.figure_factors(tables.all_values(found), tests, "net").caption


def test_the_numbers_of_the_picture_stand_beside_its_frame_and_its_bars_are_told_by_a_legend(tests):
    figure = tables.figure_earned(tests).figure
    (axis,), (legend,) = figure.axes, figure.legends
    figure.canvas.draw()
    frame = axis.get_window_extent()
    assert len(axis.texts) == 8 and all(text.get_window_extent().x0 > frame.x1 for text in axis.texts)
    assert {patch.get_edgecolor() for patch in axis.patches} == {axis.patches[0].get_edgecolor()}
    assert [text.get_text() for text in legend.get_texts()] == ["clear", "not clear", "95 % interval"]


def test_the_answer_to_each_question_is_one_sentence(tests):
    both = verdicts.answers(tests)
    said = [line for line in both if ", ÷ hits: " not in line]
    assert len(both) == 8 + 7 and len(said) == 8 == tests["factor"].nunique()
    by_factor = dict(zip(tests["factor"].unique(), said, strict=True))
    assert by_factor["head: ball, not none"].startswith("head: ball, not none: earns points in 4 of 4 tests (+")
    assert ": costs points in 4 of 4 tests (-" in by_factor[f"labels: {CLASSIFIER}, not none"]
    assert ": no clear difference in any of 4 tests (" in by_factor["curvature: ball, not flat"]
    one = tests[(tests["factor"] == "head: ball, not none") & (tests["metric"] == "ap_min")]
    mixed = one.assign(difference=[1.0, 1.0, -2.0, 3.0], p_holm=[0.01, 0.5, 0.01, 0.5])
    assert "earns points in 1 of 4 tests, costs points in 1 (-2.00 to +3.00); what" in verdicts.answers(mixed)[0]
    few = one.assign(p_holm=1.0, p_floor=1.0)
    assert f"too few groups to tell ({few['n_units'].max()}, with 28 tests)" in verdicts.answers(few)[0]


def test_where_images_rest_is_said_with_how_curved_it_is_there():
    rows = pd.DataFrame(
        {
            "head": [BALL, BALL, FLAT],
            "archive": "open",
            "m0": [0.5, 4, 4],
            "k": 1,
            "norm": [0.2, 0.5, 9],
            "rim": [5.0, 27.4, 0.0],
        }
    )
    (line,) = verdicts.rests(rows)
    assert line.startswith(
        "open, median norm and the ruler there against the centre's: m0 = 0.5: norm 0.20, 1.04 times"
    )
    assert line.endswith("; m0 = 4: norm 0.50, 1.33 times (27 % of the training images at the rim)")
