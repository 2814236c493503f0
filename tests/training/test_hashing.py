"""A hash head learns codes with every loss, begins where it should, and is searched by Hamming distance."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.heads.hashing import HashHead
from lib.losses.acir import StructureAware
from lib.losses.hashing import CSQ, DBDH, DCH, DPN, DSDH, QSMIH, Triplet
from lib.metrics import hashing as metrics
from lib.training import experiment
from lib.training.divergence import Diverged
from lib.training.fit import Schedule, fit_head
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
    "ACIR": StructureAware(fingerprint=PIXELS),
}


def settings_of(loss):
    return Settings(loss, fingerprint=getattr(loss, "fingerprint", 0))


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


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "ACIR"])
def test_a_training_with_any_loss_that_runs_away_ends_in_words(name):
    runaway = Method("head", Recipe("raw", DIM, BITS), settings_of(LOSSES[name]), replace(SCHEDULE, lr=1e30))
    with pytest.raises(Diverged, match="Try a lower learning rate"):
        experiment.fit(X, LABELS, [runaway], [SPLIT], workers=1)


@pytest.mark.parametrize("kind", ["mlp", "kan"])
def test_other_heads_learn_as_well(kind):
    chance, value, _ = chance_and_map(Settings(LOSSES["ACIR, labels alone"], kind=kind, hidden=32))
    assert value > 2.5 * chance


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


def test_without_a_head_the_code_is_the_sign_of_the_components():
    one = Method("PCA", Recipe("PCA", 6, 0), Settings())
    found = experiment.fit(X, LABELS, [one], [SPLIT], workers=1)["PCA"][0]
    assert torch.equal(found.embed(X), torch.from_numpy(np.where(found.reduction(X) >= 0, 1, -1)).float())


@pytest.mark.parametrize("kind", ["linear", "mlp", "kan"])
def test_every_bit_begins_in_the_middle(kind):
    network = HashHead(DIM, BITS, kind=kind, generator=torch.Generator().manual_seed(0))
    network.start(torch.from_numpy(X), spread=0.3)
    before_tanh = network(torch.from_numpy(X)).detach().atanh()
    assert before_tanh.mean(dim=0).abs().max() < 1e-4
    assert before_tanh.std(dim=0, correction=0).numpy() == pytest.approx(0.3, abs=1e-4)


def test_fingerprints_pass_by_and_are_neither_learnt_from_nor_searched():
    settings = settings_of(LOSSES["ACIR"])
    network = settings.make(Recipe("raw", DIM + PIXELS, BITS), seed=0)
    x = torch.from_numpy(np.concatenate([X, LOOKS], axis=1))
    assert torch.equal(network(x)[:, BITS:], x[:, DIM:])
    other = torch.cat([x[:, :DIM], 1 - x[:, DIM:]], dim=1)
    assert settings.embed(network, x).shape == (200, BITS)
    without = Settings(DCH(), fingerprint=PIXELS)
    assert without.make(Recipe("raw", DIM + PIXELS, BITS), seed=0)(x).shape == (200, BITS)
    assert without.embed(None, x).shape == (200, DIM)
    assert torch.equal(settings.embed(network, x), settings.embed(network, other))


def test_what_standardises_the_features_is_not_learnt():
    fitted = experiment.fit(X, LABELS, [method("head", Settings())], [SPLIT], workers=1)["head"][0]
    assert fitted.network.centre.detach().numpy() == pytest.approx(X[SPLIT.train].mean(axis=0), rel=1e-5)
    assert fitted.network.width.detach().numpy() == pytest.approx(X[SPLIT.train].std(axis=0), rel=1e-4)


def test_a_stack_of_heads_is_trained_as_each_alone():
    settings = Settings(LOSSES["DCH"])
    found = experiment.fit(X, LABELS, [method("head", settings)], [SPLIT], workers=1)["head"][0]
    alone = settings.make(Recipe("raw", DIM, BITS), SPLIT.seed)
    settings.start(alone, X[SPLIT.train])
    history = fit_head(alone, settings.loss, X[SPLIT.train], LABELS[SPLIT.train], SCHEDULE, seed=SPLIT.seed)
    assert found.history == pytest.approx(history, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Settings(start_spread=0.0), "start_spread"),
        (lambda: Settings(binary="no"), "binary"),
        (lambda: Settings(StructureAware(fingerprint=3)), "fingerprints of 3"),
        (lambda: HashHead(4, 2, kind="deep"), "linear, mlp, kan"),
        (lambda: HashHead(4, 2, fingerprint=4), "no feature"),
        (lambda: HashHead(4, 2).start(torch.ones(5, 4)), "same bit"),
    ],
)
def test_what_has_no_meaning_is_refused_in_words(call, words):
    with pytest.raises(InputError, match=words):
        call()
