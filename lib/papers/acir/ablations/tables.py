"""Tables 2, 4 and 5 in the paper's layout, α, and what the numbers say."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from lib.metrics.significance import paired_permutation
from lib.papers.acir import published
from lib.papers.acir.ablations import parts, scores
from lib.papers.acir.ablations.parts import CNN, FULL, HYBRID, LAYER, PRETRAINED, UNTRAINED, VIT, Row
from lib.papers.acir.ablations.scores import Scored
from lib.papers.acir.hashing.experiment import TOP
from lib.results import differences, paired
from lib.results.markdown import markdown_table, percent, points

MARKS = (CNN, VIT, HYBRID, "L_WSC", "DaRF", "KAN", "CGR")
"""The columns of Table 2."""


def score(row: pd.Series | None, end: str = "") -> str:
    """``mAP ± over trainings (maAP)`` of a row of :func:`.scores.means`, without ± for one training; a dash for none.

    end: "" by hits, "_min" by min(k, R); the spread is that of the mAP before it.
    """
    if row is None:
        return "–"
    spread = "" if np.isnan(row[f"seeds_spread{end}"]) else f" ± {percent(row[f'seeds_spread{end}'])}"
    return f"{percent(row[f'mAP{end}'])}{spread} ({percent(row[f'maAP{end}'])})"


def health(row: pd.Series) -> dict[str, str]:
    """Last loss over first, steps and parameters as cells; dashes where nothing was trained."""
    if not row["steps"]:
        return {"last / first loss": "–", "steps": "–", "parameters": "–"}
    change = f"{row['loss_last']:.3f} / {row['loss_first']:.3f}"
    return {"last / first loss": change, "steps": f"{row['steps']:.0f}", "parameters": f"{row['parameters']:,.0f}"}


def marks(row: Row) -> dict[str, str]:
    """The check marks of a row of Table 2."""
    backbone = VIT if row.eye == parts.TOKEN else HYBRID if row.design.pit else CNN
    design, has = row.design, {backbone}
    has |= {"L_WSC"} if row.loss in parts.OURS else set()
    has |= {name for name, there in (("DaRF", design.fusion), ("KAN", design.kan), ("CGR", row.content)) if there}
    return {name: "✓" if name in has else "" for name in MARKS}


def table_2(table: pd.DataFrame, rows: Sequence[Row], needs: Mapping[str, str]) -> str:
    """Table 2 as Markdown: the paper's rows with their values beside ours, then those without one part, then opponents.

    table: of :func:`.scores.means`; rows: in order; needs: eye → what its rows lack.
    """
    by, theirs = {row["name"]: row for _, row in table.iterrows()}, _published()
    lines = []
    for row in rows:
        ours, marked = by.get(row.name), marks(row)
        first = {"row": row.name} | marked
        first |= {"published": theirs.get(tuple(marked.values()), "–") if row.printed else "–"}
        lines.append(first | (_ours(ours) if ours is not None else {"ours": needs.get(row.eye, "–")}))
    lines += [{"row": name, "published": "–"} | _ours(by[name]) for name in by if name.startswith(LAYER)]
    return markdown_table(pd.DataFrame([*lines, {"row": "chance"} | chance(table)]).fillna("–"))


def _ours(row: pd.Series) -> dict[str, str]:
    return {"ours": score(row), "min(k, R)": score(row, "_min"), "first answer": first(row)} | health(row)


def first(row: pd.Series, of: str = "") -> str:
    """Precision of the first answer, and in brackets its class mean; ``of``: "chance_" for a random order."""
    return f"{percent(row[f'{of}first'])} ({percent(row[f'{of}first_class'])})"


def chance(table: pd.DataFrame, ours: str = "ours") -> dict[str, str]:
    """What an archive in random order gives, as cells: ``mAP (maAP)`` by hits, titled ``ours``, and by min(k, R).

    table: of :func:`.scores.means`; the queries are those of all its rows.
    """
    mean = table.filter(like="chance_").mean()
    cells = {
        title: f"{percent(mean[f'chance_mAP{end}'])} ({percent(mean[f'chance_maAP{end}'])})"
        for title, end in ((ours, ""), ("min(k, R)", "_min"))
    }
    return cells | {"first answer": first(mean, "chance_")}


def _published() -> dict[tuple[str, ...], str]:
    """Marks of a row → its published score."""
    found = {}
    for row in published.ablation().itertuples():
        has = {row.backbone}
        switches = (("L_WSC", row.l_wsc), ("DaRF", row.darf), ("KAN", row.kan), ("CGR", row.cgr))
        has |= {name for name, there in switches if there}
        found[tuple("✓" if name in has else "" for name in MARKS)] = f"{row.mAP:.1f} ({row.maAP:.1f})"
    return found


def gains(
    found: Mapping[str, Sequence[Scored]], groups: np.ndarray, seed: int = 0, *, by_class: bool = False
) -> pd.DataFrame:
    """What every part earns: columns part, where (on, off, ours), first, second, those of the paired test of mAP

    (min(k, R), points), hits (the same difference of mAP by hits) and published (by hits; NaN where there is none).
    groups: (q,) of the queries. by_class: of maAP, where each class counts alike.
    """
    steps = parts.steps(found)
    tested = scores.tests(found, [(step.first, step.second) for step in steps], groups, seed, by_class=by_class)
    value = scores.means(scores.rows(found)).set_index("name")["maAP" if by_class else "mAP"]
    hits = [value[step.first] - value[step.second] for step in steps]
    known = published_gains("maAP" if by_class else "mAP")
    theirs = [known.get(step.part, np.nan) if step.where == "on" else np.nan for step in steps]
    names = {"part": [step.part for step in steps], "where": [step.where for step in steps]}
    return pd.concat([pd.DataFrame(names), tested.assign(hits=hits, published=theirs)], axis=1)


def published_gains(measure: str = "mAP") -> dict[str, float]:
    """Part → what switching it on adds to mAP, or maAP, in Table 2, in points.

    >>> {part: round(gain, 1) for part, gain in published_gains().items()}["L_WSC (ViT)"]
    3.7
    """
    value = published.ablation().set_index(published.PARTS)[measure]
    off = (False, False, False, False)
    loss, fused, learnt = (True, False, False, False), (True, True, False, False), (True, True, True, False)
    pairs = {f"L_WSC ({name})": ((eye, *loss), (eye, *off)) for name, eye in _BACKBONES.items()}
    pairs |= {"PiT (hybrid over CNN)": ((HYBRID, *off), (CNN, *off)), "hybrid over ViT": ((HYBRID, *off), (VIT, *off))}
    pairs |= {"DaRF": ((HYBRID, *fused), (HYBRID, *loss)), "KAN": ((HYBRID, *learnt), (HYBRID, *fused))}
    pairs |= {"CGR": ((HYBRID, True, True, True, True), (HYBRID, *learnt))}
    return {part: float(value[first] - value[second]) for part, (first, second) in pairs.items()}


_BACKBONES = {"CNN": CNN, "ViT": VIT, "hybrid": HYBRID}
WHERE = {"on": "switched on", "off": "taken out of the whole", "ours": "the whole and an opponent"}


def gains_layout(table: pd.DataFrame) -> str:
    """What every part earns, as Markdown."""
    lines = [
        {"part": row.part, "comparison": WHERE[row.where]}
        | paired.cells(row, "gain, points")
        | {"by hits": points(row.hits), "published, by hits": points(row.published)}
        for row in table.itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def gain_sentences(table: pd.DataFrame) -> list[str]:
    """Every part with its verdict: what it adds when it comes, and what is missing when it goes."""
    lines = []
    for part, several in table[table["where"] != "ours"].groupby("part", sort=False):
        told = [f"{WHERE[row.where]}, {_verdict(row)} ({paired.size(row)})" for row in several.itertuples()]
        lines.append(f"{part}: {'; '.join(told)}")
    ours = table[table["where"] == "ours"]
    return lines + [
        f"{row.first} {paired.relation(row)} {row.second} ({paired.size(row)})" for row in ours.itertuples()
    ]


VERDICTS = {
    ("on", "is better than"): "it helps",
    ("on", "is worse than"): "it harms",
    ("off", "is better than"): "it is missed",
    ("off", "is worse than"): "the whole gains",
}


def _verdict(row: object) -> str:
    found = paired.relation(row)
    if found in paired.CLEAR:
        return VERDICTS[row.where, found]
    if found.startswith("is not"):
        return "nothing clear"
    return found.replace("cannot, with", "cannot be told with").removesuffix(", be told from")


def counted(table: pd.DataFrame) -> str:
    """How many of the paper's steps help here, and clearly so; those of the ViT, another encoder, do not count."""
    on = table[(table["where"] == "on") & table["published"].notna() & ~table["part"].str.contains(VIT)]
    clear = on["p_holm"] <= 0.05
    up, down = int((clear & (on["difference"] > 0)).sum()), int((clear & (on["difference"] < 0)).sum())
    return (
        f"of {len(on)} steps without the ViT, all of which add to mAP in the paper, {up} clearly help here, "
        f"{down} clearly harm, and of {len(on) - up - down} it cannot be said"
    )


def pretraining_layout(table: pd.DataFrame, needs: str) -> str:
    """Table 4 as Markdown: with and without pretraining, ours at one length beside the paper's at three."""
    by, theirs = {row["name"]: row for _, row in table.iterrows()}, published.pretraining()
    lines = []
    for method, part in theirs.groupby("method", sort=False):
        value = part.set_index("pretrained")
        cells = {"method": method, "published bits": int(part["bits"].iloc[0])}
        cells |= {
            f"published, {word}": f"{value.loc[on, 'mAP']:.1f} ({value.loc[on, 'maAP']:.1f})" for on, word in WORDS
        }
        cells |= {"published drop": points(value.loc[False, "mAP"] - value.loc[True, "mAP"])}
        ours = {on: by.get(f"{method}, {eye}") for on, eye in ((False, UNTRAINED), (True, PRETRAINED))}
        cells |= {f"ours, {word}": score(ours[on]) if ours[on] is not None else needs for on, word in WORDS}
        if ours[True] is not None:
            lost = ours[False]["mAP"] - ours[True]["mAP"]
            cells |= {
                "ours, drop": points(lost),
                "min(k, R), drop": points(ours[False]["mAP_min"] - ours[True]["mAP_min"]),
            }
            cells |= {f"min(k, R), {word}": score(ours[on], "_min") for on, word in WORDS}
            cells |= {f"{name}, untrained": text for name, text in health(ours[False]).items()}
        lines.append(cells)
    random = chance(table)
    last = {"method": "chance"} | {f"ours, {word}": random["ours"] for _, word in WORDS}
    lines.append(last | {f"min(k, R), {word}": random["min(k, R)"] for _, word in WORDS})
    return markdown_table(pd.DataFrame(lines, dtype=object).fillna("–"))


WORDS = ((False, "untrained"), (True, "pretrained"))


def pretraining_claims() -> list[str]:
    """What the text says of Table 4, and what Table 4 says (AC-17)."""
    theirs = published.pretraining()
    value = theirs.pivot(index="method", columns="pretrained", values=["mAP", "maAP"])
    alone = value["mAP"][False]
    behind = "behind" if alone[FULL] < alone["CSQ"] else "not behind"
    lost = {metric: value[metric][True]["CSQ"] - value[metric][False]["CSQ"] for metric in ("mAP", "maAP")}
    lengths = sorted(theirs["bits"].unique().tolist())
    return [
        f'"without pretraining, hybrid models underperform ConvNets": {FULL} is {behind} CSQ in the table '
        f"({alone[FULL]:.1f} against {alone['CSQ']:.1f})",
        f'"ConvNets only dropped by around 5 %": CSQ drops by {lost["mAP"]:.1f} points of mAP, '
        f"{lost['maAP']:.1f} of maAP",
        f"the {len(alone)} methods have codes of {len(lengths)} lengths: {', '.join(f'{n:.0f}' for n in lengths)} bits",
    ]


def suffers(found: Mapping[str, Sequence[Scored]], groups: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Does an untrained stem cost :data:`FULL` more than CSQ? The loss of the one against the loss of the other.

    A loss is what pretraining adds to AP@100 (min(k, R)) of a query in one training. A row of
    :func:`lib.results.differences.together`.
    """
    lost = []
    for method in (FULL, "CSQ"):
        before, after = (
            np.concatenate([one.per_query.values["ap_min", TOP] for one in found[f"{method}, {eye}"]])
            for eye in (PRETRAINED, UNTRAINED)
        )
        lost.append(100 * (before - after))
    n = len(found[f"{FULL}, {PRETRAINED}"])
    repeats = np.repeat(np.arange(n), len(groups))
    test = paired_permutation(*lost, np.tile(groups, n), repeats, seed=seed)
    names = {"first": f"what an untrained stem costs {FULL}", "second": "what it costs CSQ"}
    return differences.together([names | asdict(test)])


MORE = {"is better than": "is more than", "is worse than": "is less than"}


def suffers_sentence(test: pd.DataFrame) -> str:
    """The row of :func:`suffers` in words."""
    row = next(test.itertuples())
    told = paired.relation(row)
    return f"{row.first} {MORE.get(told, told)} {row.second} ({paired.size(row)})"


def pretraining_sentences(tests: pd.DataFrame) -> list[str]:
    """How pretrained and untrained stems compare here, and the hybrid with the CNN on each."""
    return [f"{row.first} {paired.relation(row)} {row.second} ({paired.size(row)})" for row in tests.itertuples()]


PRETRAINING_PAIRS = [
    (f"CSQ, {PRETRAINED}", f"CSQ, {UNTRAINED}"),
    (f"{FULL}, {PRETRAINED}", f"{FULL}, {UNTRAINED}"),
    (f"{FULL}, {UNTRAINED}", f"CSQ, {UNTRAINED}"),
    (f"{FULL}, {PRETRAINED}", f"CSQ, {PRETRAINED}"),
]
