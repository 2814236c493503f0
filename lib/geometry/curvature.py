"""A curvature that is learned with the weights."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from lib.errors import InputError
from lib.geometry import PoincareBall


class Curvature(nn.Module):
    """c > 0 as a parameter in log space, kept within a factor of its initial value.

    In log space c stays positive and a step changes it by a *ratio*; the clamp keeps it from running away before the
    weights have learnt anything (as MERU does). Put it into a parameter group without weight decay
    (:func:`parameter_groups`): decay of log c would pull c towards 1.

    Args:
        initial: c at the start, > 0.
        factor: c stays in [initial/factor, initial·factor].

    >>> round(Curvature(0.1)().c.item(), 6)
    0.1
    """

    def __init__(self, initial: float = 1.0, factor: float = 10.0) -> None:
        super().__init__()
        if not 0 < initial < math.inf or factor < 1:
            raise InputError(f"initial c = {initial:g}, factor {factor:g}: expected a finite c > 0 and a factor >= 1")
        self.log_c = nn.Parameter(torch.tensor(math.log(initial)))
        self.low, self.high = math.log(initial / factor), math.log(initial * factor)

    def forward(self) -> PoincareBall:
        """The ball with the present c, through which gradients flow into it."""
        return PoincareBall(_Clamped.apply(self.log_c, self.low, self.high).exp())


class _Clamped(torch.autograd.Function):
    """A clamp that lets a gradient pass which leads back inside: behind ``torch.clamp`` a value is stuck for good."""

    @staticmethod
    def forward(ctx, value: Tensor, low: float, high: float) -> Tensor:
        ctx.beyond = (value > high).int() - (value < low).int()
        return value.clamp(low, high)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        # Descent moves against the gradient: above the range a positive one leads back, below it a negative one.
        return torch.where(gradient * ctx.beyond >= 0, gradient, 0.0), None, None


def parameter_groups(modules: Iterable[nn.Module], weight_decay: float) -> list[dict]:
    """Two parameter groups for an optimiser: the weights with ``weight_decay``, every :class:`Curvature` without."""
    curvatures = [part.log_c for module in modules for part in module.modules() if isinstance(part, Curvature)]
    ids = {id(parameter) for parameter in curvatures}
    weights = [p for module in modules for p in module.parameters() if id(p) not in ids]
    return [{"params": weights, "weight_decay": weight_decay}, {"params": curvatures, "weight_decay": 0.0}]
