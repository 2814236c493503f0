"""The first answer under every ranking, by hand and against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from lib.papers.acir.hashing.experiment import ACIR
from lib.papers.acir.ranking import first
from lib.papers.acir.ranking.experiment import HAMMING, LEVELS, POOLED, Coder, Scene

RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 3
SCENE = Scene(np.arange(20), np.arange(20, 60), LABELS)
POOL = RNG.normal(size=(60, 6))


def coder(h, levels=(), method="CSQ", repeat=0):
    return Coder(method, h.shape[1], repeat, h, [1.0], 3, dict(levels))


def test_equal_codes_leave_the_first_answer_to_chance():
    found = first.measured(coder(np.ones((60, 4))), POOL, SCENE).set_index("ranking")
    expected = (SCENE.relevant.mean(axis=1)).mean()
    assert found.loc[HAMMING, "first"] == pytest.approx(100 * expected)
    assert found.index.tolist() == [HAMMING, POOLED]


def test_codes_that_are_the_classes_are_always_right():
    h = np.where(np.eye(3)[LABELS] > 0, 1.0, -1.0)
    found = first.measured(coder(h, {"deep": POOL}, ACIR), POOL, SCENE)
    assert set(found["ranking"]) == {HAMMING, POOLED, LEVELS}
    assert (found[["first", "first_class", "macro_f1"]] == 100).all(axis=None)


def test_content_alone_gives_the_f1_of_scikit_learn():
    found = first.measured(coder(np.ones((60, 4))), POOL, SCENE).set_index("ranking")
    r = np.corrcoef(POOL)[:20, 20:]
    answer = LABELS[20:][r.argmax(axis=1)]
    assert found.loc[POOLED, "macro_f1"] == pytest.approx(100 * f1_score(LABELS[:20], answer, average="macro"))
    assert found.loc[POOLED, "first"] == pytest.approx(100 * (answer == LABELS[:20]).mean())


def test_a_class_that_the_archive_lacks_is_left_out():
    labels = LABELS.copy()
    labels[:4] = 7
    h = np.where(np.eye(3)[LABELS] > 0, 1.0, -1.0)
    found = first.measured(coder(h), POOL, Scene(np.arange(20), np.arange(20, 60), labels)).set_index("ranking")
    assert found.loc[HAMMING, "first"] == 100 and found.loc[HAMMING, "macro_f1"] == 100


def test_ties_are_not_decided_by_the_order_of_the_archive():
    answers = {first.chosen(np.zeros((1, 40)), LABELS[20:], seed).item() for seed in range(20)}
    assert answers == {0, 1, 2}


def test_the_table_ends_with_chance_and_the_commonest_class():
    coders = [coder(RNG.normal(size=(60, 4)), repeat=n) for n in (0, 1)] + [coder(RNG.normal(size=(60, 8)))]
    rows = first.table(coders, POOL, SCENE, 4, workers=1)
    assert rows["repeat"].tolist() == [0, 0, 1, 1] and set(rows["bits"]) == {4}
    lines = first.layout(rows, SCENE).splitlines()
    assert len(lines) == 2 + 2 + 2 and lines[2].count("±") == 2
    assert lines[-2].startswith("| chance | – | 33.") and lines[-1].startswith("| always the commonest class | – | – |")
