"""Published values stand in the right rows, and sentences follow from their tables."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lib.papers.acir import published
from lib.papers.acir.ablations import figures, more, parts, tables
from lib.papers.acir.ablations.scores import Scored
from lib.results import differences
from lib.training.acir import Design

ROWS = [*parts.switched_on(Design()), *parts.switched_off(Design())]


def cells(markdown):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines()]


CHANCE = {"chance_mAP": 21.0, "chance_maAP": 20.0, "chance_mAP_min": 12.0, "chance_maAP_min": 11.0}
CHANCE |= {"chance_first": 13.0, "chance_first_class": 12.5}
RANDOM = {"ours": "21.00 (20.00)", "min(k, R)": "12.00 (11.00)", "first answer": "13.00 (12.50)"}


def mean(name, value, **others):
    row = {"name": name, "mAP": value, "maAP": value - 1, "mAP_min": value - 10, "maAP_min": value - 11, "first": 50.0}
    row |= {"first_class": 40.0, "loss_first": 2.0, "loss_last": 1.0, "steps": 30.0, "size": 2.0}
    row |= {"seeds_spread": 0.5, "seeds_spread_min": 0.25} | CHANCE
    return row | {"parameters": 1234.0} | others


def test_every_published_row_of_table_2_has_its_place():
    """Read off Table 2 of the paper."""
    table = pd.DataFrame([mean(row.name, 80.0) for row in ROWS if row.eye != parts.TOKEN])
    lines = cells(tables.table_2(table, ROWS, {parts.TOKEN: "needs weights"}))
    by = {line[0]: dict(zip(lines[0], line, strict=True)) for line in lines[2:]}
    printed = {name: row["published"] for name, row in by.items() if row["published"] != "–"}
    assert list(printed.values()) == [
        *("62.2 (60.2)", "65.3 (63.5)", "59.5 (56.1)", "63.2 (59.4)", "64.5 (61.4)", "66.3 (64.3)"),
        *("67.7 (65.8)", "68.6 (66.7)", "70.1 (68.0)"),
    ]
    assert list(printed) == [row.name for row in parts.switched_on(Design())]
    assert by["ViT"]["ours"] == "needs weights" and by["CNN"]["ours"] == "80.00 ± 0.50 (79.00)"
    assert by["CNN"]["min(k, R)"] == "70.00 ± 0.25 (69.00)" and by["CNN"]["first answer"] == "50.00 (40.00)"
    assert {title: by["chance"][title] for title in RANDOM} == RANDOM
    assert by["ACIR without PiT"]["CNN"] == "✓" and by["ACIR without PiT"]["Hybrid"] == ""


def test_published_gains_are_those_of_the_text_but_for_what_the_errata_name():
    """Section 4.3: 3.1, 3.8 (3.7 in the table, AC-11), 1.8, 2.3, 5, 1.4, 0.9 and 1.5."""
    found = tables.published_gains()
    assert [round(gain, 1) for gain in found.values()] == [3.1, 3.7, 1.8, 2.3, 5.0, 1.4, 0.9, 1.5]


TEST = {"difference": 3.0, "low": 1.0, "high": 5.0, "p_value": 0.01, "p_floor": 0.001, "n_units": 12, "n_seeds": 5}
GAINS = pd.DataFrame(
    [
        {"part": "PiT (hybrid over CNN)", "where": "on", "difference": 3.0, "p_holm": 0.01, "published": 2.3},
        {"part": "DaRF", "where": "on", "difference": -2.0, "p_holm": 0.02, "published": 1.4},
        {"part": "KAN", "where": "on", "difference": 1.0, "p_holm": 0.5, "published": 0.9},
        {"part": "DaRF", "where": "off", "difference": -3.0, "p_holm": 0.01, "published": np.nan},
        {"part": "whole", "where": "ours", "difference": 4.0, "p_holm": 0.01, "published": np.nan},
    ]
).assign(first="a", second="one layer", low=-4.0, high=5.0, p_value=0.01, p_floor=0.0005, n_units=12, n_tests=5)


def test_steps_that_help_and_harm_are_counted():
    told = tables.counted(GAINS)
    assert told.startswith("of 3 steps") and "1 clearly help here, 1 clearly harm, and of 1 it" in told
    lines = tables.gain_sentences(GAINS)
    assert lines[1] == (
        "DaRF: switched on, it harms (-2.00 points, -4.00 to +5.00; p (Holm) = 0.020); "
        "taken out of the whole, the whole gains (-3.00 points, -4.00 to +5.00; p (Holm) = 0.010)"
    )
    assert "KAN: switched on, nothing clear (" in lines[2]
    assert lines[3].startswith("a is better than one layer (+4.00 points")


def test_too_few_groups_are_said_to_be_too_few():
    few = GAINS.iloc[2:3].assign(p_floor=0.25, n_units=3)
    assert "KAN: switched on, cannot be told with 3 groups (" in tables.gain_sentences(few)[0]


def test_the_figure_has_a_dot_for_every_comparison_and_a_diamond_for_every_published_gain():
    axis = figures.gains(GAINS).axes[0]
    assert len(axis.get_yticklabels()) == len(GAINS)
    filled, hollow = (
        sorted(
            place
            for line in axis.lines
            if line.get_fillstyle() == how
            for place in line.get_ydata()
            if line.get_marker() in "os^"
        )
        for how in ("full", "none")
    )
    assert (
        filled == np.flatnonzero(GAINS["p_holm"] <= 0.05).tolist()
        and hollow == np.flatnonzero(GAINS["p_holm"] > 0.05).tolist()
    )
    assert len(axis.collections[-1].get_offsets()) == 3


def test_claims_about_pretraining_are_checked_against_the_table():
    """AC-17."""
    first, second, third = tables.pretraining_claims()
    assert "ACIR is not behind CSQ in the table (62.7 against 61.8)" in first
    assert "drops by 4.2 points of mAP, 5.2 of maAP" in second
    assert third == "the 4 methods have codes of 3 lengths: 8, 64, 128 bits"


def test_table_4_says_what_is_published_only():
    names = [row.name for row in parts.pretraining(Design())]
    table = pd.DataFrame([mean(name, value) for name, value in zip(names, (40.0, 90.0, 50.0, 80.0), strict=True)])
    lines = cells(tables.pretraining_layout(table, "published only"))
    by = {line[0]: dict(zip(lines[0], line, strict=True)) for line in lines[2:]}
    assert by["FIRe"]["ours, untrained"] == "published only"
    assert (by["CSQ"]["published drop"], by["CSQ"]["ours, drop"]) == ("-4.20", "-50.00")
    assert by["ACIR"]["ours, pretrained"] == "80.00 ± 0.50 (79.00)"
    assert by["ACIR"]["min(k, R), untrained"] == "40.00 ± 0.25 (39.00)"
    assert by["chance"]["ours, untrained"] == RANDOM["ours"] and by["chance"]["published drop"] == "–"


def swept(printed):
    keys = [("ours", 0.0, 50.0), ("ours", 0.5, 40.0), ("printed", 0.5, printed), ("code", 0.5, 50.0)]
    rows = [{"form": form, "alpha": a, "repeat": 0, "n_queries": 9} | mean("ACIR", v) for form, a, v in keys]
    return pd.DataFrame(rows).drop(columns=["seeds_spread", "seeds_spread_min"])


@pytest.mark.parametrize(("printed", "words"), [(50.0, "largest α is α = 0"), (50.1, "largest α is not α = 0")])
def test_a_term_without_a_gradient_is_told_from_one_that_has_it(printed, words):
    first, second = more.alpha_sentences(swept(printed), 0.0)
    assert words in first and "66.2 at 0 and 70.1 at 0.5" in first
    assert "40.0 at α = 0, 30.0 at α = 0.5" in second


def test_alpha_stands_beside_the_published_values_as_far_as_there_are_any():
    rows = pd.concat([swept(50.0), swept(50.0).iloc[:1].assign(alpha=0.25)], ignore_index=True)
    lines = cells(more.alpha_layout(rows))
    assert [line[:2] for line in lines[2:]] == [
        ["0", "66.2 (65.1)"],
        ["0.25", "not printed (AC-12)"],
        ["0.5", "70.1 (68.0)"],
        ["0.75", "69.3 (67.2)"],
        ["1", "68.1 (65.8)"],
        ["chance", "–"],
    ]
    assert [lines[-1][lines[0].index(title)] for title in (more.FORMS["ours"], "min(k, R)")] == list(RANDOM.values())[
        :2
    ]
    assert published.alphas()["mAP"].tolist() == [66.2, 70.1, 69.3, 68.1]
    left, right = figures.alphas(rows).axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("mAP, min(k, R) (%)", "mAP, hits (%)")
    assert left.containers[0].lines[0].get_ydata().tolist() == [40.0, 40.0, 30.0]  # 10 below the mean by hits
    assert right.lines[0].get_ydata().tolist() == [66.2, 70.1, 69.3, 68.1]
    assert all(axis.get_xticks().tolist() == [0, 0.25, 0.5, 0.75, 1] for axis in (left, right))  # whoever tried them


def test_our_term_is_tested_at_each_alpha_against_none():
    queries, groups = 24, np.repeat(np.arange(8), 3)
    plain = np.random.default_rng(0).random(queries) / 2

    def several(gain):
        return [
            Scored("ACIR", n, SimpleNamespace(values=pd.DataFrame({("ap_min", 100): plain + gain}), classes=groups))
            for n in range(2)
        ]

    found = {("ours", 0.0): several(0.0), ("ours", 0.5): several(0.2), ("printed", 0.5): several(0.4)}
    tests = more.alpha_tests(found, groups)
    assert tests["alpha"].tolist() == [0.5] and tests["difference"].tolist() == [pytest.approx(20)]
    assert more.alpha_verdicts(tests, 0.5)[0].startswith(
        "groups set aside chose α = 0.5: it is better than α = 0 (+20.00"
    )
    none = more.alpha_verdicts(tests, 0.0)[0]
    assert none.startswith("groups set aside chose α = 0, no term at all; the others: α = 0.5 is better than α = 0")


def test_a_caption_names_the_vision_transformer_and_what_taught_it():
    assert parts.whose("dino_vits16") == "ViT: dino_vits16"
    assert parts.whose("demo_vit") == "ViT: demo_vit, a small one that drawn tiles alone have taught"


def test_table_5_counts_bytes():
    names = [f"{method}, {bits} bits" for method in ("QSMIH", "ACIR") for bits in (16, 256)]
    made = "what ACIR makes its code of, 192 numbers"
    table = pd.DataFrame([*(mean(name, 70.0, size=4.0) for name in names), mean(made, 60.0, size=768.0)])
    table = table.assign(n_seeds=5)
    lines = cells(more.codes_layout(table, [16, 256]))
    assert lines[2][:5] == ["QSMIH", "16", "2", "60.1 (56.8)", "70.00 ± 0.50 (69.00)"]
    assert lines[5][:4] == ["ACIR", "256", "32", "72.4 (70.7)"]
    assert lines[6][4] == "published only"
    assert lines[-2][:3] == [made, "no code", "768"]
    assert lines[-1][:1] + lines[-1][4:7] == ["chance", *RANDOM.values()]
    assert "what ACIR makes its code of 768 MB, mAP 50.0" in more.codes_sentences(table, [16, 256])[-1]


def test_long_training_is_compared_with_short():
    names = (("CNN", 10, 80.0), (parts.PLAIN_RANKING, 10, 70.0), ("CNN", 40, 85.0), (parts.PLAIN_RANKING, 40, 86.0))
    table = pd.DataFrame([mean(f"{name}, {epochs} epochs", value) for name, epochs, value in names])
    assert more.longer_sentence(table).startswith(
        "after 10 epochs ACIR without CGR is -10.0 points from CNN; after 40 epochs ACIR without CGR is +1.0 points"
    )
    once = table.assign(seeds_spread=np.nan, seeds_spread_min=np.nan)
    lines = cells(more.longer_layout(once))
    assert lines[2][:2] == ["CNN", "80.00 (79.00)"]
    assert lines[-1] == ["chance", *[RANDOM["ours"], RANDOM["min(k, R)"], "–"] * 2]


def test_the_five_questions_are_answered_from_the_tables():
    gains = GAINS.assign(second=["b"] * 4 + ["one layer, Cauchy"])
    costs = differences.together([{"first": "ACIR's loss", "second": "CSQ's"} | TEST])
    names = (("ACIR, 16 bits", 70.0), ("ACIR, 256 bits", 75.0), ("what ACIR makes its code of, 192 numbers", 60.0))
    codes = pd.DataFrame([mean(name, value) for name, value in names]).assign(n_seeds=2)
    told = more.answered(gains, swept(50.0), costs, codes, [16, 256], "after 9 epochs", "groups set aside chose α = 0")
    assert "of the parts taken out none is clearly missed, and DaRF is better left out" in told[0]
    assert told[1].endswith(
        "it is better than one layer, Cauchy (+4.00 points, -4.00 to +5.00; p (Holm) = 0.010); after 9 epochs"
    )
    assert told[2].startswith("3. groups set aside chose α = 0; ") and "largest α is α = 0" in told[2]
    assert told[3].startswith("4. ACIR's loss is more than CSQ's (+3.00 points, +1.00 to +5.00; p (Holm)")
    assert told[4].endswith("what it makes its code of: 50.0 (2 trainings, no test: not to be ranked)")


def test_what_an_untrained_stem_costs_is_one_test_of_two_losses():
    def several(values):
        frame = pd.DataFrame({("ap_min", 100): values})
        return [Scored("row", repeat, SimpleNamespace(values=frame + shift)) for repeat, shift in enumerate((0, 0.01))]

    queries, groups = 24, np.repeat(np.arange(8), 3)
    rng = np.random.default_rng(0)
    plain, lost, own = (rng.random(queries) * size for size in (0.3, 0.1, 0.4))
    found = {
        f"{name}, {eye}": several(plain + kept * (eye == parts.PRETRAINED))
        for name, kept in (("CSQ", lost), (parts.FULL, own + lost))
        for eye in (parts.PRETRAINED, parts.UNTRAINED)
    }
    row = tables.suffers(found, groups).iloc[0]
    assert row["difference"] == pytest.approx(100 * own.mean()) and row["n_units"] == 8
    assert tables.suffers_sentence(tables.suffers(found, groups)).startswith(
        "what an untrained stem costs ACIR is more than what it costs CSQ"
    )
