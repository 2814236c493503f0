"""Verdicts of several notebooks side by side, from reports that are made up."""

from dataclasses import replace

import pandas as pd
import pytest

from lib import paths
from lib.papers.acir import verdicts
from lib.results import differences, real, saved
from lib.results.store import Run

TEST = {"difference": -22.5, "low": -34.0, "high": -10.0, "p_value": 0.001, "p_floor": 0.0002, "n_units": 21}
TEST |= {"n_seeds": 3}
BITS = 16
ONE, NETWORK, SMALL, WHOLE = verdicts.PLACES
RUN = Run("32_acir_ablations", "demo", "tissue", "none", "none", "none")


def write(folder, name, rows, **parameters):
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)
    run = {"parameters": {"bits": BITS, "epochs": 12} | parameters}
    saved.add(folder, name, run, {"caption": "16 bits, α = 0.25."}, "")


def of_place(place, **others):
    names = {"first": place.first.format(bits=BITS), "second": place.second.format(bits=BITS)}
    other = {"first": names["first"], "second": "DCH"} | TEST | {"difference": 9.0}
    return differences.together([other | others, names | TEST | others])


@pytest.fixture
def reports(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "COMMITTED", tmp_path)
    base = tmp_path / "acir" / "sample" / "bh200x"
    write(base / "hashing", "table_tests", of_place(ONE), epochs=60)
    steps = [{"method": "ACIR", "bits": bits, "steps": n} for bits, n in ((16, 180), (64, 999))]
    write(base / "hashing", "table_1_min", [*steps, {"method": "CSQ", "bits": 16, "steps": 5}])
    rates = [{"method": "ACIR", "alpha": alpha, "lr": 0.1, "chosen": alpha == 0.5} for alpha in (0.0, 0.5)]
    write(base / "hashing", "table_rates", rates)
    write(base / "ablations", "table_end_to_end_tests", of_place(WHOLE), end_to_end_epochs=8)
    write(
        base / "ablations",
        "table_end_to_end",
        [{"name": "ACIR, end to end", "repeat": n, "steps": 104} for n in (0, 1)],
    )
    write(base / "ablations", "table_rates", [{"name": "ACIR", "lr": 0.1, "chosen": True}])
    write(base / "ablations", "table_2", [{"name": "ACIR"}])
    return base


def test_each_place_that_there_is_has_a_line_with_its_own_schedule(reports):
    one, whole = verdicts.lines("bh200x")
    assert one.startswith("31, one layer each: ACIR is worse than CSQ (-22.50 points, -34.00 to -10.00; p (Holm)")
    assert one.endswith("ACIR: 60 epochs, 180 steps, α = 0.5, 3 trainings")
    assert whole.endswith("ACIR: 8 epochs, 104 steps, α = 0.25, 3 trainings")


def test_of_several_measures_and_lengths_that_of_the_table_is_read(reports):
    several = [of_place(NETWORK, measure=measure, bits=bits) for measure, bits in (("patient", 16), ("ap_min", 8))]
    right = of_place(NETWORK, measure="ap_min", bits=BITS).assign(difference=10.97)
    write(reports / "ranking", "table_tests", pd.concat([*several, right]), epochs=40, alpha=0.0)
    write(
        reports / "ranking", "table_health", [{"method": "ACIR", "bits": bits, "steps": 120 * bits} for bits in (8, 16)]
    )
    told = verdicts.sentence(reports / "ranking", NETWORK)
    assert told.startswith("34, the network against one layer: ACIR is better than CSQ (+10.97 points")
    assert told.endswith("ACIR: 40 epochs, 1920 steps, α = 0, 3 trainings")


def test_where_csq_was_no_opponent_there_is_no_line(reports):
    write(reports / "ablations", "table_end_to_end_tests", of_place(WHOLE).iloc[:1])
    assert len(verdicts.lines("bh200x")) == 1 and verdicts.sentence(reports / "ablations", SMALL) is None


def test_the_demo_shows_every_dataset_and_real_images_are_not_shown_twice(reports):
    shown = verdicts.side_by_side(RUN)
    assert shown.markdown.startswith("**BreakHis at 200X**") and shown.markdown.count("\n- ") == 2
    assert verdicts.side_by_side(replace(RUN, profile="sample")).markdown == real.REAL_ALREADY
