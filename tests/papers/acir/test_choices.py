"""Class weights are those of the images that teach, in every notebook of the paper."""

from dataclasses import replace

import numpy as np
import pytest

from lib.encoders.taps import Taps
from lib.losses.acir import class_weights
from lib.papers.acir import hashing, heads
from lib.papers.acir.ablations import networks, rows
from lib.papers.acir.choices import l_wsc, of_classes
from lib.papers.acir.network import study as network
from lib.papers.acir.ranking import training as ranking
from lib.training import acir
from lib.training.acir import Design
from lib.training.hashing import Even
from lib.training.splits import Split, repeated

LABELS = np.array([0] * 6 + [1] * 3 + [2] * 2 + [0, 1, 2])
SPLIT = Split(0, np.arange(11), np.arange(11, 14), 0)
WEIGHTS = class_weights(LABELS[:11])
DESIGN = Design(bits=4, narrow=(4, 8), window=2, heads=2, width=4, grid=2)
RNG = np.random.default_rng(0)
TAPS = Taps(RNG.normal(size=(14, 6, 4, 4)).astype(np.float16), RNG.normal(size=(14, 10, 2, 2)).astype(np.float16))
PRINTS = RNG.random((14, 12)).astype(np.float32)
PLAN = heads.Plan(10, 12, 3, Even(1, 11))


class Seen(Exception):
    """The jobs that a trainer was given."""


@pytest.fixture
def seen(monkeypatch):
    def stop(*given, **_):
        raise Seen(next(part for part in given if isinstance(part, list) and isinstance(part[0], acir.Job)))

    monkeypatch.setattr(acir, "fit", stop)


def ablation(loss):
    row = rows.Row("row", DESIGN, loss)
    material = networks.Material({rows.PRETRAINED: TAPS}, LABELS, PRINTS, Even(1, 11), workers=1)
    return networks.trained(material, [networks.Setting(row, 0.01)], repeated([SPLIT], 1))


TRAINERS = {
    "30, choice": lambda: network.choose(TAPS, LABELS, PRINTS, DESIGN, Even(1, 11), [0.01], SPLIT),
    "30": lambda: network.train(TAPS, LABELS, PRINTS, DESIGN, Even(1, 11), 0.01, [SPLIT]),
    "32": lambda: ablation(rows.STRUCTURE),
    "32, labels alone": lambda: ablation(rows.PLAIN),
    "34": lambda: ranking.trained(
        ranking.Material([TAPS], LABELS, PRINTS, PLAN, DESIGN), [4], {ranking.ACIR: 0.01}, SPLIT, 1
    ),
}


@pytest.mark.parametrize("name", TRAINERS)
def test_networks_are_trained_with_equation_16_of_those_who_teach(seen, monkeypatch, name):
    monkeypatch.setattr(acir, "untrained", lambda *_: None)
    with pytest.raises(Seen) as caught:
        TRAINERS[name]()
    (jobs,) = caught.value.args
    assert {job.loss.class_weights for job in jobs} == {WEIGHTS}


def test_one_row_leaves_them_out(seen):
    with pytest.raises(Seen) as caught:
        ablation(rows.UNWEIGHTED)
    assert caught.value.args[0][0].loss == replace(l_wsc(LABELS, SPLIT.train, 12), class_weights=())


def test_every_variant_has_them_but_one():
    variants = hashing.variants(PLAN.of(LABELS, SPLIT), 4, 0.01, 0.5)
    without = [one.name for one in variants if one.head.loss.class_weights != WEIGHTS]
    assert without == ["no class weights-4bit"]


def test_a_class_that_only_asks_weighs_one():
    labels = np.array([0, 0, 2, 1])
    assert of_classes(labels, np.array([0, 1, 2])) == (0.75, 1.0, 1.5)
