"""Who learns and who queries, scores of novelty and their limits, Table 3 and what is drawn; tiny images."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.encoders.taps import Taps
from lib.errors import InputError
from lib.metrics import hashing, novelty
from lib.papers.acir.novelty import experiment, figures, scores
from lib.papers.acir.novelty import scene as scenes
from lib.papers.acir.novelty.experiment import ACIR, BLUR, BOTH, L1, NEAREST, RESIDUAL, TWO_SIDED, distances
from lib.papers.acir.novelty.scene import ASIDE, FAR, HELD_OUT, KNOWN, LEARNT, NEAR, UNUSED
from lib.papers.acir.novelty.scores import Limit, Rule
from lib.papers.acir.training import Codes
from lib.training.hashing import Even
from tests.images import listed

N, ODD, SIDE, CLASSES = 108, 12, 32, ("a", "b", "c", "new")


@pytest.fixture(scope="module")
def scene():
    """Three known classes and one left out, of nine patients, and two kinds of odd pictures."""
    rng = np.random.default_rng(0)
    label = np.arange(N) % 4
    names = np.array(CLASSES)[label]
    patients = np.array([f"P{i // 12}" for i in range(N)])
    table = listed(names, kind="patient", group=patients)
    centre = np.concatenate([rng.normal(size=(4, 6, 1, 1)) * 2, rng.normal(size=(2, 6, 1, 1)) * 8])
    of = np.concatenate([label, 4 + np.arange(ODD) % 2])
    deep = (centre[of] + rng.normal(size=(N + ODD, 6, 2, 2))).astype(np.float16)
    blank = scenes.Scene(
        tables=(table, SimpleNamespace(rows=table.rows)),
        taps=Taps(rng.normal(size=(N + ODD, 4, 8, 8)).astype(np.float16), deep),
        pixels=rng.integers(0, 256, (N + ODD, 3, SIDE, SIDE), dtype=np.uint8),
        labels=np.full(N + ODD, -1),
        classes=(),
        part=np.full(N + ODD, FAR, dtype="<U8"),
        kind=np.concatenate([names, np.array(["fog", "noise"] * (ODD // 2))]),
        groups=np.concatenate([patients, [f"odd {i}" for i in range(ODD)]]),
        fold=scenes.asking(np.arange(N) // 12 % 6),
    )
    return blank.without("new", seed=0)


@pytest.fixture(scope="module")
def coders(scene):
    """CSQ's and ACIR's codes of 8 bits, two trainings each: made up, known classes near their centres."""
    rng = np.random.default_rng(1)
    centres = rng.choice([-1.0, 1.0], (3, 8))

    def code(noise):
        h = np.where(scene.labels[:, None] >= 0, centres[scene.labels], rng.choice([-1.0, 1.0], (len(scene.labels), 8)))
        return h + noise * rng.normal(size=h.shape)

    return {name: [Codes(name, repeat, code(0.6), [1.0, 0.5], 10) for repeat in (0, 1)] for name in ("CSQ", ACIR)}


class Grey:
    """A decoder that rebuilds everything as grey."""

    history, steps = [0.4, 0.3], 7

    def rebuild(self, taps):
        return torch.full((len(taps.deep), 3, SIDE, SIDE), 0.5).numpy()


@pytest.fixture(scope="module")
def found(scene, coders):
    return scores.of_all(scene, coders, [Grey(), Grey()], workers=1)


def test_folds_are_parted_into_queries_training_and_validation():
    assert scenes.asking(np.arange(6)).tolist() == [0, 0, 0, 1, 1, 2]
    assert scenes.asking(np.arange(3)).tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="three or more"):
        scenes.asking(np.array([0, 1, 1]))


def test_patients_are_kept_apart_and_nothing_learns_from_the_class_left_out(scene):
    asks, aside = (set(scene.groups[scene.rows(*parts)]) for parts in ((KNOWN, NEAR), (ASIDE,)))
    learnt = set(scene.groups[scene.rows(LEARNT, HELD_OUT)])
    assert asks and aside and learnt and not asks & learnt and not asks & aside and not learnt & aside
    assert set(scene.groups[scene.rows(HELD_OUT)]) <= set(scene.groups[scene.rows(LEARNT)])
    assert scene.classes == ("a", "b", "c")
    assert set(scene.kind[scene.rows(NEAR)]) == set(scene.kind[scene.rows(UNUSED)]) == {"new"}
    assert (scene.labels[scene.rows(NEAR, FAR, UNUSED)] == -1).all()
    known = scene.rows(LEARNT, HELD_OUT, ASIDE, KNOWN)
    assert [scene.classes[c] for c in scene.labels[known]] == scene.kind[known].tolist()
    other = scene.without("a", seed=0)
    assert other.classes == ("b", "c", "new") and set(other.groups[other.rows(KNOWN, NEAR)]) == asks
    assert other.without("new", seed=0).part.tolist() == scene.part.tolist()
    sizes = scenes.parts(scene).set_index("part")["n_images"]
    assert sizes[NEAR] == len(scene.rows(NEAR)) and sizes.sum() == len(scene.rows(*sizes.index))


def test_a_class_whose_patients_are_all_queries_is_no_known_class(scene):
    own = len(scene.tables[0])
    fold = np.where(scene.kind[:own] == "c", 0, scene.fold)
    changed = replace(scene, fold=fold).without("new", seed=0)
    assert changed.classes == ("a", "b")
    assert (changed.part[:own][scene.kind[:own] == "c"] == UNUSED).all()


def test_fingerprints_are_those_of_the_loss_in_parts_too(scene, monkeypatch):
    n, channels, height, width = scene.pixels.shape
    blocks = scene.pixels.reshape(n, channels, 8, height // 8, 8, width // 8).mean(axis=(3, 5)).reshape(n, -1) / 255
    np.testing.assert_allclose(scene.prints(8), blocks, atol=1e-6)
    whole = scene.prints(8)
    monkeypatch.setattr(scenes, "AT_ONCE", 7)
    np.testing.assert_array_equal(scene.prints(8), whole)


def test_at_most_so_many_images_of_a_class_keep_their_folds(scene):
    table, fold = scenes.at_most(scene.tables[0], scene.fold, 5, seed=0)
    assert table.rows["label"].value_counts().tolist() == [5] * 4
    of = dict(zip(scene.tables[0].rows["image_id"], scene.fold, strict=True))
    assert [of[i] for i in table.rows["image_id"]] == fold.tolist()


def test_other_datasets_are_novel_and_a_missing_one_is_named(monkeypatch):
    table = listed(["eye"] * 4, name="odir", kind="patient", group=list("1122"))

    def load(name, root):
        if name == "cub":
            raise scenes.MissingDataset("needs cub")
        return table

    monkeypatch.setattr(scenes.loaders, "load", load)
    (novel,), needs = scenes.novel_tables(["odir", "cub"], 3, seed=0)
    assert needs == ["CUB-200-2011 birds: needs cub"]
    assert len(novel) == 3 and set(novel.labels) == {"ODIR-5K fundus photographs"}
    assert all(name.startswith("odir/") for name in [*novel.groups, *novel.rows["image_id"]])


@pytest.mark.parametrize(
    ("left_out", "message"),
    [("mel", "no class 'mel' to leave out; there are: a, b, c, new"), ("c", "Leave out one of these: a, b, new")],
)
def test_a_class_without_images_or_queries_cannot_be_left_out(scene, left_out, message):
    own = len(scene.tables[0])
    fold = np.where(scene.kind[:own] == "c", 1, scene.fold)
    with pytest.raises(InputError, match=message):
        scenes.build(scene.tables[0], fold, left_out, [], "any", 3, ("demo", "own"), 0)


def test_each_class_with_queries_is_left_out_once(scene, coders, monkeypatch):
    own = len(scene.tables[0])
    changed = replace(scene, fold=np.where(scene.kind[:own] == "c", 1, scene.fold))
    monkeypatch.setattr(experiment, "heads", lambda *_: coders)
    turns = experiment.each_class(changed, experiment.Plan(8, Even(2, 16), Even(1, 8), 1), 0.01, rebuilt=False)
    assert turns.drop_duplicates("class")["class"].tolist() == ["a", "b", "new"]
    assert turns["auroc"].between(0, 100).all() and (turns["n"] > 0).all()


def test_no_novel_image_and_no_query_chooses_a_rate(scene, monkeypatch):
    plan = experiment.Plan(8, Even(2, 20), Even(1, 20), 2)
    monkeypatch.setattr(experiment.experiment, "fit", partial(experiment.experiment.fit, workers=1))
    monkeypatch.setattr(experiment, "networks", lambda *a, **k: experiment.heads(scene, plan, {"DCH": 0.01})["DCH"][:1])
    chosen = experiment.choose(scene, plan, scene.prints(2), [1e-3, 1e-2])
    spoiled = scene.taps._replace(deep=scene.taps.deep.copy())
    spoiled.deep[scene.rows(NEAR, FAR, KNOWN)] = 0.1
    assert chosen.equals(experiment.choose(replace(scene, taps=spoiled), plan, scene.prints(2), [1e-3, 1e-2]))
    twice = experiment.choose(scene, plan, scene.prints(2), [1e-3], 2).set_index("method")["validation"]
    for name, both in experiment.heads(scene, plan, dict.fromkeys(experiment.HEADS, 1e-3)).items():
        assert twice[name] == pytest.approx(100 * np.mean([experiment.right(one, scene, ASIDE).mean() for one in both]))


def test_a_nearest_feature_is_never_the_image_itself(scene):
    x, learnt = scene.features().astype(np.float64), scene.rows(LEARNT)
    loop = [min(np.linalg.norm(x[i] - x[j]) for j in learnt if j != i) for i in range(len(x))]
    np.testing.assert_allclose(experiment.nearest_feature(scene), loop)


def test_every_training_has_every_score_and_two_parts_the_larger_in_deviations(scene, found):
    assert all(values.shape == (2, len(scene.labels)) for values in found.values())
    for name in (BLUR, NEAREST):
        np.testing.assert_array_equal(found[name][0], found[name][1])
    assert (found[ACIR][0] != found[ACIR][1]).any()
    aside = scene.rows(ASIDE)
    code, error = found[ACIR][1], found[RESIDUAL][1]
    z = (error - error[aside].mean()) / error[aside].std()
    bits = (code - code[aside].mean()) / max(code[aside].std(), 0.5)
    np.testing.assert_allclose(found[BOTH][1], np.maximum(z, bits))
    z = (found[L1][0] - found[L1][0][aside].mean()) / found[L1][0][aside].std()
    np.testing.assert_allclose(found[TWO_SIDED][0], np.abs(z))
    np.testing.assert_array_equal(scores.alarms(scene, found, TWO_SIDED, 8)[0], np.abs(z) > 3)
    assert experiment.standard(np.array([0.0, 0.0, 3.0]), np.array([0, 1]), least=0.5).tolist() == [0.0, 0.0, 6.0]


def test_a_limit_is_that_of_equation_19_over_its_part(scene, found):
    limit = Limit(NEAREST, LEARNT)
    own = found[NEAREST][0][scene.rows(LEARNT)]
    assert limit.values(scene, found)[0] == pytest.approx(own.mean() + 3 * own.std())
    table = scores.limits(scene, found)
    row = table[(table["score"] == NEAREST) & (table["part"] == ASIDE)].iloc[0]
    beyond = found[NEAREST][0] > novelty.threshold(found[NEAREST][0][scene.rows(ASIDE)])
    for part in (FAR, KNOWN):
        assert row[part] == pytest.approx(100 * beyond[scene.rows(part)].mean())


def test_intervals_lie_around_the_mean_over_patients_and_a_perfect_score_beats_chance(scene, found):
    table = scores.intervals(scene, found).set_index(["score", "novel"])
    known, near = scene.rows(KNOWN), scene.rows(NEAR)
    per_patient = [
        np.mean([100 * scores.placements(s[own], s[near]).mean() for s in found[ACIR]])
        for own in (known[scene.groups[known] == group] for group in np.unique(scene.groups[known]))
    ]
    row = table.loc[(ACIR, NEAR)]
    assert row["mean"] == pytest.approx(np.mean(per_patient)) and row["low"] < row["mean"] < row["high"] <= 100
    perfect = np.tile((scene.labels < 0).astype(float), (2, 1))
    chance = np.random.default_rng(0).random((2, len(scene.labels)))
    both = {"same": perfect, "again": perfect, "chance": chance}
    tests = scores.tests(scene, both, [("same", "again"), ("same", "chance")]).set_index(["gallery", "second"])
    assert tests.loc[(FAR, "again"), "difference"] == 0 and tests.loc[(FAR, "chance"), "difference"] > 25


def test_a_kind_is_detected_as_often_as_its_rule_says(scene, found):
    table = scores.by_kind(scene, found, [ACIR, RESIDUAL, BOTH], bits=8).set_index(["score", "kind"])
    fog = scene.rows(FAR)[scene.kind[scene.rows(FAR)] == "fog"]
    outside, beyond = found[ACIR][:, fog] > 3, Limit(RESIDUAL).exceeded(scene, found)[:, fog]
    assert table.loc[(ACIR, "fog"), "detected"] == pytest.approx(100 * outside.mean())
    assert table.loc[(BOTH, "fog"), "detected"] == pytest.approx(100 * (outside | beyond).mean())
    assert np.isnan(table.loc[(ACIR, "known images"), "auroc"])
    assert table.loc[(ACIR, "new"), "n"] == len(scene.rows(NEAR))


def test_known_images_are_right_as_often_as_by_centre_says(scene, coders):
    one, known = coders["CSQ"][0], scene.rows(KNOWN)
    table = hashing.by_centre(distances(one, scene)[known], scene.labels[known], np.arange(3), [8])
    assert experiment.right(one, scene, KNOWN).mean() == pytest.approx(table["accuracy"].iloc[0])
    assert experiment.nearest_shares(np.array([[1, 1, 2], [0, 5, 5]])).tolist() == [[0.5, 0.5, 0], [1, 0, 0]]


def test_confusions_count_refusals_and_share_ties(scene, coders):
    one, none = coders["CSQ"][0], np.zeros(len(scene.labels), dtype=bool)
    none[scene.rows(FAR)[:3]] = True
    loop, distance = np.zeros((4, 4)), distances(one, scene)
    for i in scene.rows(KNOWN, FAR):
        row = scene.labels[i] if scene.labels[i] >= 0 else 3
        if none[i]:
            loop[row, 3] += 1
        else:
            best = np.flatnonzero(distance[i] == distance[i].min())
            loop[row, best] += 1 / len(best)
    np.testing.assert_allclose(scores.confusion(scene, one, none), loop)
    assert loop[3, 3] == 3


def test_macro_never_divides_by_zero():
    assert scores.macro(np.array([[0.0, 2.0], [0.0, 2.0]])) == {"precision": 0.25, "recall": 0.5}
    assert scores.macro(np.array([[0.0, 0.0], [1.0, 3.0]])) == {"precision": 1.0, "recall": 0.75}


def test_a_row_of_table_3_holds_what_its_rule_refuses_beyond_the_balls(scene, coders, found):
    rule = Rule(ACIR, Limit(NEAREST, LEARNT))
    none = scores.refused(scene, found, rule, 8)
    np.testing.assert_array_equal(none, (found[ACIR] > novelty.ball_radius(8)) | rule.limit.exceeded(scene, found))
    table = scores.table_3(scene, coders, found, 8, [Rule("CSQ"), rule])
    for repeat in (0, 1):
        row = table[(table["rule"] == rule.name) & (table["repeat"] == repeat)].iloc[0]
        for part in (KNOWN, NEAR, FAR):
            assert row[part] == pytest.approx(100 * none[repeat, scene.rows(part)].mean())
        wanted = scores.macro(scores.confusion(scene, coders[ACIR][repeat], none[repeat]))
        assert (row["precision"], row["recall"]) == pytest.approx(tuple(100 * v for v in wanted.values()))
    names = [rule.name for rule in scores.RULES]
    assert len(set(names)) == len(names) and scores.PUBLISHED_RULE.name.endswith("(limit: images learnt from)")


def test_trivial_rules_refuse_everything_or_nothing(scene, coders, found):
    table = scores.table_3(scene, coders, found, 8, [rule for rule in scores.TRIVIAL if rule.code in coders])
    everything, nothing = table.iloc[0], table.iloc[-1]
    assert [[row[part] for part in (KNOWN, NEAR, FAR)] for row in (everything, nothing)] == [[100] * 3, [0] * 3]
    n = 1 + len(scene.classes)
    assert everything["recall"] == pytest.approx(100 / n)
    share = len(scene.rows(FAR)) / len(scene.rows(KNOWN, FAR))
    assert everything["precision"] == pytest.approx(100 * share / n)


def test_balls_give_the_chance_of_random_codes_and_what_lies_outside(scene, coders, found):
    table = scores.balls(scene, {8: coders["CSQ"]}).iloc[0]
    assert table["radius"] == 3 and table["chance_16"] == pytest.approx(99.9, abs=0.05)
    outside = np.mean([distances(one, scene).min(axis=1) > 3 for one in coders["CSQ"]], axis=0)
    assert table["far"] == pytest.approx(100 * outside[scene.rows(FAR)].mean())
    counts = scores.total(scene, coders, found, Rule("CSQ"), 8)
    assert counts.sum() == pytest.approx(2 * len(scene.rows(KNOWN, NEAR, FAR)))
    rows = figures.confusion_rows({"CSQ": counts}, scene.classes)
    assert rows.groupby("query_class")["share"].sum().round(6).eq(100).all()


def test_a_page_is_the_same_for_the_same_seed_and_too_few_points_are_refused():
    x = np.random.default_rng(0).normal(size=(60, 4))
    first, again = figures.page(x, 0, perplexity=10), figures.page(x, 0, perplexity=10)
    pd.testing.assert_frame_equal(first, again)
    assert figures.NEIGHBOURS / 59 < first["kept"].iloc[0] < 1 and first["trust"].iloc[0] <= 1
    with pytest.raises(InputError, match="too few for a perplexity of 30"):
        figures.page(x, 0)


def test_sliders_count_what_lies_beyond_both_limits(scene, found):
    board = figures.sliders(scene, found, bits=8)
    limit = novelty.threshold(found[L1][0][scene.rows(ASIDE)], 3.0)
    assert board.values == {"sigmas": 3.0, "radius": 3} and f"limit {limit:.3f}, radius 3 bits" in board.text
    board.sliders["radius"].value = 0
    outside = 100 * (found[ACIR][0, scene.rows(FAR)] > 0).mean()
    assert f"{'OOD':16}{outside:7.1f}%" in board.text
    picked = figures.examples(scene, found[RESIDUAL][0])
    assert scene.part[picked].tolist() == [KNOWN, KNOWN, NEAR, NEAR, FAR, FAR]
