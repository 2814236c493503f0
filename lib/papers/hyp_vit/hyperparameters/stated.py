"""What section 3.4 and its captions say of Tables 4 and 5, and what the tables say: errata HV-5 and HV-14."""

import pandas as pd

from lib.papers.hyp_vit.hyperparameters.changes import PUBLISHED_BATCH
from lib.papers.hyp_vit.published import DATASETS, patches, recall, settings
from lib.papers.hyp_vit.retrieval.stated import texts

SEARCHED = {128: "head", 384: "encoder"}
"""How many numbers a row of Table 4 has → what is searched."""
VERSIONS = ("Hyp-ViT", "Hyp-DINO")
"""Whose the default row of Table 5 may be: by the caption the first."""


def sentences(said: pd.DataFrame | None = None) -> list[str]:
    """Whose the default row of Table 5 is, and what smaller patches gain: every line from the published tables.

    said: of :func:`lib.papers.hyp_vit.retrieval.stated.texts`, read if not given.
    """
    heads, encoders = recall(2), recall(3)
    return [*default(settings(), heads, encoders), *finer(patches(), texts() if said is None else said)]


def default(theirs: pd.DataFrame, heads: pd.DataFrame, encoders: pd.DataFrame) -> list[str]:
    """HV-5: the default row of Table 5 beside the versions of Tables 2 and 3 on In-Shop.

    theirs: of :func:`lib.papers.hyp_vit.published.settings`; heads, encoders: of ``published.recall``.
    """
    (row,) = theirs[theirs["of"] == "none"].itertuples()
    lines = [
        f"HV-5, the caption: Table 5 is of {VERSIONS[0]} on {DATASETS['in_shop']}; its default row: encoder "
        f"{row.encoder:.1f}, head {row.head:.1f}"
    ]
    for version in VERSIONS:
        encoder, head = (_in_shop(rows, version) for rows in (encoders, heads))
        same = "the same" if (encoder, head) == (row.encoder, row.head) else "not the same"
        lines.append(f"  {version} of Tables 3 and 2: encoder {encoder:.1f}, head {head:.1f}, {same}")
    return lines


def _in_shop(rows: pd.DataFrame, version: str) -> float:
    """Recall@1 of a version on In-Shop."""
    (value,) = rows.query("dataset == 'in_shop' and k == 1 and method == @version")["value"]
    return value


def finer(theirs: pd.DataFrame, said: pd.DataFrame) -> list[str]:
    """HV-14: what smaller patches gain for head and encoder, and what else changes with them.

    theirs: of :func:`lib.papers.hyp_vit.published.patches`; said: of :func:`lib.papers.hyp_vit.retrieval.stated.texts`.
    """
    gain = said.loc["hv-16", "value"]
    rows = theirs[theirs["k"] == 1].dropna(subset="patch").pivot(index="dim", columns="patch", values="value")
    small, large = sorted(rows.columns)
    lines = [f"HV-14, the text: patches of {small:g} in place of {large:g} pixels gain {gain} %; Table 4, Recall@1:"]
    for dim, row in rows.iterrows():
        found = row[small] - row[large]
        fits = "fits" if f"{found:.1f}" == gain else "does not fit"
        lines.append(f"  {SEARCHED[dim]}: {row[small]:.1f} − {row[large]:.1f} = {found:.1f} points, {fits}")
    (batch,) = theirs.loc[theirs["patch"] == small, "batch"].unique()
    return [
        *lines,
        f"  at the same time the batch falls from {PUBLISHED_BATCH} to {batch:g}: two things change at once",
    ]
