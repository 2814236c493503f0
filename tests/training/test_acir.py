"""ACIR's network on maps of two toy classes: it learns, the same way each time, and what was trained is kept."""

import numpy as np
import pytest
import torch

from lib.encoders.taps import Taps
from lib.errors import InputError
from lib.losses.acir import StructureAware
from lib.losses.hashing import CSQ
from lib.training import acir
from lib.training.acir import Design, Job
from lib.training.divergence import Diverged
from lib.training.hashing import Even

SMALL = Design(bits=8, narrow=(4, 8), window=2, heads=2, width=8, grid=2)
SHORT = Even(epochs=6, batch_size=16, weight_decay=1e-4)
LABELS = np.arange(64) % 2
PRINTS = np.random.default_rng(1).random((64, 5)).astype(np.float32)
ROWS = np.arange(48)


@pytest.fixture(scope="module")
def taps():
    """Maps of 64 images; those of the second class are brighter in three deep channels."""
    random = np.random.default_rng(0)
    shallow, deep = random.normal(size=(64, 6, 4, 4)), random.normal(size=(64, 10, 2, 2))
    deep[LABELS == 1, 3:6] += 2
    return Taps((5 + 2 * shallow).astype(np.float16), deep.astype(np.float16))


def job(loss=None, design=SMALL, lr=1e-2, seed=0):
    return Job("toy", design, loss or StructureAware(), lr, seed)


def fit(taps, jobs, schedule=SHORT, **options):
    return acir.fit([taps], LABELS, PRINTS, ROWS, jobs, schedule, **{"store": None, "workers": 1} | options)


def right(trained, taps):
    """The share of unseen images whose nearest training code is of their class."""
    h = np.sign(trained.outputs(taps).h)
    nearest = (h[48:] @ h[:48].T).argmax(1)
    return (LABELS[:48][nearest] == LABELS[48:]).mean()


PARTS = {
    "all": SMALL,
    "neither pit nor fusion": Design(**vars(SMALL) | {"pit": False, "fusion": False}),
    "no kan, no windows": Design(**vars(SMALL) | {"kan": False, "windows": False}),
    "two kan layers, as wide as the maps": Design(**vars(SMALL) | {"hidden": 6, "narrow": None}),
}


@pytest.mark.parametrize("name", PARTS)
def test_every_design_learns_and_answers_for_unseen_images(taps, name):
    (trained,) = fit(taps, [job(design=PARTS[name])])
    assert trained.history[-1] < trained.history[0]
    assert (trained.steps, len(trained.history)) == (18, 6)
    assert right(trained, taps) > 0.8
    coded = trained.outputs(taps)
    assert coded.h.shape == (64, 8) and coded.h.dtype == np.float32
    assert len(coded.levels) == len(trained.network.level_names)


def test_the_start_has_the_stated_spread_on_training_images_alone(taps):
    network = acir.untrained(taps, ROWS, SMALL, seed=3)
    before = np.arctanh(acir.outputs(network, taps.take(ROWS)).h.astype(float))
    assert before.mean(0) == pytest.approx(0, abs=1e-4)
    assert before.std(0) == pytest.approx(acir.START_SPREAD, abs=1e-3)
    unseen = Taps(taps.shallow.copy(), taps.deep.copy())
    unseen.shallow[48:] = 100
    same = acir.untrained(unseen, ROWS, SMALL, seed=3)
    assert all(
        torch.equal(a, b) for a, b in zip(network.state_dict().values(), same.state_dict().values(), strict=True)
    )


def test_two_runs_and_any_number_of_processes_give_the_same(taps, tmp_path):
    jobs = [job(seed=0), job(seed=1), job(CSQ(2, 8), seed=1)]
    first, again = fit(taps, jobs, store=tmp_path), fit(taps, jobs, workers=2)
    kept = fit(taps, jobs, store=tmp_path)
    for one, other, same in zip(first, again, kept, strict=True):
        h = one.outputs(taps).h
        assert np.array_equal(h, other.outputs(taps).h) and np.array_equal(h, same.outputs(taps).h)
        assert one.history == other.history == same.history
    assert len(list(tmp_path.glob("*.pt"))) == 3
    assert not np.array_equal(first[0].outputs(taps).h, first[1].outputs(taps).h)


def noting(code, labels, *, prints):
    """A loss that keeps what it has seen."""
    noting.seen = prints
    return code.square().mean()


noting.looks = True


def test_losses_that_see_fingerprints_get_them(taps):
    fit(taps, [job(noting)], Even(epochs=1, batch_size=48))
    assert sorted(noting.seen.tolist()) == sorted(PRINTS[ROWS].tolist())


def test_every_view_of_an_image_is_learnt_from_now_and_then(taps):
    """A view that is not finite shows itself in the loss, and where there is none, nothing is drawn."""
    broken = Taps(np.full_like(taps.shallow, np.nan), np.full_like(taps.deep, np.nan))
    with pytest.raises(Diverged, match="toy"):
        acir.fit([taps, broken], LABELS, PRINTS, ROWS, [job()], SHORT, store=None, workers=1)
    twice = acir.fit([taps, taps], LABELS, PRINTS, ROWS, [job()], SHORT, store=None, workers=1)
    assert twice[0].history == fit(taps, [job()])[0].history


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": LABELS[:10]}, "the same ones"),
        ({"rows": ROWS[:1]}, "too few"),
        ({"rows": ROWS[::2]}, "one class"),
        ({"taps": []}, "the same ones"),
    ],
)
def test_what_does_not_belong_together_is_refused_in_words(taps, changes, words):
    given = {"taps": [taps], "labels": LABELS, "prints": PRINTS, "rows": ROWS} | changes
    with pytest.raises(InputError, match=words):
        acir.fit(**given, jobs=[job()], schedule=SHORT, store=None, workers=1)
