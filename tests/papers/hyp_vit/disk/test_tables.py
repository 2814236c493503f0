"""What stands in the tables is what was put in; one point further in than all others answers every query by D_hyp."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.datasets.categories import Halves, halves
from lib.datasets.table import ImageTable
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.papers.hyp_vit.disk import tables
from lib.papers.hyp_vit.disk.tables import HYP, UNCLIPPED
from lib.training.by_class import ByClass
from lib.training.experiment import fit
from lib.training.hyp_vit import Settings
from lib.training.splits import repeated

C = 0.1
CODES = np.repeat(np.arange(5), 4)
NAMES = np.repeat([f"c{number}" for number in range(12)], 6)
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(72, 8)) + 2 * RNG.normal(size=(12, 8))[np.arange(72) // 6]).astype(np.float32)


def test_kinds_are_labels_where_these_are_fewer_than_categories():
    codes = np.repeat(np.arange(10), 2)
    names = np.array([f"organ/kind_{code}" for code in codes])
    parts = Halves(names, codes, np.arange(10), np.arange(10, 20), np.arange(10, 20), 0)
    files = [f"{number}.png" for number in range(20)]
    rows = pd.DataFrame({"image_id": files, "path": files, "label": ["a", "b"] * 10, "group": names})
    images = ImageTable("mine", ".", rows, "image")
    assert tables.kinds(images, parts, "label")[0] == "label"
    of, kind = tables.kinds(images, parts, "genus", "group")  # no such column; as many as categories
    assert of == "category" and kind.tolist() == names.tolist()
    assert tables.marks(of, kind, np.arange(20)) == "Marks: the 8 largest, by category; grey dots: all others."
    placed = tables.placed({"unseen": np.array([[0.1, 0.2], [0.3, 0.4]])}, {"unseen": np.array([19, 0])}, names)
    assert placed["kind"].tolist() == ["organ/kind_9", "organ/kind_0"] and placed["y"].tolist() == [0.2, 0.4]


@pytest.fixture
def points():
    """Five categories of four at the rim, one image of them drawn in to 90 percent."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(5, 16))[CODES] + 0.6 * rng.normal(size=(20, 16))
    radius = torch.full((20, 1), 0.999)
    radius[3] = 0.9
    return torch.nn.functional.normalize(torch.from_numpy(direction), dim=-1) * radius / C**0.5


def searched(points, space):
    return tables._hub(points, space, CODES, 100 * C**0.5 * points.norm(dim=-1))


def test_one_point_further_in_answers_everybody(points):
    hyp, cosine = searched(points, PoincareBall(C)), searched(points, Sphere())
    assert hyp["most"] == 95 and hyp["rest_of_it"] == pytest.approx(90) and hyp["rest"] == pytest.approx(99.9)
    assert cosine["most"] < 25 and cosine["recall"] > 2 * hyp["recall"]
    first = PoincareBall(C).pairwise(points, points).fill_diagonal_(torch.inf).argmin(dim=1).numpy()
    assert hyp["recall"] == pytest.approx(100 * (CODES[first] == CODES).mean())


def test_equally_near_answers_count_with_their_expected_value():
    """Categories {0, 1} and {2, 3}; images 1 and 2 lie at one place, so that 0 and 3 find them equally near."""
    line = torch.tensor([[0.0], [1.0], [1.0], [3.0]])
    hub = tables._hub(line, Euclidean(), np.array([0, 0, 1, 1]), torch.tensor([10.0, 20.0, 20.0, 40.0]))
    # 0 hits in one of two orders; 1 finds 2 and 2 finds 1, both misses; 3 hits in one of two. By file order: 1/4.
    assert hub["recall"] == 100 * (0.5 + 0 + 0 + 0.5) / 4
    assert hub["most"] == 75 and hub["rest_of_it"] == 20


@pytest.fixture(scope="module")
def trained():
    files = [f"{number}.png" for number in range(72)]
    rows = pd.DataFrame({"image_id": files, "path": files, "label": NAMES, "group": files})
    parts = halves(ImageTable("mine", ".", rows, "image"))
    arms = tables.arms(Settings(), "net", 8, 4, ByClass(epochs=2, batch_size=8, lr=1e-2, samples=2))
    study = tables.study(X, "net", parts, n_seeds=2, seed=0)
    fitted = fit(X, parts.codes, [arm.method for arm in arms[:2]], repeated(study.splits, 2))
    return study, arms, fitted, parts


def test_three_heads_differ_in_clipping_and_length_and_are_tuned_on_images_set_aside(trained):
    study, arms, *_ = trained
    hyp, unclipped, two = (arm.method for arm in arms)
    assert (hyp.recipe.dim_out, unclipped.recipe.dim_out, two.recipe.dim_out) == (4, 4, 2)
    assert hyp.head == two.head and unclipped.head.clip_radius is None
    assert not np.isin(np.r_[study.aside.train, study.aside.test], study.splits[0].test).any()


def test_outputs_are_what_the_head_brings_into_the_ball(trained):
    _, _, fitted, _ = trained
    for one in (fitted[HYP][0], fitted[UNCLIPPED][0]):
        torch.testing.assert_close(one.geometry.exp0(tables.outputs(one, X)), one.embed(X), atol=1e-3, rtol=1e-3)


def test_the_cosine_is_tested_against_the_distance_of_the_same_network_and_of_hyp(trained):
    study, arms, fitted, parts = trained
    tests = tables.hub_tests(study, arms[:2])
    same = [[f"{name}, by D_cos", name] for name in fitted]
    assert tests[["first", "second"]].values.tolist() == [*same, [HYP, f"{UNCLIPPED}, by D_cos"]]
    rows = tables.hubs(fitted, X, parts.codes, parts.queries)
    assert len(rows) == 2 * 2 * 3
    recall = rows.groupby(["method", "search"])["recall"].mean()
    for test in tests[:2].itertuples():
        gain = recall[test.second, tables.D_COS] - recall[test.second, tables.D_HYP]
        assert test.difference == pytest.approx(gain) and test.n_units == 6 and test.n_seeds == 2
    assert tests["difference"][2] == pytest.approx(recall[HYP, tables.D_HYP] - recall[UNCLIPPED, tables.D_COS])
