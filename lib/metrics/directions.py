"""How far apart features are, and how many directions they use: a network that collapses loses either."""

import torch
from torch import Tensor
from torch.nn import functional


def spread(features: Tensor) -> Tensor:
    """How far apart features (n, d) are: the standard deviation of a number of the unit vectors, times sqrt(d).

    0 if all are the same, 1 if they point into all directions alike (Chen and He 2021, section 4.1).
    """
    unit = functional.normalize(features.float(), dim=-1)
    return unit.std(dim=0, correction=0).mean() * features.shape[-1] ** 0.5


def spectrum(features: Tensor) -> Tensor:
    """The share of the variance of features (n, d) along each principal direction, the largest first; NaN without any.

    >>> spectrum(torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
    tensor([0.9000, 0.1000], dtype=torch.float64)
    """
    centred = features.double() - features.double().mean(dim=0)
    variances = torch.linalg.svdvals(centred).square()
    return variances / variances.sum()


def effective_rank(features: Tensor) -> Tensor:
    """How many directions features (n, d) use: exp of the entropy of their :func:`spectrum` (Roy and Vetterli 2007).

    All of them if the variance is the same along each, 1 if the features lie on a line. Features can spread and still
    use few directions: a collapse of dimensions, which :func:`spread` does not see.
    """
    return torch.special.entr(spectrum(features)).sum(dim=-1).exp()
