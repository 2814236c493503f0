"""Does curved space help? Every head that has a flat twin, loss by loss, from the committed tests of real images."""

from dataclasses import dataclass

import pandas as pd

from lib.pipeline import findings
from lib.pipeline.findings import Place


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
    """The tests of one comparison on all real datasets, without heads that rest at the rim."""
    if (rows := findings.read(twins.place)).empty:
        return rows
    rows = rows.query(twins.rows)
    return findings.inside(rows) if twins.place == findings.MARGINS else rows


def table() -> pd.DataFrame:
    """A row per comparison: over datasets, heads and list lengths, in how many the ball is better, worse, even, untold.

    Even: not clear, on a set that could have shown a difference; untold: on one that could not.
    """
    lines = []
    for twins in TWINS:
        if len(rows := tests(twins)):
            numbers = findings.outcomes(rows)
            clear = {word: _where(rows, word) for word in ("better", "worse")}
            counted = {word: f"{n}{clear.get(word, '')}" for word, n in numbers.items()}
            lines.append({"loss": twins.loss, "compared": twins.compared, "tests": len(rows)} | counted)
    return pd.DataFrame(lines)


def _where(rows: pd.DataFrame, word: str) -> str:
    """On which datasets it is better, or worse: `` (CUB-200-2011, HAM10000)``."""
    titles = [title for title, part in rows.groupby("title", sort=False) if findings.outcomes(part)[word]]
    return f" ({', '.join(titles)})" if titles else ""


def total() -> pd.Series:
    """All comparisons counted: better, worse, even, untold."""
    return findings.outcomes(pd.concat([tests(twins) for twins in TWINS], ignore_index=True))
