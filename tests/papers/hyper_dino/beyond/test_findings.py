"""Sentences say what the tables say, and turn when these turn."""

import numpy as np
import pandas as pd

from lib.papers.hyper_dino.beyond import experiment, findings


def test(difference: float, p_holm: float, **names: object) -> dict[str, object]:
    size = {
        "low": difference - 1,
        "high": difference + 1,
        "p_floor": 0.0002,
        "p_value": 0.001,
        "n_units": 24,
        "n_tests": 4,
    }
    return {"rule": "by patient", "k": 20, "difference": difference, "p_holm": p_holm} | size | names


test.__test__ = False


def test_switches_that_decide_are_counted_and_named():
    rows = pd.DataFrame(
        [
            test(np.nan, np.nan, method="default", rim=0.0, loss=0.25),
            test(-20.0, 0.01, method="as printed, not scaled", rim=41.2, loss=1.5),
            test(0.2, 0.9, method="delta 1e-5", rim=0.0, loss=0.25),
        ]
    )
    assert findings.switches(rows, 20) == [
        "k = 20: 1 of 2 switches change the score clearly; what is not clear could have shown 1.31",
        "k = 20: as printed, not scaled is worse than the default (-20.00 points, -21.00 to -19.00; p (Holm) = 0.010)",
    ]
    assert findings.printed(rows) == [
        "default: last loss 0.25, 0 % of the training images end at the rim",
        "as printed, not scaled: last loss 1.50, 41 % of the training images end at the rim",
    ]


def test_what_knowing_the_patient_is_worth():
    rows = pd.DataFrame([test(-2.0, 0.5, method="ball"), test(-9.0, 0.01, method="no mapper")])
    rows = rows.assign(group_kind="patient", n_queries=31)
    told, over = findings.knowing(rows, "ball")
    assert told.startswith(
        "k = 20, ball: the score with folds by patient is not clearly different from that with folds by image "
        "(-2.00 points, -3.00 to -1.00; p (Holm) = 0.500; could have shown "
    )
    assert over.startswith("tested over the 31 images whose patient has another one in the archive")


def test_sentences_are_about_the_classifier_by_its_probabilities():
    pairs = [(experiment.PROBABILITY, 2.0), (experiment.LOGITS, 3.0)]
    rows = pd.DataFrame([test(gain, 0.01, first="ball", second=second) for second, gain in pairs])
    (said,) = findings.sentences(rows)
    assert said.startswith(f"ball against {experiment.PROBABILITY}: ")


def test_the_gain_by_definition_and_by_who_chose():
    rows = pd.DataFrame({"rule": ["by image"] * 2, "definition": ["÷ k", "÷ hits found"], "gain": [19.1, 10.6]})
    assert findings.definitions(rows, 20) == [
        "k = 20, folds by image: the mapper's gain is +19.10 (÷ k), +10.60 (÷ hits found)"
    ]
    chosen = pd.DataFrame({"choice": ["test", "inner", "longest"], "k": 1, "value": [71.0, 70.0, 70.5]})
    (said,) = findings.choice(chosen, "test", "inner", "longest")
    assert "reports +1.00 points" in said
    chosen.loc[2, "value"] = 71.0
    assert "no luck" in findings.choice(chosen, "test", "inner", "longest")[1]


def outcomes(*found: tuple[int, float, float]) -> pd.DataFrame:
    return pd.DataFrame([test(difference, p_holm, k=k) for k, difference, p_holm in found])


def test_a_plain_sentence_joins_the_ks_of_one_outcome():
    same = outcomes((1, 1.0, 0.5), (20, -1.0, 0.6))
    shown = "; what is not clear could have shown 1.31"
    none = "no clear difference between ball and flat head at k = 1"
    assert findings.plain(same, "ball", "flat head") == f"{none} or 20{shown}"
    worse = outcomes((1, -1.0, 0.01), (20, -1.0, 0.01))
    assert findings.plain(worse, "ball", "flat head") == "ball is worse than flat head at k = 1 and 20"
    split = outcomes((1, 1.0, 0.5), (20, 1.0, 0.01))
    assert findings.plain(split, "ball", "flat head") == f"{none}; ball is better than flat head at k = 20{shown}"
    few = same.assign(p_floor=0.5)
    assert findings.plain(few, "ball", "flat head") == "too few groups to tell ball from flat head at k = 1 and 20"
    assert findings.plain(same.head(0), "ball", "flat head") == "not tested"


def test_the_largest_of_the_clear_switches_is_named():
    rows = pd.DataFrame(
        [
            test(np.nan, np.nan, method="default"),
            test(-20.0, 0.01, method="as printed, not scaled"),
            test(5.0, 0.01, method="whitened PCA"),
            test(30.0, 0.9, method="delta 1e-5"),
        ]
    )
    assert findings.largest_switch(rows, 20) == (
        "2 of 3 switches change MAP@20 clearly, most of all 'as printed, not scaled', by -20.00 points"
    )
    assert findings.largest_switch(rows[rows["method"] != "whitened PCA"], 20) == (
        "1 of 2 switches changes MAP@20 clearly: 'as printed, not scaled', by -20.00 points"
    )
    assert findings.largest_switch(rows.assign(p_holm=0.9), 20) == (
        "none of 3 switches changes MAP@20 clearly; what is not clear could have shown 1.31"
    )


def test_the_definition_that_makes_the_gain_look_largest():
    rows = pd.DataFrame({"definition": ["÷ min(k, relevant)", "÷ hits found", "÷ k"], "gain": [9.0, 2.0, 9.0]})
    both = pd.concat([rows.assign(rule=rule) for rule in ("by image", "by patient")])
    assert findings.kindest(both, 20) == (
        "the gain at k = 20 looks largest by ÷ min(k, relevant) and ÷ k, smallest by ÷ hits found "
        "(folds by image and by patient)"
    )
    assert findings.kindest(rows.assign(rule="by image", gain=3.0), 20) == (
        "the gain at k = 20 is the same by all definitions (folds by image)"
    )


def test_what_choosing_on_the_test_folds_adds():
    rows = [("test", 1, 71.0), ("inner", 1, 70.0), ("test", 20, 60.0), ("inner", 20, 60.0)]
    chosen = pd.DataFrame(rows, columns=["choice", "k", "value"])
    assert findings.luck(chosen, "test", "inner") == (
        "choosing on the test folds instead of on validation images adds +1.00 points at k = 1, +0.00 points at k = 20"
    )
