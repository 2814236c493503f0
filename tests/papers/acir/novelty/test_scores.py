"""Scores of novelty, their limits and their tests, against loops and by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from lib.errors import InputError
from lib.metrics import hashing, novelty
from lib.papers.acir.novelty import experiment, rules, scores
from lib.papers.acir.novelty.experiment import ACIR, BLUR, BOTH, L1, NEAREST, RESIDUAL, TWO_SIDED
from lib.papers.acir.novelty.scene import ASIDE, FAR, KNOWN, LEARNT, NEAR
from lib.papers.acir.novelty.scores import Limit
from lib.study.rates import best_rates


@pytest.fixture(scope="module")
def found(scene, coders, decoders):
    return scores.of_all(scene, coders, decoders, workers=1)


def test_placements_are_shares_of_novel_scores_above_each_known_one():
    rng = np.random.default_rng(0)
    known, novel = rng.integers(0, 5, 30).astype(float), rng.integers(2, 7, 20).astype(float)
    loop = [np.mean([(n > k) + 0.5 * (n == k) for n in novel]) for k in known]
    np.testing.assert_allclose(scores.placements(known, novel), loop)
    truth = [0] * 30 + [1] * 20
    assert np.mean(loop) == pytest.approx(roc_auc_score(truth, np.concatenate([known, novel])))


def test_a_nearest_feature_is_never_the_image_itself(scene):
    x, learnt = scene.features().astype(np.float64), scene.rows(LEARNT)
    loop = [min(np.linalg.norm(x[i] - x[j]) for j in learnt if j != i) for i in range(len(x))]
    np.testing.assert_allclose(experiment.nearest_feature(scene), loop)


def test_every_score_is_there_for_every_training_and_untrained_ones_do_not_change(scene, found):
    assert all(values.shape == (2, len(scene.labels)) for values in found.values())
    for name in (BLUR, NEAREST):
        np.testing.assert_array_equal(found[name][0], found[name][1])
    assert (found[ACIR][0] != found[ACIR][1]).any()


def test_a_score_of_two_parts_is_the_larger_in_deviations_of_patients_set_aside(scene, found):
    aside = scene.rows(ASIDE)
    code, error = found[ACIR][1], found[RESIDUAL][1]
    z = (error - error[aside].mean()) / error[aside].std()
    bits = (code - code[aside].mean()) / max(code[aside].std(), 0.5)
    np.testing.assert_allclose(found[BOTH][1], np.maximum(z, bits))


def test_codes_that_all_lie_on_their_centres_have_half_a_bit_as_deviation():
    standard = experiment.standard(np.array([0.0, 0.0, 3.0]), np.array([0, 1]), least=0.5)
    assert standard.tolist() == [0.0, 0.0, 6.0]


def test_a_limit_is_that_of_equation_19_over_its_part(scene, found):
    limit = Limit(NEAREST, LEARNT, sigmas=2.0)
    own = found[NEAREST][0][scene.rows(LEARNT)]
    assert limit.values(scene, found)[0] == pytest.approx(own.mean() + 2 * own.std())
    table = scores.limits(scene, found)
    row = table[(table["score"] == NEAREST) & (table["part"] == ASIDE)].iloc[0]
    beyond = found[NEAREST][0] > novelty.threshold(found[NEAREST][0][scene.rows(ASIDE)])
    assert row["far"] == pytest.approx(100 * beyond[scene.rows(FAR)].mean())
    assert row["known"] == pytest.approx(100 * beyond[scene.rows(KNOWN)].mean())


def test_intervals_lie_around_the_mean_over_patients(scene, found):
    table = scores.intervals(scene, found).set_index(["score", "novel"])
    known, near = scene.rows(KNOWN), scene.rows(NEAR)
    per_patient = [
        np.mean([100 * scores.placements(s[own], s[near]).mean() for s in found[ACIR]])
        for own in (known[scene.groups[known] == group] for group in np.unique(scene.groups[known]))
    ]
    row = table.loc[(ACIR, NEAR)]
    assert row["mean"] == pytest.approx(np.mean(per_patient))
    assert row["low"] < row["mean"] < row["high"] <= 100


def test_a_score_is_not_different_from_itself_and_a_perfect_one_is_better_than_chance(scene, found):
    perfect = np.tile((scene.labels < 0).astype(float), (2, 1))
    chance = np.random.default_rng(0).random((2, len(scene.labels)))
    both = {"same": perfect, "again": perfect, "chance": chance}
    table = scores.tests(scene, both, [("same", "again"), ("same", "chance")]).set_index(["gallery", "second"])
    assert table.loc[(FAR, "again"), "difference"] == 0
    assert table.loc[(FAR, "chance"), "difference"] > 25
    assert (table["n_tests"] <= 4).all()


def test_a_kind_is_detected_as_often_as_its_rule_says(scene, found):
    table = scores.by_kind(scene, found, [ACIR, RESIDUAL, BOTH], bits=8).set_index(["score", "kind"])
    fog = scene.rows(FAR)[scene.kind[scene.rows(FAR)] == "fog"]
    outside = found[ACIR][:, fog] > 3
    beyond = Limit(RESIDUAL).exceeded(scene, found)[:, fog]
    assert table.loc[(ACIR, "fog"), "detected"] == pytest.approx(100 * outside.mean())
    assert table.loc[(BOTH, "fog"), "detected"] == pytest.approx(100 * (outside | beyond).mean())
    assert np.isnan(table.loc[(ACIR, "known images"), "auroc"])
    assert table.loc[(ACIR, "new"), "n"] == len(scene.rows(NEAR))


def test_a_blur_loses_nothing_of_a_flat_image_and_much_of_noise():
    flat = torch.full((1, 3, 32, 32), 0.3)
    torch.testing.assert_close(experiment.blurred(flat, 2), flat)
    noise = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert experiment.blurred(noise, 2).std() < 0.3 * noise.std()


def test_two_nearest_centres_share_a_query():
    assert experiment.nearest_shares(np.array([[1, 1, 2], [0, 5, 5]])).tolist() == [[0.5, 0.5, 0], [1, 0, 0]]


def test_known_images_are_right_as_often_as_by_centre_says(scene, coders):
    one, known = coders["CSQ"][0], scene.rows(KNOWN)
    table = hashing.by_centre(one.distances(scene)[known], scene.labels[known], np.arange(3), [8])
    assert experiment.right(one, scene, KNOWN).mean() == pytest.approx(table["accuracy"].iloc[0])


def test_no_novel_image_chooses_a_rate(scene, monkeypatch):
    plan = experiment.Plan(8, 12, experiment.Even(2, 20), experiment.Even(1, 20), 2)
    monkeypatch.setattr(experiment, "networks", lambda *a, **k: experiment.heads(scene, plan, {"DCH": 0.01})["DCH"][:1])
    chosen = experiment.choose(scene, plan, scene.prints(2), [1e-3, 1e-2])
    spoiled = scene.taps._replace(deep=scene.taps.deep.copy())
    spoiled.deep[scene.rows(NEAR, FAR, KNOWN)] = 0.1
    again = experiment.choose(replace(scene, taps=spoiled), plan, scene.prints(2), [1e-3, 1e-2])
    assert chosen.equals(again)
    assert best_rates(chosen) == chosen[chosen["within"]].groupby("method")["lr"].min().to_dict()
    twice = experiment.choose(scene, plan, scene.prints(2), [1e-3], 2).set_index("method")["validation"]
    several = experiment.heads(scene, replace(plan, n_seeds=2), dict.fromkeys(experiment.HEADS, 1e-3))
    shares = {name: [experiment.right(one, scene, ASIDE).mean() for one in ones] for name, ones in several.items()}
    assert all(twice[name] == pytest.approx(100 * np.mean(both)) for name, both in shares.items() if len(both) == 2)


def test_a_rule_without_codes_of_its_name_is_an_error(scene, coders, found):
    with pytest.raises(KeyError):
        rules.table_3(scene, coders, found, 8, [rules.Rule("DPN")])
    with pytest.raises(InputError):
        novelty.ball_radius(0)


def test_both_sides_of_a_residual_count_where_one_side_would_pass(scene, found):
    aside = scene.rows(ASIDE)
    z = (found[L1][0] - found[L1][0][aside].mean()) / found[L1][0][aside].std()
    np.testing.assert_allclose(found[TWO_SIDED][0], np.abs(z))
    np.testing.assert_array_equal(scores.alarms(scene, found, TWO_SIDED, 8, 1.0)[0], np.abs(z) > 1)
