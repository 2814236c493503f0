"""Retrieval metrics against loops over every order of the ties, an exact walk, torchmetrics and scikit-learn."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics.functional.retrieval import retrieval_average_precision

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.metrics import retrieval
from lib.metrics.retrieval import PerQuery, average_precision_at_k, evaluate

METRICS = ("ap_min", "ap_hits", "ap_k", "precision", "hit_rate")
GEOMETRIES = [Euclidean(), Sphere(), PoincareBall(c=0.7)]


def ours(distance, relevant, ks):
    """All metrics of a batch as {metric: (q, len(ks))}."""
    cut = retrieval._cut(distance, relevant, ks)
    return {name: metric(cut) for name, metric in retrieval._METRICS.items()}


def one_order(ranked, k):
    """All metrics of one ranking, given as booleans nearest first, straight from the definitions."""
    gain, hits = Fraction(0), 0
    for rank, is_relevant in enumerate(ranked[:k], start=1):
        if is_relevant:
            hits += 1
            gain += Fraction(hits, rank)
    return {
        "ap_min": gain / min(k, sum(ranked)),
        "ap_hits": gain / hits if hits else Fraction(0),
        "ap_k": gain / k,
        "precision": Fraction(hits, k),
        "hit_rate": Fraction(hits > 0),
    }


def all_orders(distance, relevant, k):
    """The mean of each metric over every order of the items that is sorted by distance; inf is not in the gallery."""
    levels = [
        [is_relevant for d, is_relevant in zip(distance, relevant, strict=True) if d == level]
        for level in sorted(set(distance) - {np.inf})
    ]
    orders = [sum(parts, ()) for parts in itertools.product(*map(itertools.permutations, levels))]
    values = [one_order(order, k) for order in orders]
    return {name: float(sum(value[name] for value in values) / len(orders)) for name in METRICS}


def exact_walk(sets, k):
    """The same mean for large sets of ties [(size, hits), ...]: draw item after item, each state with its chance.

    A state is (items and hits left in the current set, all hits so far); it carries its probability and the
    probability-weighted sum of rel(i) H(i) / i.
    """
    n_relevant = sum(hits for _, hits in sets)
    states = {0: (Fraction(1), Fraction(0))}
    rank = 0
    for size, hits in sets:
        inside = {(0, before): mass for before, mass in states.items()}
        for drawn in range(min(size, k - rank)):
            following = {}
            for (found, before), (chance, gain) in inside.items():
                hit = Fraction(hits - found, size - drawn)
                total = before + found + 1
                for step, p, bonus in (
                    (1, hit, Fraction(total, rank + drawn + 1)),
                    (0, 1 - hit, Fraction(0)),
                ):
                    old = following.get((found + step, before), (Fraction(0), Fraction(0)))
                    new = (old[0] + p * chance, old[1] + p * (gain + chance * bonus))
                    following[found + step, before] = new
            inside = following
        states = {}
        for (found, before), (chance, gain) in inside.items():
            old = states.get(before + found, (Fraction(0), Fraction(0)))
            states[before + found] = (old[0] + chance, old[1] + gain)
        rank = min(k, rank + size)
    gain = sum(gain for _, gain in states.values())
    return {
        "ap_min": float(gain / min(k, n_relevant)),
        "ap_hits": float(sum(gain / hits for hits, (_, gain) in states.items() if hits)),
        "ap_k": float(gain / k),
        "precision": float(sum(chance * hits for hits, (chance, _) in states.items()) / k),
        "hit_rate": float(sum(chance for hits, (chance, _) in states.items() if hits)),
    }


def blobs(n, seed, dtype=torch.float64, classes=3):
    """Points in the unit ball with overlapping classes and text labels."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(classes, size=n)
    points = generator.normal(scale=0.15, size=(n, 3)) + 0.2 * np.eye(3)[labels % 3]
    points /= np.maximum(1, np.linalg.norm(points, axis=1, keepdims=True) / 0.9)
    return torch.tensor(points, dtype=dtype), np.array(["adipose", "stroma", "tumour", "mucosa"])[labels]


def test_a_miss_counts_zero_and_no_relevant_item_counts_nan():
    distance = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    relevant = torch.tensor([[False, False, True], [False, False, False]])
    for value in ours(distance, relevant, [2]).values():
        assert value[0].item() == 0
        assert value[1].isnan()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    items=st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, np.inf]), st.booleans()), min_size=1, max_size=6),
    k=st.integers(1, 9),
)
def test_ties_have_the_mean_over_all_orders(items, k):
    distance, relevant = zip(*items, strict=True)
    values = ours(torch.tensor([distance], dtype=torch.float32), torch.tensor([relevant]), [k])
    if not any(r and d < np.inf for d, r in items):
        assert all(value.isnan().all() for value in values.values())
        return
    for name, expected in all_orders(distance, relevant, k).items():
        assert values[name].item() == pytest.approx(expected, abs=1e-12), name


def test_many_ties_as_hamming_distances_have_them():
    """Five integer distances over 1000 items, in mixed order, several rows and cuts at once."""
    generator = np.random.default_rng(0)
    distance = generator.choice(5, p=[0.004, 0.03, 0.2, 0.366, 0.4], size=(3, 1000))
    relevant = generator.random((3, 1000)) < 0.4 / (1 + distance)
    relevant[2] = generator.random(1000) < 0.004
    ks = [1, 5, 40]
    values = ours(torch.tensor(distance), torch.tensor(relevant), ks)
    for row in range(3):
        sets = [(int((distance[row] == d).sum()), int(relevant[row, distance[row] == d].sum())) for d in range(5)]
        for column, k in enumerate(ks):
            for name, expected in exact_walk(sets, k).items():
                assert values[name][row, column].item() == pytest.approx(expected, abs=1e-10), (name, row, k)


def test_a_large_tie_stays_exact_in_the_tails():
    """All 200,000 items tie, 3 are relevant: the first one is relevant with probability 3 / 200,000."""
    relevant = torch.zeros(1, 200_000, dtype=torch.bool)
    relevant[0, :3] = True
    for value in ours(torch.zeros(1, 200_000), relevant, [1]).values():
        assert value.item() == pytest.approx(3 / 200_000, rel=1e-8)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_evaluate_equals_loops_over_distances(geometry, dtype):
    query, query_labels = blobs(9, seed=1, dtype=dtype)
    gallery, gallery_labels = blobs(25, seed=2, dtype=dtype)
    result = evaluate(query, gallery, query_labels, gallery_labels, geometry, ks=(1, 4, 30))
    distance = geometry.pairwise(query, gallery)
    assert list(result.values.columns) == [(name, k) for name in METRICS for k in (1, 4, 30)]
    for row in range(9):
        ranked = [gallery_labels[j] == query_labels[row] for j in distance[row].sort().indices.tolist()]
        assert result.n_relevant[row] == sum(ranked)
        for k in (1, 4, 30):
            for name, expected in one_order(ranked, k).items():
                assert result.values.loc[row, (name, k)] == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_blocks_do_not_change_values(block):
    points, labels = blobs(40, seed=3)
    ids = np.arange(40)
    arguments = (points, points, labels, labels, PoincareBall(c=1.0), (1, 5), ids, ids)
    whole, parts = evaluate(*arguments), evaluate(*arguments, block=block)
    np.testing.assert_array_equal(parts.values, whole.values)
    np.testing.assert_array_equal(parts.n_relevant, whole.n_relevant)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: g.name)
def test_the_order_of_the_gallery_does_not_matter_with_duplicates(geometry):
    """Every tile is there twice, under classes that differ for some: the two copies tie."""
    gallery, labels = blobs(30, seed=4)
    gallery, labels = torch.cat([gallery, gallery]), np.concatenate([labels, np.roll(labels, 1)])
    query, query_labels = blobs(10, seed=5)
    order = np.random.default_rng(6).permutation(60)
    first = evaluate(query, gallery, query_labels, labels, geometry)
    second = evaluate(query, gallery[order], query_labels, labels[order], geometry)
    np.testing.assert_allclose(first.values, second.values, atol=1e-13)
    assert (first.values["precision", 1] == 0.5).any()


def test_the_query_is_left_out_by_identity_and_not_by_rank():
    """Image 0 has a duplicate with another label and one with its own: it is left out, its duplicates stay."""
    points = torch.tensor([[0.1, 0.0], [0.1, 0.0], [0.1, 0.0], [0.5, 0.0]])
    labels, ids = ["a", "b", "a", "a"], ["i0", "i1", "i2", "i3"]
    result = evaluate(points[:1], points, labels[:1], labels, Euclidean(), (1, 3), ids[:1], ids)
    assert result.n_relevant.tolist() == [2]
    assert result.values["precision", 1].tolist() == [0.5]
    # Orders of the two duplicates: 1 0 1 with AP (1 + 2/3) / 2 and 0 1 1 with AP (1/2 + 2/3) / 2.
    assert result.values["ap_min", 3].tolist() == [pytest.approx((5 / 6 + 7 / 12) / 2, abs=1e-14)]


def test_patient_ids_leave_out_all_tiles_of_the_patient():
    points, labels = blobs(30, seed=7)
    patients = np.array([f"p{i % 6}" for i in range(30)])
    result = evaluate(points, points, labels, labels, Euclidean(), (1, 5), patients, patients)
    for row in range(30):
        others = patients != patients[row]
        alone = evaluate(points[[row]], points[others], labels[[row]], labels[others], Euclidean(), (1, 5))
        np.testing.assert_allclose(result.values.iloc[row], alone.values.iloc[0], atol=1e-14)
        assert result.n_relevant[row] == alone.n_relevant[0]


def test_a_list_longer_than_any_gallery_costs_no_memory():
    """Two thousand million numbers for a gallery of two images: the process was killed."""
    result = evaluate([[1.0]] * 100, [[1.0], [2.0]], ["a"] * 100, ["a", "b"], Euclidean(), (2, 2**31 - 1))
    mean = result.mean().set_index(["metric", "k"])
    assert mean["chance"]["ap_min", 2**31 - 1] == mean["chance"]["ap_min", 2] == 0.75
    assert mean["value"]["hit_rate", 2**31 - 1] == 1


def given(**changes):
    """Arguments of :func:`evaluate`, with some of them changed."""
    points, labels = torch.zeros(4, 2), ["a", "b", "a", "b"]
    same = {"query": points, "gallery": points, "query_labels": labels, "gallery_labels": labels}
    return same | {"geometry": Euclidean()} | changes


ROW = torch.zeros(4, 2).index_put((torch.tensor(2), torch.tensor(1)), torch.tensor(torch.nan))
BROKEN = [
    ({"gallery": torch.zeros(0, 2), "gallery_labels": []}, "the gallery is empty"),
    ({"gallery": torch.zeros(4, 3)}, r"\(4, 2\) and \(4, 3\)"),
    ({"query": torch.zeros(2)}, r"\(2,\) and \(4, 2\)"),
    ({"query": torch.zeros(4, 2).double()}, "float64 but gallery is torch.float32"),
    ({"ks": (1, 0)}, r"ks\[1\] = 0"),
    ({"ks": ()}, r"ks = \(\)"),
    ({"gallery_labels": ["a"]}, r"gallery labels have shape \(1,\).* 4 gallery"),
    ({"query_labels": ["a", None, "a", "b"]}, "query row 1 has no label"),
    ({"gallery_labels": [0, 1, 0, 1]}, "query labels are string but gallery .* integer"),
    ({"query_ids": [1, 2, 3, 4]}, "both query_ids and gallery_ids"),
    ({"query_ids": [1, 2, 3, 4], "gallery_ids": list("1234")}, "ids are integer but gallery ids are string"),
    ({"query": ROW}, "query row 2 holds NaN"),
    ({"gallery": ROW}, "gallery row 2 holds NaN"),
    ({"query": 1e30 * torch.eye(4)[:, 2:], "block": 2}, "query row 2 to gallery row 0 is not finite"),
    ({"block": 0}, "block = 0"),
]


@pytest.mark.parametrize(("changes", "message"), BROKEN, ids=str)
def test_broken_input_is_named(changes, message):
    with pytest.raises(InputError, match=message):
        evaluate(**given(**changes))


@pytest.mark.parametrize(
    ("distance", "relevant", "denominator", "message"),
    [
        (torch.zeros(2, 3), torch.zeros(2, 2, dtype=torch.bool), "min", "same shape"),
        (torch.zeros(2, 3), torch.zeros(2, 3), "min", "bool relevant"),
        (torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool), "min", "no distances"),
        (ROW, ROW > 0, "min", "query row 2 hold NaN"),
        (torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool), "relevant", "'relevant' is not known"),
    ],
)
def test_broken_matrices_are_named(distance, relevant, denominator, message):
    with pytest.raises(InputError, match=message):
        average_precision_at_k(distance, relevant, [1], denominator)


def test_torchmetrics_agrees_with_hits_when_scores_are_positive():
    generator = torch.Generator().manual_seed(5)
    distance, relevant = torch.rand(20, 40, generator=generator), torch.rand(20, 40, generator=generator) < 0.3
    for k in (1, 5, 40):
        theirs = [
            retrieval_average_precision(1 / (1 + d), r, top_k=k).item() for d, r in zip(distance, relevant, strict=True)
        ]
        found = average_precision_at_k(distance, relevant, [k], "hits").squeeze(1)
        assert found[relevant.any(1)].tolist() == pytest.approx(np.array(theirs)[relevant.any(1)], abs=1e-6)


@pytest.mark.parametrize("ids", [False, True])
def test_chance_is_the_value_of_a_gallery_at_one_distance(ids):
    """All orders of a gallery whose items are equally far have the mean that random order has."""
    generator = np.random.default_rng(8)
    labels, groups = generator.integers(3, size=30), generator.integers(6, size=30)
    labels[:3] = [7, 8, 8]  # a class of one, and one whose other image may be of the same group
    known = (groups[:12], groups) if ids else (None, None)
    points, ks = torch.from_numpy(generator.normal(size=(30, 4))), (1, 5, 20, 40)
    result = evaluate(points[:12], points, labels[:12], labels, Euclidean(), ks, *known)
    nowhere = torch.zeros(30, 1)
    expected = evaluate(nowhere[:12], nowhere, labels[:12], labels, Euclidean(), ks, *known)
    pd.testing.assert_frame_equal(result.chance, expected.values)
    assert result.n_gallery.tolist() == [sum(g != own for g in groups) if ids else 30 for own in groups[:12]]


def test_the_mean_over_classes_counts_each_class_once_and_large_numbers_do_not_collide():
    frame = pd.DataFrame([[1.0], [0.5], [0.0], [np.nan]], columns=pd.MultiIndex.from_tuples([("precision", 1)]))
    frame.columns.names = ["metric", "k"]
    result = PerQuery(frame, np.array(["a", "a", "b", "c"]), np.array([2, 2, 2, 0]), np.full(4, 8)).mean().iloc[0]
    assert result[["value", "class_mean", "chance"]].tolist() == [0.5, (0.75 + 0) / 2, 0.25]
    assert result[["n_queries", "n_without_relevant"]].tolist() == [4, 1]
    points = torch.tensor([[0.0], [1.0]])  # as float32, 2^24 and 2^24 + 1 are the same number
    far = evaluate(points[:1], points, [2**24], [2**24 + 1, 2**24], Euclidean(), (1,), [2**53], [2**53 + 1, 0])
    assert far.values["precision", 1].tolist() == [0]
