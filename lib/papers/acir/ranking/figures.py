"""Algorithm 1 on one query, Fig. 6, what ties leave open, and the slider."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.figures import strips, style
from lib.metrics.hashing import hamming, pack
from lib.papers.acir.hashing.experiment import TOP
from lib.papers.acir.ranking.experiment import BEST, HAMMING, LEVELS, POOLED, WORST, Coder, Scene
from lib.results.markdown import markdown_table
from lib.search.recommend import Archive

SHOWN = 3
"""Answers at either end of a list (Fig. 6)."""

FIRST = 10
"""Answers in a row of Algorithm 1."""


@dataclass(frozen=True, eq=False)
class Listed:
    """Algorithm 1 for one query: every image of the archive, in both orders.

    rows: columns image (its number), label (its class), right, distance (Hamming), content (mean Pearson coefficient),
    by_hamming, by_content: its place, from 1 on, where ties stay in the order of the archive, and where content
    decides.
    """

    query: int
    rows: pd.DataFrame


def algorithm(coder: Coder, features: Sequence[np.ndarray], scene: Scene, names: Sequence[str], query: int) -> Listed:
    """Steps 4 and 5: distances, content, and lexsort by both; names: of the classes."""
    packed, gallery = pack(coder.h), scene.gallery
    archive = Archive(packed[gallery], [level[gallery] for level in features])
    found = archive.recommend(packed[query], [level[query] for level in features], k=len(gallery))
    labels = scene.labels[gallery]
    rows = pd.DataFrame({"image": gallery, "label": [names[c] for c in labels], "right": labels == scene.labels[query]})
    place = pd.Series(range(1, len(gallery) + 1), index=found.images)
    rows = rows.assign(
        distance=pd.Series(found.distance, index=found.images), content=pd.Series(found.content, index=found.images)
    )
    by_hamming = rows["distance"].rank(method="first").astype(int)
    return Listed(query, rows.assign(by_hamming=by_hamming, by_content=place))


def most_tied(coder: Coder, scene: Scene) -> int:
    """The query with most images at its smallest distance, of which about half are of its class; the first of several.

    About half: from a third to two thirds. Where there is none, that with the most images at its smallest distance.
    """
    packed = pack(coder.h)
    distance = hamming(packed[scene.queries], packed[scene.gallery])
    nearest = distance == distance.min(axis=1, keepdims=True)
    own = (nearest & scene.relevant).sum(axis=1) / nearest.sum(axis=1)
    mixed = (own >= 1 / 3) & (own <= 2 / 3)
    return int(scene.queries[np.where(mixed | ~mixed.any(), nearest.sum(axis=1), 0).argmax()])


def first_of_classes(scene: Scene) -> list[int]:
    """The first query of every class that can be answered: the archive has an image of it."""
    can = scene.queries[np.isin(scene.labels[scene.queries], scene.labels[scene.gallery])]
    _, at = np.unique(scene.labels[can], return_index=True)
    return [int(query) for query in can[np.sort(at)]]


def unanswerable(scene: Scene, names: Sequence[str]) -> str:
    """Which classes ask and have no image in the archive, as the end of a caption; nothing where there are none."""
    lacking = np.setdiff1d(scene.labels[scene.queries], scene.labels[scene.gallery])
    told = ", ".join(names[c] for c in lacking)
    return f" Not asked here, as the archive has no image of their class: {told}." if told else ""


def strip(
    listed: Listed, images: ImageTable, order: str, title: str, places: Sequence[int], pictures: bool = True
) -> strips.Strip:
    """The answers at some places of one order; the number above each is Hamming distance + (1 − content)/4."""
    by = listed.rows.set_index(order)
    answers = [
        strips.Answer(
            read_image(images.path(int(row["image"]))) if pictures else None,
            str(row["label"]),
            float(row["distance"] + (1 - row["content"]) / 4),
            bool(row["right"]),
        )
        for _, row in by.loc[list(places)].iterrows()
    ]
    return strips.Strip(read_image(images.path(listed.query)) if pictures else None, title, answers)


def bare(shown: Sequence[strips.Strip]) -> list[strips.Strip]:
    """The same without pictures."""
    return [replace(one, query=None, answers=[replace(answer, image=None) for answer in one.answers]) for one in shown]


def joined(above: strips.Strip, below: strips.Strip, title: str) -> strips.Strip:
    """One query with two rows of answers; ``title`` stands above it."""
    return replace(above, title=title, answers=[*above.answers, *below.answers])


def both_orders(listed: Listed, images: ImageTable, name: str) -> strips.Strip:
    """The first :data:`FIRST` answers, above by Hamming distance in the order of the archive, below by content.

    Raises InputError for an archive with fewer images.
    """
    if len(listed.rows) < FIRST:
        raise InputError(f"the archive has {len(listed.rows)} images: too few for rows of {FIRST}")
    places = range(1, FIRST + 1)
    rows = (strip(listed, images, order, "", places) for order in ("by_hamming", "by_content"))
    return joined(*rows, f"{name}\nabove: Hamming alone\nbelow: ties by content")


def ends(listed: Listed, images: ImageTable, order: str) -> strips.Strip:
    """Fig. 6: the :data:`SHOWN` most and least alike of the first :data:`TOP` answers."""
    last = min(TOP, len(listed.rows))
    places = [*range(1, SHOWN + 1), *range(last - SHOWN + 1, last + 1)]
    return strip(listed, images, order, "", places)


def ties(rows: pd.DataFrame) -> Figure:
    """What the order of ties leaves open: mAP from worst to best, in expectation and by content, over the length.

    rows: of :func:`lib.papers.acir.ranking.tables.summary`.
    """
    marks = {
        HAMMING: ("o", "in expectation"),
        POOLED: ("s", "by the pooled feature"),
        LEVELS: ("^", "ACIR's levels"),
    }
    lengths, methods = sorted(rows["bits"].unique()), list(rows["method"].unique())
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 3.4))
        for number, method in enumerate(methods):
            part = rows[rows["method"] == method]
            at = np.arange(len(lengths)) + 0.18 * (number - (len(methods) - 1) / 2)
            by = part.set_index(["ranking", "bits"])["ap_min"]
            axis.vlines(
                at, by[WORST].loc[lengths], by[BEST].loc[lengths], color=style.PALETTE[number], linewidth=5, alpha=0.4
            )
            axis.vlines([], [], [], color="0.6", linewidth=5, label="from the worst to the best order of ties")
            for ranking, (marker, label) in marks.items():
                if ranking in by.index.get_level_values("ranking"):
                    axis.plot(
                        at, by[ranking].loc[lengths], marker, color="black", markersize=4, fillstyle="none", label=label
                    )
            for x, top in zip(at, by[BEST].loc[lengths], strict=True):
                axis.annotate(method, (x, top), (0, 3), textcoords="offset points", ha="center", fontsize=6.5)
        axis.set_xticks(range(len(lengths)), [f"{bits} bits" for bits in lengths])
        axis.set_xlabel("length of the code")
        axis.set_ylabel(f"mAP@{TOP}, min(k, R) (%)")
        axis.margins(y=0.12)  # room for the names above the bars
        handles = dict(reversed(pair) for pair in zip(*axis.get_legend_handles_labels(), strict=True))
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def figure_6(
    acir: Coder, csq: Coder, pooled: np.ndarray, scene: Scene, images: ImageTable, n: int = 3
) -> tuple[list[strips.Strip], pd.DataFrame]:
    """One query of ``n`` classes, above by ACIR with content, below by CSQ without; and what is shown.

    Queries are those of :func:`first_of_classes`. The number above an answer of CSQ has the pooled feature for content,
    which does not order it.
    """
    shown, frames = [], []
    kinds = ((acir, list(acir.levels.values()), "by_content"), (csq, [pooled], "by_hamming"))
    for query in first_of_classes(scene)[:n]:
        rows = []
        for coder, features, order in kinds:
            listed = algorithm(coder, features, scene, images.classes, query)
            rows.append(ends(listed, images, order))
            first = listed.rows.sort_values(order).head(TOP)
            both = pd.concat([first.head(SHOWN), first.tail(SHOWN)])
            frames.append(both.assign(method=coder.method, query=query))
        name = images.classes[scene.labels[query]]
        shown.append(joined(*rows, f"{name}\nabove: {acir.method}, by content\nbelow: {csq.method}, Hamming alone"))
    return shown, pd.concat(frames, ignore_index=True)


def listing(rows: pd.DataFrame) -> str:
    """Rows of :class:`Listed` as Markdown, in the order that they have."""
    lines = [
        {
            "place, ties by content": row.by_content,
            "by Hamming alone": row.by_hamming,
            "class": row.label,
            "right": "yes" if row.right else "no",
            "Hamming distance": row.distance,
            "content": f"{row.content:.3f}",
        }
        for row in rows.itertuples(index=False)
    ]
    return markdown_table(pd.DataFrame(lines))


def _right(one: Listed) -> dict[str, int]:
    """How many of the first ten answers are of the query's class, in each order."""
    return {order: int(one.rows.loc[one.rows[order] <= 10, "right"].sum()) for order in ("by_hamming", "by_content")}


def right_sentence(one: Listed) -> str:
    """What Algorithm 1 changes for one query, in a sentence."""
    near = one.rows["distance"] == one.rows["distance"].min()
    right = _right(one)
    return (
        f"in the example {near.sum()} images lie at the smallest distance, {one.rows.loc[near, 'right'].mean():.0%} of "
        f"them of the query's class; of its first ten {right['by_hamming']} are right in the order of the archive and "
        f"{right['by_content']} by content"
    )


def readout(one: Listed) -> str:
    """How many images share each of the smallest distances, and how many of the first ten are of the query's class."""
    counts = one.rows["distance"].value_counts().sort_index().head(4)
    right = _right(one)
    return "\n".join(
        [
            *(f"distance {distance:>2}: {n:>4} images" for distance, n in counts.items()),
            "",
            f"right in the first 10, Hamming alone: {right['by_hamming']}",
            f"right in the first 10, ties by content: {right['by_content']}",
        ]
    )
