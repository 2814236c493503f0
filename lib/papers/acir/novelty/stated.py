"""What the text says of Table 3, and what Table 3 says: erratum AC-10."""

import pandas as pd

from lib.papers.acir.stated import NOT, row, same, texts

N_FOREIGN = 500
"""Foreign images in Table 3: it prints counts "of 500"."""


def of_table_3(theirs: pd.DataFrame, said: pd.DataFrame | None = None) -> pd.DataFrame:
    """Precision, recall and detection of ACIR, text beside table: columns erratum, says, own, verdict.

    theirs: of :func:`lib.papers.acir.published.novelty`; said: of :func:`lib.papers.acir.stated.texts`, read if not
    given.
    """
    value = (texts() if said is None else said)["value"]
    own = theirs.set_index(["method", "variant"]).loc[("ACIR", "full")]
    rate = 100 * own["detected"] / N_FOREIGN
    precision, recall = value["ac-56"], value["ac-57"]
    slip = "**a fraction, printed with %**" if same(100 * recall, own["recall"]) else NOT
    lines = [
        row("AC-10", f"precision {precision:.1f} %", f"{own['precision']:.1f}", same(precision, own["precision"])),
        row("AC-10", f"recall {recall:g} %", f"{own['recall']:.1f}", same(recall, own["recall"]) or slip),
        row(
            "AC-10",
            f"{value['ac-59']:.0f} of {N_FOREIGN} foreign images found, {value['ac-58']:.1f} %",
            f"{own['detected']:.0f}, {rate:.1f}",
            value["ac-59"] == own["detected"] and same(value["ac-58"], rate),
        ),
    ]
    return pd.DataFrame(lines)
