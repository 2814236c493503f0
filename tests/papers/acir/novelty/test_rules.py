"""Table 3 by hand and by scikit-learn: precision and recall with OOD as one more class."""

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score

from lib.metrics import novelty
from lib.papers.acir.novelty import rules, scores
from lib.papers.acir.novelty.experiment import ACIR, NEAREST, RESIDUAL
from lib.papers.acir.novelty.rules import Rule
from lib.papers.acir.novelty.scene import ASIDE, FAR, KNOWN, LEARNT, NEAR
from lib.papers.acir.novelty.scores import Limit


@pytest.fixture(scope="module")
def found(scene, coders, decoders):
    return scores.of_all(scene, coders, decoders, workers=1)


def test_confusions_count_refusals_and_share_ties(scene, coders):
    one = coders["CSQ"][0]
    none = np.zeros(len(scene.labels), dtype=bool)
    none[scene.rows(FAR)[:3]] = True
    counts = rules.confusion(scene, one, none)
    assert counts.shape == (4, 4)
    assert counts[3, 3] == 3 and counts[:3, 3].sum() == 0
    np.testing.assert_allclose(
        counts.sum(axis=1), [*np.bincount(scene.labels[scene.rows(KNOWN)]), len(scene.rows(FAR))]
    )
    loop = np.zeros((4, 4))
    distance = one.distances(scene)
    for i in scene.rows(KNOWN, FAR):
        row = scene.labels[i] if scene.labels[i] >= 0 else 3
        if none[i]:
            loop[row, 3] += 1
        else:
            best = np.flatnonzero(distance[i] == distance[i].min())
            loop[row, best] += 1 / len(best)
    np.testing.assert_allclose(counts, loop)


def test_macro_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    true, given = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    counts = np.zeros((4, 4))
    np.add.at(counts, (true, given), 1)
    found = rules.macro(counts)
    assert found["precision"] == pytest.approx(precision_score(true, given, average="macro"))
    assert found["recall"] == pytest.approx(recall_score(true, given, average="macro"))


def test_a_class_that_nobody_asks_for_and_one_that_nobody_gets_are_no_division_by_zero():
    assert rules.macro(np.array([[0.0, 2.0], [0.0, 2.0]])) == {"precision": 0.25, "recall": 0.5}
    assert rules.macro(np.array([[0.0, 0.0], [1.0, 3.0]])) == {"precision": 1.0, "recall": 0.75}


def test_a_limit_refuses_in_addition_to_the_balls(scene, found):
    plain = rules.refused(scene, found, Rule(ACIR), bits=8)
    both = rules.refused(scene, found, Rule(ACIR, Limit(NEAREST)), bits=8)
    np.testing.assert_array_equal(plain, found[ACIR] > novelty.ball_radius(8))
    np.testing.assert_array_equal(both, plain | Limit(NEAREST).exceeded(scene, found))


def test_a_row_of_table_3_holds_what_its_rule_refuses(scene, coders, found):
    rule = Rule(ACIR, Limit(RESIDUAL, LEARNT))
    table = rules.table_3(scene, coders, found, 8, [Rule("CSQ"), rule])
    none = rules.refused(scene, found, rule, 8)
    for repeat in (0, 1):
        row = table[(table["rule"] == rule.name) & (table["repeat"] == repeat)].iloc[0]
        for part in (KNOWN, NEAR, FAR):
            assert row[part] == pytest.approx(100 * none[repeat, scene.rows(part)].mean())
        wanted = rules.macro(rules.confusion(scene, coders[ACIR][repeat], none[repeat]))
        assert (row["precision"], row["recall"]) == pytest.approx(tuple(100 * v for v in wanted.values()))


def test_trivial_rules_refuse_everything_or_nothing_and_have_a_row_each(scene, coders, found):
    there = [rule for rule in rules.TRIVIAL if rule.code in coders]
    table = rules.table_3(scene, coders, found, 8, there)
    everything, *_, nothing = (table[table["rule"] == rule.name].iloc[0] for rule in there)
    assert [everything[part] for part in (KNOWN, NEAR, FAR)] == [100] * 3
    assert [nothing[part] for part in (KNOWN, NEAR, FAR)] == [0] * 3
    assert everything["recall"] == pytest.approx(100 / (1 + len(scene.classes)))
    rows, n = scene.rows(KNOWN, FAR), 1 + len(scene.classes)
    assert everything["precision"] == pytest.approx(100 * len(scene.rows(FAR)) / len(rows) / n)
    assert set(rules.TRIVIAL) <= set(rules.RULES)


def test_every_rule_has_a_name_of_its_own_that_says_where_its_limit_is_from():
    names = [rule.name for rule in rules.RULES]
    assert len(set(names)) == len(names)
    assert rules.PUBLISHED_RULE.name.endswith("(limit: images learnt from)")
    assert Rule(ACIR, Limit(RESIDUAL, ASIDE)).name.endswith("(limit: groups set aside)")


def test_balls_give_the_chance_of_random_codes_and_what_lies_outside(scene, coders):
    table = rules.balls(scene, {8: coders["CSQ"]}).iloc[0]
    assert table["radius"] == 3 and table["chance_16"] == pytest.approx(99.9, abs=0.05)
    outside = np.mean([one.distances(scene).min(axis=1) > 3 for one in coders["CSQ"]], axis=0)
    assert table["far"] == pytest.approx(100 * outside[scene.rows(FAR)].mean())


def test_the_total_of_all_trainings_counts_each_query_once_a_training(scene, coders, found):
    counts = rules.total(scene, coders, found, Rule("CSQ"), 8)
    assert counts.sum() == pytest.approx(2 * len(scene.rows(KNOWN, NEAR, FAR)))
