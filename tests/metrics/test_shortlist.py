"""Shortlists: what they lead to equals, to the bit, what the keys of all pairs lead to."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.metrics import retrieval
from lib.metrics.retrieval import evaluate
from lib.metrics.shortlist import shortlists

SPACES = [Euclidean(), Sphere(), PoincareBall(0.9)]
KINDS = ("spread", "grid", "copies", "almost copies", "rim", "opposite")
KS = (1, 5, 20)


def drawn(kind, n, d, generator):
    """(n, d) points in the ball: on a grid distances tie, copies tie at every k, and at the rim rounding is worst."""
    points = generator.normal(size=(n, d)) * 0.4 / d**0.5
    if kind == "grid":
        return generator.integers(-2, 3, size=(n, d)) / 8 / d**0.5
    if kind in ("copies", "almost copies"):
        points = points[generator.integers(max(1, n // int(generator.integers(1, 40))), size=n)]
    if kind == "almost copies":
        points *= 1 + generator.normal(size=(n, 1)) * 10.0 ** -generator.integers(3, 9)
    if kind == "rim":
        points *= (1 - 10.0 ** generator.uniform(-3, -1, size=(n, 1))) / np.linalg.norm(points, axis=1, keepdims=True)
    if kind == "opposite":
        points[: n // 2] = -points[n - n // 2 :]
    return points


def by_all_keys(query, gallery, classes, ids, space):
    """All metrics from the whole table of keys, (q, 15), relevant items, and items."""
    keys = space.rank_key(query, gallery)
    if ids:
        keys = keys.masked_fill(torch.from_numpy(ids[0][:, None] == ids[1]), torch.inf)
    relevant = torch.from_numpy(classes[0][:, None] == classes[1])
    cut = retrieval._cut(keys, relevant, KS)
    values = torch.cat([metric(cut) for metric in retrieval._METRICS.values()], dim=1)
    there = keys < torch.inf
    return values.numpy(), (relevant & there).sum(1).numpy(), there.sum(1).numpy()


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.sampled_from(KINDS), st.sampled_from([2, 17, 70]), st.sampled_from([2, 9, 300]), st.integers(0, 2**31))
def test_shortlists_change_no_bit(space, dtype, kind, d, n_classes, seed):
    generator = np.random.default_rng(seed)
    gallery = space.project(torch.tensor(drawn(kind, 500, d, generator), dtype=dtype))
    among_themselves = generator.random() < 0.5
    query = gallery[:40] if among_themselves else gallery[:40].flip(-1)
    groups = np.arange(500) if generator.random() < 0.5 else generator.integers(60, size=500)
    ids = (groups[:40], groups) if among_themselves else ()
    classes = generator.integers(n_classes, size=40), generator.integers(n_classes, size=500)
    found = evaluate(query, gallery, *classes, space, KS, *ids)
    values, n_relevant, n_gallery = by_all_keys(query, gallery, classes, ids, space)
    assert found.values.to_numpy().tobytes() == values.tobytes()
    np.testing.assert_array_equal(found.n_relevant, n_relevant)
    np.testing.assert_array_equal(found.n_gallery, n_gallery)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
@pytest.mark.parametrize("d", [17, 70])
def test_most_queries_need_no_more_than_their_shortlist(space, d):
    points = torch.from_numpy(drawn("spread", 600, d, np.random.default_rng(0))).float()
    own = torch.arange(600)
    keys, columns, certain = shortlists(points[:50], points, space, (own[:50], own), 20)(slice(0, 50))
    assert certain.float().mean() > 0.9
    assert not (columns == own[:50, None]).any()
    everything = space.rank_key(points[:50], points)
    torch.testing.assert_close(keys, everything.gather(1, columns), rtol=0, atol=0)


def test_nothing_is_promised_where_copies_go_beyond_the_shortlist():
    """Forty copies at one distance, and candidates for twenty: the others tie with the last of them."""
    points = torch.randn(400, 3, generator=torch.Generator().manual_seed(0)).double()
    points[:40] = points[0]
    short = shortlists(points[[0, 100]], points, Euclidean(), None, 20)(slice(0, 2))
    assert short.certain.tolist() == [False, True]


def test_nothing_is_promised_where_near_pairs_decide_how_all_chords_are_rounded():
    """Of 300 images among themselves each has itself: one near pair in 300, too many for 400 numbers."""
    points = torch.randn(300, 400, generator=torch.Generator().manual_seed(0))
    own = torch.arange(300)
    assert not shortlists(points, points, Euclidean(), (own, own), 20)(slice(0, 300)).certain.any()
    assert shortlists(points[:150], points[150:].repeat(2, 1), Euclidean(), None, 20)(slice(0, 150)).certain.any()
