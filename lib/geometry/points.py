"""What comes in as points: tensors, NumPy arrays and lists, all as tensors; and which of them cannot be points."""

import functools

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lib.errors import InputError

Points = Tensor | ArrayLike
"""Points or distances as they are handed in: a tensor stays as it is, of anything else a tensor is made."""


def as_tensor(values: Points, what: str = "points") -> Tensor:
    """``values`` as a tensor: a tensor itself, a NumPy array in its own dtype, a list of fractions as float32.

    Raises InputError, naming ``what``, where there is something else than real numbers or rows differ in length.
    """
    try:
        tensor = values if isinstance(values, Tensor) else torch.from_numpy(np.require(values, requirements=["C", "W"]))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"the {what} cannot be read as numbers ({error}); hand in a tensor, a NumPy array, or a list of rows of "
            "equal length"
        ) from error
    if tensor.is_complex():
        raise InputError(f"the {what} are complex numbers; hand in real ones, such as their absolute values")
    listed = isinstance(values, list | tuple) and tensor.dtype == torch.float64
    return tensor.float() if listed else tensor


def floating(*points: Points) -> tuple[Tensor, ...]:
    """The points in their common dtype, but at least float32, and contiguous.

    The memory layout decides the order of summation, and equal points need norms that are equal to the last bit.
    """
    tensors = [as_tensor(some) for some in points]
    dtype = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)
    return tuple(tensor.to(dtype).contiguous() for tensor in tensors)


def sets(x: Points, y: Points) -> tuple[Tensor, Tensor]:
    """Two sets of points ``(..., n, d)`` and ``(..., m, d)`` as :func:`floating` has them.

    Raises InputError for a single point, naming the way to make it a set of one, and where d differs.
    """
    x, y = floating(x, y)
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise InputError(f"two sets of points have the {unfit(x, y)}; expected (..., n, d) and (..., m, d)")
    return x, y


def rows(x: Points, y: Points) -> tuple[Tensor, Tensor]:
    """Points ``(..., d)`` to be taken row by row, as :func:`floating` has them; raises InputError where d differs."""
    x, y = floating(x, y)
    if x.shape[-1:] != y.shape[-1:] or not x.ndim:
        raise InputError(f"points have the shapes {tuple(x.shape)} and {tuple(y.shape)}; expected (..., d) with one d")
    return x, y


def unfit(x: Tensor, y: Tensor, names: tuple[str, str] = ("x", "y")) -> str:
    """The shapes of two sets that do not fit together, and what to do about a single point.

    >>> unfit(torch.zeros(3), torch.zeros(5, 3), ("query", "gallery"))
    'shapes (3,) and (5, 3) (a single query is the set query[None])'
    """
    single = "".join(
        f" (a single {name} is the set {name}[None])" for name, one in zip(names, (x, y), strict=True) if one.ndim == 1
    )
    return f"shapes {tuple(x.shape)} and {tuple(y.shape)}{single}"


def weighted(x: Points, weights: Points | None) -> tuple[Tensor, Tensor]:
    """Points ``(..., n, d)`` and their weights as ``(..., n, 1)``, alike if None.

    Raises InputError for a negative weight, or where the weights of a set add up to 0.
    """
    x = as_tensor(x)
    given = weights is not None
    x, weights = floating(x, weights if given else x.new_ones(x.shape[:-1]))
    if 0 in x.shape[-2:-1] or (given and ((weights < 0).any() or (weights.sum(-1) == 0).any())):
        raise InputError("a mean needs weights >= 0 that do not all vanish; leave out groups without any point")
    return x, weights.unsqueeze(-1)
