"""Episodes: K of each class as the support, queries outside it, all from the seed."""

import pytest
import torch

from lib.errors import InputError
from lib.training.episodes import Episodes

LABELS = torch.arange(40) % 3


@pytest.mark.parametrize("views", [1, 3])
def test_an_image_shows_one_of_its_views_and_never_asks_its_own_support(views):
    """An episode is its support, and then queries that are not in it."""
    n = len(LABELS)
    schedule = Episodes(epochs=6, batch_size=16, k=4, views=views)
    episodes = list(schedule.batches(LABELS.repeat(views), seed=0))
    assert len(episodes) == 6 * 3 == 6 * schedule.steps(n * views)
    for rows in episodes:
        assert len(set((rows % n).tolist())) == len(rows) == 28
        assert LABELS[rows[:12] % n].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert len({tuple((rows % n).tolist()) for rows in episodes}) == 18
    seen = torch.bincount(torch.cat(episodes) // n, minlength=views).double()
    assert seen.min() > 0.85 * seen.mean()


def test_the_seed_decides():
    def order(seed: int) -> list[int]:
        return torch.cat(list(Episodes(epochs=2, batch_size=8, k=2).batches(LABELS, seed))).tolist()

    first = order(3)
    torch.manual_seed(5)
    assert order(3) == first != order(4)


def test_a_class_without_a_query_beside_its_support_is_named():
    labels = torch.cat([torch.zeros(20, dtype=torch.long), torch.ones(5, dtype=torch.long)])
    with pytest.raises(InputError, match=r"class number 1 has 5 images .* K = 5 needs at least 6"):
        next(Episodes().batches(labels, seed=0))
