"""The rule that decides, in every case that it knows; what was found in the folder; the page that says so."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.archive import verdict
from lib.archive.trials import Measured
from lib.datasets.table import ImageTable
from lib.papers.your import archive
from lib.pipeline import pages
from lib.study import differences
from lib.study.shown import Table
from lib.study.store import Run
from tests.images import listed

STRICT, OPEN = "closed, by patient", "open, by patient"
BASE = "plain features of net"
KEYS = {BASE: "plain", "texture": "plain", "linear classifier": "linear", "Hyper-DINO's mapper": "hyper_dino"}
EVIL = "<img src=x onerror=alert(1)>"


def table(kind: str = "patient", n_patients: int = 12, label: str = "b") -> ImageTable:
    """Two images of each class and patient, who are known unless the kind of group is an image."""
    patients = [f"p{number // 2}" for number in range(2 * n_patients)] * 2
    given = {} if kind == "image" else {"group": patients}
    images = listed(["a"] * 2 * n_patients + [label] * 2 * n_patients, kind=kind, **given)
    return replace(images, skipped=(("notes.txt", "not one of .png"),))


def measured(scores: dict[str, float], gains: dict[str, np.ndarray], rim: float = np.nan) -> Measured:
    """Methods with these scores, and with these gains of every patient over plain features."""
    rows = [
        {"archive": where, "method": name, "encoder": "net", "key": KEYS[name], "k": k}
        | {"ours": score - 1, "group_mean": score, "spread": 1.0}
        | {"class_mean": score, "chance": 10.0, "class_chance": 10.0, "f1_1": 50.0, "f1_3": 51.0, "f1_5": 52.0}
        | {"seconds": np.nan if name in (BASE, "texture") else 3.0, "bytes": 64}
        for where in ("closed, by image", STRICT)
        for name, score in scores.items()
        for k in (1, 20)
    ]
    tests = [
        {"rule": STRICT, "first": name, "second": BASE, "k": 20}
        | differences.of_shares(gain, 0 * gain, np.arange(len(gain)))
        for name, gain in gains.items()
    ]
    found = differences.together(tests).assign(
        at_rim=lambda tests: np.where(tests["first"] == "Hyper-DINO's mapper", rim, np.nan)
    )
    return Measured(pd.DataFrame(rows), found, STRICT, BASE, {"label_tree": "there is no tree"}, 5, 1)


def gain(points: float, n: int = 12) -> np.ndarray:
    """Of n patients, with a spread of two points."""
    return points / 100 + np.linspace(-0.02, 0.02, n)


SCORES = {BASE: 40.0, "texture": 44.0, "linear classifier": 60.0, "Hyper-DINO's mapper": 62.0}


def decided(
    gains: dict[str, np.ndarray], given: ImageTable | None = None, used: ImageTable | None = None, rim: float = np.nan
) -> verdict.Verdict:
    """The verdict on these gains; given: 12 patients; used: what was given."""
    given = given or table()
    return verdict.decide(measured(SCORES, gains, rim), given, used or given)


def test_of_those_that_are_clearly_better_the_best_is_recommended_with_its_evidence_and_its_cost():
    both = {"texture": gain(0), "linear classifier": gain(20), "Hyper-DINO's mapper": gain(22)}
    chosen = decided(both)
    assert (chosen.outcome, chosen.key, chosen.encoder) == (verdict.BETTER, "hyper_dino", "net")
    for said in (
        "Use Hyper-DINO's mapper on features of net",
        "for images of a new patient, 62.0 % of the first 20 answers show the right class",
        "with plain features 40.0 %",
        "+22.0 points with 12 patients",
        "One other method is clearly better than plain features as well, the best of them linear classifier "
        "with 60.0 %; they were not tested",
        "takes 3 seconds to train, and its code alone has 64 bytes an image",
    ):
        assert said in chosen.sentence
    texture = decided({"texture": gain(4)})
    assert (texture.key, texture.method) == ("plain", "texture") and "It needs no training" in texture.sentence
    assert "corrected for one method)" in texture.sentence


def test_a_head_at_the_rim_and_a_better_score_that_is_not_clear_are_no_evidence():
    unclear = np.where(np.arange(12) % 2, 0.6, -0.5)
    tests = {"linear classifier": gain(20), "Hyper-DINO's mapper": gain(22)}
    assert decided(tests, rim=30.0).key == "linear"
    held = decided({"Hyper-DINO's mapper": gain(22), "texture": gain(0)}, rim=30.0)
    assert held.outcome == verdict.NOTHING and "Hyper-DINO's mapper gains more than chance, but lies" in held.further
    tests["Hyper-DINO's mapper"] = unclear
    assert decided(tests).key == "linear"


def test_where_nothing_is_clearly_better_plain_features_are_and_it_says_what_would_have_been_seen():
    chosen = decided({"texture": gain(0.1), "linear classifier": gain(-20)})
    assert (chosen.outcome, chosen.method) == (verdict.NOTHING, BASE)
    assert "a gain had to be at least 1.0 points" in chosen.sentence


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_patients_cannot_tell_however_large_the_gain_and_it_says_how_many_would_do(n):
    tests = {"linear classifier": gain(50, n), "Hyper-DINO's mapper": gain(50, n)}
    chosen = decided(tests, table(n_patients=n))
    assert (chosen.outcome, chosen.method) == (verdict.CANNOT, BASE)
    assert chosen.sentence.startswith(f"{verdict.counted(n, 'patient').capitalize()} cannot tell")
    assert "Seven patients or more would do" in chosen.sentence
    more = decided(tests)
    assert f"{verdict.counted(n, 'patient').capitalize()} (of 12: the others have no class" in more.sentence
    assert decided(dict.fromkeys(tests, gain(50, verdict.would_do(2)))).outcome == verdict.BETTER


def test_patients_that_no_folds_keep_apart_tell_nothing_even_if_every_image_agrees():
    chosen = decided({"linear classifier": gain(20)}, table(n_patients=3), table("image"))
    assert chosen.outcome == verdict.CANNOT and "your folder has three patients, and no folds" in chosen.sentence
    unknown = decided({"linear classifier": gain(20)}, table("image"))
    assert unknown.outcome == verdict.BETTER and "tells no patients" in unknown.further
    assert "for a new image, " in unknown.sentence


def test_the_page_begins_with_what_to_use_and_shows_what_was_found_as_text(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    given, got = table(label=EVIL), measured(SCORES, {"texture": gain(0), "linear classifier": gain(20)})
    chosen = verdict.decide(got, given, given)
    run = Run("93_your_archive", "own", "mine", "mine, 48 images, 2 classes, 12 patients", "0", "net (8 numbers)")
    run.save("table_verdict", archive.table_verdict(chosen.rows))
    run.save("figure_gain", archive.figure_gain(got.tests, got.k, got.strict))
    run.save("table_methods", archive.table_methods(got.rows, got.tests, got.strict))
    run.save("table_tests", archive.table_tests(got.tests))
    run.save("table_found", Table("found", verdict.class_counts(given, given), "Found."))
    run.save("table_left_out", Table("left out", verdict.left_out(given, given, got.lacking), "Left out."))
    page = pages.write_own("mine").read_text()
    assert page.startswith(f"# mine\n\n**{chosen.sentence}**")
    assert "<img" not in page and "a (24)" in page and "- notes.txt: not one of .png" in page
    assert "HWC + LAM: method not run: there is no tree" in page
    figure = "your/own/mine/archive/figure_gain.png"
    assert f"({figure})" in page and (tmp_path / figure).exists()
    assert "| linear classifier | 59.0 | 59.0 |" in page and "+20.0, better" in page


def test_the_first_answer_and_new_images_stand_beside_plain_features_and_the_best():
    of = measured(SCORES, {"texture": gain(0), "Hyper-DINO's mapper": gain(22)})
    names = (BASE, "Hyper-DINO's mapper", "texture")
    shares = {(STRICT, 1): (50.6, 52.9, 55.0), (OPEN, 1): (43.2, 40.8, 44.0), (OPEN, 20): (41.0, 42.5, 42.0)}
    rows = [
        {"archive": archive, "method": name, "k": k, "ours": share, "f1_5": 52.0}
        for (archive, k), of_methods in shares.items()
        for name, share in zip(names, of_methods, strict=True)
    ]
    with_open = replace(of, rows=pd.concat([of.rows[of.rows["k"] > 1], pd.DataFrame(rows)], ignore_index=True))
    assert verdict.decide(with_open, table(), table()).further == (
        "The first answer is right for 52.9 % (plain features 50.6 %; best of all texture, 55.0 %). In an archive of "
        "images that no method has learnt from, it is right for 40.8 % (plain features 43.2 %; best of all texture, "
        "44.0 %). Of the first 20 answers there, 42.5 % (plain features 41.0 %) are right. If the five nearest vote, "
        "macro F1 is 52.0 % (plain features 52.0 %); every class counts alike. These numbers were not tested."
    )


def test_where_there_are_several_encoders_it_says_whose_features_were_learnt_on():
    of = measured(SCORES, {"linear classifier": gain(20)})
    rows = of.rows.assign(encoder=of.rows["method"].map({"texture": "texture"}).fillna("net"))
    chosen = verdict.decide(replace(of, rows=rows), table(), table())
    assert "What is trained was tried on features of net alone." in chosen.further
    assert "alone." not in verdict.decide(of, table(), table()).further
