"""Self-distillation learns, follows its seed, survives being killed, and says when it has gone wrong."""

import math
from copy import deepcopy
from dataclasses import replace

import pandas as pd
import pytest
import torch

from lib import paths
from lib.datasets import tissue
from lib.encoders import small_vit
from lib.errors import InputError
from lib.losses import dino as losses
from lib.training import dino
from lib.training.distillation import Pair, Settings, cosine, effective_rank, spectrum, spread
from lib.training.divergence import Diverged

TINY = Settings(steps=6, batch_size=3, prototypes=16, local_crops=1)


@pytest.fixture(scope="module")
def pixels() -> torch.Tensor:
    rows = tissue.sample(n_tiles=24, n_patients=3, seed=5, n_duplicates=0).to_dict("records")
    return torch.stack([torch.from_numpy(tissue.draw(row)).permute(2, 0, 1) for row in rows])


def run(pixels: torch.Tensor, settings: Settings = TINY, seed: int = 0, **options) -> dino.Distilled:
    return dino.pretrain(pixels, settings, seed=seed, device="cpu", **options)


def same(one: dino.Distilled, two: dino.Distilled) -> bool:
    states = one.network.state_dict(), two.network.state_dict()
    return one.history.equals(two.history) and all(torch.equal(states[0][k], states[1][k]) for k in states[0])


def test_the_learning_rate_rises_and_follows_half_a_cosine():
    settings = Settings(steps=100, lr=(1.0, 0.2))
    rates = [settings.learning_rate(step) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * (i + 1) for i in range(10)])
    assert (rates[10], rates[99]) == pytest.approx((1.0, 0.2))
    assert rates[10 + 89 // 2] == pytest.approx(0.6, abs=0.01)
    assert sorted(rates[10:], reverse=True) == rates[10:]
    assert Settings(steps=1).learning_rate(0) == Settings().lr[0]


def test_the_teacher_grows_slower_in_the_end():
    settings = Settings(steps=11, momentum=(0.9, 1.0))
    assert [settings.teacher_momentum(s) for s in (0, 5, 10)] == pytest.approx([0.9, 0.95, 1.0])
    assert cosine(2.0, 4.0, 1 / 3) == pytest.approx(4 - 2 * 0.75)


def test_the_teacher_is_a_running_mean_of_the_student():
    pair = Pair(TINY, 0, torch.device("cpu"), bf16=False)
    before = [p.clone() for p in pair.teacher.parameters()]
    with torch.no_grad():
        for p in pair.student.parameters():
            p += 1
    pair.follow(0.75)
    for old, new in zip(before, pair.teacher.parameters(), strict=True):
        torch.testing.assert_close(new, 0.75 * old + 0.25 * (old + 1))


def test_a_step_changes_student_teacher_and_centre_as_written(pixels):
    """The first step by hand: AdamW of a first gradient is its sign times the rate, before decay."""
    pair = Pair(TINY, 0, torch.device("cpu"), bf16=False)
    student = {k: v.clone() for k, v in pair.student.named_parameters()}
    crops = dino.views(pixels[:3], 0, 0, TINY)
    with torch.no_grad():
        logits = Pair(TINY, 0, torch.device("cpu"), bf16=False).teacher((torch.cat(crops[:2]) - MEAN) / STD)
    pair.step(0, crops)
    rate = TINY.learning_rate(0)
    for name, p in pair.student.named_parameters():
        moved = p.detach() - student[name] * (1 - rate * TINY.weight_decay * (p.ndim in (2, 4)))
        clear = p.grad.abs() > 1e-6
        expected = -rate * p.grad.sign()
        torch.testing.assert_close(moved[clear], expected[clear], rtol=0.02, atol=1e-6)
    for (name, t), s in zip(pair.teacher.named_parameters(), pair.student.parameters(), strict=True):
        m = TINY.teacher_momentum(0)
        torch.testing.assert_close(t, m * student[name] + (1 - m) * s.detach())
    torch.testing.assert_close(pair.centre, logits.mean(dim=0), rtol=1e-4, atol=1e-6)
    before = pair.centre
    with torch.no_grad():
        logits = deepcopy(pair.teacher)((torch.cat(crops[:2]) - MEAN) / STD)
    pair.step(1, crops)
    torch.testing.assert_close(pair.centre, 0.9 * before + 0.1 * logits.mean(dim=0), rtol=1e-4, atol=1e-6)


MEAN = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225])[:, None, None]


def test_spread_by_hand():
    """Unit vectors along the axes, both ways: each number is 0 except in one pair of 2d, so its variance is 1/d."""
    axes = torch.cat([torch.eye(5), -torch.eye(5)])
    assert spread(3 * axes).item() == pytest.approx(1)
    assert spread(torch.ones(4, 5) * torch.tensor([[1.0], [2], [3], [4]])).item() == pytest.approx(0, abs=1e-6)


def test_spectrum_and_effective_rank_by_hand():
    """Deviations 3 and 4 along two axes that are turned: shares 9/25 and 16/25. Far apart, and yet of rank 2 of 3."""
    turned = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)))[0]
    ends = torch.tensor([[3.0, 0, 0], [-3, 0, 0], [0, 4, 0], [0, -4, 0]])
    shares = spectrum(10 + ends @ turned)
    assert shares.tolist() == pytest.approx([16 / 25, 9 / 25, 0], abs=1e-6)
    entropy = -(0.64 * math.log(0.64) + 0.36 * math.log(0.36))
    assert effective_rank(ends @ turned).item() == pytest.approx(math.exp(entropy), abs=1e-4)
    assert effective_rank(torch.cat([torch.eye(5), -torch.eye(5)])).item() == pytest.approx(5)
    assert spread(ends) > 0.5


def test_views_are_two_large_and_the_small_crops(pixels):
    shapes = [tuple(v.shape) for v in dino.views(pixels[:3], 7, 1, Settings(local_crops=2))]
    assert shapes == [(3, 3, 96, 96)] * 2 + [(3, 3, 48, 48)] * 2
    one, again, next_step = (dino.views(pixels[:3], step, 1, TINY)[0] for step in (7, 7, 8))
    assert torch.equal(one, again) and not torch.equal(one, next_step)


def test_it_learns_to_tell_images_apart(pixels):
    """The loss falls, and the teacher's answers say more and more about the image."""
    settings = Settings(steps=24, batch_size=8, prototypes=256, local_crops=1)
    done = run(pixels, settings)
    history = done.history
    assert history.columns.tolist() == ["step", "loss", "entropy", "information", "spread", "rank"]
    assert history["step"].tolist() == list(range(24))
    start, end = history.head(5).mean(), history.tail(5).mean()
    assert end["loss"] < 0.9 * start["loss"]
    assert end["information"] > start["information"] + 0.05
    assert end["spread"] > start["spread"] + 0.05
    assert not done.network.training and not done.collapsed


def test_one_seed_gives_one_result(pixels):
    one, again, other = run(pixels), run(pixels), run(pixels, seed=1)
    assert same(one, again) and not same(one, other)


class Killed(Exception):
    pass


def test_a_killed_training_goes_on_and_ends_as_if_nothing_had_happened(pixels, tmp_path, monkeypatch):
    monkeypatch.setattr(dino, "CHECKPOINT_STEPS", 2)
    store, step = tmp_path / "run.pt", Pair.step
    steps = []

    def dies(self, number, crops):
        steps.append(number)
        if number == 5 and len(steps) == 6:
            raise Killed
        return step(self, number, crops)

    whole = run(pixels)
    monkeypatch.setattr(Pair, "step", dies)
    with pytest.raises(Killed):
        run(pixels, store=store)
    assert store.is_file()
    resumed = run(pixels, store=store)
    assert steps == [0, 1, 2, 3, 4, 5, 4, 5]
    assert same(whole, resumed)
    assert not store.exists()


@pytest.fixture
def steps(monkeypatch) -> list[int]:
    """The number of every step that is trained."""
    seen, step = [], Pair.step
    monkeypatch.setattr(Pair, "step", lambda pair, number, crops: seen.append(number) or step(pair, number, crops))
    return seen


def test_what_was_trained_is_kept(pixels, tmp_path, monkeypatch, steps, caplog):
    """Network and history to the bit, also where the file was damaged since."""
    plain = run(pixels)
    monkeypatch.setattr(paths, "TRAINED", tmp_path)
    for calls in (12, 12):
        again = run(pixels, store=tmp_path / "run.pt")
        assert len(steps) == calls and same(plain, again)
        assert not again.network.training and not any(p.requires_grad for p in again.network.parameters())
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:500])
    assert same(plain, run(pixels)) and len(steps) == 18 and f"{file} is damaged" in caplog.text


@pytest.mark.parametrize("changed", ["images", "settings", "seed", "device", "bf16", "code", "nothing"])
def test_a_training_is_recognised_by_all_that_decides_it(pixels, changed):
    images, settings, seed, device, bf16, code = pixels.clone(), TINY, 0, torch.device("cpu"), False, dino._code()
    before = dino._key(images, settings, seed, device, bf16, code)
    if changed == "images":
        images[3, 2, 1, 0] += 1
    elif changed == "settings":
        settings = replace(TINY, stain=0.3)
    elif changed == "seed":
        seed = 1
    elif changed == "device":
        device = torch.device("cuda")
    elif changed == "bf16":
        bf16 = True
    elif changed == "code":
        code = code.replace("lib/training/multicrop.py ", "lib/training/multicrop.py 0")
    assert (dino._key(images, settings, seed, device, bf16, code) == before) == (changed == "nothing")


def test_a_checkpoint_of_another_training_is_not_used(pixels, tmp_path, monkeypatch):
    monkeypatch.setattr(dino, "CHECKPOINT_STEPS", 1)
    store = tmp_path / "run.pt"
    monkeypatch.setattr(type(store), "unlink", lambda *_, **__: None)
    run(pixels, seed=3, store=store)
    assert store.is_file()
    assert same(run(pixels, store=store), run(pixels))


def test_a_damaged_checkpoint_is_named(pixels, tmp_path):
    store = tmp_path / "run.pt"
    for thing in ([1, 2], {}, torch.ones(3), {"student": {}}):
        torch.save(thing, store)
        with pytest.raises(InputError, match=r"run\.pt: the checkpoint is damaged\. Remove it"):
            run(pixels, store=store)
    for junk in (b"not a checkpoint", b"", b"J\x80", b"PK\x03\x04"):
        store.write_bytes(junk)
        with pytest.raises(InputError, match=r"run\.pt: the checkpoint is damaged\. Remove it"):
            run(pixels, store=store)


def test_a_loss_that_is_not_a_number_stops_with_the_last_good_state(pixels, monkeypatch):
    cross_view = losses.cross_view
    monkeypatch.setattr(losses, "cross_view", lambda *words: math.nan * cross_view(*words))
    with pytest.raises(Diverged, match="the loss of self-distillation is nan at step 0") as caught:
        run(pixels)
    assert caught.value.step == 0
    assert all(value.isfinite().all() for value in caught.value.last_good.values())


def test_a_batch_that_memory_is_too_small_for_is_an_error_with_the_way_out(pixels, monkeypatch):
    def full(*words):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(losses, "cross_view", full)
    with pytest.raises(InputError, match="memory is too small for a batch of 3 images of 96 pixels: choose a smaller"):
        run(pixels)


def test_too_few_images_are_refused(pixels):
    with pytest.raises(InputError, match="2 images are fewer than a batch of 3"):
        run(pixels[:2])


def ended(spread: float, information: float) -> dino.Distilled:
    frame = pd.DataFrame({"step": range(20), "loss": 1.0, "entropy": 0.5, "information": 2.0, "spread": 0.8})
    frame.loc[18:, ["spread", "information"]] = spread, information
    return dino.Distilled(small_vit.create(0), frame, TINY)


def test_a_collapse_is_called_by_its_name():
    assert ended(0.5, 1.0).verdict() == "no collapse (spread of the features 0.50, information 1.00 nats)"
    assert (
        ended(0.01, 1.0).verdict().startswith("collapsed, all images look the same to it (spread of the features 0.01")
    )
    assert ended(0.5, 0.0).verdict().endswith("information 0.00 nats); do not use these weights")


def test_without_sharpening_a_real_training_collapses(pixels):
    settings = Settings(steps=20, batch_size=6, prototypes=32, local_crops=0, teacher_temperature=1.0)
    assert run(pixels, settings).collapsed


@pytest.mark.gpu
def test_a_gpu_does_the_same_first_step(pixels):
    losses = [
        dino.pretrain(pixels, TINY, seed=0, device=device, bf16=False).history["loss"].iloc[0]
        for device in ("cpu", "cuda")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
