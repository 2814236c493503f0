"""Paired tests as sentences, headed by what a verdict rests on and what an interval does not."""

import pandas as pd

from lib.results import paired

SAYS = f"{paired.SAYS} Intervals are not corrected."
"""What the tables of paired tests of these notebooks say about themselves."""
NOTE = (
    "Verdicts rest on p corrected after Holm; intervals are not corrected, and one that leaves out 0 may stand beside "
    '"not clearly different":'
)


def sentences(tests: pd.DataFrame) -> list[str]:
    """:data:`NOTE`, then the sentences of :func:`lib.results.paired.sentences`."""
    return [NOTE, *paired.sentences(tests)]
