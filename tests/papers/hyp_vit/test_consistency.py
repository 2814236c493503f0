"""Hyp- against Sph-, cell by cell, on a toy table that is worked by hand, and on the published ones."""

import pandas as pd
import pytest

from lib.papers.hyp_vit import consistency
from lib.papers.hyp_vit.published import recall
from lib.papers.hyp_vit.retrieval.stated import texts

SAID = pd.DataFrame({"claim": ["the ball wins"]}, index=["hv-14"])


def toy(**values: list[float]) -> pd.DataFrame:
    """Two cells of Table 2 (K = 1, 2) and one of Table 3 (K = 1) of every method, an earlier one among them."""
    of = {"Hyp-ViT": [80, 90, 85], "Sph-ViT": [79, 90, 86], "Hyp-DINO": [70, 80, 75], "MIC": [99, 99, 99]} | values
    places = [(2, 1), (2, 2), (3, 1)]
    return pd.DataFrame(
        [
            (method, table, "cub", k, float(value))
            for method, several in of.items()
            for (table, k), value in zip(places, several, strict=True)
        ],
        columns=["method", "table", "dataset", "k", "value"],
    )


def test_cells_that_have_both_are_counted_by_table():
    """Hyp-ViT is above by 1, level, and below by 1; Hyp-DINO has nobody to be compared with."""
    assert consistency.beside_spherical(toy(), SAID) == [
        "HV-13, the text: the ball wins; all Recall@K, of which no spread is printed:",
        "  both tables: Hyp- above Sph- in 1 of 3 cells, the same in 1, below in 1; differences from -1.0 to +1.0 "
        "points, median +0.0",
        "  Table 2: Hyp- above Sph- in 1 of 2 cells, the same in 1, below in 0",
        "  Table 3: Hyp- above Sph- in 0 of 1 cells, the same in 0, below in 1",
    ]


def test_a_version_is_compared_with_its_own():
    rows = toy(**{"Sph-DINO": [71, 81, 76]})
    found = consistency.cells(rows)
    assert len(found) == 6 and (found.xs("DINO", level="version").eval("Hyp - Sph") == -1).all()


def test_a_cell_twice_is_an_error():
    with pytest.raises(ValueError, match="duplicate"):
        consistency.cells(pd.concat([toy(), toy()]))


def test_the_published_cells():
    """As counted by hand for the erratum: 2 tables x 4 datasets x 4 K x 3 versions, two ties, none below."""
    rows = pd.concat([recall(number).assign(table=number) for number in (2, 3)])
    head, both, *by_table = consistency.beside_spherical(rows, texts())
    assert "hyperbolic versions beat spherical ones consistently" in head
    assert "Hyp- above Sph- in 94 of 96 cells, the same in 2, below in 0" in both
    assert [line.partition(" cells")[0][-5:] for line in by_table] == ["of 48", "of 48"]
