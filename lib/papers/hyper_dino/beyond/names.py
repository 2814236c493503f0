"""What is shown instead of the names that rows carry, so that reports of earlier runs and caches keep theirs."""

import pandas as pd

SHOWN = {
    "as printed (start norm 0)": "as printed, not scaled",
    "linear classifier": "linear classifier, logits",
}
"""Name in the rows → name in tables, pictures and sentences; notebook 13 has the classifier's other ranking too."""

COLUMNS = ("method", "name", "first", "second")


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the names that are shown, in whichever of :data:`COLUMNS` they have.

    >>> shown(pd.DataFrame({"method": ["ball", "linear classifier"], "k": [1, 1]}))["method"].tolist()
    ['ball', 'linear classifier, logits']
    """
    return rows.assign(**{column: rows[column].replace(SHOWN) for column in COLUMNS if column in rows})
