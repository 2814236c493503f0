"""Which device numbers are computed on: one place decides.

The demo runs on the CPU everywhere, so that its tables are the committed ones; all others take the GPU where there is
one. ``DEVICE=cpu`` or ``DEVICE=cuda`` before a command overrides both.
"""

import os
from typing import TYPE_CHECKING

from lib.errors import InputError

if TYPE_CHECKING:
    import torch

VARIABLE = "DEVICE"
CPU = "CPU"
GIVEN = os.environ.get(VARIABLE, "")
"""What the user said when the program began."""


def of_profile(profile: str) -> None:
    """From here on, and in processes that are started, take the device of ``profile``, unless the user gave one."""
    os.environ[VARIABLE] = GIVEN or ("cpu" if profile == "demo" else "")


def pick(device: str = "auto") -> "torch.device":
    """The device to compute on.

    Args:
        device: "cpu", "cuda", or "auto": what the environment variable DEVICE says, else cuda where there is one.

    Raises:
        InputError: for a DEVICE that is neither cpu nor cuda, and for cuda where torch sees no card.
    """
    import torch  # seconds, which a command that computes nothing does not pay

    given = os.environ.get(VARIABLE, "")
    if given not in ("", "cpu", "cuda"):
        raise InputError(f"{VARIABLE}={given} is no device: write {VARIABLE}=cpu or {VARIABLE}=cuda, or leave it out")
    if device == "auto":
        device = given or ("cuda" if torch.cuda.is_available() else "cpu")
    picked = torch.device(device)
    if picked.type == "cuda" and not torch.cuda.is_available():
        built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPUs alone"
        raise InputError(
            f"the device is to be {device}, but torch sees no NVIDIA card here ({torch.__version__}, for {built}): "
            f"take {VARIABLE}=cpu, or see with nvidia-smi whether the driver finds one"
        )
    return picked


def name() -> str:
    """What a person calls the device that is taken: CPU, or the card's name, as NVIDIA H100 80GB HBM3."""
    import torch

    return torch.cuda.get_device_name() if pick().type == "cuda" else CPU
