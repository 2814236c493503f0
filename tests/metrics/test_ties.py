from itertools import combinations, permutations

import numpy as np
import pytest

from lib.errors import InputError
from lib.metrics import ties
from lib.metrics.retrieval import average_precision_at_k


@pytest.fixture
def drawn():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, (6, 7)), rng.random((6, 7)) < 0.5, rng.random((6, 7)) < 0.5


@pytest.mark.parametrize("k", [2, 4, 7, 20])
def test_tied_pairs_are_counted_pair_by_pair(drawn, k):
    for row in drawn[0]:
        first = sorted(row)[:k]
        pairs = list(combinations(first, 2))
        wanted = sum(a == b for a, b in pairs) / len(pairs)
        assert ties.tied_pairs(row[None], k)[0] == pytest.approx(wanted)


def test_the_bounds_are_the_best_and_the_worst_of_all_orders(drawn):
    distance, relevant = drawn[0][:3, :5], drawn[1][:3, :5]
    best, worst = ties.orders(distance, relevant)
    for i in range(3):
        found = []
        for order in permutations(range(5)):
            if (np.diff(distance[i][list(order)]) >= 0).all():
                hits = relevant[i][list(order)][:4]
                ranks = np.flatnonzero(hits) + 1
                total = min(4, relevant[i].sum())
                found.append(sum((n + 1) / rank for n, rank in enumerate(ranks)) / total if total else np.nan)
        for key, wanted in ((best, max(found)), (worst, min(found))):
            value = average_precision_at_k(key[i : i + 1], relevant[i : i + 1], [4], "min").item()
            assert value == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_shares_are_the_mean_over_all_orders(drawn, k):
    key, among, hits = (part[:, :6] for part in drawn)
    found = ties.share_among(key, among, hits, k)
    for i in range(len(key)):
        rows = np.flatnonzero(among[i])
        orders = [o for o in permutations(rows) if (np.diff(key[i][list(o)]) >= 0).all()]
        wanted = np.mean([hits[i][list(o)][:k].mean() for o in orders]) if len(rows) else np.nan
        assert found[i] == pytest.approx(wanted, nan_ok=True)


def test_what_has_no_meaning_is_refused_or_no_number():
    with pytest.raises(InputError, match="expected one shape"):
        ties.share_among([[1.0]], [[True, True]], [[True]], 1)
    with pytest.raises(InputError, match="infinite"):
        ties.share_among([[np.inf]], [[True]], [[True]], 1)
    with pytest.raises(InputError, match="neither of them 0"):
        ties.tied_pairs(np.zeros((0, 3)), 1)
    with pytest.raises(InputError, match="whole distances"):
        ties.orders([[0.5]], [[True]])
    assert ties.tied_pairs([[0, 0]], 1).tolist() == [0.0]
    assert np.isnan(ties.share_among([[1.0, 2.0]], [[False, False]], [[True, True]], 1)).all()
