"""The comparison of encoders: hand-worked means, tests over groups, and sentences with four outcomes."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib import paths
from lib.metrics.retrieval import PerQuery
from lib.papers.hyper_dino.pretraining import tables
from lib.results import paired, saved
from lib.results.store import Run

GROUPS = np.repeat([f"g{i}" for i in range(8)], 2)


def answers(values: np.ndarray) -> PerQuery:
    columns = pd.MultiIndex.from_product([["ap_min", "hit_rate"], [1, 20]], names=["metric", "k"])
    relevant = np.isfinite(values).astype(int)
    frame = pd.DataFrame(np.stack([values] * 4, axis=1), columns=columns)
    return PerQuery(frame, np.tile(["x", "x", "x", "y"], 4), relevant, np.full(16, 4))


@pytest.fixture
def asked() -> dict[str, dict[str, PerQuery]]:
    """demo_vit is better than untrained by 0.2 in every group, and differs from texture by noise around 0."""
    base = np.linspace(0.2, 0.6, 16)
    base[3] = np.nan
    noise = np.tile([0.1, 0.1, -0.1, -0.1], 4)
    return {
        "demo_vit": {"closed": answers(base + 0.2), "open": answers(base)},
        "demo_vit-untrained": {"closed": answers(base), "open": answers(base + 0.2)},
        "texture": {"closed": answers(base + 0.2 + noise), "open": answers(base + noise)},
    }


DIMS = {"demo_vit": 384, "demo_vit-untrained": 384, "texture": 156}


def test_the_table_holds_means_in_percent_and_counts(asked):
    rows = tables.values(asked, DIMS)
    row = rows.query("gallery == 'closed' and encoder == 'demo_vit' and metric == 'ap_min' and k == 20").iloc[0]
    base = np.delete(np.linspace(0.2, 0.6, 16), 3)
    assert row["ours"] == pytest.approx(100 * (base.mean() + 0.2))
    x, y = np.linspace(0.2, 0.6, 16).reshape(4, 4)[:, :3].mean(), np.linspace(0.2, 0.6, 16)[7::4].mean()
    assert row["class_mean"] == pytest.approx(100 * ((x + y) / 2 + 0.2))
    assert row["chance"] == pytest.approx(100 * (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert (row["n_queries"], row["n_without_relevant"], row["dim"]) == (16, 1, 384)
    assert len(rows) == 3 * 2 * 2 * 2


def test_the_layout_has_a_row_per_encoder_and_one_for_chance(asked):
    lines = tables.layout(tables.values(asked, DIMS), [20]).splitlines()
    heads = "encoder | numbers | closed, MAP@20 | closed, class mean@20 | open, MAP@20 | open, class mean@20"
    assert lines[0] == f"| {heads} |"
    assert [line.split("|")[1].strip() for line in lines[2:]] == [*asked, "chance"]
    assert lines[-1].split("|")[3:5] == [" 52.08 ", " – "]


def turned(deviations: list[float]) -> torch.Tensor:
    """Features that deviate so much along as many axes, each by both its ends."""
    ends = torch.diag(torch.tensor(deviations))
    return torch.cat([ends, -ends])


def test_directions_are_counted_until_they_hold_enough():
    """Squares 99, 0.5, 0.5 of 100: one direction holds 98 %; three equal ones are all needed."""
    scaled = {"demo_vit": turned([99**0.5, 0.5**0.5, 0.5**0.5]), "demo_vit-untrained": turned([1.0, 1.0, 1.0])}
    curves, ranks = tables.spectra(scaled)
    assert curves["held"].tolist() == pytest.approx([99, 99.5, 100, 100 / 3, 200 / 3, 100])
    assert ranks["directions"].tolist() == [1, 3]
    assert ranks["rank"].iloc[1] == pytest.approx(3) and 1 < ranks["rank"].iloc[0] < 1.2
    assert "directions that hold 98 % of the variance" in tables.spectra_layout(ranks)


@pytest.mark.parametrize(("trained", "ends"), [((5.2, 6), "have collapsed"), ((30.0, 60), "have not collapsed")])
def test_the_sentence_about_collapse_follows_the_ranks(trained, ends):
    rows = [("demo_vit", 384, *trained), ("demo_vit-untrained", 384, 10.9, 45)]
    said = tables.half_collapsed(pd.DataFrame(rows, columns=["encoder", "numbers", "rank", "directions"]))
    assert f"in {trained[1]} of 384 directions (effective rank {trained[0]})" in said and ends in said


PAIRS = [("demo_vit", "demo_vit-untrained"), ("demo_vit", "texture")]


def test_tests_are_paired_over_groups(asked):
    found = tables.tests(asked, GROUPS, PAIRS, [20], seed=0)
    assert list(found[["gallery", "first", "second"]].itertuples(index=False, name=None)) == [
        (gallery, *pair) for pair in PAIRS for gallery in ("closed", "open")
    ]
    assert found["n_units"].tolist() == [8] * 4
    assert found["difference"].tolist() == pytest.approx([20, -20, 0, 0], abs=1e-9)
    assert found["p_value"].iloc[:2].tolist() == pytest.approx([2 / 2**8] * 2)
    assert (found["p_value"].iloc[2:] > 0.5).all()


def test_each_outcome_has_its_sentence(asked):
    own, other = paired.sentences(tables.tests(asked, GROUPS, PAIRS, [20], seed=0))
    assert own.startswith("demo_vit against demo_vit-untrained: closed, k = 20 better (")
    assert "; open, k = 20 worse (" in own
    assert other.startswith("demo_vit against texture: closed, k = 20 not clearly different (")
    few = paired.sentences(tables.tests(asked, np.repeat(list("abcd"), 4), PAIRS, [20], seed=0))
    assert few[0].startswith("demo_vit against demo_vit-untrained: closed, k = 20 cannot be told with 4 groups (")


def test_what_is_saved_says_what_it_is(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    about = {"steps": 40, "folds": 3, "seed": 0}
    run = Run("15_hyper_dino_pretraining", "demo", "tissue", "tiles, 16 images", "abc", "three encoders", about)
    found = tables.tests(asked, GROUPS, PAIRS, [1, 20], seed=0)
    run.save("table_encoders", tables.table_encoders(run, tables.values(asked, DIMS), [1, 20]))
    text = "MAP@k (min(k, relevant))."
    run.save("table_encoders_tests", paired.table(found, "encoders, paired tests", text, "gallery", "gallery"))
    text = saved.text(run.folder / "table_encoders.csv")
    assert "fold 0 of 3 by group" in text and "closed: 1, open: 1" in text and "domain_vit" not in text
    assert saved.text(run.folder / "table_encoders_tests.csv").count("≤ 0.0078") == 4
    trained = tables.values(asked | {"domain_vit": asked["texture"]}, DIMS | {"domain_vit": 384})
    run.save("table_encoders", tables.table_encoders(run, trained, [1, 20]))
    record = saved.record(run.folder / "table_encoders.csv")
    assert "domain_vit was trained on the training groups for 40 steps without labels" in record["caption"]
