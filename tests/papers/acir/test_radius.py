"""Balls around class centres, by hand, and Table 6."""

import numpy as np
import pandas as pd
import pytest

from lib.papers.acir import published, radius

H = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, -1], [-1, -1, -1, -1], [-1, -1, 1, 1]], dtype=float)
LABELS = np.array([0, 0, 0, 1, 1])


def test_queries_without_a_class_in_the_archive_are_counted():
    frame = radius.by_radius(H, H[:3], LABELS, LABELS[:3], [0, 4])
    assert frame["n_left_out"].tolist() == [2, 2] and frame["accuracy"].tolist() == [pytest.approx(200 / 3), 100]


def test_the_commonest_class_is_a_trivial_answer_at_every_radius():
    """Archive a a b; four queries a, one b and one c, which the archive lacks: 4 of 5 right, b never."""
    found = radius.commonest(np.array(list("aaaabc")), np.array(list("aab")), [0, 3])
    assert found["accuracy"].tolist() == [pytest.approx(80)] * 2 and found["recall"].tolist() == [50.0] * 2
    assert found["precision"].tolist() == [pytest.approx(100 * (4 / 5 + 0) / 2)] * 2
    assert found[["n_rejected", "n_left_out", "n_empty"]].values.tolist() == [[0, 1, 1]] * 2


def test_published_radii_that_we_lack_are_not_shown_and_a_trivial_answer_rejects_nobody():
    trivial = radius.commonest(np.array(list("aaab")), np.array(list("aab")), [1])
    ours = [trivial.assign(method="CSQ", n_rejected=2, accuracy=60.0 + 2 * n, repeat=n) for n in (0, 1)]
    head, _, *lines = radius.table_6(pd.concat([*ours, trivial])).splitlines()
    assert head.startswith("| R | CSQ, published |") and len(lines) == 1
    assert head.endswith(f"| CSQ, ours | {radius.COMMONEST} | queries in no ball |")
    assert lines[0].startswith("| 1 | 73.3 (79.1 / 73.3) |")
    assert lines[0].endswith("| 61.0 ± 1.4 (37.5 / 50.0) | 75.0 (37.5 / 50.0) | 2 to 2 |")


def test_precision_of_csq_falls_from_0_to_1_in_the_published_table():
    """Erratum AC-19; and ACIR is above CSQ in accuracy from R = 3 on."""
    by = published.radii().pivot(index="radius", columns="method")
    assert by["precision", "CSQ"][1] - by["precision", "CSQ"][0] == pytest.approx(-2.9)
    lead = by["accuracy", "ACIR"] - by["accuracy", "CSQ"]
    assert lead.index[lead > 0].tolist() == [3, 4, 5, 6, 7]
