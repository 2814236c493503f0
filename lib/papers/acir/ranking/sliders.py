"""Sliders of notebook 34: one query, ranked by Hamming distance alone and with ties broken by content."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from lib.datasets.table import ImageTable
from lib.figures import strips
from lib.papers.acir.ranking.experiment import Coder, Scene
from lib.papers.acir.ranking.figures import Listed, algorithm, both_orders, first_of_classes, readout
from lib.widgets.board import Board
from lib.widgets.slider import Slider


def several(coders: Sequence[Coder], scene: Scene, names: Sequence[str]) -> dict[tuple[int, int], Listed]:
    """(bits, query) → list, for the first query of every class in the archive and networks of several lengths."""
    return {
        (coder.bits, query): algorithm(coder, list(coder.levels.values()), scene, names, query)
        for coder in coders
        for query in first_of_classes(scene)
    }


def explore(
    listed: Mapping[tuple[int, int], Listed], images: ImageTable, names: Sequence[str], labels: np.ndarray
) -> Board:
    """Sliders for the length of the code and the query, of lists that were made beforehand: (bits, query) → list."""
    lengths, queries = (sorted({key[side] for key in listed}) for side in (0, 1))

    def draw(bits: int, query: int) -> Figure:
        one = listed[int(bits), queries[int(query) - 1]]
        return strips.strips([both_orders(one, images, names[labels[one.query]])])

    def describe(bits: int, query: int) -> str:
        return readout(listed[int(bits), queries[int(query) - 1]])

    sliders = {
        "bits": Slider("bits", lengths, start=lengths[0]),
        "query": Slider("query", range(1, len(queries) + 1), start=1),
    }
    return Board(sliders, draw, describe, height=260)
