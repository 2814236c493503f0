"""A hash head learns codes with every loss, begins where it should, and is searched by Hamming distance."""

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.heads.hashing import HashHead
from lib.losses.acir import StructureAware
from lib.losses.hashing import CSQ, DBDH, DCH, DPN, DSDH, QSMIH, Triplet
from lib.metrics import hashing as metrics
from lib.training import experiment
from lib.training.fit import Schedule
from lib.training.hashing import Even, Settings
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

DIM, BITS, N_CLASSES, PIXELS = 24, 12, 4, 9
RNG = np.random.default_rng(0)
LABELS = np.arange(200) % N_CLASSES
CENTRES = RNG.normal(size=(N_CLASSES, DIM))
# Far from the origin, and with more noise than signal in most directions.
X = (5 + CENTRES[LABELS] + 1.5 * RNG.normal(size=(200, DIM))).astype(np.float32)
LOOKS = RNG.random((200, PIXELS)).astype(np.float32)
SPLIT = Split(0, np.arange(100), np.arange(100, 200), seed=3)
SCHEDULE = Schedule(epochs=20, batch_size=25, lr=1e-2)
LOSSES = {
    "CSQ": CSQ(N_CLASSES, BITS),
    "DPN": DPN(N_CLASSES, BITS),
    "DCH": DCH(),
    "DBDH": DBDH(),
    "DSDH": DSDH(),
    "QSMIH": QSMIH(),
    "Triplet": Triplet(),
    "ACIR, labels alone": StructureAware(),
    "ACIR": StructureAware(looks=True),
}


def settings_of(loss):
    return Settings(loss, fingerprint=PIXELS * getattr(loss, "looks", False))


def method(name, settings, dim=DIM, bits=BITS):
    return Method(name, Recipe("raw", dim, bits), settings, SCHEDULE)


def chance_and_map(settings, x=X, bits=BITS):
    found = experiment.fit(x, LABELS, [method("head", settings, x.shape[1], bits)], [SPLIT], workers=1)
    (answer,) = experiment.ask(found, x, LABELS, [50], workers=1)["head"]
    row = answer.per_query.mean().set_index("metric").loc["ap_hits"]
    return row["chance"], row["value"], found["head"][0]


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_learns_codes(name):
    loss = LOSSES[name]
    x = np.concatenate([X, LOOKS], axis=1) if name == "ACIR" else X
    chance, value, fitted = chance_and_map(settings_of(loss), x)
    untrained = settings_of(loss).make(Recipe("raw", x.shape[1], BITS), SPLIT.seed)
    untrained.start(torch.from_numpy(x[SPLIT.train]))
    codes = settings_of(loss).embed(untrained, torch.from_numpy(x)).detach().numpy()
    before = metrics.evaluate(codes[SPLIT.test], codes[SPLIT.train], LABELS[SPLIT.test], LABELS[SPLIT.train], ks=(50,))
    assert value > before.values["ap_hits", 50].mean() + 0.15
    assert value > 2.5 * chance
    assert fitted.history[-1] < fitted.history[0]


@pytest.mark.parametrize(("n", "size"), [(900, 128), (100, 100), (7, 3), (5, 8)])
def test_even_batches_hold_every_image_once_an_epoch(n, size):
    schedule = Even(epochs=2, batch_size=size)
    batches = list(schedule.batches(torch.zeros(n), seed=1))
    steps = schedule.steps(n)
    assert len(batches) == 2 * steps
    for epoch in (batches[:steps], batches[steps:]):
        assert sorted(torch.cat(epoch).tolist()) == list(range(n))
    lengths = [len(batch) for batch in batches]
    assert max(lengths) <= size
    assert max(lengths) - min(lengths) <= 1
    assert [b.tolist() for b in batches] == [b.tolist() for b in schedule.batches(torch.zeros(n), seed=1)]
    assert isinstance(schedule.equal_steps(2 * n, n), Even)


def test_search_is_by_hamming_distance():
    fitted = experiment.fit(X, LABELS, [method("head", Settings())], [SPLIT], workers=1)
    (answer,) = experiment.ask(fitted, X, LABELS, [1, 50], workers=1)["head"]
    h = fitted["head"][0].network(torch.from_numpy(X)).detach()
    expected = metrics.evaluate(h[SPLIT.test], h[SPLIT.train], LABELS[SPLIT.test], LABELS[SPLIT.train], ks=(1, 50))
    assert answer.per_query.values.equals(expected.values)


def test_codes_and_what_they_are_the_signs_of_come_from_one_training():
    several = [method("codes", Settings()), method("numbers", Settings(binary=False))]
    assert several[0].training == several[1].training
    found = experiment.fit(X, LABELS, several, [SPLIT], workers=1)
    codes, numbers = (found[name][0].embed(X) for name in ("codes", "numbers"))
    assert codes.unique().tolist() == [-1, 1]
    assert torch.equal(codes, torch.where(numbers >= 0, 1.0, -1.0))
    assert numbers.abs().max() <= 1


def test_fingerprints_pass_by_and_are_neither_learnt_from_nor_searched():
    settings = settings_of(LOSSES["ACIR"])
    network = settings.make(Recipe("raw", DIM + PIXELS, BITS), seed=0)
    x = torch.from_numpy(np.concatenate([X, LOOKS], axis=1))
    other = torch.cat([x[:, :DIM], 1 - x[:, DIM:]], dim=1)
    assert settings.embed(network, x).shape == (200, BITS)
    without = Settings(DCH(), fingerprint=PIXELS)
    assert without.make(Recipe("raw", DIM + PIXELS, BITS), seed=0)(x).shape == (200, BITS)
    assert without.embed(None, x).shape == (200, DIM)
    assert torch.equal(settings.embed(network, x), settings.embed(network, other))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Settings(start_spread=0.0), "start_spread"),
        (lambda: Settings(binary="no"), "binary"),
        (lambda: Settings(StructureAware(looks=True)), "rows have none"),
        (lambda: HashHead(4, 2, kind="deep"), "linear, mlp, kan"),
        (lambda: HashHead(4, 2, fingerprint=4), "no feature"),
        (lambda: HashHead(4, 2).start(torch.ones(5, 4)), "same bit"),
    ],
)
def test_what_has_no_meaning_is_refused_in_words(call, words):
    with pytest.raises(InputError, match=words):
        call()
