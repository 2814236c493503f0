"""Whether hyperbolic versions beat spherical ones consistently, as section 3.3 says, cell by cell: erratum HV-13."""

import pandas as pd

VERSIONS = ("DeiT", "DINO", "ViT")
"""What the names of the paper's versions end with, behind Hyp- and Sph-."""
CELL = ["table", "dataset", "k", "version"]


def beside_spherical(rows: pd.DataFrame, said: pd.DataFrame) -> list[str]:
    """HV-13: in how many of the published cells a version with Hyp- is above, at, or below the same with Sph-.

    rows: of :func:`lib.papers.hyp_vit.published.recall`, every K, with a column table. said: the claims of the text, by
    id, with a column claim.
    """
    both = cells(rows)
    gap = both["Hyp"] - both["Sph"]
    lines = [f"HV-13, the text: {said.loc['hv-14', 'claim']}; all Recall@K, of which no spread is printed:"]
    lines += [f"  {_counted('both tables', gap)}; {_ends(gap)}"]
    lines += [f"  {_counted(f'Table {table}', part)}" for table, part in gap.groupby(level="table")]
    return lines


def cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Hyp and Sph (percent), a row per table, dataset, K and version that has both; rows as for both tables.

    >>> rows = pd.DataFrame({"method": ["Hyp-ViT", "Sph-ViT", "MIC"], "value": [84.0, 83.2, 66.1]})
    >>> cells(rows.assign(table=2, dataset="cub", k=1)).iloc[0].tolist()
    [84.0, 83.2]
    """
    parts = rows["method"].str.extract(rf"^(?P<head>Hyp|Sph)-(?P<version>{'|'.join(VERSIONS)})$")
    found = rows.assign(**parts).dropna(subset="head")
    return found.pivot(index=CELL, columns="head", values="value").dropna()


def _counted(where: str, gap: pd.Series) -> str:
    """How many differences are above 0, 0, and below it.

    >>> _counted("Table 2", pd.Series([0.5, 0.0, 0.1]))
    'Table 2: Hyp- above Sph- in 2 of 3 cells, the same in 1, below in 0'
    """
    n, above, below = len(gap), (gap.round(6) > 0).sum(), (gap.round(6) < 0).sum()
    return f"{where}: Hyp- above Sph- in {above} of {n} cells, the same in {n - above - below}, below in {below}"


def _ends(gap: pd.Series) -> str:
    """The smallest, the middle and the largest difference, in points."""
    return f"differences from {gap.min():+.1f} to {gap.max():+.1f} points, median {gap.median():+.1f}"
