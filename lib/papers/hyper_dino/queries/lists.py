"""Queries and their answers one by one (section 3.4), as tables and as strips of pictures."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib import figure as mpl

from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.figures.strips import GAP, TITLE, Answer, Strip
from lib.figures.strips import strips as draw
from lib.results import pictures
from lib.results.markdown import markdown_table
from lib.results.shown import Figure, Table
from lib.results.store import Run
from lib.search import nearest
from lib.training.methods import Fitted

OF_AN_ANSWER = ("reference", "reference_class", "distance", "right", "own_group")
"""Columns that belong to a single answer: two that are nearly as near may swap."""

COLUMNS = 10
"""Answers in a row of a strip."""

LARGEST = 7.5
"""Points, of the print above an answer."""


def choose(labels: np.ndarray, candidates: np.ndarray, seed: int) -> np.ndarray:
    """One image of every class, drawn at random from ``candidates`` (indices), in the order of the classes."""
    shuffled = np.random.default_rng(seed).permutation(candidates)
    return shuffled[np.unique(labels[shuffled], return_index=True)[1]]


def answers(
    fitted: Sequence[Fitted], x: np.ndarray, images: ImageTable, picture: np.ndarray, queries: np.ndarray, k: int
) -> pd.DataFrame:
    """The k nearest reference images of each query, asked where the query is a test image.

    Args:
        fitted: one per fold of one fold rule.
        x: (n, dim) features.
        images: their table.
        picture: (n,) as :func:`.twins.pictures` gives it.
        queries: indices of images.
        k: length of the list.

    Returns:
        One row per query and rank: query, query_class, rank (from 1), reference, reference_class, distance, right,
        identical (the same picture), own_group (of the query's patient, lesion, ...).
    """
    asked = [(one, queries[np.isin(queries, one.split.test)]) for one in fitted]
    frames = []
    for one, mine in asked:
        if not len(mine):
            continue
        train = one.split.train
        distances, found = nearest(one.embed(x[mine]), one.embed(x[train]), k, one.space)
        query, reference = np.repeat(mine, k), train[found.numpy().ravel()]
        frames.append(
            pd.DataFrame(
                {
                    "query": query,
                    "rank": np.tile(np.arange(1, k + 1), len(mine)),
                    "reference": reference,
                    "distance": distances.numpy().ravel(),
                    "right": images.labels[query] == images.labels[reference],
                    "identical": picture[query] == picture[reference],
                    "own_group": images.groups[query] == images.groups[reference],
                }
            )
        )
    rows = pd.concat(frames).set_index("query").loc[queries].reset_index()
    ids = images.rows["image_id"].to_numpy()
    rows.insert(1, "query_class", images.labels[rows["query"]])
    rows.insert(4, "reference_class", images.labels[rows["reference"]])
    return rows.assign(query=ids[rows["query"]], reference=ids[rows["reference"]])


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """One row per fold rule and query: how many answers are right, of the own group, the same picture.

    Columns rule, query, class, right, first_wrong (its rank, missing if there is none), own_group, identical (the ranks
    of the same picture, with its class).
    """
    lines = []
    for (rule, query), rows in table.groupby(["rule", "query"], sort=False):
        same = rows[rows["identical"]]
        lines.append(
            {
                "rule": rule,
                "query": query,
                "class": rows["query_class"].iloc[0],
                "right": int(rows["right"].sum()),
                "first_wrong": rows["rank"][~rows["right"]].min(),
                "own_group": int(rows["own_group"].sum()),
                "identical": ", ".join(f"{row.rank} ({row.reference_class})" for row in same.itertuples(index=False)),
            }
        )
    return pd.DataFrame(lines).astype({"first_wrong": "Int64"})


def summary_layout(table: pd.DataFrame, k: int) -> str:
    """The :func:`summary` of answers in lists of ``k``, as Markdown."""
    short = summary(table)
    short["first_wrong"] = short["first_wrong"].astype(object).where(short["first_wrong"].notna(), "–")
    names = {
        "rule": "folds",
        "right": f"right of {k}",
        "first_wrong": "rank of the first error",
        "own_group": "of its own group",
        "identical": "rank of its own picture (class)",
    }
    return markdown_table(short.rename(columns=names))


def whole_lists(table: pd.DataFrame, k: int) -> list[str]:
    """Per fold rule: how many lists are right or wrong as a whole, and whether a distance warns of a wrong answer.

    Distances compare within one list only; an identical picture, at distance 0 whatever its class, is left out there.
    """
    lines = []
    for rule, rows in table.groupby("rule", sort=False):
        right = rows.groupby("query", sort=False)["right"].sum()
        few = k // 10
        most, least = (right >= k - few).sum(), (right <= few).sum()
        text = f"Folds {rule}: {most} of {len(right)} lists have at least {k - few} of {k} right, "
        text += f"{least} at most {few}, {len(right) - most - least} lie between"
        others = rows[~rows["identical"]]
        wrong = others[~others["right"]].groupby("query")["distance"].min()
        good = others[others["right"]].groupby("query")["distance"].agg(["min", "max"])
        mixed = good.join(wrong.rename("wrong"), how="inner")
        if len(mixed):
            between, before = ((mixed["wrong"] < mixed[end]).sum() for end in ("max", "min"))
            text += f"; of {len(mixed)} list{'s' * (len(mixed) != 1)} with right and wrong answers (identical pictures "
            text += f"left out), the nearest wrong one is nearer than the furthest right one in {between}, than every "
            text += f"right one in {before}"
        lines.append(text)
    return lines


def spread_out(table: pd.DataFrame, n: int) -> list[str]:
    """``n`` of the queries from the most to the fewest right answers, evenly: best, ..., worst."""
    right = table.groupby("query", sort=False)["right"].sum().sort_values(ascending=False, kind="stable")
    return right.index[np.linspace(0, len(right) - 1, min(n, len(right))).round().astype(int)].tolist()


def strips(table: pd.DataFrame, images: ImageTable, queries: Sequence[str]) -> list[Strip]:
    """What :func:`lib.figures.strips.strips` draws: pictures of ``queries`` (image ids) and of their answers.

    table: rows of :func:`answers` of one fold rule.
    """
    place = {image_id: i for i, image_id in enumerate(images.rows["image_id"])}

    def picture(image_id: str):
        return read_image(images.path(place[image_id]))

    shown = []
    for query in queries:
        rows = table[table["query"] == query]
        found = [
            Answer(picture(r.reference), named, r.distance, r.right, r.identical, r.own_group)
            for r, named in zip(rows.itertuples(), _once(rows["reference_class"].tolist()), strict=True)
        ]
        title = f"query {query.split('/')[-1]}\n{rows['query_class'].iloc[0].replace('_', ' ')}"
        shown.append(Strip(picture(query), title, found))
    return shown


def _once(classes: Sequence[str]) -> list[str]:
    """The name of every class where a run of it begins, and at the beginning of a row.

    >>> _once(["a", "a", "b", "a"])
    ['a', '', 'b', 'a']
    """
    return [name if place % COLUMNS == 0 or name != classes[place - 1] else "" for place, name in enumerate(classes)]


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


def table_queries(run: Run, table: pd.DataFrame, k: int) -> Table:
    """How many answers of each query are right; every query with its list is in the rows."""
    rows = table[["rule", *table.columns.drop("rule")]]
    text = (
        "One query of every class, drawn at random, and queries whose own picture is in the gallery; their "
        f"{k} nearest training images by {run.parameters['recipe']}, {run.parameters['epochs']} epochs, hyperbolic "
        "distance. Rank of its own picture: where a file with the same pixels stands in the list, in brackets the "
        "class it is filed under. Every answer is in the csv file."
    )
    return Table("queries and answers", rows, text, free=OF_AN_ANSWER, markdown=summary_layout(rows, k))


def save_strips(run: Run, name: str, shown: Sequence[Strip], group_kind: str, table: pd.DataFrame) -> Figure:
    """Draw and write the strips, see :func:`lib.results.pictures.save`; returns the figure that a notebook shows."""
    text = (
        f"Query images at the left, their nearest training images at the right, by {run.parameters['recipe']}. Above "
        "each: its hyperbolic distance, and its class if the image before it has another. A dashed frame and a "
        "cross mark another class than the query's."
    )
    figure = Figure("query examples", table, text, free=OF_AN_ANSWER, figure=drawn(shown, group_kind))
    return pictures.save(run, name, figure, drawn(bare(shown), group_kind))


def bare(shown: Sequence[Strip]) -> list[Strip]:
    """The strips without their pictures."""
    return [replace(s, query=None, answers=[replace(a, image=None) for a in s.answers]) for s in shown]
