"""Who is pushed how hard: the gradient of HWC in a scene with one anchor (section 3.2, Equation 8, erratum LT-1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from lib.figures import style
from lib.figures.forest import forest
from lib.figures.lines import lines
from lib.geometry import Sphere
from lib.losses import label_tree as losses
from lib.taxonomy import Taxonomy
from lib.widgets.board import Board
from lib.widgets.slider import Slider

PLAIN = "no weights"
KINDS = (PLAIN, *losses.FORMS)
"""What the scene is looked at with: ω ≡ 1, and the forms of HWC."""
TITLES = {
    PLAIN: "no weights (SupCon)",
    losses.PRINTED: "as printed: ω·(−d/τ)",
    losses.COSINE: "cosine: ω·cos/τ",
    losses.SHIFTED: "shifted: ω·(d̄ − d)/τ",
    losses.DIVIDED: "divided: −d/(ωτ)",
}


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

    >>> pushes = forces(Scene(), 0.1, 0.5, 0.5, "printed")
    >>> pushes["far"] < pushes["sibling"]
    True
    """
    slope = by_autograd(scene, tau, *((0.0, 0.0) if kind == PLAIN else (alpha, gamma)), kind)
    pull, sibling, far = (slope[place].item() for place in (0, scene.positives, -1))
    return {"pull": -pull, "sibling": sibling, "far": far, "ratio": far / sibling}


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


def by_autograd(scene: Scene, tau: float, alpha: float, gamma: float, kind: str = losses.PRINTED) -> np.ndarray:
    """The same as the derivative of the loss by each s, (n,); of any form."""
    omega, positive = losses.multipliers(scene.rho(), scene.positive, alpha, gamma), scene.positive
    s = scene.similarities(tau, kind).requires_grad_()
    (slope,) = torch.autograd.grad(-losses.scaled(s, omega, positive, kind).log_softmax(-1)[positive].mean(), s)
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


def relative(omegas: Sequence[float], distances: Sequence[float], tau: float) -> pd.DataFrame:
    """Push ω·exp(−ωd/τ) relative to ω = 1, where π is small, and the d from which it is below 1.

    Columns omega, distance, push, crossover: τ·ln ω/(ω − 1).

    >>> relative([2.0], [0.05, 1.0], 0.1).round(6).to_dict("list")
    {'omega': [2.0, 2.0], 'distance': [0.05, 1.0], 'push': [1.213061, 9.1e-05], 'crossover': [0.069315, 0.069315]}
    """
    rows = pd.DataFrame([(omega, d) for omega in omegas for d in distances], columns=["omega", "distance"])
    omega, d = rows["omega"], rows["distance"]
    return rows.assign(
        push=omega * np.exp(-(omega - 1) * d / tau), crossover=[tau * np.log(value) / (value - 1) for value in omega]
    )


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
        loss(z, leaves).backward()
        optimiser.step()
    return losses.distance(Sphere(), centres.detach(), centres.detach()).numpy()


def effects_figure(by_gamma: pd.DataFrame, by_distance: pd.DataFrame) -> Figure:
    """What the weights do to far against sibling: over γ at two distances of the far images, and over that distance.

    by_gamma: of :func:`effects` with two scenes; by_distance: with many, and one γ.
    """
    beside = "siblings at {:g}, far at {:g}".format
    moved = f"siblings at {by_distance['sibling_at'].iloc[0]:g}, γ = {by_distance['gamma'].iloc[0]:g}"
    left = by_gamma.assign(panel=list(map(beside, by_gamma["sibling_at"], by_gamma["far_at"])), x=by_gamma["gamma"])
    rows = pd.concat([left, by_distance.assign(panel=moved, x=by_distance["far_at"])])
    below = dict.fromkeys(left["panel"], "γ, how much the tree weighs") | {moved: "distance of far images (chord)"}
    rows = rows.rename(columns={"effect": "y"}).assign(line=rows["kind"].map(TITLES))
    figure = lines(rows, xlabel=below, ylabel="far : sibling, over that without weights\n(log scale)", height=3.8)
    figure.axes[0].set_yscale("log")
    return figure


def centres_figure(rows: pd.DataFrame) -> Figure:
    """Distances of free centres, siblings and far classes, ± one deviation; rows: of :func:`simulation`."""
    rows = rows.assign(name=rows["kind"] + ", γ = " + rows["gamma"].map("{:g}".format))
    long = rows.rename(columns={"far": "other branch"}).melt("name", ["siblings", "other branch"], "series")
    means = long.groupby(["series", "name"], sort=False)["value"].agg(difference="mean", spread="std").reset_index()
    figure = forest(means, xlabel="mean distance of centres (chord; at most 2)")
    ends = [means["difference"] + side * means["spread"] for side in (-1, 1)]
    figure.axes[0].set_xlim(ends[0].min() - 0.1, ends[1].max() + 0.1)
    return figure


def explorer(alpha: float, gamma: float, tau: float, siblings: float, far: float, margin: float) -> Figure:
    """What the sliders show: pushes of each form on one sibling and one far image, and the hinge of LAM."""
    scene = Scene(sibling_at=siblings, far_at=far)
    pushes = {kind: forces(scene, tau, alpha, gamma, kind) for kind in KINDS}
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(7.0, 3.6), width_ratios=(1.5, 1))
        for number, (part, hatch) in enumerate((("sibling", ""), ("far", "//"))):
            values = [max(push[part], 1e-12) for push in pushes.values()]
            look = {"color": style.PALETTE[number], "hatch": hatch, "edgecolor": "black", "linewidth": 0.4}
            places = np.arange(len(pushes)) + 0.4 * number - 0.2
            axes[0].bar(places, values, 0.38, label=f"push on one {part} image", **look)
        axes[0].set(ylabel="push (share of the gradient)", yscale="log", ylim=(1e-10, 300))
        axes[0].set_yticks([1e-9, 1e-6, 1e-3, 1])
        axes[0].set_xticks(range(len(pushes)), pushes, rotation=25)
        axes[0].legend(loc="upper left")
        gap = np.linspace(-1, 1, 101)
        axes[1].plot(gap, np.maximum(0, margin - gap), color="black")
        axes[1].axvline(margin, color=style.PALETTE[3], linestyle="--", label=f"m = {margin:g}")
        axes[1].set(xlabel="d⁻ − d⁺: wrong − own ancestor", ylabel="LAM of one image (Eq. 11)")
        axes[1].legend()
        plt.close(figure)
    return figure


def _describe(alpha: float, gamma: float, tau: float, siblings: float, far: float, margin: float) -> str:
    """The readout: the pull on one positive, who is pushed harder, and what of that the weights do."""
    scene = Scene(sibling_at=siblings, far_at=far)
    lines = [f"{scene.positives} positives at {scene.near:g}", f"{scene.siblings} siblings at {siblings:g}"]
    lines += [f"{scene.far} far images at {far:g}", ""]
    lines += [f"{'':10}{'pull':>8}{'far : sibling':>15}{'by weights':>12}"]
    for kind in KINDS:
        pushes, by_weights = forces(scene, tau, alpha, gamma, kind), effect(scene, tau, gamma, kind)
        lines.append(f"{kind:10}{pushes['pull']:8.2g}{pushes['ratio']:15.3g}{by_weights:12.3g}")
    return "\n".join([*lines, "", f"LAM rests once d- is {margin:g} more than d+"])


def explore() -> Board:
    """The board; it starts in the middle of the ranges that the paper prints."""
    distances = np.linspace(0.1, 2, 20).round(1).tolist()
    sliders = {
        "alpha": Slider("alpha", np.linspace(0, 2, 21).round(1).tolist(), start=0.5),
        "gamma": Slider("gamma", np.linspace(0, 2, 21).round(1).tolist(), start=0.5),
        "tau": Slider("temperature", np.linspace(0.05, 1, 20).round(2).tolist(), start=0.1),
        "siblings": Slider("distance of siblings", distances, start=1.0),
        "far": Slider("distance of far", distances, start=1.1),
        "margin": Slider("margin m", np.linspace(0, 1, 11).round(1).tolist(), start=0.3),
    }
    return Board(sliders, explorer, _describe, height=380)
