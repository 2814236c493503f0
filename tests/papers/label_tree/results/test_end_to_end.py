"""Encoder and head learn together, from training images alone, and the same twice."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.geometry import Sphere
from lib.papers.label_tree import experiment
from lib.papers.label_tree.results import end_to_end, tables
from lib.training import two_views
from lib.training.label_tree import Objective
from lib.training.photos import Preparation, random_views

PLAN = end_to_end.Plan("small", two_views.Settings(6, 16, 1e-3, 1e-2, 0.0, 8, 4), Preparation(16, 16))
BOTH = {"HWC+LAM (Euclidean)": Objective("HWC", margin_weight=1.0)}


@pytest.fixture(scope="module")
def images(seen, tmp_path_factory) -> ImageTable:
    """Pictures of noise around a colour; red and green are the branches, bright and dark their classes."""
    root, random = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    colours = [(200, 40, 40), (120, 40, 40), (40, 200, 40), (40, 120, 40)]
    rows = []
    for number, leaf in enumerate(seen.leaves):
        pixels = np.clip(np.array(colours[leaf]) + random.normal(0, 20, (20, 20, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(root / f"{number}.png")
        rows.append({"image_id": str(number), "path": f"{number}.png", "label": seen.tree.leaves[leaf]})
    return ImageTable("mine", root, pd.DataFrame(rows).assign(group=seen.groups), "patient")


@pytest.fixture
def several(seen):
    return end_to_end.first_fold(experiment.by_group(seen, 3, 1, 1, 0), 2)


def test_head_encoder_and_the_encoder_before_answer_the_same_images(seen, images, several, small):
    found = end_to_end.run(seen, images, BOTH, several, PLAN, store=None)
    (name,) = BOTH
    assert list(found) == [end_to_end.BEFORE, f"{name}, end to end, head", f"{name}, end to end, encoder"]
    for scores in found.values():
        assert [one.split.repeat for one in scores] == [0, 1]
        assert all(one.values["leaf"].tolist() == seen.leaves[one.split.test].tolist() for one in scores)
    head, encoder = (found[f"{name}, end to end, {place}"][0] for place in ("head", "encoder"))
    assert head.health.steps == 6 and head.history == encoder.history and not np.isnan(head.health.loss)
    other = found[f"{name}, end to end, head"][1]
    assert head.history != other.history  # another seed
    both = {key.replace("HWC+LAM", "SupCon"): value for key, value in found.items()} | found
    assert len(tables.end_pairs(both)) == 4 and all(one in both for pair in tables.end_pairs(both) for one in pair)


def test_two_trainings_agree_and_test_images_have_no_say(seen, images, several, small, tmp_path):
    first = end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=tmp_path)
    kept = end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=tmp_path)
    again = end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=None)
    leaves = seen.leaves.copy()
    leaves[several[0].test] = 0
    spoiled = end_to_end.run(replace(seen, leaves=leaves), images, BOTH, several[:1], PLAN, store=None)
    for name in first:
        assert first[name][0].history == kept[name][0].history == again[name][0].history == spoiled[name][0].history
        pd.testing.assert_frame_equal(first[name][0].values, again[name][0].values)


def test_another_picture_under_an_old_name_is_trained_anew(seen, images, several, small, tmp_path, monkeypatch):
    end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=tmp_path)
    monkeypatch.setattr(two_views, "train", lambda *args, **options: pytest.fail("trained again"))
    end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=tmp_path)
    path = images.path(3)
    before = path.read_bytes()
    Image.new("RGB", (20, 20)).save(path)
    try:
        with pytest.raises(pytest.fail.Exception, match="trained again"):
            end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=tmp_path)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("loss", [Objective("HWC", margin_weight=1.0), Objective("HXE")], ids=["HWC+LAM", "HXE"])
@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_a_training_that_broke_off_goes_on_to_the_same_end(seen, images, small, tmp_path, monkeypatch, loss, stop):
    """Prototypes and classifiers of the loss, batch norm and the optimiser's memory are a part of where it was."""
    monkeypatch.setattr(two_views, "KEPT_EVERY", 2)
    rows = np.arange(0, len(seen.leaves), 2)
    learnt = images.take(images.rows["image_id"].iloc[rows])

    def run(store=None, until=np.inf):
        generator, done = torch.Generator().manual_seed(0), 0
        head = end_to_end.ProjectionHead(4, 4, hidden=8, geometry=Sphere(), generator=generator)
        torch.manual_seed(0)
        encoder, pairs = small(), loss.loss(seen.tree, 4, 0)

        class Broken(torch.nn.Module):
            def forward(self, *batch):
                nonlocal done
                done += 1
                if done > until:
                    raise KeyboardInterrupt
                return pairs(*batch)

        broken = Broken()
        broken.add_module("pairs", pairs)
        given = encoder, head, broken, learnt, seen.leaves[rows], PLAN.settings, PLAN.preparation
        history = two_views.train(*given, seed=0, store=store)
        return history, torch.cat([p.flatten() for one in (encoder, head, pairs) for p in one.state_dict().values()])

    history, weights = run()
    store = tmp_path / "one.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        run(store, until=stop)
    assert store.exists() == (stop >= 2)
    again, same = run(store)
    assert again == history and torch.equal(same, weights) and not store.exists()


def test_a_damaged_checkpoint_is_named(seen, images, small, tmp_path):
    store = tmp_path / "one.checkpoint"
    store.write_bytes(b"junk")
    head = end_to_end.ProjectionHead(4, 4, hidden=8, geometry=Sphere(), generator=torch.Generator().manual_seed(0))
    given = small(), head, Objective("SupCon").loss(seen.tree, 4, 0), images, seen.leaves
    with pytest.raises(InputError, match=r"one\.checkpoint: the checkpoint is damaged"):
        two_views.train(*given, PLAN.settings, PLAN.preparation, seed=0, store=store)


def test_the_encoder_is_trained_and_its_first_layer_is_not(seen, images, several, small):
    encoder = small()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    head = end_to_end.ProjectionHead(4, 4, hidden=8, geometry=Sphere(), generator=torch.Generator().manual_seed(0))
    loss = Objective("SupCon").loss(seen.tree, 4, 0)
    rows = several[0].train
    learnt = images.take(images.rows["image_id"].iloc[rows])
    history = two_views.train(encoder, head, loss, learnt, seen.leaves[rows], PLAN.settings, PLAN.preparation, seed=0)
    assert len(history) == 6 and not head.training
    after = encoder.state_dict()
    assert torch.equal(before["first.weight"], after["first.weight"])
    assert not torch.equal(before["second.weight"], after["second.weight"])


def test_views_change_in_colour_and_sharpness_and_depend_on_seed_and_step_alone(images):
    rows = torch.arange(6)
    plain = Preparation(16, 16, area=(1.0, 1.0))
    changed = two_views.Augmented(16, 16, area=(1.0, 1.0))

    def seen(preparation, seed, step):
        (pixels,) = random_views(images, [(step, rows)], preparation, seed)
        return pixels

    torch.manual_seed(1)
    first = seen(changed, 0, 0)
    torch.manual_seed(2)
    assert torch.equal(first, seen(changed, 0, 0))
    assert not torch.equal(first, seen(changed, 1, 0)) and not torch.equal(first, seen(changed, 0, 1))
    means = [pixels.mean((2, 3)) for pixels in (seen(plain, 0, 0), first)]
    assert (means[0] - means[1]).abs().max() > 0.05  # crop and mirror of a whole image leave the colour
    none, blurred = (
        torch.cat([seen(two_views.Augmented(16, 16, area=(1.0, 1.0), color=1e-3, blur=blur), 0, s) for s in range(4)])
        for blur in ((1e-3, 1e-3), (2.0, 2.0))
    )
    rough = [(pixels[..., 1:] - pixels[..., :-1]).abs().mean((1, 2, 3)) for pixels in (none, blurred)]
    share = (rough[1] < 0.7 * rough[0]).double().mean()
    assert 0.2 < share < 0.8
    assert torch.equal(changed.testing()(Image.new("RGB", (20, 20))), plain.testing()(Image.new("RGB", (20, 20))))
