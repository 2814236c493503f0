"""What an archive is on the disk: one folder, which appears whole or not at all, and is checked when it is read."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib import files
from lib.archive import heads
from lib.archive.novelty import Features
from lib.archive.thumbnails import FILE, Thumbnails
from lib.datasets.table import read_csv
from lib.encoders import cache
from lib.errors import InputError
from lib.search.index import Index
from lib.search.local import Exact
from lib.search.quick import Quick
from lib.training.methods import Fitted

KIND, VERSION = "image archive", 2
ROWS, ABOUT, HEAD, INDEX = "rows.csv", "about.json", "head.safetensors", "index"
COLUMNS = ("image_id", "label", "patient", "path", "sha256")
KINDS: dict[str, type[Index]] = {"exact": Exact, "quick": Quick}


@dataclass
class Parts:
    """rows: as :class:`lib.archive.archive.Archive` has them. facts: what was said and measured when it was built.

    index: the codes. features: those of the encoder, in the order of the rows.
    """

    rows: pd.DataFrame
    index: Index
    fitted: Fitted
    features: Features
    thumbnails: Thumbnails
    facts: dict[str, Any]


def write(folder: Path, parts: Parts) -> None:
    """Write an archive into ``folder``, where an older one may be; InputError where anything else is."""
    with files.whole(folder, KIND) as draft:
        draft.mkdir()
        parts.rows.to_csv(draft / ROWS, lineterminator="\n")
        about = json.dumps({"version": VERSION} | parts.facts, indent=1, ensure_ascii=False)
        (draft / ABOUT).write_text(about + "\n", encoding="utf-8")
        heads.write(draft / HEAD, parts.fitted)
        parts.features.write(draft)
        parts.thumbnails.write(draft / FILE, parts.rows.index.tolist())
        parts.index.save(draft / INDEX)


def read(folder: Path) -> Parts:
    """What :func:`write` wrote; InputError if ``folder`` is no archive, is damaged, or of another version."""
    files.sweep(folder.parent)  # an archive that was being replaced when the process was killed
    if not (folder / ABOUT).is_file():
        raise InputError(f"{folder} is no archive: it has no {ABOUT}. Make one with make archive DATA=<folder>.")
    files.check(folder, KIND, own=[INDEX])
    facts = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    if (version := facts.pop("version", None)) != VERSION:
        raise InputError(f"{folder} is an archive of version {version}, not {VERSION}. Build it again.")
    rows = read_csv(folder / ROWS, ("id", *COLUMNS)).astype({"id": np.int64}).set_index("id")
    index = KINDS[facts["index"]].load(folder / INDEX)
    features = Features.read(folder, len(rows))
    return Parts(rows, index, heads.read(folder / HEAD), features, Thumbnails(folder / FILE), facts)


def fields(rows: pd.DataFrame) -> dict[str, list[str]]:
    """What an index knows of each image: its class and its patient."""
    return {"class": rows["label"].tolist(), "patient": rows["patient"].tolist()}


def state(folder: Path) -> str | None:
    """What tells this archive from a later one in the same folder; None where there is none."""
    marker = folder / files.MARKER
    return files.sha256(marker) if marker.is_file() else None


def forget(features: Path, image_ids: pd.Series) -> None:
    """Take what is not among ``image_ids`` out of a cache of ``features``, if there is one."""
    if features.is_file():
        stored = cache.load(features)
        if gone := set(stored.image_ids) - set(image_ids):
            stored.take(set(stored.image_ids) - gone).write(features)


def without(skipped: dict[str, str], rows: pd.DataFrame) -> dict[str, str]:
    """What was ``skipped`` at the build, file → why, without the files of these ``rows``.

    >>> rows = pd.DataFrame({"path": ["/data/fat/1.png"], "image_id": ["fat/1.png"]})
    >>> without({"fat/1.png": "damaged", "fat/2.png": "damaged"}, rows)
    {'fat/2.png': 'damaged'}
    """
    paths = [f"/{Path(path).as_posix()}" for path in [*rows["path"], *rows["image_id"]]]
    return {name: why for name, why in skipped.items() if not any(path.endswith(f"/{name}") for path in paths)}
