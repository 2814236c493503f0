import numpy as np
import pytest

from lib.errors import InputError
from lib.metrics.hashing import hamming, pack
from lib.search import binary


def drawn(n, bits, seed):
    return pack(np.random.default_rng(seed).normal(size=(n, bits)))


def by_loop(query, gallery, k):
    """Every pair, bit by bit, and a stable sort."""
    pairs = [[sum(int(a ^ b).bit_count() for a, b in zip(x, y, strict=True)) for y in gallery] for x in query]
    order = np.argsort(pairs, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(np.array(pairs), order, axis=1), order


@pytest.mark.parametrize("bits", [8, 136])
def test_all_codes_compared_are_the_loop_over_bits(bits):
    query, gallery = drawn(5, bits, 0), drawn(60, bits, 1)
    found, wanted = binary.exact(query, gallery, 12), by_loop(query, gallery, 12)
    assert np.array_equal(found[0], wanted[0]) and np.array_equal(found[1], wanted[1])


@pytest.mark.parametrize("bits", [8, 64])
def test_faiss_flat_is_the_exact_search_up_to_the_last_tie(bits):
    query, gallery = drawn(20, bits, 0), drawn(400, bits, 1)
    distance, index = binary.BinaryIndex(gallery).search(query, 10)
    truth = binary.exact(query, gallery, 10)
    assert np.array_equal(distance, truth[0])
    assert np.array_equal(distance, np.take_along_axis(hamming(query, gallery), index, axis=1))
    inner = distance < distance[:, -1:]
    assert np.array_equal(index[inner], truth[1][inner])
    assert all(len(set(row)) == 10 for row in index.tolist())
    copies = np.repeat(drawn(4, bits, 3), 5, axis=0)  # ties are in the order of the gallery
    every = binary.exact(copies[:1], copies, 20)[1]
    assert np.array_equal(binary.BinaryIndex(copies).search(copies[:1], 20)[1], every)


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_structures_find_nearly_all_and_say_true_distances(kind):
    query, gallery = drawn(30, 64, 0), drawn(1000, 64, 1)
    options = {"probes": 64} if kind == "ivf" else {}
    distance, index = binary.BinaryIndex(gallery, kind, **options).search(query, 5)
    assert np.array_equal(distance, np.take_along_axis(hamming(query, gallery), index, axis=1))
    assert (distance == binary.exact(query, gallery, 5)[0]).mean() > 0.8
    assert (np.diff(distance, axis=1) >= 0).all()


def test_a_list_that_is_too_short_ends_in_minus_one():
    index = binary.BinaryIndex(drawn(50, 64, 1), "ivf", lists=25, probes=1)
    distance, found = index.search(drawn(4, 64, 0), 50)
    assert ((found == -1) == (distance == -1)).all() and (found == -1).any()
    assert all(-1 not in row[: row.index(-1)] for row in found.tolist() if -1 in row)


@pytest.mark.parametrize(
    ("kind", "options"),
    [("hnsw", {"neighbours": 1}), ("ivf", {"lists": 0}), ("ivf", {"lists": 2.5}), ("ivf", {"probes": 0})],
)
def test_options_without_meaning_are_refused(kind, options):
    with pytest.raises(InputError, match=f"{next(iter(options))} = .* cannot be used"):
        binary.BinaryIndex(drawn(50, 64, 1), kind, **options)


def test_an_index_knows_its_recall():
    codes = drawn(300, 32, 1)
    with pytest.warns(UserWarning, match="binary ivf index finds .* compare all codes"):
        few = binary.BinaryIndex(codes, "ivf", lists=40, probes=4)
    assert few.recall < 0.99 and binary.BinaryIndex(codes).recall == 1


def test_what_is_no_code_is_refused():
    codes = drawn(6, 16, 0)
    index = binary.BinaryIndex(codes)
    with pytest.raises(InputError, match="not packed codes"):
        binary.BinaryIndex(codes.astype(np.int64))
    with pytest.raises(InputError, match="kind = 'tree'"):
        binary.BinaryIndex(codes, "tree")
    with pytest.raises(InputError, match="the index holds 2 bytes"):
        index.search(drawn(2, 32, 0), 1)
    with pytest.raises(InputError, match="candidates = '9'"):
        index.search(codes, 1, candidates="9")
    with pytest.raises(InputError, match="k = 7, but the gallery has 6 codes"):
        index.search(codes, 7)
    with pytest.raises(InputError, match="k = 7, but the gallery has 6 codes"):
        binary.exact(codes, codes, 7)
