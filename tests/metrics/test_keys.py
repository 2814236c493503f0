"""Rank keys: equal points have equal keys, and an item with the query's id has none."""

import torch

from lib.geometry import Euclidean, PoincareBall
from lib.metrics.keys import rank_keys


def test_duplicates_tie_in_every_memory_layout():
    """A transposed gallery is summed in another order, where the last bit can depend on the column."""
    gallery = torch.randn(50, 2, generator=torch.Generator().manual_seed(10)).mul(0.2).repeat(2, 40) / 40**0.5
    transposed = gallery.T.contiguous().T
    keys = rank_keys(transposed[:9], transposed, PoincareBall(c=1.0))(slice(None), slice(None))
    torch.testing.assert_close(keys[:, :50], keys[:, 50:], rtol=0, atol=0)
    torch.testing.assert_close(keys, PoincareBall(c=1.0).rank_key(gallery[:9], gallery), rtol=0, atol=0)


def test_rank_keys_are_inf_where_ids_are_equal():
    points = torch.tensor([[0.0], [1.0], [2.0]])
    key = rank_keys(points, points, Euclidean(), ["x", "y", "z"], ["z", "x", "y"])
    assert key(slice(1, 3), slice(0, 3)).isinf().tolist() == [[False, False, True], [True, False, False]]
