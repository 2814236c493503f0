"""Texts that points carry, such as class and patient: kept beside them, and what answers are filtered by."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.errors import InputError, suggestion

Texts = Mapping[str, Sequence[str]]
"""Name of a field → one text per point, or the texts that a filter names."""


@dataclass(frozen=True)
class Field:
    """One text for each of m points: ``names``, each once, and ``codes: (m,)``, the place of a point's text there."""

    names: list[str]
    codes: Tensor

    @classmethod
    def none(cls) -> "Field":
        """Of no points."""
        return cls([], torch.empty(0, dtype=torch.int64))

    def texts(self) -> np.ndarray:
        """The texts again, (m,)."""
        return np.array(self.names, dtype=object)[self.codes.numpy()]

    def followed_by(self, texts: Sequence[str]) -> "Field":
        """With more points at the end."""
        names = list(dict.fromkeys([*self.names, *texts]))
        place = {name: code for code, name in enumerate(names)}
        return Field(names, torch.cat([self.codes, torch.tensor([place[text] for text in texts], dtype=torch.int64)]))

    def where(self, keep: Tensor) -> "Field":
        """Of the points to ``keep: (m,)`` alone; a text that nobody carries any more is forgotten."""
        used, codes = self.codes[keep].unique(return_inverse=True)
        return Field([self.names[code] for code in used.tolist()], codes)

    def among(self, texts: Sequence[str]) -> Tensor:
        """Which points carry one of the ``texts``, (m,)."""
        chosen = set(texts)
        return torch.tensor([name in chosen for name in self.names], dtype=torch.bool)[self.codes]


def checked(fields: Texts | None, n: int, known: Collection[str] | None = None) -> dict[str, list[str]]:
    """The ``fields`` of ``n`` points as lists; raises InputError for what is no text, and for names not ``known``."""
    fields = dict(fields or {})
    if known is not None and fields.keys() != set(known):
        raise InputError(f"the points come with {_listed(fields)}, but this index keeps {_listed(known)}; give these")
    for name, texts in fields.items():
        fields[name] = texts = texts if isinstance(texts, str) else list(texts)
        if not isinstance(name, str) or isinstance(texts, str) or len(texts) != n:
            raise InputError(f"the field {name!r} needs one text for each of the {n} points, in a list")
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(f"{name} of row {row} is {text!r} and not a text; write a word for what is unknown")
    return fields


def wanted(what: str, texts: Texts | None, known: Collection[str]) -> dict[str, list[str]]:
    """The filter ``what`` with lists of texts; a bare text is a list of one. Raises InputError for an unknown field."""
    for name in texts or {}:
        if name not in known:
            hint = suggestion(name, known) if len(known) else "it was built without fields"
            raise InputError(f"{what} names the field {name!r}, which this index does not keep: {hint}")
    return {name: [some] if isinstance(some, str) else [*some] for name, some in (texts or {}).items()}


def _listed(names: Collection[str]) -> str:
    return "the fields " + ", ".join(map(repr, names)) if len(names) else "no fields"
