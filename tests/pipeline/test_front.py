"""The four findings of the README follow from tests: what is clear, on which dataset, and no more."""

import pandas as pd
import pytest

from lib.pipeline import findings, front

TEST = {"n_units": 9, "n_tests": 8, "p_floor": 0.002, "low": -1.0, "high": 1.0}


def rows(**differences: float) -> pd.DataFrame:
    """A test per dataset; from 2 points on it is clear."""
    tests = [
        TEST | {"title": title, "difference": points, "p_holm": 0.01 if abs(points) >= 2 else 0.5}
        for title, points in differences.items()
    ]
    return pd.DataFrame(tests)


@pytest.fixture
def tested(monkeypatch) -> dict[str, pd.DataFrame]:
    """What each comparison came to, as it might be."""
    made = {
        "own": rows(Kather=1.0, BreakHis=23.5, HAM10000=2.5),
        "own_plain": rows(Kather=9.0, BreakHis=1.0),
        "curved": rows(Kather=1.0, BreakHis=-3.0),
        "plain": rows(Kather=4.0, BreakHis=1.0),
        "classifier": rows(Kather=1.0, BreakHis=-3.0),
        "classifier_alike": rows(Kather=1.0, BreakHis=-9.0),
        "new": rows(Kather=1.0, BreakHis=-3.0),
    }
    monkeypatch.setattr(front, "tests", lambda name, ks: made[name])
    monkeypatch.setattr(findings, "hits", lambda: rows(Kather=3.0, BreakHis=0.5))
    monkeypatch.setattr(findings, "older", lambda place, column: [])
    return made


def test_the_largest_clear_loss_is_named_and_where_none_is_clear(tested, monkeypatch):
    own = front.four()[0]
    assert "On BreakHis, the first answer loses 23.50 points if they are neither searched nor trained on." in own
    assert "On Kather, a loss could not be told from chance." in own and "older" not in own
    tested["own_plain"] = rows(BreakHis=9.0)
    monkeypatch.setattr(findings, "older", lambda place, column: ["BreakHis"])
    own = front.four()[0]
    assert "Plain features lose points, too." in own and "The table of BreakHis is older than the code" in own
    tested["own"] = rows(Kather=1.0)
    assert "A loss without them is clear on 0 of 1 dataset." in front.four()[0]


def test_wins_losses_and_limits_are_those_of_the_tests(tested):
    _, curved, gain, unseen = front.four()
    assert "beats flat space on 0 of 2 datasets.** Small gains (below about" in curved
    assert (
        "beats plain features on 1 of 2 datasets.** The gain is smaller if missed images cost nothing. Its first"
        in gain
    )
    assert "linear classifier on no dataset. If all classes count alike, the classifier is better on BreakHis." in gain
    assert "Its first answer is better on Kather only." in gain
    assert unseen.partition(" [")[0].endswith("over the list on 0 of 2 datasets.** It is worse on BreakHis.")


def test_a_gain_that_grows_by_the_hits_is_not_called_smaller(tested, monkeypatch):
    monkeypatch.setattr(findings, "hits", lambda: rows(Kather=5.0, BreakHis=0.5))
    assert "smaller" not in front.four()[2]
