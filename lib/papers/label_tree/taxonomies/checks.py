"""Do the published tables fit together? Errata LT-4 to LT-8, worked out from Tables 1 to 3."""

import numpy as np
import pandas as pd

from lib.papers.label_tree import published
from lib.results.markdown import markdown_table

ROUNDING = 0.0005
"""Half of the last printed digit; a sum or difference of two printed values can be off by twice that."""

YES, NO = "fits", "**impossible**"
PANELS = {"breakhis": "BreakHis", "odir": "ODIR", "ham10000": "HAM", "in_shop": "InShop", "inaturalist": "iNat"}


def hf1_and_top1() -> pd.DataFrame:
    """LT-4: HF1 of a set of predictions is at least its Top-1; 36 rows have both.

    Columns dataset, method, top1, hf1, difference (HF1 − Top-1), verdict.
    """
    rows = published.results().dropna(subset="Top-1")
    difference = rows["HF1"] - rows["Top-1"]
    fits = difference >= -2 * ROUNDING
    found = rows[["dataset", "method"]].assign(top1=rows["Top-1"], hf1=rows["HF1"], difference=difference)
    return found.assign(verdict=np.where(fits, YES, NO)).reset_index(drop=True)


def breakhis() -> pd.DataFrame:
    """LT-4 and LT-5 on Table 1, whose tree is printed: what HF1 has to be, given H-Acc and Top-1.

    With L = 2 the share s of sibling mistakes makes H-Acc = Top-1 + s/2 and HF1 without the root the same; with the
    root HF1 = 1/3 + 2/3 H-Acc. With L = 3 even the worst answer has H-Acc 1/3: it is 4 edges away, of 2L = 6.

    Columns method, top1, h_acc, hf1 (printed), hf1_below_root, hf1_with_root (what they would have to be), siblings
    (s), least_l3 (the least H-Acc if L were 3), verdict (of HF1), verdict_l3.
    """
    rows = published.results()
    rows = rows[rows["dataset"] == "breakhis"].reset_index(drop=True)
    top1, h_acc, hf1 = rows["Top-1"], rows["H-Acc"], rows["HF1"]
    with_root, least = (1 + 2 * h_acc) / 3, top1 + (1 - top1) / 3
    fits = ((hf1 - h_acc).abs() <= 2 * ROUNDING) | ((hf1 - with_root).abs() <= 2 * ROUNDING)
    return pd.DataFrame(
        {
            "method": rows["method"],
            "top1": top1,
            "h_acc": h_acc,
            "hf1": hf1,
            "hf1_below_root": h_acc,
            "hf1_with_root": with_root,
            "siblings": 2 * (h_acc - top1),
            "least_l3": least,
            "verdict": np.where(fits, YES, NO),
            "verdict_l3": np.where(h_acc >= least - 2 * ROUNDING, YES, NO),
        }
    )


def sums() -> pd.DataFrame:
    """LT-6: PC-Order and Violations are shares of right and wrong answers to one question, so they add up to 1.

    Columns dataset, method, order, violations, sum, verdict. A sum above 1 can come from ties, if there are many; a sum
    below 1 from nothing.
    """
    rows = published.results()
    total = rows["PC-Order"] + rows["Violations"]
    verdict = np.select([total < 1 - 2 * ROUNDING, total > 1 + 2 * ROUNDING], [NO, "ties only"], YES)
    found = rows[["dataset", "method"]].assign(order=rows["PC-Order"], violations=rows["Violations"], sum=total)
    return found.assign(verdict=verdict)


def gains() -> pd.DataFrame:
    """LT-7 and LT-8: what HWC+LAM gains over SimCLR (Euclidean), for each space, and what the other space adds.

    Columns dataset, metric, euclidean, hyperbolic (percentage points; of Violations the drop in percent), and step: the
    hyperbolic value minus the Euclidean one in points, positive where hyperbolic space is better.
    """
    rows = published.results().melt(["dataset", "method"], var_name="metric").dropna(subset="value")
    wide = rows.pivot(index=["dataset", "metric"], columns="method", values="value")
    base, (flat, curved) = wide[published.BASE], (wide[name] for name in published.OURS)
    drop = wide.index.get_level_values("metric") == "Violations"
    gain = {
        name: np.where(drop, 100 * (base - value) / base, 100 * (value - base))
        for name, value in {"euclidean": flat, "hyperbolic": curved}.items()
    }
    step = np.where(drop, 100 * (flat - curved), 100 * (curved - flat))
    found = pd.DataFrame(gain | {"step": step}, index=wide.index)
    order = pd.MultiIndex.from_product([published.DATASETS, published.METRICS])
    return found.reindex(order[order.isin(found.index)]).rename_axis(["dataset", "metric"]).reset_index()


def ranges() -> pd.DataFrame:
    """LT-7: the ranges of the prose beside those of the tables.

    Columns section, metric, datasets, stated, euclidean, hyperbolic (as text, lowest to highest), low, high: in which
    space the tables have that end of the range, rounded as the text rounds it; and verdict.
    """
    table, parts = gains(), []
    for row in published.ranges().itertuples():
        part = table[table["metric"].eq(row.metric) & table["dataset"].isin(row.datasets)]
        one = len(row.datasets) == 1
        where = PANELS[row.datasets[0]] if one else ("all five" if len(row.datasets) == 5 else "all but InShop")
        ends = {space: (part[space].min(), part[space].max()) for space in ("euclidean", "hyperbolic")}
        text = {space: f"{low:.1f}" if one else f"{low:.1f} to {high:.1f}" for space, (low, high) in ends.items()}
        low, high = ({name for name, pair in ends.items() if _rounds(pair[i], end)} for i, end in enumerate(row[4:6]))
        verdict = YES if low & high else "**two spaces mixed**" if low and high else NO.replace("impossible", "wrong")
        known = {"section": row.section, "metric": row.metric, "datasets": where}
        known["stated"] = f"{row.low:g}" if one else f"{row.low:g} to {row.high:g}"
        found = {"low": " or ".join(sorted(low)) or "neither", "high": " or ".join(sorted(high)) or "neither"}
        parts.append(known | text | found | {"verdict": verdict})
    return pd.DataFrame(parts)


def _rounds(value: float, stated: float) -> bool:
    """Whether ``value`` is ``stated`` after rounding to as many decimals, give or take the rounding of the tables."""
    digits = 0 if stated == round(stated) else 1
    return abs(value - stated) <= 0.5 * 10**-digits + 1e-6


def panels(rows: pd.DataFrame, value: str, digits: int = 3) -> str:
    """A value of every method (rows) and dataset (columns) as Markdown; what is impossible is marked ✗, ties only ~."""
    signs = {YES: "", NO: " ✗", "ties only": " ~"}
    text = rows[value].map(f"{{:+.{digits}f}}".format if value == "difference" else f"{{:.{digits}f}}".format)
    shown = rows.assign(text=text + rows["verdict"].map(signs)).pivot(index="method", columns="dataset", values="text")
    columns = [name for name in PANELS if name in shown]
    shown = shown.loc[list(published.METHODS), columns].rename(columns=PANELS).reset_index()
    return markdown_table(shown.rename_axis(columns=None))


def breakhis_layout(rows: pd.DataFrame) -> str:
    """The rows of :func:`breakhis` as Markdown."""
    names = {
        "method": "method",
        "top1": "Top-1",
        "h_acc": "H-Acc",
        "hf1": "HF1, printed",
        "hf1_below_root": "HF1 without root has to be",
        "hf1_with_root": "with root",
        "verdict": "verdict",
        "siblings": "siblings (% of images)",
        "least_l3": "least H-Acc if L = 3",
        "verdict_l3": "L = 3",
    }
    shown = rows.assign(siblings=(100 * rows["siblings"]).map("{:.1f}".format))
    for name in ("top1", "h_acc", "hf1", "hf1_below_root", "hf1_with_root", "least_l3"):
        shown[name] = shown[name].map("{:.3f}".format)
    return markdown_table(shown[list(names)].rename(columns=names))


def gains_layout(rows: pd.DataFrame) -> str:
    """The rows of :func:`gains` as Markdown; ✗ where hyperbolic space is worse."""
    shown = rows.assign(dataset=rows["dataset"].map(PANELS))
    shown["step"] = [f"{step:+.1f}" + " ✗" * (step < 0) for step in rows["step"].round(4)]
    for name in ("euclidean", "hyperbolic"):
        shown[name] = shown[name].map("{:.1f}".format)
    shown["dataset"] = shown["dataset"].where(~shown["dataset"].duplicated(), "")
    return markdown_table(shown.rename(columns={"euclidean": "Euclidean", "step": "hyperbolic − Euclidean, points"}))


def ranges_layout(rows: pd.DataFrame) -> str:
    """The rows of :func:`ranges` as Markdown."""
    names = {"euclidean": "Euclidean", "hyperbolic": "hyperbolic", "low": "low end", "high": "high end"}
    return markdown_table(rows.rename(columns=names))
