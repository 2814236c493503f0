"""Tensors, NumPy arrays and lists are taken alike everywhere; what is none of them is refused in words."""

import numpy as np
import pytest
import torch

from lib import geometry
from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere, by_name, clip
from lib.geometry.hyperbolicity import hyperbolicity, max_min_product, sampled
from lib.geometry.inner import InnerProduct
from lib.geometry.means import frechet_mean
from lib.geometry.points import as_tensor, floating
from lib.geometry.scale import Scale
from lib.metrics.keys import rank_keys
from lib.metrics.retrieval import average_precision_at_k, evaluate
from lib.search import nearest
from lib.search.codecs import decode, encode
from lib.search.local import Exact

X = 0.3 * np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
X[X > 0.5] = 0.5
Y = X[::-1] / 2  # a view with a negative stride
WEIGHTS = np.arange(1.0, 10.0, dtype=np.float32)
LABELS = list("abcabcabc")
DISTANCES = np.abs(X[:, :1] - X[:, 0])
RELEVANT = np.eye(9)[::-1] > 0
SPACES = (Euclidean(), Sphere(), PoincareBall(0.7))
ALL = slice(None)

CALLS = {
    **{
        f"{space.name} {name}": call
        for space in SPACES
        for name, call in {
            "pairwise": lambda x, y, space=space: space.pairwise(x, y),
            "between": lambda x, y, space=space: space.between(x, y),
            "rank_key": lambda x, y, space=space: space.rank_key(x, y),
            "exp0": lambda x, y, space=space: space.exp0(x),
            "log0": lambda x, y, space=space: space.log0(x),
            "project": lambda x, y, space=space: space.project(x),
            "mean": lambda x, y, space=space: space.mean(x, as_form(x, WEIGHTS)),
        }.items()
    },
    "conformal factor": lambda x, y: PoincareBall().conformal_factor(x),
    "clip": lambda x, y: clip(x, 0.2),
    "frechet mean": lambda x, y: frechet_mean(x, 1.0, as_form(x, WEIGHTS)),
    "hyperbolicity": lambda x, y: hyperbolicity(as_form(x, DISTANCES)),
    "max_min_product": lambda x, y: max_min_product(as_form(x, DISTANCES)),
    "sampled": lambda x, y: sampled(x, "poincare", size=5, repeats=2),
    "rank_keys": lambda x, y: rank_keys(x, y, "sphere")(ALL, ALL),
    "evaluate": lambda x, y: torch.tensor(evaluate(x, y, LABELS, LABELS, "poincare", (2,)).values.to_numpy()),
    "AP": lambda x, y: average_precision_at_k(as_form(x, DISTANCES), as_form(x, RELEVANT), [3]),
    "nearest": lambda x, y: torch.cat(nearest(x, y, 4, "poincare")),
    "index": lambda x, y: torch.cat(Exact.build(y, "sphere", "e").search(x, 4)),
    "inner products": lambda x, y: InnerProduct.about("poincare", y).query(x),
    "keys": lambda x, y: InnerProduct.about("euclidean", y).keys(x, as_form(x, np.stack([Y] * 9))),
    "scale": lambda x, y: Scale.fit(y, PoincareBall())(x),
    "codec": lambda x, y: decode(encode(x, "float16 tangent", 1.0), "float16 tangent", 1.0),
}


def as_form(like, values):
    """``values`` as the same kind of thing that ``like`` is."""
    if isinstance(like, list):
        return values.tolist()
    return values if isinstance(like, np.ndarray) else torch.from_numpy(values.copy())


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_arrays_and_lists_give_what_tensors_give(call):
    expected = call(as_form(torch.empty(0), X), as_form(torch.empty(0), Y))
    for forms in ((X, Y), (X.tolist(), Y.tolist())):
        got = call(*forms)
        assert torch.equal(got, expected) if isinstance(got, torch.Tensor) else got == expected


BAD = {
    "text": ([["a", "b"]], "cannot be read as numbers"),
    "ragged": ([[0.1, 0.2], [0.1]], "rows of equal length"),
    "nothing": (None, "cannot be read as numbers"),
}


@pytest.mark.parametrize(("bad", "message"), BAD.values(), ids=BAD)
def test_what_holds_no_numbers_is_refused_in_words(bad, message):
    good = [[0.1, 0.2]]
    with pytest.raises(InputError, match=message):
        as_tensor(bad)
    for space in SPACES:
        with pytest.raises(InputError, match=message):
            space.pairwise(bad, good)
        with pytest.raises(InputError, match=f"the gallery .*({message})"):
            nearest(good, bad, 1, space)
        with pytest.raises(InputError, match=f"the query .*({message})"):
            evaluate(bad, good, ["a"], ["a"], space)
    with pytest.raises(InputError, match=f"the query .*({message})"):
        Exact.build(good, "euclidean", "e").search(bad, 1)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_a_single_point_is_told_how_to_become_a_set(space):
    query, gallery = torch.zeros(3), torch.full((5, 3), 0.1)
    for call in (space.pairwise, space.rank_key):
        with pytest.raises(InputError, match=r"single x is the set x\[None\]"):
            call(query, gallery)
    with pytest.raises(InputError, match=r"query\[None\]"):
        nearest(query, gallery, 1, space)
    with pytest.raises(InputError, match=r"query\[None\]"):
        evaluate(query, gallery, ["a"], list("ababa"), space)
    with pytest.raises(InputError, match=r"query\[None\]"):
        Exact.build(gallery, space, "e").search(query, 1)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_another_dimension_is_refused_in_words(space):
    for call in (space.pairwise, space.between, space.rank_key):
        with pytest.raises(InputError, match=r"\(5, 3\) and \(5, 1\)"):
            call(torch.zeros(5, 3), torch.zeros(5, 1))


def test_a_geometry_may_be_named():
    assert by_name("poincare", 0.5) == PoincareBall(0.5)
    assert [by_name(space.name, 0.7) for space in SPACES] == [by_name(space) for space in SPACES] == list(SPACES)


@pytest.mark.parametrize("bad", ["hyperbolic", PoincareBall, None, 1.0, geometry])
def test_what_is_no_geometry_is_refused_wherever_one_is_asked_for(bad):
    x = torch.zeros(3, 2)
    message = "unknown geometry" if isinstance(bad, str) else "is no geometry"
    for call in (
        lambda: nearest(x, x, 1, bad),
        lambda: evaluate(x, x, [0] * 3, [0] * 3, bad),
        lambda: rank_keys(x, x, bad),
        lambda: sampled(x, bad),
        lambda: Exact.build(x, bad, "e"),
        lambda: InnerProduct.about(bad, x),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_a_tensor_stays_the_same_tensor_and_an_array_its_dtype():
    x = torch.zeros(2, 3, requires_grad=True)
    assert as_tensor(x) is x
    assert all(one is x for one in floating(x, x))  # one set of points is told from two by identity
    assert as_tensor(np.zeros(2)).dtype == torch.float64 and as_tensor([0.5]).dtype == torch.float32
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    as_tensor(frozen).add_(1)
    assert not frozen.any()
