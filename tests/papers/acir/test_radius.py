import numpy as np
import pandas as pd
import pytest

from lib.metrics import hashing
from lib.papers.acir import published, radius

H = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, -1], [-1, -1, -1, -1], [-1, -1, 1, 1]], dtype=float)
LABELS = np.array([0, 0, 0, 1, 1])


def test_the_sentences_find_what_the_published_table_says():
    lines = radius.claims(published.radii())
    assert "CSQ changes by -2.9 points of precision and +1.8 of recall" in lines[0]
    assert "in accuracy from R = 3 on, in recall from R = 4 on" in lines[1]
    assert lines[2] == "at R = 7 ACIR is 1.3 points above CSQ in accuracy"


@pytest.mark.parametrize(
    ("values", "words"),
    [([1, 1], "at every R"), ([-1, 1], "from R = 1 on"), ([1, -1], "not at the largest R"), ([-1, 0], "at no R")],
)
def test_where_a_lead_begins_is_said_in_words(values, words):
    assert radius._from(pd.Series(values)) == words


def test_centralisation_is_counted_by_hand():
    found = radius.centralisation(H, H, LABELS, LABELS)
    assert found["distinct"] == (2 + 2) / 2
    assert found["largest"] == pytest.approx(100 * (2 / 3 + 1 / 2) / 2)
    assert found["spread"] == pytest.approx(((0 + 1 + 1) / 3 + 2) / 2)
    pairs = [hashing.hamming(hashing.pack(H[[a]]), hashing.pack(H[[b]])).item() for a in (0, 1, 2) for b in (3, 4)]
    assert found["apart"] == pytest.approx(np.mean(pairs))


def test_what_lies_at_a_centre_is_answered():
    query = np.array([[1, 1, 1, 1], [1, -1, 1, 1], [1, 1, 1, 1]], dtype=float)
    gallery, labels = np.array([[1, 1, 1, 1], [-1, -1, -1, -1]], dtype=float), np.array([0, 1])
    found = radius.centralisation(query, gallery, np.array([0, 0, 1]), labels)
    assert found["answered"] == pytest.approx(100 * 2 / 3) and found["right"] == pytest.approx(50)


def test_a_class_of_one_image_has_no_spread_and_is_left_out():
    found = radius.centralisation(H, H[[0, 1, 3]], LABELS, LABELS[[0, 1, 3]])
    assert found["spread"] == 0.0 and found["distinct"] == 1.0


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
    rows = pd.concat([trivial.assign(method="CSQ", n_rejected=2, accuracy=60.0), trivial])
    theirs = published.radii().query("method == 'CSQ'")
    head, _, *lines = radius.layout(rows, theirs).splitlines()
    assert head == f"| R | CSQ, published | CSQ, ours | {radius.COMMONEST} | queries in no ball |"
    assert lines == ["| 1 | 73.3 (79.1 / 73.3) | 60.0 (37.5 / 50.0) | 75.0 (37.5 / 50.0) | 2 to 2 |"]


def test_a_lead_is_counted_training_by_training():
    rows = pd.DataFrame(
        [
            {"method": name, "radius": r, "repeat": repeat, "accuracy": value}
            for r, values in {0: [(60, 50), (40, 50), (55, 50)], 3: [(90, 80), (91, 80), (92, 80)]}.items()
            for repeat, pair in enumerate(values)
            for name, value in zip(("ACIR", "CSQ"), pair, strict=True)
        ]
    )
    assert radius.leads(rows) == [
        "R = 0: ACIR is above CSQ in 2 of 3 trainings (-10.0 to +10.0 points)",
        "R = 3: ACIR is above CSQ in 3 of 3 trainings (+10.0 to +12.0 points)",
    ]
    own = radius.means(rows)
    assert own.loc[(own["method"] == "ACIR") & (own["radius"] == 0), "accuracy_spread"].item() == pytest.approx(
        10.41, abs=0.01
    )
