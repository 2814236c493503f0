"""What the paper prints: Tables 2 to 6."""

import pandas as pd

from lib import paths

TABLES = {
    "kather": "hyper_dino_table2_kather",
    "bh40x": "hyper_dino_table3_bh40x",
    "bh100x": "hyper_dino_table4_bh100x",
    "bh200x": "hyper_dino_table5_bh200x",
    "bh400x": "hyper_dino_table6_bh400x",
}
FAMILIES = {"baseline": "no mapper, Euclidean", "32": "Hyper-DINO(·, 32)", "dim_in": "Hyper-DINO(·, dim_in)"}


def published(dataset: str) -> pd.DataFrame:
    """The paper's MAP@k for one of its datasets: columns cls, dim_in, family, k, published (percent).

    ``cls`` says that the input is the scaled [CLS] token itself; every other cell is the better of PCA and NCA.

    Raises:
        KeyError: if the paper has no table for ``dataset``.
    """
    table = pd.read_csv(paths.PUBLISHED / f"{TABLES[dataset]}.csv")
    family = {"baseline_pca_nca_dino": "baseline", "hyper_dino_32": "32", "hyper_dino_dim_in": "dim_in"}
    return pd.DataFrame(
        {
            "cls": table["variant"] == "[CLS]",
            "dim_in": table["dim_in"],
            "family": table["features"].map(family),
            "k": table["k"],
            "published": table["value"],
        }
    )


def baseline(dataset: str, k: int) -> pd.Series:
    """MAP@k of the printed baseline [9], by the number of PCA or NCA components; empty where none is printed."""
    return published(dataset).query("family == 'baseline' and k == @k").set_index("dim_in")["published"]


def rotation_gap(dataset: str, k: int) -> float:
    """MAP@k of the printed row PCA(384) minus that of [CLS], which PCA only rotates; both with 384 outputs (HD-6)."""
    rows = published(dataset).query("family == 'dim_in' and dim_in == 384 and k == @k").set_index("cls")["published"]
    return float(rows[False] - rows[True])
