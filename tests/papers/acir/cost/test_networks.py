import pandas as pd
import pytest
import torch
from torch import nn

from lib.errors import InputError
from lib.heads.attention import DaRF
from lib.papers.acir import published
from lib.papers.acir.cost import authors, networks, tables
from lib.papers.acir.cost.networks import Cost


def test_multiplications_are_counted_once_with_their_additions():
    found = networks.count(lambda: nn.Linear(30, 20), (5, 30))
    assert found.macs == pytest.approx(5 * 30 * 20 / 1e9) and found.parameters == pytest.approx((30 * 20 + 20) / 1e6)
    found = networks.count(lambda: nn.Conv2d(4, 8, 3, padding=1, bias=False), (1, 4, 10, 12))
    assert found.macs == pytest.approx(4 * 8 * 9 * 120 / 1e9) and found.parameters == pytest.approx(4 * 8 * 9 / 1e6)


def test_products_of_attention_are_counted():
    """Query, key and projection by hand, and both products of 16 x 16 places."""
    found = networks.count(lambda: DaRF(6, 10, width=4, grid=4), (1, 6, 8, 8), (1, 10, 2, 2))
    by_hand = 16 * (10 * 4 + 6 * 4 + 6 * 10) + 16 * 16 * (4 + 6)
    assert found.macs == pytest.approx(by_hand / 1e9)


def test_a_resnet_50_has_its_known_size():
    found = networks.count(lambda: networks.resnet(1000), (1, 3, 224, 224))
    assert found.parameters == pytest.approx(25.557032) and found.macs == pytest.approx(4.09, abs=0.01)


def test_parts_add_up_to_the_network():
    """Two layers of width 2048 with a hidden layer twice as wide are the network of this project, but for scales."""
    rest, layer = networks.parts(networks.DEEP, 2, 0)
    stem = networks.resnet(0)
    whole = networks.count(networks.published_like, (1, 3, 224, 224))
    summed = rest + layer * 2
    assert summed.macs == pytest.approx(whole.macs, rel=0.01)
    assert summed.parameters == pytest.approx(whole.parameters, rel=0.01)
    assert sum(value.numel() for value in stem.parameters()) / 1e6 < rest.parameters


def test_the_search_finds_what_it_is_given():
    rest, layer = networks.parts(1024, 4, 0)
    found = networks.search(rest + layer * 3, widths=[1024], ratios=[2, 4], layers=[2, 3], decoders=[0])
    best = found.iloc[0]
    assert (best["width"], best["ratio"], best["layers"], best["decoder"]) == (1024, 4, 3, 0)
    assert best["off"] == pytest.approx(0, abs=1e-9) and found["off"].is_monotonic_increasing and len(found) == 4


def test_networks_take_turns_and_a_first_turn_does_not_count(monkeypatch):
    seconds = iter([9.0, 9.0, 1.0, 4.0, 3.0, 2.0, 2.0, 6.0])
    monkeypatch.setattr(networks, "_seconds", lambda *_: next(seconds))
    found = networks.times({"a": (nn.Identity, 8), "b": (nn.Identity, 8)}, repeats=3)
    assert found.to_dict() == {"a": 2.0, "b": 4.0}
    with pytest.raises(InputError, match="repeats = 0"):
        networks.times({"a": (nn.Identity, 8)}, repeats=0)


def test_every_network_is_timed_at_its_own_size(monkeypatch):
    seen = []
    monkeypatch.setattr(networks, "_seconds", lambda network, image: seen.append(image.shape[-1]) or 1.0)
    networks.times({"a": (nn.Identity, 96), "b": (nn.Identity, 224)}, repeats=1)
    assert seen == [96, 224] * 2 and all(made[1] in (96, 224) for made in networks.networks().values())


def test_small_networks_code_an_image():
    images = torch.zeros(2, 3, 96, 96)
    plain, acir = (networks.small(96, 16, acir=one).eval()(images) for one in (False, True))
    for code in (plain, acir.code):
        assert code.shape == (2, 16) and code.abs().max() <= 1


def test_the_table_puts_published_lines_first_and_counts_csq_as_one():
    rows = [("ResNet-50, 1000 classes", 4.0, 25.0), ("ResNet-50, 16 bits (CSQ)", 4.0, 20.0)]
    rows.append(("ResNet-50, ACIR's network", 8.0, 100.0))
    cells = {"whose": "ours", "pixels": 224}
    ours = pd.DataFrame([{"network": n, "macs": m, "parameters": p} | cells for n, m, p in rows])
    lines = tables.layout(ours, published.costs()).split("\n")
    assert "| ACIR | published | – | 12.44 | 151.33 | 3.01 / 5.92 | 0.080 |" in lines[5]
    assert lines[-1].endswith("8.00 | 100.00 | 2.00 / 5.00 | – |")
    sizes = {"width": 64, "ratio": 2, "layers": 3, "decoder": 0, "macs": 12.0, "parameters": 150.0, "off": 3.5}
    with_code = pd.concat([ours, authors.costs()], ignore_index=True)
    said = tables.sentences(with_code, published.costs(), pd.DataFrame([sizes]))
    assert "has 25.00 M, with 16 bits in their place 20.00 M" in said[0] and "no decoder" in said[2]
    assert "0 of 1 sizes are within 3 %" in said[2]
    assert tables.target(published.costs()) == Cost(12.44, 151.33)
    assert "| ResNet-50, authors' code | authors' code | 224 |" in tables.layout(with_code, published.costs())
    assert "Nearest to both: ResNet-50, authors' code, with decoder, without KAN, off by 0.0" in said[4]


def test_what_an_image_keeps_is_counted_in_bytes():
    rows = tables.storage(lengths=(16, 128), dim=100).set_index("what")
    assert rows.loc["code of 16 bits"].tolist() == [2, 3] and rows.loc["code of 128 bits"].tolist() == [16, 6]
    assert rows.loc["feature of 100 numbers, float32"].tolist() == [400, 200]
    content = rows.loc["content: ACIR's four levels, float32", "bytes"]
    assert content == 4 * (512 + 3 * 2048)
    assert f"{content:,} bytes" in tables.storage_sentence(rows.reset_index())
    assert "| 16 MB |" in tables.storage_layout(rows.reset_index())


def test_times_are_said_as_ratios():
    first, other, last = tables.time_sentences(pd.Series({tables.CSQ: 0.5, "other": 1.25}), published.costs())
    assert first == "one image, times that of ResNet-50, 16 bits (CSQ):" and other == "  other: 2.50"
    assert last == "published, times that of CSQ: ViT-LLaMa 3.1, FIRe 2.0, ACIR 3.0"
