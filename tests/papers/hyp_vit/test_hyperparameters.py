"""Table 5's rows change one setting each; c acts through the room and the temperature only."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.papers.hyp_vit import end_to_end, heads, retrieval
from lib.papers.hyp_vit import hyperparameters as section
from lib.papers.hyp_vit.heads import HYP, NONE, SPH, UNTRAINED
from lib.study.run import at_rates
from lib.training import finetune
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.hyp_vit_end_to_end import EndToEnd
from lib.training.photos import Preparation

PAPER = section.default(Settings(PoincareBall(0.1), 2.3, 0.2), 8, 8, ByClass(3, 6, lr=1e-3, samples=2))
SIZES = section.sizes(PAPER, ["net_96px", "net_64px"])
PLAN = EndToEnd("small", 8, finetune.Settings(4, 6, 2, 1e-4, 1e-3), Preparation(16, 16))


@pytest.fixture(scope="module")
def arms(toy):
    return section.arms(PAPER, "net_96px", toy.parts)


@pytest.fixture(scope="module")
def trained(toy, arms, tmp_path_factory):
    """Features are so long that every output is clipped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "TRAINED", tmp_path_factory.mktemp("trained"))
        x = 10 * toy.x
        study = heads.study({"net_96px": x, "net_64px": x[:, ::-1].copy()}, toy.parts, [1, 2])
        tried = study.choose([arm for arm in (*arms, *SIZES) if arm.method.recipe.dim_out], [1e-3])
        answers = study.answers(at_rates([*arms, *SIZES], tried))
        return answers, section.settings(answers, arms, tried, 1, "96 px, encoder", {})


def test_every_published_row_changes_what_it_says_and_nothing_else(arms):
    for arm in arms:
        of, method = arm.about["of"], arm.method
        changed = {
            "c": method.head.geometry != PAPER.head.geometry,
            "head_dim": method.recipe != PAPER.recipe,
            "batch_size": method.schedule != PAPER.schedule,
        }
        if of != "room":
            assert [name for name, differs in changed.items() if differs] == ([] if of == "none" else [of])
    cs = [arm.method.head.geometry.c for arm in arms if arm.about["of"] == "c"]
    lengths = [arm.method.recipe.dim_out for arm in arms if arm.about["of"] == "head_dim"]
    assert (cs, lengths) == ([0.01, 0.05, 0.3, 0.5, 1.0], [16, 32, 64])


def test_batches_are_in_proportion_and_take_about_as_many_steps(arms):
    # 3 classes stand for 900: 200, 400 and 1,600 are 0.7, 1.3 and 5.3 of them; 2 is least, 4 are left to learn from.
    schedules = [arm.method.schedule for arm in arms if arm.about["of"] == "batch_size"]
    assert [one.batch_size for one in schedules] == [4, 8]
    for schedule in schedules:
        wanted = 3 * PAPER.schedule.steps(36)
        assert schedule.epochs * schedule.steps(36) == pytest.approx(wanted, abs=schedule.steps(36) / 2)


def test_room_and_temperature_are_all_there_is_to_c(trained):
    """The default, and c = 1 with the same √c·r and √c·τ: the same outcomes, the same loss."""
    first, second, warmer = (trained[0]["own"][n] for n in (section.DEFAULT, section.SAME_ALL, section.SAME_ROOM))
    for a, b in zip(first, second, strict=True):
        assert a.health.loss == pytest.approx(b.health.loss, rel=1e-3)
        np.testing.assert_allclose(a.norms * 0.1**0.5, b.norms, rtol=1e-4)
        pd.testing.assert_frame_equal(a.per_query.values, b.per_query.values)
    assert warmer[0].health.loss != pytest.approx(first[0].health.loss, rel=0.05)


def test_where_all_points_are_clipped_the_search_cannot_tell_d_hyp_from_d_cos(trained):
    rows = trained[1]
    assert rows["clipped"].eq(100).all() and rows["hyp"].to_numpy() == pytest.approx(rows["cosine"].to_numpy())
    assert rows["frozen"].nunique() == 1 and rows["lr"].eq(1e-3).all()
    assert rows.set_index("method").loc["c = 1", ["encoder", "head"]].tolist() == [90.0, 89.2]


def test_every_row_is_tested_but_the_default_rescaled(arms):
    pairs = section.questions(arms, SIZES, "96 px")
    against_default = {first for of_question in pairs.values() for first, second in of_question if second == "default"}
    assert against_default == {arm.name for arm in arms} - {section.DEFAULT, section.SAME_ALL}
    assert pairs["c taken apart"] == [(name, "default") for name in ("r = 1.15", "r = 4.6", section.SAME_ROOM)]
    assert pairs[section.SIZES] == [(f"64 px, {place}", f"96 px, {place}") for place in ("head", "encoder")]
    control = [("default", f"{UNTRAINED}{HYP}"), ("96 px, encoder", f"{UNTRAINED}{NONE}")]
    assert pairs[section.PRETRAINED] == control
    assert pairs[section.ALONE] == [(f"{UNTRAINED}{HYP}", f"{UNTRAINED}{name}") for name in (NONE, SPH)]


def test_rows_at_another_rate_are_marked_in_the_tests(trained, toy):
    answers, rows = trained
    tests = section.tests(answers["own"], toy.names, {"batch": [("batch of 4", "default")]}, 1)
    assert tests["changed"].tolist() == ["batch"] and tests["n_units"].tolist() == [6]
    slower = rows.assign(lr=rows["lr"].mask(rows["method"] == "batch of 4", 3e-4))
    assert "| batch | batch of 4 (rate 0.0003) | default |" in section.tests_layout(slower)(tests)


def test_the_figure_shows_differences_from_the_default(trained):
    answers, rows = trained
    seen = retrieval.recall(answers["own"]).query("k == 1")
    seen = seen[seen["method"].isin([arm.name for arm in SIZES])].reset_index(drop=True)
    rows = rows.assign(trained_encoder=rows["method"].map({"default": 80.0, "c = 1": 72.0}))
    points = section.drawn(rows, seen, PAPER, "96 px").set_index(["of", "value", "line"])["difference"]
    hyp, sizes = rows.set_index("method")["hyp"], seen.set_index("method")["ours"]
    assert points["c", "1", "hyp"] == pytest.approx(hyp["c = 1"] - hyp["default"]) and points["c", "0.1", "hyp"] == 0
    assert points["c", "1", "published_head"] == pytest.approx(89.2 - 92.6)
    assert points["seen", "64 px", "hyp"] == pytest.approx(sizes["64 px, head"] - sizes["96 px, head"])
    assert points.xs("trained", level="line").to_dict() == {("c", "0.1"): 0, ("c", "1"): -8}  # a line has two ends


def test_a_row_is_trained_end_to_end_with_its_length_and_batch_and_all_else_alike(arms, toy, monkeypatch):
    given = []
    monkeypatch.setattr(end_to_end, "end_to_end", lambda *a, **o: given.append(a[2:4]) or ({}, None))
    section.trained(None, toy.parts, arms, ["default", "batch_size=1600", "head_dim=16"], PLAN, [1])
    assert [list(kinds) for kinds, _ in given] == [["default"], ["batch of 8"], ["16 numbers"]]
    default, few, short = (plan for _, plan in given)
    assert default == PLAN and short == replace(PLAN, dim_out=16)
    assert few == replace(PLAN, settings=replace(PLAN.settings, batch_size=8))
    with pytest.raises(InputError, match=r"end_to_end: there is no setting 'head_dim=61': did you mean head_dim=64"):
        section.trained(None, toy.parts, arms, ["default", "head_dim=61"], PLAN, [1])
