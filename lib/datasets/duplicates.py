"""Which images are the same picture: identical to the pixel, or nearly so (another compression, a small shift)."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import imagehash
import numpy as np
import pandas as pd

from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.progress import track

HASH_SIZE = 16
NEAR = 40
"""Largest Hamming distance of two perceptual hashes of 256 bits for "near". Unrelated pictures differ in about 128; a
tile saved as JPEG of quality 50 in up to 8, at half its size in up to 4. In HAM10000 19 of 20 pairs up to here are of
one lesion, and of those from 41 to 60 bits only one in five."""
STRUCTURE = 64
"""A hash has about half of its 256 bits set, those of the frequencies above the median; a blank image next to none."""
COLUMNS = ["first", "second", "kind", "distance", "same_class", "same_group"]


def find(table: ImageTable) -> pd.DataFrame:
    """Return every pair of images that show the same picture.

    Columns first, second (image ids, in the order of the table), kind ("identical": the same pixels; "near": another
    file of what looks like the same picture), distance (bits of 256 in which the perceptual hashes differ),
    same_class, same_group. An image without any structure (blank background) has no near twin: all such look alike.
    Raises BrokenImage for a file that cannot be read.
    """
    files = [table.path(row) for row in range(len(table))]
    with ThreadPoolExecutor() as pool:
        hashed = pool.map(_hashes, files)
        hashes = list(track(hashed, total=len(files), what=f"{table.name}, duplicates", unit="images"))
    pixels = np.array([digest for digest, _ in hashes])
    bits = np.array([bits for _, bits in hashes])
    lines = []
    structured = np.bitwise_count(bits).sum(axis=1) >= STRUCTURE
    for row in range(len(files) - 1):
        differing = np.bitwise_count(bits[row + 1 :] ^ bits[row]).sum(axis=1)
        identical = pixels[row + 1 :] == pixels[row]
        alike = (differing <= NEAR) & structured[row] & structured[row + 1 :]
        for other in np.flatnonzero(identical | alike):
            kind = "identical" if identical[other] else "near"
            lines.append((row, row + 1 + other, kind, int(differing[other])))
    first, second = (np.array([line[i] for line in lines], dtype=int) for i in (0, 1))
    ids = table.rows["image_id"].to_numpy()
    return pd.DataFrame(
        {
            "first": ids[first],
            "second": ids[second],
            "kind": [line[2] for line in lines],
            "distance": [line[3] for line in lines],
            "same_class": table.labels[first] == table.labels[second],
            "same_group": table.groups[first] == table.groups[second],
        },
        columns=COLUMNS,
    )


def summary(pairs: pd.DataFrame, table: ImageTable, folds_of: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Count the twins: one row per kind, with pairs within and across classes and groups, and what folds do with them.

    pairs: of :func:`find`; folds_of: per fold rule, (n,) the test fold of each image. The columns ``<rule>: queries
    with a twin in the gallery`` count images whose twin lies in another fold, so that it can be found.
    """
    row_of = pd.Series(range(len(table)), index=table.rows["image_id"])
    lines = []
    for kind in ("identical", "near"):
        part = pairs[pairs["kind"] == kind]
        line = {
            "kind": kind,
            "pairs": len(part),
            "images": len(set(part["first"]) | set(part["second"])),
            "across classes": int((~part["same_class"].astype(bool)).sum()),
            "across groups": int((~part["same_group"].astype(bool)).sum()),
        }
        for rule, fold_of in folds_of.items():
            ends = fold_of[row_of[part["first"]]], fold_of[row_of[part["second"]]]
            split = part[ends[0] != ends[1]]
            line[f"{rule}: queries with a twin in the gallery"] = len(set(split["first"]) | set(split["second"]))
        lines.append(line)
    return pd.DataFrame(lines)


def _hashes(file: Path) -> tuple[str, np.ndarray]:
    """SHA-256 of the size and the pixels, and the perceptual hash as bytes."""
    image = read_image(file)
    digest = hashlib.sha256(f"{image.size}".encode() + image.tobytes()).hexdigest()
    return digest, np.packbits(imagehash.phash(image, hash_size=HASH_SIZE).hash)
