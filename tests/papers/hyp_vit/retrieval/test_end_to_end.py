"""Trained once and asked twice; the step is chosen on categories that neither teach nor ask."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.transforms import v2

from lib.datasets.categories import halves, held_out
from lib.datasets.table import ImageTable
from lib.geometry import PoincareBall
from lib.papers.hyp_vit.names import BEFORE
from lib.papers.hyp_vit.retrieval import end_to_end
from lib.training import finetune
from lib.training.hyp_vit import Settings, spherical
from lib.training.photos import Preparation

NAMES = np.repeat([f"c{number}" for number in range(12)], 6)
RNG = np.random.default_rng(0)


def table(root=".") -> ImageTable:
    files = [f"{number}.png" for number in range(72)]
    return ImageTable(
        "mine", root, pd.DataFrame({"image_id": files, "path": files, "label": NAMES, "group": files}), "image"
    )


PARTS = halves(table())


@pytest.fixture
def photos(tmp_path):
    for number in range(72):
        colour = 20 * (number // 6) + RNG.integers(0, 12, (16, 16, 3))
        Image.fromarray(colour.astype(np.uint8)).save(tmp_path / f"{number}.png")
    return table(tmp_path)


def test_end_to_end_is_trained_once_and_asked_twice(photos, tmp_path, monkeypatch, small):
    plan = end_to_end.EndToEnd("small", 3, finetune.Settings(4, 8, 2, 1e-2, check_every=2), Preparation(16, 16))
    kinds = {"Hyp": Settings(PoincareBall(0.1)), "Sph": spherical(Settings())}
    options = {"n_seeds": 2, "store": tmp_path / "trained"}
    found, course = end_to_end.end_to_end(photos, PARTS, kinds, plan, [1, 2], **options)
    trained = [f"{name}, end to end, {place}" for name in kinds for place in ("head", "encoder")]
    assert list(found) == [BEFORE, *trained]
    for several in found.values():
        assert [answer.split.repeat for answer in several] == [0, 1]
        assert all(set(answer.per_query.n_gallery) == {len(PARTS.gallery) - 1} for answer in several)
    hyp = found["Hyp, end to end, head"][0]
    assert hyp.health.rim == 0 and (hyp.norms < 10**0.5 * np.tanh(0.1**0.5 * 2.3) + 1e-4).all()
    scores = course.dropna(subset="head")
    assert set(scores["step"]) == {0, 2, 4} and scores["head"].between(0, 100).all()
    monkeypatch.setattr(finetune, "finetune", lambda *args, **options: pytest.fail("trained again"))
    again, _ = end_to_end.end_to_end(photos, PARTS, kinds, plan, [1, 2], **options)
    for name, several in found.items():
        for one, other in zip(several, again[name], strict=True):
            pd.testing.assert_frame_equal(one.per_query.values, other.per_query.values)
    Image.new("RGB", (16, 16)).save(tmp_path / "3.png")  # another picture under an old name
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        end_to_end.end_to_end(photos, PARTS, kinds, plan, [1, 2], **options)


def test_the_step_is_chosen_on_categories_that_neither_teach_nor_ask(photos, tmp_path, monkeypatch, small):
    seen = {}

    def spy(encoder, head, loss, learnt, aside, *others, **options):
        seen.update(learnt=set(learnt.labels), aside=set(aside.labels))
        raise KeyboardInterrupt

    monkeypatch.setattr(finetune, "finetune", spy)
    plan = end_to_end.EndToEnd("small", 3, finetune.Settings(4, 8, 2), Preparation(16, 16))
    with pytest.raises(KeyboardInterrupt):
        end_to_end.end_to_end(photos, PARTS, {"Hyp": Settings()}, plan, [1], store=None)
    asking = set(PARTS.names[PARTS.queries])
    assert not seen["learnt"] & seen["aside"] and not (seen["learnt"] | seen["aside"]) & asking
    assert seen["learnt"] | seen["aside"] | asking == set(NAMES)
    assert seen["aside"] == set(PARTS.names[held_out(PARTS, 0)[1]])


def test_before_training_is_the_encoder_on_images_of_the_size_that_it_is_trained_with(
    photos, tmp_path, monkeypatch, small
):
    preparation = Preparation(12, 14)
    plan = end_to_end.EndToEnd("small", 3, finetune.Settings(2, 8, 2, 1e-2, check_every=2), preparation)
    found, _ = end_to_end.end_to_end(photos, PARTS, {"Hyp": Settings()}, plan, [1], n_seeds=2, store=tmp_path)
    square = [v2.Resize(14, interpolation=v2.InterpolationMode.BICUBIC), v2.CenterCrop(12), v2.ToImage()]
    testing = v2.Compose([*square, v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.5] * 3)])
    with torch.no_grad():
        pixels = torch.stack([testing(Image.open(photos.path(i))) for i in PARTS.queries])
        unit = nn.functional.normalize(small()(pixels), dim=1)
    nearest = (unit @ unit.T).fill_diagonal_(-2).argmax(dim=1)
    codes = PARTS.codes[PARTS.queries]
    for answer in found[BEFORE]:
        assert answer.per_query.values["hit_rate", 1].mean() == pytest.approx(
            (codes[nearest] == codes).mean(), abs=0.03
        )
        assert np.isnan(answer.health.loss) and answer.health.steps == 0


def test_a_rate_is_chosen_by_the_mean_of_trainings_with_the_same_categories_set_aside(photos, monkeypatch, small):
    seen, trained = [], end_to_end._trained

    def spy(task, name, kind, split, parts, key):
        found = trained(task, name, kind, split, parts, key)
        seen.append((split.seed, *(set(part.labels) for part in parts), max(found["scores"]["head"])))
        return found

    monkeypatch.setattr(end_to_end, "_trained", spy)
    plan = end_to_end.EndToEnd("small", 3, finetune.Settings(4, 8, 2, 1e-2, check_every=2), Preparation(16, 16))
    kinds = {"Hyp": Settings(PoincareBall(0.1))}
    tried = end_to_end.rates(photos, PARTS, kinds, plan, [1e-2], n_seeds=2, store=None)
    first, second = seen
    assert (first[0], second[0]) == (0, 1000)
    assert first[1:3] == second[1:3] == tuple(set(PARTS.names[rows]) for rows in held_out(PARTS, 0))
    assert tried["validation"].item() == pytest.approx(100 * (first[3] + second[3]) / 2)


def test_each_kind_takes_a_rate_that_categories_set_aside_find_good_and_its_training_is_the_first(
    photos, tmp_path, monkeypatch, small
):
    plan = end_to_end.EndToEnd("small", 3, finetune.Settings(4, 8, 2, 1e-2, check_every=2), Preparation(16, 16))
    kinds = {"Hyp": Settings(PoincareBall(0.1)), "Sph": spherical(Settings())}
    store, taught = tmp_path / "trained", []
    once = finetune.finetune
    monkeypatch.setattr(finetune, "finetune", lambda *a, **o: taught.append((a[5].lr, o["seed"])) or once(*a, **o))
    tried = end_to_end.rates(photos, PARTS, kinds, plan, [1e-4, 1e-2], store=store)
    assert tried[["method", "lr"]].to_numpy().tolist() == [[n, lr] for n in kinds for lr in (1e-4, 1e-2)]
    for _, part in tried.groupby("method"):
        assert part.loc[part["chosen"], "lr"].item() == part.loc[part["within"], "lr"].min()
    assert taught == [(1e-4, 0), (1e-2, 0)] * 2
    taught.clear()
    rates = {"Hyp": 1e-2, "Sph": 1e-4}
    found, course = end_to_end.end_to_end(photos, PARTS, kinds, plan, [1], lr_of=rates, n_seeds=2, store=store)
    assert taught == [(1e-2, 1000), (1e-4, 1000)]
    first = found["Hyp, end to end, head"][0].health
    row = tried[(tried["method"] == "Hyp") & (tried["lr"] == 1e-2)].iloc[0]
    assert (first.loss, first.steps) == (row["loss"], row["step"])
    known = course[(course["method"] == "Hyp, end to end") & (course["repeat"] == 0)]
    assert row["validation"] == pytest.approx(known["head"].max())  # what the training itself saw at its best step
