"""Hash codes bit by bit, and what is made of their distances against loops, faiss and scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, precision_score, recall_score

from lib.errors import InputError
from lib.metrics import hashing, retrieval

NAN = float("nan")


def embeddings(n, bits, seed=0):
    return np.random.default_rng(seed).normal(size=(n, bits)).astype(np.float32)


def differing(x, y):
    """The Hamming distance of two embeddings, number by number."""
    return sum((a >= 0) != (b >= 0) for a, b in zip(x, y, strict=True))


def classes(n, n_classes, seed=0):
    return np.random.default_rng(seed + 1).integers(n_classes, size=n)


@pytest.mark.parametrize("bits", [1, 9, 64, 65])
def test_the_distance_counts_signs_that_differ(bits):
    x, y = embeddings(6, bits), embeddings(9, bits, seed=1)
    found = hashing.hamming(hashing.pack(x), hashing.pack(y))
    assert found.tolist() == [[differing(a, b) for b in y] for a in x]
    long = np.array([[0], [255]], np.uint8).repeat(4096, axis=1)
    assert hashing.hamming(long[:1], long).tolist() == [[0, 32_768]]  # more than int16 counts


@pytest.mark.parametrize("bits", [4, 65])
def test_the_metrics_are_those_of_the_hamming_distances(bits):
    x, y = embeddings(15, bits), embeddings(60, bits, seed=1)
    of_x, of_y = classes(15, 3), classes(60, 3, seed=1)
    found = hashing.evaluate(x, y, of_x, of_y, ks=(1, 10, 100)).values
    distance = np.array([[differing(a, b) for b in y] for a in x])
    for name in ("min", "hits", "k"):
        expected = retrieval.average_precision_at_k(distance, of_x[:, None] == of_y, [1, 10, 100], name)
        assert (found[f"ap_{name}"].to_numpy() == expected.numpy()).all()


@pytest.mark.parametrize("n", [3, 6, 7, 12])
def test_a_feature_without_variance_is_like_no_other(n):
    """The mean of these numbers is not one of them by rounding."""
    flat, other = np.full((1, n), 0.1), np.arange(n)[None].astype(float)
    assert hashing.content_similarity([flat], [np.concatenate([flat, 2 * flat, other])]).tolist() == [[0, 0, 0]]


def test_centres_are_the_majority_of_each_bit():
    h, labels = embeddings(31, 9), classes(31, 3)
    found, codes = hashing.centres(h, labels)
    for one, code in zip(found, np.unpackbits(codes, axis=1, count=9), strict=True):
        members = h[labels == one] >= 0
        assert code.tolist() == [int(2 * bit.sum() >= len(bit)) for bit in members.T]


@pytest.mark.parametrize("radius", [0, 2, 4, 9])
def test_table_6_is_a_classification_with_a_class_for_what_is_rejected(radius):
    """Against scikit-learn, with one nearest centre to each query."""
    rng = np.random.default_rng(3)
    distance = np.stack([rng.permutation(10)[:4] for _ in range(60)])
    labels = np.array(list("abcd"))[np.where(rng.random(60) < 0.6, distance.argmin(axis=1), rng.integers(4, size=60))]
    said = np.array([*"abcd", "none"])[np.where(distance.min(axis=1) <= radius, distance.argmin(axis=1), 4)]
    row = hashing.by_centre(distance, labels, list("abcd"), [radius]).iloc[0]
    options = {"labels": list("abcd"), "average": "macro", "zero_division": 0}
    assert row["accuracy"] == pytest.approx(accuracy_score(labels, said))
    assert row["precision"] == pytest.approx(precision_score(labels, said, **options))
    assert row["recall"] == pytest.approx(recall_score(labels, said, **options))
    assert row["n_rejected"] == (said == "none").sum()


def test_a_query_between_two_centres_counts_half():
    row = hashing.by_centre([[2, 2, 5]], ["a"], ["a", "b", "c"], [2]).iloc[0]
    assert (row["accuracy"], row["precision"], row["recall"]) == (0.5, 1.0, 0.5)


def test_content_orders_within_a_distance_and_never_across():
    rng = np.random.default_rng(0)
    distance, similarity = rng.integers(4, size=(5, 30)), rng.uniform(-1, 1, size=(5, 30))
    key = hashing.content_key(distance, similarity)
    for row in range(5):
        assert (key[row].argsort() == np.lexsort((-similarity[row], distance[row]))).all()


def test_content_is_the_mean_coefficient_over_levels():
    rng = np.random.default_rng(0)
    query, gallery = ([rng.normal(size=(n, d)) for d in (4, 9)] for n in (3, 5))
    found = hashing.content_similarity(query, gallery)
    for i, j in np.ndindex(3, 5):
        levels = [np.corrcoef(x[i], y[j])[0, 1] for x, y in zip(query, gallery, strict=True)]
        assert found[i, j] == pytest.approx(np.mean(levels))
    for scale in (1e-300, 1e160, 1e300):  # a coefficient has no unit
        assert hashing.content_similarity([scale * x for x in query], gallery) == pytest.approx(found)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: hashing.pack([[1.0, float("nan")]]), "row 0"),
        (lambda: hashing.pack([1.0, 2.0]), r"\(n, bits\)"),
        (lambda: hashing.hamming(np.ones((1, 1)), np.ones((1, 1))), "not packed"),
        (lambda: hashing.hamming(np.ones((1, 1), np.uint8), np.ones((1, 2), np.uint8)), "bytes"),
        (lambda: hashing.centres([[1.0]], ["a", "b"]), "labels"),
        (lambda: hashing.by_centre([[1]], ["x"], ["a"], [1]), "'x'"),
        (lambda: hashing.by_centre([[1]], ["a"], ["a"], [-1]), "radii"),
        (lambda: hashing.content_similarity([[[1.0]]], []), "levels"),
        (lambda: hashing.content_key([[1]], [[1.5]]), "similarities"),
        (lambda: hashing.by_centre([[NAN]], ["a"], ["a"], [1]), "distances of row 0 hold NaN"),
        (lambda: hashing.centres([[1.0], [1.0]], ["a", None]), "embedding 1 has no label"),
        (lambda: hashing.content_similarity([[[1.0, NAN]]], [[[1.0, 2.0]]]), "query's features at level 1 of row 0"),
        (
            lambda: hashing.content_similarity([[[1.0, 2.0]]], [[[np.inf, 2.0]]]),
            "gallery's features at level 1 of row 0",
        ),
        (lambda: hashing.content_similarity([[[1.0, 2.0]]], [[[1.0, 2.0, 3.0]]]), r"level 1 is \(1, 2\)"),
        (lambda: hashing.pack(np.array([[1 + 1j]])), "complex"),
        (lambda: hashing.hamming(np.ones((1, 1), np.uint8), np.ones((1, 1), np.uint8), bits=2.0), "bits = 2.0"),
    ],
)
def test_what_has_no_meaning_is_refused_in_words(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_codes_of_another_length_in_as_many_bytes_are_refused_where_bits_are_named():
    nine, sixteen = hashing.pack(np.full((1, 9), -1.0)), hashing.pack(np.ones((1, 16)))
    assert hashing.hamming(nine, sixteen).item() == 16  # bytes alone cannot tell
    with pytest.raises(InputError, match="gallery do not have 9 bits"):
        hashing.hamming(nine, sixteen, bits=9)
    with pytest.raises(InputError, match="query do not have 8 bits"):
        hashing.hamming(nine, nine, bits=8)
    assert hashing.hamming(nine, hashing.pack(np.ones((1, 9))), bits=9).item() == 9
    assert hashing.hamming(sixteen, sixteen, bits=16).item() == 0
