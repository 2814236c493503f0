"""What an archive is asked with, and what it answers."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

Query = str | Path | int | Image.Image | np.ndarray
"""An image file, an image, features (dim,), or an image of the archive by its number or, as text, its image_id."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What the archive says to one query.

    neighbours: a row for each answer, nearest first: id, distance, label, patient, image_id. votes: k → the class that
    most of the first k have, and their share of k. accuracy: k → the share of such votes that is right in this archive,
    each image asked without its own patient; empty where that cannot be measured, where only some classes may answer,
    and for a query unlike all. unlike: why the query is unlike anything here; None if it is not. Answers are given all
    the same. learnt: whether the head has learnt from the query, so that its answers are better than a new image's.
    """

    neighbours: pd.DataFrame
    votes: dict[int, tuple[str, float]]
    accuracy: dict[int, float]
    unlike: str | None
    learnt: bool


LEARNT = "The head has learnt this image and its class, so that its answers look better than a new image's."
"""What is said of answers that are not those of a new image."""
