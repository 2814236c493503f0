"""Who is pushed how hard: the gradient of HWC in a scene with one anchor (section 3.2, Equation 8, erratum LT-1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.geometry import Sphere
from lib.losses import label_tree as losses
from lib.taxonomy import Taxonomy

PLAIN = "no weights"
KINDS = (PLAIN, *losses.FORMS)
"""What the scene is looked at with: ω ≡ 1, and the forms of HWC."""


@dataclass(frozen=True)
class Scene:
    """One anchor with positives, siblings (ρ = ½) and images of far classes (ρ = 0), a distance for each kind.

    near, sibling_at, far_at: their distances from the anchor, chords of unit vectors, 0 to 2. positives, siblings, far:
    how many there are. The defaults are a batch of BreakHis, 16 images of each class, where L = 2.
    """

    near: float = 0.3
    sibling_at: float = 1.0
    far_at: float = 1.0
    positives: int = 15
    siblings: int = 48
    far: int = 64

    def similarities(self, tau: float, kind: str) -> Tensor:
        """s of the positive, the siblings and the far classes, as the form has it, (n,)."""
        d = torch.tensor(self._of_each(self.near, self.sibling_at, self.far_at), dtype=torch.float64)
        if kind == losses.COSINE:
            return (1 - d.square() / 2) / tau
        return (d[~self.positive].mean() - d if kind == losses.SHIFTED else -d) / tau

    def rho(self) -> Tensor:
        """ρ of all of them."""
        return torch.tensor(self._of_each(1.0, 0.5, 0.0), dtype=torch.float64)

    @property
    def positive(self) -> Tensor:
        """Which of them are positives."""
        return self.rho() == 1

    def _of_each(self, positive: float, sibling: float, far: float) -> list[float]:
        return [positive] * self.positives + [sibling] * self.siblings + [far] * self.far


def forces(scene: Scene, tau: float, alpha: float, gamma: float, kind: str) -> dict[str, float]:
    """Equation 8 by autograd: pull on one positive, push on one sibling and on one far image, ω π of each.

    Keys pull, sibling, far, ratio (far over sibling).

    >>> found = forces(Scene(), 0.1, 0.5, 0.5, "printed")
    >>> found["far"] < found["sibling"]
    True
    """
    positive = scene.positive
    omega = losses.multipliers(scene.rho(), positive, *((0.0, 0.0) if kind == PLAIN else (alpha, gamma)))
    s = scene.similarities(tau, kind).requires_grad_()
    logits = losses.scaled(s, omega, positive, kind)
    loss = -logits.log_softmax(-1)[positive].mean()
    (slope,) = torch.autograd.grad(loss, s)
    found = {"pull": -slope[0].item(), "sibling": slope[scene.positives].item(), "far": slope[-1].item()}
    return found | {"ratio": found["far"] / found["sibling"]}


def effect(scene: Scene, tau: float, gamma: float, kind: str) -> float:
    """What the weights do: push on a far image over push on a sibling, over the same ratio at γ = 0.

    α does not enter: it weighs the positives, which are the same for both. Above 1 the weights do what the text says.

    >>> at_one_distance, further = Scene(), Scene(far_at=1.2)
    >>> [round(effect(scene, 0.1, 0.5, "shifted"), 2) for scene in (at_one_distance, further)]
    [1.2, 0.59]
    """
    weighted, even = (forces(scene, tau, 0.0, value, kind)["ratio"] for value in (gamma, 0.0))
    return weighted / even


def equation_8(scene: Scene, tau: float, alpha: float, gamma: float) -> np.ndarray:
    """Equation 8 as it is printed, the mean over j of −a·1[q = j] + ω_q π_q, for all q of the scene."""
    omega = losses.multipliers(scene.rho(), scene.positive, alpha, gamma)
    pi = (omega * scene.similarities(tau, losses.PRINTED)).softmax(-1)
    return (omega * pi - omega * scene.positive / scene.positives).numpy()


def by_autograd(scene: Scene, tau: float, alpha: float, gamma: float) -> np.ndarray:
    """The same as the derivative of the loss by each s."""
    omega = losses.multipliers(scene.rho(), scene.positive, alpha, gamma)
    s = scene.similarities(tau, losses.PRINTED).requires_grad_()
    (slope,) = torch.autograd.grad(-(omega * s).log_softmax(-1)[scene.positive].mean(), s)
    return slope.numpy()


def effects(scenes: Sequence[Scene], tau: float, gammas: Sequence[float]) -> pd.DataFrame:
    """:func:`effect` of each form in each scene: columns kind, sibling_at, far_at, gamma, effect."""
    rows = [
        (kind, scene.sibling_at, scene.far_at, gamma, effect(scene, tau, gamma, kind))
        for kind in KINDS
        for scene in scenes
        for gamma in gammas
    ]
    return pd.DataFrame(rows, columns=["kind", "sibling_at", "far_at", "gamma", "effect"])


def turning_points(rows: pd.DataFrame) -> dict[str, float]:
    """Of each form the distance of far images at which its weights do nothing, the effect is 1; NaN without one.

    rows: of :func:`effects`, one ``sibling_at`` and one γ; between two distances the logarithm is a straight line.
    """
    found = {}
    for kind, part in rows[rows["kind"] != PLAIN].groupby("kind", sort=False):
        d, log = part["far_at"].to_numpy(), np.log(part["effect"].to_numpy())
        (at,) = np.nonzero(np.sign(log[:-1]) != np.sign(log[1:]))
        found[kind] = d[at[0]] - log[at[0]] * np.diff(d)[at[0]] / np.diff(log)[at[0]] if len(at) else np.nan
    return found


def relative(omegas: Sequence[float], distances: Sequence[float], tau: float) -> pd.DataFrame:
    """Push ω·exp(−ωd/τ) relative to ω = 1, where π is small, and the d from which it is below 1.

    Columns omega, distance, push, crossover: τ·ln ω/(ω − 1).

    >>> relative([2.0], [0.05, 1.0], 0.1).round(6).to_dict("list")
    {'omega': [2.0, 2.0], 'distance': [0.05, 1.0], 'push': [1.213061, 9.1e-05], 'crossover': [0.069315, 0.069315]}
    """
    rows = [
        {
            "omega": omega,
            "distance": d,
            "push": omega * np.exp(-(omega - 1) * d / tau),
            "crossover": tau * np.log(omega) / (omega - 1),
        }
        for omega in omegas
        for d in distances
    ]
    return pd.DataFrame(rows)


def simulation(
    tree: Taxonomy, kinds: Sequence[tuple[str, float]], *, tau: float, alpha: float, n_seeds: int, steps: int = 100
) -> pd.DataFrame:
    """Free centres of the leaves on a sphere, moved by HWC alone: how far apart do they come to lie?

    Every step draws four noisy samples of each centre, as images of it. kinds: form and γ.

    Returns:
        Columns kind, gamma, seed, siblings, far: mean chord between centres of one group, and of two.
    """
    lca, other = tree.lca_depth(), ~np.eye(len(tree.leaves), dtype=bool)
    rows = []
    for kind, gamma in kinds:
        for seed in range(n_seeds):
            d = _centres(tree, kind, gamma, tau, alpha, seed, steps)
            apart = {"siblings": d[other & (lca > 0)].mean(), "far": d[lca == 0].mean()}
            rows.append({"kind": kind, "gamma": gamma, "seed": seed} | apart)
    return pd.DataFrame(rows)


def _centres(tree: Taxonomy, kind: str, gamma: float, tau: float, alpha: float, seed: int, steps: int) -> np.ndarray:
    """The distances of the centres after the last step."""
    generator = torch.Generator().manual_seed(seed)
    n, of_each, dim = len(tree.leaves), 4, 32
    centres = torch.randn(n, dim, generator=generator).requires_grad_()
    optimiser = torch.optim.Adam([centres], lr=0.05, fused=True)
    weights = {"alpha": 0.0, "gamma": 0.0} if kind == PLAIN else {"alpha": alpha, "gamma": gamma, "form": kind}
    loss = losses.HierarchyWeighted(tree, Sphere(), tau, **weights)
    leaves = torch.arange(n).repeat_interleave(of_each)
    for _ in range(steps):
        noise = 0.15 * torch.randn(n * of_each, dim, generator=generator)
        z = torch.nn.functional.normalize(centres, dim=-1)[leaves] + noise
        optimiser.zero_grad()
        loss(z, leaves, torch.arange(len(leaves))).backward()
        optimiser.step()
    return losses.distance(Sphere(), centres.detach(), centres.detach()).numpy()
