"""Published and ours side by side; the figure shows differences from the default."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib.papers.hyp_vit import published, verdicts
from lib.papers.hyp_vit.hyperparameters import changes, figures, tables
from lib.papers.hyp_vit.names import HYP, UNTRAINED
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings

ONE = changes.default(Settings(), 40, 128, ByClass(6, 12))


@pytest.fixture
def rows():
    """Five rows as tables.settings lays them out, numbers chosen by hand."""
    health = {"loss": 0.25, "rim": 0.0, "steps": 30, "seeds_spread": 1.0, "class_mean": 50.0, "chance": 5.0}
    lines = [
        ("none", np.nan, "default", 92.4, 92.6, 70.0, 70.0),
        ("c", 1.0, "c = 1", 90.0, 89.2, 60.0, 65.0),
        ("head_dim", 16.0, "16 numbers", 88.6, 83.3, 50.0, 50.0),
        ("batch_size", 200.0, "batch of 4", 92.0, 91.9, 71.5, 71.5),
        ("room", np.nan, "r = 1.15", np.nan, np.nan, 69.0, 69.0),
    ]
    names = ("of", "value", "method", "encoder", "head", "hyp", "cosine")
    rates = (1e-3, 1e-3, 1e-3, 3e-4, 1e-3)
    return pd.DataFrame(
        [
            dict(zip(names, line, strict=True), frozen=75.0, room=62.1, clipped=100.0, lr=lr, **health)
            for line, lr in zip(lines, rates, strict=True)
        ]
    )


@pytest.fixture
def sizes():
    lines = [("96 px, head", 70.0, 1.0), ("96 px, encoder", 75.0, 0.0), ("64 px, head", 66.0, 2.0)]
    return pd.DataFrame(
        [{"method": name, "k": 1, "ours": ours, "seeds_spread": spread, "dim": 8} for name, ours, spread in lines]
    ).assign(loss=0.2, rim=0.0, steps=30, class_mean=64.0, chance=5.0)


def test_published_and_ours_stand_in_one_line(rows):
    lines = tables.settings_layout(rows).splitlines()
    pair = "published encoder | published head | ours | our encoder, frozen | our head, D_hyp | class mean, D_hyp |"
    assert lines[0].startswith(f"| changed | published value | {pair}")
    assert lines[3].startswith(
        "| c | 1 | 90.0 | 89.2 | c = 1 | 75.00 | 60.00 ± 1.00 | 50.00 | 65.00 | 62.1 % | 100.0 % | 0.001 | 0.250 |"
    )
    assert lines[6].startswith("| room | – | – | – | r = 1.15 | 75.00 |")
    assert lines[7].startswith("| chance | – | – | – | – | 5.00 | 5.00 | – | 5.00 | – |") and len(lines) == 8


def test_table_4_has_the_paper_first_and_says_whose_dataset_it_is(sizes):
    control = sizes.tail(1).assign(method=f"{UNTRAINED}{HYP}", ours=14.0)
    both = pd.concat([sizes, control])
    lines = tables.sizes_layout(both, published.patches(), "96 px").splitlines()[2:]
    assert len(lines) == 6 + 4 + 1 and all("published, Cars-196" in line for line in lines[:6])
    assert lines[3].startswith("| Hyp-DINO | published, Cars-196 | patches of 8 | 128 | 90.4 |")
    assert lines[8].startswith("| head | ours | 64 px | 8 | 66.00 | 2.00 | 64.00 | 0.200 |")
    assert lines[9].startswith("| untrained encoder, Hyp | ours | 96 px | 8 | 14.00 |")
    assert lines[10].startswith("| chance | – | – | – | 5.00 | – | – | – | – | – |")


def test_the_figure_shows_differences_from_the_default(rows, sizes):
    drawn = tables.drawn(rows, sizes, ONE, "96 px", 1).set_index(["of", "value", "line"])["difference"]
    assert drawn["c", "1", "hyp"] == -10 and drawn["c", "1", "cosine"] == -5
    assert drawn["c", "1", "head"] == pytest.approx(89.2 - 92.6)
    assert drawn["c", "0.1", "hyp"] == drawn["head_dim", "128", "hyp"] == drawn["batch_size", "900", "head"] == 0
    assert drawn["seen", "64 px", "hyp"] == -4 and drawn["seen", "96 px", "encoder"] == 0
    figure = figures.differences(tables.drawn(rows, sizes, ONE, "96 px", 1))
    assert [axis.get_xlabel() for axis in figure.axes] == list(figures.PANELS.values())
    plt.close(figure)


def test_the_default_in_other_words_is_not_tested_against_itself(rows):
    made = [changes.Change("none", np.nan, ONE), *changes.room(ONE)]
    assert tables.pairs(made) == [(name, "default") for name in ("r = 1.15", "r = 4.6", changes.SAME_ROOM)]


def test_what_came_out_names_best_and_worst(rows):
    none = pd.DataFrame(columns=["second", "first"])
    ends, rates, note = tables.came_out(none, rows, 1)
    assert "default 70.00" in ends and "from -20.00 (16 numbers) to +1.50 points (batch of 4)" in ends
    assert rates.endswith("default's 0.001, and so different in more than one thing: batch of 4 (rate 0.0003)")
    assert note == verdicts.NOTE


def test_rows_at_another_rate_are_marked_in_the_tests(rows):
    tests = pd.DataFrame({"first": ["c = 1", "batch of 4"], "second": "default"})
    assert tables.marked(tests, rows)["first"].tolist() == ["c = 1", "batch of 4 (rate 0.0003)"]
    assert tables.other_rates(rows.head(3)).endswith("more than one thing: none")


def test_both_searches_are_told_and_what_the_temperature_does_alone(rows):
    _, alike, other = tables.searched(rows)
    assert alike == "Recall@1 is the same by D_hyp and by D_cos: default; 16 numbers; batch of 4; r = 1.15"
    assert other == "c = 1: 60.00 by D_hyp, 65.00 by D_cos; 100.0 % of the points clipped"
    room = pd.concat([rows, rows.tail(1).assign(method=changes.SAME_ROOM, hyp=58.0)])
    assert tables.searched(room)[-1] == (
        "points of difference from the default: c = 1: -10.00 (room and temperature changed); c = 1, same √c·r: "
        "-12.00 (the temperature alone)"
    )
