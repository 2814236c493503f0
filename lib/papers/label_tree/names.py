"""What the objectives of Section 4.3 are called, and what each of them is."""

from dataclasses import replace

from lib.geometry import PoincareBall
from lib.losses.label_tree import ALL, BY_ROLE, COSINE, DIVIDED, PRINTED, SHIFTED
from lib.training.label_tree import Objective

NONE, CHANCE, COMMONEST = "no head", "chance", "always the commonest class"
SIMCLR, SUPCON, OUTSIDE, HXE = "SimCLR", "SupCon", "Hierarchical Contrastive", "HXE"
SUPCON_COSINE = "SupCon, cosine logits"
AS_PRINTED, AS_TOLD, BY_COSINE, BY_DIVISION = "HWC as printed", "HWC", "HWC, cosine logits", "HWC, divided"
OF_FORM = {PRINTED: AS_PRINTED, COSINE: BY_COSINE, SHIFTED: AS_TOLD, DIVIDED: BY_DIVISION}
"""HWC in each form of :mod:`lib.losses.label_tree`."""
CONSTANT, CONSTANT_COSINE = "HWC, constant ω", "HWC, cosine, constant ω"
NO_TREE, NO_TREE_COSINE = "HWC, ω by role", "HWC, cosine, ω by role"
"""One ω for all pairs; one for positives and one for negatives, which is HWC without its tree."""
MARGIN, MARGIN_ALONE = "SupCon+LAM", "LAM alone"
BOTH, BOTH_PRINTED = "HWC+LAM", "HWC as printed + LAM"
FLAT, BALL = " (Euclidean)", " (Hyperbolic)"
CONTROLS = (CONSTANT, CONSTANT_COSINE, NO_TREE, NO_TREE_COSINE)
FLAT_ONLY = (SUPCON_COSINE, HXE, BY_COSINE, BY_DIVISION, *CONTROLS, MARGIN_ALONE, BOTH_PRINTED)
"""Without a hyperbolic row: HXE, cosines, other forms of HWC, controls, and LAM alone, which holds no point back from
the rim."""
CURVED_AGAINST_FLAT = tuple((name + BALL, name + FLAT) for name in (SUPCON, BOTH))
TOGETHER = (SUPCON, BOTH)
"""What is trained together with the encoder, on the sphere, and where there is time in the ball."""
ROWS = (SIMCLR, SUPCON, OUTSIDE, HXE, AS_PRINTED, AS_TOLD, MARGIN, BOTH)
MAIN = (*(name + FLAT for name in ROWS), BOTH + BALL)
"""The rows of the published tables."""
LONGER = (NONE, *(name + FLAT for name in (SUPCON, CONSTANT, AS_TOLD, BOTH)), BOTH + BALL)
"""What is trained longer as well."""
TIMES = 5
"""How many times as many epochs."""
BY_DEPTH = tuple(name for pair in CURVED_AGAINST_FLAT for name in pair)
"""What is trained on trees of every depth."""


def together(curved: bool) -> list[str]:
    """The rows that are trained together with the encoder.

    >>> together(False)
    ['SupCon (Euclidean)', 'HWC+LAM (Euclidean)']
    """
    return [name + space for space in (FLAT, BALL)[: 1 + curved] for name in TOGETHER]


def objectives(base: Objective, margin_weight: float, curvature: float) -> dict[str, Objective]:
    """Every objective in both geometries, in the order of the published tables.

    ``HWC`` is the shifted form, which does what the text says in both geometries up to the mean distance of negatives
    (LT-1). A margin between branches tells no leaves apart; so LAM is there with SupCon beside it, and alone, which is
    Equation 11 by itself.
    base: settings that all share; margin_weight: λ_LAM; curvature: c of the hyperbolic rows.
    """
    lam = {"margin_weight": margin_weight}
    kinds = {
        SIMCLR: replace(base, pairs="SimCLR"),
        SUPCON: replace(base, pairs="SupCon"),
        SUPCON_COSINE: replace(base, pairs="SupCon", cosine=True),
        OUTSIDE: replace(base, pairs="outside"),
        HXE: replace(base, pairs="HXE"),
        AS_PRINTED: replace(base, pairs="HWC", form=PRINTED),
        AS_TOLD: replace(base, pairs="HWC", form=SHIFTED),
        BY_COSINE: replace(base, pairs="HWC", form=COSINE),
        BY_DIVISION: replace(base, pairs="HWC", form=DIVIDED),
        CONSTANT: replace(base, pairs="HWC", form=PRINTED, constant=ALL),
        CONSTANT_COSINE: replace(base, pairs="HWC", form=COSINE, constant=ALL),
        NO_TREE: replace(base, pairs="HWC", form=SHIFTED, constant=BY_ROLE),
        NO_TREE_COSINE: replace(base, pairs="HWC", form=COSINE, constant=BY_ROLE),
        MARGIN: replace(base, pairs="SupCon", **lam),
        MARGIN_ALONE: replace(base, pairs=None, **lam),
        BOTH_PRINTED: replace(base, pairs="HWC", form=PRINTED, **lam),
        BOTH: replace(base, pairs="HWC", form=SHIFTED, **lam),
    }
    both = {}
    for name, kind in kinds.items():
        both[name + FLAT] = kind
        if name not in FLAT_ONLY:
            both[name + BALL] = replace(kind, geometry=PoincareBall(curvature))
    return both
