"""What the points of an index are, and the file that keeps them together."""

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lib import checks, geometry
from lib.errors import InputError

FORMAT = "3"
POINTS = "points.safetensors"


@dataclass(frozen=True)
class Provenance:
    """What the points of an index are: who computed them, and in which space.

    ``encoder``: a name, with the weights' version; ``space``: "euclidean", "sphere" or "poincare"; ``c``: its
    curvature is −c (0 but for the ball); ``dim``: numbers of a point; ``size``: number of points; ``recall``: the share
    of its own neighbours that the index found when it was built (:mod:`lib.search.recall`), 0 to 1.
    """

    encoder: str
    space: str
    c: float
    dim: int
    size: int = 0
    recall: float = 0.0

    @property
    def geometry(self) -> geometry.Geometry:
        """The space itself."""
        return geometry.by_name(self.space, self.c)

    def check(self, **expected: object) -> None:
        """Raise InputError for a field that has another value than ``expected``, or that there is not."""
        known = [field.name for field in fields(self)]
        for name, value in expected.items():
            if name not in known:
                raise InputError(f"an index has no {name} that could be {value!r}; it has {', '.join(known)}")
            if (ours := getattr(self, name)) != value:
                raise InputError(
                    f"this index has {name} {ours}, but {value} is expected: distances between the two would mean "
                    "nothing. Build an index of the same embeddings, or embed the query as the index was."
                )


def write(folder: Path, kind: str, provenance: Provenance, points: Tensor, centre: Tensor) -> None:
    """Write ``points: (m, d)``, their ``centre: (d,)`` and what they are into ``folder``."""
    about = {"format": FORMAT, "kind": kind, **asdict(provenance)}
    tensors = {"points": points, "centre": centre}
    save_file(tensors, folder / POINTS, {"about": json.dumps(about, sort_keys=True)})


def read(folder: Path, kind: str) -> tuple[Provenance, Tensor, Tensor]:
    """What :func:`write` has written: provenance, points and centre.

    Raises InputError where the file is missing, of another kind or format, or says what cannot be.
    """
    about, points, centre = _contents(folder / POINTS)
    stored, version = about.pop("kind", "nameless"), about.pop("format", "unknown")
    if (stored, version) != (kind, FORMAT):
        raise InputError(f"{folder} holds a {stored} index of format {version}, not {kind} of format {FORMAT}")
    try:
        provenance = _provenance(about)
        if points.ndim != 2 or centre.shape != points.shape[1:] or not points.isfinite().all():
            raise InputError(f"points {tuple(points.shape)} about {tuple(centre.shape)}, or not finite")
        provenance.check(dim=points.shape[1], size=len(points))
        provenance.geometry  # noqa: B018  a space that there is
    except InputError as error:
        raise InputError(f"{folder / POINTS} is no part of an index: {error}. Build the index again") from error
    return provenance, points, centre


def holds_index(folder: Path) -> bool:
    """Whether ``folder`` holds the files of an index of any format, and nothing else."""
    try:
        only = {path.name for path in folder.iterdir()} <= {POINTS, "vectors.faiss"}
        return only and "kind" in _contents(folder / POINTS)[0]
    except InputError:
        return False


def _provenance(about: dict[str, Any]) -> Provenance:
    if wrong := about.keys() ^ {field.name for field in fields(Provenance)}:
        raise InputError(f"{', '.join(sorted(wrong))} is missing, or nothing that an index has")
    for name, kind, wanted in (
        ("encoder", str, "text"),
        ("space", str, "text"),
        ("c", float, "a number, 0 or more"),
        ("dim", int, "a whole number"),
        ("size", int, "a whole number"),
    ):
        value = about[name]
        if type(value) is not kind or (kind is float and not 0 <= value < math.inf):
            raise InputError(f"{name} is {value!r} and not {wanted}")
    checks.share("recall", about["recall"])
    return Provenance(**about)


def _contents(file: Path) -> tuple[dict[str, Any], Tensor, Tensor]:
    try:
        with safe_open(file, framework="pt") as opened:
            about = dict(json.loads((opened.metadata() or {})["about"]))
            return about, opened.get_tensor("points"), opened.get_tensor("centre")
    except FileNotFoundError:
        raise InputError(f"{file.parent} is not an index: {file.name} is missing; build it again") from None
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file} is damaged or no index ({error}); build it again") from error
