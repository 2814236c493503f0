"""BreakHis (Spanhol et al. 2016): 7,909 images of breast tumours, eight subtypes, four magnifications."""

import re
from collections import Counter
from pathlib import Path

import pandas as pd

from lib.datasets.catalogue import DATASETS, missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import ImageTable
from lib.errors import InputError

SUBTYPES = {
    "B_A": "adenosis",
    "B_F": "fibroadenoma",
    "B_PT": "phyllodes tumor",
    "B_TA": "tubular adenoma",
    "M_DC": "ductal carcinoma",
    "M_LC": "lobular carcinoma",
    "M_MC": "mucinous carcinoma",
    "M_PC": "papillary carcinoma",
}
TUMOURS = {"B": "benign", "M": "malignant"}
MAGNIFICATIONS = DATASETS["breakhis"].magnifications

# SOB_B_A-14-22549AB-100-027, in mirrors SOB_B_A-14-29960CD-200-npz000
NAME = re.compile(
    rf"(?P<procedure>[A-Z]+)_(?P<subtype>{'|'.join(SUBTYPES)})-(?P<year>\d\d)-(?P<number>\d+)(?P<blocks>[A-Z]*)"
    r"-(?P<magnification>40|100|200|400)-(?P<sequence>\w+)"
)


def load(root: Path, magnification: str | None = None) -> ImageTable:
    """Return the table of the images anywhere below `root`, at one magnification (such as "200X") or at all.

    Everything is read from the file names. The label is the subtype. Columns besides the usual: tumour (benign,
    malignant), procedure, slide (14-22549AB), year, magnification, sequence.

    The group is the patient: year and number without the block letters. The published 82 "patients" are slide
    ids, and 22549AB, 22549CD and 22549G count as three of them; here they are one person, so that blocks of one
    operation never lie on both sides of a split. A number can also carry two labels: 14-29960 has adenosis and
    fibroadenoma, and 14-13412 is filed as ductal and as lobular carcinoma.

    Raises InputError for an unknown magnification, MissingDataset if there are no such images.
    """
    if magnification not in (None, *MAGNIFICATIONS):
        raise InputError(
            f"magnification {magnification!r} is not in BreakHis. Use {', '.join(MAGNIFICATIONS)}, "
            "or None for all four."
        )
    name = f"bh{magnification.lower()}" if magnification else "breakhis"
    rows, skipped = [], []
    for path in filter(is_image, visible_files(root)):
        parsed = NAME.fullmatch(path.stem)
        if parsed is None:
            skipped.append((str(path), "not a BreakHis name like SOB_B_A-14-22549AB-100-027.png"))
            continue
        patient = f"{parsed['year']}-{parsed['number']}"
        rows.append(
            {
                "image_id": path.stem,
                "path": str(path),
                "label": SUBTYPES[parsed["subtype"]],
                "group": patient,
                "tumour": TUMOURS[parsed["subtype"][0]],
                "procedure": parsed["procedure"],
                "slide": patient + parsed["blocks"],
                "year": 2000 + int(parsed["year"]),
                "magnification": f"{parsed['magnification']}X",
                "sequence": parsed["sequence"],
            }
        )
    chosen = [row for row in rows if magnification in (None, row["magnification"])]
    if not chosen:
        there = Counter(row["magnification"] for row in rows)
        found = ", ".join(f"{n:,} at {m}" for m, n in there.items()) or "none at any magnification"
        wanted = f"at {magnification} " if magnification else ""
        raise missing(name, root, f"holds no BreakHis images {wanted}(found: {found})")
    return ImageTable(name, root, pd.DataFrame(chosen), "patient", tuple(skipped))
