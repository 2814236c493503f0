"""Tables of what the levels carry and of what DaRF hands on, and what they say."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.papers.acir.choices import first_losses
from lib.papers.acir.network.experiment import EXCHANGES, FUSED, LEVELS, POOLED, TOP, TRAINED, UNTRAINED
from lib.results import answers, paired
from lib.results.markdown import markdown_table, percent
from lib.results.rates import flatness, marked
from lib.training.methods import Answer

SHALLOW, _, PIXELS, TOKEN, NUMBERS, CODE = LEVELS


def rates_layout(rows: pd.DataFrame) -> str:
    """The learning rates as Markdown, marked by :func:`lib.results.rates.marked`; the last row says whether all are."""
    cells = {
        "learning rate": rows["lr"].map("{:g}".format),
        "mAP on images set aside": marked(rows),
        "last loss": rows["loss"].map("{:.3f}".format),
    }
    lines = pd.DataFrame(cells)
    lines.loc[len(lines)] = ["within one error", flatness(rows["within"]), ""]
    return markdown_table(lines)


def levels(found: Mapping[str, Sequence[Answer]]) -> pd.DataFrame:
    """mAP of every level: columns level, network, mAP, spread (over trainings), class_mean, chance (percent),
    loss_first, loss (last) and steps of the training, n_seeds.
    """
    rows = answers.values({"closed": found}).query("metric == 'ap_min' and k == @TOP")
    parts = rows["method"].str.rsplit(", ", n=1)
    named = {"level": parts.str[0], "network": parts.str[1], "loss_first": rows["method"].map(first_losses(found))}
    rows = rows.assign(**named).drop(columns="spread").rename(columns={"ours": "mAP", "seeds_spread": "spread"})
    plain = rows["method"] == POOLED
    rows.loc[plain, ["level", "network"]] = [POOLED, "–"]
    columns = ["level", "network", "mAP", "spread", "class_mean", "chance", "loss_first", "loss", "steps", "n_seeds"]
    return rows[columns].reset_index(drop=True)


def levels_layout(rows: pd.DataFrame) -> str:
    """A row per level, untrained beside trained: mAP ± over trainings, in brackets the class mean (maAP)."""
    lines = []
    for level, part in rows.groupby("level", sort=False):
        by = part.set_index("network")
        cells = {"level": level}
        for state in (UNTRAINED, TRAINED):
            name = state if state in by.index else by.index[0]
            there = state in by.index or state == UNTRAINED
            cells[state] = _score(by.loc[name]) if there else "–"
        lines.append(cells)
    trained = rows[rows["network"] == TRAINED].iloc[0]
    told = f"{trained['loss_first']:.3f} → {trained['loss']:.3f}; {trained['steps']:.0f}"
    health = {"level": "first → last loss; steps", UNTRAINED: "–", TRAINED: told}
    chance = {"level": "random order", UNTRAINED: percent(rows["chance"].mean()), TRAINED: "–"}
    return markdown_table(pd.DataFrame([*lines, chance, health]))


def _score(row: pd.Series) -> str:
    """``mAP ± over trainings (class mean)``, without ± where nothing was trained."""
    spread = f" ± {percent(row['spread'])}" if row["spread"] > 0 else ""
    return f"{percent(row['mAP'])}{spread} ({percent(row['class_mean'])})"


def class_mean_sentences(rows: pd.DataFrame) -> list[str]:
    """In which order the trained levels stand by mAP and by class mean, in which rare classes count as others do."""
    trained = rows[rows["network"] == TRAINED].set_index("level")
    return [
        f"trained levels by {title}, best first: "
        + ", ".join(f"{level} {value:.1f}" for level, value in trained[column].sort_values(ascending=False).items())
        + " (means over trainings, the order is not tested)"
        for column, title in (("mAP", "mAP"), ("class_mean", "class mean"))
    ]


def tests(found: Mapping[str, Sequence[Answer]], groups: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Paired tests over patients and trainings: each level trained against untrained, and trained levels among them."""
    pairs = [(f"{level}, {TRAINED}", f"{level}, {UNTRAINED}") for level in LEVELS]
    among = [(TOKEN, PIXELS), (TOKEN, FUSED), (FUSED, SHALLOW), (NUMBERS, TOKEN), (NUMBERS, CODE)]
    pairs += [(f"{a}, {TRAINED}", f"{b}, {TRAINED}") for a, b in among]
    pairs += [(f"{name}, {TRAINED}", POOLED) for name in (TOKEN, CODE)]
    return answers.compare({"closed": found}, groups, pairs, [TOP], seed=seed).drop(columns="rule")


def exchanged_layout(rows: pd.DataFrame) -> str:
    """Whose image the fused level speaks of: a row per network and exchange, means ± over trainings."""
    lines = []
    for (state, what), part in rows.groupby(["network", "exchanged"], sort=False):
        cells = {"network": state, "a stranger's": what, "mAP of the fused level": _mean(part["mAP"])}
        lines.append(cells | {"moved": f"{100 * part['moved'].mean():.0f} %"})
    return markdown_table(pd.DataFrame(lines))


def exchanged_sentences(rows: pd.DataFrame) -> list[str]:
    """What each exchange does to the fused level, untrained and trained."""
    lines = []
    for state, part in rows.groupby("network", sort=False):
        by = part.groupby("exchanged", sort=False)[["mAP", "moved"]].mean()
        told = "; ".join(
            f"{what} moves it by {100 * by['moved'][what]:.0f} %, to an mAP of {by['mAP'][what]:.1f}"
            for what in EXCHANGES[1:]
        )
        lines.append(f"fused level, {state}, mAP {by['mAP'][EXCHANGES[0]]:.1f}. A stranger's {told}")
    return lines


def evenness_layout(rows: pd.DataFrame) -> str:
    """Evenness of attention, a row per part: means ± over trainings."""
    lines = [
        {"part": part} | {state: _mean(one["evenness"]) for state, one in of_part.groupby("network", sort=False)}
        for part, of_part in rows.groupby("part", sort=False)
    ]
    return markdown_table(pd.DataFrame(lines))


def answered(
    shown: str, evenness: pd.DataFrame, exchanged: pd.DataFrame, rows: pd.DataFrame, tested: pd.DataFrame
) -> list[str]:
    """The four questions of the notebook, each with what was measured.

    shown: how large it is; evenness, exchanged: what :func:`evenness_sentence` and :func:`exchanged_sentences` read;
    rows: of :func:`levels`; tested: of :func:`tests`, every one of which follows.
    """
    return [
        f"1. {shown}",
        f"2. {evenness_sentence(evenness)}",
        f"3. {'; '.join(exchanged_sentences(exchanged))}",
        f"4. {'; '.join(level_sentences(rows))}",
        *paired.sentences(tested),
    ]


def evenness_sentence(rows: pd.DataFrame) -> str:
    """How even each part's attention is, untrained and trained."""
    by = rows[rows["network"] == TRAINED].groupby("part", sort=False)["evenness"].mean()
    before = rows[rows["network"] == UNTRAINED].groupby("part", sort=False)["evenness"].mean()
    told = ", ".join(f"{part} {before[part]:.0f} → {by[part]:.0f} %" for part in by.index)
    return f"evenness, untrained → trained (100 %: every pixel counts alike): {told}"


def splines_sentence(
    total: np.ndarray, base: np.ndarray, spline: np.ndarray, inputs: np.ndarray, reach: float, when: str
) -> str:
    """How much of what the edges add comes from the splines, and how many inputs the splines do not reach.

    total, base, spline: (n, bits, numbers), over images; inputs: (n, numbers).
    """
    share = spline.var(0).sum() / (spline.var(0).sum() + base.var(0).sum())
    beyond = (np.abs(inputs) > reach).mean()
    return (
        f"{when}: of the variance over images, summed over the bases and the splines of all edges, {100 * share:.0f} % "
        f"is that of the splines; {100 * beyond:.0f} % of the inputs lie beyond the grid, which ends at ±{reach:g}"
    )


def level_sentences(rows: pd.DataFrame) -> list[str]:
    """The best and the worst level untrained and trained, and the map that the network was given."""
    by = rows.set_index(["level", "network"])["mAP"]
    inner = [name for name in LEVELS if name not in (NUMBERS, CODE)]
    lines = []
    for state in (UNTRAINED, TRAINED):
        own = by.xs(state, level="network")[inner]
        lines.append(
            f"{state}: best inner level {own.idxmax()} ({own.max():.1f}), worst {own.idxmin()} ({own.min():.1f}); "
            f"code {by[CODE, state]:.1f}"
        )
    return [*lines, f"{POOLED}: {by[POOLED].iloc[0]:.1f}"]


def _mean(values: pd.Series) -> str:
    spread = f" ± {percent(values.std())}" if len(values) > 1 else ""
    return f"{percent(values.mean())}{spread}"
