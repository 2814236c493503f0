"""Rankings, ties, balls and tests, the trainings behind them, and Algorithm 1 as a lexsort."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.encoders.taps import Taps
from lib.errors import InputError
from lib.metrics import hashing
from lib.metrics.retrieval import average_precision_at_k
from lib.papers.acir import listing, ranking, training
from lib.papers.acir.heads import ACIR
from lib.papers.acir.ranking import BEST, COMMONEST, HAMMING, LEVELS, POOLED, WORST, Search
from lib.training.acir import Design
from lib.training.hashing import Even
from lib.training.splits import Split, repeated
from tests.images import listed

RNG = np.random.default_rng(0)
LABELS, GROUPS = np.arange(48) % 3, np.arange(48) // 6
SPLIT = Split(0, np.arange(24), np.arange(24, 48), 0)
POOL = RNG.normal(size=(48, 6)) + 2 * np.eye(3)[LABELS] @ RNG.normal(size=(3, 6))
SEARCH = Search(SPLIT.test, SPLIT.train, LABELS, {"finer": np.where(RNG.random(48) < 0.5, "a", "b")})


def codes(method=ACIR, bits=8, repeat=0, seed=0):
    rng = np.random.default_rng(seed)
    h = np.eye(3)[LABELS] @ rng.normal(size=(3, bits)) + 0.7 * rng.normal(size=(48, bits))
    levels = {name: POOL + rng.normal(size=POOL.shape) for name in ("shallow", "token")} if method == ACIR else {}
    return training.Codes(method, repeat, h, [2.0, 1.0], 9, levels)


def test_content_orders_ties_and_nothing_else():
    keys = ranking.keys(codes(), POOL, SEARCH)
    assert set(keys) == {HAMMING, POOLED, LEVELS, "level: shallow", "level: token"}
    for name, key in keys.items():
        assert (np.round(key - keys[HAMMING], 9) >= 0).all() and (key - keys[HAMMING] < 1).all(), name
    similarity = hashing.content_similarity([POOL[SPLIT.test]], [POOL[SPLIT.train]])
    row = np.lexsort((-similarity[0], keys[HAMMING][0]))
    assert row.tolist() == keys[POOLED][0].argsort(kind="stable").tolist()


def test_every_query_is_measured_by_every_ranking():
    rows = ranking.measured(codes(), POOL, SEARCH)
    assert len(rows) == 24 * 7 and set(rows["ranking"]) >= {BEST, WORST}
    distance = hashing.hamming(*(hashing.pack(codes().h[part]) for part in (SPLIT.test, SPLIT.train)))
    wanted = 100 * average_precision_at_k(distance, SEARCH.relevant, [24], "min").numpy()[:, 0]
    assert np.allclose(rows.query("ranking == @HAMMING")["ap_min"], wanted)
    by = rows.groupby("ranking")["ap_min"].mean()
    assert by[WORST] <= by[HAMMING] <= by[BEST] and by[WORST] <= by[POOLED] <= by[BEST]


def test_no_query_finds_itself_if_it_is_in_the_gallery():
    twins = Search(np.arange(4), np.arange(4), np.zeros(4, int), {"own": np.array(list("aabb"))}, own_out=True)
    rows = ranking.measured(replace(codes(), h=np.ones((4, 8)), levels={}), None, twins, [HAMMING])
    assert np.allclose(rows["own"], 100 / 3) and twins.chance("own") == pytest.approx(100 / 3)
    assert np.allclose(rows["ap_hits"], 100)
    three = Search(np.arange(1), np.arange(1, 3), np.array([0, 0, 1]))
    assert three.random_order() == {"ap_hits": pytest.approx(75), "ap_min": pytest.approx(75)}


def test_no_more_queries_than_the_limit(monkeypatch):
    monkeypatch.setattr(ranking, "QUERIES", 5)
    drawn = ranking.queries(SPLIT, 1)
    assert len(drawn) == 5 and set(drawn) <= set(SPLIT.test) and (np.diff(drawn) > 0).all()
    assert np.array_equal(drawn, ranking.queries(SPLIT, 1))


def test_network_and_heads_learn_and_keep_their_seeds(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "TRAINED", tmp_path)
    deep = (POOL[:, :, None, None] + 0.1 * RNG.normal(size=(48, 6, 2, 2))).astype(np.float16)
    maps = Taps(RNG.normal(size=(48, 4, 4, 4)).astype(np.float16), deep)
    design = Design(8, narrow=(4, 4), window=4, heads=2, width=4, grid=2)
    prints = RNG.random((48, 12)).astype(np.float32)
    given = training.Material([maps], LABELS, prints, Even(12, 12), workers=1), design
    rates = dict.fromkeys((ACIR, *training.RIVALS), 0.01)
    done = training.trained(*given, [8], rates, SPLIT, 2)
    assert [(c.method, c.repeat) for c in done] == [(n, r) for n in (ACIR, "CSQ", "DCH", "DPN") for r in (0, 1)]
    assert all(c.history[-1] < c.history[0] and c.steps == 24 and c.h.shape == (48, 8) for c in done)
    assert list(done[0].levels) == ["shallow", "fused", "pixels", "token"] and not done[2].levels
    chosen = ranking.choose(*given, [0.001, 0.01], SPLIT, groups=np.arange(48))
    assert len(chosen) == 8 and chosen.groupby("method")["chosen"].sum().eq(1).all()
    twice = ranking.choose(*given, [0.01], SPLIT, np.arange(48), 2)["validation"]
    each = [ranking.choose(*given, [0.01], one, np.arange(48))["validation"] for one in repeated([SPLIT], 2)]
    assert np.allclose(twice, np.mean(each, axis=0)) and not np.allclose(*each)


def test_tests_pair_patients_and_trainings():
    several = [codes(name, 8, repeat, 10 * repeat + n) for repeat in (0, 1) for n, name in enumerate((ACIR, "CSQ"))]
    values = ranking.all_measured(several, POOL, SEARCH, workers=1)
    rivals = [one for one in ranking.pairs([8], 8, ["finer"]) if not one[-1][0].startswith("D")]
    table = ranking.tests(values, rivals, GROUPS)
    assert len(table) == 3 + 2 + 3 + 1 and table["n_units"].eq(4).all() and table["n_seeds"].eq(2).all()
    a, b = (values.query("method == @ACIR and ranking == @name") for name in (LEVELS, HAMMING))
    paired = pd.Series(a["ap_min"].to_numpy() - b["ap_min"].to_numpy()).groupby(GROUPS[a["query"]]).mean()
    assert table["difference"][0] == pytest.approx(paired.mean())
    assert ranking.summary(values)["n_seeds"].eq(2).all()


def test_balls_answer_queries_of_known_classes_and_the_commonest_class_is_a_trivial_answer():
    """Archive a a b; four queries a, one b and one c, which the archive lacks: 4 of 5 right, b never."""
    labels = np.array([0, 0, 1, 0, 0, 0, 0, 1, 2])
    search = Search(np.arange(3, 9), np.arange(3), labels)
    one = replace(codes(), h=np.where(labels[:, None] == 0, 1.0, -1.0) * np.ones(4), method="CSQ")
    one.h[3, 0] = -1  # a query one bit beside its centre
    rows = ranking.radii([one], search, [0, 4]).set_index(["method", "radius"])
    assert rows.loc["CSQ", "accuracy"].tolist() == [80.0, 100.0] and rows.loc["CSQ", "n_rejected"].tolist() == [1, 0]
    trivial = rows.loc[COMMONEST]
    assert trivial["accuracy"].tolist() == [80.0] * 2 and trivial["recall"].tolist() == [50.0] * 2
    assert trivial["precision"].tolist() == [pytest.approx(100 * (4 / 5 + 0) / 2)] * 2
    assert set(rows["n_left_out"]) == {1} and trivial["n_rejected"].eq(0).all()


def test_what_is_finer_is_a_column_of_the_table():
    images = listed("xx", subtype=["s", "t"])
    assert ranking.finer_of(images, ["none"]) == {}
    assert ranking.finer_of(images, ["subtype"])["subtype"].tolist() == ["s", "t"]
    with pytest.raises(InputError, match="no column grade"):
        ranking.finer_of(images, ["grade"])


def test_algorithm_1_is_a_lexsort():
    one = codes()
    rows = listing.algorithm(one, list(one.levels.values()), SEARCH, ["x", "y", "z"], 30)
    pairs = [(row.distance, -row.content) for row in rows.sort_values("by_content").itertuples()]
    assert pairs == sorted(pairs) and sorted(rows["by_content"]) == list(range(1, 25))
    by_hamming = rows.sort_values("by_hamming")
    assert by_hamming["distance"].is_monotonic_increasing
    assert by_hamming.groupby("distance")["image"].apply(lambda part: part.is_monotonic_increasing).all()


def test_a_class_that_the_archive_lacks_is_not_shown_but_named():
    """Images 0 to 3 are queries, of classes 1, 0, 1, 2; the archive has classes 0 and 2."""
    search = Search(np.arange(4), np.arange(4, 6), np.array([1, 0, 1, 2, 0, 2]))
    assert listing.first_of_classes(search) == [1, 3]
    assert listing.unanswerable(search, ["x", "y", "z"]).endswith("has no image of their class: y.")
    assert listing.unanswerable(SEARCH, ["x", "y", "z"]) == ""
