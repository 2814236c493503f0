"""Contrastive losses that know a label tree (Climbing the Label Tree, Section 3).

The margin between its branches is :mod:`lib.losses.level_margin`.

A batch is images, perhaps in two or more views: embeddings ``z: (N, d)``, points of a geometry; ``labels: (N,)``, the
leaf of each row as a number; ``images: (N,)``, which rows are views of one image, for SimCLR alone, as views of an
image share its leaf. With ρ of Equation 4, 1 for the same leaf and 0 for leaves that meet at the root, a pair of rows
i and k has

* a similarity s = −d/τ (Equation 1), d the chord of unit vectors on the sphere, or the distance of the ball; or the
  cosine over τ, which Sections 3.2 and 4.3 name in its place (LT-10);
* a multiplier ω: a = 1 + αρ where k is a positive of i, b = 1 + γ(1 − ρ) where it is not (Equations 5 and 6).

**As printed, ω·s pushes unrelated classes less than siblings (LT-1).** s is not positive: a larger ω makes the logit
of a far class *smaller*, the softmax forgets it, and the push ω·π vanishes with it. Without multipliers a softmax does
not see where similarity is zero; with them that is what decides. Three forms do what the text says:

* cosine: zero is a right angle. A far class is pushed harder as long as its cosine is not much below that (above −0.07
  at γ = 0.5 and τ = 0.1), and less hard beyond;
* shifted: zero is the mean distance d̄ of the batch's negatives, s = (d̄ − d)/τ, in any geometry, and ω ≡ 1 is exactly
  SupCon's softmax. What is nearer than that is pushed harder the further it is in the tree, and less hard beyond;
* divided: negatives have −d/(τb). Their logits all rise against those of the positives. The gradient has the factor
  1/b besides, which outweighs that for what is nearer than about 1.4τ (γ = 0.5).
"""

import math

import torch
from torch import Tensor, nn

from lib import checks
from lib.errors import InputError
from lib.geometry import Euclidean, Geometry, Sphere
from lib.losses.batch import check
from lib.taxonomy import Taxonomy

ALL, BY_ROLE = "all", "by role"
CONSTANTS = (ALL, BY_ROLE)
"""Which pairs share an average multiplier, controls without a tree: all alike; positives and negatives apart."""
LARGEST = 1e6
"""Of α and γ, whose printed range ends at 1. From about 1e37 on a logit is beyond float32, and the loss NaN."""
PRINTED, COSINE, SHIFTED, DIVIDED = "printed", "cosine", "shifted", "divided"
FORMS = (PRINTED, COSINE, SHIFTED, DIVIDED)
"""How a multiplier acts: on −d/τ; on the cosine over τ; on (d̄ − d)/τ; on −d/τ, where negatives are divided by it.

d̄ is the mean distance of the batch's negatives. (Of all pairs, positives too, it would be smaller: where these are
many, every negative would lie beyond it, and a larger multiplier would weaken every push, LT-1.)
"""


def distance(geometry: Geometry, x: Tensor, y: Tensor) -> Tensor:
    """d of Equation 1, all pairs of ``x: (n, d)`` and ``y: (m, d)``: chords of unit vectors on the sphere.

    Elsewhere the distance of the geometry. Prototypes, averages, are brought to unit length, as Equation 1 has it.

    >>> distance(Sphere(), torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 0.5], [-3.0, 0.0]])).round(decimals=3)
    tensor([[1.4140, 2.0000]])
    """
    if not isinstance(geometry, Sphere):
        return geometry.pairwise(x, y)
    one_set, x = x is y, geometry.project(x)
    return Euclidean().pairwise(x, x if one_set else geometry.project(y))


def check_batch(z: Tensor, labels: Tensor, n_leaves: int) -> None:
    """Refuse a batch (see the module) without rows, of another shape than (N, d) and (N,), and labels of no leaf."""
    if z.ndim != 2:
        raise InputError(f"embeddings have the shape {tuple(z.shape)}: a label tree takes one batch at a time, (N, d)")
    check(z, labels, n_leaves, f"the tree has {n_leaves}")


def multipliers(rho: Tensor, positive: Tensor, alpha: float, gamma: float, most: float | None = None) -> Tensor:
    """ω of Equations 5 and 6 for pairs with ``rho`` and ``positive``, both (N, N).

    most: α_max of Section 3.4, which cuts ω at 1 + α_max; None for no cut. From max(α, γ) on it never acts.

    >>> rho, positive = torch.tensor([1.0, 0.5, 0.0]), torch.tensor([True, False, False])
    >>> multipliers(rho, positive, alpha=0.2, gamma=1.0), multipliers(rho, positive, 0.2, 1.0, most=0.2)
    (tensor([1.2000, 1.5000, 2.0000]), tensor([1.2000, 1.2000, 1.2000]))
    """
    omega = torch.where(positive, 1 + alpha * rho, 1 + gamma * (1 - rho))
    return omega if most is None else omega.clamp(1, 1 + most)


def cross_entropy(logits: Tensor, weights: Tensor) -> Tensor:
    """Σ wᵢⱼ·(−log softmax over k ≠ i of the logits)ᵢⱼ / Σ wᵢⱼ, for ``logits`` and ``weights`` ≥ 0 of all pairs (N, N).

    A row is no pair with itself. Weights of 1 for positives give Equation 7. InputError if no pair has a weight; on a
    GPU, where weights are not looked at, the loss is NaN then.
    """
    weights = weights.clone().fill_diagonal_(0)
    if checks.at_hand(weights) and not weights.any():
        raise InputError("no pair of the batch is a positive: hand in two views of every image, or more images a class")
    itself = torch.zeros_like(logits, requires_grad=False).fill_diagonal_(-torch.inf)
    log_share = logits - (logits + itself).logsumexp(-1, keepdim=True)  # a sum is faster than a mask
    return -(weights * log_share).sum() / weights.sum()


class Contrastive(nn.Module):
    """What the losses over pairs share: similarity, the tree, and the average of Equation 7.

    Args:
        tree: its leaves are the classes, by :meth:`lib.taxonomy.Taxonomy.codes`.
        geometry: where embeddings live; ``Sphere()`` for the paper's Euclidean rows, which scale to unit length.
        temperature: τ.
        cosine: similarity is the cosine over τ, on the sphere alone.
    """

    rho: Tensor

    def __init__(
        self, tree: Taxonomy, geometry: Geometry | None = None, temperature: float = 0.1, *, cosine: bool = False
    ) -> None:
        super().__init__()
        self.geometry = Sphere() if geometry is None else geometry
        checks.values(geometry=self.geometry, temperature=temperature)
        checks.switch("cosine", cosine)
        if cosine and not isinstance(self.geometry, Sphere):
            raise InputError(f"a cosine needs unit vectors, not points of {self.geometry}: choose the sphere")
        self.temperature, self.cosine = temperature, cosine
        self.register_buffer("rho", torch.as_tensor(tree.rho()), persistent=False)  # float64, as embeddings may be

    def forward(self, z: Tensor, labels: Tensor, *, images: Tensor | None = None) -> Tensor:
        """The loss of a batch, a scalar; see the module for ``z``, ``labels`` and ``images``.

        Raises InputError for a batch that does not fit (:func:`check_batch`), and for one without a positive.
        """
        check_batch(z, labels, len(self.rho))
        rho = self.nearness(labels, images).to(z.dtype)
        return cross_entropy(self.logits(self.similarity(z), rho), self.weights(rho).to(z.dtype))

    def nearness(self, labels: Tensor, images: Tensor | None) -> Tensor:
        """ρ of all pairs, (N, N)."""
        return self.rho[labels[:, None], labels]

    def similarity(self, z: Tensor) -> Tensor:
        """s of all pairs, (N, N)."""
        if self.cosine:
            z = Sphere().project(z)
            return z @ z.mT / self.temperature
        return -distance(self.geometry, z, z) / self.temperature

    def logits(self, s: Tensor, rho: Tensor) -> Tensor:
        """What the softmax sees of the similarities."""
        return s

    def weights(self, rho: Tensor) -> Tensor:
        """How much each pair counts outside of the softmax: positives alone, all alike."""
        return rho == 1


class SimCLR(Contrastive):
    """The other views of an image are its positives; labels are not used, so that a call needs ``images``."""

    def nearness(self, labels: Tensor, images: Tensor | None) -> Tensor:
        if images is None or images.shape != labels.shape:
            raise InputError("SimCLR pairs views of one image: hand in images=, (N,), the image of each row")
        return images[:, None] == images


class SupCon(Contrastive):
    """Views of an image and images of its leaf are positives, averaged for each row first (Khosla et al. 2020).

    Equation 7 with α = γ = 0 adds all positives up first, so that rows of frequent classes count more (LT-10).
    """

    def weights(self, rho: Tensor) -> Tensor:
        positive = (rho == 1).to(rho.dtype).fill_diagonal_(0)
        return positive / positive.sum(-1, keepdim=True).clamp_min(1)  # a row without a positive has weight 0 already


class OutsideSoftmax(Contrastive):
    """Every pair with a common ancestor below the root is a positive that counts ρ, outside of the softmax.

    "Hierarchical Contrastive" of Section 4.3 "multiplies per-pair losses by tree similarity". Over the positives of
    Section 3.2 alone that would be SupCon: all of them have ρ = 1 (LT-2).
    """

    def weights(self, rho: Tensor) -> Tensor:
        return rho


class HierarchyWeighted(Contrastive):
    """HWC, Equations 5 to 7: multipliers of the pairs inside of the softmax.

    Args:
        tree, geometry, temperature: as in :class:`Contrastive`.
        alpha, gamma: α and γ, 0 to :data:`LARGEST`.
        form: one of :data:`FORMS`.
        most: α_max, see :func:`multipliers`.
        constant: put an average of the batch in the place of every ω: "all" for ω̄ of all pairs, the control of Section
            3.2 and a mere temperature; "by role" for that of the positives and that of the negatives, which is HWC
            without its tree (and HWC itself where the tree is flat); None for ω of each pair.

    Raises InputError for a value without meaning, and cosine logits in another space than the sphere.
    """

    def __init__(
        self,
        tree: Taxonomy,
        geometry: Geometry | None = None,
        temperature: float = 0.1,
        *,
        alpha: float = 0.5,
        gamma: float = 0.5,
        form: str = SHIFTED,
        most: float | None = None,
        constant: str | None = None,
    ) -> None:
        if form not in FORMS:
            raise InputError(f"form = {form!r} is unknown: choose one of {', '.join(FORMS)}")
        super().__init__(tree, geometry, temperature, cosine=form == COSINE)
        for name, value in (("alpha", alpha), ("gamma", gamma)):
            checks.number(name, value, 0, LARGEST)
        if constant not in (None, *CONSTANTS):
            raise InputError(f"constant = {constant!r} is unknown: choose one of {', '.join(CONSTANTS)}, or None")
        if constant == ALL and form == DIVIDED:
            raise InputError(
                "constant = 'all' is a temperature, and form = 'divided' would have two: choose another form"
            )
        if most is not None:
            checks.not_negative("most", most)
        self.alpha, self.gamma, self.form, self.most, self.constant = alpha, gamma, form, most, constant

    def logits(self, s: Tensor, rho: Tensor) -> Tensor:
        positive = rho == 1
        omega = multipliers(rho, positive, self.alpha, self.gamma, self.most)
        if self.constant == ALL:
            omega = between_others(omega).expand_as(omega)
        if self.constant == BY_ROLE:  # ω of positives is 1 + α already
            omega = torch.where(positive, omega, mean_of(omega, ~positive))
        if self.form == SHIFTED:
            s = s - mean_of(s.detach(), ~positive)
        return scaled(s, omega, positive, self.form)


def mean_of(values: Tensor, chosen: Tensor) -> Tensor:
    """The mean of ``values`` where ``chosen``, both (N, N); 0 where nothing is."""
    return (values * chosen).sum() / chosen.sum().clamp_min(1)


def between_others(values: Tensor) -> Tensor:
    """The mean of ``values: (N, N)`` over the pairs of a row with another."""
    return (values.sum() - values.diagonal().sum()) / (len(values) * (len(values) - 1))


def scaled(s: Tensor, omega: Tensor, positive: Tensor, form: str) -> Tensor:
    """ω·s; where ``form`` is "divided", s/ω for negatives."""
    return torch.where(positive, omega * s, s / omega) if form == DIVIDED else omega * s


class HierarchicalCrossEntropy(nn.Module):
    """HXE (Bertinetto et al. 2020): −Σ λ log p(node | parent) down the path to the leaf, λ = exp(−decay·(level − 1)).

    Level 1, the coarsest, weighs 1, and each level below it less: α "controls the extent to which information is
    discounted down the hierarchy". They write exp(−αh(C)) and call h(C) a height; it is read as the depth here, as in
    that sentence and in their code (LT-20), whose weights are these times a constant. A leaf that ends early has fewer
    terms.

    A linear layer, thrown away afterwards, gives the probabilities of leaves; a node has the sum of those below it.

    Args:
        tree: see :class:`Contrastive`.
        dim: length of the embeddings; points of the ball are read in the tangent space at the origin.
        geometry: as in :class:`Contrastive`.
        decay: α of their paper, which has 0.1 to 0.6.
        generator: source of the initial weights.
    """

    def __init__(
        self,
        tree: Taxonomy,
        dim: int,
        geometry: Geometry | None = None,
        *,
        decay: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.geometry = Sphere() if geometry is None else geometry
        checks.values(dim_out=dim, geometry=self.geometry)
        checks.not_negative("decay", decay)
        self.linear = nn.Linear(dim, len(tree.leaves))
        nn.init.uniform_(self.linear.weight, -(dim**-0.5), dim**-0.5, generator=generator)
        nn.init.zeros_(self.linear.bias)
        self.decay, self.levels = decay, range(1, tree.depth + 1)
        for level in self.levels:
            self.register_buffer(f"ancestors_{level}", torch.as_tensor(tree.ancestor_codes(level)), persistent=False)

    def forward(self, z: Tensor, labels: Tensor, *, images: Tensor | None = None) -> Tensor:
        """The mean loss of ``z: (N, d)``; raises InputError for a batch that does not fit."""
        check_batch(z, labels, self.linear.out_features)
        log_p = self.linear(self.geometry.log0(z)).log_softmax(-1)
        total, above = 0, torch.zeros_like(log_p[:, 0])
        for level in self.levels:
            ancestors = self.get_buffer(f"ancestors_{level}")
            below = ancestors[labels][:, None] == ancestors
            node = log_p.masked_fill(~below, -torch.inf).logsumexp(-1)  # of a leaf that ended above: as before
            total = total - math.exp(-self.decay * (level - 1)) * (node - above).mean()
            above = node
        return total


class Sum(nn.Module):
    """Equation 12: a loss over pairs plus ``weight`` (λ_LAM) times a margin; either may be left out as None."""

    def __init__(self, pairs: nn.Module | None, margin: nn.Module | None = None, weight: float = 1.0) -> None:
        super().__init__()
        checks.values(margin_weight=weight)
        if pairs is None and margin is None:
            raise InputError("a sum of no losses teaches nothing: give a loss over pairs, a margin, or both")
        self.pairs, self.margin, self.weight = pairs, margin, weight

    def forward(self, z: Tensor, labels: Tensor, *, images: Tensor | None = None) -> Tensor:
        """The loss of a batch, a scalar."""
        total = z.new_zeros(())
        if self.pairs is not None:
            total = total + self.pairs(z, labels, images=images)
        if self.margin is not None:
            total = total + self.weight * self.margin(z, labels, images=images)
        return total
