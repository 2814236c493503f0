"""Encoder and head learn together by a loss over two views, alone or in several processes, and the same twice."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from torch import Tensor, distributed

from lib.datasets.pixels import decode
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.heads.label_tree import ProjectionHead
from lib.taxonomy import from_paths
from lib.training import together, two_views
from lib.training.divergence import Diverged
from lib.training.label_tree import Objective
from lib.training.photos import Preparation, central_views, random_views
from tests.images import coloured, listed
from tests.training.conftest import Stopping, killed

SIZE = 32
TREE = from_paths("toy", ["a/1", "a/2", "b/3", "b/4"])
SHORT = two_views.Settings(steps=6, batch_size=16, lr=1e-4, head_lr=1e-2, weight_decay=0.0, hidden=8, dim_out=4)
OBJECTIVES = {"HWC+LAM (hyperbolic)": Objective("HWC", PoincareBall(1.0), margin_weight=1.0), "HXE": Objective("HXE")}


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> ImageTable:
    """Pictures of noise around a colour; red and green are the branches, bright and dark their classes."""
    colours = [(200, 40, 40), (120, 40, 40), (40, 200, 40), (40, 120, 40)]
    return coloured(listed(TREE.leaves * 9, tmp_path_factory.mktemp("images")), colours * 9, (36, 40))


def network(objective: Objective):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = timm.create_model("test_efficientnet", pretrained=False, num_classes=0)
        loss = objective.loss(TREE, SHORT.dim_out, 0)
    generator = torch.Generator().manual_seed(0)
    sizes = {"hidden": SHORT.hidden, "geometry": objective.geometry}
    return encoder, ProjectionHead(encoder.num_features, SHORT.dim_out, **sizes, generator=generator), loss


def run(images, objective, settings=SHORT, *, call=math.inf, then=killed, **options) -> dict[str, Tensor]:
    """The losses, every weight and statistic of encoder, head and loss, and the last gradient of each."""
    encoder, head, loss = network(objective)
    given = encoder, head, Stopping(loss, call, then), images, np.arange(len(images)) % 4
    arguments = {"seed": 0, "device": "cpu"} | options
    made, history = two_views.train(*given, settings, Preparation(SIZE, SIZE), **arguments)
    assert made[0] is encoder and made[1] is head and not made.training
    found = {"losses": torch.tensor(history)}
    for part, one in (("encoder", encoder), ("head", head), ("loss", loss)):
        found |= {f"{part}.{name}": value.clone() for name, value in one.state_dict().items()}
        slopes = {name: weight.grad for name, weight in one.named_parameters() if weight.requires_grad}
        found |= {f"gradient of {part}.{name}": slope for name, slope in slopes.items()}
    return found


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def run_and_broken_off(images, folder: Path) -> dict[str, dict[str, Tensor]]:
    """Every objective trained through, and trained after a stop at step 3, the same in every process and both times."""
    two_views.KEPT_EVERY, found = 2, {}
    for name, objective in OBJECTIVES.items():
        store = folder / f"{name}.checkpoint"
        found[name] = run(images, objective)
        with pytest.raises(KeyboardInterrupt):
            run(images, objective, call=3, store=store)
        assert same(run(images, objective, store=store), found[name])
        everywhere = [None] * distributed.get_world_size()
        distributed.all_gather_object(everywhere, found[name])
        assert all(same(one, found[name]) for one in everywhere) and len(everywhere) == 2
    return found


@pytest.mark.slow
def test_two_processes_train_what_one_does(images, tmp_path, monkeypatch):
    """With the same gradients, which AdamW would not tell from their multiples, and the same prototypes."""
    monkeypatch.setenv("PROCESSES", "2")
    shared = together.launched(run_and_broken_off, images, tmp_path)
    for name, objective in OBJECTIVES.items():
        alone = run(images, objective)
        assert shared[name].keys() == alone.keys()
        for part, value in alone.items():
            near = 1e-4 if part.startswith("gradient") else 1e-5
            torch.testing.assert_close(shared[name][part], value, rtol=near, atol=near, msg=f"{name}: {part}")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_batch_that_the_processes_cannot_share_is_refused(images, monkeypatch):
    monkeypatch.setenv("PROCESSES", "2")
    with pytest.raises(InputError, match="batches of 15 images cannot be shared by 2 processes alike"):
        together.launched(run, images, OBJECTIVES["HXE"], replace(SHORT, batch_size=15))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_training_that_broke_off_goes_on_to_the_same_end(images, tmp_path, monkeypatch, name):
    """Prototypes and classifiers of the loss, batch norm and the optimiser's memory are a part of where it was."""
    monkeypatch.setattr(two_views, "KEPT_EVERY", 2)
    undisturbed = run(images, OBJECTIVES[name])
    store = tmp_path / "one.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        run(images, OBJECTIVES[name], call=3, store=store)
    assert store.exists()
    assert same(run(images, OBJECTIVES[name], store=store), undisturbed) and not store.exists()


def test_a_step_that_memory_was_too_small_for_leaves_no_trace(images):
    """The head's batch norm has seen the batch once, and losses and gradients are those of one part."""

    def full(value):
        if loss.left == -1:
            raise torch.OutOfMemoryError
        return value

    found = []
    for call in (99, 2):
        encoder, head, loss = network(OBJECTIVES["HXE"])
        loss = Stopping(loss, call, full)
        given = encoder, head, loss, images, np.arange(len(images)) % 4, SHORT, Preparation(SIZE, SIZE)
        _, history = two_views.train(*given, seed=0, device="cpu")
        found.append({"losses": torch.tensor(history)} | head.state_dict())
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=1e-5, atol=1e-5, msg=name)


def test_the_encoder_is_trained_and_its_first_layer_and_batch_norm_are_not(images):
    before, after = network(Objective("SupCon"))[0].state_dict(), run(images, Objective("SupCon"))
    assert len(after["losses"]) == 6
    still = {name for name, value in before.items() if torch.equal(value, after[f"encoder.{name}"])}
    assert "conv_stem.weight" in still and "conv_head.weight" not in still
    assert {name for name in before if ".bn" in f".{name}"} <= still
    assert after["head.layers.1.num_batches_tracked"] == 6


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_no_number_ends_before_a_step_is_taken_with_it(images, bad):
    with pytest.raises(Diverged, match=r"the loss of two views is (nan|inf) at step 3") as caught:
        run(images, OBJECTIVES["HXE"], call=3, then=lambda value: value * bad)
    assert all(value.isfinite().all() for value in caught.value.last_good.values())


def test_views_change_in_colour_and_sharpness_and_depend_on_seed_and_step_alone(images):
    rows, decoded = torch.arange(6), decode(images)
    plain = Preparation(16, 16, area=(1.0, 1.0))
    changed = two_views.Augmented(16, 16, area=(1.0, 1.0))

    def seen(preparation, seed, step):
        (pixels,) = random_views(decoded, [(step, rows)], preparation, seed, torch.device("cpu"))
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
    tested = [torch.cat(list(central_views(decoded, one, 9, torch.device("cpu")))) for one in (changed, plain)]
    assert torch.equal(*tested)
