"""Table 5's rows change one setting each; c acts through the room and the temperature only."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.datasets.categories import Halves
from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.papers.hyp_vit import hyperparameters as section
from lib.papers.hyp_vit.names import BEFORE, HYP, NONE, SPH, UNTRAINED
from lib.papers.hyp_vit.retrieval import end_to_end, frozen, tables
from lib.study.run import at_rates
from lib.training import finetune
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.photos import Preparation

CODES = np.repeat(np.arange(24), 6)
ROWS, HALF = np.arange(144), CODES < 12
PARTS = Halves(np.array([f"c{code:02d}" for code in CODES]), CODES, ROWS[HALF], ROWS[~HALF], ROWS[~HALF], 0)
RNG = np.random.default_rng(0)
# Categories overlap; features are so long that every output is clipped.
X = (10 * (RNG.normal(size=(24, 40))[CODES] + 1.5 * RNG.normal(size=(144, 40)))).astype(np.float32)
ONE = section.default(Settings(PoincareBall(0.1), 2.3, 0.2), 40, 8, ByClass(6, 12, lr=1e-3, samples=2))
ARMS = section.arms(ONE, "net_96px", PARTS)
SIZES = section.sizes(ONE, ["net_96px", "net_64px"])
PLAN = end_to_end.EndToEnd("small", 8, finetune.Settings(4, 12, 2, 1e-4, 1e-3), Preparation(16, 16))


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "TRAINED", tmp_path_factory.mktemp("trained"))
        study = frozen.study({"net_96px": X, "net_64px": X[:, ::-1].copy()}, PARTS, [1, 2], n_seeds=2)
        tried = study.choose([arm for arm in (*ARMS, *SIZES) if arm.method.recipe.dim_out], [1e-3])
        return tried, study.answers(at_rates([*ARMS, *SIZES], tried))


@pytest.fixture
def rows(answers):
    return section.settings(answers[1], ARMS, answers[0], 1, "96 px, encoder", {})


def test_every_published_row_changes_what_it_says_and_nothing_else():
    for arm in ARMS:
        one, of = arm.method, arm.about["of"]
        changed = {
            "c": one.head.geometry != ONE.head.geometry,
            "head_dim": one.recipe != ONE.recipe,
            "batch_size": one.schedule != ONE.schedule,
        }
        if of != "room":
            assert [name for name, differs in changed.items() if differs] == ([] if of == "none" else [of])
    cs = [arm.method.head.geometry.c for arm in ARMS if arm.about["of"] == "c"]
    lengths = [arm.method.recipe.dim_out for arm in ARMS if arm.about["of"] == "head_dim"]
    assert (cs, lengths) == ([0.01, 0.05, 0.3, 0.5, 1.0], [16, 32, 64])


def test_batches_are_in_proportion_and_take_about_as_many_steps():
    # 6 classes stand for 900: 200, 400 and 1,600 are 1.3, 2.7 and 10.7 of them; 9 of 12 are left to learn from.
    schedules = [arm.method.schedule for arm in ARMS if arm.about["of"] == "batch_size"]
    assert [one.batch_size for one in schedules] == [4, 6, 18]
    for one in schedules:
        assert one.epochs * one.steps(72) == pytest.approx(6 * ONE.schedule.steps(72), abs=one.steps(72) / 2)


def test_room_and_temperature_are_all_there_is_to_c(answers):
    """The default, and c = 1 with the same √c·r and √c·τ: the same outcomes, the same loss."""
    first, second, warmer = (answers[1]["own"][name] for name in (section.DEFAULT, section.SAME_ALL, section.SAME_ROOM))
    for a, b in zip(first, second, strict=True):
        assert a.health.loss == pytest.approx(b.health.loss, rel=1e-3)
        np.testing.assert_allclose(a.norms * 0.1**0.5, b.norms, rtol=1e-4)
        pd.testing.assert_frame_equal(a.per_query.values, b.per_query.values)
    assert warmer[0].health.loss != pytest.approx(first[0].health.loss, rel=0.05)


def test_where_all_points_are_clipped_the_search_cannot_tell_d_hyp_from_d_cos(rows):
    assert rows["clipped"].eq(100).all() and rows["hyp"].to_numpy() == pytest.approx(rows["cosine"].to_numpy())
    assert rows["frozen"].nunique() == 1 and rows["lr"].eq(1e-3).all()
    assert rows.set_index("method").loc["c = 1", ["encoder", "head"]].tolist() == [90.0, 89.2]


def test_the_default_rescaled_is_not_tested_against_itself():
    few = [arm for arm in ARMS if arm.about["of"] in ("none", "room") or arm.name == "c = 1"]
    pairs = section.questions(few, SIZES, "96 px")
    assert {question: several for question, several in pairs.items() if several} == {
        "curvature": [("c = 1", "default")],
        "c taken apart": [(name, "default") for name in ("r = 1.15", "r = 4.6", section.SAME_ROOM)],
        section.SIZES: [("64 px, head", "96 px, head"), ("64 px, encoder", "96 px, encoder")],
        section.PRETRAINED: [("default", f"{UNTRAINED}{HYP}"), ("96 px, encoder", f"{UNTRAINED}{NONE}")],
        section.ALONE: [(f"{UNTRAINED}{HYP}", f"{UNTRAINED}{NONE}"), (f"{UNTRAINED}{HYP}", f"{UNTRAINED}{SPH}")],
    }


def test_rows_at_another_rate_are_marked_in_the_tests(answers, rows):
    tests = section.tests(answers[1]["own"], PARTS.names, {"batch": [("batch of 4", "default")]}, 1)
    assert tests["changed"].tolist() == ["batch"] and tests["n_units"].tolist() == [12]
    slower = rows.assign(lr=rows["lr"].mask(rows["method"] == "batch of 4", 3e-4))
    assert "| batch | batch of 4 (rate 0.0003) | default |" in section.tests_layout(tests, slower)


def test_the_figure_shows_differences_from_the_default(answers, rows):
    seen = tables.recall(answers[1]["own"]).query("k == 1")
    seen = seen[seen["method"].isin([arm.name for arm in SIZES])].reset_index(drop=True)
    rows = rows.assign(trained_encoder=rows["method"].map({"default": 80.0, "c = 1": 72.0}))
    points = section.drawn(rows, seen, ONE, "96 px").set_index(["of", "value", "line"])["difference"]
    hyp, sizes = rows.set_index("method")["hyp"], seen.set_index("method")["ours"]
    assert points["c", "1", "hyp"] == pytest.approx(hyp["c = 1"] - hyp["default"]) and points["c", "0.1", "hyp"] == 0
    assert points["c", "1", "published_head"] == pytest.approx(89.2 - 92.6)
    assert points["batch_size", "200 (4)", "hyp"] == pytest.approx(hyp["batch of 4"] - hyp["default"])
    assert points["seen", "64 px", "hyp"] == pytest.approx(sizes["64 px, head"] - sizes["96 px, head"])
    assert points.xs("trained", level="line").to_dict() == {("c", "0.1"): 0, ("c", "1"): -8}  # a line has two ends
    figure = section.figure(points.reset_index().assign(spread=np.nan))
    assert [axis.get_title() for axis in figure.axes] == list(section.PANELS.values())
    ticks = [tick.get_text() for tick in figure.axes[2].get_xticklabels()]
    assert ticks == ["200 (4)", "400 (6)", "900 (12)", "1600 (18)"]
    plt.close(figure)


def test_a_row_is_trained_end_to_end_with_its_length_and_batch_and_all_else_alike(monkeypatch):
    given = []
    monkeypatch.setattr(end_to_end, "end_to_end", lambda *a, **o: given.append(a[2:4]) or ({}, None))
    section.trained(None, PARTS, ARMS, ["default", "batch_size=200", "head_dim=16"], PLAN, [1])
    assert [list(kinds) for kinds, _ in given] == [["default"], ["batch of 4"], ["16 numbers"]]
    default, few, short = (plan for _, plan in given)
    assert default == PLAN and short == replace(PLAN, dim_out=16)
    assert few == replace(PLAN, settings=replace(PLAN.settings, batch_size=4))
    assert section.trained(None, PARTS, ARMS, [], PLAN, [1]) == {}
    with pytest.raises(InputError, match=r"end_to_end: there is no setting 'head_dim=61': did you mean head_dim=64"):
        section.trained(None, PARTS, ARMS, ["default", "head_dim=61"], PLAN, [1])


def test_heads_and_encoders_are_compared_with_the_defaults_and_encoders_with_the_untrained():
    places = [f"{name}, end to end, {place}" for name in ("default", "c = 1") for place in ("head", "encoder")]
    assert section.trained_pairs(dict.fromkeys([BEFORE, *places])) == [
        ("c = 1, end to end, head", "default, end to end, head"),
        ("c = 1, end to end, encoder", "default, end to end, encoder"),
        ("default, end to end, encoder", BEFORE),
        ("c = 1, end to end, encoder", BEFORE),
    ]
