"""What the text says of Table 3, and what Table 3 says: errata AC-10 and AC-20."""

from collections.abc import Mapping

import pandas as pd

from lib.datasets.radin_ct import SIZES
from lib.papers.acir.stated import NOT, row, same, texts

N_FOREIGN = 500
"""Foreign images in Table 3: it prints counts "of 500"."""
PER_CLASS = 500
"""Section 4.2: so many images of each class, from validation and test sets."""
SPLIT, LEARNT = 29903, 20932
"""Section 4.1: images of RadIN-CT, and how many of them train; what is left is for validation and test."""


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
    return pd.DataFrame([*lines, enough(SIZES)])


def enough(sizes: Mapping[str, int]) -> dict[str, str]:
    """AC-20: whether validation and test can hold :data:`PER_CLASS` images of every class, parted as all images are.

    sizes: class → images of it.
    """
    share = 1 - LEARNT / SPLIT
    few = sorted((n, name) for name, n in sizes.items() if share * n < PER_CLASS)
    least = f", {few[0][1]} about {share * few[0][0]:.0f} of {few[0][0]}" if few else ""
    own = f"{100 * share:.0f} % of the images: {len(few)} of {len(sizes)} classes have fewer there{least}"
    return row("AC-20", f"{PER_CLASS} images of each class from validation and test", own, not few)
