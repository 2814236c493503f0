"""Table 5's rows change one setting each; c acts through the room and the temperature alone."""

import numpy as np
import pytest

from lib import paths
from lib.datasets.categories import Halves
from lib.geometry import PoincareBall
from lib.papers.hyp_vit import published
from lib.papers.hyp_vit.hyperparameters import changes, sentences, tables
from lib.papers.hyp_vit.names import NONE
from lib.papers.hyp_vit.retrieval import frozen
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings

N, IMAGES = 24, 6
CODES = np.repeat(np.arange(N), IMAGES)
ROWS = np.arange(len(CODES))
HALF = CODES < N // 2
PARTS = Halves(np.array([f"c{code:02d}" for code in CODES]), CODES, ROWS[HALF], ROWS[~HALF], ROWS[~HALF], 0)
SCHEDULE = ByClass(6, 12, lr=1e-3, samples=2)


def features(dim: int = 40) -> np.ndarray:
    """Categories that overlap, with features so long that every output is clipped."""
    rng = np.random.default_rng(0)
    return (10 * (rng.normal(size=(N, dim))[CODES] + 1.5 * rng.normal(size=(len(CODES), dim)))).astype(np.float32)


@pytest.fixture(scope="module")
def default():
    return changes.default(Settings(PoincareBall(0.1), 2.3, 0.2), 40, 8, SCHEDULE)


@pytest.fixture(scope="module")
def rows(default):
    return [*changes.published(default, published.settings(), PARTS), *changes.room(default)]


@pytest.fixture(scope="module")
def found(rows, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "TRAINED", tmp_path_factory.mktemp("trained"))
        chosen = frozen.rates(features(), PARTS, [one.method for one in rows], [1e-3])
        return chosen, changes.answers(features(), PARTS, rows, chosen, [1, 2], n_seeds=2)


def test_every_published_row_changes_what_it_says_and_nothing_else(rows, default):
    for row in rows:
        head, one = row.method.head, row.method
        changed = {
            "c": head.geometry != default.head.geometry,
            "head_dim": one.recipe != default.recipe,
            "batch_size": one.schedule != default.schedule,
        }
        if row.of != "room":
            assert [of for of, differs in changed.items() if differs] == ([] if row.of == "none" else [row.of])
    assert [row.method.head.geometry.c for row in rows if row.of == "c"] == [0.01, 0.05, 0.3, 0.5, 1.0]
    assert [row.method.recipe.dim_out for row in rows if row.of == "head_dim"] == [16, 32, 64]


def test_batches_are_in_proportion_as_far_as_the_categories_go(rows):
    # 6 classes stand for 900: 200, 400 and 1,600 are 1.3, 2.7 and 10.7 of them; 9 of 12 are left to learn from.
    sizes = [row.method.schedule.batch_size for row in rows if row.of == "batch_size"]
    assert sizes == [2 * 2, 2 * 3, 2 * 9]


@pytest.mark.parametrize("size", [4, 6, 18])
def test_another_batch_takes_as_many_steps(size):
    other = changes.in_batches(SCHEDULE, size, n=72)
    steps = SCHEDULE.epochs * SCHEDULE.steps(72)
    assert other.epochs * other.steps(72) == pytest.approx(steps, abs=other.steps(72) / 2)


def test_room_and_temperature_are_all_there_is_to_c(rows, found):
    """The default, and c = 1 with the same √c·r and √c·τ: the same outcomes, the same loss."""
    _, answers = found
    assert "0.00 % of the queries" in sentences.same_again(answers, 1)
    first, second = (answers[name] for name in (changes.DEFAULT, changes.SAME_ALL))
    for a, b in zip(first, second, strict=True):
        assert a.health.loss == pytest.approx(b.health.loss, rel=1e-3)
        np.testing.assert_allclose(a.norms * 0.1**0.5, b.norms, rtol=1e-4)
    (warmer,) = [row.method for row in rows if row.method.name == changes.SAME_ROOM]
    assert answers[warmer.name][0].health.loss != pytest.approx(first[0].health.loss, rel=0.05)


def test_where_all_points_are_clipped_the_search_cannot_tell_d_hyp_from_d_cos(rows, found):
    chosen, answers = found
    table = tables.settings(answers, rows, chosen, published.settings(), 1)
    assert table["hyp"].to_numpy() == pytest.approx(table["cosine"].to_numpy(), abs=1e-9)
    assert f"in none of {len(rows)} rows" in sentences.by_cosine(answers, 1)


def test_no_setting_of_the_head_changes_the_frozen_encoder(rows, found):
    chosen, answers = found
    table = tables.settings(answers, rows, chosen, published.settings(), 1)
    (alone,) = {answer.per_query.values["hit_rate", 1].mean() for answer in answers[NONE]}
    assert table["frozen"].to_numpy() == pytest.approx(100 * alone) and (table["frozen"] != table["hyp"]).any()


def test_sizes_are_told_apart_by_head_and_encoder(default, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "TRAINED", tmp_path)
    x = {"32 px": features()[:, :40], "64 px": features()}
    answers = changes.sizes(x, PARTS, default, [1e-3], [1])
    assert list(answers) == ["32 px, head", "32 px, encoder", "64 px, head", "64 px, encoder"]
    asked = tables.questions([changes.Change("none", np.nan, default)], answers, "32 px")
    assert asked[tables.SIZES] == [("64 px, head", "32 px, head"), ("64 px, encoder", "32 px, encoder")]
