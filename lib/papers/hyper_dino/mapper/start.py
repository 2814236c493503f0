"""Where a mapper begins and where that leaves it: the printed start beside one inside the ball (erratum HD-17)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from lib.figures.forest import forest
from lib.figures.lines import lines
from lib.geometry import PoincareBall
from lib.heads import HyperbolicMapper
from lib.papers.hyper_dino.recipes import recipes
from lib.study import paired
from lib.study.columns import HEALTH, Column, Layout, printed
from lib.study.scores import Answers, of_answers
from lib.training import experiment
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.methods import RIM, Fitted, at_rim, of_recipes
from lib.training.recipes import Recipe
from lib.training.splits import Split

PRINTED = "as printed"
NORMS = (0.0, 0.1, 0.3, 0.76)
"""Start norms to choose from: as printed, and three inside the ball; tanh(1) = 0.76 is a tangent vector of length 1."""

Arms = Mapping[str, Mapping[str, Sequence[Fitted]]]
"""Start → method → the head fitted on each split."""

MAP = (Column("MAP@{}", "ours", over="k", pm="seeds_spread"), Column("class mean@{}", "class_mean", over="k"))
STARTS = (
    *(Column("norm", "norms"), Column("at the rim", "rims")),
    *(Column("held", form="1 %"), Column("two classes apart", "apart", "1 m")),
)
HEAD = (Column("head", "method"), Column("start"))


def _before_and_after(rows: pd.DataFrame) -> pd.DataFrame:
    """``rows`` with what changes in training as one text: before → after."""
    norms = [f"{printed(row.before, '3')} → {printed(row.after, '3')}" for row in rows.itertuples()]
    rims = [f"{printed(row.rim_before, '1')} → {printed(row.rim, '1 %')}" for row in rows.itertuples()]
    shown = rows.assign(norms=norms, rims=rims)
    return shown.assign(**{name: shown[name].str.replace(" ", "\N{NO-BREAK SPACE}") for name in ("norms", "rims")})


LAYOUTS = {
    "table_starts": Layout([*HEAD, *STARTS, MAP[0]], by=("start",), block="method", prepare=_before_and_after),
    **{f"table_{name}_tests": paired.by_length("head") for name in ("starts", "starts_by_group")},
    **{f"table_{name}": paired.by_length("start") for name in ("families", "rotation")},
    "table_choice": Layout([*HEAD, *MAP, *HEALTH], by=("start",), block="method"),
}


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
    """Train every head of ``todo`` from every start; 0 of ``norms`` is the printed way. Start → method → one per split.

    The seeds of a head, repeats of a split in ``where``, are one stack: few are trained one by one so slowly.
    """
    together, arms = [replace(split, repeat=0) for split in where], {}
    for norm in norms:
        methods = of_recipes(todo, replace(settings, start_norm=norm), schedule)
        fitted = experiment.fit(x, labels, methods, together, workers=workers, what=arm(norm))
        arms[arm(norm)] = {
            name: [replace(head, split=split) for head, split in zip(heads, where, strict=True)]
            for name, heads in fitted.items()
        }
    return arms


def values(answers: Mapping[str, Answers]) -> pd.DataFrame:
    """The means of what the heads of every start answered, AP over min(k, relevant); columns start, method, k, …"""
    return of_answers(answers, rule="start").means().query("metric == 'ap_min'").drop(columns="metric")


def curves(fitted: Arms) -> pd.DataFrame:
    """How the training loss fell: columns start, head, seed, epoch, iteration, loss; ``fitted``: of one split.

    ``loss`` is the mean over an epoch, ``iteration`` the number of batches seen at its end.
    """
    rows = [
        (begin, name, head.split.seed, epoch, epoch * head.method.schedule.steps(len(head.split.train)), loss)
        for begin, by_name in fitted.items()
        for name, trainings in by_name.items()
        for head in trainings
        for epoch, loss in enumerate(head.history, start=1)
    ]
    return pd.DataFrame(rows, columns=["start", "head", "seed", "epoch", "iteration", "loss"])


def figure_2(rows: pd.DataFrame) -> Figure:
    """The rows of :func:`curves`, a panel per start and a line per head; bars: deviation over the seeds."""
    names = ["start", "head", "iteration"]
    shown = rows.groupby(names, sort=False)["loss"].agg(y="mean", spread="std").reset_index()
    shown.columns = ["panel", "line", "x", "y", "spread"]
    figure = lines(shown, xlabel="training iterations (batches)", ylabel="mean loss of an epoch")
    figure.axes[0].set_yscale("log")
    return figure


def figure_starts(rows: pd.DataFrame, geometry: PoincareBall, delta: float, resting: float) -> Figure:
    """Where the rows of :func:`courses` lie, by distance from the centre: hollow before training, filled after.

    resting: a norm to mark; grey: what counts as at the rim, for heads that keep within 1 − delta of the radius.
    """
    root = geometry.c**0.5

    def place(norm: float | pd.Series) -> float | pd.Series:
        return 2 / root * np.arctanh(root * norm)

    rows = rows.assign(name=rows["method"], panel=rows["start"])
    ends = {"difference": "", "low": "_low", "high": "_high"}
    parts = [
        rows.assign(
            **{name: place(rows[f"{when}{end}"]) for name, end in ends.items()},
            series=f"{when} training",
            clear=when == "after",
        )
        for when in ("before", "after")
    ]
    figure = forest(pd.concat(parts), xlabel="distance from the centre")
    for axis in figure.axes:
        axis.axvspan(*place(np.array([RIM, 1]) * (1 - delta) / root), color="0.85")
        axis.axvline(place(resting), color="black", linestyle="--", linewidth=1)
    return figure


def courses(fitted: Arms, x: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    """Where the training images of every head lie before and after its training, and what its first batch does.

    fitted: of one split, and of repeats of it with other seeds, which are pooled.

    Columns start, method; before_low, before, before_high and the same after (norms of the embeddings: 5 %, median,
    95 %); rim_before (percent at the rim); held and apart (:func:`first_gradient`).
    """
    lines = []
    for begin, by_name in fitted.items():
        for name, trainings in by_name.items():
            rows = trainings[0].reduction(x[trainings[0].split.labelled])
            pairs = [(head, untrained(head, rows)) for head in trainings]
            norms = {"before": [new for _, new in pairs], "after": [head.network for head in trainings]}
            line = {"start": begin, "method": name}
            for when, networks in norms.items():
                pooled = torch.cat([_norms(trainings[0], network, rows) for network in networks])
                low, median, high = pooled.quantile(torch.tensor([0.05, 0.5, 0.95])).tolist()
                line |= {f"{when}_low": low, when: median, f"{when}_high": high}
            line["rim_before"] = np.mean([at_rim(head.method.head, new, rows) for head, new in pairs])
            pushed = pd.DataFrame([first_gradient(head, new, rows, labels) for head, new in pairs])
            lines.append(line | pushed.mean().to_dict())
    return pd.DataFrame(lines)


def untrained(head: Fitted, rows: np.ndarray) -> HyperbolicMapper:
    """The network of ``head`` as it was before its training on the images ``rows: (m, dim_in)``."""
    network = head.method.head.make(head.method.recipe, head.split.seed)
    head.method.head.start(network, rows)
    return network


@torch.inference_mode()
def _norms(head: Fitted, network: HyperbolicMapper, rows: np.ndarray) -> torch.Tensor:
    return head.method.head.embed(network, torch.from_numpy(rows)).norm(dim=-1)


def first_gradient(head: Fitted, network: HyperbolicMapper, rows: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """What the first batch does to an untrained ``network``; rows: (m, dim_in), its reduced training images.

    held: percent of the images whose gradient with respect to their output e has no part towards the centre or away
    from it, as the projection onto the rim leaves none. apart: mean distance of the pairs of two classes, in margins;
    from 1 on a pair is not pushed any more.
    """
    settings, classes = head.method.head, torch.from_numpy(labels[head.split.labelled])
    batch = next(head.method.schedule.batches(classes, head.split.seed))
    y = classes[batch]
    e = network.layers(torch.from_numpy(rows)[batch]).detach().requires_grad_()
    h = network.onto(settings.geometry.exp0(e))
    loss = settings.loss.parts(h, y)
    (gradient,) = torch.autograd.grad(loss.total, e)
    along = (gradient * torch.nn.functional.normalize(e, dim=-1)).sum(-1)
    held = along.abs() < 1e-4 * gradient.norm(dim=-1)  # rounding leaves about 1e-6 of it
    apart = settings.geometry.pairwise(h, h)[y[:, None] != y] / loss.margin
    return {"held": 100 * held.double().mean().item(), "apart": apart.mean().item()}
