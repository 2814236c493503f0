"""Tables, sentences, figures and sliders say what the numbers say."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from lib import paths
from lib.errors import InputError
from lib.metrics import novelty
from lib.papers.acir import published
from lib.papers.acir.novelty import figures, findings, maps, pictures, rules, scores, sliders, tables
from lib.papers.acir.novelty.experiment import ACIR, L1, MAHALANOBIS, NEAREST, RESIDUAL, Coder
from lib.papers.acir.novelty.rules import Rule
from lib.papers.acir.novelty.scene import ASIDE, FAR, KNOWN, LEARNT, NEAR
from lib.papers.acir.novelty.scores import Limit
from lib.results.shown import Figure
from lib.search.refusal import Gate


@pytest.fixture(scope="module")
def found(scene, coders, decoders):
    return scores.of_all(scene, coders, decoders, workers=1)


def test_kept_neighbours_are_counted_as_a_loop_does():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 5)), rng.normal(size=(40, 2))

    def nearest(points, i, k):
        return set(np.argsort([np.inf if j == i else np.linalg.norm(points[i] - points[j]) for j in range(40)])[:k])

    loop = np.mean([len(nearest(x, i, 7) & nearest(y, i, 7)) / 7 for i in range(40)])
    assert maps.kept(x, y, k=7) == pytest.approx(loop)
    assert maps.kept(x, x, k=7) == 1.0


def test_a_page_is_the_same_for_the_same_seed_and_too_few_points_are_refused():
    x = np.random.default_rng(0).normal(size=(60, 4))
    first, again = maps.page(x, 0, perplexity=10), maps.page(x, 0, perplexity=10)
    np.testing.assert_array_equal(first.points, again.points)
    assert 0 < first.chance < first.kept < 1 and first.trust <= 1
    with pytest.raises(InputError, match="too few for a perplexity of 30"):
        maps.page(x, 0)


def test_table_3_has_the_published_rows_first_and_a_row_for_each_rule(scene, coders, found):
    chosen = [Rule("CSQ"), Rule(ACIR, Limit(RESIDUAL))]
    rows = rules.table_3(scene, coders, found, 8, chosen)
    lines = tables.table_3_layout(rows, published.novelty()).splitlines()
    assert len(lines) == 2 + 6 + 2
    assert "| CSQ, 8 bits | published | 84.9 | 86.0 | 80/500 |" in "\n".join(lines)
    assert f"/{len(scene.rows(FAR))} (" in lines[-1]


def test_every_layout_names_every_score(scene, found):
    apart, ends = scores.separations(scene, found), scores.intervals(scene, found)
    text = tables.scores_layout(apart, ends)
    assert all(f"| {name} |" in text for name in found)
    assert tables.limits_layout(scores.limits(scene, found)).count("\n") == 1 + 3 * len(scores.LIMITED)
    assert "patients" in tables.parts_layout(scene)


def test_the_finding_about_limits_says_larger_where_it_is():
    rows = pd.DataFrame(
        [
            {"score": RESIDUAL, "part": part, "mean": mean, "known": alarms, "far": 50.0}
            for part, mean, alarms in (("learnt", 0.4, 5.0), ("aside", 0.5, 1.0))
        ]
    )
    lines = findings.limits(rows.assign(limit=0.9), [RESIDUAL])
    assert "is 25.0 % larger" in lines[0] and len(lines) == 2
    assert findings.limits(rows.assign(limit=1.1), [RESIDUAL])[2].endswith("they refuse nothing")
    assert "images learnt from: 5.0 % false alarms" in lines[1] and "set aside: 1.0 %" in lines[1]


def test_the_verdict_names_the_outcome_of_the_test(scene, found):
    lines = findings.verdict(scores.tests(scene, found, [(RESIDUAL, NEAREST)]))
    assert [line.partition(":")[0] for line in lines] == ["left-out class (new)", "OOD"]
    assert all("the nearest feature (" in line for line in lines)


def test_the_verdict_counts_points_of_auroc():
    test = {"gallery": FAR, "first": L1, "second": NEAREST, "difference": -9.74, "low": -13.3, "high": -6.1}
    rows = pd.DataFrame([test | {"p_value": 0.001, "p_holm": 0.01, "p_floor": 0.0002, "n_units": 18, "n_tests": 16}])
    assert findings.verdict(rows) == [
        "OOD: the decoder's residual, L1 is worse than the nearest feature (-9.74 points of AUROC, -13.30 to -6.10; "
        "p (Holm) = 0.010)"
    ]


@pytest.mark.parametrize(
    ("say", "name", "words"),
    [
        (findings.verdict, "table_tests", "the decoder's residual, MS-SSIM"),
        (findings.table_3, "table_3", "ACIR with the balls alone detects"),
        (findings.limits, "table_limits", "that of groups set aside is"),
    ],
)
def test_what_real_images_say_is_read_from_the_committed_rows(say, name, words):
    committed = paths.COMMITTED / "acir/sample/bh200x/novelty" / f"{name}.csv"
    assert any(words in line for line in say(pd.read_csv(committed)))


def test_the_decoder_is_ahead_in_as_many_classes_as_are_counted():
    rows = pd.DataFrame({"class": ["a", "a", "b", "b"], "score": [L1, NEAREST] * 2, "auroc": [60.0, 50.0, 40.0, 50.0]})
    assert findings.agreement(rows) == ["residual, L1 is above the nearest feature in 1 of 2 classes"]
    assert findings.agreement(rows[rows["score"] == NEAREST]) == []


def test_the_six_questions_are_answered_in_their_order(scene, coders, found):
    turned = pd.DataFrame({"class": ["a", "a"], "score": [L1, NEAREST], "auroc": [60.0, 50.0]})
    with_limits = [Rule("CSQ", Limit(score)) for score in (L1, NEAREST, MAHALANOBIS)]
    told = findings.answered(
        rules.balls(scene, {8: coders["CSQ"]}),
        scores.limits(scene, found),
        scores.tests(scene, found, [(L1, NEAREST)]),
        turned,
        scores.by_kind(scene, found, [RESIDUAL, L1, NEAREST], 8),
        rules.table_3(scene, coders, found, 8, with_limits),
        {"features": maps.Page(np.zeros((3, 2)), kept=0.5, trust=0.9, chance=0.1)},
    )
    assert [line[:3] for line in told] == [f"{n}. " for n in range(1, 7)]
    assert told[2].endswith("in 1 of 1 classes") and "left-out class (new)" in told[2]
    assert told[4].startswith("5. CSQ's balls and") and told[4].count(" %, ") == 6
    assert told[5].endswith("50 % of the 10 nearest neighbours kept (at random 10.0 %)")


def test_trivial_rules_stand_beside_the_best(scene, coders, found):
    everybody = {rule.code: coders.get(rule.code, coders["CSQ"]) for rule in rules.TRIVIAL}
    distances = {code: found.get(code, found["CSQ"]) for code in everybody}
    rows = rules.table_3(scene, everybody, found | distances, 8, [*rules.TRIVIAL, Rule("CSQ"), Rule(ACIR)])
    (line,) = findings.trivial(rows)
    best = rows.groupby("rule")["recall"].mean().drop([rule.name for rule in rules.TRIVIAL])
    assert f"best recall {best.max():.1f} ({best.idxmax()})" in line
    assert findings.trivial(rows[rows["rule"] != rules.TRIVIAL[0].name]) == []
    assert f" / {100 / (1 + len(scene.classes)):.1f}, CSQ, nothing refused" in line


def test_who_was_refused_is_read_from_the_committed_rows_of_real_images():
    folder = paths.COMMITTED / "acir/sample/bh200x/novelty"
    rows = pd.read_csv(folder / "figure_5.csv")
    lines = findings.refusals(rows)
    share = rows[(rows["rule"] == rows["rule"].iloc[0]) & (rows["given_class"] == "refused")]
    known = share[~share["query_class"].isin(figures.ODD)].sort_values("share", ascending=False).iloc[0]
    assert len(lines) == rows["rule"].nunique()
    assert f"of the known classes {known['query_class']} {known['share']:.1f} %" in lines[0]
    assert findings.refused_most(pd.read_csv(folder / "figure_refused.csv"))[0].endswith("trainings)")


def test_the_worst_kind_of_the_residual_is_named_with_the_rival_beside():
    cells = {("fog", L1): 20.0, ("noise", L1): 99.0}
    cells |= {("fog", RESIDUAL): 20.0, ("noise", RESIDUAL): 99.0, ("fog", NEAREST): 90.0, ("noise", NEAREST): 95.0}
    rows = pd.DataFrame([{"kind": k, "score": s, "auroc": v} for (k, s), v in cells.items()])
    lines = findings.kinds(rows)
    assert lines[0] == f"{RESIDUAL} is worst on fog: AUROC 20.0; the nearest feature has 90.0 there"
    assert lines[1] == "  rebuilt better than known images, AUROC below 50: fog"
    assert lines[4].startswith("hardest for all scores: fog (best AUROC 90.0, nearest feature)")


def test_a_query_is_answered_with_classes_or_refused_with_its_reason(scene):
    """An image of the archive finds itself first, and with codes that are the classes only its own class."""
    own = np.where(np.eye(len(scene.classes))[scene.labels] > 0, 1.0, -1.0)
    coder = Coder("ACIR", own, [np.arange(3.0 * len(own)).reshape(-1, 3) % 7], 1.0, 0.5, 10)
    gates = [Gate("rebuilt with an error of", 0.3, 0.99)]
    rows = scene.rows(LEARNT)[:2]
    lines = findings.examples(scene, coder, gates, rows, np.array([[0.4, 0.2]]))
    assert lines[0].startswith(f"{scene.kind[rows[0]]}: refused, rebuilt with an error of 0.4, above 0.3")
    same = int((scene.kind[scene.rows(LEARNT)] == scene.kind[rows[1]]).sum())
    assert lines[1].startswith(f"{scene.kind[rows[1]]}: answered, {min(same, findings.FIRST)} {scene.kind[rows[1]]}")


def test_sliders_count_what_lies_beyond_both_limits(scene, found):
    board = sliders.explore(scene, found, bits=8)
    error = found[L1][0]
    assert board.values == {"sigmas": 3.0, "radius": 3}
    limit = novelty.threshold(error[scene.rows(ASIDE)], 3.0)
    assert f"limit {limit:.3f}, radius 3 bits" in board.text
    board.sliders["radius"].value = 0
    outside = 100 * (found[ACIR][0, scene.rows(FAR)] > 0).mean()
    assert f"{'OOD':16}{outside:7.1f}%" in board.text


def test_figures_are_drawn_of_all_that_they_show(scene, coders, found, decoders):
    kinds = scores.by_kind(scene, found, [ACIR, RESIDUAL], 8)
    assert len(figures.kinds(kinds).axes) == 2
    counts = {"ACIR": rules.total(scene, coders, found, Rule(ACIR), 8)}
    rows = figures.confusion_rows(counts, scene.classes)
    assert rows.groupby("query_class")["share"].sum().round(6).eq(100).all()
    assert figures.confusions(counts, scene.classes).axes[0].get_title() == "ACIR"
    picked = pictures.examples(scene, found[RESIDUAL][0])
    assert scene.part[picked].tolist() == [KNOWN, KNOWN, NEAR, NEAR, FAR, FAR]
    drawn = pictures.rebuilt(scene, decoders[0], picked, found[RESIDUAL][0])
    assert len([axis for axis in drawn.axes if axis.images]) == 3 * len(picked)
    page = maps.Page(scene.features()[:, :2], 0.5, 0.9, 0.1)
    shown = figures.pages({"stem": page}, scene.kind, scene.part, scene.classes)
    (legend,) = shown.legends
    assert [text.get_text() for text in legend.get_texts()] == [*scene.classes, "left-out class", "fog", "noise"]
    counts = [len(points.get_offsets()) for points in shown.axes[0].collections]
    assert counts[-3:] == [(scene.part == NEAR).sum(), *((scene.kind == name).sum() for name in ("fog", "noise"))]


def test_pictures_of_other_datasets_are_published_only_where_all_allow_it(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures.paths, "BUILD", tmp_path)
    saved = {}
    run = SimpleNamespace(
        dataset="tissue", profile="demo", save=lambda name, shown: saved.update({name: shown}) or shown
    )
    drawn, bare = plt.figure(), plt.figure()
    shown = Figure("x", pd.DataFrame({"a": [1]}), "caption.", figure=drawn)
    pictures.save(run, [], "figure_a", shown, bare)
    assert saved["figure_a"].figure is drawn
    assert pictures.save(run, ["odir"], "figure_b", shown, bare) is shown
    assert saved["figure_b"].figure is bare and "not published" in saved["figure_b"].caption
    assert (tmp_path / "figures/demo/tissue/figure_b.png").is_file()
    plt.close("all")


def test_where_pictures_may_not_be_published_no_image_can_be_made_out(scene, decoders, found):
    picked = pictures.examples(scene, found[RESIDUAL][0])
    drawn, bare = (pictures.rebuilt(scene, decoders[0], picked, found[RESIDUAL][0], bare=one) for one in (False, True))
    sizes = [
        [max(image.get_array().shape[:2]) for axis in figure.axes for image in axis.images] for figure in (drawn, bare)
    ]
    assert max(sizes[0]) == scene.pixels.shape[-1] and max(sizes[1]) <= pictures.BLOCKS
    refused = pictures.refused(scene, picked, ["refused"] * len(picked), bare=True)
    shown = [image.get_array() for axis in refused.axes for image in axis.images]
    assert shown and all(np.ptp(image, axis=(0, 1)).max() == 0 for image in shown)


def test_blocks_are_means():
    lost = np.random.default_rng(0).random((2, 16, 19))
    found = pictures.blocks(lost)
    assert found.shape == (2, pictures.BLOCKS, pictures.BLOCKS)
    assert found[1, 3, 5] == pytest.approx(lost[1, 6:8, 10:12].mean())
