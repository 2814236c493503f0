"""PT, TL and what differs from the paper: variants share their heads, and every fold may have its own."""

from dataclasses import replace

import numpy as np

from lib.losses.linear_prototypes import Comparison
from lib.papers.linear_prototypes import heads
from lib.training import classifier
from lib.training.episodes import Episodes
from lib.training.experiment import fit
from lib.training.linear_prototypes import Settings
from lib.training.methods import Fitted
from lib.training.recipes import Recipe
from lib.training.splits import repeated
from tests.papers.linear_prototypes.conftest import GROUPS, LABELS, X

RNG = np.random.default_rng(2)
VIEWS = np.stack([X, X + 1.5 * RNG.normal(size=X.shape).astype(np.float32)])
SHORT = Episodes(epochs=5, batch_size=32, lr=0.01, k=3)
HEAD = heads.trained("linear prototypes", 6, 4, Settings(hidden=8), SHORT)


CHOSEN = {name: replace(HEAD.head, comparison=Comparison(name)) for name in ("cosine", "poincare")}


def alike(one: Fitted, other: Fitted) -> bool:
    return np.array_equal(one.embed(X), other.embed(X))


def test_the_first_variant_is_the_paper_and_each_other_changes_one_thing():
    chosen = {"cosine": Settings(Comparison("cosine"), 0.3), "poincare": Settings(Comparison("poincare", 0.1), 1.0)}
    first, *others = heads.variants(6, 4, chosen, Settings(), SHORT)
    assert (first.name, first.head, first.search, first.augmented) == (heads.PAPER, Settings(), "cosine", True)
    assert all((one.recipe, one.schedule) == (Recipe("scaled", 6, 4), SHORT) for one in (first, *others))
    changed = {(one.head, one.search, one.augmented) for one in others}
    assert len(changed - {(Settings(), "cosine", True)}) == len(others) == 7
    by_name = {one.name: (one.head, one.search) for one in others}
    assert by_name["Poincaré, hyperbolic search"] == (chosen["poincare"], "own")
    assert by_name["Poincaré, cosine search"] == (chosen["poincare"], "cosine")
    assert by_name[heads.LINEAR][0].hidden == 0
    nca, *linear = heads.opponents(40, 3, Settings(nca_images=50), SHORT, 0.03)
    assert (nca.recipe, nca.head.nca_images) == (Recipe("NCA", heads.NCA, 0), 50)
    assert [one.head.ranking for one in linear] == list(classifier.RANKINGS)
    assert all(vars(one.schedule).items() <= vars(replace(SHORT, lr=0.03)).items() for one in linear)


def test_every_fold_is_answered_by_its_own_choice_and_shares_the_rest(where, monkeypatch):
    made, make = [], Settings.make
    monkeypatch.setattr(Settings, "make", lambda *call: made.append(call) or make(*call))
    other = CHOSEN | {"cosine": replace(CHOSEN["cosine"], temperature=0.1)}
    methods = {fold: heads.variants(6, 4, of, HEAD.head, SHORT) for fold, of in enumerate((CHOSEN, other))}
    trainings = repeated(where, 2)
    found = heads.fit_by_fold(VIEWS, LABELS, methods, trainings)
    assert len(made) == 6 * 4 and len(found) == 8  # two heads are searched in two ways
    assert list(found) == [one.name for one in methods[0]]
    assert all([one.split for one in several] == trainings for several in found.values())
    assert [one.method.head.temperature for one in found["cosine, cosine search"]] == [1.0, 0.1] * 2
    together = fit(VIEWS, LABELS, methods[0][:1], trainings)[heads.PAPER]
    assert all(map(alike, found[heads.PAPER], together))
    alone = fit(VIEWS, LABELS, [methods[1][3]], [trainings[3]])["cosine, cosine search"]
    assert alike(alone[0], found["cosine, cosine search"][3])


def test_all_three_methods_of_every_encoder_and_gallery_are_there(where):
    """The last number has a hundred times the spread of the first, and cosine sees little else."""
    wide = VIEWS * np.logspace(0, 2, 6, dtype=np.float32)
    features = {"one": wide, "two": wide[:1, :, :5]}
    head = replace(HEAD, schedule=replace(SHORT, epochs=40))
    found = heads.pretrained_and_trained(features, LABELS, GROUPS, where, head, (1, 5))
    methods = [heads.PT, heads.SCALED, heads.TL]
    assert list(found) == ["closed", "open"]
    assert all(
        list(done) == [f"{encoder}, {name}" for encoder in features for name in methods] for done in found.values()
    )
    value = {
        name: np.mean([answer.per_query.values["ap_min", 5].mean() for answer in done])
        for name, done in found["closed"].items()
    }
    assert min(value["one, TL"], value["one, PT, scaled"]) > value["one, PT, as they are"] + 0.1
