"""Is it real? Paired tests over patients and trainings, and Wilcoxon's test over queries beside them."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from lib.metrics.significance import paired_permutation
from lib.papers.acir.hashing.experiment import ACIR, TOP
from lib.papers.acir.ranking.experiment import HAMMING, LEVELS, OPPONENTS, POOLED, WITHIN
from lib.papers.acir.ranking.tables import MAP
from lib.results import paired
from lib.results.differences import together


def pairs(lengths: Sequence[int], bits: int, finer: Sequence[str]) -> list[tuple]:
    """What is tested: (measure, bits, (method, ranking), (method, ranking))."""
    content = [(LEVELS, HAMMING), (POOLED, HAMMING), (LEVELS, POOLED)]
    own = [(MAP, n, (ACIR, a), (ACIR, b)) for n in lengths for a, b in content]
    rivals = [(MAP, bits, (ACIR, LEVELS), (name, how)) for name in OPPONENTS for how in (HAMMING, POOLED)]
    within = [(name, bits, (ACIR, a), (ACIR, b)) for name in finer for a, b in content]
    return own + rivals + within + [(name, bits, (ACIR, LEVELS), ("CSQ", POOLED)) for name in finer]


def tests(values: pd.DataFrame, wanted: Sequence[tuple], groups: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Paired tests over groups and trainings of all that is wanted (:func:`pairs`), corrected together.

    groups: (n,) of all images. Columns measure, bits, first, second, then those of
    :func:`lib.results.differences.together`.
    """
    rows = []
    for measure, bits, first, second in wanted:
        a, b = (_of(values, bits, *one)[measure] for one in (first, second))
        repeats, query = (a.index.get_level_values(name).to_numpy() for name in ("repeat", "query"))
        found = paired_permutation(a.to_numpy(), b.loc[a.index].to_numpy(), groups[query], repeats, seed=seed)
        names = {"measure": measure, "bits": bits, "first": ", ".join(first), "second": ", ".join(second)}
        rows.append(names | asdict(found))
    return together(rows)


def _relation(test: Any) -> str:
    """The outcome in words; more of the same patient is more, and neither better nor worse."""
    found = paired.relation(test)
    if test.measure == MAP:
        return found
    return {"is better than": "has more than", "is worse than": "has less than"}.get(found, found)


def compared(values: pd.DataFrame, bits: int) -> dict[str, pd.Series]:
    """Comparisons of the first training at one length: name → difference of mAP of every query, by its image."""
    own = [(LEVELS, HAMMING), (LEVELS, POOLED)]
    found = {f"ACIR: {a} − {b}": differences(values, bits, (ACIR, a), (ACIR, b)) for a, b in own}
    for name in OPPONENTS:
        found[f"ACIR, {LEVELS} − {name}, {HAMMING}"] = differences(values, bits, (ACIR, LEVELS), (name, HAMMING))
    return found


def differences(values: pd.DataFrame, bits: int, first: tuple[str, str], second: tuple[str, str]) -> pd.Series:
    """mAP of the first training, first less second: a value per query, indexed by its image."""
    a, b = (_of(values, bits, *one)[MAP] for one in (first, second))
    both = (a - b).reset_index()
    return both[both["repeat"] == both["repeat"].min()].set_index("query")[MAP]


def _of(values: pd.DataFrame, bits: int, method: str, ranking: str) -> pd.DataFrame:
    chosen = (values["method"] == method) & (values["bits"] == bits) & (values["ranking"] == ranking)
    return values[chosen].set_index(["repeat", "query"]).sort_index()


def tests_layout(table: pd.DataFrame) -> str:
    """The paired tests as Markdown."""
    named = table.assign(measure=table["measure"].map(_measure))
    return paired.tests_layout(named, {"measure": "value", "bits": "bits"} | paired.METHODS)


def _measure(name: str) -> str:
    return f"mAP@{TOP}" if name == MAP else f"same {name}, first {WITHIN} of the class"


def verdicts(table: pd.DataFrame) -> list[str]:
    """Every test as a sentence."""
    return [
        f"{_measure(test.measure)}, {test.bits} bits: {test.first} {_relation(test)} {test.second} "
        f"({paired.size(test)})"
        for test in table.itertuples()
    ]


def answered(
    steps: str,
    centralised: Sequence[str],
    ties: Sequence[str],
    gain: str,
    within: Sequence[str],
    tests: pd.DataFrame,
    bits: int,
) -> list[str]:
    """The five questions of the notebook, each with what was measured."""
    at_bits = tests[tests["bits"] == bits]
    relation = {(test.measure, test.first, test.second): _relation(test) for test in at_bits.itertuples()}
    of_map = at_bits["measure"] == MAP
    unclear, unclear_within = (paired.unclear(part) for part in (at_bits[of_map], at_bits[~of_map]))
    levels, pooled, none = (f"{ACIR}, {name}" for name in (LEVELS, POOLED, HAMMING))
    finer = [name for name in tests["measure"].unique() if name != MAP]
    own = "; ".join(
        f"same {name}: {LEVELS} {relation[name, levels, none]} {HAMMING}, {relation[name, levels, pooled]} {POOLED} "
        f"and {relation[name, levels, f'CSQ, {POOLED}']} CSQ by the pooled feature"
        for name in finer
    )
    return [
        f"1. {steps}",
        f"2. {centralised[0]}; {centralised[-1]}",
        f"3. {'; '.join(ties)}",
        f"4. mAP, {bits} bits: {LEVELS} {relation[MAP, levels, none]} {HAMMING}, and {relation[MAP, levels, pooled]} "
        f"{POOLED}; {gain}{unclear}",
        f"5. {own}; {'; '.join(within)}{unclear_within}",
    ]
