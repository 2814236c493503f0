"""What the paper prints: Tables 2 to 6, and what its abstract and its text say of them."""

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


def rotation_gap(dataset: str, k: int, family: str = "dim_in") -> float:
    """MAP@k of the printed row PCA(384) minus that of [CLS], which PCA only rotates, both of one family (HD-6)."""
    rows = published(dataset).query("family == @family and dim_in == 384 and k == @k").set_index("cls")["published"]
    return float(rows[False] - rows[True])


def headlines() -> pd.DataFrame:
    """What abstract and text say of each table's best value, beside the table itself (HD-1, HD-2, HD-4).

    Columns dataset, abstract and largest (MAP@20 of the abstract, and the largest of the 32-number family), lengths
    (the input length that is best at each k), baseline (the best of [9] at k = 20), printed_in ("table" or "text",
    where that baseline stands), gain (abstract minus baseline, percentage points).
    """
    claims = pd.read_csv(paths.PUBLISHED / "claims.csv").query("quantity == 'MAP@20' and id.str.startswith('hd-')")
    lines = []
    for dataset in TABLES:
        printed = claims[claims["dataset"].str.lower() == dataset].set_index("section")["value"]
        compact = published(dataset).query("family == '32'").reset_index(drop=True)
        best = compact.loc[compact.groupby("k")["published"].idxmax()].set_index("k")
        in_table = baseline(dataset, 20)
        in_text = claims[(claims["dataset"].str.lower() == dataset) & (claims["claim"] == "best baseline")]["value"]
        without = in_table.max() if len(in_table) else in_text.item()
        line = {"dataset": dataset, "abstract": printed["Abstract"], "largest": best["published"][20]}
        line |= {"lengths": ", ".join(map(str, best["dim_in"])), "baseline": without}
        lines.append(line | {"printed_in": "table" if len(in_table) else "text", "gain": printed["Abstract"] - without})
    return pd.DataFrame(lines)


def compact_wins() -> pd.DataFrame:
    """How often 32 numbers beat ``dim_in`` numbers from the same input at the same k (HD-5).

    Columns dataset, wins, of, longest_loss (the most inputs with which 32 numbers are not better).
    """
    lines = []
    for dataset in TABLES:
        wide = published(dataset).pivot(index=["cls", "dim_in", "k"], columns="family", values="published")
        wide = wide.dropna(subset=["32", "dim_in"])
        won = wide["32"] > wide["dim_in"]
        lost = won.index[~won].get_level_values("dim_in")
        lines.append({"dataset": dataset, "wins": won.sum(), "of": len(won), "longest_loss": lost.max()})
    return pd.DataFrame(lines)
