"""Tables 4 and 5 in the paper's layout, and what the rows say."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.papers.hyp_vit import verdicts
from lib.papers.hyp_vit.hyperparameters.changes import DEFAULT, PUBLISHED_BATCH, SAME_ALL, SAME_ROOM, Change
from lib.papers.hyp_vit.names import NONE, UNTRAINED
from lib.papers.hyp_vit.retrieval import tables as recalls
from lib.papers.hyp_vit.retrieval.frozen import BY_COSINE
from lib.results import answers
from lib.results.markdown import markdown_table, percent, points
from lib.training.methods import Answer, Method

SEEN = "seen"
NAMES = {"none": "default", "c": "c", "head_dim": "numbers", "batch_size": "batch", "room": "room"}
"""Which setting differs, in words."""


def settings(
    found: Mapping[str, Sequence[Answer]], changes: Sequence[Change], chosen: pd.DataFrame, theirs: pd.DataFrame, k: int
) -> pd.DataFrame:
    """Recall@k of every changed setting, beside what the paper has for it; percent.

    Columns of, value, method; encoder, head (published, NaN where there is none); frozen (our encoder, the same in
    every row), hyp, cosine (our head by D_hyp and by D_cos), seeds_spread, class_mean and chance (of D_hyp), room (how
    far out clipping lets points come, percent of the radius), clipped (unseen images that rest there, percent), lr
    (chosen), loss, rim, steps.
    """
    at_k = recalls.recall(found).query("k == @k").set_index("method")
    lr = chosen[chosen["chosen"]].set_index("method")["lr"]
    printed = theirs.set_index(["of", "value"])[["encoder", "head"]]
    lines = []
    for change in changes:
        name = change.method.name
        known = printed.loc[[(change.of, change.value)]].iloc[0] if change.of != "room" else printed.iloc[0] * np.nan
        ours = at_k.loc[name, ["seeds_spread", "class_mean", "chance", "loss", "rim", "steps"]]
        cells = {"of": change.of, "value": change.value, "method": name} | known.to_dict() | ours.to_dict()
        scores = {"frozen": at_k.loc[NONE, "ours"], "hyp": at_k.loc[name, "ours"]}
        scores |= {"cosine": at_k.loc[name + BY_COSINE, "ours"]}
        at_bound = np.mean([recalls.clipped(change.method.head, answer.norms) for answer in found[name]])
        more = {"room": recalls.bound(change.method.head), "clipped": at_bound, "lr": lr[name]}
        lines.append(cells | scores | more)
    return pd.DataFrame(lines)


def settings_layout(rows: pd.DataFrame) -> str:
    """Table 5 as Markdown: what is changed, the published pair, encoder and head, ours, and health; chance last."""
    lines = []
    for _, row in rows.iterrows():
        value = "" if np.isnan(row["value"]) else f"{row['value']:g}"
        cells = {"changed": NAMES[row["of"]], "published value": value or "–"}
        cells |= {f"published {place}": f"{row[place]:.1f}" if row[place] > 0 else "–" for place in ("encoder", "head")}
        spread = f" ± {percent(row['seeds_spread'])}" if row["seeds_spread"] >= 0 else ""
        cells |= {"ours": row["method"], "our encoder, frozen": percent(row["frozen"])}
        cells |= {"our head, D_hyp": f"{percent(row['hyp'])}{spread}", "class mean, D_hyp": percent(row["class_mean"])}
        cells |= {"our head, D_cos": percent(row["cosine"])}
        cells |= {"points may reach": f"{row['room']:.1f} %", "of them there": f"{row['clipped']:.1f} %"}
        lines.append(cells | {"rate": f"{row['lr']:g}"} | answers.health(row))
    chance = percent(rows["chance"].iloc[0])  # one and the same gallery, searched by frozen encoder and heads
    found = ("our encoder, frozen", "our head, D_hyp", "our head, D_cos")
    lines.append(dict.fromkeys(lines[0], "–") | {"changed": "chance"} | dict.fromkeys(found, chance))
    return markdown_table(pd.DataFrame(lines))


def sizes_layout(rows: pd.DataFrame, theirs: pd.DataFrame, own: str) -> str:
    """Table 4 as Markdown: published rows of Cars-196 first, then ours, then chance.

    rows: of :func:`lib.papers.hyp_vit.retrieval.tables.recall`. own: what the untrained encoder sees.
    """
    lines = []
    for (method, dim, patch), part in theirs.groupby(["method", "dim", "patch"], sort=False, dropna=False):
        seen = "–" if np.isnan(patch) else f"patches of {patch:g}"
        cells = {"method": method, "whose": "published, Cars-196", "sees": seen, "numbers": int(dim)}
        lines.append(cells | {f"Recall@{row.k}": f"{row.value:.1f}" for row in part.itertuples()})
    first = rows["k"].min()
    for name, part in rows.groupby("method", sort=False):
        seen, _, place = (own, "", name) if name.startswith(UNTRAINED) else name.partition(", ")
        row = part.iloc[0]
        cells = {"method": place, "whose": "ours", "sees": seen, "numbers": int(row["dim"])}
        cells |= {f"Recall@{at.k}": percent(at.ours) for at in part.itertuples()}
        cells |= {f"± at {first}": percent(row["seeds_spread"]), f"class mean@{first}": percent(row["class_mean"])}
        lines.append(cells | answers.health(row))
    chance = rows.drop_duplicates("k").set_index("k")["chance"]
    lines.append({"method": "chance"} | {f"Recall@{k}": percent(chance[k]) for k in chance.index})
    columns = max(lines, key=len)
    return markdown_table(pd.DataFrame(lines, columns=list(columns), dtype=object).fillna("–"))


def pairs(changes: Sequence[Change]) -> list[tuple[str, str]]:
    """Every changed setting against the default, but for what is the default in other words."""
    return [(one.method.name, DEFAULT) for one in changes if one.method.name not in (DEFAULT, SAME_ALL)]


def size_pairs(found: Mapping[str, Sequence[Answer]], own: str) -> list[tuple[str, str]]:
    """Heads and encoders that see other sizes against those that see ``own``."""
    names = [name.partition(", ") for name in found]
    return [(f"{size}, {place}", f"{own}, {place}") for size, _, place in names if size != own]


def tests(
    found: Mapping[str, Sequence[Answer]], names: np.ndarray, between: Sequence[tuple[str, str]], k: int, seed: int = 0
) -> pd.DataFrame:
    """Paired tests of Recall@k over categories (``names: (n,)`` of all images) and trainings."""
    table = answers.compare({recalls.UNSEEN: found}, names, between, [k], metric=recalls.METRIC, seed=seed)
    return table.drop(columns="rule")


def same_again(found: Mapping[str, Sequence[Answer]], k: int) -> str:
    """How far the head that is the default's in other words is from it, in outcomes of queries and in last losses."""
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


def drawn(rows: pd.DataFrame, sizes: pd.DataFrame, one: Method, own: str, k: int) -> pd.DataFrame:
    """Differences from the default, for the figure: columns of, value (as text), line, difference (points), spread.

    rows: of :func:`settings`, the default first; sizes: Recall@K of heads and encoders at each size; ``one``: the
    default; ``own``: its size.
    """
    first = rows.iloc[0]
    defaults = {"c": one.head.geometry.c, "head_dim": one.recipe.dim_out, "batch_size": PUBLISHED_BATCH}
    lines = []
    for of, value in defaults.items():
        for _, row in pd.concat([rows.head(1).assign(of=of, value=float(value)), rows[rows["of"] == of]]).iterrows():
            for line in ("head", "hyp", "cosine"):
                spread = row["seeds_spread"] if line == "hyp" else np.nan
                cells = {"of": of, "value": f"{row['value']:g}", "line": line, "difference": row[line] - first[line]}
                lines.append(cells | {"spread": spread})
    at_k = sizes[sizes["k"] == k].set_index("method")
    for name, row in at_k.iterrows():
        size, _, place = name.partition(", ")
        line = "hyp" if place == "head" else "encoder"
        change = row["ours"] - at_k.loc[f"{own}, {place}", "ours"]
        spread = row["seeds_spread"] if line == "hyp" else np.nan
        cells = {"of": SEEN, "value": size, "line": line, "difference": change}
        lines.append(cells | {"spread": spread})
    return pd.DataFrame(lines)


def elsewhere(rows: pd.DataFrame) -> pd.Series:
    """Method → learning rate, of the rows that were trained at another one than the default (the first row)."""
    lr = rows.set_index("method")["lr"]
    return lr[lr != lr[DEFAULT]]


def _with_rates(rows: pd.DataFrame) -> dict[str, str]:
    """Method → its name with its learning rate, of those of :func:`elsewhere`."""
    return {name: f"{name} (rate {rate:g})" for name, rate in elsewhere(rows).items()}


def other_rates(rows: pd.DataFrame) -> str:
    """Which rows differ from the default in their rate beside their setting; rows: of :func:`settings`."""
    lr, told = rows.set_index("method")["lr"][DEFAULT], "; ".join(_with_rates(rows).values()) or "none"
    return (
        f"Trained at another learning rate than the default's {lr:g}, and so different in more than one thing: {told}"
    )


def marked(tested: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The tests with the learning rate behind the name of every row that has another one than the default."""
    return tested.assign(first=tested["first"].replace(_with_rates(rows)))


def searched(rows: pd.DataFrame) -> list[str]:
    """What D_hyp and D_cos find with the same networks, and what c does without its room; rows: of :func:`settings`.

    Values that are the same when both are printed with two digits are told in one line.
    """
    alike = rows["hyp"].round(2) == rows["cosine"].round(2)
    lines = [other_rates(rows), f"Recall@1 is the same by D_hyp and by D_cos: {'; '.join(rows['method'][alike])}"]
    lines += [
        f"{row.method}: {row.hyp:.2f} by D_hyp, {row.cosine:.2f} by D_cos; {row.clipped:.1f} % of the points clipped"
        for row in rows[~alike].itertuples()
    ]
    ours, shown = rows.set_index("method")["hyp"], _with_rates(rows)
    what = {"c = 1": "room and temperature changed", SAME_ROOM: "the temperature alone"}
    if set(what) <= set(ours.index):
        told = [f"{shown.get(name, name)}: {points(ours[name] - ours[DEFAULT])} ({how})" for name, how in what.items()]
        lines.append(f"points of difference from the default: {'; '.join(told)}")
    return lines


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
