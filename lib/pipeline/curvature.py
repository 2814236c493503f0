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


FACTORS, RESULTS, HYP_VIT = ("beyond", "factors"), ("label_tree", "results"), ("hyp_vit", "retrieval", "table_tests")
FLAT, BALL = findings.FLAT, "first == 'ball' and "
IN_THE_BALL = "first.str.contains('(Hyperbolic)', regex=False) and second.str.contains('(Euclidean)', regex=False)"
TREES_TWINS = f"{IN_THE_BALL} and first.str.partition(' (')[0] == second.str.partition(' (')[0]"
TWINS = (
    Twins("Hyper-DINO", "flat: closed archive", findings.CONTROL, f"{findings.APART}{BALL}{FLAT}"),
    Twins("Hyper-DINO", "flat: by image", findings.CONTROL, f"rule == 'by image' and {BALL}{FLAT}"),
    Twins("Hyper-DINO", "flat: open archive", findings.GALLERY, f"rule == 'open' and {BALL}{FLAT}"),
    Twins(
        "Hyper-DINO", "flat: closed archive, half of the groups", findings.GALLERY, f"rule == 'closed' and {BALL}{FLAT}"
    ),
    Twins("Hyper-DINO", "flat: margins 0.5 to 4", findings.MARGINS, "first.str.startswith('ball, m0')"),
    Twins("Hyper-DINO", "flat: even push", (*FACTORS, "table_push_tests"), "second == 'flat head, even push'"),
    Twins("Hyper-DINO", "flat: relatives of the class", (*FACTORS, "table_tree_tests"), "second.str.contains('flat')"),
    Twins("Hyp-ViT", "flat", HYP_VIT, "first == 'Hyp' and second == 'flat'"),
    Twins("Hyp-ViT", "sphere", HYP_VIT, "first == 'Hyp' and second == 'Sph'"),
    Twins("Hyp-ViT", "sphere: end to end, few steps", HYP_VIT, "second.str.startswith('Sph, end')"),
    Twins("Hyp-ViT", "sphere: in notebook 90", (*FACTORS, "table_costs_tests"), "second == 'Hyp-ViT head, sphere'"),
    *(
        Twins("Label tree", f"sphere: {measure}{more}", (*RESULTS, table), f"{TREES_TWINS} and measure == '{measure}'")
        for table, more in (
            ("table_tests", ""),
            ("table_longer_tests", ", five times the steps"),
            ("table_other_tree_tests", ", another tree"),
        )
        for measure in ("HF1", "PC-Order", "R@5", "Top-1")
    ),
)
"""Every comparison of a curved head with the same head in flat space or on the sphere that the sample tests."""
LEFT_OUT = {
    ("hyper_dino", "retrieval"): "the heads of notebook 16 once more, with the longest input",
    ("linear_prototypes", "retrieval"): "its ball has a curvature and temperature of its own choice, and no flat twin",
}
"""Sections whose tests of curved heads are not counted, and why."""


def tests(twins: Twins) -> pd.DataFrame:
    """The tests of one comparison on all real datasets, by min(k, R), without heads that are held at the rim."""
    rows = findings.read(twins.place)
    return rows if rows.empty else paired.counted(denominators.by_min(rows).query(twins.rows))


def outcomes(rows: pd.DataFrame) -> pd.Series:
    """How many comparisons came out better, worse and not clear, and how many could not tell, with so few groups.

    >>> test = {"difference": 2.0, "p_holm": 0.01, "p_floor": 0.002, "n_units": 10, "n_tests": 8}
    >>> outcomes(pd.DataFrame([test, test | {"p_holm": 0.2}, test | {"p_holm": 0.9, "p_floor": 0.01}])).to_dict()
    {'better': 1, 'worse': 0, 'not clear': 1, 'could not tell': 1}
    """
    better, worse, _ = paired.tally(rows)
    even = sum(paired.relation(test) == paired.NOT_CLEAR for test in rows.itertuples())
    return pd.Series(
        {"better": better, "worse": worse, "not clear": even, "could not tell": len(rows) - better - worse - even}
    )


def table() -> pd.DataFrame:
    """A row per comparison: over datasets, heads and list lengths, in how many the ball is better or worse.

    Not clear: on a set that could have shown a difference; could not tell: on one that could not.
    """
    lines = []
    for twins in TWINS:
        if len(rows := tests(twins)):
            clear = {word: _where(rows, word) for word in ("better", "worse")}
            counted = {word: f"{n}{clear.get(word, '')}" for word, n in outcomes(rows).items()}
            lines.append({"loss": twins.loss, "ball compared with": twins.compared, "tests": len(rows)} | counted)
    return pd.DataFrame(lines)


def sentence() -> str:
    """How often the ball is better and worse, loss by loss, and where."""
    parts = []
    for loss in dict.fromkeys(twins.loss for twins in TWINS):
        rows = pd.concat([tests(twins) for twins in TWINS if twins.loss == loss], ignore_index=True)
        better, worse, of = paired.tally(rows)
        places = f"better in {better}{_where(rows, 'better')} and worse in {worse}{_where(rows, 'worse')} of {of}"
        parts.append(f"{loss}: {places}")
    return f"Tests of the ball against the same head in flat space or on the sphere: {'; '.join(parts)}."


def _where(rows: pd.DataFrame, word: str) -> str:
    """On which datasets it is better, or worse, and in how many tests: `` (CUB-200-2011 7, HAM10000 1)``."""
    counts = [f"{title} {n}" for title, part in rows.groupby("title", sort=False) if (n := outcomes(part)[word])]
    return f" ({', '.join(counts)})" if counts else ""
