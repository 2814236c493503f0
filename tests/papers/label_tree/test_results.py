"""The tables say what the values say: means by hand, identities, and every verdict by its test."""

import numpy as np
import pytest

from lib.metrics import hierarchy
from lib.papers.label_tree import names, published, questions, results, tuning
from lib.papers.label_tree.experiment import Scored
from lib.taxonomy import from_paths
from lib.training.label_tree import Objective
from lib.training.methods import Health
from lib.training.splits import Split

TREE = from_paths("toy", ["a/1", "a/2", "b/3", "b/4"])
LEAVES = np.arange(40) % 4
GROUPS = np.array([f"p{number // 4}" for number in range(40)])


def scored(name, wrong, repeat, seed):
    """A method that is wrong in a share of the images, always within the branch."""
    random = np.random.default_rng(seed)
    missed = random.permutation(40) < round(40 * wrong)
    predicted = np.where(missed, LEAVES ^ 1, LEAVES)
    values = hierarchy.of_predictions(LEAVES, predicted, TREE)
    order = 1 - missed * (random.random(40) < 0.5)
    values = values.assign(leaf=LEAVES, predicted=predicted, group=GROUPS)
    values = values.assign(order=order, violation=1 - order, hit5=1.0, hit1=0.5, top1_unscaled=0.25)
    split = Split(0, np.arange(40), np.arange(40), repeat, repeat=repeat)
    return Scored(name, split, Health(0.5, np.nan, 100), [0.7, 0.5], values)


@pytest.fixture(scope="module")
def found():
    shares = {names.SUPCON + names.FLAT: 0.7, names.AS_TOLD + names.FLAT: 0.1, names.NONE: 0.7}
    return {
        name: [scored(name, wrong, r, 10 * r + n) for r in range(3)] for n, (name, wrong) in enumerate(shares.items())
    }


def test_rows_are_means_over_trainings(found):
    rows = results.rows(found).set_index(["method", "measure"])
    several = found[names.SUPCON + names.FLAT]
    by_hand = [100 * np.mean([p == t for p, t in zip(one.values["predicted"], LEAVES, strict=True)]) for one in several]
    row = rows.loc[(names.SUPCON + names.FLAT, "top1")]
    assert row["ours"] == pytest.approx(np.mean(by_hand)) == pytest.approx(30)
    assert row["seeds_spread"] == pytest.approx(np.std(by_hand, ddof=1))
    assert (row["n_seeds"], row["n_queries"], row["steps"]) == (3, 40, 100)


def test_published_rows_stand_above_ours_with_a_sign_where_they_break_what_must_hold(found):
    table, theirs = published.of("bh200x")
    lines = results.layout(theirs)(results.rows(found)).splitlines()
    assert table == 1 and len(lines) == 2 + 9 + 3
    assert "| HWC+LAM (Hyperbolic), published | 75.30 | 78.10 | 87.20 | 12.10 ✗ | 74.20 | – |" in lines[10]


def test_a_clear_difference_is_called_clear_and_no_difference_is_not(found):
    between = [(names.AS_TOLD + names.FLAT, names.SUPCON + names.FLAT), (names.SUPCON + names.FLAT, names.NONE)]
    tests = questions.tests(found, between)
    assert len(tests) == 12 and set(tests["n_tests"].dropna()) == {12 - int(tests["p_value"].isna().sum())}
    clear = tests.set_index(["first", "measure"])["p_holm"]
    assert clear[(names.AS_TOLD + names.FLAT, "Top-1")] < 0.05 < clear[(names.SUPCON + names.FLAT, "Top-1")]


def test_every_question_is_corrected_for_its_own_tests(found):
    asked = questions.pairs(found)
    assert asked["does a head help?"] == [(names.SUPCON + names.FLAT, names.NONE)]
    assert all(set(pair) <= set(found) for several in asked.values() for pair in several)
    tested = questions.by_question(found, asked)
    assert list(tested["question"].unique()) == list(asked)
    for question, part in tested.groupby("question"):
        alone = questions.tests(found, asked[question])
        assert part["p_holm"].to_numpy() == pytest.approx(alone["p_holm"].to_numpy(), nan_ok=True)


def test_no_comparison_is_asked_twice():
    every = {
        name + end
        for name in (*names.objectives(Objective(), 1, 1), *tuning.TUNED.values(), *tuning.AT_THEIRS.values())
        for end in ("", " (Euclidean)")
    }
    asked = [pair for several in questions.pairs(every | {names.NONE}).values() for pair in several]
    assert len(asked) == len(set(asked)) > 20
    ends = [pair for several in questions.end_pairs().values() for pair in several]
    assert len(ends) == len(set(ends)) == 6


def test_tests_of_several_depths_are_corrected_together(found):
    between = [(names.AS_TOLD + names.FLAT, names.SUPCON + names.FLAT)]
    rows = questions.by_depth({1: found, 2: found}, between)
    assert set(rows["depth"]) == {1, 2} and set(rows["measure"]) == set(questions.TESTED.values())
    assert "HF1" not in set(rows.loc[rows["depth"] == 1, "measure"])  # it is Top-1 there


def test_wrong_answers_are_counted_by_how_far_up_they_go(found):
    rows = results.mistakes(found, TREE)
    wrong = {name: 100 * np.mean([part.values["top1"] == 0 for part in scored]) for name, scored in found.items()}
    assert rows.groupby("method", sort=False)["share"].sum().to_dict() == pytest.approx(wrong)
    names_of = [f"wrong group of level 1 ({', '.join(TREE.level(1))})", "right group, wrong class"]
    assert results.levels(TREE) == names_of
