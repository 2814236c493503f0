"""The lightweight encoder of the linear prototypes (Section II-B): 512, GELU, 128."""

import torch
from torch import Tensor, nn

from lib import checks
from lib.geometry import Euclidean, Geometry, PoincareBall
from lib.heads.mapper import defined, uniform


class PrototypeEncoder(nn.Module):
    """``e = W2 gelu(W1 x + b1) + b2`` (Section II-B), then ``exp0`` and the projection where the space is the ball.

    Args:
        dim_in: length of the frozen feature (published: 384 to 2048).
        dim_out: length of the embedding (published: 128).
        hidden: width of the hidden layer (published: 512); 0 for ``e = W x + b``, a head that is linear (LP-7).
        geometry: where the embedding lives; the paper's is flat.
        generator: source of the initial weights (uniform, as ``torch.nn.Linear``), so that no global state is touched.

    Raises:
        InputError: for a value without meaning.
    """

    pads = True
    """See :mod:`lib.training.stacks`."""

    def __init__(
        self,
        dim_in: int,
        dim_out: int = 128,
        *,
        hidden: int = 512,
        geometry: Geometry | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.geometry = Euclidean() if geometry is None else geometry
        self.divisor = dim_out**0.5 if isinstance(self.geometry, PoincareBall) else 1.0
        checks.values(dim_in=dim_in, dim_out=dim_out, hidden=hidden, geometry=self.geometry)
        two = (nn.Linear(dim_in, hidden), nn.GELU(), nn.Linear(hidden, dim_out)) if hidden else ()
        self.layers = nn.Sequential(*(two or (nn.Linear(dim_in, dim_out),)))
        uniform(self.layers, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Map features ``x: (..., dim_in)`` to embeddings ``(..., dim_out)``, points of the geometry.

        On the sphere they keep their length, which its distance does not see. For the ball they are divided by
        √dim_out first: untrained they are 2 to 3 long, which ``exp0`` sends to the rim, where only direction is left.
        """
        e = defined(self.layers(x))
        if not isinstance(self.geometry, PoincareBall):
            return e
        return self.geometry.project(self.geometry.exp0(e / self.divisor))
