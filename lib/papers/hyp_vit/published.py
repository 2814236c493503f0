"""What the paper prints: Table 1, and what its text says of it."""

import pandas as pd

from lib import paths

DATASETS = {"cub": "CUB-200", "cars": "Cars-196", "sop": "SOP", "in_shop": "In-Shop"}
"""Ours → the columns of the paper's tables, in their order."""


def delta() -> pd.DataFrame:
    """Table 1: columns encoder, dataset (ours, see :data:`DATASETS`), relative (the relative Gromov δ).

    >>> table = delta().set_index(["encoder", "dataset"])["relative"]
    >>> float(table["ViT-S", "cub"]), float(table["DINO", "in_shop"])
    (0.28, 0.318)
    """
    table = pd.read_csv(paths.PUBLISHED / "hyp_vit_table1_delta.csv")
    ours = {title: name for name, title in DATASETS.items()}
    return pd.DataFrame(
        {"encoder": table["variant"], "dataset": table["dataset"].map(ours), "relative": table["value"]}
    )


def curvatures() -> tuple[float, float]:
    """The c that section 3.4 reads from Table 1, "close to", and the c that the experiments use.

    >>> curvatures()
    (0.2, 0.1)
    """
    claims = pd.read_csv(paths.PUBLISHED / "claims.csv").set_index("id")["value"]
    return float(claims["hv-19"]), float(claims["hv-20"])


def recall(table: int) -> pd.DataFrame:
    """Table 2 (heads of 128 numbers) or 3 (encoders): columns method, encoder, dim, dataset (ours), k, value (percent).

    >>> rows = recall(2).set_index(["method", "dataset", "k"])["value"]
    >>> float(rows["Hyp-ViT", "cub", 1]), float(rows["Sph-ViT", "cub", 1])
    (84.0, 83.2)
    """
    names = {2: "hyp_vit_table2_head128_recall.csv", 3: "hyp_vit_table3_encoder384_recall.csv"}
    rows = pd.read_csv(paths.PUBLISHED / names[table])
    ours = {"CUB-200-2011": "cub", "Cars-196": "cars", "SOP": "sop", "In-Shop": "in_shop"}
    return rows.assign(dataset=rows["dataset"].map(ours))[["method", "encoder", "dim", "dataset", "k", "value"]]
