"""Pictures mark what was put in; one point further in than all others answers every query by D_hyp."""

import numpy as np
import pytest
import torch

from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.papers.hyp_vit import disk, heads
from lib.papers.hyp_vit.heads import HYP, UNCLIPPED
from lib.training.by_class import ByClass
from lib.training.experiment import fit
from lib.training.hyp_vit import Settings
from lib.training.splits import repeated
from tests.images import listed

C = 0.1
CODES = np.repeat(np.arange(5), 4)


def test_kinds_are_labels_if_these_are_fewer_than_categories(toy):
    images = listed("ab" * 36, group=toy.names)
    assert disk.kinds(images, toy.parts, "label")[0] == "label"
    of, kind = disk.kinds(images, toy.parts, "genus", "group")  # no such column; as many as categories
    assert of == "category" and kind.tolist() == toy.names.tolist()
    assert disk.marks(of, kind, np.arange(72)) == "Marks: the 8 largest, by category; grey dots: all others."
    placed = disk.placed({"unseen": np.array([[0.1, 0.2], [0.3, 0.4]])}, {"unseen": np.array([71, 0])}, toy.names)
    assert placed["kind"].tolist() == ["c11", "c00"] and placed["y"].tolist() == [0.2, 0.4]


def test_one_point_further_in_answers_everybody():
    """Five categories of four at the rim, one image of them drawn in to 90 percent."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(5, 16))[CODES] + 0.6 * rng.normal(size=(20, 16))
    radius = torch.full((20, 1), 0.999)
    radius[3] = 0.9
    points = torch.nn.functional.normalize(torch.from_numpy(direction), dim=-1) * radius / C**0.5
    hyp, cosine = (disk._hub(points, space, CODES, 100 * radius[:, 0]) for space in (PoincareBall(C), Sphere()))
    assert hyp["most"] == 95 and hyp["rest_of_it"] == pytest.approx(90) and hyp["rest"] == pytest.approx(99.9)
    assert cosine["most"] < 25 and cosine["recall"] > 2 * hyp["recall"]
    first = PoincareBall(C).pairwise(points, points).fill_diagonal_(torch.inf).argmin(dim=1).numpy()
    assert hyp["recall"] == pytest.approx(100 * (CODES[first] == CODES).mean())


def test_equally_near_answers_count_with_their_expected_value():
    """Categories {0, 1} and {2, 3}; images 1 and 2 lie at one place, so that 0 and 3 find them equally near."""
    line = torch.tensor([[0.0], [1.0], [1.0], [3.0]])
    hub = disk._hub(line, Euclidean(), np.array([0, 0, 1, 1]), torch.tensor([10.0, 20.0, 20.0, 40.0]))
    # 0 hits in one of two orders; 1 finds 2 and 2 finds 1, both misses; 3 hits in one of two. By file order: 1/4.
    assert hub["recall"] == 100 * (0.5 + 0 + 0 + 0.5) / 4
    assert hub["most"] == 75 and hub["rest_of_it"] == 20


@pytest.fixture
def trained(toy):
    arms = disk.arms(Settings(), "net", 8, 4, ByClass(epochs=2, batch_size=8, lr=1e-2, samples=2))
    study = heads.study({"net": toy.x}, toy.parts, [1], n_seeds=2)
    return study, arms, fit(toy.x, toy.codes, [arm.method for arm in arms[:2]], repeated(study.splits, 2))


def test_the_cosine_is_tested_against_the_distance_of_the_same_network_and_of_hyp(trained, toy):
    study, arms, fitted = trained
    assert [(arm.method.recipe.dim_out, arm.method.head.clip_radius) for arm in arms] == [(4, 2.3), (4, None), (2, 2.3)]
    for several in fitted.values():  # outputs are what the head brings into the ball
        ball = several[0].geometry
        torch.testing.assert_close(
            ball.exp0(disk.outputs(several[0], toy.x)), several[0].embed(toy.x), atol=1e-3, rtol=1e-3
        )
    tests = disk.hub_tests(study, arms[:2])
    same = [[f"{name}, by D_cos", name] for name in fitted]
    assert tests[["first", "second"]].values.tolist() == [*same, [HYP, f"{UNCLIPPED}, by D_cos"]]
    rows = disk.hubs(fitted, toy.x, toy.codes, toy.parts.queries)
    assert len(rows) == 2 * 2 * 3
    recall = rows.groupby(["method", "search"])["recall"].mean()
    for test in tests[:2].itertuples():
        gain = recall[test.second, disk.D_COS] - recall[test.second, disk.D_HYP]
        assert test.difference == pytest.approx(gain) and test.n_units == 6 and test.n_seeds == 2
    assert tests["difference"][2] == pytest.approx(recall[HYP, disk.D_HYP] - recall[UNCLIPPED, disk.D_COS])
