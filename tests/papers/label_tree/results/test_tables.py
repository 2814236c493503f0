"""The tables say what the values say: means by hand, identities, and every verdict by its test."""

import numpy as np
import pandas as pd
import pytest

from lib.metrics import hierarchy
from lib.papers.label_tree import names, published
from lib.papers.label_tree.experiment import Scored
from lib.papers.label_tree.results import figures, tables, verdicts
from lib.taxonomy import from_paths
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
    values = values.assign(
        order=order,
        violation=1 - order,
        hit5=1.0,
        hit1=0.5,
        top1_unscaled=0.25,
        leaf=LEAVES,
        predicted=predicted,
        group=GROUPS,
    )
    split = Split(0, np.arange(40), np.arange(40), repeat, repeat=repeat)
    return Scored(name, split, Health(0.5, np.nan, 100), [0.7, 0.5], values, [1.1, 0.6])


@pytest.fixture(scope="module")
def found():
    shares = {names.SUPCON + names.FLAT: 0.7, names.AS_TOLD + names.FLAT: 0.1, names.NONE: 0.7}
    return {
        name: [scored(name, wrong, r, 10 * r + n) for r in range(3)] for n, (name, wrong) in enumerate(shares.items())
    }


def test_rows_are_means_over_trainings(found):
    rows = tables.rows(found).set_index(["method", "measure"])
    several = found[names.SUPCON + names.FLAT]
    by_hand = [100 * np.mean([p == t for p, t in zip(one.values["predicted"], LEAVES, strict=True)]) for one in several]
    row = rows.loc[(names.SUPCON + names.FLAT, "top1")]
    assert row["ours"] == pytest.approx(np.mean(by_hand)) == pytest.approx(30)
    assert row["seeds_spread"] == pytest.approx(np.std(by_hand, ddof=1))
    assert (row["n_seeds"], row["n_queries"], row["steps"]) == (3, 40, 100)


def test_the_layout_has_published_rows_ours_and_chance(found):
    table, theirs = published.of("bh200x")
    assert table == 1
    text = tables.layout(tables.rows(found), theirs, {"hf1": 0.5, "top1": 0.25, "h_acc": 0.4})
    lines = text.splitlines()
    assert "| HWC+LAM (Hyperbolic) | published | 75.30 | 78.10 | 87.20 | 12.10 | 74.20 | – |" in lines[10]
    assert lines[-1].startswith("| chance | ours | 50.00 | 40.00 | – | – | 25.00 |")
    assert len(lines) == 2 + 9 + 3 + 1


def test_a_clear_difference_is_called_clear_and_no_difference_is_not(found):
    between = [(names.AS_TOLD + names.FLAT, names.SUPCON + names.FLAT), (names.SUPCON + names.FLAT, names.NONE)]
    tests = tables.tests(found, between)
    assert len(tests) == 8 and set(tests["n_tests"].dropna()) == {8 - int(tests["p_value"].isna().sum())}
    clear = tests.set_index(["first", "measure"])["p_holm"]
    assert clear[(names.AS_TOLD + names.FLAT, "Top-1")] < 0.05 < clear[(names.SUPCON + names.FLAT, "Top-1")]
    (told,) = [line for line in verdicts.sentences(tests) if "Top-1 better" in line]
    p = clear[(names.AS_TOLD + names.FLAT, "Top-1")]
    assert ("; p < 0.001)" if p < 0.001 else f"; p = {p:.3f})") in told
    assert "| first | second | measure |" in tables.tests_layout(tests)


def test_verdicts_name_what_is_clear_and_count_the_rest(found):
    tests = tables.tests(found, [(names.AS_TOLD + names.FLAT, names.SUPCON + names.FLAT)])
    *clear, rest = verdicts.clear(tests)
    assert any("HWC (Euclidean) is better than SupCon (Euclidean) in Top-1" in line for line in clear)
    assert rest.startswith(f"not clear: {len(tests) - len(clear)} of {len(tests)} comparisons")


def test_the_pairs_are_those_that_were_trained(found):
    between = tables.pairs(found)
    assert (names.SUPCON + names.FLAT, names.NONE) in between
    assert all(first in found and second in found for first, second in between)


def test_mistakes_add_up_to_the_wrong_answers(found):
    rows = tables.mistakes(found, TREE)
    for method, part in rows.groupby("method"):
        wrong = 100 * np.mean([one.values["top1"] == 0 for one in found[method]])
        assert part["share"].sum() == pytest.approx(wrong) and part["of_mistakes"].sum() == pytest.approx(100)
        assert part.set_index("depth")["share"][0] == 0  # the toy's mistakes stay in their branch
    assert tables.levels(TREE) == ["wrong from level 1 on", "right parent, wrong class"]
    assert "leaves the way at level 2" in tables.mistakes_layout(rows)


def test_identities_are_counted_not_assumed(found):
    rows = tables.rows(found)
    assert tables.identities(rows)[0].startswith("HF1 below Top-1: in 0 of 3 rows")
    broken = rows.assign(ours=rows["ours"].where(rows["measure"] != "hf1", 1.0))
    assert tables.identities(broken)[0].startswith("HF1 below Top-1: in 3 of 3 rows")
    off = rows.assign(ours=rows["ours"].where(rows["measure"] != "violation", rows["ours"] + 2))
    assert "at most 2.000 points" in tables.identities(off)[1]


def test_what_the_classifier_reads_is_told_for_every_method(found):
    rows = tables.rows(found)
    assert "| HWC (Euclidean) | 90.00 | 25.00 | 50.00 |" in tables.probe_layout(rows)
    assert tables.probe_sentence(rows).startswith("read as they are, HWC (Euclidean) loses 65.0 points of Top-1")


def test_tests_of_several_depths_are_corrected_together(found):
    between = [(names.AS_TOLD + names.FLAT, names.SUPCON + names.FLAT)]
    rows = tables.by_depth({1: found, 2: found}, between)
    assert set(rows["depth"]) == {1, 2} and set(rows["measure"]) == {"HF1", "PC-Order", "Top-1", "R@5"}
    assert "1 level, HF1" in " ".join(verdicts.by_depth(rows)) and "2 levels, HF1" in " ".join(verdicts.by_depth(rows))
    assert tables.depth_layout(rows).startswith("| levels | first |")


def test_pictures_show_every_method(found):
    rows = tables.rows(found)
    figure = figures.scores(rows)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(found)
    bars = figures.mistakes(tables.mistakes(found, TREE), tables.levels(TREE)).axes[0]
    widths = pd.Series([patch.get_width() for patch in bars.patches]).to_numpy().reshape(2, 3)
    wrong = tables.mistakes(found, TREE).groupby("method", sort=False)["share"].sum()
    assert widths.sum(0) == pytest.approx(wrong.loc[list(found)].to_numpy())
