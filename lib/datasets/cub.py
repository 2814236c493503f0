"""CUB-200-2011 (Wah et al. 2011): 11,788 photos of 200 species of birds, in 37 families."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import ImageTable

FAMILIES = {
    "Alaudidae": "Lark",
    "Alcedinidae": "Kingfisher",
    "Alcidae": "Auklet Guillemot Puffin",
    "Anatidae": "Gadwall Mallard Merganser",
    "Bombycillidae": "Waxwing",
    "Caprimulgidae": "Chuck_will_Widow Nighthawk Whip_poor_Will",
    "Cardinalidae": "Bunting Cardinal Blue_Grosbeak Rose_breasted_Grosbeak Tanager",
    "Certhiidae": "Creeper",
    "Corvidae": "Crow Jay Nutcracker Raven",
    "Cuculidae": "Ani Cuckoo Geococcyx",
    "Diomedeidae": "Albatross",
    "Fregatidae": "Frigatebird",
    "Fringillidae": "Finch Goldfinch Evening_Grosbeak Pine_Grosbeak",
    "Gaviidae": "Loon",
    "Hirundinidae": "Swallow",
    "Icteridae": "Blackbird Bobolink Cowbird Grackle Meadowlark Oriole",
    "Icteriidae": "Chat",
    "Laniidae": "Shrike",
    "Laridae": "Gull Kittiwake Tern",
    "Mimidae": "Gray_Catbird Mockingbird Thrasher",
    "Motacillidae": "Pipit",
    "Parulidae": "Ovenbird Redstart Warbler Waterthrush Yellowthroat",
    "Passerellidae": "Junco Sparrow Towhee",
    "Passeridae": "House_Sparrow",
    "Pelecanidae": "Pelican",
    "Phalacrocoracidae": "Cormorant",
    "Picidae": "Flicker Woodpecker",
    "Podicipedidae": "Grebe",
    "Procellariidae": "Fulmar",
    "Ptilonorhynchidae": "Spotted_Catbird",
    "Sittidae": "Nuthatch",
    "Stercorariidae": "Jaeger",
    "Sturnidae": "Starling",
    "Trochilidae": "Hummingbird Violetear",
    "Troglodytidae": "Wren",
    "Tyrannidae": "Flycatcher Kingbird Pewee Sayornis",
    "Vireonidae": "Vireo",
}
"""Family → species, or last words of species, in the dataset's spelling; the dataset itself names no families."""

FAMILY = {name: family for family, names in FAMILIES.items() for name in names.split()}
SPECIES = re.compile(rf"(?:(?P<number>\d{{3}})\.)?(?P<name>(?:\w+_)?(?:{'|'.join(FAMILY)}))")
"""The folder of a species: 001.Black_footed_Albatross; in copies that lost their numbers, Black_footed_Albatross."""

TRAINING = 100
"""The last species of the standard training half of metric learning."""


def load(root: Path) -> ImageTable:
    """Return the table of the photos in ``images/<species>/`` anywhere below `root`.

    The label is the species (Black_footed_Albatross); every image is a group of its own, as nobody says which photos
    show one bird. Columns besides the usual: family, the taxonomic family of the species (:data:`FAMILIES`), and split,
    the standard one of metric learning: species 1 to 100 train, 101 to 200 test, so that no species is on both sides.
    (The file train_test_split.txt is for classification: it has every species on both sides.) Of copies whose folders
    have lost their numbers, the first half of the species in alphabetical order trains, the larger half if their number
    is odd.

    What is not in a species' folder of ``images``, such as the segmentations, is listed in ``skipped``.
    Raises MissingDataset if there are no such photos.
    """
    rows, skipped = [], []
    for path in filter(is_image, visible_files(root)):
        species = SPECIES.fullmatch(path.parent.name)
        if species is None or path.parts[-3:-2] != ("images",):
            skipped.append((str(path), "not in images/<species>/"))
            continue
        image_id, label = f"{path.parent.name}/{path.stem}", species["name"]
        known = {"image_id": image_id, "path": str(path), "label": label, "group": image_id}
        rows.append(known | {"family": family(label), "number": species["number"]})
    if not rows:
        raise missing("cub", root, f"holds no photos in images/<species>/ ({len(skipped)} other images)")
    table = pd.DataFrame(rows)
    names = sorted(set(table["label"]))
    numbers = table.set_index("label")["number"].to_dict()
    if all(numbers.values()):
        training = {name for name in names if int(numbers[name]) <= TRAINING}
    else:
        training = set(names[: (len(names) + 1) // 2])
    table["split"] = np.where(table["label"].isin(training), "train", "test")
    return ImageTable("cub", root, table.drop(columns="number"), "image", tuple(skipped))


def family(species: str) -> str:
    """Return the family of a species of the dataset.

    >>> family("White_crowned_Sparrow"), family("House_Sparrow")
    ('Passerellidae', 'Passeridae')
    """
    return FAMILY.get(species) or FAMILY[species.rpartition("_")[2]]
