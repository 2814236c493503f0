"""Published and own values stand in one table, and every reading of the procedure has its number."""

import pandas as pd
import pytest

from lib.papers.hyp_vit import hyperbolicity

OURS = pd.DataFrame({"encoder": ["net", "texture"], "relative": [0.24, 0.36], "low": [0.2, 0.3], "high": [0.28, 0.4]})
LARGER = OURS.assign(size=2000, relative=[0.25, 0.4])


@pytest.mark.parametrize("dataset", ["tissue", "cub"])
def test_table_1_has_the_papers_layout_with_ours_and_the_largest_draws_below(dataset):
    rows = hyperbolicity.with_published(OURS, dataset, pd.concat([OURS.assign(size=60), LARGER]), 60)
    lines = hyperbolicity.LAYOUTS["table_1"](rows).splitlines()
    head, _, *cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    ours = ["procedural H&E-like tiles"] if dataset == "tissue" else []  # birds stand in the paper's own column
    assert head == ["", "encoder", "CUB-200", "Cars-196", "SOP", "In-Shop", *ours]
    assert cells[0][:6] == ["published", "ViT-S", "0.280", "0.339", "0.271", "0.313"]
    assert [row[0] for row in cells[3:]] == ["ours", "ours", *2 * ["ours, 2,000 images a draw"]]
    column = head.index(ours[0] if ours else "CUB-200")
    assert cells[3][column] == "0.240 (0.200 to 0.280)" and cells[6][column].startswith("0.400")


def test_every_procedure_is_named_with_its_number():
    own = pd.DataFrame({"encoder": "net", "draw": [0, 1], "relative": [0.2, 0.3]})
    bases = pd.DataFrame({"encoder": "net", "draw": [0, 0, 1, 1], "base": [0, 1, 0, 1], "relative": [0.2, 0.3] * 2})
    ladder = pd.DataFrame({"encoder": "net", "size": [20, 60], "relative": [0.2, 0.25], "low": 0.1, "high": 0.3})
    rows = hyperbolicity.procedures(own, own.assign(relative=0.3), ladder, bases, 60).set_index("procedure")
    assert rows["relative"].to_dict() == pytest.approx(
        {
            "as in this notebook": 0.25,
            "L2-normalised": 0.3,
            "without the factor 2": 0.125,
            "20 instead of 60 images": 0.2,
            "2 images, first point as base": 0.2,
            "2 images, the worst of all base points": 0.3,
        }
    )
    assert rows["c"]["without the factor 2"] == pytest.approx(4 * rows["c"]["as in this notebook"])
