"""Class weights are those of the images that teach, in every notebook of the paper."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.encoders.taps import Taps
from lib.losses.acir import StructureAware, class_weights
from lib.papers.acir.ablations import experiment as ablations
from lib.papers.acir.ablations import parts
from lib.papers.acir.choices import ends, l_wsc, of_classes
from lib.papers.acir.hashing import experiment as hashing
from lib.papers.acir.network import experiment as network
from lib.papers.acir.ranking import experiment as ranking
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
PLAN = hashing.Plan(10, 12, 3, Even(1, 11))


class Seen(Exception):
    """The jobs that a trainer was given."""


@pytest.fixture
def seen(monkeypatch):
    def stop(*given, **_):
        raise Seen(next(part for part in given if isinstance(part, list) and isinstance(part[0], acir.Job)))

    monkeypatch.setattr(acir, "fit", stop)


def ablation(loss):
    row = parts.Row("row", DESIGN, loss)
    material = ablations.Material({parts.PRETRAINED: TAPS}, LABELS, PRINTS, Even(1, 11), workers=1)
    return ablations.trained(material, [ablations.Setting(row, 0.01)], repeated([SPLIT], 1))


TRAINERS = {
    "30, choice": lambda: network.choose(TAPS, LABELS, PRINTS, DESIGN, Even(1, 11), [0.01], SPLIT),
    "30": lambda: network.train(TAPS, LABELS, PRINTS, DESIGN, Even(1, 11), 0.01, [SPLIT]),
    "32": lambda: ablation(parts.STRUCTURE),
    "32, labels alone": lambda: ablation(parts.PLAIN),
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
        ablation(parts.UNWEIGHTED)
    assert caught.value.args[0][0].loss == replace(l_wsc(LABELS, SPLIT.train, 12), class_weights=())


def test_heads_have_them_but_one_and_so_has_every_variant_but_one():
    plan = PLAN.of(LABELS, SPLIT)
    ours = {name: loss for name, loss in hashing.losses(plan, 4).items() if isinstance(loss, StructureAware)}
    assert set(ours) == set(hashing.OWN_LOSSES)
    assert {name: loss.class_weights for name, loss in ours.items() if loss.class_weights != WEIGHTS} == {
        hashing.UNWEIGHTED: ()
    }
    without = [one.name for one in hashing.variants(plan, 4, 0.01, 0.5) if one.head.loss.class_weights != WEIGHTS]
    assert without == ["no class weights-4bit"]


def test_a_rate_at_the_end_of_its_row_is_named():
    one = pd.DataFrame({"lr": [0.001, 0.003, 0.01], "chosen": [False, False, True]})
    assert ends(one) == ["at an end of the row, where a better rate may lie beyond: ACIR (0.01)"]
    inner = one.assign(chosen=[False, True, False])
    both = pd.concat([inner.assign(method="ACIR"), one.assign(method="CSQ")])
    networks = both.rename(columns={"method": "name"})
    assert ends(networks) == ["at an end of the row, where a better rate may lie beyond: CSQ (0.01)"]
    assert ends(inner) == ["every learning rate lies inside its row"]
    assert ends(both)[0].endswith(": CSQ (0.01)")


@pytest.mark.parametrize("section", ["network", "ranking"])
def test_committed_rates_say_whether_they_lie_at_an_end(section):
    rows = pd.read_csv(paths.COMMITTED / "acir/sample/bh200x" / section / "table_rates.csv")
    chosen = rows[rows["chosen"]]
    there = chosen["lr"].isin([rows["lr"].min(), rows["lr"].max()])
    (said,) = ends(rows)
    assert said.count("(") == there.sum() and said.startswith("at an end of the row" if there.any() else "every")


def test_a_class_that_only_asks_weighs_one():
    labels = np.array([0, 0, 2, 1])
    assert of_classes(labels, np.array([0, 1, 2])) == (0.75, 1.0, 1.5)
