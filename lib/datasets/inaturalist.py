"""iNaturalist 2018 (Van Horn et al. 2018): 437,513 training and 24,426 validation photos of 8,142 species."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.listing import OnMissing, listed, locate
from lib.datasets.table import ImageTable
from lib.errors import InputError

LISTS = {"train": "train2018.json", "validation": "val2018.json"}
CATEGORIES = "categories.json"
RANKS = ("kingdom", "phylum", "class", "order", "family", "genus")


def load(root: Path, on_missing: OnMissing = "skip") -> ImageTable:
    """Return the table of train2018.json and val2018.json (or one of them) with the photos below `root`.

    The label is the species; every image is a group of its own. Columns besides the usual: kingdom, phylum, class,
    order, family, genus, and part (train, validation: the published one, with every species on both sides).

    The lists as first released hide the names: a species is a number there, and its ranks are not given. The names were
    released afterwards as categories.json, which is read where it lies beside the lists.

    Photos and rows without a partner are listed in ``skipped``; on_missing="error" makes a row without its photo an
    InputError. Raises MissingDataset if the lists or all photos are missing, InputError for a list without the ranks.
    """
    files = {part: file for part, name in LISTS.items() if (file := locate(root, name))}
    if not files:
        raise missing("inaturalist", root, f"has neither {' nor '.join(LISTS.values())}")
    named = locate(root, CATEGORIES)
    parts = []
    for part, file in files.items():
        content = _read(file, ("images", "annotations", "categories"))
        species = _species(_read(named) if named else content["categories"], named or file)
        images, labels = (pd.DataFrame(content[what]) for what in ("images", "annotations"))
        try:
            rows = images[["id", "file_name"]].merge(
                labels[["image_id", "category_id"]], left_on="id", right_on="image_id", validate="one_to_one"
            )
        except (KeyError, pd.errors.MergeError) as error:
            raise InputError(f"{file}: images and annotations do not fit ({error}). Take the original file.") from error
        if lost := sorted(set(rows["category_id"]) - set(species.index)):
            raise InputError(f"{named or file}: there is no category {lost[0]}. Take the file of the same year.")
        parts.append(rows.join(species, on="category_id").assign(part=part))
    rows = pd.concat(parts, ignore_index=True).rename(columns={"name": "label", "file_name": "path"})
    image_ids = rows["path"].str.rsplit(".", n=1).str[0]
    columns = ["image_id", "path", "label", *RANKS, "part"]
    return listed("inaturalist", root, rows.assign(image_id=image_ids)[columns], on_missing)


def _species(categories: Any, file: Path) -> pd.DataFrame:
    """The name and the ranks of every category, by its id."""
    table = pd.DataFrame(categories)
    lacking = [column for column in ("id", "name", *RANKS) if column not in table]
    if lacking or (table[["name", *RANKS]].isna() | (table[["name", *RANKS]] == "")).any(axis=None):
        what = f"without {', '.join(lacking)}" if lacking else "with empty ranks"
        raise InputError(
            f"{file}: categories {what}. The names of the species were released as {CATEGORIES} (see the page of the "
            "2018 competition): put it beside the lists."
        )
    return table.set_index("id")[["name", *RANKS]].astype(str)


def _read(file: Path, needed: tuple[str, ...] = ()) -> Any:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read as JSON ({error}). Take the original file.") from error
    if lacking := [name for name in needed if name not in content]:
        raise InputError(f"{file}: has no {', '.join(lacking)}. Take the original file.")
    return content
