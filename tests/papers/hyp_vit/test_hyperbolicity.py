"""Published and own values stand in one table, and every reading of the procedure has its number."""

import pandas as pd
import pytest

from lib.papers.hyp_vit import hyperbolicity

OURS = pd.DataFrame({"encoder": ["net", "texture"], "relative": [0.24, 0.36], "low": [0.2, 0.3], "high": [0.28, 0.4]})
LARGER = OURS.assign(size=2000, relative=[0.25, 0.4])


def test_ours_of_birds_and_the_largest_draws_stand_in_the_papers_own_column():
    rows = hyperbolicity.with_published(OURS, "cub", pd.concat([OURS.assign(size=60), LARGER]), 60)
    lines = hyperbolicity.LAYOUTS["table_1"](rows).splitlines()
    assert lines[0] == "|  | encoder | CUB-200 | Cars-196 | SOP | In-Shop |"
    assert lines[2] == "| published | ViT-S | 0.280 | 0.339 | 0.271 | 0.313 |"
    assert lines[5].startswith("| ours | net | 0.240 (0.200 to 0.280) | ")
    assert lines[8].startswith("| ours, 2,000 images a draw | texture | 0.400 ")


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
