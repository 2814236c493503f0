"""What the paper prints, read off its tables."""

import pytest

from lib.papers.acir import published


def test_table_1_is_that_of_the_paper():
    """Read off Table 1: the column of RadIN-CT at 8 bits, and ACIR's row on BPS."""
    table = published.maps().set_index(["dataset", "bits", "method"]).sort_index()
    names = ["CSQ", "DPN", "DBDH", "DCH", "DSDH", "QSMIH", "ViT-LLaMa", "FIRe", "ATH", "MTH", "ACIR"]
    column = table.loc[("radin_ct", 8), "mAP"]
    assert column[names].tolist() == [66.0, 57.3, 50.8, 60.8, 44.9, 49.2, 61.3, 61.3, 32.7, 49.4, 68.3]
    acir = [table.loc[("bps", bits, "ACIR")].tolist() for bits in (8, 16, 64, 128)]
    assert acir == [[96.8, 96.4], [97.1, 97.0], [97.4, 97.1], [97.7, 97.3]]
    assert len(table) == 11 * 2 * 4 and table.notna().all(axis=None)


def test_table_6_is_that_of_the_paper():
    table = published.radii().set_index(["method", "radius"])
    assert table.loc[("ACIR", 7), ["accuracy", "precision", "recall"]].tolist() == [77.0, 77.0, 76.6]
    assert len(table) == 4 * 8
    by = published.radii().pivot(index="radius", columns="method")
    assert by["precision", "CSQ"][1] - by["precision", "CSQ"][0] == pytest.approx(-2.9)  # erratum AC-19
    lead = by["accuracy", "ACIR"] - by["accuracy", "CSQ"]
    assert lead.index[lead > 0].tolist() == [3, 4, 5, 6, 7]


def test_acir_is_not_best_everywhere():
    """Erratum AC-9: CSQ with 8 bits on BPS."""
    table = published.maps().pivot(index=["dataset", "bits"], columns="method", values="mAP")
    assert table.index[table.idxmax(axis=1) != "ACIR"].tolist() == [("bps", 8)]
