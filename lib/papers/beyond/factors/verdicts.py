"""The balanced experiment in sentences, made from its tables."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from lib.papers.beyond.factors.experiment import BALL, FLAT, NONE, PROBABILITY, with_margin
from lib.results import answerable, denominators, own_group, paired
from lib.results.markdown import points


def sentences(tests: pd.DataFrame) -> list[str]:
    """What each factor earns, where most and least, and how often that is clear, where it costs included.

    Over the longest list once more by hits, where that was tested.
    """
    found = []
    for factor, part in _factors(tests):
        outcomes = [paired.relation(test) for test in part.itertuples()]
        ends = [part.loc[part["difference"].idxmin()], part.loc[part["difference"].idxmax()]]
        low, high = (
            f"{points(end['difference'])} ({where(end)}; {paired.interval(end['low'], end['high'])})" for end in ends
        )
        gains, _, of = paired.tally(part)
        costs = [
            where(test) for (_, test), outcome in zip(part.iterrows(), outcomes, strict=True) if "worse" in outcome
        ]
        text = f"{factor}: {low} to {high} points; clearly a gain in {gains} of {of}, clearly a loss in {len(costs)}"
        found.append(text + (f" ({'; '.join(costs)})" if costs else "") + paired.unclear(part))
    return found


def _factors(tests: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Every factor with its tests by min(k, R), then with those by hits where there are some."""
    for factor, part in tests.groupby("factor", sort=False):
        for how, of_one in denominators.ways(part).items():
            yield f"{factor}{how}", of_one


def ranking(tests: pd.DataFrame, k: int) -> list[str]:
    """The factors by what they earn at ``k`` in the first archive of the tests, largest first, below a heading.

    By min(k, R); in brackets by hits, where that was tested.
    """
    part = tests[(tests["k"] == k) & (tests["archive"] == tests["archive"].iloc[0])]
    by_min, *more = denominators.ways(part).values()
    by_hits = more[0].set_index("factor")["difference"].map(lambda gain: f" ({points(gain)})") if more else {}
    earned = [
        f"  {points(row.difference)}{by_hits.get(row.factor, '')}  {row.factor}"
        for row in by_min.sort_values("difference", ascending=False).itertuples()
    ]
    how = " (÷ hits)" * bool(more)
    return [f"MAP@{k}, {part['archive'].iloc[0]}, points earned{how}:", *earned]


def best(rows: pd.DataFrame, encoder: str, archive: str, k: int) -> str:
    """Which method on which encoder has the highest mean, and which on the notebook's own ``encoder``."""
    part = rows[(rows["archive"] == archive) & (rows["k"] == k)]
    ends = [among.loc[among["ours"].idxmax()] for among in (part, part[part["encoder"] == encoder])]
    highest, own = ends
    first = f"{highest['method']} on {highest['encoder']} has the highest score, {highest['ours']:.1f}"
    return f"MAP@{k}, {archive}: {first}; on {encoder} it is {own['method']}, {own['ours']:.1f}"


def came_out(curved: pd.DataFrame, kin: pd.DataFrame | None, m0: float) -> list[str]:
    """What a larger margin and a tree of classes do for the ball.

    Args:
        curved, kin: the ball against the flat head at each margin, and on relatives, as
            :func:`lib.results.answers.compare` has them; no kin where classes hang on no tree.
        m0: the paper's margin; only larger ones count as such.
    """
    curved, lines = curved[curved["first"] != with_margin(BALL, m0)], []
    for what, part in (("A larger margin", curved), ("A tree of classes", kin)):
        if part is not None:
            for how, tests in denominators.ways(part).items():
                better, worse, of = paired.tally(tests[tests["second"].str.contains(FLAT, regex=False)])
                lines.append(f"{what}, ball against flat head{how}: of {of} {better} better, {worse} worse")
    return lines


def wider(curved: pd.DataFrame, m0: float) -> list[str]:
    """What each margin above the paper's ``m0`` does for the ball, and whether the results go both ways.

    curved: the ball against the flat head at each margin, as :func:`lib.results.answers.compare` has them.
    """
    margins = curved["first"].str.partition(" = ")[2].astype(float)
    larger = curved.assign(m0=margins)[margins > m0]
    if larger.empty:
        return [f"no margin above {m0:g} was tested"]
    lines = []
    for how, tests in denominators.ways(larger).items():
        better, worse, _ = paired.tally(tests)
        ways = "the results go both ways" if better else "the ball is worse wherever anything is clear"
        ways = ways if worse else "the ball is better wherever anything is clear" if better else "nothing is clear"
        lines.append(f"Larger margins, ball against flat head{how}: {ways}")
        lines += [f"  m0 = {margin:g}: {_tallied(part)}" for margin, part in tests.groupby("m0")]
    return lines


def _tallied(tests: pd.DataFrame) -> str:
    """How often the first method is better, or worse, where and by how much, and the range of what is not clear."""
    outcomes: dict[str, list[Any]] = {}
    for test in paired.counted(tests).itertuples():
        outcomes.setdefault(paired.relation(test), []).append(test)
    parts = []
    for word, told in zip(paired.CLEAR, ("better", "worse"), strict=True):
        clear = [f"{test.rule}, MAP@{test.k}: {points(test.difference)}" for test in outcomes.get(word, [])]
        parts.append(f"{len(clear)} {told}" + (f" ({'; '.join(clear)})" if clear else ""))
    if rest := [test.difference for test in outcomes.get(paired.NOT_CLEAR, [])]:
        parts.append(f"{len(rest)} not clear ({points(min(rest))} to {points(max(rest))})")
    return f"of {paired.tally(tests)[2]} {', '.join(parts)}{paired.unclear(tests)}"


EARNS = {"better": "earns points", "worse": "costs points", "not clearly different": "no clear difference"}
"""How an outcome of :func:`lib.results.paired.outcome` is said of what earns points."""


def of_notebook_16(lost: pd.DataFrame) -> list[str]:
    """What the query's own group is worth to the ball in notebook 16, from the rows of its table of leakage.

    There the difference is what an archive *loses* without the group; here, as above, it is what the group earns.
    """
    ball = lost[(lost["method"] == BALL) & lost["n_queries"].notna()]
    earned = ball.assign(difference=-ball["difference"], low=-ball["high"], high=-ball["low"])
    lines = [
        f"own group in the archive (ball), notebook 16: MAP@{test.k}, {EARNS.get(word, word)} ({paired.size(test)})"
        for test, word in zip(earned.itertuples(), map(paired.outcome, earned.itertuples()), strict=True)
    ]
    return [*lines, f"tested {own_group.asked(lost)}"]


def answers(tests: pd.DataFrame) -> list[str]:
    """One sentence per factor: whether it earns points, in how many of its tests that is clear, and how many points.

    tests: of :func:`.tables.tested`. Over the longest list once more by hits, where that was tested.
    """
    lines = []
    for factor, part in _factors(tests):
        said = _earned(part)
        low, high = (points(end) for end in (part["difference"].min(), part["difference"].max()))
        over = f"; {own}" if (own := own_group.asked(part)) else ""
        lines.append(f"{factor}: {said} ({low} to {high}){paired.unclear(part)}{over}")
    return lines


def _earned(tests: pd.DataFrame) -> str:
    """What one factor does, from its tests."""
    gains, losses, of = paired.tally(tests)
    if gains + losses == 0 and not paired.could_tell(tests).any():
        return f"too few groups to tell ({tests['n_units'].max()}, with {tests['n_tests'].max()} tests)"
    if gains + losses == 0:
        return f"no clear difference in any of {of}"
    if len(tests) in (gains, losses):
        return f"{'earns' if gains else 'costs'} points in {len(tests)} of {of}"
    return f"earns points in {gains} of {of}, costs points in {losses}"


def rests(rows: pd.DataFrame) -> list[str]:
    """How far out the ball's images rest at each margin, and how curved space is there; of :func:`.tables.margin_rows`.

    The ruler at norm r is 1/(1 - r²) times that at the centre (curvature 1). Images at the rim are counted where they
    are more than 5 %: such a head is held, and says little of curvature.
    """
    ball = rows[(rows["head"] == BALL) & (rows["k"] == rows["k"].min())]
    lines = []
    for archive, part in ball.groupby("archive", sort=False):
        told = [
            f"m0 = {one.m0:g}: norm {one.norm:.2f}, {1 / (1 - one.norm**2):.2f} times"
            + (f" ({one.rim:.0f} % of the training images at the rim)" if one.rim > paired.MOST_AT_RIM else "")
            for one in part.itertuples()
        ]
        lines.append(f"{archive}, median norm and the ruler there against the centre's: {'; '.join(told)}")
    return lines


def caveats(rows: pd.DataFrame) -> list[str]:
    """What means over queries do not say: who is left out, and where class means turn a difference round.

    rows: of :func:`.tables.all_values`; the leading encoder is the first.
    """
    own = rows[rows["encoder"] == rows["encoder"].iloc[0]]
    lines = answerable.left_out(own)
    told_apart = own[own["n_classes"] >= answerable.FEWEST] if "n_classes" in own else own
    for (archive, k), part in told_apart.groupby(["archive", "k"], sort=False):
        table = part.set_index("method")
        for second in (NONE, PROBABILITY):
            apart = table.loc[BALL, ["ours", "class_mean"]] - table.loc[second, ["ours", "class_mean"]]
            if apart.prod() < 0:
                told = f"{apart['ours']:+.1f} over queries, {apart['class_mean']:+.1f} over classes"
                lines.append(f"{archive}, MAP@{k}: {BALL} less {second}: {told}")
    return lines or ["all queries have an answer, and class means turn no difference of the ball round"]


def where(test: pd.Series) -> str:
    """List and archive of a test, as sentences name them."""
    return f"MAP@{test['k']}, {test['archive']}"
