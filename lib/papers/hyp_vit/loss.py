"""Numbers about the loss of Hyp-ViT on a small batch: what the softmax sees, how far points reach, what is learnt from.

Outputs ``e`` of a head are plain vectors. :func:`place` brings them into the ball as
:class:`lib.heads.hyp_vit.ClippedProjection` does behind its linear map; c = 0 is the flat plane.
"""

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from torch import Tensor

from lib.geometry import PoincareBall, clip
from lib.losses.hyp_vit import PairwiseCrossEntropy

CLASSES = "ABCD"
SEED = 2569
"""Of a small batch whose first image, :data:`ANCHOR`, wavers between its positive and two others."""
ANCHOR = 0
KINDS = ("no clipping", "boundary clip only", "feature clipping", "no clipping, Riemannian gradient")
"""Rows of :func:`gradient`."""


def small_batch(seed: int = SEED) -> tuple[Tensor, Tensor]:
    """Outputs (8, 2) of a head with two numbers, in float64, and their classes (8,): A1, A2, B1, B2, C1, ...

    Every class has a direction, from which its two images turn by about 35 degrees; lengths are from 0.4 to 3.2.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(len(CLASSES)).repeat_interleave(2)
    turned = math.radians(35) * torch.randn(len(labels), generator=generator, dtype=torch.float64)
    length = 0.4 + 2.8 * torch.rand(len(labels), generator=generator, dtype=torch.float64)
    angle = 2 * math.pi * (labels / len(CLASSES) + 0.06) + turned
    return length[:, None] * torch.stack([angle.cos(), angle.sin()], dim=-1), labels


def sorted_batch(n: int, dim: int, spread: float = 0.5, seed: int = 0) -> Tensor:
    """Outputs (2n, dim), in float64, whose classes are told apart already; ``spread``: within over between classes."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(n, dim, generator=generator, dtype=torch.float64).repeat_interleave(2, dim=0)
    return centres + spread * torch.randn(2 * n, dim, generator=generator, dtype=torch.float64)


def names(labels: Tensor) -> list[str]:
    """Names of images from their classes ``labels: (n,)``, the two of a class one after the other.

    >>> names(torch.tensor([0, 0, 1, 1]))
    ['A1', 'A2', 'B1', 'B2']
    """
    return [f"{CLASSES[label]}{place % 2 + 1}" for place, label in enumerate(labels.tolist())]


def place(e: Tensor, c: float, clip_radius: float | None = None) -> Tensor:
    """Points (..., d) in the ball of curvature −c from outputs ``e: (..., d)``: clipped (Equation 7), exp0, projected.

    >>> place(torch.tensor([[3.0, 4.0]]), c=0.1, clip_radius=2.3).norm() * 0.1**0.5
    tensor(0.6214)
    """
    ball = PoincareBall(c)
    return ball.project(ball.exp0(e if clip_radius is None else clip(e, clip_radius)))


def softmax(distance: Tensor, temperature: float) -> Tensor:
    """Shares (n, n) that the softmax of Equation 5 gives each image k ≠ i, for anchor i; ``distance: (n, n)``.

    >>> softmax(torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 3.0], [1.0, 3.0, 0.0]]), temperature=2.0).round(decimals=2)
    tensor([[0.0000, 0.5000, 0.5000],
            [0.7300, 0.0000, 0.2700],
            [0.7300, 0.2700, 0.0000]])
    """
    self_pairs = torch.eye(len(distance), dtype=torch.bool)
    return (-distance / temperature).masked_fill(self_pairs, -math.inf).softmax(-1)


def overview(e: Tensor, labels: Tensor, c: float, clip_radius: float, temperature: float) -> pd.DataFrame:
    """What becomes of each output of a batch ``e: (n, 2)``, two of a class one after the other.

    Columns image, e_1, e_2, length (of e), z_1, z_2, norm (percent of the ball's radius), positive (the softmax's share
    of it, percent).
    """
    z = place(e, c, clip_radius)
    share = softmax(PoincareBall(c).pairwise(z, z), temperature)
    rows = torch.arange(len(e))
    columns = [*e.mT, e.norm(dim=-1), *z.mT, 100 * c**0.5 * z.norm(dim=-1), 100 * share[rows, rows ^ 1]]
    frame = pd.DataFrame(dict(zip(["e_1", "e_2", "length", "z_1", "z_2", "norm", "positive"], columns, strict=True)))
    frame.insert(0, "image", names(labels))
    return frame


def shares(distances: Mapping[str, Tensor], temperatures: Sequence[float], labels: Tensor, anchor: int) -> pd.DataFrame:
    """What the softmax of one anchor sees, for every distance (name → (n, n)) and temperature.

    Columns distance, temperature, image, positive (of the anchor's class), apart (from the anchor), share (percent).
    """
    others = [k for k in range(len(labels)) if k != anchor]
    rows = [
        (name, tau, names(labels)[k], bool(labels[k] == labels[anchor]), apart[anchor, k].item(), 100 * share[k].item())
        for name, apart in distances.items()
        for tau in temperatures
        for share in [softmax(apart, tau)[anchor]]
        for k in others
    ]
    return pd.DataFrame(rows, columns=["distance", "temperature", "image", "positive", "apart", "share"])


def softmax_of_anchor(e: Tensor, labels: Tensor, c: float, clip_radius: float, temperature: float) -> pd.DataFrame:
    """:func:`shares` of :data:`ANCHOR` by D_hyp, for outputs ``e: (n, 2)`` of a head."""
    z = place(e, c, clip_radius)
    return shares({"D_hyp": PoincareBall(c).pairwise(z, z)}, [temperature], labels, ANCHOR)


def whole_batch(distance: Tensor, d: int, temperature: float) -> Tensor:
    """The loss if the sum of Equation 5 went over the whole batch, K = N·d, for d > 2 as well.

    ``distance: (N·d, N·d)``, the d images of a class one after the other. Summed as
    :func:`lib.losses.hyp_vit.pairwise_cross_entropy` sums, so that the two differ in what is below the line only.
    """
    n = len(distance) // d
    label = torch.arange(n).repeat_interleave(d)
    pairs = (label[:, None] == label) & ~torch.eye(n * d, dtype=torch.bool)
    return -softmax(distance, temperature).log()[pairs].sum() / n


def reach(c: float, r: float) -> float:
    """How far out a feature of norm r gets (section 2.4), 2r from the centre, in percent of the radius (HV-9).

    >>> round(reach(0.1, 2.3), 1)
    62.1
    """
    return 100 * math.tanh(math.sqrt(c) * r)


def boundary(margin: float, c: float) -> float:
    """The norm of a head's output from which on a boundary clip to (1 − margin)/√c acts: artanh(1 − margin)/√c."""
    return math.atanh(1 - margin) / math.sqrt(c)


def gradient(
    e: Tensor, norms: Sequence[float], c: float, temperature: float, clip_radius: float, margin: float
) -> pd.DataFrame:
    """The gradient of the loss with respect to the outputs of a head, all brought to one norm, for each of the norms.

    Args:
        e: (n, d) outputs, of which the directions count; two of each class, one after the other.
        norms: what they are brought to.
        c, temperature, clip_radius: of the loss and the head.
        margin: the boundary clip keeps √c‖z‖ ≤ 1 − margin.

    Returns:
        Columns kind (:data:`KINDS`), norm, loss, along (root mean square over the outputs of the part of the gradient
        along the output), sideways (of the rest), log10_total (of the norm of the whole gradient). For a Riemannian
        gradient, that at a point of the ball is multiplied by (1 − c‖z‖²)²: 4 times what optimisers of such points do.
    """
    way = torch.nn.functional.normalize(e, dim=-1)
    rows = []
    for kind in KINDS:
        for norm in norms:
            loss, slope = _slope(norm * way, kind, c, temperature, clip_radius, margin)
            along = (slope * way).sum(-1)
            sideways = (slope - along[:, None] * way).norm(dim=-1)
            parts = [part.square().mean().sqrt().item() for part in (along, sideways)]
            rows.append((kind, norm, loss.item(), *parts, slope.norm().log10().item()))
    return pd.DataFrame(rows, columns=["kind", "norm", "loss", "along", "sideways", "log10_total"])


def _slope(
    e: Tensor, kind: str, c: float, temperature: float, clip_radius: float, margin: float
) -> tuple[Tensor, Tensor]:
    """Loss, and its gradient (n, d) in the outputs ``e: (n, d)``."""
    ball, e = PoincareBall(c), e.clone().requires_grad_()
    z = ball.exp0(clip(e, clip_radius) if kind == "feature clipping" else e)
    if kind == "boundary clip only":
        z = ball.project(z, margin)
    loss = PairwiseCrossEntropy(ball, temperature)(z, torch.arange(len(e) // 2).repeat_interleave(2))
    (at_point,) = torch.autograd.grad(loss, z, retain_graph=True)
    if kind.endswith("Riemannian gradient"):
        at_point = at_point * (2 / ball.conformal_factor(z.detach())).square()[:, None]
    return loss.detach(), torch.autograd.grad(z, e, at_point)[0]
