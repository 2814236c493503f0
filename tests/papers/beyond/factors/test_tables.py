"""Tests say what was planted: one factor helps, one costs, one does nothing; the own group counts apart."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.losses.hashing import CSQ
from lib.metrics.retrieval import PerQuery
from lib.papers.beyond.factors import tables
from lib.papers.beyond.factors.experiment import BALL, FLAT, LOGITS, NONE, PROBABILITY, with_margin
from lib.study import paired
from lib.study.scores import of_answers
from lib.training import hashing, hyper_dino
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import repeated, splits

N, SEEDS, KS = 120, 3, (1, 5)
GROUPS = np.array([f"p{i}" for i in np.arange(N) // 10])
LABELS = np.arange(N) % 4
RULES = {"by image": np.arange(N) % 3, "by patient": np.arange(N) // 10 % 3}
METHOD = Method("head", Recipe("PCA", 128, 32), hyper_dino.Settings())


def answers(rule: str, level: float, health: Health | None = None, method: Method = METHOD) -> list[Answer]:
    """Every query's AP is about ``level``, that of a list half of it, by hits an eighth, and precision a quarter."""
    done = []
    for split in repeated(splits(RULES[rule], 0), SEEDS):
        values = level + np.random.default_rng([split.seed, round(100 * level)]).normal(0, 0.01, size=len(split.test))
        columns = pd.MultiIndex.from_product([["ap_min", "ap_hits", "precision"], KS], names=["metric", "k"])
        lists = [values, values / 2, values, values / 8, values, values / 4]
        frame = pd.DataFrame(np.stack(lists, axis=1), columns=columns)
        few = np.full(len(split.test), 10)
        per_query = PerQuery(frame, LABELS[split.test], few, 4 * few)
        done.append(Answer(method, split, health or Health(), [], np.full(4, level), per_query))
    return done


ON_NET = {NONE: 0.5, LOGITS: 0.6, PROBABILITY: 0.4, BALL: 0.7, FLAT: 0.7}
LEVELS = {f"net, {name}": level for name, level in ON_NET.items()}
LEVELS |= {f"bare-untrained, {NONE}": 0.2, f"bare-untrained, {BALL}": 0.65, f"texture, {PROBABILITY}": 0.3}
ARCHIVES = {"closed, by image": 0.2, "closed, by patient": 0.0, "open, by patient": 0.0}


@pytest.fixture(scope="module")
def results() -> dict:
    return {
        archive: {name: answers(archive.partition(", ")[2], level + bonus) for name, level in LEVELS.items()}
        for archive, bonus in ARCHIVES.items()
    }


def paired_tests(results, beside=("bare-untrained", "texture"), **options) -> pd.DataFrame:
    return tables.tested(results, tables.factors("net", beside), GROUPS, KS, **options)


def test_each_factor_earns_what_was_planted(results):
    tests = paired_tests(results)
    first = tests[(tests["k"] == 1) & (tests["archive"] == "closed, by patient")].set_index("factor")
    planted = {
        "encoder: pretrained, not untrained (no head on either)": 30,
        "encoder: pretrained, not untrained (ball on both)": 5,
        "encoder: pretrained, not texture (linear classifier on both)": 10,
        f"labels: {tables.CLASSIFIER}, not none": -10,
        "head: ball, not none": 20,
        f"head: ball, not {tables.CLASSIFIER}": 30,
        "curvature: ball, not flat": 0,
    }
    assert first["difference"].to_dict() == pytest.approx(planted, abs=0.5) and list(first.index) == list(planted)
    assert set(tests["archive"]) == {"closed, by patient", "open, by patient"}
    again = tests["metric"] != "ap_min"
    assert (tests["n_tests"] == np.where(again, 7 * 2, 7 * 2 * 2)).all(), "the same questions once more"


def test_an_archive_in_which_too_few_classes_have_an_answer_is_not_tested(results):
    """All queries with an answer are of class 0, as on BreakHis, where one class has several patients."""

    def poorer(one):
        values = one.per_query.values.where(pd.Series(one.per_query.classes == 0), axis=0)
        return replace(one, per_query=replace(one.per_query, values=values))

    poor = {name: [poorer(one) for one in several] for name, several in results["open, by patient"].items()}
    assert list(tables.fair(results | {"open, by patient": poor})) == ["closed, by patient"]


def test_the_own_group_is_tested_apart_and_where_it_can_touch(results):
    """Half of the images are alone in their group: nothing of it is in the archive, and they are not tested."""
    alone = np.where(np.arange(N) < 60, [f"alone {i}" for i in range(N)], GROUPS)
    for groups, count in ((GROUPS, (120, 12)), (alone, (60, 6))):
        own = tables.of_own_group(results, f"net, {BALL}", groups, "lesion", KS)
        assert (own.loc[0, "n_queries"], own.loc[0, "n_units"]) == count and (own["n_tests"] == 2).all()
        assert own.loc[0, "difference"] == pytest.approx(20, abs=0.5)
    text = tables.table_tests(pd.concat([paired_tests(results, []), own], ignore_index=True)).caption
    assert "over the 60 images whose lesion has another one in the archive (6 lesions)" in text
    strict = {archive: results[archive] for archive in tables.strict(results)}
    assert tables.of_own_group(strict, f"net, {BALL}", GROUPS, "lesion", KS).empty


def test_a_head_at_the_rim_is_marked_in_the_tests(results):
    pair = [(f"net, {BALL}", f"net, {FLAT}")]
    by_method = results["open, by patient"]
    held = [replace(one, health=Health(0.1, 27.6, 30)) for one in by_method[f"net, {BALL}"]]
    for several, last in (({}, "0.0 %"), ({f"net, {BALL}": held}, "27.6 %, not counted")):
        found = {
            "open": {name: [replace(one, health=Health(0.1, 0.0, 30)) for one in of] for name, of in by_method.items()}
        }
        found["open"] |= several
        marked = tables.with_rim(of_answers(found, GROUPS).tests(pair, (1,)), found)
        assert paired.tests_layout()(marked).endswith(f"| {last} |")


def test_scores_know_their_encoder_their_bytes_and_where_they_rest(results):
    rows = tables.of_encoders(results)
    assert set(rows["encoder"]) == {"net", "bare-untrained", "texture"} and set(rows["n_classes"]) == {4}
    code = Method("code", Recipe("PCA", 128, 60), hashing.Settings(loss=CSQ(4, 60)))
    bare = Method(NONE, Recipe("raw", 1280, 0), hyper_dino.Settings())
    sizes = tables.costs({"open": {one.name: answers("by patient", 0.5, None, one) for one in (code, METHOD, bare)}})
    assert dict(zip(sizes["method"], sizes["bytes"], strict=True)) == {NONE: 2560, "head": 64, "code": 8}
    planted = {(BALL, 1): 0.5, (FLAT, 1): 0.4, (BALL, 4): 0.6, (FLAT, 4): 0.3}
    wide = {"open": {with_margin(*where): answers("by patient", level) for where, level in planted.items()}}
    assert tables.of_margins(wide).query("k == 1").set_index(["head", "m0"])["norm"].to_dict() == planted


def test_the_overview_counts_ap_by_what_could_be_found_and_reads_older_reports():
    test = {"factor": "head", "archive": "closed, by patient", "p_holm": 0.01, "p_floor": 0.004, "n_units": 9}
    rows = pd.DataFrame([test | {"k": k, "difference": k / 10, "n_tests": 2} for k in (1, 20)])
    both = pd.concat([rows.assign(metric="ap_min"), rows.assign(metric="ap_hits", difference=9.0)])
    old = rows.assign(archive="closed, by image")
    expected = "| head | closed | k = 1: +0.1; k = 20: +2.0 | k = 1: +0.1; k = 20: +2.0 |"
    assert tables.overview({"tissue": both, "birds": old}).splitlines()[-1] == expected
