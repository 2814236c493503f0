"""The loop goes on where it broke off, a checkpoint is whole or named, and a batch that fits is found."""

import math

import pytest
import torch
from torch import Tensor, nn

from lib.errors import InputError
from lib.training import kept, loop
from lib.training.divergence import Diverged, Watch

STEPS = 6
X = torch.randn(STEPS * 4, 3, generator=torch.Generator().manual_seed(0))


class Killed(Exception):
    pass


def course(file=None, dies: float = math.inf, break_at: float = math.inf, rate=lambda step, steps: 1.0):
    """Train a layer for six steps, with a look at each second; the layer, the losses, and the looks."""
    layer = nn.Linear(3, 1)
    nn.init.ones_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimiser, watch, looks = torch.optim.AdamW(layer.parameters(), lr=0.1), Watch.of(layer, "layer", STEPS), []
    parts = {"layer": layer, "optimiser": optimiser, "watch": watch, "looks": looks}
    checkpoint = loop.Checkpoint(file, parts)
    checkpoint.read()
    batches = list(X.split(4))[len(watch.losses) :]

    def step(number: int, x: Tensor) -> tuple[Tensor, bool]:
        if number == dies:
            raise Killed
        value = layer(x).square().mean() * (math.nan if number == break_at else 1)
        return value.detach()[None], loop.descend(optimiser, value, rate(number, STEPS))

    loop.run(step, batches, watch, every=2, look=looks.append, checkpoint=checkpoint)
    return layer, watch.history()[0].tolist(), looks


def equal(one, two) -> bool:
    weights = zip(one[0].parameters(), two[0].parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in weights) and one[1:] == two[1:]


@pytest.mark.parametrize("dies", range(STEPS))
def test_what_broke_off_goes_on_to_the_same_end(tmp_path, dies):
    file = tmp_path / "one.checkpoint"
    whole = course(rate=loop.warmed_cosine)
    assert whole[2] == [2, 4, 6]
    with pytest.raises(Killed):
        course(file, dies, rate=loop.warmed_cosine)
    assert file.exists() == (dies >= 2)
    assert equal(course(file, rate=loop.warmed_cosine), whole) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("before", [False, True])
def test_tiny_numbers_are_zero_in_every_step_and_afterwards_as_before(before):
    def tiny() -> bool:
        return (torch.full((9,), 1e-38) / 10).eq(0).all().item()

    def step(*_: object) -> tuple[Tensor, bool]:
        seen.append(tiny())
        return torch.zeros(1), True

    seen: list[bool] = []
    torch.set_flush_denormal(before)
    try:
        loop.run(step, range(3), Watch.of(nn.Linear(1, 1), "layer", 3), every=3)
        assert seen == [True] * 3 and tiny() is before
    finally:
        torch.set_flush_denormal(False)


def test_the_loss_that_is_no_number_is_named_and_nothing_after_it_is_kept(tmp_path):
    file = tmp_path / "one.checkpoint"
    with pytest.raises(Diverged, match="the loss of layer is nan at step 2"):
        course(file, break_at=2)
    assert equal(course(file), course())  # the checkpoint is the one before


def test_a_step_with_a_gradient_that_is_not_finite_is_not_taken():
    layer = nn.Linear(1, 1)
    before = layer.weight.detach().clone()
    optimiser, watch = torch.optim.SGD(layer.parameters(), lr=1.0), Watch.of(layer, "layer", 3)

    def step(number: int, x: Tensor) -> tuple[Tensor, bool]:
        value = (0 * layer.weight).sum().sqrt()
        return value.detach()[None], loop.descend(optimiser, value, 1.0, layer.parameters(), 1.0)

    message = "is 0 at step 0, but its weights or their gradient have outgrown float32"
    with pytest.raises(Diverged, match=message):
        loop.run(step, [torch.ones(1)], watch, every=3)
    assert torch.equal(layer.weight, before)


def test_what_lacks_something_is_of_another_version_and_not_damaged(tmp_path):
    file = tmp_path / "one.checkpoint"
    loop.Checkpoint(file, {"looks": [1.0]}).write()
    message = r"one\.checkpoint: the checkpoint is of another version of this training\. Remove it"
    with pytest.raises(InputError, match=message):
        loop.Checkpoint(file, {"looks": [], "weights": []}).read()


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999, None])
def test_one_flipped_bit_is_damage_wherever_it_is(tmp_path, share):
    """torch itself reads most of these files without a word."""
    file = tmp_path / "one.checkpoint"
    loop.Checkpoint(file, {"weights": [torch.ones(10_000)]}).write()
    data = bytearray(file.read_bytes())
    if share is None:
        data = b""
    else:
        data[int(share * len(data))] ^= 4
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"one\.checkpoint: the checkpoint is damaged\. Remove it to start anew"):
        loop.Checkpoint(file, {"weights": []}).read()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError, torch.OutOfMemoryError])
def test_what_says_nothing_against_the_file_passes(tmp_path, monkeypatch, stop):
    """Memory that is too small is no damage: nobody is to remove a good checkpoint."""

    def load(*_, **__):
        raise stop

    file = tmp_path / "one.checkpoint"
    loop.Checkpoint(file, {}).write()
    monkeypatch.setattr(torch, "load", load)
    with pytest.raises(stop):
        loop.Checkpoint(file, {}).read()
    with pytest.raises(stop):
        kept.read(file)


@pytest.mark.parametrize(("room", "words"), [(5, "5 at a time fit. Choose batch_size = 5"), (0, "choose a smaller")])
def test_a_batch_that_fits_is_found_by_halves(room, words):
    layer = nn.Linear(3, 1)

    def loss(rows: Tensor) -> Tensor:
        if len(rows) > room:
            raise torch.OutOfMemoryError
        return layer(X[rows]).sum()

    optimiser, watch = torch.optim.SGD(layer.parameters(), lr=0.1), Watch.of(layer, "layer", 1)
    with pytest.raises(InputError, match=f"memory is too small for a batch of 20 images of 64 pixels: {words}"):
        loop.train(loss, [torch.arange(20)], optimiser, watch, 1, pixels=64)
