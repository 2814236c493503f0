"""What losses of a batch share: the check of its labels, pairs of rows, means over what counts."""

import torch
from torch import Tensor

from lib import checks
from lib.errors import InputError


def check(h: Tensor, labels: Tensor, n_classes: int = checks.LARGEST, there: str = "classes are numbered") -> None:
    """Refuse a batch unless each row of ``h: (..., B, d)`` has a label from 0 to ``n_classes`` − 1, and there is a row.

    there: what has so many classes, for the message (:func:`lib.checks.codes`).
    """
    if labels.shape != h.shape[:-1]:
        raise InputError(f"labels have the shape {tuple(labels.shape)}, the embeddings need {tuple(h.shape[:-1])}")
    checks.codes("labels", labels, n_classes, there)


def counted(h: Tensor, labels: Tensor, valid: Tensor | None) -> Tensor:
    """1 for rows of ``h: (..., B, d)`` that count, all if ``valid`` is None, else 0; a batch is checked first."""
    check(h, labels)
    return h.new_ones(labels.shape) if valid is None else valid.to(h.dtype)


def which(labels: Tensor, valid: Tensor | None) -> Tensor:
    """``valid``, or where that is None all rows of ``labels: (..., B)``, bool."""
    return torch.ones_like(labels, dtype=torch.bool) if valid is None else valid


def pairs(h: Tensor, labels: Tensor, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """1 for ordered pairs of one class, and of two classes, (..., B, B); 0 for an image with itself, or not valid."""
    counts = counted(h, labels, valid)
    both = counts[..., :, None] * counts[..., None, :]
    same = (labels[..., :, None] == labels[..., None, :]).to(h.dtype)
    itself = torch.eye(labels.shape[-1], dtype=h.dtype, device=h.device)
    return both * same * (1 - itself), both * (1 - same)


def pair_mean(values: Tensor, weights: Tensor) -> Tensor:
    """The mean of ``values: (..., B, B)`` where ``weights`` are 1; 0 where there is no such pair."""
    return (values * weights).sum((-2, -1)) / weights.sum((-2, -1)).clamp_min(1)


def image_mean(values: Tensor, valid: Tensor | None) -> Tensor:
    """The mean of ``values: (..., B)`` over the rows that count; 0 where none does."""
    if valid is None:
        return values.mean(-1)
    return (values * valid).sum(-1) / valid.sum(-1).clamp_min(1)


def reordered(order: Tensor, h: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """``h: (..., B, d)`` and ``others: (..., B)`` with the rows of each batch in the order ``order: (..., B)``."""
    return h.take_along_dim(order[..., None], -2), *(values.gather(-1, order) for values in others)
