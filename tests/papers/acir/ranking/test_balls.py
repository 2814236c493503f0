"""mAP of lists that end at a ball, against one query's list written out, and what its sentences say."""

import numpy as np
import pandas as pd
import pytest

from lib.errors import InputError
from lib.papers.acir.ranking import balls, experiment

LABELS = np.array([0, 0, 0, 0, 1, 1])
SCENE = experiment.Scene(np.array([0, 4]), np.array([1, 2, 3, 5]), LABELS)
H = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, -1, -1], [-1, -1, -1, -1], [1, 1, 1, -1], [1, 1, 1, 1.0]])
CODER = experiment.Coder("ACIR", 4, 0, H, [1.0], 1)


def test_a_list_ends_at_the_rim_and_only_min_k_r_pays_for_what_is_left_out():
    """Query 0 (class 0; distances 0, 2, 4 and, of class 1, 0), query 4 (class 1; 1, 1, 3 and, of its class, 1)."""
    rows = balls.table([CODER], SCENE, 4, [0, 1, 4]).set_index("radius")
    # R = 0: query 0 has two images at distance 0, one of them right: 1 at the first place or 1/2 at the second.
    first = (1 + 1 / 2) / 2
    assert rows.loc[0, "ap_hits"] == pytest.approx(100 * first / 2)
    assert rows.loc[0, "ap_min"] == pytest.approx(100 * first / 3 / 2)
    assert rows["empty"].tolist() == [50.0, 0.0, 0.0]
    assert rows.loc[4, "ap_hits"] == pytest.approx(rows.loc[4, "ap_min"])


def test_a_query_without_an_image_of_its_class_is_no_part_of_any_mean():
    alone = experiment.Scene(np.array([0, 4]), np.array([1, 2, 3]), LABELS)
    rows = balls.table([CODER], alone, 4, [0])
    assert rows["empty"].item() == 0 and rows["ap_hits"].item() == 100


def test_a_radius_beyond_the_code_is_refused():
    with pytest.raises(InputError, match="radius 5: codes of 4 bits"):
        balls.table([CODER], SCENE, 4, [5])


def test_the_sentence_says_who_is_first_at_which_radius():
    values = {("ACIR", 0): (90, 10), ("ACIR", 4): (80, 80), ("CSQ", 0): (80, 40), ("CSQ", 4): (90, 70)}
    rows = pd.DataFrame(
        [
            {"method": m, "repeat": 0, "radius": r, "ap_hits": hits, "ap_min": least, "empty": 0.0}
            for (m, r), (hits, least) in values.items()
        ]
    )
    hits, least = balls.sentences(rows)
    assert hits == "AP over hits: ACIR from 80.0 to 90.0 by the radius; first is ACIR at R = 0; CSQ at R = 4"
    assert least == "AP over min(100, R): ACIR from 10.0 to 80.0 by the radius; first is CSQ at R = 0; ACIR at R = 4"
    assert "| 0 | 90.00 / 10.00 | 80.00 / 40.00 | 0.0 to 0.0 % |" in balls.layout(rows)
