"""What losses of hash codes share: centres, signs with a gradient, cosines."""

import functools

import numpy as np
import torch
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry import Sphere


@functools.lru_cache(maxsize=64)
def hash_centres(
    n_classes: int, bits: int, seed: int = 0, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> Tensor:
    """A code of −1 and +1 for each class, (n_classes, bits), all different (CSQ, Section 3.1).

    The rows of the Hadamard matrix H, then those of −H: any two differ in half of the bits, or in all. There are 2·bits
    of them where bits is a power of 2; for more classes, or another length, each bit is drawn (Bernoulli, 1/2).
    Raises InputError where there are fewer codes than classes.

    >>> hash_centres(3, 4).tolist()
    [[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0]]
    """
    checks.values(n_classes=n_classes, seed=seed)
    checks.whole("bits", bits)
    if (n_classes - 1).bit_length() > bits:
        raise InputError(f"{bits} bits make {2**bits} codes, too few for {n_classes} classes: take longer codes")
    if bits & (bits - 1) == 0 and n_classes <= 2 * bits:
        rows, columns = np.arange(n_classes)[:, None], np.arange(bits)
        # Entry i, j is −1 to the number of ones of i & j (Sylvester): no matrix of bits² numbers is made.
        signs = 1 - 2 * (np.bitwise_count(rows % bits & columns) % 2).astype(np.int8)
        return torch.from_numpy(np.where(rows < bits, signs, -signs)).to(device, dtype)
    rng, centres = np.random.default_rng(seed), np.zeros((0, bits))
    while len(centres) < n_classes:
        drawn = np.concatenate([centres, 2.0 * rng.integers(2, size=(n_classes, bits)) - 1])
        _, first = np.unique(drawn, axis=0, return_index=True)
        centres = drawn[np.sort(first)][:n_classes]
    return torch.from_numpy(centres).to(device, dtype)


def straight_through(h: Tensor) -> Tensor:
    """sgn(h), +1 at 0, with the gradient of h where |h| ≤ 1, and none beyond."""
    soft = h.clamp(-1, 1)
    return soft + (torch.where(h >= 0, 1.0, -1.0).to(h.dtype) - soft).detach()


def away_from_signs(h: Tensor) -> Tensor:
    """||h| − 1| of each number: how far it is from being a bit (Equation 2 of ACIR, before its sum)."""
    return (h.abs() - 1).abs()


def cosines(h: Tensor) -> Tensor:
    """cos of all pairs of rows ``h: (..., B, bits)``, (..., B, B); 0 to a zero vector, which has no direction."""
    unit = Sphere().project(h)
    return unit @ unit.mT
