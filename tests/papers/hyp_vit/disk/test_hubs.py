"""One point further in than all others answers every query by D_hyp, and nobody's by the cosine."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.datasets.categories import halves
from lib.datasets.table import ImageTable
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.papers.hyp_vit.disk import hubs, tables
from lib.papers.hyp_vit.names import HYP, UNCLIPPED
from lib.papers.hyp_vit.retrieval import frozen
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings

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


def searched(points, space):
    """As :func:`lib.papers.hyp_vit.disk.hubs.hubs` asks, with the norms of the points themselves."""
    return hubs._hub(points, space, CODES, 100 * C**0.5 * points.norm(dim=-1))


def test_one_point_further_in_answers_everybody(points):
    hyp, cosine = searched(points, PoincareBall(C)), searched(points, Sphere())
    assert hyp["most"] == 95 and hyp["rest_of_it"] == pytest.approx(90) and hyp["rest"] == pytest.approx(99.9)
    assert cosine["most"] < 25 and cosine["recall"] > 2 * hyp["recall"]


def test_first_answers_are_those_of_the_distances(points):
    distance = PoincareBall(C).pairwise(points, points).fill_diagonal_(torch.inf)
    first = distance.argmin(dim=1).numpy()
    found = searched(points, PoincareBall(C))
    assert found["recall"] == pytest.approx(100 * (CODES[first] == CODES).mean())
    assert found["most"] == pytest.approx(100 * np.bincount(first).max() / 20)


def test_equally_near_answers_count_with_their_expected_value():
    """Categories {0, 1} and {2, 3}; images 1 and 2 lie at one place, so that 0 and 3 find them equally near."""
    line = torch.tensor([[0.0], [1.0], [1.0], [3.0]])
    found = hubs._hub(line, Euclidean(), np.array([0, 0, 1, 1]), torch.tensor([10.0, 20.0, 20.0, 40.0]))
    # 0 hits in one of two orders; 1 finds 2 and 2 finds 1, both misses; 3 hits in one of two. By file order: 1/4.
    assert found["recall"] == 100 * (0.5 + 0 + 0 + 0.5) / 4
    # 0, 2 and 3 are given image 1, the first of its place; 1 is given image 2.
    assert found["most"] == 75 and found["rest_of_it"] == 20


def test_how_much_nearer_is_the_factor_of_the_key(points):
    ball = PoincareBall(C)
    asked = points[:1]
    inner, outer = (asked.roll(1, -1) * share / 0.999 for share in (0.9, 0.98))  # one direction, two radii
    chords = ((asked - inner).square().sum() / (asked - outer).square().sum()).item()
    keys = (ball.rank_key(asked, outer) / ball.rank_key(asked, inner)).item()
    assert hubs.further(90, 98) == pytest.approx(keys * chords, rel=1e-6)


def test_sentences_name_the_hub_and_both_searches(points):
    spaces = {hubs.D_HYP: PoincareBall(C), hubs.D_COS: Sphere()}
    rows = pd.DataFrame(
        {"method": "Hyp, not clipped", "repeat": 0, "search": name} | searched(points, space)
        for name, space in spaces.items()
    )
    (line,) = hubs.sentences(rows)
    assert line.startswith("Hyp, not clipped: the commonest first answer is given to 95.0 % by D_hyp (Recall@1 ")
    assert "rests at 90.00 % of the radius" in line and "it counts as 95.0 times nearer" in line
    lost = rows["recall"][1] - rows["recall"][0]
    assert line.endswith(f"{lost:+.2f} points, of which this one answer can be the cause of {lost:.1f} at most")
    assert hubs.layout(rows).count("| Hyp, not clipped |") == 2
    alike = rows.assign(recall=50.0)
    assert hubs.sentences(alike)[0].endswith("D_cos minus D_hyp: +0.00 points")


@pytest.mark.parametrize(
    ("hyp", "other", "cosine", "end"),
    [
        (60.0, 48.0, 54.0, "+12.00 points of Recall@1; D_cos gets +6.00 back from the same networks, +6.00 are left: "),
        (60.0, 48.0, 61.0, "+12.00 points of Recall@1; D_cos gets +13.00 back from the same networks, nothing is left"),
        (60.0, 61.0, 61.0, "-1.00 points of Recall@1"),
    ],
)
def test_what_the_search_does_not_account_for_is_told(hyp, other, cosine, end):
    lines = [("Hyp", "D_hyp", hyp), ("Hyp", "D_cos", hyp), ("other", "D_hyp", other), ("other", "D_cos", cosine)]
    rows = pd.DataFrame(lines, columns=["method", "search", "recall"])
    assert hubs.in_short(rows) == [
        f'Hyp minus "other", both by D_hyp: {end}' + "lost in what was learnt" * end.endswith("left: ")
    ]
    assert hubs.in_short(rows[rows["method"] == "other"]) == []


NAMES = np.repeat([f"c{number}" for number in range(12)], 6)
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(72, 8)) + 2 * RNG.normal(size=(12, 8))[np.arange(72) // 6]).astype(np.float32)


@pytest.fixture(scope="module")
def fitted():
    """Both heads of notebook 24 trained twice, and what they are asked."""
    files = [f"{number}.png" for number in range(72)]
    rows = pd.DataFrame({"image_id": files, "path": files, "label": NAMES, "group": files})
    parts = halves(ImageTable("mine", ".", rows, "image"))
    methods = tables.heads(Settings(), 8, 4, ByClass(epochs=2, batch_size=8, lr=1e-2, samples=2))[:2]
    return frozen.fitted(X, parts, methods, n_seeds=2), parts


def test_outputs_are_what_the_head_brings_into_the_ball(fitted):
    several, _ = fitted
    for one in (several[HYP][0], several[UNCLIPPED][0]):
        e = hubs.outputs(one, X)
        torch.testing.assert_close(one.geometry.exp0(e), one.embed(X), atol=1e-3, rtol=1e-3)
    assert hubs.outputs(several[HYP][0], X).norm(dim=-1).max() <= 2.3 + 1e-5


def test_every_network_is_searched_in_three_ways(fitted):
    several, parts = fitted
    rows = hubs.hubs(several, X, parts.codes, parts.queries)
    assert len(rows) == 2 * 2 * 3 and list(rows["search"][:3]) == [hubs.D_HYP, hubs.D_COS, hubs.D_FLAT]
    norms = several[UNCLIPPED][1].embed(X[parts.queries]).norm(dim=-1)
    last = rows.iloc[-1]
    assert last["rest"] == pytest.approx(100 * 0.1**0.5 * norms.median().item())
    assert "by flat (Recall@1" in hubs.sentences(rows)[0]


def test_the_cosine_is_tested_against_the_distance_of_the_same_network_and_of_hyp(fitted):
    several, parts = fitted
    tests = hubs.tests(several, X, parts)
    same = [[f"{name}, by D_cos", name] for name in several]
    assert tests[["first", "second"]].values.tolist() == [*same, [HYP, f"{UNCLIPPED}, by D_cos"]]
    rows = hubs.hubs(several, X, parts.codes, parts.queries).groupby(["method", "search"])["recall"].mean()
    for test in tests[:2].itertuples():
        gain = rows[test.second, hubs.D_COS] - rows[test.second, hubs.D_HYP]
        assert test.difference == pytest.approx(gain) and test.n_units == 6 and test.n_seeds == 2
    left = rows[HYP, hubs.D_HYP] - rows[UNCLIPPED, hubs.D_COS]
    assert tests["difference"][2] == pytest.approx(left)
