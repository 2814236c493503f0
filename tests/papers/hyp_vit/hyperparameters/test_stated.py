"""What text and captions say of Tables 4 and 5, on toy tables that are worked by hand, and on the published ones."""

import numpy as np
import pandas as pd

from lib.papers.hyp_vit.hyperparameters import stated

SAID = pd.DataFrame({"value": ["2.5"]}, index=["hv-16"])


def versions(**values: float) -> pd.DataFrame:
    """Recall@1 of both versions on In-Shop, and numbers that nobody should look at."""
    rows = [(f"Hyp-{name}", "in_shop", 1, value) for name, value in values.items()]
    rows += [("Hyp-ViT", "cub", 1, 0.0), ("Hyp-ViT", "in_shop", 10, 0.0)]
    return pd.DataFrame(rows, columns=["method", "dataset", "k", "value"])


def test_the_default_row_is_that_of_the_version_with_both_values():
    theirs = pd.DataFrame({"of": ["none", "c"], "encoder": [90.0, 80.0], "head": [91.0, 81.0]})
    _, first, second = stated.default(theirs, versions(ViT=91.0, DINO=91.0), versions(ViT=90.5, DINO=90.0))
    assert first == "  Hyp-ViT of Tables 3 and 2: encoder 90.5, head 91.0, not the same"
    assert second == "  Hyp-DINO of Tables 3 and 2: encoder 90.0, head 91.0, the same"


def test_gains_of_smaller_patches_are_told_place_by_place():
    lines = [(128, 8, 1, 82.5), (128, 16, 1, 80.0), (384, 8, 1, 91.0), (384, 16, 1, 90.0), (2048, np.nan, 1, 70.0)]
    rows = pd.DataFrame([*lines, (128, 8, 2, 1.0), (128, 16, 2, 2.0)], columns=["dim", "patch", "k", "value"])
    rows["batch"] = rows["patch"].map({8: 30.0})
    assert stated.finer(rows, SAID) == [
        "HV-14, the text: patches of 8 in place of 16 pixels gain 2.5 %; Table 4, Recall@1:",
        "  head: 82.5 − 80.0 = 2.5 points, fits",
        "  encoder: 91.0 − 90.0 = 1.0 points, does not fit",
        "  at the same time the batch falls from 900 to 30: two things change at once",
    ]


def test_the_published_tables():
    """Read off Tables 2 to 5; the erratum names the same numbers."""
    lines = [line.strip() for line in stated.sentences()]
    assert lines[0].endswith("its default row: encoder 92.4, head 92.6")
    assert lines[1:3] == [
        "Hyp-ViT of Tables 3 and 2: encoder 92.5, head 92.7, not the same",
        "Hyp-DINO of Tables 3 and 2: encoder 92.4, head 92.6, the same",
    ]
    assert lines[3].startswith("HV-14, the text: patches of 8 in place of 16 pixels gain 4.4 %")
    assert lines[4:] == [
        "head: 90.4 − 86.0 = 4.4 points, fits",
        "encoder: 92.8 − 89.2 = 3.6 points, does not fit",
        "at the same time the batch falls from 900 to 120: two things change at once",
    ]
