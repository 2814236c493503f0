"""Stored points: how far they move, at every radius, and that none reaches the rim."""

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.search.codecs import CODECS, decode, encode, largest_move

RADII = (0.0, 1e-7, 0.1, 0.9, 0.999, 0.99999)
every_codec = pytest.mark.parametrize("codec", CODECS)


def shell(radius: float, dim: int, c: float = 1.0, n: int = 2000) -> torch.Tensor:
    x = torch.randn(n, dim, generator=torch.Generator().manual_seed(dim), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True) * radius / c**0.5


@every_codec
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize(("dim", "c"), [(2, 1.0), (384, 1.0), (32, 0.1), (32, 4.0)])
def test_no_point_moves_further_than_the_bound_and_the_bound_is_not_idle(codec, radius, dim, c):
    x = shell(radius, dim, c)
    there = decode(encode(x, codec, c), codec, c).double()
    moved = PoincareBall(c).between(x, there).max().item()
    bound = largest_move(radius, dim, codec, c)
    assert moved <= bound
    if radius >= 0.1 and codec != "float32":
        assert bound <= 40 * moved  # worst case over directions against 2,000 of them


@every_codec
@pytest.mark.parametrize("radius", [0.99995, 0.999999])
@pytest.mark.parametrize("c", [0.1, 3.0])
def test_nothing_reaches_the_rim(codec, radius, c):
    there = decode(encode(shell(radius, 16, c), codec, c), codec, c)
    assert (c * there.double().square().sum(1) < 1).all()
    assert PoincareBall(c).pairwise(there[:50].double(), there[:50].double()).isfinite().all()


@every_codec
def test_sizes_and_types(codec):
    stored = encode(shell(0.5, 8), codec, 1.0)
    assert stored.nbytes == 2000 * 8 * (4 if codec == "float32" else 2)
    there = decode(stored, codec, 1.0)
    assert there.dtype == torch.float32 and there.shape == (2000, 8)
    np.testing.assert_array_equal(encode(there, codec, 1.0), stored)  # stored twice is stored once


@every_codec
@pytest.mark.parametrize("bad", [[1.0, 0.0], [0.8, 0.8], [float("nan"), 0.0]])
def test_points_outside_are_named(codec, bad):
    with pytest.raises(InputError, match="row 1 lies on the rim"):
        encode(torch.tensor([[0.0, 0.0], bad]), codec, 1.0)
    with pytest.raises(InputError, match="float16 tangent"):
        encode(torch.zeros(1, 2), "float8", 1.0)


@pytest.mark.parametrize("codec", ["float16 ball", "float16 tangent"])
def test_what_float16_cannot_hold_is_refused(codec):
    """A ball of radius 10⁶ has room for points that float16 has no number for."""
    far = torch.tensor([[2e5, 0.0]], dtype=torch.float64)
    with pytest.raises(InputError, match=r"as large as 2.*, but float16 ends at 65,504: .*\"float32\""):
        encode(far, codec, c=1e-12)
    assert torch.equal(decode(encode(far, "float32", c=1e-12), "float32", c=1e-12), far.float())


@pytest.mark.parametrize("values", [{"radius": 1.0}, {"radius": -0.1}, {"dim": 0}, {"c": 0.0}])
@every_codec
def test_a_bound_of_nothing_is_refused(codec, values):
    with pytest.raises(InputError, match=f"{next(iter(values))} = "):
        largest_move(**{"radius": 0.5, "dim": 8, "codec": codec, "c": 1.0} | values)
