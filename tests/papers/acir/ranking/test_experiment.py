from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.datasets.table import ImageTable
from lib.encoders.taps import Taps
from lib.errors import InputError
from lib.metrics import hashing
from lib.metrics.retrieval import average_precision_at_k
from lib.papers.acir.hashing.experiment import ACIR, Plan
from lib.papers.acir.ranking import experiment, figures, tables, tested
from lib.papers.acir.ranking.experiment import BEST, HAMMING, LEVELS, POOLED, WORST
from lib.training.acir import Design
from lib.training.hashing import Even
from lib.training.splits import Split, repeated

RNG = np.random.default_rng(0)
LABELS = np.arange(48) % 3
GROUPS = np.arange(48) // 6
FINER = np.where(RNG.random(48) < 0.5, "a", "b")
SPLIT = Split(0, np.arange(24), np.arange(24, 48), 0)
POOL = RNG.normal(size=(48, 6)) + 2 * np.eye(3)[LABELS] @ RNG.normal(size=(3, 6))


def coder(method=ACIR, bits=8, repeat=0, seed=0):
    rng = np.random.default_rng(seed)
    h = np.eye(3)[LABELS] @ rng.normal(size=(3, bits)) + 0.7 * rng.normal(size=(48, bits))
    levels = {name: POOL + rng.normal(size=POOL.shape) for name in ("shallow", "token")} if method == ACIR else {}
    return experiment.Coder(method, bits, repeat, h, [2.0, 1.0], 9, levels)


@pytest.fixture
def coders():
    return [
        coder(name, bits, repeat, 10 * repeat + number)
        for bits in (8, 16)
        for repeat in (0, 1)
        for number, name in enumerate((ACIR, *experiment.OPPONENTS))
    ]


@pytest.fixture
def scene():
    return experiment.Scene(SPLIT.test, SPLIT.train, LABELS, {"finer": FINER})


def test_content_orders_ties_and_nothing_else(scene):
    one = coder()
    keys = experiment.keys(one, POOL, scene)
    assert set(keys) == {HAMMING, POOLED, LEVELS, "level: shallow", "level: token"}
    for name, key in keys.items():
        assert (np.round(key - keys[HAMMING], 9) >= 0).all() and (key - keys[HAMMING] < 1).all(), name
    similarity = hashing.content_similarity([POOL[SPLIT.test]], [POOL[SPLIT.train]])
    row = np.lexsort((-similarity[0], keys[HAMMING][0]))
    assert row.tolist() == keys[POOLED][0].argsort(kind="stable").tolist()


def test_every_query_is_measured_by_every_ranking(scene):
    one = coder()
    rows = experiment.measured(one, POOL, scene)
    assert len(rows) == 24 * 7 and set(rows["ranking"]) >= {BEST, WORST}
    distance = hashing.hamming(*(hashing.pack(one.h[part]) for part in (SPLIT.test, SPLIT.train)))
    relevant = LABELS[SPLIT.test][:, None] == LABELS[SPLIT.train]
    wanted = 100 * average_precision_at_k(distance, relevant, [24], "min").numpy()[:, 0]
    assert np.allclose(rows.query("ranking == @HAMMING")["ap_min"], wanted)
    by = rows.groupby("ranking")["ap_min"].mean()
    assert by[WORST] <= by[HAMMING] <= by[BEST] and by[WORST] <= by[POOLED] <= by[BEST]


def test_no_query_finds_itself_where_it_is_in_the_archive():
    twins = experiment.Scene(
        np.arange(4), np.arange(4), np.zeros(4, int), {"own": np.array(list("aabb"))}, own_out=True
    )
    one = replace(coder(ACIR), h=np.ones((4, 8)), levels={})
    rows = experiment.measured(one, None, twins, [HAMMING])
    assert np.allclose(rows["own"], 100 / 3) and twins.chance("own") == pytest.approx(100 / 3)
    assert np.allclose(rows["ap_hits"], 100)


def test_no_more_images_ask_than_said(monkeypatch):
    monkeypatch.setattr(experiment, "QUERIES", 5)
    drawn = experiment.asking(SPLIT, 1)
    assert len(drawn) == 5 and set(drawn) <= set(SPLIT.test) and (np.diff(drawn) > 0).all()
    assert np.array_equal(drawn, experiment.asking(SPLIT, 1))


def test_network_and_heads_learn_and_keep_their_seeds(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "TRAINED", tmp_path)
    deep = (POOL[:, :, None, None] + 0.1 * RNG.normal(size=(48, 6, 2, 2))).astype(np.float16)
    maps = Taps(RNG.normal(size=(48, 4, 4, 4)).astype(np.float16), deep)
    prints = RNG.random((48, 12)).astype(np.float32)
    plan = Plan(6, 12, 3, Even(12, 12))
    design = Design(8, narrow=(4, 4), window=4, heads=2, width=4, grid=2)
    material = experiment.Material([maps], LABELS, prints, plan, design)
    assert material.rows.shape == (48, 18)
    rates = dict.fromkeys((ACIR, *experiment.OPPONENTS), 0.01)
    found = experiment.trained(material, [8], rates, SPLIT, 2, workers=1)
    assert [(one.method, one.repeat) for one in found] == [(n, r) for n in (ACIR, "CSQ", "DCH", "DPN") for r in (0, 1)]
    assert all(one.history[-1] < one.history[0] and one.steps == 24 and one.h.shape == (48, 8) for one in found)
    assert list(found[0].levels) == ["shallow", "fused", "pixels", "token"] and not found[2].levels
    chosen = experiment.choose(material, [0.001, 0.01], SPLIT, workers=1)
    assert chosen.equals(experiment.choose(material, [0.001, 0.01], SPLIT, groups=np.arange(48), workers=1))
    assert len(chosen) == 8 and chosen.groupby("method")["chosen"].sum().eq(1).all()
    twice = experiment.choose(material, [0.01], SPLIT, 2, workers=1)["validation"]
    each = [experiment.choose(material, [0.01], one, workers=1)["validation"] for one in repeated([SPLIT], 2)]
    assert np.allclose(twice, np.mean(each, axis=0)) and not np.allclose(*each)


def test_tests_pair_patients_and_trainings(coders, scene):
    values = experiment.all_measured(coders, POOL, scene, workers=1)
    table = tested.tests(values, tested.pairs([8, 16], 16, ["finer"]), GROUPS)
    assert len(table) == 2 * 3 + 2 * 3 + 3 + 1 and table["n_units"].eq(4).all() and table["n_seeds"].eq(2).all()
    a, b = (values.query("method == @ACIR and bits == 8 and ranking == @name") for name in (LEVELS, HAMMING))
    paired = pd.Series(a["ap_min"].to_numpy() - b["ap_min"].to_numpy()).groupby(GROUPS[a["query"]]).mean()
    assert table["difference"][0] == pytest.approx(paired.mean())
    assert len(tested.verdicts(table)) == len(table)
    assert tested.compared(values, 8)["ACIR: mean of all levels − Hamming alone"].index.tolist() == SPLIT.test.tolist()


def test_every_table_says_what_it_was_made_of(coders, scene):
    values = experiment.all_measured(coders, POOL, scene, workers=1)
    rows = tables.summary(values)
    chance = tables.chances_of(scene)
    assert rows["n_seeds"].eq(2).all() and chance == {"finer": scene.chance("finer")}
    lines = tables.ties_layout(rows, 12.5).splitlines()
    assert len(lines) == 2 + 8 + 1 and "| chance | – | – | – | 12.50 |" in lines[-1]
    assert (
        f"8 bits: {rows.query('method == @ACIR and bits == 8 and ranking == @HAMMING')['tied'].item():.0f} %"
        in (tables.ties_sentences(rows)[0])
    )
    assert "| chance | – |" in tables.within_layout(rows[rows["bits"] == 16], chance)
    assert "published: +1.5" in tables.gain_sentence(rows, 16)
    assert tables.levels_layout(rows, 12.5).splitlines()[-1] == "| chance | 12.50 | 12.50 |"
    health = tables.health(coders)
    assert health["loss_last"].eq(1.0).all() and len(health) == 8
    table = tables.radii(coders, scene, 16, [0, 16])
    assert table.query("radius == 16")["n_rejected"].eq(0).all() and len(table) == 4 * 2 * 2 + 2
    assert len(tables.centralised(coders, scene, 16)) == 8


def test_what_is_finer_is_a_column_of_the_table(tmp_path):
    rows = pd.DataFrame({"image_id": ["1", "2"], "path": ["a", "b"], "label": ["x", "x"], "group": ["g", "h"]})
    images = ImageTable("own", tmp_path, rows.assign(subtype=["s", "t"]), "patient")
    assert tables.finer_of(images, ["none"]) == {} and tables.finer_of(images, ["subtype"])["subtype"].tolist() == [
        "s",
        "t",
    ]
    with pytest.raises(InputError, match="no column grade"):
        tables.finer_of(images, ["grade"])


def test_algorithm_1_is_a_lexsort(scene):
    one = coder()
    listed = figures.algorithm(one, list(one.levels.values()), scene, ["x", "y", "z"], 30)
    rows = listed.rows.sort_values("by_content")
    pairs = list(zip(rows["distance"], -rows["content"], strict=True))
    assert pairs == sorted(pairs)
    by_hamming = listed.rows.sort_values("by_hamming")
    assert by_hamming["distance"].is_monotonic_increasing
    assert by_hamming.groupby("distance")["image"].apply(lambda part: part.is_monotonic_increasing).all()
    assert sorted(listed.rows["by_content"]) == list(range(1, 25))
    assert figures.listing(rows.head(3)).count("\n") == 4 and "distance" in figures.readout(listed)
    near = rows[rows["distance"] == rows["distance"].min()]
    assert f"{len(near)} images lie at the smallest distance" in figures.right_sentence(listed)
    ten = rows.head(10)["right"].sum()
    assert figures.right_sentence(listed).endswith(f"and {ten} by content")


def test_the_query_with_most_ties_of_which_half_are_right_is_shown():
    """Query 0 has two of four nearest images right, query 1 one of eight."""
    h = np.array([[1, 1], [-1, -1], *[[1, 1]] * 4, *[[-1, -1]] * 8], dtype=float)
    labels = np.array([0, 0, 0, 0, 1, 1, 0, *[1] * 7])
    scene = experiment.Scene(np.arange(2), np.arange(2, 14), labels)
    assert figures.most_tied(replace(coder(), h=h), scene) == 0
    assert figures.most_tied(replace(coder(), h=h), replace(scene, labels=np.ones(14))) == 1


def test_an_archive_in_random_order_has_the_mean_of_all_orders():
    scene = experiment.Scene(np.arange(1), np.arange(1, 3), np.array([0, 0, 1]))
    assert experiment.random_order(scene) == {"ap_hits": pytest.approx(75), "ap_min": pytest.approx(75)}


def test_first_of_classes_are_one_each(scene):
    assert [LABELS[query] for query in figures.first_of_classes(scene)] == [0, 1, 2]
    assert figures.unanswerable(scene, ["x", "y", "z"]) == ""


def test_a_class_that_the_archive_lacks_is_not_shown_but_named():
    """Images 0 to 3 ask, of classes 1, 0, 1, 2; the archive has classes 0 and 2."""
    scene = experiment.Scene(np.arange(4), np.arange(4, 6), np.array([1, 0, 1, 2, 0, 2]))
    assert figures.first_of_classes(scene) == [1, 3]
    assert figures.unanswerable(scene, ["x", "y", "z"]).endswith("has no image of their class: y.")
