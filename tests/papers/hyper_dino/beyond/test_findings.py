"""Sentences say what the tables say, and turn when these turn."""

import numpy as np
import pandas as pd

from lib.papers.hyper_dino.beyond import findings


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
            test(-20.0, 0.01, method="as printed (start norm 0)", rim=41.2, loss=1.5),
            test(0.2, 0.9, method="delta 1e-5", rim=0.0, loss=0.25),
        ]
    )
    assert findings.switches(rows, 20) == [
        "k = 20: 1 of 2 switches change the score clearly",
        "k = 20: as printed (start norm 0) is worse than the default (-20.00 points, -21.00 to -19.00; "
        "p (Holm) = 0.010)",
    ]
    assert findings.printed(rows) == [
        "default: last loss 0.25, 0 % of the training images end at the rim",
        "as printed (start norm 0): last loss 1.50, 41 % of the training images end at the rim",
    ]


def test_what_knowing_the_patient_is_worth():
    rows = pd.DataFrame([test(-2.0, 0.5, method="ball"), test(-9.0, 0.01, method="no mapper")])
    assert findings.knowing(rows, "ball", "patient") == [
        "k = 20, ball: the score with folds by patient is not clearly different from that with folds by image "
        "(-2.00 points, -3.00 to -1.00; p (Holm) = 0.500)"
    ]


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
