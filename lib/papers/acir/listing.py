"""Algorithm 1 on one query: its list in both orders, drawn, as Fig. 6, and under sliders."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.figures import strips
from lib.figures.strips import Strip
from lib.metrics.hashing import pack
from lib.papers.acir.heads import TOP
from lib.papers.acir.ranking import Search
from lib.papers.acir.training import Codes
from lib.search.recommend import Archive
from lib.widgets.board import Board
from lib.widgets.slider import Slider

SHOWN = 3
"""Answers at either end of a list (Fig. 6)."""

FIRST = 10
"""Answers in a row under the sliders."""


def algorithm(
    codes: Codes, features: Sequence[np.ndarray], search: Search, names: Sequence[str], query: int
) -> pd.DataFrame:
    """Steps 4 and 5 for one query: every image of the archive, by distance and content; names: of the classes.

    Columns query, image (their numbers), label (its class), right, distance (Hamming), content (mean Pearson
    coefficient), by_hamming, by_content: its place, from 1 on, where ties stay in the order of the archive, and where
    content decides.
    """
    packed, gallery = pack(codes.h), search.gallery
    archive = Archive(packed[gallery], [level[gallery] for level in features])
    got = archive.recommend(packed[query], [level[query] for level in features], k=len(gallery))
    columns = {"distance": got.distance, "content": got.content, "by_content": range(1, len(gallery) + 1)}
    ranked, labels = pd.DataFrame(columns, index=got.images).sort_index(), search.labels[gallery]
    ranked.insert(2, "by_hamming", ranked["distance"].rank(method="first").astype(int))
    rows = {"image": gallery, "label": [names[c] for c in labels], "right": labels == search.labels[query]}
    return pd.DataFrame(rows).join(ranked).assign(query=query)


def first_of_classes(search: Search) -> list[int]:
    """The first query of every class that can be answered: the archive has an image of it."""
    can = search.queries[np.isin(search.labels[search.queries], search.labels[search.gallery])]
    _, at = np.unique(search.labels[can], return_index=True)
    return [int(query) for query in can[np.sort(at)]]


def unanswerable(search: Search, names: Sequence[str]) -> str:
    """Which queried classes have no image in the archive, as the end of a caption; nothing where there are none."""
    lacking = np.setdiff1d(search.labels[search.queries], search.labels[search.gallery])
    listed = ", ".join(names[c] for c in lacking)
    return f" Not shown, as the archive has no image of their class: {listed}." if listed else ""


def strip(rows: Sequence[tuple[pd.DataFrame, str]], images: ImageTable, title: str, places: Sequence[int]) -> Strip:
    """One query and its answers, a row for each list of :func:`algorithm` and order, at some places of the order.

    The number above an answer is its Hamming distance + (1 − content)/4.
    """
    answers = []
    for listed, order in rows:
        for _, row in listed.set_index(order).loc[list(places)].iterrows():
            picture, distance = read_image(images.path(int(row["image"]))), row["distance"] + (1 - row["content"]) / 4
            answers.append(strips.Answer(picture, str(row["label"]), float(distance), bool(row["right"])))
    query = int(rows[0][0]["query"].iloc[0])
    return Strip(read_image(images.path(query)), title, answers)


def figure_6(
    acir: Codes, csq: Codes, pooled: np.ndarray, search: Search, images: ImageTable
) -> tuple[list[Strip], pd.DataFrame]:
    """The first query of three classes, above by ACIR with content, below by CSQ without; and what is shown.

    The number above an answer of CSQ has the pooled feature for content, which does not order it.
    """
    last, shown, frames = min(TOP, len(search.gallery)), [], []
    places = [*range(1, SHOWN + 1), *range(last - SHOWN + 1, last + 1)]
    for query in first_of_classes(search)[:3]:
        by_acir = algorithm(acir, list(acir.levels.values()), search, images.classes, query)
        by_csq = algorithm(csq, [pooled], search, images.classes, query)
        rows = [(by_acir, "by_content"), (by_csq, "by_hamming")]
        name = images.classes[search.labels[query]]
        title = f"{name}\nabove: {acir.method}, by content\nbelow: {csq.method}, Hamming alone"
        shown.append(strip(rows, images, title, places))
        for (listed, order), codes in zip(rows, (acir, csq), strict=True):
            drawn = listed.set_index(order, drop=False).loc[places]
            frames.append(drawn.drop(columns="query").assign(method=codes.method, query=query))
    return shown, pd.concat(frames, ignore_index=True)


def sliders(all_codes: Sequence[Codes], search: Search, images: ImageTable) -> Board:
    """Sliders for the length of the code and the query: both orders of the first answers, of every class one query.

    Raises InputError for an archive with fewer than :data:`FIRST` images.
    """
    if len(search.gallery) < FIRST:
        raise InputError(f"the archive has {len(search.gallery)} images: too few for rows of {FIRST}")
    queries, names = first_of_classes(search), images.classes
    listed = {
        (codes.bits, number): algorithm(codes, list(codes.levels.values()), search, names, query)
        for codes in all_codes
        for number, query in enumerate(queries, start=1)
    }

    def draw(bits: int, query: int) -> Figure:
        rows = listed[int(bits), int(query)]
        title = f"{names[search.labels[queries[int(query) - 1]]]}\nabove: Hamming alone\nbelow: ties by content"
        both = [(rows, "by_hamming"), (rows, "by_content")]
        return strips.strips([strip(both, images, title, range(1, FIRST + 1))])

    def describe(bits: int, query: int) -> str:
        rows = listed[int(bits), int(query)]
        counts = rows["distance"].value_counts().sort_index().head(4)
        right = {order: rows.loc[rows[order] <= FIRST, "right"].sum() for order in ("by_hamming", "by_content")}
        lines = [f"distance {distance:>2}: {n:>4} images" for distance, n in counts.items()]
        lines += ["", f"right in the first {FIRST}, Hamming alone: {right['by_hamming']}"]
        return "\n".join([*lines, f"right in the first {FIRST}, ties by content: {right['by_content']}"])

    lengths = sorted({codes.bits for codes in all_codes})
    knobs = {
        "bits": Slider("bits", lengths, start=lengths[0]),
        "query": Slider("query", range(1, len(queries) + 1), start=1),
    }
    return Board(knobs, draw, describe, height=260)
