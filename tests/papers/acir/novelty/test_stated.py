"""What the text says of Table 3: errata AC-10 and AC-20, by hand and on the published values."""

import pandas as pd

from lib.papers.acir import published, stated
from lib.papers.acir.novelty.stated import enough, of_table_3

SAID = pd.DataFrame({"value": {"ac-56": 90.0, "ac-57": 0.8, "ac-58": 50.0, "ac-59": 250.0}})


def of_acir(*given):
    rows = of_table_3(*given)
    return rows[rows["erratum"] == "AC-10"]


def table(precision, recall, detected):
    numbers = {"precision": precision, "recall": recall, "detected": detected}
    return pd.DataFrame([{"method": "ACIR", "variant": "full"} | numbers, {"method": "ACIR", "variant": "w/o OOD"}])


def test_what_agrees_fits():
    said = SAID.assign(value=SAID["value"].where(SAID.index != "ac-57", 80.0))
    assert of_acir(table(90.0, 80.0, 250), said)["verdict"].tolist() == [stated.FITS] * 3


def test_a_fraction_with_a_percent_sign_is_told_from_a_wrong_value():
    assert of_acir(table(91.0, 80.0, 250), SAID)["verdict"].tolist() == [
        stated.NOT,
        "**a fraction, printed with %**",
        stated.FITS,
    ]
    assert of_acir(table(90.0, 81.0, 251), SAID)["verdict"].tolist() == [stated.FITS, stated.NOT, stated.NOT]


def test_the_published_table_says_what_the_erratum_says():
    rows = of_acir(published.novelty())
    assert rows["says"].tolist()[:2] == ["precision 90.2 %", "recall 0.901 %"]
    assert rows["own"].tolist() == ["90.8", "90.1", "402, 80.4"]
    assert rows["verdict"].tolist()[0] == stated.NOT and rows["verdict"].tolist()[2] == stated.FITS


def test_four_classes_have_too_few_images_for_the_test_set():
    """AC-20: 30 % of 653 is about 196."""
    (line,) = [row for row in of_table_3(published.novelty()).itertuples() if row.erratum == "AC-20"]
    assert line.own == "30 % of the images: 4 of 16 classes have fewer there, splenic lesion about 196 of 653"
    assert line.verdict == stated.NOT
    assert enough({"a": 1667, "b": 2000})["verdict"] == stated.FITS
    assert "1 of 2 classes" in enough({"a": 1666, "b": 2000})["own"]
