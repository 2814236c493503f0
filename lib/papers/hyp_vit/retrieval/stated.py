"""What section 3.3 says of Tables 2 and 3, and what the tables say: errata HV-11, HV-12 and HV-13."""

from collections.abc import Mapping

import pandas as pd

from lib import paths
from lib.papers.hyp_vit.consistency import beside_spherical
from lib.papers.hyp_vit.published import DATASETS

TRANSFORMERS = ("ViT-S", "DeiT")
"""Encoders of the two tables that are vision transformers; all others are CNNs."""
LEADER, BEFORE = "Hyp-ViT", "ViT-S"
"""Of whose lead the text speaks, and its encoder before any training on the dataset (Table 3)."""
VERSIONS = {"Hyp-DeiT": ("Hyp-ViT", "Hyp-DINO"), "Sph-DeiT": ("Sph-ViT", "Sph-DINO")}
"""Versions with DeiT → those with the same head that they are said to be worse than."""
CELL = ["table", "dataset"]


def sentences(theirs: Mapping[int, pd.DataFrame], said: pd.DataFrame | None = None) -> list[str]:
    """The lead of Hyp-ViT on CUB, the versions with DeiT, and Hyp- beside Sph-: every line from the published tables.

    theirs: number of a table → :func:`lib.papers.hyp_vit.published.recall` of it; said: of :func:`texts`, read if not
    given.
    """
    said = texts() if said is None else said
    both = pd.concat([rows.assign(table=number) for number, rows in theirs.items()])
    rows = both[both["k"] == 1]
    cnns, others = (f"HV-12, the text: {said['claim'][claim]}; Recall@1:" for claim in ("hv-13", "hv-12"))
    lines = [*lead(rows, said), cnns, *beside_cnns(rows), others, *beside_others(rows)]
    return [*lines, *beside_spherical(both, said)]


def texts() -> pd.DataFrame:
    """What the text claims, in this project's words: index id, columns claim, value (not yet a number), compares_to.

    >>> texts().loc["hv-09", ["value", "compares_to"]].tolist()
    ['9', 'IRT_R']
    """
    rows = pd.read_csv(paths.PUBLISHED / "claims.csv", dtype=str)
    return rows[rows["id"].str.startswith("hv-")].set_index("id")[["claim", "value", "compares_to"]]


def lead(rows: pd.DataFrame, said: pd.DataFrame) -> list[str]:
    """HV-11: Hyp-ViT and the second best method on CUB in each table, and the encoder that nothing has trained.

    rows: Recall@1, with a column table; said: of :func:`texts`.
    """
    stated, rival = said.loc["hv-09", ["value", "compares_to"]]
    lines = [f"HV-11, the text: {LEADER} leads {rival} by {stated} % on {DATASETS['cub']}; Recall@1:"]
    for table, of_one in rows[rows["dataset"] == "cub"].groupby("table"):
        value = of_one.set_index("method")["value"]
        gap = value[LEADER] - value[rival]
        verdict = "fits" if f"{gap:.0f}" == stated else "does not fit"
        lines.append(f"  Table {table}: {value[LEADER]:.1f} − {value[rival]:.1f} = {gap:.1f} points, {verdict}")
        if BEFORE in value:
            place = "above" if value[BEFORE] > value[rival] else "not above"
            lines.append(f"  Table {table}: {BEFORE} before any training {value[BEFORE]:.1f}, {place} {rival}")
    return lines


def beside_cnns(rows: pd.DataFrame) -> list[str]:
    """HV-12: in which cells the best CNN is above a version with DeiT; rows as for :func:`lead`."""
    cnns = rows[~rows["encoder"].isin(TRANSFORMERS)].sort_values("value").drop_duplicates(CELL, keep="last")
    lines = []
    for version in VERSIONS:
        both = _beside(rows, version, cnns)
        lost = both["told"][both["value"] < both["value_rival"]]
        lines.append(f"  {version} is below the best CNN in {len(lost)} of {len(both)} cells{_listed(lost)}")
    return lines


def beside_others(rows: pd.DataFrame) -> list[str]:
    """HV-12: in which cells a version with DeiT is above one with the same head; rows as for :func:`lead`."""
    lines = []
    for version, others in VERSIONS.items():
        both = _beside(rows, version, rows[rows["method"].isin(others)])
        won = both["told"][both["value"] > both["value_rival"]]
        lines.append(f"  {version} is above {' or '.join(others)} in {len(won)} of {len(both)} pairs{_listed(won)}")
    return lines


def _beside(rows: pd.DataFrame, version: str, rivals: pd.DataFrame) -> pd.DataFrame:
    """A version beside ``rivals``, cell by cell: columns value, value_rival and told, both in words."""
    both = rows[rows["method"] == version].merge(rivals, on=CELL, suffixes=("", "_rival"))
    told = [
        f"Table {one.table}, {DATASETS[one.dataset]} ({one.value:.1f}, {one.method_rival} {one.value_rival:.1f})"
        for one in both.itertuples()
    ]
    return both.assign(told=told)


def _listed(told: pd.Series) -> str:
    """What follows a count.

    >>> _listed(pd.Series(["a", "b"])), _listed(pd.Series([], dtype=str))
    (': a; b', '')
    """
    return f": {'; '.join(told)}" if len(told) else ""
