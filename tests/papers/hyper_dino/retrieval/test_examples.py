"""The pictures that explain show what they say: real lists, real folds, and nobody's photograph."""

import itertools

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.datasets.table import ImageTable
from lib.papers.hyper_dino.retrieval import examples, pictures
from lib.training.hyper_dino import Settings
from lib.training.methods import of_recipes
from lib.training.recipes import Recipe

N = 60
RED = (255, 0, 1)


@pytest.fixture(params=["tissue", "kather", "ham10000"])
def images(request, tmp_path) -> ImageTable:
    """Three classes of 20 images each, six patients."""
    rows = pd.DataFrame({"label": [list("abc")[i % 3] for i in range(N)], "group": [f"p{i // 10}" for i in range(N)]})
    rows = rows.assign(image_id=[f"i{n}" for n in range(N)], path=[f"{n}.png" for n in range(N)])
    for path in rows["path"]:
        Image.new("RGB", (4, 4), RED).save(tmp_path / path)
    return ImageTable(request.param, tmp_path, rows, "patient")


@pytest.fixture
def x(images) -> np.ndarray:
    """Directions near that of the class, near enough for many right answers and far enough for wrong ones."""
    rng = np.random.default_rng(0)
    return (np.eye(3)[images.codes] + rng.normal(0, 0.6, (N, 3))).astype(np.float32)


def test_the_worked_list_is_a_search_of_the_archive(x, images):
    rows = examples.worked(x, images, seed=1, k=8, per_class=6)
    query = rows["query"].iloc[0]
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = unit[rows["image"]] @ unit[query]
    assert np.all(np.diff(cosine) <= 1e-6)
    assert query not in set(rows["image"])
    assert rows["right"].tolist() == (images.labels[rows["image"]] == images.labels[query]).tolist()
    assert rows["relevant"].eq(6).all()


def test_in_the_worked_list_the_denominators_differ(x, images):
    rows = examples.worked(x, images, seed=1, k=8, per_class=6)
    assert rows["right"].iloc[0] and 1 < rows["right"].sum() < 6
    assert len(set(examples.ap_values(rows).values())) == 3


def test_ap_is_the_sum_of_the_bars_over_each_denominator(x, images):
    rows = examples.worked(x, images, seed=1, k=8, per_class=6)
    total = sum(rows["precision"][rows["right"]])
    expected = {"min(k, R)": total / 6, "hits": total / rows["right"].sum(), "k": total / 8}
    assert examples.ap_values(rows) == pytest.approx(expected)


def test_a_few_images_make_an_archive_too(images):
    """Half of every class is searched, the other half asks; where no list is good for teaching the first is shown."""
    few = images.take([f"i{n}" for n in range(6)])
    rows = examples.worked(np.ones((6, 3), dtype=np.float32), few, seed=0)
    assert len(rows) == 3 and rows["query"].iloc[0] not in set(rows["image"])


def colours(figure, tmp_path) -> set:
    figure.savefig(tmp_path / "shown.png")
    return set(map(tuple, np.asarray(Image.open(tmp_path / "shown.png").convert("RGB")).reshape(-1, 3).tolist()))


def test_pictures_are_drawn_where_they_may_be_published(x, images, tmp_path):
    """These figures go to the reports; what Kather's licence asks for stands below them."""
    fold_of = {"by image": np.arange(N) % 5, "by patient": np.arange(N) // 10 % 5}
    for shown in (
        examples.figure_ap(images, examples.worked(x, images, seed=1)),
        examples.figure_folds(images, fold_of),
    ):
        assert (RED in colours(shown.figure, tmp_path)) == (images.name != "ham10000")
        assert shown.caption.endswith("CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/), made smaller.") == (
            images.name == "kather"
        )
        assert ("grey because these pictures may not be published" in shown.caption) == (images.name == "ham10000")


def test_long_class_names_stand_above_their_own_answer():
    labels = ["ductal_carcinoma", "papillary_carcinoma", "fibroadenoma", "fibroadenoma", "mucinous_carcinoma"] * 2
    rows = pd.DataFrame({"rank": range(1, 11), "label": labels, "right": [True] * 2 + [False] * 8})
    rows = rows.assign(precision=rows["right"].cumsum() / rows["rank"])
    figure = pictures.precisions(rows, [None] * 11, {"min(k, R)": 0.3, "hits": 1.0, "k": 0.2})
    figure.draw_without_rendering()
    names = [text for text in figure.axes[0].texts if text.get_text() not in (pictures.HIT, pictures.MISS)]
    assert names[1].get_text() == "ductal\ncarcinoma"
    boxes = [text.get_window_extent() for text in names]
    assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(boxes))
    assert max(box.y1 for box in boxes) <= figure.bbox.y1


def test_the_formulas_of_ap_stand_below_the_axis_and_hide_no_bar(x, images):
    figure = examples.figure_ap(images, examples.worked(x, images, seed=1)).figure
    below = figure.axes[1]
    rank, *formulas = below.get_xlabel().split("\n")
    assert rank == "rank" and len(formulas) == 3 and all("sum of bars" in formula for formula in formulas)
    assert not any("sum of bars" in text.get_text() for text in below.texts)


def test_the_fold_of_each_image_under_each_rule(images):
    fold_of = {"by image": np.arange(N) % 5, "by patient": np.arange(N) // 10 % 5}
    rows = examples.figure_folds(images, fold_of, n_groups=3, n_images=4).rows
    assert len(rows) == 2 * 3 * 4
    for row in rows.itertuples():
        number = int(row.image.removeprefix("i"))
        assert row.fold == fold_of[row.rule][number]
        assert row.group == images.groups[number]
    assert rows[rows["rule"] == "by patient"].groupby("group")["fold"].nunique().eq(1).all()


def test_the_diagram_names_every_step_and_its_numbers():
    (mapper,) = of_recipes([Recipe("PCA", 384, 32)], Settings())
    shown = examples.figure_method("texture", 1280, mapper)
    drawn = {text.get_text() for text in shown.figure.axes[0].texts}
    assert {"frozen encoder", "mapper", "Poincaré ball", "1,280 numbers", "384 numbers", "32 numbers"} <= drawn
    assert set(shown.rows["step"]) | set(shown.rows["numbers"]) <= drawn
