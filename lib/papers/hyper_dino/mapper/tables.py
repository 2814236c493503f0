"""Numbers about the training of Hyper-DINO's mapper: what the open choices of the loss do, and how the loss falls."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.geometry import Geometry, PoincareBall
from lib.losses import hyper_dino
from lib.papers.hyper_dino.mapper import figures
from lib.papers.hyper_dino.mapper.start import PRINTED, Arms, courses
from lib.results import answers, paired
from lib.results.answers import CLASS_MEAN, Answers, chance_said, class_cells, health, values
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Figure, Table
from lib.results.store import Run
from lib.training.fit import Schedule
from lib.training.methods import RIM
from lib.training.splits import Split


def choices(h: Tensor, labels: Tensor, geometry: Geometry, m0: float, alpha: float) -> pd.DataFrame:
    """The loss of one embedding under the four readings of erratum HD-9.

    Args:
        h: (n, d) embedding.
        labels: (n,) integer classes.
        geometry: where the distances are measured.
        m0, alpha: of the margin.

    Returns:
        Columns self_pairs, detach_mean, positive (L_pos), margin, negative (L_neg), and outward: by how much L_neg
        falls per unit of s, when the embedding h grows to (1 + s)·h. Negative: L_neg asks it to shrink.
    """
    rows = []
    for self_pairs in (False, True):
        for detach_mean in (True, False):
            scale = torch.ones((), dtype=h.dtype, requires_grad=True)
            options = {"m0": m0, "alpha": alpha, "self_pairs": self_pairs, "detach_mean": detach_mean}
            loss = hyper_dino.contrastive(scale * h, labels, geometry, **options)
            (slope,) = torch.autograd.grad(loss.negative, scale)
            values = {"positive": loss.positive, "margin": loss.margin, "negative": loss.negative, "outward": -slope}
            numbers = {name: value.item() for name, value in values.items()}
            rows.append({"self_pairs": self_pairs, "detach_mean": detach_mean} | numbers)
    return pd.DataFrame(rows)


def choices_layout(rows: pd.DataFrame) -> str:
    """The rows of :func:`choices` as Markdown, both choices told as yes or no."""
    said = {True: "yes", False: "no"}
    shown = {
        "an image pairs with itself": rows["self_pairs"].map(said),
        "the gradient flows through the mean": (~rows["detach_mean"]).map(said),
        "pull": rows["positive"],
        "margin": rows["margin"],
        "push": rows["negative"],
        "outward": rows["outward"],
    }
    return markdown_table(pd.DataFrame(shown).round(4))


def curves(fitted: Arms) -> pd.DataFrame:
    """How the training loss fell: columns start, head, seed, epoch, iteration, loss; ``fitted``: of one split.

    ``loss`` is the mean over an epoch, ``iteration`` the number of batches seen at its end.
    """
    rows = [
        (begin, name, one.split.seed, epoch, epoch * one.method.schedule.steps(len(one.split.train)), loss)
        for begin, by_name in fitted.items()
        for name, several in by_name.items()
        for one in several
        for epoch, loss in enumerate(one.history, start=1)
    ]
    return pd.DataFrame(rows, columns=["start", "head", "seed", "epoch", "iteration", "loss"])


def verdicts(rows: pd.DataFrame) -> list[str]:
    """One sentence per start and head: in how many trainings the last epoch's loss is below half of the first one's."""
    lines = []
    for (begin, head), part in rows.groupby(["start", "head"], sort=False):
        ends = part.sort_values("epoch").groupby("seed")["loss"].agg(["first", "last"])
        halved = (ends["last"] < ends["first"] / 2).sum()
        final = f"it ends at {ends['last'].mean():.2f}"
        lines.append(f"{begin}, {head}: the loss more than halves in {halved} of {len(ends)} trainings; {final}")
    return lines


def figure_2(rows: pd.DataFrame, batch_size: int) -> Figure:
    """Fig. 2, the loss over the iterations, from the rows of :func:`curves`."""
    epochs, published = rows["epoch"].max(), Schedule().epochs
    text = (
        "Training loss over iterations, the mean of each epoch: mean over the trainings, band from the lowest to the "
        f"highest of {rows['seed'].nunique()} seeds, one fold by image; {epochs} epochs (published: {published}) with "
        f"batches of {batch_size}. The paper draws the loss of its own training sets and prints no numbers, so shapes "
        "can be compared, values cannot."
    )
    return Figure("training loss", rows, text, figure=figures.loss_curves(rows))


def starts(found: Mapping[str, Answers], fitted: Arms, x: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    """How every head begins, how it ends, and how it retrieves, from every start.

    Args:
        found: what the heads ``fitted`` on one split answered.
        x: (n, dim) features. labels: (n,).

    Returns:
        A row per start, method and k: the columns of :func:`lib.results.answers.values` for AP over min(k, relevant),
        and those of :func:`.start.courses`.
    """
    table = values(found).query("metric == 'ap_min'").drop(columns="metric").rename(columns={"rule": "start"})
    return table.merge(courses(fitted, x, labels), on=["start", "method"], validate="many_to_one")


def starts_layout(rows: pd.DataFrame) -> str:
    """The rows of :func:`starts` as Markdown: one for each head and start."""
    lines = []
    for method, of_head in rows.groupby("method", sort=False):
        for begin, part in of_head.groupby("start", sort=False):
            row = part.iloc[0]
            cells = {"head": method, "start": begin}
            cells |= {"norm": f"{row['before']:.3f} → {row['after']:.3f}"}
            cells |= {"at the rim": f"{row['rim_before']:.1f} → {row['rim']:.1f} %"}
            cells |= {"held": f"{row['held']:.1f} %", "two classes apart": f"{row['apart']:.1f} m"}
            lines.append(cells | {"last loss": f"{row['loss']:.3f}", "steps": row["steps"]} | scores(part))
    return markdown_table(pd.DataFrame(lines))


def scores(rows: pd.DataFrame) -> dict[str, str]:
    """MAP@k of one method as cells, ± the spread over its trainings, then the means over classes."""
    cells = {f"MAP@{row.k}": f"{percent(row.ours)} ± {percent(row.seeds_spread)}" for row in rows.itertuples()}
    return cells | class_cells(rows)


def table_starts(run: Run, rows: pd.DataFrame) -> Table:
    """How the heads begin and end, from the rows of :func:`starts`."""
    of = run.parameters
    text = (
        f"Every head from both starts: one fold by image, {of['epochs']} epochs (published: {Schedule().epochs}), "
        f"{of['seeds']} seeds. Norm: median of the training images, before → after training. At the rim: the share "
        "in the last hundredth below the largest norm that the projection allows, before the mean, after it that of "
        "the worst training. Held: images of the first batch whose gradient has no part towards the centre. Two "
        "classes apart: mean distance of their pairs in that batch, in margins m. MAP@k in percent, AP divided by "
        f"min(k, relevant), ± over the seeds; {chance_said(rows)}. {CLASS_MEAN}"
    )
    return Table("where heads begin and end", rows, text, markdown=starts_layout(rows))


def figure_starts(run: Run, rows: pd.DataFrame, geometry: PoincareBall, delta: float, resting: float) -> Figure:
    """Norms before and after training, from the rows of :func:`.start.courses`.

    geometry, delta: of the heads; resting: the norm at which the loss of the negative pairs becomes 0.
    """
    reach = (1 - delta) * geometry.c**-0.5
    text = (
        f"Norms of the training images before (hollow) and after {run.parameters['epochs']} epochs (filled): median, "
        f"and lines from 5 to 95 % of the images, {run.parameters['seeds']} seeds pooled; one fold by image. The axis "
        f"is spaced by the distance from the centre. Grey: norm {RIM * reach:.3g} to {reach:.3g}, counted as at the "
        "rim; the projection holds what would be further out at its outer edge. Dashed: collapsed classes exactly at "
        f"the margin, norm {resting:.3f}."
    )
    figure = figures.starts(rows, geometry, delta, resting)
    return Figure("norms before and after training", rows, text, figure=figure)


def table_by_group(run: Run, rows: pd.DataFrame, group_kind: str) -> Table:
    """Heads from both starts on all folds by group: rows of :func:`lib.results.answers.values`, by start."""
    text = (
        f"MAP@k in percent, AP divided by min(k, relevant); mean ± standard deviation over the folds by {group_kind}. "
        f"Every head was trained {run.parameters['seeds']} times for {run.parameters['epochs']} epochs; ± seeds is the "
        f"standard deviation over the trainings. {CLASS_MEAN} At the rim: worst training."
    )
    return Table(f"both starts, folds by {group_kind}", rows, text, markdown=answers.layout(rows, "start"))


def began(rows: pd.DataFrame) -> list[str]:
    """Per start one sentence on the untrained heads and one on where they end, from the rows of :func:`starts`."""
    lines = []
    for begin, part in rows[rows["k"] == rows["k"].min()].groupby("start", sort=False):
        out = part[part["rim_before"] > 50]
        heads = f"{begin}: {len(out)} of {len(part)} heads begin with more than half of their images at the rim"
        for where, some in (("there", out), ("inside", part.drop(out.index))):
            if len(some):
                held, apart = _range(some["held"]), _range(some["apart"])
                heads += f"; {where} {held} % of the images are held, and two classes are {apart} margins apart"
        ends = (
            f"{(part['rim'] > paired.MOST_AT_RIM).sum()} of {len(part)} heads end, in some training, with more than "
            f"{paired.MOST_AT_RIM:g} % of their images"
        )
        lines += [heads, f"{begin}: {ends} at the rim; last loss {_range(part['loss'], 2)}"]
    return lines


def at_rest(rows: pd.DataFrame, resting: float) -> list[str]:
    """Per start: where the median embedding ends, and how far from flat the ball of radius 1 is there (HD-8)."""
    return [
        f"{begin}: the median embedding of a head ends at a norm of {_range(part['after'], 2)} (classes at rest: "
        f"{resting:.3f}), where the ruler is {_range(1 / (1 - part['after'] ** 2), 2)} times that at the centre"
        for begin, part in rows[rows["k"] == rows["k"].min()].groupby("start", sort=False)
    ]


def tally(tests: pd.DataFrame, what: str) -> str:
    """Of paired tests: the range of their differences, and in how many the first method is better or worse.

    what: a test is of, in the singular ("head").
    """
    better, worse, of = paired.tally(tests, what)
    signs = [f"{tests['difference'].agg(end):+.1f}" for end in ("min", "max")]
    return f"{' to '.join(dict.fromkeys(signs))} points; of {of} {better} clearly better, {worse} clearly worse"


def cost(tests: pd.DataFrame) -> list[str]:
    """Per k: what one start is worth against another, over all heads."""
    first, second = tests[["first", "second"]].iloc[0]
    return [f"k = {k}, {first} minus {second}: {tally(part, 'head')}" for k, part in tests.groupby("k")]


def by_start(tests: pd.DataFrame, what: str) -> list[str]:
    """Per start, the ``rule`` of the tests, and k: :func:`tally`."""
    parts = tests.groupby(["rule", "k"], sort=False)
    return [f"{begin}, k = {k}: {tally(part, what)}" for (begin, k), part in parts]


def families(tests: pd.DataFrame) -> list[str]:
    """Short outputs minus long ones, per start and k."""
    return by_start(tests, "input")


def rotated(tests: pd.DataFrame) -> list[str]:
    """Per start and k what a rotation is worth, and how much of it the start explains.

    tests: paired tests whose ``rule`` is the start, two of them, one as printed.
    """
    largest = tests["difference"].abs().groupby(tests["rule"]).max()
    (inside,) = largest.index.drop(PRINTED)
    before, left = largest[PRINTED], largest[inside]
    share = "most" if left < before / 2 else "a part" if left < before else "nothing"
    clear = {begin: sum(paired.tally(part)[:2]) for begin, part in tests.groupby("rule")}
    rest = f"a clear difference is left in {_several(clear[inside], 'comparison')}"
    told = f"largest difference: {before:.1f} points {PRINTED}, {left:.1f} points with {inside}; "
    if not any(clear.values()):
        explained = f"{told}none is clear from either start"
    else:
        left_over = rest if clear[inside] else "no clear difference is left"
        explained = f"{told}the start explains {share} of it, and {left_over}"
    return [*by_start(tests, "comparison"), explained]


def table_choice(run: Run, rows: pd.DataFrame, inner: Split) -> Table:
    """MAP@k on validation groups for every start norm, from :func:`lib.results.answers.values`.

    inner: who is learnt from and who asks, one of :func:`lib.papers.hyper_dino.validation.inner`.
    """
    rows = rows[rows["metric"] == "ap_min"].drop(columns="metric").rename(columns={"rule": "start"})
    lines = [
        {"head": method, "start": begin, **scores(part), **health(part.iloc[0])}
        for (method, begin), part in rows.sort_values("method", kind="stable").groupby(["method", "start"], sort=False)
    ]
    text = (
        f"The training part of the same fold, divided once more by group: {len(inner.train):,} training images, "
        f"{len(inner.test):,} query images; no test image is in either. MAP@k in percent, AP divided by min(k, "
        f"relevant), ± over {run.parameters['seeds']} seeds; {run.parameters['epochs']} epochs. Class mean: averaged "
        f"per class first; {chance_said(rows)}. At the rim: worst training."
    )
    return Table("the start norm, on validation groups", rows, text, markdown=markdown_table(pd.DataFrame(lines)))


def choice(rows: pd.DataFrame) -> list[str]:
    """Per start the mean over the heads of :func:`table_choice`, best first; one sentence per k."""
    lines = []
    for k, part in rows.groupby("k"):
        means = part.groupby("start")["ours"].mean().sort_values(ascending=False)
        lines.append(
            f"k = {k}, mean over the heads: " + ", ".join(f"{mean:.1f} {begin}" for begin, mean in means.items())
        )
    return lines


def _several(n: int, what: str) -> str:
    """A number of things, in the singular or plural.

    >>> _several(1, "head"), _several(0, "head")
    ('1 head', '0 heads')
    """
    return f"{n} {what}{'s' * (n != 1)}"


def _range(values: pd.Series, digits: int = 1) -> str:
    """Smallest to largest.

    >>> _range(pd.Series([2.0, 1.0])), _range(pd.Series([1.0]))
    ('1.0 to 2.0', '1.0')
    """
    return " to ".join(dict.fromkeys(f"{value:.{digits}f}" for value in (values.min(), values.max())))
