"""The tables say what the values say: means by hand, identities, and every verdict by its test."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.metrics import hierarchy
from lib.papers.label_tree import names, published
from lib.papers.label_tree.experiment import Images, Scored
from lib.papers.label_tree.results import chosen, comparisons, figures, mistakes, tables, verdicts
from lib.results import paired
from lib.taxonomy import from_paths
from lib.training.label_tree import Objective
from lib.training.methods import Health
from lib.training.splits import Split

TREE = from_paths("toy", ["a/1", "a/2", "b/3", "b/4"])
LEAVES = np.arange(40) % 4
SEEN = Images(np.zeros((2, 40, 1)), LEAVES, TREE, np.arange(40))
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
    blind = {names.CHANCE: {"hf1": 0.5, "top1": 0.25, "h_acc": 0.4}, names.COMMONEST: {"hf1": 0.6}}
    blind = {name: values | {f"{measure} by class": 0.1 for measure in values} for name, values in blind.items()}
    text = tables.layout(tables.with_blind(tables.rows(found), blind), theirs)
    lines = text.splitlines()
    assert "| HWC+LAM (Hyperbolic) | published | 75.30 | 78.10 | 87.20 | 12.10 ✗ | 74.20 | – |" in lines[10]
    assert lines[-2].startswith("| chance | ours | 50.00 | 40.00 | – | – | 25.00 | – | – | 10.00 | 10.00 | – | – |")
    assert "nan" not in text and lines[-1].endswith("| – | – | – |")
    assert lines[-1].startswith("| always the commonest class | ours | 60.00 | – |")
    assert len(lines) == 2 + 9 + 3 + 2


def test_a_clear_difference_is_called_clear_and_no_difference_is_not(found):
    between = [(names.AS_TOLD + names.FLAT, names.SUPCON + names.FLAT), (names.SUPCON + names.FLAT, names.NONE)]
    tests = tables.tests(found, between)
    assert len(tests) == 12 and set(tests["n_tests"].dropna()) == {12 - int(tests["p_value"].isna().sum())}
    clear = tests.set_index(["first", "measure"])["p_holm"]
    assert clear[(names.AS_TOLD + names.FLAT, "Top-1")] < 0.05 < clear[(names.SUPCON + names.FLAT, "Top-1")]
    (told,) = [line for line in verdicts.clear(tests) if "in Top-1 (" in line]
    p = clear[(names.AS_TOLD + names.FLAT, "Top-1")]
    assert ("; p < 0.001)" if p < 0.001 else f" {p:.3f})") in told
    assert "| first | second | measure |" in paired.tests_layout(tests, tables.TEST_NAMES)


def test_verdicts_name_what_is_clear_and_count_the_rest(found):
    tests = tables.tests(found, [(names.AS_TOLD + names.FLAT, names.SUPCON + names.FLAT)])
    *clear, rest = verdicts.clear(tests)
    assert any("HWC (Euclidean) is better than SupCon (Euclidean) in Top-1" in line for line in clear)
    assert rest.startswith(f"not clear: {len(tests) - len(clear)} of {len(tests)} comparisons")
    assert rest.endswith("comparisons") and all("; p (Holm) " in line for line in clear)
    few = verdicts.clear(tests.assign(p_floor=0.125, p_holm=1.0, n_units=4))
    assert few[-1].endswith(f"p cannot reach 0.05 in {len(tests)} of them, whatever the methods do")
    (told,) = verdicts.answered(tests.assign(question="is it the tree?"))
    assert told.startswith("is it the tree? HWC (Euclidean) better than SupCon (Euclidean) in HF1 (+")
    assert told.endswith(", of 6 tests")
    untold = tests.assign(p_holm=1.0, p_floor=0.01, n_units=12, n_tests=126, question="is it?")
    assert verdicts.answered(untold) == ["is it? cannot be told with 12 groups and 126 tests, of 6 tests"]


def test_an_overview_counts_what_is_clear_of_each_question_and_dataset(found):
    tested = comparisons.tests(found, comparisons.pairs(found))
    untold = tested.assign(p_holm=1.0, p_floor=0.5)
    one = tested[tested["question"] == "does a head help?"]
    text = verdicts.overview({"birds": tested, "tiles": untold, "eyes": one})
    lines = text.splitlines()
    assert lines[0] == "| question | birds | tiles | eyes |" and len(lines) == 2 + tested["question"].nunique()
    same = next(line for line in lines if "same values" in line)
    part = tested[tested["question"].str.contains("same values")]
    better = int(((part["p_holm"] <= 0.05) & (part["difference"] > 0)).sum())
    worse = int(((part["p_holm"] <= 0.05) & (part["difference"] < 0)).sum())
    assert better > 0 and f"| {better} better, {worse} worse of 6 tests | cannot be told | – |" in same


def test_class_means_are_of_all_folds_together(found):
    """A leaf that is common in one fold and rare in the other is one leaf, not two."""
    one = found[names.NONE][0]
    parts = [one.values.iloc[:30], one.values.iloc[30:].assign(top1=0.0)]
    folds = [replace(one, values=part, split=replace(one.split, fold=n)) for n, part in enumerate(parts)]
    row = tables.rows({names.NONE: folds}).set_index("measure").loc["top1"]
    together = pd.concat(parts).groupby("leaf")["top1"].mean().mean()
    by_fold = np.mean([part.groupby("leaf")["top1"].mean().mean() for part in parts])
    assert row["class_mean"] == pytest.approx(100 * together) and together != pytest.approx(by_fold)


def test_heads_below_chance_are_counted(found):
    rows = tables.rows(found)
    blind = {"hf1": 0.0, "hit5": 0.99, "order": 0.0}
    blind |= {f"{measure} by class": 0.0 for measure in blind}
    hits, order = verdicts.beside_chance(tables.with_blind(rows, {names.CHANCE: blind}))
    assert hits.startswith("R@5 of chance: 99.0, of the features without a head: 100.0; 0 of 2 heads")
    low = rows.assign(ours=rows["ours"].where(rows["measure"] != "hit5", 50.0))
    hits, _ = verdicts.beside_chance(tables.with_blind(low, {names.CHANCE: blind}))
    assert "2 of 2 heads are below chance" in hits and order.endswith("0 of 2 heads are below chance")


def test_every_question_is_corrected_for_its_own_tests(found):
    asked = comparisons.pairs(found)
    assert asked["does a head help?"] == [(names.SUPCON + names.FLAT, names.NONE)]
    assert all(set(pair) <= set(found) for several in asked.values() for pair in several)
    tested = comparisons.tests(found, asked)
    assert list(tested["question"].unique()) == list(asked)
    for question, part in tested.groupby("question"):
        alone = tables.tests(found, asked[question])
        assert part["p_holm"].to_numpy() == pytest.approx(alone["p_holm"].to_numpy(), nan_ok=True)
    assert comparisons.layout(tested).startswith("| question | first | second | measure |")


def test_no_comparison_is_asked_twice():
    every = {
        name + end
        for name in (*names.objectives(Objective(), 1, 1), *chosen.CHOSEN.values(), *chosen.AT_THEIRS.values())
        for end in ("", " (Euclidean)")
    }
    asked = [pair for several in comparisons.pairs(every | {names.NONE}).values() for pair in several]
    assert len(asked) == len(set(asked)) > 20
    ends = [pair for several in comparisons.end_pairs().values() for pair in several]
    assert len(ends) == len(set(ends)) == 6


def test_distances_stand_beside_scores_with_their_spread(found):
    apart = tables.apart(found, TREE)
    assert set(apart["depth"]) == {0, 1} and (apart["spread"] == 0).all()  # the toy has the same in every training
    several = [replace(one, apart=[1.0, 0.5 + 0.1 * one.split.repeat]) for one in found[names.NONE]]
    moved = tables.apart({names.NONE: several}, TREE).set_index("depth")
    assert moved.loc[1, "spread"] == pytest.approx(np.std([0.5, 0.6, 0.7], ddof=1))
    text = tables.apart_layout(tables.apart(found | {names.NONE: several}, TREE), tables.rows(found))
    row = next(line for line in text.splitlines() if names.NONE in line)
    assert row.startswith("| no head | 1.00 | 0.60 ± 0.100 | ") and "±" in row.split("|")[5]


def test_mistakes_add_up_to_the_wrong_answers(found):
    rows = mistakes.rows(found, TREE)
    for method, part in rows.groupby("method"):
        wrong = 100 * np.mean([one.values["top1"] == 0 for one in found[method]])
        assert part["share"].sum() == pytest.approx(wrong) and part["of_mistakes"].sum() == pytest.approx(100)
        assert part.set_index("depth")["share"][0] == 0  # the toy's mistakes stay in their branch
    assert mistakes.levels(TREE) == [f"wrong group of level 1 ({', '.join(TREE.level(1))})", "right group, wrong class"]
    assert "goes wrong at level 2" in mistakes.layout(rows)


def test_confusions_are_counted_by_hand_and_told_by_kinship(found):
    rows = mistakes.confusions(found, SEEN, each=4)
    assert rows["kin"].all() and set(rows["method"]) == {names.SUPCON + names.FLAT, names.NONE}
    several = found[names.NONE]
    one = rows[rows["method"] == names.NONE].iloc[0]
    pair = [list(TREE.leaves).index(one[side]) for side in ("true", "answered")]
    shares = [100 * np.mean((s.values["leaf"] == pair[0]) & (s.values["predicted"] == pair[1])) for s in several]
    assert one["share"] == pytest.approx(np.mean(shares)) and one["spread"] == pytest.approx(np.std(shares, ddof=1))
    assert rows.groupby("method")["share"].sum()[names.NONE] == pytest.approx(70)  # the toy has no other mistakes
    axis = figures.confusions(rows).axes[0]
    assert len(axis.patches) == len(rows) and axis.get_yticklabels()[0].get_fontweight() == "normal"


def test_the_spread_of_confusions_is_over_trainings_not_over_folds(found):
    """Two folds of very different classes, the same in every training: no spread."""
    one = found[names.NONE][0]
    halves = [one.values.iloc[:10], one.values.iloc[10:]]
    folds = [
        replace(one, values=half, split=replace(one.split, fold=fold, repeat=repeat))
        for repeat in range(2)
        for fold, half in enumerate(halves)
    ]
    rows = mistakes.confusions({names.NONE: folds}, SEEN, each=2)
    assert (rows["spread"] == 0).all() and (rows["share"] > 0).all()


@pytest.mark.parametrize("depth", [2, 7])
def test_a_picture_of_mistakes_takes_any_depth(depth):
    rows = pd.DataFrame([{"method": "a", "depth": level, "share": 1.0} for level in range(depth)])
    assert len(figures.mistakes(rows, [f"level {level}" for level in range(depth)]).axes[0].patches) == depth


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
    spread, apart = tables.probe_sentences(rows)
    assert "from -65.0 (HWC (Euclidean)) to -5.0 (no head), median -5.0" in spread
    assert apart == "HWC less SupCon: +60.0 standardised, +0.0 as they are, +0.0 by the nearest image"


def test_tests_of_several_depths_are_corrected_together(found):
    between = [(names.AS_TOLD + names.FLAT, names.SUPCON + names.FLAT)]
    rows = tables.by_depth({1: found, 2: found}, between)
    assert set(rows["depth"]) == {1, 2} and set(rows["measure"]) == set(tables.TESTED.values())
    assert "HF1" not in set(rows.loc[rows["depth"] == 1, "measure"])  # it is Top-1 there
    told = " ".join(verdicts.clear_by_depth(rows))
    assert "Top-1, 1 level " in told and "Top-1, 2 levels " in told
    assert tables.depth_layout(rows).startswith("| levels | first |")


def test_pictures_show_every_method(found):
    rows = tables.rows(found)
    figure = figures.scores(rows)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(found)
    bars = figures.mistakes(mistakes.rows(found, TREE), mistakes.levels(TREE)).axes[0]
    widths = pd.Series([patch.get_width() for patch in bars.patches]).to_numpy().reshape(2, 3)
    wrong = mistakes.rows(found, TREE).groupby("method", sort=False)["share"].sum()
    assert widths.sum(0) == pytest.approx(wrong.loc[list(found)].to_numpy())


def test_confusions_across_groups_are_shown_beside_commoner_ones_but_no_accident(found):
    """Two answers of another branch among many of the own one are shown, one is not; nor what nobody could know."""
    one = found[names.NONE][0]
    leaf = one.values["leaf"].iloc[0]
    other = next(other for other in range(len(TREE.leaves)) if TREE.lca_depth()[leaf, other] == 0)
    of_leaf = one.values.index[one.values["leaf"] == leaf]

    def changed(n):
        values = one.values.assign(predicted=one.values["predicted"])
        values.loc[of_leaf[:n], "predicted"] = other
        return replace(one, values=values)

    rows = mistakes.confusions({names.NONE: [changed(2)]}, SEEN, each=1)
    assert rows["kin"].tolist() == [False, True] and rows["share"].iloc[0] == pytest.approx(5)
    assert mistakes.confusions({names.NONE: [changed(1)]}, SEEN, each=1)["kin"].all()
    without = np.flatnonzero(leaf != LEAVES)
    unknown = replace(changed(10), split=replace(one.split, train=without))
    assert TREE.leaves[leaf] not in set(mistakes.confusions({names.NONE: [unknown]}, SEEN)["true"])


def test_heads_are_counted_beside_the_features_and_the_commonest_class(found):
    rows = tables.rows(found)
    blind = {names.CHANCE: {"hf1": 0.0, "hf1 by class": 0.0}, names.COMMONEST: {"hf1": 0.9, "hf1 by class": 0.1}}
    by_image, by_class = verdicts.beside_features(rows)
    wide = rows.pivot_table(index="method", columns="measure", values="class_mean")
    n = int((wide["hf1"].drop(names.NONE) > wide.loc[names.NONE, "hf1"]).sum())
    assert by_image.startswith("of 2 heads, above the features without a head: ")
    assert by_class.endswith(f", {n} in HF1") and "every class counting alike" in by_class
    by_image, by_class = verdicts.beside_commonest(tables.with_blind(rows, blind))
    wide = rows.pivot_table(index="method", columns="measure", values="ours")["hf1"].drop(names.NONE)
    assert by_image.endswith(f": 90.0; {int((wide < 90).sum())} of 2 heads are below")
    assert by_class.endswith(": 10.0; 0 of 2 heads are below")


def test_second_chances_are_of_wrong_first_answers_alone():
    """Of 60 % wrong first answers 45 points are helped within five; long training leaves 3 points of 50."""
    rows = [("no head", 40.0, 85.0), ("SupCon (Euclidean)", 50.0, 53.0), ("HXE (Euclidean)", 1.0, 2.0)]
    table = pd.DataFrame(rows, columns=["method", "hit1", "hit5"]).melt("method", var_name="measure", value_name="ours")
    assert verdicts.second_chances(table) == [
        "no head: nearest right 40.0 %, one of five 85.0 %; of wrong firsts helped: 75 %",
        "SupCon (Euclidean): nearest right 50.0 %, one of five 53.0 %; of wrong firsts helped: 6 %",
    ]
    assert verdicts.second_chances(table.assign(ours=100.0))[0].endswith("none to help")


def test_longer_training_stands_beside_the_shorter_one(found):
    rows = tables.rows(found)
    after = rows[rows["method"] != names.AS_TOLD + names.FLAT].assign(ours=rows["ours"] + 1)
    line, *_, hits = verdicts.longer(rows, after)
    assert hits.startswith("R@5: lower after longer training in 0 of 1; the order stays")
    top1 = rows.set_index(["method", "measure"])["ours"][names.SUPCON + names.FLAT, "top1"]
    assert line.startswith("SupCon (Euclidean): HF1 ") and f"Top-1 {top1:.1f} → {top1 + 1:.1f}, R@5 " in line
