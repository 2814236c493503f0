"""What earns how many points: the table of all methods, the tests of the factors, and sentences made from them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from lib.metrics.significance import paired_permutation
from lib.papers.beyond.factors import figures
from lib.papers.beyond.factors.experiment import BALL, COMPARED, FLAT, NONE, PROBABILITY, Results, with_margin
from lib.results import answers, paired
from lib.results.answers import values
from lib.results.markdown import markdown_table, points
from lib.results.shown import Figure, Table
from lib.training.methods import Answer

ABOUT = (
    "MAP: AP divided by min(k, relevant), percent, means over folds and trainings. closed: the archive is the training "
    "images; open: images of other groups that nothing was fitted on."
)


def factors(encoder: str, untrained: str | None) -> dict[str, tuple[str, str]]:
    """Factor → what is compared with what: one thing changes, everything else stays.

    The linear classifier ranks by its class probabilities, by which it is the stronger opponent over a list.

    >>> factors("network", None)["curvature: ball, not flat"]
    ('network, ball', 'network, flat head')
    """
    pairs = {
        "labels: linear classifier, not none": (PROBABILITY, NONE),
        "head: ball, not none": (BALL, NONE),
        "head: ball, not linear classifier": (BALL, PROBABILITY),
        "curvature: ball, not flat": (BALL, FLAT),
    }
    found = {factor: (f"{encoder}, {first}", f"{encoder}, {second}") for factor, (first, second) in pairs.items()}
    if untrained is None:
        return found
    return {"encoder: pretrained, not untrained": (f"{encoder}, {NONE}", f"{untrained}, {NONE}")} | found


def all_values(found: Results) -> pd.DataFrame:
    """:func:`lib.results.answers.values` of AP@k, with the encoder apart: archive, encoder, method, k ..."""
    rows = values(found).query("metric == 'ap_min'").drop(columns="metric").rename(columns={"rule": "archive"})
    names = rows.pop("method").str.partition(", ")
    rows.insert(1, "encoder", names[0])
    rows.insert(2, "method", names[2])
    return rows.reset_index(drop=True)


def factors_layout(rows: pd.DataFrame) -> str:
    """A row per encoder and method, a column per archive and k: the mean ± over folds, in brackets over classes first.

    The last row is chance: a gallery in random order.
    """
    lines = []
    for (encoder, method), part in rows.groupby(["encoder", "method"], sort=False):
        cells = {"encoder": encoder, "method": method}
        for row in part.sort_values(["k"], kind="stable").itertuples():
            cells[f"MAP@{row.k}, {row.archive}"] = f"{_mean(row)} ({row.class_mean:.1f})"
        worst = answers.health(part.loc[part["rim"].fillna(0).idxmax()])
        lines.append(cells | {name: worst[name] for name in ("at the rim", "steps")})
    by_archive = rows.groupby(["k", "archive"], sort=False)["chance"].mean()
    guessed = {f"MAP@{k}, {archive}": f"{value:.1f}" for (k, archive), value in by_archive.items()}
    lines.append(dict.fromkeys(lines[0], "–") | {"encoder": "chance"} | guessed)
    return markdown_table(pd.DataFrame(lines))


def _mean(row: Any) -> str:
    """The mean ± over folds, where there are several."""
    return f"{row.ours:.1f}" + ("" if np.isnan(row.spread) else f" ± {row.spread:.1f}")


def strict(found: Mapping[str, object]) -> list[str]:
    """Archives without any image of a query's own group: those of the last fold rule.

    >>> strict(dict.fromkeys(["closed, by image", "closed, by patient", "open, by patient"]))
    ['closed, by patient', 'open, by patient']
    """
    rule = list(found)[-1].partition(", ")[2]
    return [archive for archive in found if archive.endswith(rule)]


def tested(
    found: Results,
    encoder: str,
    untrained: str | None,
    groups: np.ndarray,
    ks: Sequence[int],
    *,
    kind: str = "group",
    seed: int = 0,
) -> pd.DataFrame:
    """The paired test of every factor in the archives of :func:`strict`, and what the query's own group is worth.

    Args:
        found: archives as :func:`.experiment.archives` has them, of "encoder, method".
        encoder, untrained: the leading encoder, and the one beside it that has learnt nothing, if there is one.
        groups: (n,) of all images, ``kind`` what they are.
        ks: list lengths.
        seed: of the random sign flips.

    Returns:
        factor and archive, then as :func:`lib.results.answers.compare`; p is corrected for all rows.
    """
    pairs, archives = factors(encoder, untrained), strict(found)
    names = {pair: factor for factor, pair in pairs.items()}
    tests = answers.compare({a: found[a] for a in archives}, groups, list(pairs.values()), ks, seed=seed)
    tests = tests.rename(columns={"rule": "archive"}).drop(columns=["n_tests", "p_holm"])
    tests.insert(0, "factor", [names[pair] for pair in zip(tests["first"], tests["second"], strict=True)])
    lines = tests.to_dict("records")
    if len(archives) < len(found):
        ball, first = f"{encoder}, {BALL}", {"factor": f"own {kind} in the archive (ball)", "archive": archives[0]}
        with_own, without = (found[archive][ball] for archive in (next(iter(found)), archives[0]))
        named = first | {"first": next(iter(found)), "second": archives[0]}
        lines += [named | {"k": k} | own_group(with_own, without, groups, k, seed) for k in ks]
    return paired.together(lines)


def own_group(
    with_own: Sequence[Answer], without: Sequence[Answer], groups: np.ndarray, k: int, seed: int = 0
) -> dict[str, float]:
    """What images of the query's own group are worth: the same images ask an archive with and without them.

    Returns the fields of :class:`lib.metrics.significance.PairedTest`, in points of MAP@``k``.
    """
    both = pd.concat([_asked(with_own, k), _asked(without, k)], axis=1, keys=["with", "without"]).dropna()
    images, repeats = (both.index.get_level_values(name).to_numpy() for name in ("image", "repeat"))
    return asdict(paired_permutation(both["with"], both["without"], groups[images], repeats, seed=seed))


def _asked(several: Sequence[Answer], k: int) -> pd.Series:
    """AP@k in percent of every image and training."""
    parts = [
        pd.Series(
            100 * answer.per_query.values["ap_min", k].to_numpy(),
            pd.MultiIndex.from_product([answer.split.test, [answer.split.repeat]], names=["image", "repeat"]),
        )
        for answer in several
    ]
    return pd.concat(parts)


def sentences(tests: pd.DataFrame) -> list[str]:
    """What each factor earns, where most and least, and how often that is clear, where it costs included."""
    found = []
    for factor, part in tests.groupby("factor", sort=False):
        outcomes = [paired.relation(test) for test in part.itertuples()]
        ends = [part.loc[part["difference"].idxmin()], part.loc[part["difference"].idxmax()]]
        low, high = (f"{points(end['difference'])} ({where(end)})" for end in ends)
        untold = sum(outcome.startswith("cannot") for outcome in outcomes)
        costs = [
            where(test) for (_, test), outcome in zip(part.iterrows(), outcomes, strict=True) if "worse" in outcome
        ]
        text = f"{factor}: {low} to {high} points; clearly a gain in {outcomes.count('is better than')} of {len(part)}"
        text += f", clearly a loss in {len(costs)}" + (f" ({'; '.join(costs)})" if costs else "")
        found.append(text + (f"; too few groups to tell in {untold}" if untold else ""))
    return found


def ranking(tests: pd.DataFrame, k: int) -> list[str]:
    """The factors by what they earn at ``k`` in the first archive of the tests, largest first, below a heading."""
    part = tests[(tests["k"] == k) & (tests["archive"] == tests["archive"].iloc[0])]
    ordered = part.sort_values("difference", ascending=False)
    earned = [f"  {points(row.difference)}  {row.factor}" for row in ordered.itertuples()]
    return [f"MAP@{k}, {part['archive'].iloc[0]}, points earned:", *earned]


def best(rows: pd.DataFrame, encoder: str, archive: str, k: int) -> str:
    """Which method on which encoder has the highest mean, and which on the notebook's own ``encoder``."""
    part = rows[(rows["archive"] == archive) & (rows["k"] == k)]
    ends = [among.loc[among["ours"].idxmax()] for among in (part, part[part["encoder"] == encoder])]
    highest, own = ends
    first = f"{highest['method']} on {highest['encoder']} ({highest['ours']:.1f})"
    return f"MAP@{k}, {archive}: highest of all is {first}; on {encoder}: {own['method']} ({own['ours']:.1f})"


def came_out(tests: pd.DataFrame, curved: pd.DataFrame, kin: pd.DataFrame | None) -> list[str]:
    """The notebook in a few sentences.

    Args:
        tests: of :func:`tested`.
        curved, kin: the ball against the flat head at each margin, and on relatives, as
            :func:`lib.results.answers.compare` has them; no kin where classes hang on no tree.
    """
    means = tests.groupby("factor", sort=False)["difference"].mean().sort_values(ascending=False)
    earned = "; ".join(f"{name} {value:+z.1f}" for name, value in means.items())
    lines = [f"Points earned, mean over lists and archives: {earned}"]
    for what, part in (("A larger margin", curved), ("A tree of classes", kin)):
        if part is not None:
            outcomes = [paired.relation(test) for test in part.itertuples() if FLAT in test.second]
            better, worse = (outcomes.count(f"is {word} than") for word in ("better", "worse"))
            lines.append(
                f"{what}: the ball is clearly better than the flat head in {better} of {len(outcomes)} tests, clearly "
                f"worse in {worse}"
            )
    return lines


def where(test: pd.Series) -> str:
    """List and archive of a test, as sentences name them."""
    return f"MAP@{test['k']}, {test['archive']}"


def table_factors(rows: pd.DataFrame) -> Table:
    """:func:`all_values` as a table."""
    text = f"{ABOUT} ± over folds; in brackets averaged over the classes first. Chance: an archive in random order."
    return Table("every method on every encoder", rows, text, markdown=factors_layout(rows))


def table_tests(tests: pd.DataFrame) -> Table:
    """:func:`tested` as a table."""
    rows = [
        {"factor": test.factor, "archive": test.archive, "k": test.k} | paired.cells(test, "points earned")
        for test in tests.itertuples()
    ]
    layout = markdown_table(pd.DataFrame(rows))
    text = f"{ABOUT} Linear classifier: by its class probabilities. {paired.SAYS}"
    return Table("what earns how many points", tests, text, of=100, markdown=layout)


def figure_factors(rows: pd.DataFrame, tests: pd.DataFrame, encoder: str) -> Figure:
    """The leading encoder's methods above, what each factor earns below."""
    shown = rows[(rows["encoder"] == encoder) & rows["method"].isin(COMPARED)]
    text = (
        f"Above: MAP of {encoder} without and with a head, bars: standard deviation over folds, upright ticks: mean "
        "over the classes; below: what one change earns, the rest left as it is, bars: 95 % interval over groups and "
        f"trainings. {ABOUT}"
    )
    kept = ["archive", "method", "k", "ours", "spread", "class_mean", "chance"]
    drawn = figures.factors(shown, tests)
    return Figure("what earns how many points", shown[kept], text, figure=drawn)


def margin_rows(found: Results, m0s: Sequence[float]) -> pd.DataFrame:
    """The ball and the flat head at every margin: archive, head, m0, k, ours ... rim, norm (median of the gallery)."""
    names = {with_margin(head, m0): (head, m0) for m0 in m0s for head in (BALL, FLAT)}
    rows = values(found).query("metric == 'ap_min' and method in @names").drop(columns="metric")
    norms = {
        (archive, name): np.mean([np.median(answer.norms) for answer in found[archive][name]])
        for archive in found
        for name in names
    }
    places = list(zip(rows["rule"], rows["method"], strict=True))
    rows = rows.assign(norm=[norms[place] for place in places], head=[names[name][0] for _, name in places])
    rows = rows.assign(m0=[names[name][1] for _, name in places])
    return rows.rename(columns={"rule": "archive"}).drop(columns="method").sort_values("head", kind="stable")


def table_margins(rows: pd.DataFrame) -> Table:
    """:func:`margin_rows` as a table: a row per margin, the ball beside the flat head with half of it."""
    lines = []
    for (archive, m0), part in rows.groupby(["archive", "m0"], sort=False):
        cells: dict[str, object] = {"archive": archive, "m0": f"{m0:g}"}
        for head, of_head in part.groupby("head"):
            cells |= {f"{head}, MAP@{row.k}": _mean(row) for row in of_head.itertuples()}
            cells |= {f"{head}, norm": f"{of_head['norm'].iloc[0]:.2f}"}
            cells |= {f"{head}, last loss": answers.health(of_head.iloc[0])["last loss"]}
            cells |= {f"{head}, at the rim": answers.health(of_head.iloc[0])["at the rim"]} if head == BALL else {}
        lines.append(cells)
    text = (
        f"{ABOUT} The flat head has half the margin. Norm: median over the archive. Last loss: a large margin is a "
        "longer way, so look whether a head has arrived before you blame the curvature."
    )
    return Table("a margin that lets the curvature act", rows, text, markdown=markdown_table(pd.DataFrame(lines)))


def figure_margins(rows: pd.DataFrame, archive: str) -> Figure:
    """MAP over the margin in one ``archive``, and where embeddings rest."""
    part = rows[rows["archive"] == archive]
    text = (
        f"MAP and median norm (the ball ends at 1) over the margin, {archive}; bars: standard deviation over folds. "
        f"{ABOUT}"
    )
    drawn = figures.margins(part, sorted(part["k"].unique()))
    kept = ["head", "m0", "k", "ours", "spread", "norm"]
    return Figure("a margin that lets the curvature act", part[kept], text, figure=drawn)
