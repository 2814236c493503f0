"""What the text says of Table 1, and what Table 1 says: errata AC-8, AC-9, AC-14, AC-15, AC-16 and AC-18."""

from collections.abc import Callable, Sequence

import pandas as pd

from lib.papers.acir.published import DATASETS
from lib.papers.acir.stated import FITS, NOT, row, same, texts

ACIR = "ACIR"
HARD, EASY = DATASETS
"""RadIN-CT, on which methods differ, and BPS, on which nearly all are above 94 %."""
N_DATASETS = 3
"""Section 4.2: "We conducted comparison studies on three datasets"."""
LISTED = ("CSQ", "DPN", "DCH", "DBDH", "QSMIH", "ViT-LLaMa", "ATH", "FIRe", "MTH")
"""Section 4.2: the methods that it says it compares."""


def of_table_1(maps: pd.DataFrame, said: pd.DataFrame | None = None) -> pd.DataFrame:
    """All that the text says of Table 1 and the table does not: columns erratum, says, own, verdict.

    maps: of :func:`lib.papers.acir.published.maps`; said: of :func:`lib.papers.acir.stated.texts`, read if not given.
    """
    said = texts() if said is None else said
    parts: list[Callable[[pd.DataFrame, pd.DataFrame], list[dict[str, str]]]] = [
        gains,
        best,
        listed,
        places,
        high,
        lengths,
    ]
    return pd.DataFrame([line for part in parts for line in part(maps, said)])


def gains(maps: pd.DataFrame, said: pd.DataFrame) -> list[dict[str, str]]:
    """AC-8: the two ends of the gain on RadIN-CT, over the best and the weakest of the rivals' values."""
    table = _of(maps, HARD)
    ours, rivals = table.loc[ACIR], table.drop(ACIR)
    best = ours.max()
    lines = []
    for claim, whom, end in (("ac-02", "best", "max"), ("ac-03", "weakest", "min")):
        other, equal = rivals.stack().agg(end), ours - rivals.agg(end)
        stated = said["value"][claim]
        mixed = f"{best:.1f} ({ours.idxmax()} bits) − {other:.1f} ({_where(rivals, other)}) = {best - other:.1f}"
        at_equal = ", ".join(f"{lead:.1f} ({bits})" for bits, lead in equal.items())
        fits = any(same(stated, lead) for lead in equal)
        verdict = FITS if fits else "**lengths mixed**" if same(stated, best - other) else NOT
        says = f"ACIR gains {stated:.1f} percent over the {whom} rival"
        lines.append(row("AC-8", says, f"{mixed} points; at equal length (bits): {at_equal}", verdict))
    return lines


def best(maps: pd.DataFrame, said: pd.DataFrame) -> list[dict[str, str]]:
    """AC-9: at how many lengths and datasets ACIR is ahead of all others, and who is ahead where it is not."""
    behind, n = [], 0
    for dataset, title in DATASETS.items():
        table = _of(maps, dataset)
        for bits in table.columns:
            n += 1
            rival = table[bits].drop(ACIR)
            if rival.max() >= table.loc[ACIR, bits]:
                ours = f"{ACIR} {table.loc[ACIR, bits]:.1f}"
                behind.append(f"{title}, {bits} bits: {rival.idxmax()} {rival.max():.1f}, {ours}")
    own = f"{n - len(behind)} of {n}" + f"; not on {'; '.join(behind)}" * bool(behind)
    return [row("AC-9", said["claim"]["ac-68"], own, not behind)]


def listed(maps: pd.DataFrame, said: pd.DataFrame) -> list[dict[str, str]]:
    """AC-14: how many datasets, and which methods are in Table 1 and not in the list of Section 4.2."""
    titles = [DATASETS[name] for name in maps["dataset"].unique()]
    more = [name for name in maps["method"].unique() if name not in {*LISTED, ACIR}]
    own = f"{len(LISTED) + len(more)}: these" + f", and {', '.join(more)}" * bool(more)
    return [
        row("AC-14", f"{N_DATASETS} datasets", f"{len(titles)}: {', '.join(titles)}", len(titles) == N_DATASETS),
        row("AC-14", f"compared with {len(LISTED)} methods, by name", own, not more),
    ]


def places(maps: pd.DataFrame, said: pd.DataFrame) -> list[dict[str, str]]:
    """AC-15: MTH's value at 8 bits on BPS, and its place among all methods, each at its best length."""
    value, own = 100 * said["value"]["ac-25"], _of(maps, EASY).loc["MTH", 8]
    lines = [row("AC-15", f"MTH on {DATASETS[EASY]}, 8 bits: {value:.1f}", f"{own:.1f}", same(value, own))]
    for dataset, claim in ((EASY, "ac-64"), (HARD, "ac-62")):
        best = _of(maps, dataset).max(axis=1)
        place, stated = int((best > best["MTH"]).sum()) + 1, int(said["value"][claim])
        above = best[best > best["MTH"]].sort_values(ascending=False, kind="stable").head(4)
        told = ", ".join(f"{name} {value:.1f}" for name, value in above.items()) + ", …" * (place > 5)
        own = f"place {place} by best length: {told}; MTH {best['MTH']:.1f}"
        lines.append(row("AC-15", f"MTH on {DATASETS[dataset]}: place {stated}", own, place == stated))
    return lines


def high(maps: pd.DataFrame, said: pd.DataFrame) -> list[dict[str, str]]:
    """AC-16: which methods never exceed 94 % on BPS, beside those that the text names."""
    limit, best = 100 * said["value"]["ac-20"], _of(maps, EASY).max(axis=1)
    named, below = _named(said["claim"]["ac-20"], best.index), best[best <= limit]
    unnamed = [name for name in below.index if name not in named]
    own = "not above it at any length: " + ", ".join(f"{name} {value:.1f}" for name, value in below.items())
    says = f"most but {' and '.join(named)} are above {limit:.0f} on {DATASETS[EASY]}"
    return [row("AC-16", says, own, f"**{', '.join(unnamed)} not named**" if unnamed else FITS)]


def lengths(maps: pd.DataFrame, said: pd.DataFrame) -> list[dict[str, str]]:
    """AC-18: who is better at 16 bits than at 8, and what is lost from 64 to 128, on each dataset."""
    lines = []
    for claim, first, last, word, judge in (
        ("ac-83", 8, 16, "better", _rise),
        ("ac-84", 64, 128, "notably worse", _fall),
    ):
        names = _named(said["claim"][claim], maps["method"].unique())
        says = f"{', '.join(names)}: {word} at {last} bits than at {first}"
        for dataset, title in DATASETS.items():
            table = _of(maps, dataset).loc[names]
            change = (table[last] - table[first]).round(1)
            own = f"{title}: " + ", ".join(f"{name} {value:+z.1f}" for name, value in change.items())
            lines.append(row("AC-18", says, own, judge(change)))
    return lines


def _rise(change: pd.Series) -> str:
    """Whether all are better, or who.

    >>> _rise(pd.Series({"DCH": 0.3, "ATH": -0.7}))
    '**so for DCH alone**'
    """
    up = change.index[change > 0]
    return FITS if len(up) == len(change) else f"**so for {' and '.join(up)} alone**" if len(up) else NOT


def _fall(change: pd.Series) -> str:
    """Who is worse, and by how much at most; what is notable the text does not say.

    >>> _fall(pd.Series({"DPN": -0.2, "FIRe": -0.7, "MTH": 0.0}))
    '**DPN and FIRe alone fall, by at most 0.7**'
    """
    down = change.index[change < 0]
    if down.empty:
        return NOT
    alone = " alone" * (len(down) < len(change))
    falls = "falls" if len(down) == 1 else "fall"
    return f"**{' and '.join(down)}{alone} {falls}, by at most {-change.min():.1f}**"


def _of(maps: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """mAP of one dataset: a row per method, a column per length, in the order of Table 1."""
    rows = maps[maps["dataset"] == dataset].astype({"bits": int})
    return rows.pivot(index="method", columns="bits", values="mAP").loc[list(dict.fromkeys(rows["method"]))]


def _named(text: str, methods: Sequence[str]) -> list[str]:
    """The methods that a claim names, in its order.

    >>> _named("DPN, FIRe and MTH peak at 64 bits", ["MTH", "DPN", "FIRe", "CSQ"])
    ['DPN', 'FIRe', 'MTH']
    """
    return sorted((name for name in methods if name in text), key=text.index)


def _where(table: pd.DataFrame, value: float) -> str:
    """Which methods have a value at which length."""
    return "; ".join(f"{name}, {bits} bits" for (name, bits), one in table.stack().items() if same(one, value))
