"""Tables of images, and files for them, in few words."""

from collections.abc import Iterable, Sequence
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


def coloured(table: ImageTable, colours: Sequence, size: tuple[int, int], spread: float = 20) -> ImageTable:
    """The table, whose images are files now: noise of this spread around the colour of each row."""
    random = np.random.default_rng(0)
    for row, colour in enumerate(colours):
        pixels = np.clip(np.array(colour) + random.normal(0, spread, (*size, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(table.path(row))
    return table


def pictures(root: Path, *names: str, side: int = 8) -> Path:
    """The folder, with a square picture of noise under each of these names."""
    random = np.random.default_rng(0)
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (side, side, 3), dtype=np.uint8)).save(root / name)
    return root
