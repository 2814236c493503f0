"""Retrieval metrics against loops over every order of the ties, an exact walk, torchmetrics and scikit-learn."""

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score
from torchmetrics.functional.retrieval import retrieval_average_precision
from torchmetrics.retrieval import RetrievalMAP

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.metrics.retrieval import PerQuery, average_precision_at_k, evaluate, hit_rate_at_k, precision_at_k

METRICS = ("ap_min", "ap_hits", "ap_k", "precision", "hit_rate")
GEOMETRIES = [Euclidean(), Sphere(), PoincareBall(c=0.7)]


def ours(distance, relevant, ks):
    """All metrics of a batch as {metric: (q, len(ks))}."""
    values = {f"ap_{z}": average_precision_at_k(distance, relevant, ks, z) for z in ("min", "hits", "k")}
    return values | {
        "precision": precision_at_k(distance, relevant, ks),
        "hit_rate": hit_rate_at_k(distance, relevant, ks),
    }


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


def random_rows(q, m, seed, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(q, m, generator=generator, dtype=dtype), torch.rand(q, m, generator=generator) < 0.3


def blobs(n, seed, dtype=torch.float64, classes=3):
    """Points in the unit ball with overlapping classes and text labels."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(classes, size=n)
    points = generator.normal(scale=0.15, size=(n, 3)) + 0.2 * np.eye(3)[labels % 3]
    points /= np.maximum(1, np.linalg.norm(points, axis=1, keepdims=True) / 0.9)
    return torch.tensor(points, dtype=dtype), np.array(["adipose", "stroma", "tumour", "mucosa"])[labels]


def test_the_golden_example_of_three_denominators():
    distance = torch.tensor([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]])
    relevant = torch.tensor([[True, False, True, False, False, True, True]])
    values = ours(distance, relevant, [1, 5])
    expected = {
        "ap_min": [1, (1 + 2 / 3) / 4],
        "ap_hits": [1, (1 + 2 / 3) / 2],
        "ap_k": [1, (1 + 2 / 3) / 5],
        "precision": [1, 2 / 5],
        "hit_rate": [1, 1],
    }
    for name in METRICS:
        assert values[name].dtype == torch.float64
        assert values[name].tolist() == [pytest.approx(expected[name], abs=1e-15)]


def test_a_miss_counts_zero_and_no_relevant_item_counts_nan():
    distance = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    relevant = torch.tensor([[False, False, True], [False, False, False]])
    for value in ours(distance, relevant, [2]).values():
        assert value[0].item() == 0
        assert value[1].isnan()


def test_one_tie_across_the_cut_by_hand():
    """One relevant item, then one relevant and one irrelevant at the same distance, cut at 2: orders 11 and 10."""
    distance = torch.tensor([[0.0, 1.0, 1.0]])
    relevant = torch.tensor([[True, False, True]])
    expected = {"ap_min": 0.75, "ap_hits": 1.0, "ap_k": 0.75, "precision": 0.75, "hit_rate": 1.0}
    for name, value in ours(distance, relevant, [2]).items():
        assert value.item() == pytest.approx(expected[name], abs=1e-14), name


@pytest.mark.parametrize("seed", range(3))
def test_rows_without_ties_equal_the_loops(seed):
    distance, relevant = random_rows(12, 30, seed)
    ks = [1, 3, 10, 30, 40]
    values = ours(distance, relevant, ks)
    for row in range(12):
        ranked = [bool(relevant[row, j]) for j in sorted(range(30), key=lambda j, row=row: distance[row, j].item())]
        for column, k in enumerate(ks):
            for name, expected in one_order(ranked, k).items():
                assert values[name][row, column].item() == pytest.approx(float(expected), abs=1e-12)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    items=st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, np.inf]), st.booleans()), min_size=1, max_size=7),
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
    distance = generator.choice(5, p=[0.004, 0.03, 0.2, 0.366, 0.4], size=(4, 1000))
    relevant = generator.random((4, 1000)) < 0.4 / (1 + distance)
    relevant[3] = generator.random(1000) < 0.004
    ks = [1, 5, 20, 60]
    values = ours(torch.tensor(distance), torch.tensor(relevant), ks)
    for row in range(4):
        sets = [(int((distance[row] == d).sum()), int(relevant[row, distance[row] == d].sum())) for d in range(5)]
        for column, k in enumerate(ks):
            for name, expected in exact_walk(sets, k).items():
                assert values[name][row, column].item() == pytest.approx(expected, abs=1e-10), (name, row, k)


def test_the_exact_walk_equals_all_orders():
    """The reference of the large case is itself checked on a small one."""
    distance, relevant = [0, 1, 1, 1, 1, 2, 2], [False, True, False, True, False, True, False]
    for k in range(1, 9):
        expected = all_orders(distance, relevant, k)
        assert exact_walk([(1, 0), (4, 2), (2, 1)], k) == pytest.approx(expected, abs=1e-14)


def test_a_large_tie_stays_exact_in_the_tails():
    """All 200,000 items tie, 3 are relevant: the first one is relevant with probability 3 / 200,000."""
    relevant = torch.zeros(1, 200_000, dtype=torch.bool)
    relevant[0, :3] = True
    for value in ours(torch.zeros(1, 200_000), relevant, [1]).values():
        assert value.item() == pytest.approx(3 / 200_000, rel=1e-8)


def test_torchmetrics_agrees_with_hits_when_scores_are_positive():
    distance, relevant = random_rows(20, 40, seed=5, dtype=torch.float64)
    distance = 5 * distance
    relevant[:, 0] = True
    index = torch.arange(20).repeat_interleave(40)
    for k in (1, 5, 40):
        values = average_precision_at_k(distance, relevant, [k], "hits").squeeze(1)
        for row in range(20):
            theirs = retrieval_average_precision(1 / (1 + distance[row]), relevant[row], top_k=k)
            assert values[row].item() == pytest.approx(theirs.item(), abs=1e-6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it warns that it keeps all predictions
            mean = RetrievalMAP(top_k=k)
        mean.update((1 / (1 + distance)).flatten(), relevant.flatten(), indexes=index)
        assert values.mean().item() == pytest.approx(mean.compute().item(), abs=1e-6)


def test_the_torchmetrics_trap_of_negative_distances():
    """It counts no item with a score <= 0 as relevant, so -distance, a fine score elsewhere, silently gives 0."""
    distance = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5])
    relevant = torch.tensor([True, False, True, False, False])
    assert retrieval_average_precision(-distance, relevant, top_k=5).item() == 0
    assert average_precision_at_k(distance[None], relevant[None], [5], "hits").item() == pytest.approx(5 / 6)


def test_the_full_list_equals_scikit_learn():
    distance, relevant = random_rows(10, 50, seed=6, dtype=torch.float64)
    for z in ("min", "hits"):
        values = average_precision_at_k(distance, relevant, [50], z)
        for row in range(10):
            expected = average_precision_score(relevant[row].numpy(), -distance[row].numpy())
            assert values[row].item() == pytest.approx(expected, abs=1e-12)


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


def test_the_mean_counts_queries_without_a_relevant_item_apart():
    gallery = torch.tensor([[0.0], [1.0]])
    query = torch.tensor([[0.1], [0.9], [0.5]])
    result = evaluate(query, gallery, ["a", "a", "c"], ["a", "b"], Euclidean(), ks=(1, 1))
    mean = result.mean()
    means = ["value", "class_mean", "chance", "class_chance"]
    assert mean.columns.tolist() == ["metric", "k", *means, "n_queries", "n_without_relevant"]
    assert mean["metric"].tolist() == list(METRICS)
    assert mean["value"].tolist() == [0.5] * 5
    assert (mean["n_queries"] == 3).all()
    assert (mean["n_without_relevant"] == 1).all()
    assert result.values.loc[2].isna().all()
    assert result.n_relevant.tolist() == [1, 1, 0]


def test_large_numeric_labels_and_ids_do_not_collide():
    """As float32, 2^24 and 2^24 + 1 are the same number."""
    points = torch.tensor([[0.0], [1.0]])
    result = evaluate(points[:1], points, [2**24], [2**24 + 1, 2**24], Euclidean(), (1,), [2**53], [2**53 + 1, 0])
    assert result.values["precision", 1].tolist() == [0]


def test_no_graph_is_kept_of_embeddings_that_need_gradients():
    graphs = []

    class Recorder(Euclidean):
        def rank_key(self, query, gallery):
            keys = super().rank_key(query, gallery)
            graphs.append(keys.requires_grad)
            return keys

    points, labels = blobs(10, seed=8)
    evaluate(points.requires_grad_(), points, labels, labels, Recorder())
    assert graphs == [False]


def test_no_block_is_larger_than_asked_for():
    shapes = []

    class Recorder(Euclidean):
        def rank_key(self, query, gallery):
            shapes.append((len(query), len(gallery)))
            return super().rank_key(query, gallery)

    points, labels = blobs(23, seed=9)
    evaluate(points, points, labels, labels, Recorder(), block=10)
    assert shapes == [(10, 23), (10, 23), (3, 23)]


POINTS, LABELS = torch.zeros(2, 3), ["a", "b"]
BROKEN = {
    "empty gallery": ((POINTS, POINTS[:0], LABELS, [], Euclidean()), "the gallery is empty"),
    "empty query": ((POINTS[:0], POINTS, [], LABELS, Euclidean()), "the query is empty"),
    "other dimension": ((POINTS, POINTS[:, :2], LABELS, LABELS, Euclidean()), r"\(2, 3\) and \(2, 2\)"),
    "not a matrix": ((POINTS[0], POINTS, LABELS, LABELS, Euclidean()), r"\(3,\) and \(2, 3\)"),
    "other dtype": ((POINTS.double(), POINTS, LABELS, LABELS, Euclidean()), "float64 but gallery is torch.float32"),
    "k of 0": ((POINTS, POINTS, LABELS, LABELS, Euclidean(), (1, 0)), r"ks\[1\] = 0"),
    "no k": ((POINTS, POINTS, LABELS, LABELS, Euclidean(), ()), r"ks = \(\)"),
    "broken k": ((POINTS, POINTS, LABELS, LABELS, Euclidean(), (2.5,)), r"ks\[0\] = 2\.5"),
    "few labels": ((POINTS, POINTS, LABELS, ["a"], Euclidean()), r"gallery labels have shape \(1,\).* 2 gallery"),
    "missing label": ((POINTS, POINTS, ["a", None], LABELS, Euclidean()), "query row 1 has no label"),
    "other labels": ((POINTS, POINTS, LABELS, [0, 1], Euclidean()), "query labels are string but gallery .* integer"),
    "one-sided ids": ((POINTS, POINTS, LABELS, LABELS, Euclidean(), (1,), [1, 2]), "both query_ids and gallery_ids"),
    "other ids": (
        (POINTS, POINTS, LABELS, LABELS, Euclidean(), (1,), [1, 2], ["1", "2"]),
        "ids are integer but gallery ids are string",
    ),
}


@pytest.mark.parametrize("arguments, message", BROKEN.values(), ids=BROKEN)
def test_broken_input_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        evaluate(*arguments)


def test_nan_names_its_row():
    query, gallery = torch.zeros(4, 2), torch.zeros(3, 2)
    query[2, 1] = torch.nan
    with pytest.raises(InputError, match="query row 2 holds NaN"):
        evaluate(query, gallery, [0] * 4, [0] * 3, Euclidean())
    with pytest.raises(InputError, match="gallery row 2 holds NaN"):
        evaluate(gallery, query, [0] * 3, [0] * 4, Euclidean())
    distance = torch.tensor([[1.0, 2.0], [torch.nan, 1.0]])
    with pytest.raises(InputError, match="query row 1 hold NaN"):
        precision_at_k(distance, torch.ones(2, 2, dtype=torch.bool), [1])


def test_a_distance_that_is_not_finite_names_its_pair():
    """Finite points, but so far apart that the squared float32 distance overflows; the second block is at fault."""
    points = torch.zeros(5, 2)
    points[4] = 1e30
    with pytest.raises(InputError, match="query row 4 to gallery row 0 is not finite"):
        evaluate(points[:, :], points[:4], [0] * 5, [0] * 4, Euclidean(), block=2)


@pytest.mark.parametrize("block", [0, -1, 2.5])
def test_a_block_without_meaning_is_refused(block):
    with pytest.raises(InputError, match=f"block = {block}"):
        evaluate([[1.0]], [[1.0]], ["a"], ["a"], Euclidean(), (1,), block=block)


def test_a_list_longer_than_any_gallery_costs_no_memory():
    """Two thousand million numbers for a gallery of two images: the process was killed."""
    result = evaluate([[1.0]] * 100, [[1.0], [2.0]], ["a"] * 100, ["a", "b"], Euclidean(), (2, 2**31 - 1))
    mean = result.mean().set_index(["metric", "k"])
    assert mean["chance"]["ap_min", 2**31 - 1] == mean["chance"]["ap_min", 2] == 0.75
    assert mean["value"]["hit_rate", 2**31 - 1] == 1


def test_broken_matrices_are_named():
    with pytest.raises(InputError, match="same shape"):
        precision_at_k(torch.zeros(2, 3), torch.zeros(2, 2, dtype=torch.bool), [1])
    with pytest.raises(InputError, match="bool relevant"):
        precision_at_k(torch.zeros(2, 3), torch.zeros(2, 3), [1])
    with pytest.raises(InputError, match="no distances"):
        precision_at_k(torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool), [1])
    with pytest.raises(InputError, match="'relevant' is not known"):
        average_precision_at_k(torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool), [1], "relevant")


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


def test_the_mean_over_classes_counts_each_class_once():
    frame = pd.DataFrame([[1.0], [0.5], [0.0], [np.nan]], columns=pd.MultiIndex.from_tuples([("precision", 1)]))
    frame.columns.names = ["metric", "k"]
    result = PerQuery(frame, np.array(["a", "a", "b", "c"]), np.array([2, 2, 2, 0]), np.full(4, 8)).mean().iloc[0]
    assert result[["value", "class_mean", "chance"]].tolist() == [0.5, (0.75 + 0) / 2, 0.25]
    assert result[["n_queries", "n_without_relevant"]].tolist() == [4, 1]
