"""Hundreds of values without meaning, through every entry: each is refused in words, none gets through or crashes."""

import ast
from collections.abc import Callable
from dataclasses import fields
from itertools import takewhile
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import checks, paths
from lib.datasets import drawing, folds, queries
from lib.encoders import views
from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall
from lib.heads import HyperbolicMapper, PrototypeEncoder, Reduction
from lib.heads.dino import ProjectionHead
from lib.losses.hyp_vit import PairwiseCrossEntropy
from lib.losses.hyper_dino import ContrastiveLoss
from lib.losses.linear_prototypes import Comparison, EpisodeLoss
from lib.metrics import retrieval
from lib.papers.hyper_dino.recipes import recipes
from lib.pipeline.notebooks import parameters, read
from lib.pipeline.params import MEANING
from lib.search import nearest
from lib.training import distillation, experiment, finetune, hyper_dino, linear_prototypes
from lib.training.episodes import Episodes
from lib.training.fit import Schedule
from lib.training.recipes import Recipe

fuzzed = settings(max_examples=30, deadline=None, derandomize=True)

THINGS = st.one_of(
    st.none(),
    st.text(max_size=6),
    st.sampled_from(["5", "1e-5", "0.5", "nan", "True", b"5"]),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.complex_numbers(),
    st.builds(object),
    st.sampled_from([np.ones(2), np.array(5), np.True_, torch.tensor(5), torch.ones(2), int, PoincareBall, 10**400]),
)
"""What is no number: among it text that looks like one, arrays, classes, and what overflows a float."""

NO_LIST = THINGS.filter(lambda value: not isinstance(value, list | np.ndarray | torch.Tensor))
NO_NUMBERS = st.sampled_from([float("nan"), float("inf"), -float("inf"), np.float32("nan"), np.float64("inf"), 1e39])
BOOLEANS = st.booleans()


def below(least: int) -> st.SearchStrategy:
    return st.one_of(THINGS, NO_NUMBERS, BOOLEANS, st.integers(max_value=least - 1), st.floats(max_value=least - 1e-9))


def not_whole(least: int) -> st.SearchStrategy:
    return st.one_of(below(least), st.floats(), st.integers(min_value=2**31))


NOT_POSITIVE = st.one_of(below(0), st.sampled_from([0, 0.0, -0.0, 1e-300, 1e300]))
NOT_SHARE = st.one_of(below(0), st.floats(min_value=1.0000001))
NOT_FRACTION = st.one_of(NOT_SHARE, st.sampled_from([0, 1, 0.0, 1.0, 1e-9]))
NOT_BOOLEAN = st.one_of(THINGS, NO_NUMBERS, st.integers(), st.floats())
NO_WHOLES = st.one_of(
    not_whole(1).filter(lambda value: not isinstance(value, list | np.ndarray | torch.Tensor)),
    st.lists(not_whole(1), min_size=1, max_size=3),
    st.just(()),
)

BAD = {
    checks.whole: not_whole(1),
    checks.two_or_more: not_whole(2),
    checks.positive: NOT_POSITIVE,
    checks.warm: st.one_of(NOT_POSITIVE, st.floats(min_value=0, max_value=9.9e-7)),
    checks.not_negative: below(0),
    checks.share: NOT_SHARE,
    checks.portion: st.one_of(NOT_SHARE, st.just(0)),
    checks.fraction: NOT_FRACTION,
    checks.switch: NOT_BOOLEAN,
    checks.several: NO_WHOLES,
}


def bad(name: str) -> st.SearchStrategy:
    """Values without meaning for a setting."""
    check = checks.MEANING.get(name, checks.whole)
    if check in BAD:
        return BAD[check]
    if name in ("lengths", "nca_lengths", "labelled"):
        return NO_WHOLES.filter(lambda value: repr(value) not in ("()", "['full']", "['all']"))
    if name in ("momentum", "global_area", "local_area"):
        part = NOT_SHARE
        return st.one_of(NO_LIST, st.floats(), st.tuples(part, part), st.tuples(st.just(0.5), part), st.just((0.5,)))
    return st.one_of(THINGS, NO_NUMBERS) if name in ("geometry", "comparison") else not_whole(0)


def of_class(kind: type, **needed: Any) -> dict[tuple[str, str], Callable[[Any], Any]]:
    """Called by their module as well: several of them are Settings."""
    room = kind.__module__.rpartition(".")[2]
    return {
        (f"{room}.{kind.__qualname__}", field.name): (lambda value, name=field.name: kind(**{**needed, name: value}))
        for field in fields(kind)
        if field.name in checks.MEANING
    }


def calls(function: Callable, *names: str, **needed: Any) -> dict[tuple[str, str], Callable[[Any], Any]]:
    return {
        (function.__qualname__, name): (lambda value, name=name: function(**{**needed, name: value})) for name in names
    }


LABELS = np.arange(40) % 4
X = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
POINTS = torch.from_numpy(X)
FLAT = {"geometry": Euclidean()}
FOLD_OF = folds.assign(LABELS.astype(str), np.arange(40).astype(str), 2, "image", 0)
DRAW = {"labels": LABELS.astype(str), "groups": np.arange(40).astype(str), "fold_of": FOLD_OF, "fold": 0}

ENTRIES = {
    **of_class(Schedule),
    **of_class(Episodes),
    **of_class(hyper_dino.Settings),
    **of_class(linear_prototypes.Settings),
    **{key: call for key, call in of_class(distillation.Settings).items() if key[1] != "lr"},
    **of_class(EpisodeLoss, k=5, n_classes=3),
    **calls(Recipe, "dim_in", source="PCA", dim_in=4, dim_out=0),
    **calls(recipes, "lengths", "dim_out", dim=8, lengths=[4]),
    **calls(HyperbolicMapper, "dim_in", "dim_out", "delta", dim_in=4),
    **calls(PrototypeEncoder, "dim_in", "dim_out", "hidden", dim_in=4),
    **calls(ProjectionHead, "prototypes", "bottleneck", dim=4, prototypes=8),
    **calls(Reduction.fit, "n", "nca_images", "half", "seed", train=X, labels=LABELS, source="NCA", n=2),
    **of_class(ContrastiveLoss),
    **of_class(PairwiseCrossEntropy),
    **{key: call for key, call in of_class(finetune.Settings).items() if key[1] != "head_lr"},
    **calls(folds.assign, "n_folds", "seed", labels=LABELS, groups=LABELS, n_folds=2, rule="image", seed=0),
    **calls(queries.balanced, "per_class", "seed", per_class=1, seed=0, **DRAW),
    **calls(retrieval.evaluate, "ks", query=POINTS, gallery=POINTS, query_labels=LABELS, gallery_labels=LABELS, **FLAT),
    **calls(nearest, "k", query=POINTS, gallery=POINTS, **FLAT),
    **calls(drawing.of_each_class, "seed", labels=LABELS, seed=0),
    **calls(experiment.answers, "ks", features=X, labels=LABELS, methods=[], splits=[]),
    **calls(views.extract, "n_views", table=None, encoder=None, target=paths.BUILD),
}


@pytest.mark.parametrize("entry", ENTRIES, ids=".".join)
def test_a_value_without_meaning_is_refused_where_it_enters(entry):
    call, name = ENTRIES[entry], entry[1]

    @fuzzed
    @given(bad(name))
    def refused(value):
        if "Contrastive" in entry[0] and isinstance(value, torch.Tensor) and name in ("m0", "alpha", "norm_weight"):
            return  # a value for each batch of a stack
        with pytest.raises(InputError, match=name) as caught:
            call(value)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 300

    refused()


@fuzzed
@given(st.one_of(NO_LIST, NO_NUMBERS, st.floats(), st.tuples(NOT_POSITIVE, st.just(0.0)), st.just((1e-3, -1e-3))))
def test_the_learning_rates_of_the_distillation_are_two(value):
    with pytest.raises(InputError, match="lr"):
        distillation.Settings(lr=value)


@fuzzed
@given(st.one_of(below(0).filter(lambda value: not isinstance(value, torch.Tensor)), st.just(np.array(1.0))))
def test_a_curvature_without_meaning_is_refused(value):
    with pytest.raises(InputError, match="c "):
        PoincareBall(value)
    with pytest.raises(InputError, match="c "):
        Comparison("poincare", value)


def test_numbers_of_numpy_are_numbers():
    assert Schedule(np.int64(3), np.int32(4), np.float32(0.5), np.float64(0)).steps(8) == 2
    checks.values(ks=np.arange(1, 4), delta=np.float16(0.5), lengths=(4, "full"), labelled=[2, "all"], m0=1)


def test_text_that_looks_like_a_number_says_why_it_is_none():
    message = r"lr = '1e-5' cannot be used: it must be a finite number above 0; .* without quotes, and in YAML 1\.0e-5"
    with pytest.raises(InputError, match=message):
        Schedule(lr="1e-5")


NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_parameter_of_a_notebook_but_names_has_a_meaning_and_one_that_it_fulfils(path):
    for name, value in parameters(read(path)).items():
        words = value if isinstance(value, list) else [value]
        if not all(isinstance(word, str) for word in words):
            MEANING[name](name, value)


BY_HAND = {"lengths", "nca_lengths", "dims", "ks", "k", "folds_used", "supports", "labelled"}
BY_HAND |= {"n_classes", "images_per_class", "experiments", "domain", "mapper_epochs"}
"""Parameters that notebooks use before the library sees them, or that it sees when much has been computed."""


def _imports_or_checks(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom) or ast.unparse(statement).startswith("checks.")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_checks_at_its_beginning_what_it_uses_itself(path):
    """Run its imports with every such parameter broken in turn: for readers who change one in JupyterLab."""
    given_ = parameters(read(path))
    cells = [
        c.source for c in read(path).cells if c.cell_type == "code" and "parameters" not in c.metadata.get("tags", [])
    ]
    statements = [statement for cell in cells for statement in ast.parse(cell).body]
    start = "\n".join(map(ast.unparse, takewhile(_imports_or_checks, statements)))
    exec(start, dict(given_))
    for name in BY_HAND & given_.keys():
        for value in (-1, 0, 2.5, "5", None, [], [0], ["x"]):
            if (name, value) != ("lengths", []):
                with pytest.raises(InputError, match=name):
                    exec(start, {**given_, name: value})
