"""Algorithm 1 against its steps written as loops; who is refused gets no images."""

import itertools

import numpy as np
import pytest

from lib.errors import InputError
from lib.metrics import hashing
from lib.search.recommend import Archive
from lib.search.refusal import Gate

N, BITS, DIMS = 40, 16, (5, 3)
RNG = np.random.default_rng(0)
H = RNG.normal(size=(N, BITS))
H[20:] = H[:20] * RNG.uniform(0.5, 2, (20, BITS))  # the same signs: every distance stands twice
LEVELS = [RNG.normal(size=(N, d)) for d in DIMS]
GATES = [Gate("rebuilt with an error of", 0.3, 0.99)]


def archive(gates=(), n=N) -> Archive:
    return Archive(hashing.pack(H[:n]), [level[:n] for level in LEVELS], gates)


def by_loops(h, levels):
    """Pairs of whole bits and mean Pearson coefficient, sorted."""
    rows = []
    for i in range(N):
        bits = sum((a >= 0) != (b >= 0) for a, b in zip(h, H[i], strict=True))
        near = np.mean([np.corrcoef(q, level[i])[0, 1] for q, level in zip(levels, LEVELS, strict=True)])
        rows.append((bits, -near, i))
    return sorted(rows)


def test_answers_are_those_of_the_steps_written_as_loops():
    h, levels = RNG.normal(size=BITS), [RNG.normal(size=d) for d in DIMS]
    found = archive().recommend(hashing.pack(h[None])[0], levels, k=N)
    expected = by_loops(h, levels)
    assert found.reason is None
    assert found.images.tolist() == [i for _, _, i in expected]
    assert found.distance.tolist() == [bits for bits, _, _ in expected]
    np.testing.assert_allclose(found.content, [-near for _, near, _ in expected], atol=1e-6)
    assert any(a[0] == b[0] and a[2] > b[2] for a, b in itertools.pairwise(expected))
    assert archive().recommend(hashing.pack(h[None])[0], levels, k=7).images.tolist() == found.images[:7].tolist()


def test_images_that_are_equal_in_all_keep_the_order_of_the_archive():
    same = Archive(np.zeros((5, 2), np.uint8), [np.ones((5, 1)) * [1.0, 2.0]])
    assert same.recommend(np.zeros(2, np.uint8), [[1.0, 3.0]], k=5).images.tolist() == [0, 1, 2, 3, 4]


def test_a_query_beyond_a_limit_gets_the_reason_and_no_image():
    found = archive(GATES).recommend(archive().codes[0], [level[0] for level in LEVELS], [0.4])
    assert found.reason.startswith("rebuilt with an error of 0.4, above 0.3")
    assert len(found.images) == len(found.distance) == len(found.content) == 0
    passed = archive(GATES).recommend(archive().codes[0], [level[0] for level in LEVELS], [0.3])
    assert passed.reason is None and passed.images[0] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"code": np.zeros(3, np.uint8)}, r"shape \(3,\); codes of this archive are uint8 of 2 bytes"),
        ({"code": np.zeros(2)}, "code is float64"),
        ({"levels": [np.zeros(5)]}, r"levels are \[\(5,\)\], those of the archive \[\(5,\), \(3,\)\]"),
        ({"k": 41}, "k = 41, but the archive has 40 images"),
        ({"k": 0}, "k"),
        ({"scores": [0.1, 0.2]}, "0 gates, but 2 scores"),
    ],
)
def test_what_does_not_fit_the_archive_is_refused_in_words(change, message):
    given = {"code": np.zeros(2, np.uint8), "levels": [np.zeros(d) for d in DIMS]} | change
    with pytest.raises(InputError, match=message):
        archive().recommend(**given)
    with pytest.raises(InputError, match="not packed codes"):
        Archive(H, LEVELS)
    with pytest.raises(InputError, match="level 2 has 39 images, but there are 40 codes"):
        Archive(hashing.pack(H), [LEVELS[0], LEVELS[1][:39]])
