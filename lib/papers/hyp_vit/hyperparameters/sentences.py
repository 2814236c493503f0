"""What Tables 4 and 5 and their paired tests say, in sentences."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.papers.hyp_vit import verdicts
from lib.papers.hyp_vit.hyperparameters.changes import DEFAULT, SAME_ALL, SAME_ROOM
from lib.papers.hyp_vit.hyperparameters.tables import PLACES, marked, with_rates
from lib.papers.hyp_vit.hyperparameters.trained import NOTHING
from lib.papers.hyp_vit.names import HYP
from lib.papers.hyp_vit.retrieval import tables as recalls
from lib.papers.hyp_vit.retrieval.frozen import BY_COSINE
from lib.results import paired
from lib.results.markdown import percent, points
from lib.training.methods import Answer


def same_again(found: Mapping[str, Sequence[Answer]], k: int) -> str:
    """How far the head that is the default rescaled is from it, in outcomes of queries and in last losses."""
    losses = [abs(a.health.loss - b.health.loss) for a, b in zip(found[DEFAULT], found[SAME_ALL], strict=True)]
    return (
        f"{SAME_ALL}: {_differ(found[DEFAULT], found[SAME_ALL], k):.2f} % of the queries have another outcome than in "
        f"the default; last losses differ by at most {max(losses):.4f}"
    )


def by_cosine(found: Mapping[str, Sequence[Answer]], k: int) -> str:
    """In how many queries the search by D_hyp and that by D_cos come out differently, on one and the same network."""
    names = [name for name in found if name + BY_COSINE in found]
    share = {name: _differ(found[name], found[name + BY_COSINE], k) for name in names}
    most = max(names, key=share.get)
    return (
        f"D_hyp against D_cos on one network: {share[most]:.2f} % of the queries come out differently at most ({most})"
        if share[most]
        else f"D_hyp against D_cos on one network: not one query comes out differently, in none of {len(names)} rows"
    )


def _differ(first: Sequence[Answer], second: Sequence[Answer], k: int) -> float:
    """Percent of the queries, over all trainings, whose hit@k is not the same."""
    both = zip(first, second, strict=True)
    hits = ((a.per_query.values[recalls.METRIC, k], b.per_query.values[recalls.METRIC, k]) for a, b in both)
    return 100 * float(np.mean([(a != b).mean() for a, b in hits]))


def other_rates(rows: pd.DataFrame) -> str:
    """Which rows differ from the default in their rate beside their setting; rows: of :func:`.tables.settings`."""
    lr, told = rows.set_index("method")["lr"][DEFAULT], "; ".join(with_rates(rows).values()) or "none"
    return (
        f"Trained at another learning rate than the default's {lr:g}, and so different in more than one thing: {told}"
    )


def default(rows: pd.DataFrame) -> list[str]:
    """The default row: its batch, steps, rate and recall; rows: of :func:`.tables.settings`."""
    row = rows[rows["method"] == DEFAULT].iloc[0]
    return [
        f"notebook 23, the default row: batches of {row['batch']:.0f}, {row['steps']:.0f} steps at rate {row['lr']:g}, "
        f"Recall@1 {percent(row['hyp'])}"
    ]


def of_retrieval(rows: pd.DataFrame) -> list[str]:
    """The steps and the recall of Hyp in Table 2 of notebook 22, to lay beside :func:`default`."""
    (row,) = rows[(rows["method"] == HYP) & (rows["k"] == rows["k"].min())].itertuples()
    return [f"notebook 22, {HYP} on the frozen encoder: {row.steps:.0f} steps, Recall@{row.k} {percent(row.ours)}"]


def searched(rows: pd.DataFrame) -> list[str]:
    """What D_hyp and D_cos find with the same networks, and what c does without its room.

    rows: of :func:`.tables.settings`. Values that are the same when both are printed with two digits are told in one
    line.
    """
    alike = rows["hyp"].round(2) == rows["cosine"].round(2)
    lines = [other_rates(rows), f"Recall@1 is the same by D_hyp and by D_cos: {'; '.join(rows['method'][alike])}"]
    lines += [
        f"{row.method}: {row.hyp:.2f} by D_hyp, {row.cosine:.2f} by D_cos; {row.clipped:.1f} % of the points clipped"
        for row in rows[~alike].itertuples()
    ]
    ours, shown = rows.set_index("method")["hyp"], with_rates(rows)
    what = {"c = 1": "room and temperature changed", SAME_ROOM: "the temperature alone"}
    if set(what) <= set(ours.index):
        told = [f"{shown.get(name, name)}: {points(ours[name] - ours[DEFAULT])} ({how})" for name, how in what.items()]
        lines.append(f"points of difference from the default: {'; '.join(told)}")
    return lines


def moved(rows: pd.DataFrame) -> list[str]:
    """By how much each setting that was trained end to end moves encoder and head, beside what the paper prints.

    rows: of :func:`.tables.settings`. No line where nothing was trained end to end.
    """
    first, lines = rows.iloc[0], []
    for _, row in rows.iloc[1:].dropna(subset="trained_encoder").iterrows():
        told = [
            f"{place} {points(row[f'trained_{place}'] - first[f'trained_{place}'])} (published "
            f"{row[place] - first[place]:+.1f})"
            for place in PLACES
        ]
        alone = points(row["hyp"] - first["hyp"])
        lines.append(f"{row['method']}, end to end, minus the default: {', '.join(told)}; head on frozen {alone}")
    return lines


def end_to_end(rows: pd.DataFrame, found: Mapping[str, Sequence[Answer]], course: pd.DataFrame) -> list[str]:
    """What the trainings of encoder and head together say, and which of them kept step 0 or ended at their last step.

    rows: of :func:`.tables.settings`; found, course: of :func:`.trained.answers`.
    """
    return [*moved(rows), *recalls.untrained(recalls.recall(found)), *recalls.budget(course)] if found else [NOTHING]


def came_out(tested: pd.DataFrame, rows: pd.DataFrame, k: int) -> list[str]:
    """The default, the ends of the means, which no test has chosen, and all tests as sentences."""
    ours = rows.set_index("method")["hyp"]
    best, worst = ours.idxmax(), ours.idxmin()
    lines = [
        f"Recall@{k} of the default {ours[DEFAULT]:.2f}; means of the other rows, which no test has ordered, from "
        f"{points(ours[worst] - ours[DEFAULT])} ({worst}) to {points(ours[best] - ours[DEFAULT])} points ({best})",
        other_rates(rows),
    ]
    return [*lines, *verdicts.sentences(marked(tested, rows))]


def take_away(tested: pd.DataFrame) -> list[str]:
    """What was changed, and how much of it is clearly better or worse; tested: of :func:`.tables.tests`."""
    return [
        f"{what}, of {paired.tally(part)[2]}: {_listed(part, 'is worse than', 'worse')}, "
        f"{_listed(part, 'is better than', 'better')}"
        for what, part in tested.groupby("changed", sort=False)
    ]


def _listed(tested: pd.DataFrame, outcome: str, word: str) -> str:
    """How many tests have one outcome, and which."""
    rows = [row for row in tested.itertuples() if paired.relation(row) == outcome]
    told = "; ".join(f"{row.first} {points(row.difference)}" for row in rows)
    return f"clearly {word} {len(rows)}" + f" ({told})" * bool(rows)
