"""Queries and their answers one by one (Hyper-DINO, section 3.4), and what identical pictures do to MAP."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lib import paths
from lib.datasets.catalogue import facts
from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.figures import style
from lib.figures.strips import Answer, Strip
from lib.figures.strips import strips as draw
from lib.files import whole
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Figure, Table
from lib.results.store import Run
from lib.search import nearest
from lib.training.experiment import search
from lib.training.methods import Fitted

OF_AN_ANSWER = ("reference", "reference_class", "distance", "right", "own_group")
"""Columns that belong to a single answer: two that are nearly as near may swap."""


def pictures(pairs: pd.DataFrame, ids: Sequence[str]) -> np.ndarray:
    """The number of each image's picture, (n,): images with identical pixels share it.

    pairs: rows of :func:`lib.datasets.duplicates.find`, of which those of kind "identical" count; ids: (n,) image ids.

    >>> pairs = pd.DataFrame({"first": ["a", "a"], "second": ["c", "d"], "kind": ["identical", "near"]})
    >>> pictures(pairs, ["a", "b", "c", "d"]).tolist()
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
    """The k nearest reference images of each query, asked where the query is a test image.

    Args:
        fitted: one per fold of one fold rule.
        x: (n, dim) features.
        images: their table.
        picture: (n,) as :func:`pictures` gives it.
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
        distances, found = nearest(one.embed(x[mine]), one.embed(x[train]), k, one.geometry)
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
            Answer(picture(r.reference), r.reference_class, r.distance, r.right, r.identical, r.own_group)
            for r in rows.itertuples()
        ]
        shown.append(Strip(picture(query), f"query {query}\n{rows['query_class'].iloc[0].replace('_', ' ')}", found))
    return shown


def twins(fitted: Sequence[Fitted], x: np.ndarray, images: ImageTable, picture: np.ndarray, k: int) -> pd.DataFrame:
    """Every image as a query of its fold: its identical pictures in the gallery, and AP with and without these there.

    Arguments as in :func:`answers`.

    Returns:
        One row per query: index (its place in ``images``), same and other (identical pictures in the gallery, of its
        class and of another), ap and hit (AP@k over min(k, relevant), and whether rank 1 is right), ap_without and
        hit_without (these pictures left out of the gallery).
    """
    frames = []
    for one in fitted:
        test, train = one.split.test, one.split.train
        twin = picture[test][:, None] == picture[train]
        right = images.codes[test][:, None] == images.codes[train]
        values = {"same": (twin & right).sum(axis=1), "other": (twin & ~right).sum(axis=1)}
        for suffix, ids in (("", None), ("_without", picture)):
            found = search(one, x, images.codes, test, train, (1, k), ids)[1].values["ap_min"]
            values |= {f"hit{suffix}": found[1].to_numpy(), f"ap{suffix}": found[k].to_numpy()}
        frames.append(pd.DataFrame(values, index=test))
    return pd.concat(frames)


def twin_table(found: Mapping[str, pd.DataFrame], k: int) -> pd.DataFrame:
    """Means over queries with and without an identical picture in the gallery; ``found``: :func:`twins` by fold rule.

    Returns:
        Columns rule, queries (which), n, map_1, map_k (percent, k as given), and map_1_without, map_k_without with the
        identical pictures left out of the gallery. A query without any relevant image counts in n alone.
    """
    lines = []
    for rule, rows in found.items():
        parts = {
            "all": rows,
            "without an identical picture": rows[(rows["same"] == 0) & (rows["other"] == 0)],
            "identical picture of the same class": rows[(rows["same"] > 0) & (rows["other"] == 0)],
            "identical picture of another class": rows[rows["other"] > 0],
        }
        for name, part in parts.items():
            means = {
                column: 100 * part[source].mean()
                for column, source in (
                    ("map_1", "hit"),
                    (f"map_{k}", "ap"),
                    ("map_1_without", "hit_without"),
                    (f"map_{k}_without", "ap_without"),
                )
            }
            lines.append({"rule": rule, "queries": name, "n": len(part)} | means)
    return pd.DataFrame(lines)


def sentences(table: pd.DataFrame) -> list[str]:
    """Per fold rule: how many queries meet their own picture in the gallery."""
    lines = []
    for rule, rows in table.groupby("rule", sort=False):
        n = rows.set_index("queries")["n"]
        same, other = n["identical picture of the same class"], n["identical picture of another class"]
        lines.append(
            f"Folds {rule}: {same + other} of {n['all']:,} queries have an identical picture in the gallery, "
            f"{same} of the same class and {other} of another."
        )
    return lines


def twin_queries(found: pd.DataFrame, n: int) -> np.ndarray:
    """At most ``n`` queries (places in the images) with an identical picture in the gallery, of another class first.

    found: rows of :func:`twins`.
    """
    some = found[(found["same"] > 0) | (found["other"] > 0)].sort_index()
    return some.index[np.argsort(some["other"] == 0, kind="stable")[:n]].to_numpy()


def twin_layout(table: pd.DataFrame, k: int) -> str:
    """The table of identical pictures as Markdown."""
    shown = table.rename(
        columns={
            "rule": "folds",
            "map_1": "MAP@1",
            f"map_{k}": f"MAP@{k}",
            "map_1_without": "MAP@1, identical left out of the gallery",
            f"map_{k}_without": f"MAP@{k}, identical left out of the gallery",
        }
    )
    values = [column for column in shown if column.startswith("MAP")]
    return markdown_table(shown.assign(**{column: shown[column].map(percent) for column in values}))


def table_queries(run: Run, table: pd.DataFrame, k: int) -> Table:
    """How many answers of each query are right; every query with its list is in the rows."""
    rows = table[["rule", *table.columns.drop("rule")]]
    text = (
        "One query of every class, drawn at random, and queries whose own picture is in the gallery; their "
        f"{k} nearest training images by {run.parameters['recipe']}, {run.parameters['epochs']} epochs, hyperbolic "
        "distance. identical: the same pixels as the query. Every answer is in the csv file."
    )
    return Table("queries and answers", rows, text, free=OF_AN_ANSWER, markdown=summary_layout(rows, k))


def table_twins(run: Run, rows: pd.DataFrame, k: int) -> Table:
    """What identical pictures do to MAP, from the rows of :func:`twin_table`."""
    text = (
        f"MAP in percent, AP divided by min(k, relevant), {run.parameters['recipe']} over {run.parameters['folds']} "
        "folds. An identical picture has the same pixels as the query and lies in the query's gallery; the last two "
        "columns ask again without it. The mappers are the same in all columns: they were trained with these "
        "pictures."
    )
    return Table("identical pictures", rows, text, markdown=twin_layout(rows, k))


def save_strips(run: Run, name: str, shown: Sequence[Strip], group_kind: str, table: pd.DataFrame) -> Figure:
    """Draw and write the strips; returns the figure with its pictures, as a notebook shows it.

    Pictures that may be published go to the reports, with the line that their licence asks for. Of others the reports
    get the frames alone, and the figure with the pictures goes to ``build/figures/<profile>/<dataset>/``.
    """
    text = (
        f"Queries at the left, their nearest training images at the right, by {run.parameters['recipe']}; above each "
        "its hyperbolic distance and its class. A dashed frame and a cross mark another class than the query's."
    )
    source = facts(run.dataset).pictures
    text += f" {source}" if source else ""
    figure = Figure("query examples", table, text, free=OF_AN_ANSWER, figure=draw(shown, group_kind))
    if source is not None:
        return run.save(name, figure)
    with whole(paths.BUILD / "figures" / run.profile / run.dataset / f"{name}.png") as draft:
        style.save(figure.figure, draft)
    text += " The pictures themselves are not published; a run puts them below build/figures."
    run.save(name, replace(figure, caption=text, figure=draw(bare(shown), group_kind)))
    return figure


def bare(shown: Sequence[Strip]) -> list[Strip]:
    """The strips without their pictures."""
    return [replace(s, query=None, answers=[replace(a, image=None) for a in s.answers]) for s in shown]
