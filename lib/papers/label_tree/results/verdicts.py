"""What the tables say, in words: every verdict with its p after Holm's correction."""

from typing import Any

import numpy as np
import pandas as pd

from lib.papers.label_tree.names import NONE
from lib.results import paired


def outcome(test: Any) -> str:
    """Difference, interval and p of a row of :func:`lib.results.paired.together`.

    >>> from types import SimpleNamespace as Test
    >>> outcome(Test(difference=2.0, low=1.0, high=3.0, p_holm=0.0254)), outcome(Test(difference=2.0, low=1.0, high=3.0,
    ...     p_holm=0.00001))
    ('+2.00 points, +1.00 to +3.00; p = 0.025', '+2.00 points, +1.00 to +3.00; p < 0.001')
    """
    if np.isnan(test.p_holm):
        return paired.size(test)
    return f"{paired.size(test)}; p {'< 0.001' if test.p_holm < 0.001 else f'= {test.p_holm:.3f}'}"


def clear(tested: pd.DataFrame) -> list[str]:
    """What is clear after Holm's correction, and how much is not; p is the corrected one."""
    found = [test for test in tested.itertuples() if paired.relation(test) in paired.CLEAR]
    lines = [f"{one.first} {paired.relation(one)} {one.second} in {one.measure} ({outcome(one)})" for one in found]
    return [*lines, f"not clear: {len(tested) - len(found)} of {len(tested)} comparisons (p after Holm's correction)"]


def sentences(table: pd.DataFrame) -> list[str]:
    """What the tests say, a line per pair, what several are compared with above them; p is the corrected one."""
    lines = []
    for second, part in table.groupby("second", sort=False):
        alone = part["first"].nunique() == 1
        lines += [] if alone else [f"Against {second} (p after Holm's correction):"]
        for first, rival in part.groupby("first", sort=False):
            told = "; ".join(f"{test.measure} {_said(test)} ({outcome(test)})" for test in rival.itertuples())
            lines.append(f"{first} against {second}: {told}" if alone else f"  {first}: {told}")
    return lines


def by_depth(table: pd.DataFrame) -> list[str]:
    """What the tests by depth say, a line per pair; rows of :func:`.tables.by_depth`."""
    titles = [
        f"{n} level{'s' * (n > 1)}, {measure}" for n, measure in zip(table["depth"], table["measure"], strict=True)
    ]
    return sentences(table.assign(measure=titles))


def _said(test: Any) -> str:
    found = paired.relation(test)
    return paired.OUTCOMES.get(found) or found.replace("cannot, with", "cannot be told with").removesuffix(
        ", be told from"
    )


def trained(table: pd.DataFrame) -> str:
    """Whether trainings end to end have come anywhere: the first and the last loss; rows of :func:`rows`."""
    each = table[table["steps"] > 0].drop_duplicates("loss")
    lines = []
    for one in each.itertuples():
        name = one.method.removesuffix(", head").removesuffix(", encoder")
        fell = one.loss < one.first_loss
        verdict = "" if fell else ": it did not fall, which shows that this runs, and nothing about the method"
        lines.append(
            f"{name}: loss {one.first_loss:.2f} at first, {one.loss:.2f} at the end of {one.steps} steps{verdict}"
        )
    return "\n".join(lines)


def neighbours(table: pd.DataFrame) -> str:
    """What heads do to the nearest images: R@5 and the nearest image, beside no head; rows of :func:`rows`."""
    wide = table.pivot_table(index="method", columns="measure", values="ours", sort=False)
    heads = wide.drop(index=NONE)
    above = {name: int((heads[name] > wide.loc[NONE, name]).sum()) for name in ("hit5", "hit1", "top1", "hf1")}
    return (
        f"of {len(heads)} heads, above the features without a head: {above['hit5']} in R@5, {above['hit1']} by the "
        f"nearest image, {above['top1']} in Top-1, {above['hf1']} in HF1"
    )
