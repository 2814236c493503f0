"""The Hyperbolic Mapper of Hyper-DINO (section 2.2): a small network into the tangent space, then onto the ball."""

import math

import torch
from torch import Tensor, nn

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry, PoincareBall


class HyperbolicMapper(nn.Module):
    """``e = W2 relu(W1 x + b1) + b2``, then ``h = project(exp0(e))`` (section 2.2).

    Args:
        dim_in: length of the input feature.
        dim_out: length of the embedding (the paper: 32, or ``dim_in``).
        hidden: width of the hidden layer (published: 256).
        geometry: where the embedding lives; the paper's is ``PoincareBall(1.0)``. With ``Euclidean()`` the last
            step is the identity: the flat control.
        delta: the embedding is kept within ``(1 - delta)`` of the ball's radius. The paper gives no value (HD-7);
            1e-3 leaves distances up to 7.6 from the centre, far beyond what the loss asks for (HD-8).
        generator: source of the initial weights (uniform, as ``torch.nn.Linear``), so that no global state is touched.

    Raises:
        InputError: for a value without meaning.
    """

    pads = True
    """See :mod:`lib.training.stacks`."""

    def __init__(
        self,
        dim_in: int,
        dim_out: int = 32,
        *,
        hidden: int = 256,
        geometry: Geometry | None = None,
        delta: float = 1e-3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.geometry = PoincareBall(1.0) if geometry is None else geometry
        self.delta = delta
        checks.values(dim_in=dim_in, dim_out=dim_out, geometry=self.geometry, delta=delta)
        checks.whole("hidden", hidden)
        self.layers = nn.Sequential(nn.Linear(dim_in, hidden), nn.ReLU(), nn.Linear(hidden, dim_out))
        uniform(self.layers, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Map features ``x: (..., dim_in)`` to embeddings ``(..., dim_out)`` inside the ball."""
        return self.onto(self.geometry.exp0(defined(self.layers(x))))

    @torch.no_grad()
    def start(self, x: Tensor, norm: float) -> None:
        """Divide the last layer once, so that the images ``x: (n, dim_in)`` begin at the median ``norm`` (HD-17).

        As initialised, an input of many numbers, or an output as long as the input, makes so long a vector that
        ``exp0`` sends it to the rim, where the projection holds it and no gradient leads back.

        Raises:
            InputError: for a norm that is not inside the ball, and for images that are all mapped to the centre.
        """
        radius = self.geometry.c**-0.5 if isinstance(self.geometry, PoincareBall) and self.geometry.c else math.inf
        if not 0 < norm < radius:
            raise InputError(
                f"start_norm = {norm:g} is not inside the ball of radius {radius:g}: choose 0.1 to 0.3 of it"
            )
        wanted = self.geometry.log0(torch.tensor([[norm]], dtype=torch.float64)).norm().item()
        median = defined(self.layers(x)).norm(dim=-1).median().item()
        if not median > 0:
            raise InputError("the untrained mapper sends half of the images to the centre: look at its input")
        self.layers[-1].weight *= wanted / median
        self.layers[-1].bias *= wanted / median

    def onto(self, h: Tensor) -> Tensor:
        """``h: (..., dim_out)`` brought back to within ``(1 - delta)`` of the ball's radius, where it is outside."""
        if isinstance(self.geometry, PoincareBall):
            return self.geometry.project(h, margin=self.delta)
        return self.geometry.project(h)


def defined(e: Tensor) -> Tensor:
    """``e: (..., d)``, but NaN in a row whose squared length overflows or is NaN.

    The geometry has a place for such a row, on the rim or among the unit vectors, with a finite loss and no gradient: a
    head that has got there has diverged, and its training is to end in words.
    """
    return torch.where(e.detach().square().sum(-1, keepdim=True).isfinite(), e, torch.nan)


def uniform(layers: nn.Sequential, generator: torch.Generator | None) -> None:
    """Initial weights of the linear ``layers`` from ``generator``, uniform as ``torch.nn.Linear`` has them."""
    for layer in layers:
        if isinstance(layer, nn.Linear):
            bound = layer.in_features**-0.5
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
