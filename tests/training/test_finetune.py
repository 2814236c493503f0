"""An encoder learns together with its head, goes on after being killed, and says when it has gone wrong."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from PIL import Image

from lib.datasets.pixels import decode
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.heads.hyp_vit import ClippedProjection
from lib.losses.hyp_vit import PairwiseCrossEntropy
from lib.metrics.retrieval import evaluate
from lib.training import together
from lib.training.finetune import LONGEST_GRADIENT, Settings, adamw, embed, finetune, thaw
from lib.training.photos import Preparation
from tests.images import listed
from tests.training.conftest import Stopping, killed

SIZE = 32
LOSS = PairwiseCrossEntropy(samples=2)
SHORT = Settings(steps=5, batch_size=8, samples=2, lr=1e-3, check_every=2)


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> tuple[ImageTable, ImageTable]:
    """Ten classes of five noisy photos, each class of a hue of its own; the last four classes validate."""
    random, table = np.random.default_rng(0), listed(np.arange(50) // 5, tmp_path_factory.mktemp("photos"))
    for label in range(10):
        hue = random.integers(40, 216, 3)
        for row in range(5 * label, 5 * label + 5):
            pixels = (hue + random.normal(0, 40, (40, 48, 3)) + random.normal(0, 12, 3)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(table.path(row))
    ids = table.rows["image_id"]
    return table.take(ids[:30]), table.take(ids[30:])


def network(kind: str = "conv", seed: int = 0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = {"conv": ("test_efficientnet", {}), "vit": ("test_vit", {"img_size": SIZE})}[kind]
        encoder = timm.create_model(made[0], pretrained=False, num_classes=0, **made[1])
    generator = torch.Generator().manual_seed(seed)
    return encoder, ClippedProjection(encoder.num_features, 8, geometry=PoincareBall(0.1), generator=generator)


def run(tables, settings=SHORT, kind="conv", loss=LOSS, **options):
    encoder, head = network(kind)
    preparation = Preparation.of(encoder, SIZE)
    arguments = {"seed": 0, "device": "cpu"} | options
    return finetune(encoder, head, loss, *tables, settings, preparation, **arguments)


def same(one, two):
    """In weights and losses; scores are compared apart."""
    states = one.network.state_dict(), two.network.state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0]) and one.history.equals(two.history)


def test_the_first_layer_and_batch_norm_stay():
    frozen = {}
    for kind in ("vit", "conv"):
        encoder, _ = network(kind)
        thaw(encoder.requires_grad_(False))
        frozen[kind] = {name for name, weight in encoder.named_parameters() if not weight.requires_grad}
    assert frozen["vit"] == {"patch_embed.proj.weight", "patch_embed.proj.bias"}
    assert len(frozen["conv"]) == 1 + 2 * 13
    assert all(".bn" in f".{name}" for name in frozen["conv"] - {"conv_stem.weight"})
    with pytest.raises(InputError, match="Linear does not name its first layer"):
        thaw(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("kind", ["conv", "vit"])
def test_it_learns_and_what_is_frozen_does_not_move(tables, kind):
    done = run(tables, Settings(steps=12, batch_size=12, samples=2, lr=3e-3, check_every=5), kind)
    losses = done.history["loss"]
    assert losses[:4].mean() > 1.1 * losses[-4:].mean()
    assert done.history["step"].tolist() == list(range(12)) and done.scores["step"].tolist() == [0, 5, 10, 12]
    assert not done.network.training
    encoder, _ = network(kind)
    thaw(encoder)
    moving = {name for name, weight in encoder.named_parameters() if weight.requires_grad}
    for name, value in done.network[0].state_dict().items():
        if name not in moving:  # buffers too: batch statistics
            assert torch.equal(value, encoder.state_dict()[name]), name


def test_the_network_is_that_of_the_best_step(tables):
    """A loss that draws all points to one: the scores fall, and what comes back has the best of them."""
    ruinous = Settings(steps=5, batch_size=12, samples=2, lr=1e-2, check_every=1)
    done = run(tables, ruinous, loss=lambda h, labels: h.square().sum())
    assert done.scores["head"].iloc[-1] < done.best["head"] == done.scores["head"].max()
    assert (done.scores["head"] == done.best["head"]).idxmax() == done.best.name
    validation = tables[1]
    features, points = embed(done.network, decode(validation), Preparation.of(done.network[0], SIZE))
    ids = validation.rows["image_id"].to_numpy(dtype=str)
    for name, rows, space in (("head", points, done.network[1].geometry), ("encoder", features, "sphere")):
        found = evaluate(rows, rows, validation.labels, validation.labels, space, (1,), ids, ids)
        assert found.values["hit_rate", 1].mean() == pytest.approx(done.best[name])


@pytest.fixture(scope="module")
def undisturbed(tables):
    return run(tables)


@pytest.mark.parametrize(("call", "again"), [(3, 3), (4, 1)])
def test_a_killed_training_goes_on_to_the_same_result(tables, undisturbed, tmp_path, call, again):
    """Killed between two checkpoints, and right after one."""
    store = tmp_path / "checkpoint.pt"
    with pytest.raises(KeyboardInterrupt):
        run(tables, loss=Stopping(LOSS, call, killed), store=store)
    assert store.exists() == (call >= 2)
    counting = Stopping(LOSS, 99, killed)
    done = run(tables, loss=counting, store=store)
    assert same(done, undisturbed) and done.scores.equals(undisturbed.scores)
    assert 99 - counting.left == again and not store.exists()


@pytest.mark.slow
def test_two_processes_train_the_network_of_one(tables, monkeypatch, capfd):
    """The head learns slowly: the gradient of its bias is little but rounding, of which AdamW makes whole steps."""
    slow = replace(SHORT, head_lr=1e-4)
    alone = run(tables, slow)
    monkeypatch.setenv("PROCESSES", "2")
    capfd.readouterr()
    shared = together.launched(run, tables, slow)
    pd.testing.assert_frame_equal(shared.history, alone.history, rtol=1e-4)
    pd.testing.assert_frame_equal(shared.scores, alone.scores)
    states = shared.network.state_dict(), alone.network.state_dict()
    for name in states[1]:
        torch.testing.assert_close(states[0][name], states[1][name], rtol=1e-3, atol=1e-4)
    assert capfd.readouterr().err.count("5 of 5 steps") == 1  # one of them reports


@pytest.mark.parametrize("call", [0, 3])
def test_a_batch_that_memory_is_too_small_for_is_embedded_in_parts_to_the_same_loss(tables, call, caplog):
    """Also in parts of parts. The head learns slowly, as above."""

    def full(value):
        if stopping.left >= -2:
            raise torch.OutOfMemoryError
        return value

    slow, stopping = replace(SHORT, head_lr=1e-4), Stopping(LOSS, call, full)
    alone, parts = run(tables, slow), run(tables, slow, loss=stopping)
    assert "Memory is too small for 8 images at once: embedding 4 at a time." in caplog.text
    assert "embedding 2 at a time." in caplog.text and "embedding 1 " not in caplog.text
    stopping = Stopping(LOSS, call, lambda value: (_ for _ in ()).throw(torch.OutOfMemoryError))
    with pytest.raises(InputError, match="memory is too small for a batch of 8 images of 32 pixels: choose a smaller"):
        run(tables, slow, loss=stopping)
    pd.testing.assert_frame_equal(parts.history, alone.history, rtol=1e-4)
    for name, value in alone.network.state_dict().items():
        torch.testing.assert_close(parts.network.state_dict()[name], value, rtol=1e-3, atol=1e-4)


def test_a_step_is_adamw_on_the_clipped_gradient():
    """AdamW's first step is the sign of the gradient times the rate, after decay. Both twins lie alike in memory."""
    (encoder, head), (twin, twin_head) = network(), network()
    thaw(twin)
    pixels = torch.randn(8, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))
    pixels = pixels.contiguous(memory_format=torch.channels_last)
    twin.to(memory_format=torch.channels_last)
    labels = torch.arange(4).repeat_interleave(2)
    (50 * LOSS(twin_head(twin.eval()(pixels)), labels)).backward()
    thaw(encoder)
    place, optimiser = together.fabric("cpu"), adamw(encoder, head, lr=1e-3, head_lr=1e-2, weight_decay=0.1)
    given = together.setup(place, torch.nn.Sequential(encoder, head).eval(), optimiser)
    together.step(place, *given, pixels, lambda h: 50 * LOSS(h, labels), longest=LONGEST_GRADIENT)
    theirs = [*twin.parameters(), *twin_head.parameters()]
    length = torch.stack([weight.grad.norm() for weight in theirs if weight.grad is not None]).norm()
    assert length > 2 * LONGEST_GRADIENT
    for ours, start in zip([*encoder.parameters(), *head.parameters()], theirs, strict=True):
        if start.grad is None:
            assert torch.equal(ours, start)
            continue
        torch.testing.assert_close(ours.grad, start.grad * LONGEST_GRADIENT / length, rtol=1e-3, atol=1e-7)
        rate = 1e-2 if any(ours is weight for weight in head.parameters()) else 1e-3
        clear = ours.grad.abs() > 1e-5
        moved = (ours - start * (1 - rate * 0.1)).detach()
        torch.testing.assert_close(moved[clear], -rate * ours.grad[clear].sign(), rtol=0.02, atol=1e-6)


def test_what_cannot_work_is_refused_before_anything_is_trained(tables):
    learnt, validation = tables
    with pytest.raises(InputError, match="6 classes, such as 0, are learnt from and chosen by"):
        run((learnt, learnt))
    alone = ImageTable("hues", validation.root, validation.rows.drop_duplicates("label"), "image")
    with pytest.raises(InputError, match="no class of the 4 validation images has two of them"):
        run((learnt, alone))
    with pytest.raises(InputError, match="7 classes x 2 images, but there are only 6 classes"):
        run(tables, Settings(batch_size=14, samples=2))
    with pytest.raises(InputError, match="6 of 6 classes have fewer than samples = 6"):
        run(tables, Settings(batch_size=12, samples=6))
    encoder, head = network()
    torch.nn.init.constant_(head.linear.bias, math.nan)
    with pytest.raises(InputError, match="the encoder or its head has weights that are not finite"):
        finetune(encoder, head, LOSS, *tables, SHORT, Preparation.of(encoder, SIZE), seed=0, device="cpu")


def test_images_that_are_looked_at_as_well_choose_nothing(tables, undisturbed):
    learnt, validation = tables
    done = run(tables, unseen=learnt)
    assert same(done, undisturbed)
    assert done.scores[undisturbed.scores.columns].equals(undisturbed.scores)
    twin = run(tables, unseen=validation)
    for place in ("head", "encoder"):
        assert twin.scores[f"unseen_{place}"].equals(twin.scores[place])
        assert not done.scores[f"unseen_{place}"].equals(done.scores[place])


@pytest.mark.parametrize("head_lr", [1e-2, 10.0])
def test_a_c_that_learns_moves_and_stays_a_curvature_that_images_are_searched_with(tables, monkeypatch, head_lr):
    """As a number: embeddings are on the CPU then, and a weight on a GPU could not be multiplied with them."""
    seen = []
    spy = lambda *given: seen.append(given[4]) or evaluate(*given)  # noqa: E731
    monkeypatch.setattr("lib.training.finetune.evaluate", spy)
    encoder, _ = network()
    head = ClippedProjection(encoder.num_features, 8, geometry=PoincareBall(0.1), learn_c=True)
    loss = PairwiseCrossEntropy(head.geometry, samples=2)
    settings = Settings(steps=4, batch_size=8, samples=2, lr=1e-5, head_lr=head_lr, check_every=1)
    options = {"seed": 0, "device": "cpu"}
    done = finetune(encoder, head, loss, *tables, settings, Preparation.of(encoder, SIZE), **options)
    c = done.scores["c"]
    assert c[0] == pytest.approx(0.1) and c.nunique() > 1 and (c > 0).all()
    assert head.geometry.c is head.c and head.c.item() == pytest.approx(c[done.best.name])
    searched = [space.c for space in seen if isinstance(space, PoincareBall)]
    assert {type(one) for one in searched} == {float} and searched == c.tolist()


def test_what_trains_in_bfloat16_is_looked_at_in_float32(tables):
    encoder, head = network()
    cast = {True: set(), False: set()}

    def note(*_):
        cast[torch.is_inference_mode_enabled()].add(torch.is_autocast_enabled("cpu"))

    encoder.register_forward_pre_hook(note)
    options = {"seed": 0, "device": "cpu", "bf16": True}
    finetune(encoder, head, LOSS, *tables, replace(SHORT, steps=1), Preparation.of(encoder, SIZE), **options)
    assert cast == {True: {False}, False: {True}}
