"""The same picture twice: where a query's own picture lies in the gallery, and what that does to MAP (section 3.4)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lib.datasets.table import ImageTable
from lib.metrics.classes import over_classes
from lib.results import answers
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Table
from lib.results.store import Run
from lib.training.experiment import search
from lib.training.methods import Fitted


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


def twins(fitted: Sequence[Fitted], x: np.ndarray, images: ImageTable, picture: np.ndarray, k: int) -> pd.DataFrame:
    """Every image as a query of its fold: its identical pictures in the gallery, and AP with and without these there.

    Arguments as in :func:`.lists.answers`.

    Returns:
        One row per query: index (its place in ``images``), same and other (identical pictures in the gallery, of its
        class and of another), ap and hit (AP@k over min(k, relevant), and whether rank 1 is right), ap_chance and
        hit_chance (a gallery in random order), all four once more as ap_without and so on (these pictures left out of
        the gallery), and label, the query's class.
    """
    frames = []
    for one in fitted:
        test, train = one.split.test, one.split.train
        twin = picture[test][:, None] == picture[train]
        right = images.codes[test][:, None] == images.codes[train]
        values = {"same": (twin & right).sum(axis=1), "other": (twin & ~right).sum(axis=1)}
        for suffix, ids in (("", None), ("_without", picture)):
            per_query = search(one, x, images.codes, test, train, (1, k), ids)[1]
            for what, found in (("", per_query.values["ap_min"]), ("_chance", per_query.chance["ap_min"])):
                values |= {f"hit{what}{suffix}": found[1].to_numpy(), f"ap{what}{suffix}": found[k].to_numpy()}
        frames.append(pd.DataFrame(values | {"label": images.codes[test]}, index=test))
    return pd.concat(frames)


def twin_table(found: Mapping[str, pd.DataFrame], k: int, fitted: Mapping[str, Sequence[Fitted]]) -> pd.DataFrame:
    """Means over queries with and without an identical picture in the gallery.

    Args:
        found: :func:`twins` by fold rule.
        k: length of the lists.
        fitted: the mappers by fold rule.

    Returns:
        Columns rule, queries (which), n; map_1, map_k (percent, k as given), class_mean_1, class_mean_k (averaged per
        class first), chance_1, chance_k (a gallery in random order); the same as map_1_without and so on, with the
        identical pictures left out of the gallery; and the health of the mappers: loss, rim, steps. A query without any
        relevant image counts in n alone.
    """
    lines = []
    for rule, rows in found.items():
        health = answers.ended([one.health for one in fitted[rule]])
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


def repaired(table: pd.DataFrame) -> list[str]:
    """Per fold rule: what leaving the identical pictures of another class out of the gallery gives those queries back.

    table: rows of :func:`twin_table`; a rule without such queries has no line.
    """
    lines = []
    k = next(column for column in table if column.startswith("map_") and column not in ("map_1", "map_1_without"))
    for row in table[(table["queries"] == "identical picture of another class") & (table["n"] > 0)].itertuples():
        told = []
        for column in ("map_1", k):
            before, after = getattr(row, column), getattr(row, f"{column}_without")
            told.append(f"MAP@{column.removeprefix('map_')} goes from {percent(before)} to {percent(after)}")
        lines.append(
            f"Folds {row.rule}: with the identical picture left out of the gallery, {' and '.join(told)} for these "
            f"{row.n:,} queries."
        )
    return lines


def twin_queries(found: pd.DataFrame, n: int) -> np.ndarray:
    """At most ``n`` queries (places in the images) with an identical picture in the gallery, of another class first.

    found: rows of :func:`twins`.
    """
    some = found[(found["same"] > 0) | (found["other"] > 0)].sort_index()
    return some.index[np.argsort(some["other"] == 0, kind="stable")[:n]].to_numpy()


def twin_layout(table: pd.DataFrame, k: int) -> str:
    """The table of identical pictures as Markdown, below it chance and the health of the mappers."""
    shown = table[["rule", "queries", "n"]].rename(columns={"rule": "folds"})
    for suffix, where in (("", ""), ("_without", ", identical left out")):
        for name, head in (("map", "MAP"), ("class_mean", "class mean")):
            for at in (1, k):
                shown[f"{head}@{at}{where}"] = table[f"{name}_{at}{suffix}"].map(percent)
    everybody = table[table["queries"] == "all"]
    return "\n\n".join([markdown_table(shown), *(_below(row, k) for _, row in everybody.iterrows())])


def _below(row: pd.Series, k: int) -> str:
    """Chance for all queries of a fold rule, and how the training of its mappers ended."""
    chance = " and ".join(f"{percent(row[f'chance_{at}'])} at k = {at}" for at in (1, k))
    health = ", ".join(f"{name} {cell}" for name, cell in answers.health(row).items())
    return f"Folds {row['rule']}: chance {chance}; the mappers: {health}."


def table_twins(run: Run, rows: pd.DataFrame, k: int) -> Table:
    """What identical pictures do to MAP, from the rows of :func:`twin_table`."""
    text = (
        f"MAP in percent, AP divided by min(k, relevant), {run.parameters['recipe']} over {run.parameters['folds']} "
        "folds. An identical picture has the same pixels as the query and lies in the query's gallery; the last four "
        f"columns ask again without it. {answers.CLASS_MEAN} "
        "The mappers, one training of each fold, are the same in all columns: they were trained with these "
        "pictures. Means over the queries; notebook 13 averages over the folds, and in places over several trainings."
    )
    return Table("identical pictures", rows, text, markdown=twin_layout(rows, k))
