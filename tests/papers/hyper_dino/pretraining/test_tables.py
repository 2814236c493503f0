"""The comparison of encoders: hand-worked means, tests over groups, and sentences with four outcomes."""

import json

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.metrics.retrieval import PerQuery
from lib.papers.hyper_dino.pretraining import tables
from lib.results import paired
from lib.results.store import Run

GROUPS = np.repeat([f"g{i}" for i in range(8)], 2)


def answers(values: np.ndarray) -> PerQuery:
    columns = pd.MultiIndex.from_product([["ap_min", "hit_rate"], [1, 20]], names=["metric", "k"])
    relevant = np.isfinite(values).astype(int)
    frame = pd.DataFrame(np.stack([values] * 4, axis=1), columns=columns)
    return PerQuery(frame, np.zeros(len(values)), relevant, relevant + 10)


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
    assert (row["n_queries"], row["n_without_relevant"], row["dim"]) == (16, 1, 384)
    assert len(rows) == 3 * 2 * 2 * 2


def test_the_layout_has_a_row_per_encoder_and_a_column_per_list(asked):
    lines = tables.layout(tables.values(asked, DIMS)).splitlines()
    assert lines[0] == "| encoder | numbers | closed, k = 1 | closed, k = 20 | open, k = 1 | open, k = 20 |"
    assert [line.split("|")[1].strip() for line in lines[2:]] == list(asked)
    assert lines[3].split("|")[3] == lines[3].split("|")[4]


def test_tests_are_paired_over_groups_and_only_for_encoders_that_are_there(asked):
    found = tables.tests(asked, GROUPS, [20], seed=0)
    pairs = [("demo_vit", "demo_vit-untrained"), ("demo_vit", "texture")]
    assert list(found[["gallery", "first", "second"]].itertuples(index=False, name=None)) == [
        (gallery, *pair) for pair in pairs for gallery in ("closed", "open")
    ]
    assert found["n_units"].tolist() == [8] * 4
    assert found["difference"].tolist() == pytest.approx([20, -20, 0, 0], abs=1e-9)
    assert found["p_value"].iloc[:2].tolist() == pytest.approx([2 / 2**8] * 2)
    assert (found["p_value"].iloc[2:] > 0.5).all()


def test_each_outcome_has_its_sentence(asked):
    sentences = paired.verdicts(tables.tests(asked, GROUPS, [20], seed=0), "gallery", "gallery")
    assert sentences[0] == "k = 20, gallery closed: demo_vit is better than demo_vit-untrained"
    assert sentences[1] == "k = 20, gallery open: demo_vit is worse than demo_vit-untrained"
    assert sentences[2] == "k = 20, gallery closed: demo_vit is not clearly different from texture"
    few = paired.verdicts(tables.tests(asked, np.repeat(list("abcd"), 4), [20], seed=0), "gallery", "gallery")
    assert few[0] == "k = 20, gallery closed: demo_vit cannot, with 4 groups, be told from demo_vit-untrained"


def test_what_is_saved_says_what_it_is(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    about = {"steps": 40, "folds": 3, "seed": 0}
    run = Run("15_hyper_dino_pretraining", "demo", "tissue", "tiles, 16 images", "abc", "three encoders", about)
    found = tables.tests(asked, GROUPS, [1, 20], seed=0)
    run.save("table_encoders", tables.table_encoders(run, tables.values(asked, DIMS)))
    text = "MAP@k (min(k, relevant))."
    run.save("table_encoders_tests", paired.table(found, "encoders, paired tests", text, "gallery", "gallery"))
    text = (run.folder / "table_encoders.md").read_text()
    assert "fold 0 of 3 by group" in text and "closed: 1, open: 1" in text and "domain_vit" not in text
    assert (run.folder / "table_encoders_tests.md").read_text().count("≤ 0.0078") == 4
    trained = tables.values(asked | {"domain_vit": asked["texture"]}, DIMS | {"domain_vit": 384})
    run.save("table_encoders", tables.table_encoders(run, trained))
    record = json.loads((run.folder / "table_encoders.json").read_text())
    assert "domain_vit was trained on the training groups for 40 steps without labels" in record["caption"]
