"""Paired tests as sentences, headed by what a verdict rests on and what an interval does not."""

import pandas as pd

from lib.results import paired
from lib.results.markdown import points

SAYS = f"{paired.SAYS} Intervals are not corrected."
"""What the tables of paired tests of these notebooks say about themselves."""
NOTE = (
    "Verdicts rest on p corrected after Holm; intervals are not corrected, and one that leaves out 0 may stand beside "
    '"not clearly different":'
)


def sentences(tests: pd.DataFrame) -> list[str]:
    """:data:`NOTE`, then the sentences of :func:`lib.results.paired.sentences`."""
    return [NOTE, *paired.sentences(tests)]


def temperature(rows: pd.DataFrame) -> list[str]:
    """Rows of :func:`lib.papers.hyp_vit.retrieval.warmth.verdicts` as sentences."""
    return [
        f"{row.place}: Hyp − Sph is {points(row.at_one)} points with both at Hyp's τ {row.tau_hyp:g} and rate "
        f"{row.rate_hyp:g}, {points(row.at_own)} with Sph at its own τ {row.tau_sph:g} and rate {row.rate_sph:g}: "
        f"{row.verdict}"
        for row in rows.itertuples()
    ]
