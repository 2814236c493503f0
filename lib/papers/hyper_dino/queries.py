"""Notebook 14: queries and their answers one by one (section 3.4), identical pictures, confusion."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib import figure as mpl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.figures import heat
from lib.figures.strips import GAP, TITLE, Answer, Strip, bare
from lib.figures.strips import strips as draw
from lib.metrics.classes import over_classes
from lib.search import nearest
from lib.study import captions
from lib.study.answers import CLASS_MEAN
from lib.study.columns import HEALTH, Column, Layout
from lib.study.scores import HEALTH as ENDED
from lib.study.shown import Figure, Table
from lib.study.store import Run
from lib.training.experiment import search
from lib.training.methods import Fitted

OF_AN_ANSWER = ("reference", "reference_class", "distance", "right", "own_group")
"""Columns that belong to a single answer: two that are nearly as near may swap."""

COLUMNS = 10
"""Answers in a row of a strip."""

LARGEST = 7.5
"""Points, of the print above an answer."""

PLAIN, HEAD = "plain features", "with the head"


def same_picture(pairs: pd.DataFrame, ids: Sequence[str]) -> np.ndarray:
    """The number of each image's picture, (n,): images with identical pixels share it.

    pairs: rows of :func:`lib.datasets.duplicates.find`, of which those of kind "identical" count; ids: (n,) image ids.

    >>> pairs = pd.DataFrame({"first": ["a", "a"], "second": ["c", "d"], "kind": ["identical", "near"]})
    >>> same_picture(pairs, ["a", "b", "c", "d"]).tolist()
    [0, 1, 0, 2]
    """
    same = pairs[pairs["kind"] == "identical"]
    first, second = (pd.Index(ids).get_indexer(same[side]) for side in ("first", "second"))
    links = coo_array((np.ones(len(same)), (first, second)), shape=(len(ids), len(ids)))
    return connected_components(links, directed=False)[1].astype(np.int64)


def choose(labels: np.ndarray, candidates: np.ndarray, seed: int) -> np.ndarray:
    """One image of every class, drawn at random from ``candidates`` (indices), in the order of the classes."""
    shuffled = np.random.default_rng(seed).permutation(candidates)
    return shuffled[np.unique(labels[shuffled], return_index=True)[1]]


def answers(
    fitted: Sequence[Fitted], x: np.ndarray, images: ImageTable, picture: np.ndarray, queries: np.ndarray, k: int
) -> pd.DataFrame:
    """The k nearest training images of each query (indices), in the fold where it is a test image.

    fitted: one per fold of one fold rule. picture: (n,) of :func:`same_picture`.

    Returns:
        One row per query and rank: query, query_class, rank (from 1), reference, reference_class, distance, right,
        identical (the same picture), own_group (of the query's patient, lesion, ...).
    """
    frames = []
    for mapper in fitted:
        own, train = queries[np.isin(queries, mapper.split.test)], mapper.split.train
        if not len(own):
            continue
        distances, places = nearest(mapper.embed(x[own]), mapper.embed(x[train]), k, mapper.space)
        ranks = {"query": np.repeat(own, k), "rank": np.tile(np.arange(1, k + 1), len(own))}
        ranks |= {"reference": train[places.numpy().ravel()], "distance": distances.numpy().ravel()}
        frames.append(pd.DataFrame(ranks))
    rows = pd.concat(frames).set_index("query").loc[queries].reset_index()
    query, reference = rows["query"].to_numpy(), rows["reference"].to_numpy()
    for name, of in {"right": images.labels, "identical": picture, "own_group": images.groups}.items():
        rows[name] = of[query] == of[reference]
    ids = images.rows["image_id"].to_numpy()
    rows.insert(1, "query_class", images.labels[query])
    rows.insert(4, "reference_class", images.labels[reference])
    return rows.assign(query=ids[query], reference=ids[reference])


def best_and_worst(rows: pd.DataFrame) -> list[str]:
    """The query that gains most right answers with the head, and the one that gains least or loses most.

    rows: of :func:`answers`, of the methods :data:`PLAIN` and :data:`HEAD`.
    """
    right = rows.groupby(["query", "method"], sort=False)["right"].sum().unstack()
    gains = (right[HEAD] - right[PLAIN]).sort_values(ascending=False, kind="stable").index
    return list(dict.fromkeys([gains[0], gains[-1]]))


def spread_out(rows: pd.DataFrame, n: int) -> list[str]:
    """``n`` of the queries from the most to the fewest right answers, evenly: best, ..., worst."""
    right = rows.groupby("query", sort=False)["right"].sum().sort_values(ascending=False, kind="stable")
    return right.index[np.linspace(0, len(right) - 1, min(n, len(right))).round().astype(int)].tolist()


def confusion(rows: pd.DataFrame) -> pd.DataFrame:
    """Which class the first answer has: columns rule, query_class, answer_class, n, share (percent of the queries)."""
    first = rows[rows["rank"] == 1].rename(columns={"reference_class": "answer_class"})
    counts = first.groupby(["rule", "query_class", "answer_class"], sort=False).size().rename("n").reset_index()
    of_class = counts.groupby(["rule", "query_class"])["n"].transform("sum")
    return counts.assign(share=100 * counts["n"] / of_class)


def twins(fitted: Sequence[Fitted], x: np.ndarray, images: ImageTable, picture: np.ndarray, k: int) -> pd.DataFrame:
    """Every image as a query of its fold: its identical pictures in the gallery, and AP with and without these there.

    One row per query: index (its place in ``images``), same and other (identical pictures in the gallery, of its class
    and of another), ap and hit (AP@k over min(k, relevant), and whether rank 1 is right), ap_chance and hit_chance (a
    gallery in random order), all four once more without these pictures (ap_without, ...), and label, its class.
    """
    frames = []
    for mapper in fitted:
        test, train = mapper.split.test, mapper.split.train
        twin = picture[test][:, None] == picture[train]
        right = images.codes[test][:, None] == images.codes[train]
        values = {"same": (twin & right).sum(axis=1), "other": (twin & ~right).sum(axis=1)}
        for suffix, ids in (("", None), ("_without", picture)):
            per_query = search(mapper, x, images.codes, test, train, (1, k), ids)[1]
            for what, ap in (("", per_query.values["ap_min"]), ("_chance", per_query.chance["ap_min"])):
                values |= {f"hit{what}{suffix}": ap[1].to_numpy(), f"ap{what}{suffix}": ap[k].to_numpy()}
        frames.append(pd.DataFrame(values | {"label": images.codes[test]}, index=test))
    return pd.concat(frames)


def twin_queries(rows: pd.DataFrame, n: int) -> np.ndarray:
    """At most ``n`` queries of :func:`twins` with an identical picture in the gallery, of another class first."""
    some = rows[(rows["same"] > 0) | (rows["other"] > 0)].sort_index()
    return some.index[np.argsort(some["other"] == 0, kind="stable")[:n]].to_numpy()


def twin_table(
    rows_by_rule: Mapping[str, pd.DataFrame], k: int, fitted: Mapping[str, Sequence[Fitted]]
) -> pd.DataFrame:
    """Means over queries (column queries: which) with and without an identical picture in the gallery.

    Of each n, map_1, class_mean_1 (averaged per class first), chance_1 (a gallery in random order), the same at ``k``,
    and all with the identical pictures left out (map_1_without, ...), percent; the health of the mappers. A query
    without any relevant image counts in n alone.
    """
    lines = []
    for rule, rows in rows_by_rule.items():
        health = pd.DataFrame([vars(mapper.health) for mapper in fitted[rule]]).agg(ENDED).to_dict()
        parts = {
            "all": rows,
            "without an identical picture": rows[(rows["same"] == 0) & (rows["other"] == 0)],
            "identical picture of the same class": rows[(rows["same"] > 0) & (rows["other"] == 0)],
            "identical picture of another class": rows[rows["other"] > 0],
        }
        for name, part in parts.items():
            means = _means(part, k) | _means(part, k, "_without")
            lines.append({"rule": rule, "queries": name, "n": len(part)} | means | health)
    return pd.DataFrame(lines)


def _means(rows: pd.DataFrame, k: int, suffix: str = "") -> dict[str, float]:
    """MAP, its mean over classes and chance over some queries at 1 and k, in percent."""
    cells = {}
    for at, name in ((1, "hit"), (k, "ap")):
        values = rows[f"{name}{suffix}"]
        cells |= {
            f"map_{at}{suffix}": values.mean(),
            f"class_mean_{at}{suffix}": over_classes(values, rows["label"]),
            f"chance_{at}{suffix}": rows[f"{name}_chance{suffix}"].mean(),
        }
    return {name: 100 * value for name, value in cells.items()}


def twin_layout(rows: pd.DataFrame) -> str:
    """The table of identical pictures; chance, in brackets, is another for other queries."""
    k = next(name.removeprefix("chance_") for name in rows if name.startswith("chance_") and name != "chance_1")
    columns = [Column("folds", "rule"), Column("queries"), Column("n", form="0")]
    for suffix, where in (("", ""), ("_without", ", identical left out")):
        for at in (1, k):
            columns.append(Column(f"MAP@{at}{where}", f"map_{at}{suffix}", brackets=f"chance_{at}{suffix}"))
        columns += [Column(f"class mean@{at}{where}", f"class_mean_{at}{suffix}") for at in (1, k)]
    return Layout([*columns, *HEALTH], by=("queries",), block="rule")(rows)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each query: how many answers are right, the first error, its own group, its own picture (rank and class)."""
    rows = rows.assign(
        wrong=rows["rank"].where(~rows["right"]),
        same=(rows["rank"].astype(str) + " (" + rows["reference_class"] + ")").where(rows["identical"]),
    )
    by_query = rows.groupby(["rule", "query"], sort=False)
    how = {"class": ("query_class", "first"), "n": ("rank", "size"), "right": ("right", "sum")}
    how |= {"first_wrong": ("wrong", "min"), "own_group": ("own_group", "sum")}
    how |= {"identical": ("same", lambda same: ", ".join(same.dropna()))}
    return by_query.agg(**how).reset_index()


def summary_layout(rows: pd.DataFrame) -> str:
    """The :func:`summary` of answers as Markdown."""
    short = summary(rows)
    columns = [
        Column("folds", "rule"),
        Column("query"),
        Column("class"),
        Column(f"right of {short['n'].max()}", "right", "0"),
    ]
    columns += [Column("rank of the first error", "first_wrong", "0"), Column("of its own group", "own_group", "0")]
    return Layout([*columns, Column("rank of its own picture (class)", "identical")], by=("rule", "query"))(short)


LAYOUTS = {"table_queries": summary_layout, "table_twins": twin_layout}

SHOWN = {
    "table_queries": (
        "queries and answers",
        "The nearest training images of the queries by {recipe}, {epochs} epochs, hyperbolic distance. Rank of its own "
        "picture: where a file with the same pixels stands in the list, in brackets the class it is filed under.",
    ),
    "table_twins": (
        "identical pictures",
        "MAP in percent, AP divided by min(k, relevant), {recipe} over {folds} folds; means over the queries, in "
        "brackets chance, a gallery in random order. An identical picture has the same pixels as the query. *Identical "
        f"left out*: the same mappers search a gallery without it. {CLASS_MEAN}",
    ),
    "figure_confusion": (
        "confusion of the first answer",
        "The class of the first answer by {recipe}, every image as a query of its fold; percent of a class's queries.",
    ),
    "strips": (
        "query examples",
        "Query images at the left, their nearest training images by {recipe} at the right. Above each: its hyperbolic "
        "distance, and its class if the image before it has another. A dashed frame and a cross: another class.",
    ),
    "figure_beside": (
        "plain features and head",
        f"A query image at the left, its nearest images at the right: above by {PLAIN}, compared by their angle, below "
        f"{HEAD}, {{recipe}}. The gallery has no image of the query's own group. A dashed frame and a cross: another "
        "class. The queries that gain most and least right answers with the head, of one drawn from every class.",
    ),
}
"""Title and caption; the run's parameters fill them."""


def table(run: Run, name: str, rows: pd.DataFrame) -> Table:
    """One of :data:`LAYOUTS`."""
    return captions.table(run, SHOWN, name, rows, [column for column in OF_AN_ANSWER if column in rows])


def figure_confusion(run: Run, rows: pd.DataFrame) -> Figure:
    """The :func:`confusion` as a picture."""
    return captions.figure(run, SHOWN, "figure_confusion", rows, heat.confusion(rows))


def strips(rows: pd.DataFrame, images: ImageTable, queries: Sequence[str]) -> list[Strip]:
    """What :func:`lib.figures.strips.strips` draws: pictures of ``queries`` (image ids) and of their answers.

    rows: of :func:`answers` of one fold rule, a run of one class being named once; with a column method, plain features
    stand above the head, named once, without distances.
    """
    place = {image_id: i for i, image_id in enumerate(images.rows["image_id"])}
    by_method = "method" in rows
    shown = []
    for query in queries:
        own = rows[rows["query"] == query]
        own = own.sort_values("method", key=lambda names: names != PLAIN, kind="stable") if by_method else own
        names = own["method" if by_method else "reference_class"]
        begins = names.ne(names.shift()).to_numpy() | ((np.arange(len(own)) % COLUMNS == 0) & (not by_method))
        answers = []
        for row, name in zip(own.itertuples(), names.where(begins, ""), strict=True):
            picture, distance = read_image(images.path(place[row.reference])), None if by_method else row.distance
            answers.append(Answer(picture, name, distance, row.right, row.identical, row.own_group))
        of_class = own["query_class"].iloc[0].replace("_", " ")
        title = of_class if by_method else f"query {query.split('/')[-1]}\n{of_class}"
        shown.append(Strip(read_image(images.path(place[query])), title, answers))
    return shown


def drawn(shown: Sequence[Strip], group_kind: str) -> mpl.Figure:
    """The strips as a picture, the print above the answers as large as neither neighbours nor rows collide."""
    figure = draw(shown, group_kind, COLUMNS)
    above = [(axis, axis.title) for axis in figure.axes if axis.patches and axis.images]
    boxes = [title.get_window_extent() for _, title in above]
    side = above[0][0].get_window_extent().width + GAP * figure.dpi
    wide = side / max(box.width for box in boxes)
    tall = 0.9 * TITLE * figure.dpi / max(box.height for box in boxes)
    for _, title in above:
        title.set_fontsize(min(LARGEST, title.get_fontsize() * min(wide, tall)))
    return figure


def save_strips(run: Run, name: str, shown: Sequence[Strip], group_kind: str, rows: pd.DataFrame) -> Figure:
    """Draw and write the strips, by :meth:`lib.study.store.Run.save_pictures`."""
    words = "figure_beside" if "method" in rows else "strips"
    figure = captions.figure(run, SHOWN, words, rows, drawn(shown, group_kind))
    return run.save_pictures(name, replace(figure, free=OF_AN_ANSWER), drawn(bare(shown), group_kind))
