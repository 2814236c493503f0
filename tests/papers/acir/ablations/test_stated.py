"""What the text says of Table 2: erratum AC-11, on gains that are made up, and on the published ones."""

import pandas as pd
import pytest

from lib.papers.acir import stated
from lib.papers.acir.ablations import tables
from lib.papers.acir.ablations.stated import of_table_2

LOSS = ("L_WSC (CNN)", "L_WSC (ViT)", "L_WSC (hybrid)")
PARTS = ("PiT (hybrid over CNN)", "hybrid over ViT", *LOSS, "DaRF", "KAN", "CGR")
OF_MAP, OF_MAAP = (32, 33, 36, 38, 40, 42, 44, 46, 81, 82), (37, 39, 41, 43, 45, 47)


def said(**others):
    """Every gain of mAP is stated as 1, of maAP as 2, but for ``others``."""
    values = {f"ac-{number}": 1.0 for number in OF_MAP} | {f"ac-{number}": 2.0 for number in OF_MAAP}
    values |= {name.replace("_", "-"): value for name, value in others.items()}
    return pd.DataFrame({"claim": "gain", "value": values})


def gains(**others):
    """Every part is worth 1 in mAP and 2 in maAP."""
    return {"mAP": dict.fromkeys(PARTS, 1.0) | others, "maAP": dict.fromkeys(PARTS, 2.0)}


def test_what_agrees_fits():
    rows = of_table_2(gains(), said())
    assert rows["verdict"].tolist() == [stated.FITS] * 10 and set(rows["erratum"]) == {"AC-11"}
    assert rows["own"].tolist() == ["1.0"] * 2 + ["1.0 (2.0)"] * 6 + ["1.0"] * 2


@pytest.mark.parametrize(("claim", "place"), [("ac_38", 3), ("ac_39", 3), ("ac_47", 7), ("ac_82", 9)])
def test_one_stated_value_that_is_off_by_a_printed_digit_does_not_fit(claim, place):
    of_claim = 1.0 if claim in ("ac_38", "ac_82") else 2.0
    verdicts = of_table_2(gains(), said(**{claim: of_claim + 0.1}))["verdict"]
    assert verdicts.index[verdicts == stated.NOT].tolist() == [place]


def test_a_difference_that_the_printed_digit_does_not_show_fits():
    assert set(of_table_2(gains(KAN=1.0400001, DaRF=0.9599999), said())["verdict"]) == {stated.FITS}


@pytest.fixture(scope="module")
def theirs():
    return of_table_2({measure: tables.published_gains(measure) for measure in ("mAP", "maAP")})


def test_the_published_table_says_what_the_erratum_says(theirs):
    """Read off Section 4.3, Section 5 and Table 2."""
    off = theirs[theirs["verdict"] == stated.NOT]
    assert off[["says", "own"]].to_numpy().tolist() == [
        ["gain from L_WSC with the ViT backbone: 3.8 (3.3)", "3.7 (3.3)"],
        ["consolidation over ViT: 6", "5.0"],
    ]


def test_all_other_gains_of_the_text_agree(theirs):
    fits = theirs[theirs["verdict"] == stated.FITS]
    assert fits["own"].tolist() == [
        *("2.3", "5.0", "3.1 (3.3)", "1.8 (2.9)", "1.4 (1.5)", "0.9 (0.9)", "1.5 (1.3)", "2.3"),
    ]
