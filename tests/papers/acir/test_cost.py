"""Networks are counted as by hand; the authors' code against layers of torch, part by part, and as a whole."""

import pytest
import torch
from torch import nn
from torch.nn.functional import interpolate

from lib.heads.attention import DaRF
from lib.papers.acir import cost, published
from lib.papers.acir.cost import DEEP, SHALLOW, SIDE, count


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


def attended(q, k, v):
    return (q @ k.mT).softmax(-1) @ v


class Windows(nn.Module):
    """Eight heads of 64 numbers in windows of 7 × 7 pixels, and a bias for each offset."""

    def __init__(self, channels):
        super().__init__()
        self.mix, self.join = nn.Conv2d(channels, 3 * 512, 1, bias=False), nn.Conv2d(512, channels, 1)
        self.offsets = nn.Parameter(torch.zeros(13, 13))

    def forward(self, x):
        q, k, v = (part.reshape(-1, 49, 64) for part in self.mix(x).chunk(3, dim=1))
        return x + self.join(attended(q, k, v).reshape(1, 512, *x.shape[2:]))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [(2048, 512, 512), (512, 256, 256), (256, 128, 64)]
        self.convs = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, c, 3, padding=1)) for a, b, c in widths
        )
        self.last = nn.Conv2d(64, 3, 3, padding=1)

    def forward(self, x):
        for conv, factor in zip(self.convs, (2, 4, 4), strict=True):
            x = interpolate(conv(x), scale_factor=factor)
        return self.last(x)


@pytest.mark.parametrize(
    ("part", "make", "shapes"),
    [
        ("ConvMSA, shallow", lambda: Windows(512), ((1, SHALLOW, 4 * SIDE, 4 * SIDE),)),
        ("ConvMSA, deep", lambda: Windows(2048), ((1, DEEP, SIDE, SIDE),)),
        ("classifier", lambda: nn.Linear(512, 16), ((1, 512),)),
        ("decoder", Decoder, ((1, DEEP, SIDE, SIDE),)),
    ],
)
def test_a_part_is_counted_as_layers_of_torch_are(part, make, shapes):
    expected, found = count(make, *shapes), cost.parts()[part]
    assert found.parameters == pytest.approx(expected.parameters, rel=1e-12)
    assert found.macs == pytest.approx(expected.macs, rel=1e-12)


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
