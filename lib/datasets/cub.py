"""CUB-200-2011 (Wah et al. 2011): 11,788 photos of 200 species of birds."""

import re
from pathlib import Path

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import ImageTable

SPECIES = re.compile(r"(?P<number>\d{3})\.(?P<name>.+)")  # 001.Black_footed_Albatross
TRAINING = 100


def load(root: Path) -> ImageTable:
    """Return the table of the photos in ``images/<species>/`` anywhere below `root`.

    The label is the species (Black_footed_Albatross); every image is a group of its own. Column besides the usual:
    split, the standard one of metric learning: species 1 to 100 train, 101 to 200 test, so that no species is on both
    sides. (The file train_test_split.txt is for classification: it has every species on both sides.) Of copies whose
    folders have lost their numbers, the first half of the species in alphabetical order trains, the larger half if
    their number is odd.

    What is not in a folder of ``images``, such as the segmentations, is listed in ``skipped``.
    Raises MissingDataset if there are no such photos.
    """
    rows, skipped = [], []
    for path in filter(is_image, visible_files(root)):
        if len(path.parts) < 3 or path.parts[-3] != "images":
            skipped.append((str(path), "not in images/<species>/"))
            continue
        image_id = f"{path.parent.name}/{path.stem}"
        rows.append({"image_id": image_id, "path": str(path), "folder": path.parent.name, "group": image_id})
    if not rows:
        raise missing("cub", root, f"holds no photos in images/<species>/ ({len(skipped)} other images)")
    table = pd.DataFrame(rows)
    numbered = {folder: SPECIES.fullmatch(folder) for folder in sorted(table["folder"].unique())}
    if all(numbered.values()):
        training = {folder for folder, species in numbered.items() if int(species["number"]) <= TRAINING}
    else:
        training = set(list(numbered)[: (len(numbered) + 1) // 2])
    table["label"] = [species["name"] if (species := numbered[folder]) else folder for folder in table["folder"]]
    table["split"] = ["train" if folder in training else "test" for folder in table["folder"]]
    return ImageTable("cub", root, table.drop(columns="folder"), "image", tuple(skipped))
