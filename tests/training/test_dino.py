"""Self-distillation learns, follows its seed, survives being killed, and says when it has gone wrong."""

from copy import deepcopy

import pandas as pd
import pytest
import torch

from lib.datasets import tissue
from lib.encoders import small_vit
from lib.training import dino
from lib.training.distillation import Pair, Settings

TINY = Settings(steps=6, batch_size=3, prototypes=16, local_crops=1)


@pytest.fixture(scope="module")
def pixels() -> torch.Tensor:
    rows = tissue.sample(n_tiles=24, n_patients=3, seed=5, n_duplicates=0).to_dict("records")
    return torch.stack([torch.from_numpy(tissue.draw(row)).permute(2, 0, 1) for row in rows])


def run(pixels: torch.Tensor, settings: Settings = TINY, seed: int = 0, **options) -> dino.Distilled:
    return dino.pretrain(pixels, settings, seed=seed, **{"device": "cpu", "store": None} | options)


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


def test_a_killed_training_goes_on_and_ends_as_if_nothing_had_happened(pixels, tmp_path, monkeypatch):
    monkeypatch.setattr(dino, "CHECKPOINT_STEPS", 2)
    step, steps = Pair.step, []

    def dies(self, number, crops):
        steps.append(number)
        if len(steps) == 6:
            raise KeyboardInterrupt
        return step(self, number, crops)

    whole = run(pixels)
    monkeypatch.setattr(Pair, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        run(pixels, store=tmp_path)
    resumed, kept = run(pixels, store=tmp_path), run(pixels, store=tmp_path)
    assert steps == [0, 1, 2, 3, 4, 5, 4, 5] and same(whole, resumed) and same(whole, kept)
    assert not kept.network.training and not any(p.requires_grad for p in kept.network.parameters())
    assert [file.suffix for file in tmp_path.iterdir()] == [".pt"]


def ended(spread: float, information: float) -> dino.Distilled:
    frame = pd.DataFrame({"step": range(20), "loss": 1.0, "entropy": 0.5, "information": 2.0, "spread": 0.8})
    frame.loc[18:, ["spread", "information"]] = spread, information
    return dino.Distilled(small_vit.create(0), frame, TINY)


def test_a_collapse_is_called_by_its_name():
    assert ended(0.5, 1.0).verdict() == "no collapse (spread of the features 0.50, information 1.00 nats)"
    said = "collapsed, all images look the same to it (spread of the features 0.01"
    assert ended(0.01, 1.0).verdict().startswith(said)
    assert ended(0.5, 0.0).verdict().endswith("information 0.00 nats); do not use these weights")


@pytest.mark.gpu
def test_a_gpu_does_the_same_first_step(pixels):
    losses = [
        dino.pretrain(pixels, TINY, seed=0, device=device, bf16=False).history["loss"].iloc[0]
        for device in ("cpu", "cuda")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
