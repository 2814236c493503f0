"""Which device is taken: the demo's CPU, the others' GPU, or what the user says."""

import pytest
import torch

from lib import devices
from lib.encoders import registry
from lib.errors import InputError
from lib.training import together


def machine(monkeypatch, card: bool, given: str) -> None:
    """A machine with or without a card, on which the user says DEVICE=``given``."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: card)
    monkeypatch.setattr(devices, "GIVEN", given)
    monkeypatch.setenv(devices.VARIABLE, given)


@pytest.mark.parametrize(
    ("profile", "card", "given", "taken"),
    [
        ("demo", True, "", "cpu"),
        ("demo", True, "cuda", "cuda"),
        ("sample", True, "", "cuda"),
        ("own", True, "", "cuda"),
        ("paper", True, "cpu", "cpu"),
        ("paper", False, "", "cpu"),
    ],
)
def test_the_demo_stays_on_the_cpu_and_the_user_overrides(monkeypatch, profile, card, given, taken):
    machine(monkeypatch, card, given)
    devices.of_profile("sample" if profile == "demo" else "demo")  # an earlier one, in the same kernel
    devices.of_profile(profile)
    assert devices.pick().type == taken
    assert devices.pick("cpu").type == "cpu"


@pytest.mark.parametrize(
    ("given", "device", "message"),
    [
        ("cuda", "auto", "the device is to be cuda, but torch sees no NVIDIA card here"),
        ("", "cuda", "take DEVICE=cpu, or see with nvidia-smi"),
        ("gpu", "auto", "DEVICE=gpu is no device: write DEVICE=cpu or DEVICE=cuda"),
    ],
)
def test_a_device_that_is_not_there_is_refused(monkeypatch, given, device, message):
    machine(monkeypatch, False, given)
    with pytest.raises(InputError, match=message):
        devices.pick(device)


def test_trainings_and_encoders_ask_here(monkeypatch):
    """A machine with a card: the demo's work goes nowhere near it."""
    machine(monkeypatch, True, "")
    devices.of_profile("demo")
    assert registry.make("demo_vit").device.type == "cpu"
    assert together.fabric().device.type == "cpu"
    monkeypatch.setenv("PROCESSES", "2")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert together.processes() == 2
    devices.of_profile("sample")
    with pytest.raises(InputError, match="this machine has 1 GPUs"):
        together.processes()
