"""What the paper prints: its tables, and what its text says of them."""

import pandas as pd

from lib import paths

DATASETS = {"cub": "CUB-200", "cars": "Cars-196", "sop": "SOP", "in_shop": "In-Shop"}
"""Ours → the columns of the paper's tables, in their order."""


def rate(network: str) -> float:
    """The learning rate of encoder and head together that section 3.2 has for a network: for DINO a lower one.

    >>> rate("dino_vits16"), rate("vit_small_patch16_224.augreg_in21k")
    (1e-05, 3e-05)
    """
    return 1e-5 if "dino" in network else 3e-5


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


def patches() -> pd.DataFrame:
    """Table 4, Cars-196: columns method, encoder, dim, patch, batch, k, value (percent).

    patch: pixels of a side, NaN of earlier methods. batch: images, where it is not that of the other tables, else NaN.

    >>> rows = patches().set_index(["dim", "patch", "k"])
    >>> rows["value"][128, 8, 1].item(), rows["value"][128, 16, 1].item(), rows["batch"][128, 8, 1].item()
    (90.4, 86.0, 120.0)
    """
    rows = pd.read_csv(paths.PUBLISHED / "hyp_vit_table4_patch_size.csv").rename(columns={"patch_size": "patch"})
    batch = rows["note"].str.extract(r"batch size (\d+)", expand=False).astype(float)
    earlier = rows["variant"].str.rpartition(", ")[2]
    rows = rows.assign(batch=batch, encoder=earlier.where(rows["patch"].isna(), "ViT-S"))
    return rows[["method", "encoder", "dim", "patch", "batch", "k", "value"]]


def settings() -> pd.DataFrame:
    """Table 5, In-Shop, Recall@1 in percent: columns of (none, c, head_dim, batch_size), value, encoder, head.

    A row per changed setting; ``value`` is NaN where none is. The default row is Hyp-DINO's (HV-5).

    >>> rows = settings().set_index(["of", "value"])
    >>> float(rows.loc[("c", 1.0), "head"]), float(rows.loc[("batch_size", 1600), "encoder"])
    (89.2, 92.4)
    """
    rows = pd.read_csv(paths.PUBLISHED / "hyp_vit_table5_hyperparameters.csv")
    rows["of"] = rows["variant"].str.removeprefix("changed: ")
    rows["value_of"] = [row[row["of"]] if row["of"] in rows else float("nan") for _, row in rows.iterrows()]
    rows["output"] = rows["output"].str.partition(" ")[0]
    wide = rows.pivot_table(index=["of", "value_of"], columns="output", values="value", dropna=False, sort=False)
    wide = wide.dropna(how="all").reset_index().rename(columns={"value_of": "value"})
    return wide.rename_axis(columns=None)[["of", "value", "encoder", "head"]]
