"""Published and ours side by side; the figure shows differences from the default."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib.papers.hyp_vit import published
from lib.papers.hyp_vit.hyperparameters import changes, figures, tables
from lib.papers.hyp_vit.names import HYP, NONE, SPH, UNTRAINED
from lib.papers.hyp_vit.retrieval import tables as recalls
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings

ONE = changes.default(Settings(), 40, 128, ByClass(6, 12))


@pytest.fixture
def sizes():
    lines = [("96 px, head", 70.0, 1.0), ("96 px, encoder", 75.0, 0.0), ("64 px, head", 66.0, 2.0)]
    return pd.DataFrame(
        [{"method": name, "k": 1, "ours": ours, "seeds_spread": spread, "dim": 8} for name, ours, spread in lines]
    ).assign(loss=0.2, rim=0.0, steps=30, steps_each="30", class_mean=64.0, chance=5.0)


def test_published_and_ours_stand_in_one_line(rows):
    lines = tables.settings_layout(rows).splitlines()
    pair = "published encoder | published head | ours | end to end: encoder | end to end: head |"
    assert lines[0].startswith(
        f"| changed | published value | {pair} frozen encoder: head, D_hyp | class mean, D_hyp |"
    )
    assert lines[3].startswith(
        "| c | 1 | 90.0 | 89.2 | c = 1 | 72.00 ± 0.50 | 66.00 | 60.00 ± 1.00 | 50.00 | 65.00 | 62.1 % | 100.0 % |"
    )
    assert lines[4].startswith("| numbers | 16 | 88.6 | 83.3 | 16 numbers | – | – | 50.00 ± 1.00 |")
    assert lines[6].startswith("| room | – | – | – | r = 1.15 | – | – | 69.00 ± 1.00 |")
    assert lines[7].startswith("| chance | – | – | – | – | 5.00 | 5.00 | 5.00 | – | 5.00 | – |") and len(lines) == 8


def test_without_a_training_end_to_end_its_columns_are_not_there_and_the_caption_has_the_encoder(rows):
    alone = tables.settings_layout(rows.assign(trained_encoder=np.nan, trained_head=np.nan))
    assert "end to end" not in alone and "75.00" not in alone
    assert "by D_cos: 75.00 (class mean 74.00)" in tables.frozen_says(rows)


def test_table_4_has_the_paper_first_a_name_for_each_of_its_rows(sizes):
    control = sizes.tail(1).assign(method=f"{UNTRAINED}{HYP}", ours=14.0)
    lines = recalls.layout(pd.concat([sizes, control]), tables.sees(published.patches())).splitlines()[2:]
    assert len(lines) == 6 + 4 + 1
    assert lines[0].startswith("| NSoftmax (ResNet-50) | published | 2048 | 89.3 |")
    assert lines[3].startswith("| Hyp-DINO, patches of 8, head (ViT-S) | published | 128 | 90.4 |")
    assert lines[5].startswith("| Hyp-DINO, patches of 8, encoder (ViT-S) | published | 384 | 92.8 |")
    assert lines[8].startswith("| 64 px, head | ours | 8 | 66.00 | 2.00 | 64.00 | 0.200 |")
    assert lines[9].startswith("| untrained encoder, Hyp | ours | 8 | 14.00 |")
    assert lines[10].startswith("| chance | – | – | 5.00 | – | – | – | – | – |")


def test_the_figure_shows_differences_from_the_default(rows, sizes):
    points = tables.drawn(rows, sizes, ONE, "96 px", 1)
    drawn = points.set_index(["of", "value", "line"])["difference"]
    assert drawn["c", "1", "hyp"] == -10 and drawn["c", "1", "cosine"] == -5
    assert drawn["c", "1", "published_head"] == pytest.approx(89.2 - 92.6)
    assert drawn["c", "1", "published_encoder"] == pytest.approx(90.0 - 92.4)
    assert drawn["c", "0.1", "hyp"] == drawn["head_dim", "128", "hyp"] == 0
    assert drawn["batch_size", "900 (12)", "published_head"] == 0 and drawn["batch_size", "200 (4)", "hyp"] == 1.5
    assert drawn["seen", "64 px", "hyp"] == -4 and drawn["seen", "96 px", "frozen"] == 0
    figure = figures.differences(points)
    assert [axis.get_xlabel() for axis in figure.axes] == list(figures.PANELS.values())
    assert [tick.get_text() for tick in figure.axes[2].get_xticklabels()] == ["200 (4)", "900 (12)"]
    plt.close(figure)


def test_a_line_of_trained_encoders_is_drawn_where_two_rows_have_one(rows, sizes):
    trained = tables.drawn(rows, sizes, ONE, "96 px", 1).query("line == 'trained'").set_index(["of", "value"])
    assert trained["difference"].to_dict() == {("c", "0.1"): 0, ("c", "1"): -8}
    assert trained.loc[("c", "1"), "spread"] == 0.5


def test_the_default_rescaled_is_not_tested_against_itself(rows, sizes):
    made = [changes.Change("none", np.nan, ONE), changes.Change("c", 1.0, changes.curved(ONE, 1)), *changes.room(ONE)]
    asked = tables.questions(made, dict.fromkeys(sizes["method"]), "96 px")
    assert asked == {
        "curvature": [("c = 1", "default")],
        "c taken apart": [(name, "default") for name in ("r = 1.15", "r = 4.6", changes.SAME_ROOM)],
        tables.SIZES: [("64 px, head", "96 px, head")],
        tables.PRETRAINED: [("default", f"{UNTRAINED}{HYP}"), ("96 px, encoder", f"{UNTRAINED}{NONE}")],
        tables.ALONE: [(f"{UNTRAINED}{HYP}", f"{UNTRAINED}{NONE}"), (f"{UNTRAINED}{HYP}", f"{UNTRAINED}{SPH}")],
    }


def test_rows_at_another_rate_are_marked_in_the_tests(rows):
    tests = pd.DataFrame({"first": ["c = 1", "batch of 4"], "second": "default"})
    assert tables.marked(tests, rows)["first"].tolist() == ["c = 1", "batch of 4 (rate 0.0003)"]
