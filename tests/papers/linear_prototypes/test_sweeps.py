"""Fewer labels are fewer labels and not fewer steps, and both are shown."""

import numpy as np
import pytest

from lib.papers.linear_prototypes import retrieval as sweeps
from lib.papers.linear_prototypes.heads import trained
from lib.papers.linear_prototypes.retrieval import EPOCHS, STEPS
from lib.training import hyper_dino
from lib.training.episodes import Episodes
from lib.training.fit import Schedule
from lib.training.linear_prototypes import Settings
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, repeated
from tests.papers.linear_prototypes.conftest import GROUPS, LABELS, X

SHORT = Episodes(epochs=5, batch_size=32, lr=0.01, k=5)
HEAD = trained("linear prototypes", 6, 4, Settings(hidden=8), SHORT)
MAPPER = Method(
    "Hyper-DINO", Recipe("scaled", 6, 4), hyper_dino.Settings(hidden=8, half=False), Schedule(epochs=3, batch_size=16)
)


@pytest.fixture(scope="module")
def where(where) -> list[Split]:
    """The first fold alone."""
    return where[:1]


@pytest.fixture(scope="module")
def found(where) -> dict:
    return sweeps.label_efficiency(X, LABELS, GROUPS, repeated(where, 2), (2, 6), [HEAD, MAPPER], (5,))


def test_every_support_answers_after_as_many_steps(where):
    answers = sweeps.supports(X[None], LABELS, GROUPS, where, (1, 4), HEAD, (5,))
    schedules = {k: one.method.schedule.k for k, of_k in answers.items() for (one,) in of_k.values()}
    assert schedules == {1: 1, 4: 4}
    assert len({one.health.steps for of_k in answers.values() for (one,) in of_k.values()}) == 1


def test_all_heads_get_the_same_labels_and_every_training_draws_its_own(found, where):
    names = [(head, steps) for head in ("linear prototypes", "Hyper-DINO") for steps in (STEPS, EPOCHS)]
    for size, methods in found.items():
        for repeat in (0, 1):
            labelled = [done[repeat].split.labelled for done in methods.values()]
            assert np.bincount(LABELS[labelled[0]]).tolist() == [size] * 3
            assert all(np.array_equal(labelled[0], other) for other in labelled)
        first, second = (done.split for done in methods[names[0]])
        assert np.array_equal(first.train, where[0].train)  # which are searched, labelled or not
        assert set(first.labelled) != set(second.labelled)
    assert set(found[2][names[0]][0].split.labelled) < set(found[6][names[0]][0].split.labelled)
    assert [methods[names[0]][0].method.schedule.k for methods in found.values()] == [1, 5]


def test_equal_steps_are_those_of_all_labels_and_equal_epochs_are_not(found, where):
    whole = {
        "linear prototypes": SHORT.epochs * SHORT.steps(len(where[0].train)),
        "Hyper-DINO": MAPPER.schedule.epochs * MAPPER.schedule.steps(len(where[0].train)),
    }
    for size, methods in found.items():
        for (head, steps), done in methods.items():
            one = done[0].method.schedule
            wanted = whole[head] if steps == STEPS else one.epochs * one.steps(3 * size)
            assert abs(done[0].health.steps - wanted) <= one.steps(3 * size) / 2, (size, head, steps)
    assert found[2]["Hyper-DINO", EPOCHS][0].health.steps == 3  # six images are one batch


def test_sizes_are_rows_and_everything_is_called_all(found):
    rows = sweeps.size_rows(found, 5, "labels", everything=6)
    assert rows["size"].tolist() == [2] * 4 + [0] * 4 and set(rows["n_seeds"]) == {2}
    cell = rows[(rows["size"] == 0) & (rows["method"] == "Hyper-DINO") & (rows["length"] == EPOCHS)]["ours"].item()
    each = [100 * one.per_query.values["ap_min", 5].mean() for one in found[6]["Hyper-DINO", EPOCHS]]
    assert cell == pytest.approx(np.mean(each))
    assert rows["rim"].notna().tolist() == (rows["method"] == "Hyper-DINO").tolist() and (rows["steps"] > 0).all()
