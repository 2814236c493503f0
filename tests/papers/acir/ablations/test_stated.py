"""What the text says of Table 2: errata AC-11 and AC-12, on gains that are made up, and on the published ones."""

import pandas as pd
import pytest

from lib.papers.acir import published, stated
from lib.papers.acir.ablations import tables
from lib.papers.acir.ablations.stated import length, of_table_2, untold

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


def of_gains(*given):
    rows = of_table_2(*given)
    return rows[rows["erratum"] == "AC-11"]


def test_what_agrees_fits():
    rows = of_gains(gains(), said())
    assert rows["verdict"].tolist() == [stated.FITS] * 10 and set(rows["erratum"]) == {"AC-11"}
    assert rows["own"].tolist() == ["1.0"] * 2 + ["1.0 (2.0)"] * 6 + ["1.0"] * 2


@pytest.mark.parametrize(("claim", "place"), [("ac_38", 3), ("ac_39", 3), ("ac_47", 7), ("ac_82", 9)])
def test_one_stated_value_that_is_off_by_a_printed_digit_does_not_fit(claim, place):
    of_claim = 1.0 if claim in ("ac_38", "ac_82") else 2.0
    verdicts = of_gains(gains(), said(**{claim: of_claim + 0.1}))["verdict"]
    assert verdicts.index[verdicts == stated.NOT].tolist() == [place]


def test_a_difference_that_the_printed_digit_does_not_show_fits():
    assert set(of_gains(gains(KAN=1.0400001, DaRF=0.9599999), said())["verdict"]) == {stated.FITS}


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
    fits = theirs[(theirs["verdict"] == stated.FITS) & (theirs["erratum"] == "AC-11")]
    assert fits["own"].tolist() == [
        *("2.3", "5.0", "3.1 (3.3)", "1.8 (2.9)", "1.4 (1.5)", "0.9 (0.9)", "1.5 (1.3)", "2.3"),
    ]


def test_the_length_of_the_codes_is_found_in_table_1_and_the_missing_alpha_is_named(theirs):
    """AC-12: 70.1 (68.0) is ACIR at 16 bits on RadIN-CT; 0.25 has no value in the text."""
    told = theirs[theirs["erratum"] == "AC-12"]
    assert told["verdict"].tolist() == ["**RadIN-CT, 16 bits alone**", "**0.25 not reported**"]
    assert told["own"].iloc[0].startswith("all parts together, 70.1 (68.0), are in Table 1 at: RadIN-CT, 16 bits")


def test_two_lengths_that_fit_decide_nothing():
    maps = published.maps()
    ours = maps[(maps["method"] == "ACIR") & (maps["dataset"] == "radin_ct")]
    twice = pd.concat([ours, ours[ours["bits"] == 16].assign(bits=32)])
    assert length(published.ablation(), twice)["verdict"] == stated.NOT
    assert length(published.ablation(), ours[ours["bits"] == 8])["own"].endswith("no length")


def test_no_alpha_is_missing_where_all_are_told():
    told = pd.DataFrame({"alpha": [0.0, 0.25, 0.5, 0.75, 1.0]})
    assert untold(told)["verdict"] == stated.FITS
