"""Networks are counted as by hand; the authors' code against a copy of it and against both published numbers."""

import pytest
from torch import nn

from lib.heads.attention import DaRF
from lib.papers.acir import cost, published
from lib.papers.acir.cost import count


def test_multiplications_are_counted_once_with_their_additions():
    found = count(lambda: nn.Linear(30, 20), (5, 30))
    assert found.macs == pytest.approx(5 * 30 * 20 / 1e9) and found.parameters == pytest.approx((30 * 20 + 20) / 1e6)


def test_products_of_attention_are_counted():
    """Query, key and projection by hand, and both products of 16 x 16 places."""
    found = count(lambda: DaRF(6, 10, width=4, grid=4), (1, 6, 8, 8), (1, 10, 2, 2))
    by_hand = 16 * (10 * 4 + 6 * 4 + 6 * 10) + 16 * 16 * (4 + 6)
    assert found.macs == pytest.approx(by_hand / 1e9)


def test_a_resnet_50_has_its_known_size():
    found = count(lambda: cost.resnet(1000), (1, 3, 224, 224))
    assert found.parameters == pytest.approx(25.557032) and found.macs == pytest.approx(4.09, abs=0.01)


def test_the_whole_has_the_size_that_a_copy_of_the_code_has():
    """Counted elsewhere of the network rebuilt from the same repository: 155.88 M, and 13.94 M in its decoder."""
    by = cost.costs().set_index("network")
    assert by.loc[cost.CODE, "parameters"] == pytest.approx(155.88, abs=0.005)
    assert cost.parts()["decoder"].parameters == pytest.approx(13.94, abs=0.005)
    assert cost.parts()["KAN"].parameters == pytest.approx((3584 * 512 + 512 * 16) * 10 / 1e6)


def test_table_7_is_the_code_with_its_decoder_and_without_kan():
    """Both published numbers come out to a thousandth, of three ways to count."""
    macs, parameters = published.costs().set_index("method").loc["ACIR", ["macs", "parameters"]]
    rows = cost.costs().query("whose != 'ours'").set_index("network")
    off = {name: max(abs(r.parameters / parameters - 1), abs(r.macs / macs - 1)) for name, r in rows.iterrows()}
    nearest = min(off, key=off.get)
    assert nearest.endswith("with decoder, without KAN") and off[nearest] < 1e-3
    assert min(value for name, value in off.items() if name != nearest) > 0.1
