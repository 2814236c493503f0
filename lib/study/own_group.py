"""A query's own group in the archive: which queries that can touch, and what is said of them."""

import pandas as pd

OTHERS = {"lesion": "; a lesion is not a patient: other lesions of the same patient stay in the archive"}
"""Group → what may still be known of a query without it."""


def asked(tests: pd.DataFrame) -> str:
    """Which queries tests of the own group are over: those that it can touch; nothing where there is no such test.

    tests: columns n_queries, n_units and group_kind of the tests of the own group, empty in others.

    >>> asked(pd.DataFrame({"n_queries": [1695.0], "n_units": 700, "group_kind": "lesion"})).partition("; ")[0]
    'over the 1,695 images whose lesion has another one in the archive (700 lesions)'
    >>> asked(pd.DataFrame({"n_units": [700]}))
    ''
    """
    if "n_queries" not in tests or (own := tests.dropna(subset="n_queries")).empty:
        return ""
    n_queries, n_units, kind = own[["n_queries", "n_units", "group_kind"]].iloc[0]
    another = f"over the {n_queries:,.0f} images whose {kind} has another one in the archive"
    return f"{another} ({n_units:,.0f} {kind}s){OTHERS.get(kind, '')}"
