"""What the paper prints of its results, and its words for them."""

import numpy as np
import pandas as pd

from lib import paths

PT, SCALED, TL = "PT, as they are", "PT, scaled", "TL"
"""Frozen features as the paper searches them, the same standardised as our heads get them, and the trained head.

PT, "pre-trained", and TL, "transfer-learned", are the paper's words.
"""

DATASETS = {"ham10000": "skin cancer (HAM10000)", "ovarian": "ovarian cancer"}
"""Ours → the paper's; its third set, of glomeruli, is private."""


def published() -> pd.DataFrame:
    """What the paper prints of its results: columns dataset, backbone, variant (PT or TL), value, note."""
    table = pd.read_csv(paths.PUBLISHED / "linear_prototypes_results.csv")
    table = table[(table["metric"] == "mAP@k") & table["variant"].isin(["PT", "TL"])]
    return table.rename(columns={"method": "backbone"})[["dataset", "backbone", "variant", "value", "note"]]


def gains() -> pd.DataFrame:
    """What follows from the printed values, beside the gain that the paper prints (LP-1, LP-2, LP-3).

    Columns dataset, best_pt, pt, best_tl, tl, follows (TL minus PT, points), printed (the gain of its Fig. 3), own_pt
    (the best TL backbone's own PT, NaN where it is not printed).
    """
    table = pd.read_csv(paths.PUBLISHED / "linear_prototypes_results.csv")
    printed = table[table["metric"] == "mean mAP gain"].set_index("dataset")["value"]
    lines = []
    for dataset, rows in published().groupby("dataset", sort=False):
        best = {name: part.loc[part["value"].idxmax()] for name, part in rows.groupby("variant")}
        own = rows[(rows["variant"] == "PT") & (rows["backbone"] == best["TL"]["backbone"])]["value"]
        lines.append(
            {
                "dataset": dataset,
                "best_pt": best["PT"]["backbone"],
                "pt": best["PT"]["value"],
                "best_tl": best["TL"]["backbone"],
                "tl": best["TL"]["value"],
                "follows": best["TL"]["value"] - best["PT"]["value"],
                "printed": printed.get(dataset, np.nan),
                "own_pt": own.iloc[0] if len(own) else np.nan,
            }
        )
    return pd.DataFrame(lines)
