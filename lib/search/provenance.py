"""What the points of an index are, and the file that says it."""

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lib import checks, geometry
from lib.errors import InputError

FORMAT = "4"
ABOUT = "about.json"


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


def write(folder: Path, kind: str, provenance: Provenance, centre: Tensor, next_id: int) -> None:
    """Write into ``folder`` what the points of an index are, the ``centre: (d,)`` of its form and its next free id."""
    about = {"format": FORMAT, "kind": kind, "next_id": next_id, "centre": centre.tolist(), **asdict(provenance)}
    (folder / ABOUT).write_text(json.dumps(about, sort_keys=True) + "\n", encoding="utf-8")


def read(folder: Path, kind: str) -> tuple[Provenance, Tensor, int]:
    """What :func:`write` has written: provenance, centre and next id.

    Raises InputError where the file is missing, of another kind or format, or says what cannot be.
    """
    about = _contents(folder / ABOUT)
    stored, version = about.pop("kind", "nameless"), about.pop("format", "unknown")
    if (stored, version) != (kind, FORMAT):
        raise InputError(f"{folder} holds an index {stored!r} of format {version}, not {kind!r} of format {FORMAT}")
    try:
        centre = torch.tensor(about.pop("centre", []), dtype=torch.float64)
        next_id = about.pop("next_id", None)
        checks.whole("next_id", next_id, least=0, most=2**62)
        provenance = _provenance(about)
        if centre.shape != (provenance.dim,) or not centre.isfinite().all():
            raise InputError(f"the centre has the shape {tuple(centre.shape)}, or is not finite")
        provenance.geometry  # noqa: B018  a space that there is
    except (TypeError, ValueError) as error:
        raise InputError(f"{folder / ABOUT} is no part of an index: {error}. Build the index again") from error
    return provenance, centre, next_id


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


def _contents(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise InputError(f"{file.parent} is not an index: {file.name} is missing; build it again") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"{file} is damaged or no index ({error}); build it again") from error
