"""What a code scores: ties by content against a plain loop, health, tests that pair trainings."""

import numpy as np
import pytest

from lib.metrics import hashing
from lib.papers.acir.ablations import scores
from lib.papers.acir.ablations.scores import Scored
from lib.papers.acir.hashing.experiment import TOP
from lib.training.splits import Split

RNG = np.random.default_rng(0)
N, BITS = 60, 4
LABELS, GROUPS = np.arange(N) % 3, np.arange(N) // 6
SPLIT = Split(0, np.arange(24, N), np.arange(24), 0)
H = RNG.normal(size=(N, BITS)).astype(np.float32)
LEVELS = (RNG.normal(size=(N, 5)), RNG.normal(size=(N, 7)))


def precision_sum(order, relevant):
    hits, total = 0, 0.0
    for rank, item in enumerate(order[:TOP], start=1):
        hits += relevant[item]
        total += relevant[item] * hits / rank
    return total, hits


def test_ties_are_broken_by_the_mean_correlation_of_the_levels():
    found = scores.by_content(H, LEVELS, LABELS, SPLIT).values
    for number, query in enumerate(SPLIT.test):
        keys = []
        for item in SPLIT.train:
            differ = sum((H[query] >= 0) != (H[item] >= 0))
            alike = np.mean([np.corrcoef(level[query], level[item])[0, 1] for level in LEVELS])
            keys.append((differ, -alike))
        order = sorted(range(len(keys)), key=keys.__getitem__)
        relevant = LABELS[SPLIT.train] == LABELS[query]
        total, hits = precision_sum(order, relevant)
        assert found["ap_hits", TOP][number] == pytest.approx(total / hits)
        assert found["ap_min", TOP][number] == pytest.approx(total / min(TOP, relevant.sum()))
        assert found["ap_min", 1][number] == relevant[order[0]]


def test_blocks_of_queries_change_nothing(monkeypatch):
    whole = scores.by_content(H, LEVELS, LABELS, SPLIT).values
    monkeypatch.setattr(scores, "BLOCK", 5)
    assert scores.by_content(H, LEVELS, LABELS, SPLIT).values.equals(whole)


def test_without_ties_content_changes_nothing():
    line = np.where(np.arange(12)[None] < np.arange(12)[:, None], 1.0, -1.0)  # distances |i − j|
    few = Split(0, np.arange(1, 12), np.array([0]), 0)
    levels = (RNG.normal(size=(12, 4)),)
    plain, content = scores.by_code(line, LABELS[:12], few), scores.by_content(line, levels, LABELS[:12], few)
    assert plain.values["ap_min", TOP].tolist() == pytest.approx(content.values["ap_min", TOP].tolist())
    assert len(set(hashing.hamming(hashing.pack(line[:1]), hashing.pack(line[1:]))[0])) == 11


def scored(name, repeat, h):
    return Scored(name, repeat, scores.by_code(h, LABELS, SPLIT), [2.0, 1.0 + repeat], 10, 99, BITS / 8)


def test_rows_hold_both_metrics_and_the_health():
    table = scores.rows({"a": [scored("a", 0, H), scored("a", 1, -H)]})
    expected = hashing.evaluate(H[SPLIT.test], H[SPLIT.train], LABELS[SPLIT.test], LABELS[SPLIT.train], (TOP,))
    assert table.loc[0, "mAP"] == pytest.approx(100 * expected.values["ap_hits", TOP].mean())
    assert table.loc[0, "mAP_min"] == pytest.approx(100 * expected.values["ap_min", TOP].mean())
    by_class = expected.values["ap_hits", TOP].groupby(LABELS[SPLIT.test]).mean()
    assert table.loc[0, "maAP"] == pytest.approx(100 * by_class.mean())
    random = expected.chance["ap_hits", TOP]
    assert table.loc[0, "chance_mAP"] == pytest.approx(100 * random.mean())
    assert table.loc[0, "chance_maAP"] == pytest.approx(100 * random.groupby(LABELS[SPLIT.test]).mean().mean())
    first = scored("a", 0, H).per_query.values["ap_min", 1]
    assert table.loc[0, "first_class"] == pytest.approx(100 * first.groupby(LABELS[SPLIT.test]).mean().mean())
    assert table[["loss_first", "loss_last", "steps", "size"]].values.tolist() == [[2, 1, 10, 0.5], [2, 2, 10, 0.5]]
    mean = scores.means(table).iloc[0]
    assert (mean["n_seeds"], mean["loss_last"]) == (2, 1.5)
    assert mean["mAP"] == pytest.approx(table["mAP"].mean())


def test_each_way_to_divide_has_its_own_spread():
    table = scores.rows({"a": [scored("a", 0, H), scored("a", 1, H)]}).assign(mAP=[60.0, 64.0], mAP_min=[50.0, 51.0])
    mean = scores.means(table).iloc[0]
    assert mean["seeds_spread"] == pytest.approx(8**0.5)
    assert mean["seeds_spread_min"] == pytest.approx(0.5**0.5)
    assert np.isnan(scores.means(table.iloc[:1])["seeds_spread_min"].item())


def test_turning_all_bits_over_is_no_difference():
    """Codes and their complements have equal distances."""
    found = {"a": [scored("a", 0, H)], "b": [scored("b", 0, -np.where(H == 0, 1, H))]}
    assert scores.tests(found, [("a", "b")], GROUPS[SPLIT.test])["difference"].tolist() == [0.0]


def test_what_is_made_once_stands_beside_every_training():
    better = np.eye(3)[LABELS] @ RNG.normal(size=(3, 16))
    found = {"a": [scored("a", 0, better), scored("a", 1, H)], "b": [scored("b", 0, H)]}
    (row,) = scores.tests(found, [("a", "b")], GROUPS[SPLIT.test]).itertuples()
    values = [100 * one.per_query.values["ap_min", TOP] for one in (*found["a"], *found["b"])]
    by_group = ((values[0] + values[1]) / 2 - values[2]).groupby(GROUPS[SPLIT.test]).mean()
    assert row.difference == pytest.approx(by_group.mean())
    assert (row.n_seeds, row.n_units) == (2, 4)
