"""What the text says of Table 2, and what Table 2 says: erratum AC-11."""

from collections.abc import Mapping

import pandas as pd

from lib.papers.acir.stated import row, same, texts

STEPS = {
    ("ac-32",): "PiT (hybrid over CNN)",
    ("ac-33",): "hybrid over ViT",
    ("ac-36", "ac-37"): "L_WSC (CNN)",
    ("ac-38", "ac-39"): "L_WSC (ViT)",
    ("ac-40", "ac-41"): "L_WSC (hybrid)",
    ("ac-42", "ac-43"): "DaRF",
    ("ac-44", "ac-45"): "KAN",
    ("ac-46", "ac-47"): "CGR",
    ("ac-81",): "PiT (hybrid over CNN)",
    ("ac-82",): "hybrid over ViT",
}
"""Claims, of mAP and where the text has it of maAP → the step of Table 2 that they are about. The last two are of the
discussion (Section 5), which calls the step consolidation."""
MEASURES = ("mAP", "maAP")


def of_table_2(gains: Mapping[str, Mapping[str, float]], said: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every gain that the text states, mAP (maAP), text beside table: columns erratum, says, own, verdict.

    gains: measure of :data:`MEASURES` → :func:`lib.papers.acir.ablations.tables.published_gains` of it; said: of
    :func:`lib.papers.acir.stated.texts`, read if not given.
    """
    said = texts() if said is None else said
    lines = []
    for claims, step in STEPS.items():
        stated = [float(said["value"][claim]) for claim in claims]
        table = [gains[measure][step] for measure, _ in zip(MEASURES, claims, strict=False)]
        says = f"{said['claim'][claims[0]]}: {_score([f'{value:g}' for value in stated])}"
        fits = all(same(one, other) for one, other in zip(stated, table, strict=True))
        lines.append(row("AC-11", says, _score([f"{value:.1f}" for value in table]), fits))
    return pd.DataFrame(lines)


def _score(values: list[str]) -> str:
    """mAP, and maAP in brackets if there is one.

    >>> _score(["3.1", "3.3"]), _score(["5"])
    ('3.1 (3.3)', '5')
    """
    return values[0] + "".join(f" ({value})" for value in values[1:])
