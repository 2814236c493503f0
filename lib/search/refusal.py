"""Queries that are refused, with the reason in words (ACIR, Algorithm 1, Step 3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lib.errors import InputError
from lib.metrics import novelty


@dataclass(frozen=True)
class Gate:
    """A limit that a query's score must not exceed.

    what: the sentence that the score completes, such as "rebuilt with an error of". limit: see :meth:`passes`. share:
    of the known images that the limit was made from, how many stay below it.
    """

    what: str
    limit: float
    share: float

    @classmethod
    def of(cls, what: str, known: ArrayLike, limit: float | None = None, sigmas: float = 3.0) -> "Gate":
        """A gate at ``limit``, by default of Equation 19: mean and ``sigmas`` deviations of scores ``known: (n,)``.

        >>> Gate.of("rebuilt with an error of", [0.1, 0.3], sigmas=1.0).reason(0.35)
        'rebuilt with an error of 0.35, above 0.3, which 100 % of known images do not exceed'
        """
        values = np.asarray(known, dtype=np.float64)
        limit = novelty.threshold(values, sigmas) if limit is None else float(limit)
        return cls(what, limit, float((values <= limit).mean()))

    def passes(self, score: float) -> bool:
        """Whether a query with this ``score`` is answered."""
        return bool(score <= self.limit)

    def reason(self, score: float) -> str | None:
        """Why a query with this ``score`` gets no answer; None if it gets one."""
        if self.passes(score):
            return None
        share = f"{100 * self.share:.3g} %"
        return f"{self.what} {score:.3g}, above {self.limit:.3g}, which {share} of known images do not exceed"


def refuse(gates: Sequence[Gate], scores: Sequence[float]) -> str | None:
    """Why a query gets no answer, one reason for each gate that it does not pass; None if it passes them all.

    ``scores``: of one query, in the order of the ``gates``. Raises InputError for another number of scores, or NaN.
    """
    if len(gates) != len(scores):
        raise InputError(f"there are {len(gates)} gates, but {len(scores)} scores of the query")
    if np.isnan(np.asarray(scores, dtype=np.float64)).any():
        raise InputError("a score of the query is NaN: the image or its features could not be read")
    reasons = [gate.reason(score) for gate, score in zip(gates, scores, strict=True)]
    return "; ".join(filter(None, reasons)) or None
