"""Binary hash codes: signs packed in bits, Hamming distances, Hamming balls, and the metrics that ACIR reports.

A code holds the signs of an embedding; 0 counts as +1, so that every number has a sign. Few bits make few distances, so
most items are tied: all values here are means over the orders of ties (see :mod:`lib.metrics.retrieval`), except where
content decides between them (:func:`content_key`).

**What the paper leaves open (erratum AC-22).** It counts as found what is of the query's class *and* inside the Hamming
ball, and in the next sentence all that is inside; the radius of its mAP is not given. :func:`evaluate` takes no ball.
Table 6 judges by "class centres" and calls the radius of their balls the
decision boundary: that is :func:`by_centre`.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike

from lib import checks
from lib.errors import InputError
from lib.geometry import Euclidean
from lib.geometry.points import Points, as_tensor
from lib.metrics import retrieval
from lib.metrics.keys import classes_of

WORD = 8
"""Bytes in a word of which the bits are counted at once."""


def signs(h: Points) -> np.ndarray:
    """``h: (n, bits)`` embeddings as (n, bits) bool, True for +1; 0 is +1. Raises InputError for NaN, or not (n, bits).

    >>> signs([[0.3, -2.0, 0.0, -0.0]])
    array([[ True, False,  True,  True]])
    """
    values = as_tensor(h, "embeddings").detach().cpu().numpy()
    if values.ndim != 2 or not values.size:
        raise InputError(f"the embeddings have the shape {values.shape}; expected (n, bits), and neither of them 0")
    if (missing := np.isnan(values).any(axis=1)).any():
        raise InputError(f"the embedding in row {missing.argmax()} holds NaN, which has no sign")
    return values >= 0


def pack(h: Points) -> np.ndarray:
    """The sign codes of ``h: (n, bits)``, eight bits to a byte: (n, ⌈bits/8⌉) uint8; what is left of a byte is 0.

    >>> pack([[1.0, -1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, 1.0]])
    array([[176, 128]], dtype=uint8)
    """
    return np.packbits(signs(h), axis=1)


def check_packed(name: str, codes: np.ndarray, least: int = 1) -> None:
    """Raise InputError unless ``codes`` are (n, bytes) uint8, n at ``least``, as :func:`pack` makes them."""
    if codes.dtype != np.uint8 or codes.ndim != 2 or codes.size < least:
        raise InputError(f"the {name} is {codes.dtype} of shape {codes.shape}, not packed codes: see hashing.pack")


def hamming(query: np.ndarray, gallery: np.ndarray, bits: int | None = None) -> np.ndarray:
    """How many bits differ between packed codes ``query: (q, bytes)`` and ``gallery: (m, bytes)``: (q, m) int16.

    Codes of 32,768 bits or more have distances in int32.

    bits: how many of them a code has, where that is to be checked: 9 and 16 bits are two bytes alike.

    Raises InputError where the codes are not packed, not of one length, or of more bits than ``bits``.

    >>> hamming(pack([[1.0, 1.0]]), pack([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]]))
    array([[0, 1, 2]], dtype=int16)
    """
    check_packed("query", query, least=0)
    check_packed("gallery", gallery, least=0)
    if query.shape[1] != gallery.shape[1]:
        raise InputError(f"query codes have {query.shape[1]} bytes, those of the gallery {gallery.shape[1]}")
    if bits is not None:
        checks.whole("bits", bits)
    for name, codes in (("query", query), ("gallery", gallery)) if bits is not None else ():
        if (
            not 8 * (codes.shape[1] - 1) < bits <= 8 * codes.shape[1]
            or (codes[:, -1] & (0xFF >> (bits - 1) % 8 + 1)).any()
        ):
            raise InputError(f"the codes of the {name} do not have {bits} bits: pack both from one head")
    width = query.shape[1]
    query, gallery = _words(query), _words(gallery)
    distance = np.zeros((len(query), len(gallery)), dtype=distance_dtype(width))
    for word in range(query.shape[1]):
        distance += np.bitwise_count(query[:, word, None] ^ gallery[:, word])
    return distance


def distance_dtype(n_bytes: int) -> np.dtype:
    """What holds every distance between codes of so many bytes: int16, or what is wider.

    >>> distance_dtype(4095), distance_dtype(4096)
    (dtype('int16'), dtype('int32'))
    """
    return np.promote_types(np.int16, np.min_scalar_type(-8 * n_bytes - 1))


def _words(codes: np.ndarray) -> np.ndarray:
    """Codes (n, bytes) filled up with bits of 0, as (n, words) uint64."""
    filled = np.pad(codes, ((0, 0), (0, -codes.shape[1] % WORD)))
    return np.ascontiguousarray(filled).view(np.uint64)


def evaluate(
    query: Points,
    gallery: Points,
    query_labels: ArrayLike,
    gallery_labels: ArrayLike,
    ks: Sequence[int] = (100,),
    query_ids: ArrayLike | None = None,
    gallery_ids: ArrayLike | None = None,
) -> retrieval.PerQuery:
    """Every metric of :mod:`lib.metrics.retrieval`, ranked by Hamming distance; the paper's mAP is ap_hits at 100.

    ``query``: (q, bits), ``gallery``: (m, bits) embeddings, of which the signs count. In the result's ``mean()`` value
    is mAP and class_mean is maAP. Between codes of −1 and +1 the squared Euclidean distance is four times the Hamming
    distance, a whole number that float32 holds exactly, so that ties are ties. Other arguments and errors as
    :func:`lib.metrics.retrieval.evaluate`.

    >>> result = evaluate([[0.2, 0.4]], [[3.0, 1.0], [1.0, 1.0], [-1.0, 1.0]], ["a"], ["a", "b", "a"], ks=(2,))
    >>> result.values["precision", 2].tolist(), result.values["ap_min", 2].tolist()
    ([0.5], [0.375])
    """
    codes = (torch.from_numpy(np.where(signs(h), np.float32(1), np.float32(-1))) for h in (query, gallery))
    return retrieval.evaluate(*codes, query_labels, gallery_labels, Euclidean(), ks, query_ids, gallery_ids)


def centres(h: Points, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The class centres of Section 4.2: for each bit the sign that most of the class have, +1 where as many have each.

    ``h``: (n, bits) embeddings, ``labels``: (n,). Returns the classes (C,) in order and their packed codes (C, bytes).
    The paper averages codes; only the signs of averages have a Hamming distance.

    >>> classes, codes = centres([[1.0, -1.0], [1.0, 1.0], [-1.0, -1.0]], ["b", "b", "a"])
    >>> classes.tolist(), np.unpackbits(codes, axis=1, count=2).tolist()
    (['a', 'b'], [[0, 0], [1, 1]])
    """
    codes = 2.0 * signs(h) - 1
    if np.shape(labels) != (len(codes),):
        raise InputError(f"labels have the shape {np.shape(labels)}, but there are {len(codes)} embeddings")
    classes, of = classes_of(labels, "embedding")
    sums = np.zeros((len(classes), codes.shape[1]))
    np.add.at(sums, of, codes)
    return classes, pack(sums)


def by_centre(distance: ArrayLike, labels: ArrayLike, classes: ArrayLike, radii: Sequence[int]) -> pd.DataFrame:
    """Table 6: a query takes the class of the nearest centre within the radius, and none where there is none.

    Args:
        distance: (q, C) Hamming distances of the queries to the centres of ``classes: (C,)``.
        labels: (q,) the classes of the queries, all among ``classes``.
        radii: of the balls around the centres.

    Returns:
        A row per radius: radius, accuracy (of all queries, how many get their own class), precision and recall, each
        the mean over the classes that queries have, n_queries, n_rejected (queries in no ball), n_empty (balls of these
        classes without any query, whose precision counts 0). Of t nearest centres at one distance each gets 1/t of the
        query.

    Raises:
        InputError: where shapes do not fit, and for a label that has no centre.

    >>> table = by_centre([[0, 4], [1, 3], [3, 1]], ["a", "a", "a"], ["a", "b"], [0, 1])
    >>> table[["accuracy", "precision", "recall", "n_rejected"]].round(3).values.tolist()
    [[0.333, 1.0, 0.333, 2.0], [0.667, 1.0, 0.667, 0.0]]
    """
    distance, labels, classes = np.asarray(distance), np.asarray(labels), np.asarray(classes)
    checks.values(radii=radii)
    if distance.ndim != 2 or distance.shape != labels.shape + classes.shape or not distance.size:
        raise InputError(
            f"distances are {distance.shape}, but labels {labels.shape} and classes {classes.shape}: expected (q, C), "
            "(q,) and (C,)"
        )
    checks.no_nan("the distances", distance)
    own = labels[:, None] == classes
    if (without := ~own.any(axis=1)).any():
        raise InputError(f"class {labels[without][0]!r} of a query has no centre")
    nearest = distance == distance.min(axis=1, keepdims=True)
    share = nearest / nearest.sum(axis=1, keepdims=True)
    of_class = own.sum(axis=0)
    rows = []
    for radius in radii:
        taken = share * (distance <= radius)
        right, answered = (taken * own).sum(axis=0), taken.sum(axis=0)
        values = {
            "accuracy": right.sum() / len(labels),
            "precision": (right / np.where(answered > 0, answered, 1))[of_class > 0].mean(),
            "recall": (right[of_class > 0] / of_class[of_class > 0]).mean(),
        }
        rejected, empty = (taken.sum(axis=1) == 0).sum(), (answered[of_class > 0] == 0).sum()
        counts = {"n_queries": len(labels), "n_rejected": int(rejected), "n_empty": int(empty)}
        rows.append({"radius": radius} | values | counts)
    return pd.DataFrame(rows)


def content_key(distance: ArrayLike, similarity: ArrayLike) -> np.ndarray:
    """Content-guided ranking (Algorithm 1, Step 5): by Hamming distance, and where that is equal by content.

    ``distance``: (q, m) whole numbers, ``similarity``: (q, m) from −1 to 1, the Pearson coefficient of features.
    Returns (q, m) float64 keys that rank alike, for the functions of :mod:`lib.metrics.retrieval`.

    >>> content_key([[1, 0, 1]], [[-1.0, 0.0, 1.0]]).argsort().tolist()
    [[1, 2, 0]]
    """
    distance, similarity = np.asarray(distance), np.asarray(similarity, dtype=np.float64)
    # Rounding takes a coefficient of 1 a little beyond it; half a bit of room is more than that.
    if distance.shape != similarity.shape or not (np.abs(similarity) <= 1 + 1e-5).all():
        raise InputError(
            f"distance {distance.shape} and similarity {similarity.shape} from {similarity.min()} to "
            f"{similarity.max()}: expected one shape and similarities from -1 to 1"
        )
    return distance + (1 - similarity) / 4


def content_similarity(query: Sequence[ArrayLike], gallery: Sequence[ArrayLike]) -> np.ndarray:
    """The mean over levels of the Pearson coefficients of features (Section 3.5): (q, m) from −1 to 1.

    ``query``, ``gallery``: for each level of the encoder (q, d) and (m, d); d may differ from level to level. A feature
    without variance is 0 to all others. Raises InputError for NaN and infinity, and levels that do not fit.

    >>> content_similarity([[[1.0, 2.0, 3.0]]], [[[2.0, 4.0, 6.0], [3.0, 2.0, 1.0]]]).round(6).tolist()
    [[1.0, -1.0]]
    """
    if len(query) != len(gallery) or not len(query):
        raise InputError(f"the query has {len(query)} levels of features, the gallery {len(gallery)}")
    products = []
    for level, (x, y) in enumerate(zip(query, gallery, strict=True), start=1):
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or not x.shape[1]:
            raise InputError(f"level {level} is {x.shape} in the query, {y.shape} in the gallery: expected one d")
        checks.finite(f"the query's features at level {level}", x)
        checks.finite(f"the gallery's features at level {level}", y)
        products.append(_unit(x) @ _unit(y).T)
    return np.mean(products, axis=0).clip(-1, 1)


def _unit(x: np.ndarray) -> np.ndarray:
    """Rows less their mean, of unit length; 0 for equal numbers, which rounding would give a direction."""
    _, exponent = np.frexp(np.abs(x).max(axis=1, keepdims=True))
    x = np.ldexp(x, -exponent)  # the same digits, about 1, so that no square overflows or vanishes
    centred = x - x.mean(axis=1, keepdims=True)
    noise = 4 * np.finfo(x.dtype).eps * np.abs(x).max(axis=1, keepdims=True)
    centred = np.where(np.abs(centred).max(axis=1, keepdims=True) <= noise, 0, centred)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    return centred / np.where(length > 0, length, 1)
