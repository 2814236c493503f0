"""What the text says of Table 2, and what Table 2 says: errata AC-11 and AC-12."""

from collections.abc import Mapping

import pandas as pd

from lib.papers.acir import published
from lib.papers.acir.published import DATASETS
from lib.papers.acir.stated import FITS, NOT, row, same, texts

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
    """Every gain that the text states, mAP (maAP), and what it does not: columns erratum, says, own, verdict.

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
    return pd.DataFrame([*lines, length(published.ablation(), published.maps()), untold(published.alphas())])


def length(ablation: pd.DataFrame, maps: pd.DataFrame) -> dict[str, str]:
    """AC-12: the lengths at which ACIR has in Table 1 what Table 2 has for all parts together; the text gives none.

    ablation, maps: of :mod:`lib.papers.acir.published`.
    """
    whole = ablation[ablation[["l_wsc", "darf", "kan", "cgr"]].all(axis=1)].iloc[0]
    ours = maps[maps["method"] == "ACIR"]
    fits = [all(same(one[name], whole[name]) for name in MEASURES) for _, one in ours.iterrows()]
    where = [f"{DATASETS[one.dataset]}, {one.bits:.0f} bits" for one in ours[fits].itertuples()]
    told = _score([f"{whole[name]:.1f}" for name in MEASURES])
    own = f"all parts together, {told}, are in Table 1 at: {'; '.join(where) or 'no length'}"
    return row("AC-12", "no length of code is given", own, f"**{where[0]} alone**" if len(where) == 1 else NOT)


STEP = 0.25
"""Section 4.3 tries α in such steps, from 0 to 1."""


def untold(alphas: pd.DataFrame) -> dict[str, str]:
    """AC-12: which of the steps of α that were run have no value in the text; alphas: of ``published.alphas``."""
    run = [STEP * number for number in range(round(1 / STEP) + 1)]
    missing = [value for value in run if value not in alphas["alpha"].to_list()]
    own = f"values for {', '.join(f'{value:g}' for value in alphas['alpha'])}"
    verdict = f"**{', '.join(f'{value:g}' for value in missing)} not reported**" if missing else FITS
    return row("AC-12", f"α in steps of {STEP:g}", own, verdict)


def _score(values: list[str]) -> str:
    """mAP, and maAP in brackets if there is one.

    >>> _score(["3.1", "3.3"]), _score(["5"])
    ('3.1 (3.3)', '5')
    """
    return values[0] + "".join(f" ({value})" for value in values[1:])
