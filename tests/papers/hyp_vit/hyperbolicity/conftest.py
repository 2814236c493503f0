"""Rows of notebook 21, of which tables and sentences are made."""

import pandas as pd
import pytest

from lib.papers.hyp_vit.hyperbolicity import measures, tables


@pytest.fixture
def procedures() -> pd.DataFrame:
    def draws(values: list[float]) -> pd.DataFrame:
        return pd.DataFrame({"encoder": "net", "draw": range(len(values)), "relative": values})

    ladder = pd.DataFrame({"encoder": "net", "size": [20, 60], "relative": [0.2, 0.25], "low": 0.1, "high": 0.3})
    every_base = pd.DataFrame(
        {"encoder": "net", "draw": [0, 0, 1, 1], "base": [0, 1, 0, 1], "relative": [0.2, 0.3, 0.3, 0.3]}
    )
    own, unit = draws([0.24, 0.26]), draws([0.3, 0.3])
    return tables.procedures(own, unit, ladder.assign(n_draws=2), every_base, 60)


@pytest.fixture
def changed() -> pd.DataFrame:
    lines = [
        ("net", "shuffled", -0.1, -0.12, -0.08),
        ("texture", "shuffled", 0.1, 0.05, 0.15),
        ("net", "other", 0, -1, 1),
    ]
    rows = pd.DataFrame(lines, columns=["encoder", "features", "difference", "low", "high"])
    rows = rows.assign(own_relative=0.2, own_directions=3.0, directions=30.0, n_draws=3)
    return rows.assign(relative=rows["own_relative"] + rows["difference"])


@pytest.fixture
def searched() -> pd.DataFrame:
    test = {"n_units": 10, "p_floor": 0.002, "p_value": 0.01, "n_seeds": 1, "n_tests": 2, "low": -4.0, "high": -2.0}
    rows = [
        test | {"rule": "net", "k": 1, "difference": -3.0, "p_holm": 0.01, "euclidean": 80.0, "hyperbolic": 77.0},
        test | {"rule": "net", "k": 20, "difference": 0.5, "p_holm": 0.4, "euclidean": 60.0, "hyperbolic": 60.5},
    ]
    names = {
        "first": measures.BALL,
        "second": measures.FLAT,
        "relative": 0.24,
        "c": 0.36,
        "radius": 55.0,
        "chance": 12.5,
    }
    return pd.DataFrame(rows).assign(**names)
