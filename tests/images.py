"""Tables of images, and files for them, in few words."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from lib.datasets.table import ImageTable


def listed(labels: Iterable[str], root: Path | str = ".", name="mine", kind="image", **columns) -> ImageTable:
    """The images 0.png, 1.png, ... of these labels; each is a group of its own, unless ``columns`` say otherwise."""
    rows = pd.DataFrame({"label": list(labels)})
    files = [f"{number}.png" for number in range(len(rows))]
    return ImageTable(name, root, rows.assign(**{"image_id": files, "path": files, "group": files} | columns), kind)


def painted(table: ImageTable, *sizes: tuple[int, int]) -> ImageTable:
    """The table, whose images are files of noise now: (height, width) in pixels, in turn."""
    random = np.random.default_rng(0)
    for row in range(len(table)):
        pixels = random.integers(0, 256, (*sizes[row % len(sizes)], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(table.path(row))
    return table
