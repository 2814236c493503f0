"""One point further in than all others answers every query by D_hyp, and nobody's by the cosine."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.geometry import PoincareBall, Sphere
from lib.papers.hyp_vit.disk import hubs

C = 0.1
CODES = np.repeat(np.arange(5), 4)


@pytest.fixture
def points():
    """Five categories of four at the rim, one image of them drawn in to 90 percent."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(5, 16))[CODES] + 0.6 * rng.normal(size=(20, 16))
    unit = torch.nn.functional.normalize(torch.from_numpy(direction), dim=-1)
    radius = torch.full((20, 1), 0.999)
    radius[3] = 0.9
    return unit * radius / C**0.5


def test_one_point_further_in_answers_everybody(points):
    ball = PoincareBall(C)
    hyp = hubs._hub(points, ball, ball, CODES)
    cosine = hubs._hub(points, Sphere(), ball, CODES)
    assert hyp["most"] == 95 and hyp["rest_of_it"] == pytest.approx(90) and hyp["rest"] == pytest.approx(99.9)
    assert cosine["most"] < 25 and cosine["recall"] > 2 * hyp["recall"]


def test_first_answers_are_those_of_the_distances(points):
    distance = PoincareBall(C).pairwise(points, points).fill_diagonal_(torch.inf)
    first = distance.argmin(dim=1).numpy()
    found = hubs._hub(points, PoincareBall(C), PoincareBall(C), CODES)
    assert found["recall"] == pytest.approx(100 * (CODES[first] == CODES).mean())
    assert found["most"] == pytest.approx(100 * np.bincount(first).max() / 20)


def test_how_much_nearer_is_the_factor_of_the_key(points):
    ball = PoincareBall(C)
    asked = points[:1]
    inner, outer = (asked.roll(1, -1) * share / 0.999 for share in (0.9, 0.98))  # one direction, two radii
    chords = ((asked - inner).square().sum() / (asked - outer).square().sum()).item()
    keys = (ball.rank_key(asked, outer) / ball.rank_key(asked, inner)).item()
    assert hubs.further(90, 98) == pytest.approx(keys * chords, rel=1e-6)


def test_sentences_name_the_hub_and_both_searches(points):
    ball = PoincareBall(C)
    rows = [
        {"method": "Hyp, not clipped", "repeat": 0, "search": name} | hubs._hub(points, space or ball, ball, CODES)
        for name, space in hubs.SEARCHES.items()
    ]
    (line,) = hubs.sentences(pd.DataFrame(rows))
    assert line.startswith("Hyp, not clipped: the commonest first answer is given to 95.0 % of the queries by D_hyp")
    assert "rests at 90.00 % of the radius" in line and "divided by 95.0" in line
    assert hubs.layout(pd.DataFrame(rows)).count("| Hyp, not clipped |") == 2
