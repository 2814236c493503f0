"""Fig. 4 (t-SNE, with what it keeps of neighbourhoods), Fig. 5, which kinds are scores, and a board for both limits."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.manifold import TSNE, trustworthiness
from sklearn.neighbors import NearestNeighbors

from lib.errors import InputError
from lib.figures import style
from lib.figures.heat import heat
from lib.heads.scaling import widths
from lib.metrics import novelty
from lib.papers.acir import published
from lib.papers.acir.novelty.experiment import ACIR, L1
from lib.papers.acir.novelty.scene import ASIDE, FAR, KNOWN, NEAR, PARTS, SORTS, Scene
from lib.papers.acir.novelty.scores import Scores
from lib.study import paired
from lib.study.columns import Column, Layout, printed
from lib.study.rates import rates_layout
from lib.widgets.board import Board
from lib.widgets.slider import Slider

NEIGHBOURS = 10
MOST = 250
"""Known images on a page: all novel ones are there."""


def page(x: np.ndarray, seed: int, perplexity: float = 30.0) -> pd.DataFrame:
    """A t-SNE of ``x: (n, d)`` from its principal components; each column is standardised, as distances are Euclidean.

    Columns x, y; and alike in all rows kept (of the 10 nearest neighbours of a point, how many are so on the page as
    well) and trust (scikit-learn's trustworthiness, 1 where no neighbour on the page comes from far away). Raises
    InputError for too few points for the perplexity.
    """
    if len(x) <= 3 * perplexity:
        raise InputError(
            f"{len(x)} points are too few for a perplexity of {perplexity:g}: take more than three times it"
        )
    z = ((x - x.mean(axis=0)) / widths(x.std(axis=0))).astype(np.float32)
    points = TSNE(init="pca", random_state=seed, perplexity=perplexity, n_jobs=1).fit_transform(z)
    trust = trustworthiness(z, points, n_neighbors=NEIGHBOURS)
    return pd.DataFrame(points, columns=["x", "y"]).assign(kept=kept(z, points), trust=float(trust))


def kept(x: np.ndarray, y: np.ndarray, k: int = NEIGHBOURS) -> float:
    """Which share of the ``k`` nearest neighbours of the points ``x: (n, d)`` are so in ``y: (n, e)`` too.

    >>> kept(np.array([[0.0], [1.0], [3.0]]), np.array([[0.0], [1.0], [1.5]]), k=1)
    0.6666666666666666
    """
    first, second = (NearestNeighbors(n_neighbors=k).fit(points).kneighbors(return_distance=False) for points in (x, y))
    return float(np.mean([len(set(a) & set(b)) / k for a, b in zip(first.tolist(), second.tolist(), strict=True)]))


def chosen(scene: Scene, seed: int) -> np.ndarray:
    """What is drawn: at most :data:`MOST` known query images, at random, and all novel ones."""
    known = np.random.default_rng(seed).permutation(scene.rows(KNOWN))[:MOST]
    return np.concatenate([np.sort(known), scene.rows(NEAR, FAR)])


MARKERS = (*style.MARKERS, "<", ">", "*", "h")
"""A sign for each known class, so that classes are told apart in grey."""


def pages(rows: pd.DataFrame, classes: Sequence[str]) -> Figure:
    """t-SNE of several representations: known classes in colours and markers, each kind of OOD pictures a black letter.

    rows: of :func:`page`, with panel, and kind and part of the points. classes: the known ones, in their order.
    """
    looks = {}
    for number, name in enumerate(classes):
        look = {"marker": MARKERS[number % len(MARKERS)], "color": style.PALETTE[number % len(style.PALETTE)]}
        looks[KNOWN, name] = look | {"label": style.legible(name), "s": 12, "linewidth": 0, "alpha": 0.8}
    black = {"color": "black", "s": 16, "linewidth": 0}
    looks[NEAR, ""] = black | {"marker": "x", "label": "left-out class", "linewidth": 0.7}
    for number, name in enumerate(rows[rows["part"] == FAR]["kind"].unique()):
        letter = ascii_uppercase[number % len(ascii_uppercase)]
        looks[FAR, name] = black | {"marker": rf"$\mathrm{{{letter}}}$", "label": style.legible(name)}
    panels = rows.groupby("panel", sort=False)
    with style.house():
        figure, axes = plt.subplots(2, -(-len(panels) // 2), figsize=(style.WIDTH, 6.6), squeeze=False)
        for axis, (name, page) in zip(axes.flat, panels, strict=False):
            for (part, kind), look in looks.items():
                own = page[(page["part"] == part) & (page["kind"].eq(kind) if kind else True)]
                axis.scatter(own["x"], own["y"], rasterized=True, **look)
            axis.set(xticks=[], yticks=[], xlabel="t-SNE 1", ylabel="t-SNE 2")
            kept, trust = page[["kept", "trust"]].iloc[0]
            axis.set_title(f"{name}\n{100 * kept:.0f} % of 10 neighbours kept, trustworthiness {trust:.2f}")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, markerscale=2)
        plt.close(figure)
    return figure


ODD, NONE = ("left-out class", "OOD"), "refused"
"""Of Fig. 5: the last rows, and the last column."""


def confusion_rows(counts: Mapping[str, np.ndarray], classes: Sequence[str]) -> pd.DataFrame:
    """Of the queries of each class how many percent get each class, or none: rule, query_class, given_class, share.

    counts: rule → (C + 2, C + 1) of :func:`.scores.total`.
    """
    queries, given, rows = [*classes, *ODD], [*classes, NONE], []
    for rule, table in counts.items():
        shares = 100 * table / np.maximum(table.sum(axis=1, keepdims=True), 1)
        for i, j in np.argwhere(shares > 0):
            rows.append({"rule": rule, "query_class": queries[i], "given_class": given[j], "share": shares[i, j]})
    return pd.DataFrame(rows)


def confusions(rows: pd.DataFrame, classes: Sequence[str]) -> Figure:
    """Fig. 5 of :func:`confusion_rows`."""
    named = {"rule": "panel", "query_class": "y", "given_class": "x", "share": "value"}
    order = {"y": [*classes, *ODD], "x": [*classes, NONE]}
    return heat(rows.rename(columns=named), xlabel="class given", ylabel="class of the query", order=order)


def kinds(rows: pd.DataFrame) -> Figure:
    """Detected (left) and AUROC (right) of every kind of picture by every score; rows: of :func:`.scores.by_kind`."""
    titles = {"detected": "called novel (%)", "auroc": "AUROC × 100, 50 is chance"}
    long = rows.melt(["score", "kind"], list(titles), "panel", "value").rename(columns={"score": "x", "kind": "y"})
    long["panel"] = long["panel"].map(titles)
    order = {axis: list(long[axis].unique()) for axis in "xy"}
    return heat(long.dropna(), xlabel="score", ylabel="query", order=order)


def examples(scene: Scene, score: np.ndarray) -> np.ndarray:
    """Rows of one image of each sort: two known, two of the left-out class, one of each odd kind; of middle scores."""
    chosen = [*_middle(score, scene.rows(KNOWN), 2), *_middle(score, scene.rows(NEAR), 2)]
    far = scene.rows(FAR)
    for kind in scene.kinds():
        chosen += _middle(score, far[scene.kind[far] == kind], 1)
    return np.array(chosen)


def _middle(score: np.ndarray, rows: np.ndarray, n: int) -> list[int]:
    """The ``n`` rows around the median score, no choice of ours."""
    ordered = rows[np.argsort(score[rows], kind="stable")]
    places = np.linspace(0, 1, n + 2)[1:-1] * (len(ordered) - 1)
    return ordered[places.round().astype(int)].tolist()


def plane(code: np.ndarray, error: np.ndarray, part: np.ndarray, radius: float, limit: float) -> Figure:
    """Bits to the nearest centre against the residual, a point per query, and both limits (for the sliders)."""
    looks = {
        KNOWN: {"marker": "o", "color": style.PALETTE[0], "s": 10, "alpha": 0.5, "label": "known"},
        NEAR: {"marker": "x", "color": style.PALETTE[3], "s": 22, "label": "left-out class"},
        FAR: {"marker": "+", "color": "black", "s": 22, "label": "OOD"},
    }
    shift = np.random.default_rng(0).uniform(-0.35, 0.35, len(code))  # so that points of one distance are seen
    with style.house():
        figure, axis = plt.subplots(figsize=(4.8, 3.6))
        for name, look in looks.items():
            own = part == name
            axis.scatter((code + shift)[own], error[own], linewidth=0.8, **look)
        axis.axvline(radius + 0.5, color="black", linestyle="--", linewidth=1)
        axis.axhline(limit, color="black", linestyle=":", linewidth=1.4)
        axis.set(xlabel="bits to the nearest centre", ylabel="residual of the decoder, L1")
        figure.legend(loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


SIGMAS = np.linspace(0, 6, 25).round(2).tolist()
TITLES = {KNOWN: "known, refused"} | SORTS


def sliders(scene: Scene, scores: Scores, bits: int) -> Board:
    """The board, on the scores of the first training; it begins at the paper's two limits."""
    code, error = scores[ACIR][0], scores[L1][0]
    aside, queries = scene.rows(ASIDE), scene.rows(KNOWN, NEAR, FAR)

    def draw(sigmas: float, radius: float) -> Figure:
        limit = novelty.threshold(error[aside], sigmas)
        return plane(code[queries], error[queries], scene.part[queries], radius, limit)

    def describe(sigmas: float, radius: float) -> str:
        limit = novelty.threshold(error[aside], sigmas)
        outside, beyond = code > radius, error > limit
        lines = [f"limit {limit:.3f}, radius {radius:g} bits", ""]
        lines += [f"{'':16}{'balls':>8}{'residual':>10}{'either':>8}"]
        for part, title in TITLES.items():
            rows = scene.rows(part)
            shares = [100 * rule[rows].mean() for rule in (outside, beyond, outside | beyond)]
            lines.append(f"{title:16}{shares[0]:7.1f}%{shares[1]:9.1f}%{shares[2]:7.1f}%")
        return "\n".join(lines)

    both = {
        "sigmas": Slider("limit, standard deviations", SIGMAS, start=3.0),
        "radius": Slider("radius, bits", range(bits // 2 + 1), start=novelty.ball_radius(bits)),
    }
    return Board(both, draw, describe, height=360)


def table_3(rows: pd.DataFrame) -> str:
    """Published rows first, then ours; rows: of :func:`.scores.table_3`."""
    theirs = published.novelty()
    variants = theirs["variant"].map(lambda name: "" if name == "full" else f", {name}")
    names = "published: " + theirs["method"] + theirs["bits"].map(", {:.0f} bits".format) + variants
    first = theirs[["precision", "recall"]].assign(rule=names, far=theirs["detected"] / 5)
    columns = [
        Column("rule"),
        Column("macro precision", "precision", pm="precision_spread"),
        Column("macro recall", "recall", pm="recall_spread"),
        Column("OOD detected", FAR, "1 %"),
        Column("left-out class detected", NEAR, "1 %"),
        Column("false alarms", KNOWN, "1 %"),
    ]
    return Layout(columns, ["rule"], repeats="repeat")(pd.concat([first, rows], ignore_index=True))


def table_scores(rows: pd.DataFrame) -> str:
    """AUROC, its mean per patient with the interval, and FPR@95; rows: of :func:`.scores.separations` and intervals."""
    low, high = (rows[end].map(lambda value: printed(value, "1")) for end in ("low", "high"))
    columns = [Column("score")]
    for part, title in SORTS.items():
        columns += [
            Column(f"AUROC, {title}", "auroc", pm="auroc_spread", at=("novel", part)),
            Column(f"per patient, {title}", "mean", "1", brackets="interval", at=("novel", part)),
            Column(f"FPR@95, {title}", "fpr95", pm="fpr95_spread", at=("novel", part)),
        ]
    return Layout(columns, ["score"], repeats="repeat")(rows.assign(interval=low + " to " + high))


LAYOUTS = {
    "table_parts": Layout(
        [
            Column("part"),
            Column("what"),
            Column("classes or kinds", "kinds"),
            Column("images", "n_images", "0"),
            Column("groups", "n_groups", "0"),
        ],
        ["part"],
    ),
    "table_training": Layout(
        [
            Column("method"),
            Column("loss, first epoch", "loss_first", "3"),
            Column("last epoch", "loss_last", "3"),
            Column("steps", form="0"),
            Column("trainings", "n_seeds", "0"),
            Column("right class, nearest centre", "right", pm="right_spread"),
        ],
        repeats="repeat",
    ),
    "table_balls": Layout(
        [
            Column("bits", form="0"),
            Column("radius", form="0"),
            Column("random codes in a ball, 16 centres", "chance_16", "{:.3g} %"),
            Column("as many centres as here", "chance", "{:.3g} %"),
            Column("known outside", KNOWN, "1 %"),
            Column("left-out class outside", NEAR, "1 %"),
            Column("OOD outside", FAR, "1 %"),
            Column("AUROC of the distance, OOD", "far_auroc"),
        ],
        ["bits"],
    ),
    "table_limits": Layout(
        [
            Column("score"),
            Column("limit from", "part", PARTS.__getitem__),
            Column("mean", form="{:.3g}"),
            Column("standard deviation", "deviation", "{:.2g}"),
            Column("limit", form="{:.3g}"),
            Column("beyond it, of themselves", "own", "1 %"),
            Column("false alarms", KNOWN, "1 %"),
            Column("left-out class", NEAR, "1 %"),
            Column("OOD", FAR, "1 %"),
        ],
        ["score", "part"],
        repeats="repeat",
    ),
    "table_3": table_3,
    "table_scores": table_scores,
    "table_rates": rates_layout(decimals=1),
    "table_tests": paired.tests_layout(
        {"gallery": "novel"} | paired.METHODS, "first − second, points of AUROC", {"gallery": SORTS.get}
    ),
    "table_classes": Layout(
        [Column("left out", "class"), Column("images", "n", "0"), Column("{}", "auroc", "1", over="score")], ["class"]
    ),
}
