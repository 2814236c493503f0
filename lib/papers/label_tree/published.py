"""What the paper prints: Tables 1 to 3, and the ranges that its text reads from them."""

import pandas as pd

from lib import paths

DATASETS = {
    "breakhis": "BreakHis",
    "odir": "ODIR-5K",
    "ham10000": "HAM-10K",
    "in_shop": "InShop",
    "inaturalist": "iNaturalist",
}
"""Ours → the paper's, in the order of its tables."""

METRICS = ("HF1", "H-Acc", "PC-Order", "Violations", "Top-1", "Recall@5")
METHODS = (
    "SimCLR (Euclidean)",
    "SimCLR (Hyperbolic)",
    "SupCon",
    "Hierarchical Contrastive",
    "HXE",
    "HWC (Euclidean)",
    "LAM (Euclidean)",
    "HWC+LAM (Euclidean)",
    "HWC+LAM (Hyperbolic)",
)
BASE, *OURS = METHODS[0], *METHODS[-2:]
"""What the text compares with, and the two methods that it reports gains of."""

FILES = {
    1: "label_tree_table1_breakhis.csv",
    2: "label_tree_table2_odir_ham.csv",
    3: "label_tree_table3_inshop_inaturalist.csv",
}

TYPICAL = {"alpha": (0.2, 1.0), "gamma": (0.2, 1.0), "tau": (0.05, 0.2), "margin": (0.1, 0.5), "rate": (0.01, 0.1)}
"""Section 3.4's typical hyper-parameters, lowest and highest; which were used is not said (erratum LT-16)."""


def results() -> pd.DataFrame:
    """Tables 1 to 3: a row per dataset (ours) and method (as printed), columns :data:`METRICS`, NaN without a value.

    All values are fractions and means of three seeds without a spread (erratum LT-9).

    >>> rows = results().set_index(["dataset", "method"])
    >>> float(rows.loc[("breakhis", "SupCon"), "H-Acc"]), float(rows.loc[("in_shop", "HXE"), "Recall@5"])
    (0.693, 0.941)
    """
    rows = pd.concat([pd.read_csv(paths.PUBLISHED / name) for name in FILES.values()])
    space = rows["geometry"].map({"euclidean": " (Euclidean)", "hyperbolic": " (Hyperbolic)"}).fillna("")
    ours = {title: name for name, title in DATASETS.items()}
    rows = rows.assign(dataset=rows["dataset"].map(ours), method=rows["method"] + space)
    wide = rows.pivot(index=["dataset", "method"], columns="metric", values="value")
    order = pd.MultiIndex.from_product([DATASETS, METHODS], names=["dataset", "method"])
    return wide.reindex(index=order, columns=list(METRICS)).rename_axis(columns=None).reset_index()


def of(dataset: str) -> tuple[int | None, pd.DataFrame]:
    """The number of the table that a dataset (ours) is in, and its rows of :func:`results`; None if the paper lacks it.

    BreakHis at one magnification stands beside the paper's, which has all four.

    >>> of("bh200x")[0], of("tissue")[0], len(of("tissue")[1])
    (1, None, 0)
    """
    tables = {"breakhis": 1, "odir": 2, "ham10000": 2, "in_shop": 3, "inaturalist": 3}
    name = "breakhis" if dataset.startswith("bh") else dataset
    rows = results()
    return tables.get(name), rows[rows["dataset"] == name]


def ranges() -> pd.DataFrame:
    """The gains over SimCLR (Euclidean) that the text states: columns section, metric, datasets (a list), low, high.

    low and high are percentage points, of Violations the drop in percent; equal where the text names one number.

    >>> first = ranges().iloc[0]
    >>> first["metric"], float(first["low"]), float(first["high"])
    ('HF1', 7.0, 13.0)
    """
    claims = pd.read_csv(paths.PUBLISHED / "claims.csv").set_index("id")
    all_five, deep = list(DATASETS), [name for name in DATASETS if name != "in_shop"]
    stated = [
        ("4.5", "HF1", all_five, "lt-02", "lt-03"),
        ("4.5", "PC-Order", all_five, "lt-04", "lt-05"),
        ("4.5", "Violations", all_five, "lt-06", "lt-07"),
        ("4.5", "Top-1", deep, "lt-08", "lt-09"),
        ("4.5", "Recall@5", ["in_shop"], "lt-10", "lt-10"),
        ("5", "HF1", deep, "lt-15", "lt-16"),
        ("5", "PC-Order", deep, "lt-17", "lt-18"),
        ("5", "Violations", deep, "lt-19", "lt-20"),
        ("5", "Top-1", deep, "lt-21", "lt-22"),
        ("5", "HF1", ["in_shop"], "lt-24", "lt-24"),
        ("5", "PC-Order", ["in_shop"], "lt-25", "lt-25"),
        ("5", "Violations", ["in_shop"], "lt-26", "lt-26"),
    ]
    columns = ["section", "metric", "datasets", "low", "high"]
    value = claims["value"].astype(float)
    return pd.DataFrame([(*row[:3], value[row[3]], value[row[4]]) for row in stated], columns=columns)
