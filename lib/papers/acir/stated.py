"""What the text of the paper says of its tables, beside what the tables say: how both sections write it down."""

import pandas as pd

from lib import paths
from lib.results.markdown import markdown_table

FITS, NOT = "fits", "**does not fit**"
COLUMNS = {"erratum": "erratum", "says": "the text says", "own": "its own table says", "verdict": "verdict"}
CAPTION = "Published numbers only, none of ours; percent, gains and drops in points. Errata: {}."
"""Below such a table; to be filled with the numbers of its errata."""


def texts() -> pd.DataFrame:
    """The claims of the paper that are a number or an order: index id, columns claim, value (NaN without a number).

    >>> float(texts().loc["ac-02", "value"]), texts().loc["ac-62", "claim"]
    (5.6, 'rank of MTH')
    """
    rows = pd.read_csv(paths.PUBLISHED / "claims.csv")
    return rows[rows["id"].str.startswith("ac-")].set_index("id")[["claim", "value"]].astype({"value": float})


def row(erratum: str, says: str, own: str, verdict: bool | str) -> dict[str, str]:
    """A row: a verdict that is True or False is put in words."""
    words = verdict if isinstance(verdict, str) else FITS if verdict else NOT
    return {"erratum": erratum, "says": says, "own": own, "verdict": words}


def same(a: float, b: float, digits: int = 1) -> bool:
    """Whether two numbers print alike.

    >>> same(71.6 - 66.0, 5.6), same(96.8, 96.7)
    (True, False)
    """
    return f"{a:.{digits}f}" == f"{b:.{digits}f}"


def caption(rows: pd.DataFrame) -> str:
    """What stands below the table, with the numbers of its errata.

    >>> caption(pd.DataFrame([row("AC-10", "a", "b", True), row("AC-10", "c", "d", False)])).rpartition(". ")[2]
    'Errata: AC-10.'
    """
    return CAPTION.format(", ".join(rows["erratum"].unique()))


def layout(rows: pd.DataFrame) -> str:
    """The rows as Markdown, the number of an erratum once."""
    shown = rows[list(COLUMNS)]
    shown = shown.assign(erratum=shown["erratum"].where(~shown["erratum"].duplicated(), ""))
    return markdown_table(shown.rename(columns=COLUMNS))
