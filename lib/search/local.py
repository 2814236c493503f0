"""A gallery in the memory and the files of this machine, all of whose points are compared."""

from torch import Tensor

from lib.search.exact import Prepared
from lib.search.index import Index, Kept


class Exact(Index):
    """All points, compared by one matrix product; the answers are in the order of float64, ties by id.

    Its structure is a :class:`lib.search.exact.Prepared`.
    """

    kind = "exact"

    def _recall(self, points: Tensor) -> float:
        return 1.0

    def _find(self, kept: Kept, query: Tensor, k: int, open_to: Tensor | None) -> Tensor:
        hidden = None if open_to is None else lambda rows, columns: ~open_to[columns]
        return kept.structure.find(query, k, hidden)

    def _empty(self, points: Tensor) -> Prepared:
        return Prepared.of(points[:0], self.form)

    def _grown(self, structure: Prepared, points: Tensor) -> Prepared:
        return structure.grown(points) if len(structure.points) else Prepared.of(points, self.form).led()

    def _shrunk(self, structure: Prepared, points: Tensor, keep: Tensor) -> Prepared:
        return structure.shrunk(points, keep)

    def _tensors(self, kept: Kept) -> dict[str, Tensor]:
        made = {name: getattr(kept.structure, name) for name in ("codes", "axes", "lead")}
        return {name: tensor for name, tensor in made.items() if tensor is not None}

    def _structure(self, tensors: dict[str, Tensor]) -> Prepared:
        points, codes, axes, lead = (tensors.get(name) for name in ("points", "codes", "axes", "lead"))
        size, dim = self.provenance.size, self.provenance.dim
        if codes is None or codes.shape != (dim + 3, size) or (lead is not None and lead.shape != (dim // 4 + 3, size)):
            raise ValueError("the codes do not fit the points")
        return Prepared(points, self.form, codes, axes, lead)
