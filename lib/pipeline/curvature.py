"""Does curved space help? Every head that has a flat twin, loss by loss, from the committed tests of real images."""

from dataclasses import dataclass

import pandas as pd

from lib.pipeline import findings
from lib.pipeline.findings import Place
from lib.results import denominators, paired


@dataclass(frozen=True)
class Twins:
    """A curved head and its flat twin: the loss, what is compared and where, the tests' table, which of its rows."""

    loss: str
    compared: str
    place: Place
    rows: str


OF_TREE = "question == 'is the ball better than the sphere?' and measure == '{}'"
TREE = ("label_tree", "results", "table_tests")
TWINS = (
    Twins("Hyper-DINO", "ball, flat (half margin), learnt archive", findings.CONTROL, findings.COMPARED["curved"].rows),
    Twins("Hyper-DINO", "the same, new archive", findings.GALLERY, findings.COMPARED["new_flat"].rows),
    Twins("Hyper-DINO", "ball, flat, margins 0.5 to 4", findings.MARGINS, "first.str.startswith('ball')"),
    Twins("Hyp-ViT", "Hyp, flat", ("hyp_vit", "retrieval", "table_tests"), "first == 'Hyp' and second == 'flat'"),
    Twins("Hyp-ViT", "Hyp, sphere", ("hyp_vit", "retrieval", "table_tests"), "first == 'Hyp' and second == 'Sph'"),
    Twins(
        "Linear prototypes",
        "Poincaré, squared Euclidean",
        ("linear_prototypes", "retrieval", "table_variant_tests"),
        "first.str.startswith('Poincaré')",
    ),
    *(
        Twins("Label tree", f"ball, sphere: {measure}", TREE, OF_TREE.format(measure))
        for measure in ("HF1", "PC-Order", "R@5", "Top-1")
    ),
)
"""Every comparison of a curved head with its flat twin that the sample tests."""


def tests(twins: Twins) -> pd.DataFrame:
    """The tests of one comparison on all real datasets, by min(k, R), without heads that are held at the rim."""
    rows = findings.read(twins.place)
    return rows if rows.empty else paired.counted(denominators.by_min(rows).query(twins.rows))


def outcomes(rows: pd.DataFrame) -> pd.Series:
    """How many comparisons came out better, worse, even and untold: what so many groups and tests cannot show.

    >>> test = {"difference": 2.0, "p_holm": 0.01, "p_floor": 0.002, "n_units": 10, "n_tests": 8}
    >>> outcomes(pd.DataFrame([test, test | {"p_holm": 0.2}, test | {"p_holm": 0.9, "p_floor": 0.01}])).to_dict()
    {'better': 1, 'worse': 0, 'even': 1, 'untold': 1}
    """
    better, worse, _ = paired.tally(rows)
    even = sum(paired.relation(test) == paired.NOT_CLEAR for test in rows.itertuples())
    return pd.Series({"better": better, "worse": worse, "even": even, "untold": len(rows) - better - worse - even})


def table() -> pd.DataFrame:
    """A row per comparison: over datasets, heads and list lengths, in how many the ball is better, worse, even, untold.

    Even: not clear, on a set that could have shown a difference; untold: on one that could not.
    """
    lines = []
    for twins in TWINS:
        if len(rows := tests(twins)):
            clear = {word: _where(rows, word) for word in ("better", "worse")}
            counted = {word: f"{n}{clear.get(word, '')}" for word, n in outcomes(rows).items()}
            lines.append({"loss": twins.loss, "compared": twins.compared, "tests": len(rows)} | counted)
    return pd.DataFrame(lines)


def _where(rows: pd.DataFrame, word: str) -> str:
    """On which datasets it is better, or worse: `` (CUB-200-2011, HAM10000)``."""
    titles = [title for title, part in rows.groupby("title", sort=False) if outcomes(part)[word]]
    return f" ({', '.join(titles)})" if titles else ""


def total() -> pd.Series:
    """All comparisons counted: better, worse, even, untold."""
    return outcomes(pd.concat([tests(twins) for twins in TWINS], ignore_index=True))
