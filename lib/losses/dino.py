"""The loss of self-distillation without labels (DINO; Caron et al. 2021, "Emerging properties in self-supervised
vision transformers", section 3.1).

    L = mean over crops s != t of  - sum_k P_t(k) log P_s(k)

``P_t = softmax((logits of the teacher - centre) / teacher temperature)`` for the crops that the teacher saw,
``P_s = softmax(logits of the student / student temperature)`` for all crops. A constant output would make the loss
small too. Two things keep it away, and each needs the other: the *centre*, a running mean of the teacher's logits, is
taken off so that no prototype can win for every image; the low temperature *sharpens*, so that not all of them win.
"""

import torch
from torch import Tensor

from lib import checks


def targets(teacher: Tensor, centre: Tensor, temperature: float = 0.04) -> Tensor:
    """What the teacher asks for: probabilities of logits (..., K), centred by (K,) and sharpened."""
    checks.values(temperature=temperature)
    return torch.softmax((teacher.float() - centre) / temperature, dim=-1)


def cross_view(student: Tensor, wanted: Tensor, temperature: float = 0.1) -> Tensor:
    """Cross-entropy between the student on one crop and the teacher on another of the same image, a scalar.

    student: (v, n, K) logits of all v crops of n images; wanted: (g, n, K) the teacher's :func:`targets` for the first
    g of them; temperature: of the student. A crop is never compared with itself.

    Raises ValueError if the shapes do not fit or there is nothing to compare with, InputError for a temperature without
    meaning.
    """
    checks.values(temperature=temperature)
    (n_views, *rest), (n_seen, *seen_rest) = student.shape, wanted.shape
    if rest != seen_rest or not 1 <= n_seen <= n_views or n_views == 1:
        raise ValueError(f"student {tuple(student.shape)} and teacher {tuple(wanted.shape)} do not fit")
    answers = torch.log_softmax(student.float() / temperature, dim=-1)
    pairs = -torch.einsum("tnk,snk->ts", wanted, answers) / student.shape[1]
    other = 1 - torch.eye(n_seen, n_views, device=pairs.device)
    return (pairs * other).sum() / other.sum()


def moved_centre(centre: Tensor, teacher: Tensor, momentum: float = 0.9) -> Tensor:
    """The centre (K,) moved towards the mean of the teacher's logits (..., K), equation 4 of the paper."""
    return momentum * centre + (1 - momentum) * teacher.float().flatten(0, -2).mean(dim=0)


def entropy(probabilities: Tensor) -> Tensor:
    """Entropy (...) in nats of probabilities (..., K): 0 if one has it all, log K if they are all equal.

    >>> entropy(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([0.0000, 0.6931])
    """
    return torch.special.entr(probabilities).sum(dim=-1)
