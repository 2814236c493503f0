"""Is an image unlike anything in the archive? The encoder's features decide, whatever a head has learnt.

A head draws every image, a bird as well, to one of the classes that it knows. So the features are kept beside the codes
of the head, at unit length and in half precision: two bytes a number.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from lib.archive import heads
from lib.errors import InputError
from lib.geometry import Sphere
from lib.search import nearest
from lib.search.refusal import Gate
from lib.training.methods import Fitted

FEATURES, PLAIN = "features.safetensors", "plain.safetensors"
WHAT = "by the encoder's features, its nearest image is at an angle of"
QUERIES, SEED, ROWS = 2000, 0, 8192
"""So many images ask at most, drawn with this seed; so many rows are compared at once."""
SPACE = Sphere()


@dataclass(frozen=True, eq=False)
class Features:
    """plain: makes directions of features (:func:`lib.archive.methods.plain`). directions: (n, d), half precision."""

    plain: Fitted
    directions: Tensor

    @classmethod
    def of(cls, x: np.ndarray, plain: Fitted) -> "Features":
        """Of features ``x: (n, dim)``."""
        return cls(plain, _directions(x, plain))

    def followed_by(self, x: np.ndarray) -> "Features":
        """With the features ``x: (m, dim)`` of further images behind them."""
        return replace(self, directions=torch.cat([self.directions, _directions(x, self.plain)]))

    def where(self, keep: np.ndarray) -> "Features":
        """Those of the images to ``keep: (n,)``."""
        return replace(self, directions=self.directions[torch.from_numpy(keep)])

    def gate(self, groups: np.ndarray) -> Gate | None:
        """The rule, from how far images are from the nearest of another patient, ``groups: (n,)``.

        None where fewer than two images have another patient's beside them.
        """
        asking = drawn(len(groups))
        asking = asking[others(groups)[asking] > 0]
        if len(asking) < 2:
            return None
        points = self.directions.float()
        return Gate.of(WHAT, nearest(points[asking], points, 1, SPACE, groups[asking], groups)[0][:, 0].numpy())

    def angle(self, query: np.ndarray | int, answers: np.ndarray) -> float | None:
        """From the query to the nearest image that ``answers: (n,)``; None where none does.

        query: features (dim,), or the row of an image that is here.
        """
        if not answers.any():
            return None
        direction = self.directions[query] if isinstance(query, int) else _directions(query[None], self.plain)[0]
        like = torch.cat([part.float() @ direction.float() for part in self.directions.split(ROWS)])
        best = like.masked_fill(torch.from_numpy(~answers), -torch.inf).argmax()
        return float(SPACE.between(direction[None].double(), self.directions[best][None].double()))

    def write(self, folder: Path) -> None:
        """Write two files into ``folder``."""
        heads.write(folder / PLAIN, self.plain)
        save_file({"directions": self.directions.contiguous()}, folder / FEATURES)

    @classmethod
    def read(cls, folder: Path, n: int) -> "Features":
        """What :meth:`write` wrote, of ``n`` images, mapped into memory; InputError where it is damaged."""
        file = folder / FEATURES
        try:
            directions = load_file(file)["directions"]
            if len(directions) != n:
                raise ValueError(f"{len(directions)} features of {n} images")
        except (OSError, SafetensorError, LookupError, ValueError) as error:
            raise InputError(f"{file} is damaged ({error}). Build the archive again.") from error
        return cls(heads.read(folder / PLAIN), directions)


def drawn(n: int) -> np.ndarray:
    """Which of ``n`` images ask when an archive is measured, at most :data:`QUERIES`."""
    return np.sort(np.random.default_rng(SEED).permutation(n)[:QUERIES])


def others(groups: np.ndarray) -> np.ndarray:
    """How many images of other groups each image has, (n,)."""
    _, code, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return len(groups) - counts[code]


def _directions(x: np.ndarray, plain: Fitted) -> Tensor:
    return SPACE.project(plain.embed(np.asarray(x, dtype=np.float32))).half()
