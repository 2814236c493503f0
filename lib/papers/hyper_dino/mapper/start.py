"""Where a mapper begins and where that leaves it: the printed start beside one inside the ball (erratum HD-17)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from lib.heads import HyperbolicMapper
from lib.losses.hyper_dino import contrastive
from lib.papers.hyper_dino.recipes import recipes
from lib.training import experiment
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.methods import Fitted, at_rim, of_recipes
from lib.training.recipes import Recipe
from lib.training.splits import Split

PRINTED = "as printed"
NORMS = (0.0, 0.1, 0.3, 0.76)
"""Start norms to choose from: as printed, and three inside the ball; tanh(1) = 0.76 is a tangent vector of length 1."""

Arms = Mapping[str, Mapping[str, Sequence[Fitted]]]
"""Start → method → the head fitted on each split."""


def arm(norm: float) -> str:
    """What the heads are called that begin at the median ``norm``; 0 is the printed way.

    >>> arm(0), arm(0.3)
    ('as printed', 'start norm 0.3')
    """
    return f"start norm {norm:g}" if norm else PRINTED


def heads(
    dim: int, lengths: Sequence[int | str], nca_lengths: Sequence[int], dim_out: int, longest: int
) -> list[Recipe]:
    """Both families of Table 1 from features of ``dim`` numbers: scaled, PCA and NCA; arguments as `recipes`.

    >>> [recipe.name for recipe in heads(8, ["full"], [4], dim_out=2, longest=6)][::2]
    ['Hyper-DINO(8 scaled, 2)', 'Hyper-DINO(PCA(6), 2)', 'Hyper-DINO(NCA(4), 2)']
    """
    todo = recipes(dim, lengths, dim_out, longest, ["PCA"]) + recipes(dim, nca_lengths, dim_out, longest, ["NCA"])
    return [recipe for recipe in dict.fromkeys(todo) if recipe.dim_out]


def contrasts(todo: Sequence[Recipe]) -> dict[str, list[tuple[str, str]]]:
    """Which heads the paper compares: both families from one input (HD-5), all components with scaled features (HD-6).

    >>> contrasts(heads(8, [4, "full"], [], dim_out=2, longest=8))["rotated"]
    [('Hyper-DINO(PCA(8), 2)', 'Hyper-DINO(8 scaled, 2)'), ('Hyper-DINO(PCA(8), 8)', 'Hyper-DINO(8 scaled, 8)')]
    """
    by_input: dict[tuple[str, int], list[str]] = {}
    for recipe in todo:
        by_input.setdefault((recipe.source, recipe.dim_in), []).append(recipe.name)
    scaled, longest = (max(key for key in by_input if key[0] == source) for source in ("scaled", "PCA"))
    return {
        "families": [tuple(names) for names in by_input.values() if len(names) == 2],
        "rotated": list(zip(by_input[longest], by_input[scaled], strict=False)),
    }


def fit(
    x: np.ndarray,
    labels: np.ndarray,
    todo: Sequence[Recipe],
    settings: Settings,
    schedule: Schedule,
    where: Sequence[Split],
    norms: Sequence[float],
    *,
    workers: int = -1,
) -> dict[str, dict[str, list[Fitted]]]:
    """Train every head from every start; the seeds of a head are one stack, as few are trained one by one so slowly.

    Args:
        x: (n, dim) features. labels: (n,).
        todo: the heads.
        settings, schedule: of all; ``start_norm`` is replaced.
        where: a split, and repeats of it with other seeds.
        norms: at which the untrained heads begin; 0 is the printed way.
        workers: as in :func:`lib.training.sweep.fit`.
    """
    together = [replace(split, repeat=0) for split in where]
    found = {}
    for norm in norms:
        methods = of_recipes(todo, replace(settings, start_norm=norm), schedule)
        fitted = experiment.fit(x, labels, methods, together, workers=workers, what=arm(norm))
        found[arm(norm)] = {
            name: [replace(one, split=split) for one, split in zip(several, where, strict=True)]
            for name, several in fitted.items()
        }
    return found


def length(rms: float, dim_in: int, dim_out: int, hidden: int) -> float:
    """The expected length of an untrained mapper's output e, before ``exp0``, by its initial weights.

    Weights and biases are uniform in ±1/√(their layer's inputs), so of variance 1/(3·inputs). The hidden numbers have
    mean square (rms² + 1/dim_in)/6 after the ReLU, the output numbers (that + 1/hidden)/3.

    Args:
        rms: root mean square of the numbers that go in.
        dim_in, dim_out, hidden: numbers in, out and between.

    >>> round(length(1.0, 1280, 1280, 256), 1)
    8.5
    """
    return float(np.sqrt(dim_out / 3 * ((rms**2 + 1 / dim_in) / 6 + 1 / hidden)))


def courses(fitted: Arms, x: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    """Where the training images of every head lie before and after its training, and what its first batch asks.

    Args:
        fitted: of one split, and of repeats of it with other seeds, which are pooled.
        x: (n, dim) features of all images. labels: (n,).

    Returns:
        One row per start and head: start, method; before_low, before, before_high and the same after (norms of the
        embeddings: 5 %, median, 95 %); rim_before (percent at the rim); held and apart (:func:`first_gradient`).
    """
    lines = []
    for begin, by_name in fitted.items():
        for name, several in by_name.items():
            rows = several[0].reduction(x[several[0].split.labelled])
            pairs = [(one, untrained(one, rows)) for one in several]
            norms = {"before": [new for _, new in pairs], "after": [one.network for one in several]}
            line = {"start": begin, "method": name}
            for when, networks in norms.items():
                pooled = torch.cat([_norms(several[0], network, rows) for network in networks])
                low, median, high = pooled.quantile(torch.tensor([0.05, 0.5, 0.95])).tolist()
                line |= {f"{when}_low": low, when: median, f"{when}_high": high}
            line["rim_before"] = np.mean([at_rim(one.method.head, new, rows) for one, new in pairs])
            asked = pd.DataFrame([first_gradient(one, new, rows, labels) for one, new in pairs])
            lines.append(line | asked.mean().to_dict())
    return pd.DataFrame(lines)


def untrained(one: Fitted, rows: np.ndarray) -> HyperbolicMapper:
    """The network of ``one`` as it was before its training on the images ``rows: (m, dim_in)``."""
    network = one.method.head.make(one.method.recipe, one.split.seed)
    one.method.head.start(network, rows)
    return network


@torch.inference_mode()
def _norms(one: Fitted, network: HyperbolicMapper, rows: np.ndarray) -> torch.Tensor:
    return one.method.head.embed(network, torch.from_numpy(rows)).norm(dim=-1)


def first_gradient(one: Fitted, network: HyperbolicMapper, rows: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """What the loss of the first batch asks of a ``network``.

    Args:
        one: whose loss, seed and images these are.
        network: untrained.
        rows: (m, dim_in), its reduced training images.
        labels: (n,) of all images.

    Returns:
        held: how many images (percent) have a gradient with respect to their output e without any part towards the
        centre or away from it, as the projection onto the rim leaves none. apart: mean distance of the pairs of two
        classes, in margins; from 1 on a pair is not pushed any more.
    """
    head, classes = one.method.head, torch.from_numpy(labels[one.split.labelled])
    batch = next(one.method.schedule.batches(classes, one.split.seed))
    y = classes[batch]
    e = network.layers(torch.from_numpy(rows)[batch]).detach().requires_grad_()
    h = network.onto(head.geometry.exp0(e))
    loss = contrastive(h, y, **vars(head.loss))
    (gradient,) = torch.autograd.grad(loss.total, e)
    along = (gradient * torch.nn.functional.normalize(e, dim=-1)).sum(-1)
    held = along.abs() < 1e-4 * gradient.norm(dim=-1)  # rounding leaves about 1e-6 of it
    apart = head.geometry.pairwise(h, h)[y[:, None] != y] / loss.margin
    return {"held": 100 * held.double().mean().item(), "apart": apart.mean().item()}
