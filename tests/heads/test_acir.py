"""Each part of ACIR's network against loops or scipy, and the shapes of the whole, on small maps."""

import math

import numpy as np
import pytest
import torch
from scipy.interpolate import BSpline
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from lib.errors import InputError
from lib.heads.acir import ConsolidatedHash, Decoder, he_normal
from lib.heads.attention import QUERIES, ConvMSA, DaRF, PiT
from lib.heads.kan import KAN
from lib.losses.acir import StructureAware, reconstruction


def maps(b, channels, side, seed=0):
    return torch.randn(b, channels, side, side, generator=torch.Generator().manual_seed(seed))


def begun(network, seed=0):
    he_normal(network, torch.Generator().manual_seed(seed))
    return network


def small(**options):
    return ConsolidatedHash(8, 12, 3, bits=10, window=2, generator=torch.Generator().manual_seed(0), **options)


@torch.no_grad()
def test_attention_in_windows_is_equations_7_and_8():
    """Window by window, head by head, pixel by pixel."""
    network, x = begun(ConvMSA(6, heads=2, window=2)), maps(2, 6, 4)
    found = network(x)
    weight, bias = network.query_key_value.weight[:, :, 0, 0], network.query_key_value.bias
    for b, top, left in np.ndindex(2, 2, 2):
        pixels = [(2 * top + i, 2 * left + j) for i in range(2) for j in range(2)]
        q, k, v = torch.stack([weight @ x[b, :, i, j] + bias for i, j in pixels]).split(6, dim=1)
        for head in range(2):
            own = slice(3 * head, 3 * head + 3)
            for place, (i, j) in enumerate(pixels):
                scores = [math.exp(q[place, own] @ k[other, own] / math.sqrt(3)) for other in range(4)]
                mean = sum(s * v[other, own] for other, s in enumerate(scores)) / sum(scores)
                assert torch.allclose(found[b, own, i, j], mean, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("queries", QUERIES)
def test_fusion_is_equation_9_in_both_directions(queries):
    """Pixel by pixel: "deep" as printed, "shallow" as the sentence beside it (AC-24)."""
    network, shallow, deep = begun(DaRF(5, 7, width=6, grid=2, queries=queries)), maps(2, 5, 8), maps(2, 7, 3)
    fine, coarse = interpolate(deep, (2, 2), mode="bilinear", align_corners=False), adaptive_avg_pool2d(shallow, 2)
    looks, holds = (fine, coarse) if queries == "deep" else (coarse, fine)
    found = network(shallow, deep)
    query, key, project = (
        lambda pixel, conv=conv: conv.weight[:, :, 0, 0] @ pixel + conv.bias
        for conv in (network.query, network.key, network.project)
    )
    for b, i, j in np.ndindex(2, 2, 2):
        q, places = query(looks[b, :, i, j]), list(np.ndindex(2, 2))
        scores = [math.exp(q @ key(holds[b, :, y, x]) / math.sqrt(6)) for y, x in places]
        mixed = sum(s * holds[b, :, y, x] for s, (y, x) in zip(scores, places, strict=True)) / sum(scores)
        assert torch.allclose(found[b, :, i, j], project(mixed), atol=1e-5)


@torch.no_grad()
def test_layers_of_pixels_are_those_of_torch():
    """The same weights in torch's own transformer, norm first, give the same tokens and attention."""
    network, x = begun(PiT(8, side=3, layers=2, heads=2)), maps(2, 8, 3)
    tokens = torch.cat([network.token.expand(2, 1, -1), x.flatten(2).mT], dim=1) + network.positions
    weights = []
    for layer in network.layers:
        theirs = torch.nn.TransformerEncoderLayer(
            8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        pairs = {
            "self_attn.in_proj_": "query_key_value.",
            "self_attn.out_proj.": "join.",
            "linear1.": "widen.",
            "linear2.": "narrow.",
            "norm1.": "before.",
            "norm2.": "between.",
        }
        own = layer.state_dict()
        theirs.load_state_dict({a + end: own[b + end] for a, b in pairs.items() for end in ("weight", "bias")})
        seen = theirs.norm1(tokens)
        weights.append(theirs.self_attn(seen, seen, seen, average_attn_weights=False)[1])
        tokens = theirs(tokens)
    token, pixels = network(x)
    expected = network.norm(tokens)
    assert torch.allclose(token, expected[:, 0], atol=1e-5)
    assert torch.allclose(pixels.flatten(2).mT, expected[:, 1:], atol=1e-5)
    assert torch.allclose(network.attention(x), torch.stack(weights, dim=1), atol=1e-5)


@pytest.mark.parametrize(("grid", "order"), [(5, 3), (4, 2), (7, 1)])
def test_the_splines_are_those_of_scipy(grid, order):
    layer = KAN(2, 3, grid, order, reach=1.5).double()
    step = 3 / grid
    knots = -1.5 + step * np.arange(-order, grid + order + 1)
    x = np.linspace(-1.5, 1.5, 41)[:-1]
    expected = BSpline.design_matrix(x, knots, order).toarray()
    assert layer.basis(torch.from_numpy(x)).detach().numpy() == pytest.approx(expected, abs=1e-12)
    assert expected.sum(axis=1) == pytest.approx(1)


@torch.no_grad()
def test_a_layer_is_equations_10_and_11():
    layer = begun(KAN(2, 3)).double()
    layer.scale.copy_(torch.rand(3, 2, generator=torch.Generator().manual_seed(1)))
    x = torch.rand(4, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * 3 - 1.5
    knots = -2 + 0.8 * np.arange(-3, 9)
    for row, out in np.ndindex(4, 3):
        expected = 0.0
        for p in range(2):
            at = x[row, p].item()
            spline = BSpline(knots, layer.coefficients[out, p].numpy(), 3)(at)
            expected += layer.base[out, p].item() * at / (1 + math.exp(-at)) + layer.scale[out, p].item() * float(
                spline
            )
        assert layer(x)[row, out].item() == pytest.approx(expected, abs=1e-10)


@torch.no_grad()
@pytest.mark.parametrize(("grid", "order", "reach"), [(5, 3, 2.0), (4, 2, 1.0)])
def test_beyond_the_grid_splines_fade_out_within_order_intervals(grid, order, reach):
    layer = begun(KAN(1, 2, grid, order, reach))
    end = reach + order * 2 * reach / grid
    x = torch.tensor([[end], [-end], [40.0], [-40.0]])
    assert torch.allclose(layer(x), torch.nn.functional.silu(x) @ layer.base.mT, atol=1e-6)
    fading = layer.basis(torch.linspace(reach, end, 50)).sum(-1)
    assert fading[0] == pytest.approx(1, abs=1e-5) and (fading.diff() <= 1e-6).all() and fading[25] > 1e-4


@torch.no_grad()
@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"narrow": (4, 8)}, ("shallow", "fused", "pixels", "token")),
        ({"fusion": False}, ("shallow", "pixels", "token")),
        ({"pit": False}, ("shallow", "fused", "deep")),
        ({"pit": False, "fusion": False}, ("shallow", "deep")),
    ],
)
def test_a_part_that_is_left_out_is_no_level(options, names):
    network = small(image_channels=0, **options)
    out = network(maps(4, 8, 6), maps(4, 12, 3))
    shallow, deep = options.get("narrow", (8, 12))
    assert network.level_names == names
    assert [level.shape for level in out.levels] == [(4, shallow), *[(4, deep)] * (len(names) - 1)]
    left = {name.split(".")[0] for name, _ in network.named_parameters()}
    assert ("pit" in left) == ("pixels" in names) and ("fusion" in left) == ("near" in left) == ("fused" in names)


@torch.no_grad()
def test_without_windows_darf_sees_the_maps_themselves():
    network, shallow, deep = small(image_channels=0, windows=False), maps(4, 8, 6), maps(4, 12, 3)
    near, fused, *_ = network(shallow, deep).levels
    assert network.level_names == ("shallow", "fused", "pixels", "token")
    assert torch.allclose(near, shallow.mean((2, 3)), atol=1e-6)
    assert torch.allclose(fused, network.fusion(shallow, deep).mean((2, 3)), atol=1e-6)
    assert not any(name.startswith(("near", "far")) for name, _ in network.named_parameters())
    whole = small(image_channels=0)
    assert not torch.allclose(whole(shallow, deep).levels[0], near, atol=1e-3)


def test_what_stands_in_for_learnt_functions_has_as_many_numbers():
    count = {kan: sum(p.numel() for p in small(kan=kan).kan.parameters()) for kan in (True, False)}
    assert count[False] == pytest.approx(count[True], rel=0.02)


@torch.no_grad()
def test_the_start_brings_bits_of_far_away_maps_to_the_stated_spread():
    network, shallow, deep = small(narrow=(4, 8)), 30 + 9 * maps(40, 8, 6), 7 - 3 * maps(40, 12, 3)
    network.start(shallow.half(), deep.half(), spread=0.4, at_once=16)
    before = network(shallow.half().float(), deep.half().float()).code.double().atanh()
    assert before.mean(0).numpy() == pytest.approx(0, abs=1e-3)
    assert before.std(0, correction=0).numpy() == pytest.approx(0.4, abs=2e-3)


def test_every_part_learns_from_loss_and_reconstruction():
    network = small(hidden=6)
    shallow, deep, labels = maps(6, 8, 6), maps(6, 12, 3), torch.arange(6) % 2
    image = torch.rand(6, 3, 96, 96, generator=torch.Generator().manual_seed(3))
    value = StructureAware()(network(shallow, deep).code, labels) + reconstruction(image, network.rebuild(deep))
    value.backward()
    still = [name for name, p in network.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert still == []
    moved = {name.split(".")[0] for name, p in network.named_parameters() if p.grad.any()}
    assert moved == {"near", "far", "pit", "fusion", "norm", "kan", "scale", "shift", "decoder"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ConvMSA(6, heads=4), "4 heads"),
        (lambda: ConvMSA(4, heads=2, window=3)(maps(1, 4, 4)), "windows of 3"),
        (lambda: PiT(8, side=3)(maps(1, 8, 4)), "does not fit"),
        (lambda: PiT(6, side=3), "4 heads"),
        (lambda: DaRF(5, 7, queries="both"), "queries = 'both'"),
        (lambda: KAN(2, 2, grid=0), "grid"),
        (lambda: Decoder(4)(maps(1, 4, 1)), "one pixel"),
        (lambda: small(image_channels=0).rebuild(maps(1, 12, 3)), "no decoder"),
        (lambda: small(hidden=-1), "hidden"),
        (lambda: small().start(maps(5, 8, 6), maps(5, 12, 3), at_once=0), "at_once"),
        (lambda: small().start(torch.ones(5, 8, 6, 6), torch.ones(5, 12, 3, 3)), "same bit"),
    ],
)
def test_what_has_no_meaning_is_refused_in_words(call, words):
    with pytest.raises(InputError, match=words):
        call()
