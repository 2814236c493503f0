"""The numbers about the loss against plain loops, closed forms, geoopt and finite differences."""

import math
import warnings

import numpy as np
import pytest
import torch

from lib.geometry import PoincareBall
from lib.heads.hyp_vit import ClippedProjection
from lib.losses.hyp_vit import PairwiseCrossEntropy, pairwise_cross_entropy
from lib.papers.hyp_vit.loss import tables

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    import geoopt

C, R, TAU = 0.1, 2.3, 0.2


@pytest.fixture
def batch():
    return tables.small_batch()


def test_the_small_batch_has_something_to_show(batch):
    e, labels = batch
    assert e.shape == (8, 2) and e.dtype == torch.float64
    assert tables.names(labels) == ["A1", "A2", "B1", "B2", "C1", "C2", "D1", "D2"]
    assert 0 < (e.norm(dim=-1) > R).sum() < 8, "some are clipped, some are not"
    share = tables.shares({"D": PoincareBall(C).pairwise(*2 * [tables.place(e, C, R)])}, [TAU], labels, tables.ANCHOR)
    assert (share["share"] > 5).sum() >= 3, "the anchor wavers"
    assert torch.equal(tables.small_batch()[0], e) and not torch.equal(tables.small_batch(seed=1)[0], e)


@pytest.mark.parametrize("c", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("r", [0.5, 2.3, 6.0, None])
def test_points_are_placed_as_the_head_places_them(batch, c, r):
    e, _ = batch
    head = ClippedProjection(2, 2, geometry=PoincareBall(c), clip_radius=r).double()
    with torch.no_grad():
        head.linear.weight.copy_(torch.eye(2))
        torch.testing.assert_close(tables.place(e, c, r), head(e), rtol=0, atol=0)


@pytest.mark.parametrize("c", [0.1, 2.0])
def test_points_are_placed_as_geoopt_places_them(batch, c):
    e, _ = batch
    short = e * (1.5 / e.norm(dim=-1, keepdim=True)).clamp_max(1)
    reference = geoopt.PoincareBall(torch.tensor(c, dtype=torch.float64)).expmap0(short)
    torch.testing.assert_close(tables.place(e, c, 1.5), reference, rtol=1e-9, atol=1e-12)


def test_the_overview_is_the_definition(batch):
    e, labels = batch
    frame = tables.overview(e, labels, C, R, TAU)
    z = tables.place(e, C, R)
    apart = PoincareBall(C).pairwise(z, z).numpy()
    for i, row in frame.iterrows():
        j = i + 1 if i % 2 == 0 else i - 1
        below = sum(math.exp(-apart[i, k] / TAU) for k in range(8) if k != i)
        assert row["positive"] == pytest.approx(100 * math.exp(-apart[i, j] / TAU) / below)
        assert row["length"] == pytest.approx(math.hypot(row["e_1"], row["e_2"]))
        assert row["norm"] == pytest.approx(100 * math.tanh(math.sqrt(C) * min(row["length"], R)))
        assert math.hypot(row["z_1"], row["z_2"]) == pytest.approx(row["norm"] / 100 / math.sqrt(C))


@pytest.mark.parametrize("tau", [0.05, 0.2, 1.0])
def test_the_softmax_is_what_the_loss_sees(batch, tau):
    e, labels = batch
    z = tables.place(e, C, R)
    apart = PoincareBall(C).pairwise(z, z)
    share = tables.softmax(apart, tau)
    torch.testing.assert_close(share.sum(-1), torch.ones(8, dtype=torch.float64))
    assert not share.diagonal().any()
    rows = torch.arange(8)
    expected = -share[rows, rows ^ 1].log().sum() / 4
    torch.testing.assert_close(PairwiseCrossEntropy(PoincareBall(C), tau)(z, labels), expected)


def whole_batch_by_loops(distance, d, tau):
    k_of, total = len(distance), 0.0
    for i in range(k_of):
        below = sum(math.exp(-distance[i, k] / tau) for k in range(k_of) if k != i)
        for j in range(i // d * d, i // d * d + d):
            if j != i:
                total -= math.log(math.exp(-distance[i, j] / tau) / below)
    return total / (k_of // d)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_the_sum_over_the_whole_batch_by_loops(d):
    points = torch.rand(4 * d, 3, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    apart = PoincareBall(C).pairwise(points, points)
    ours = tables.whole_batch(apart, d, TAU).item()
    assert ours == pytest.approx(whole_batch_by_loops(apart.numpy(), d, TAU))
    by_subsets = pairwise_cross_entropy(apart, d, TAU, torch.ones(4, dtype=torch.bool)).item()
    assert ours == pytest.approx(by_subsets) if d == 2 else ours > by_subsets


def test_reach_is_measured_and_that_of_the_errata():
    """HV-9: at most 62 percent of the radius, distances at most 9.2; the distance does not depend on c."""
    rows = tables.reach([0.01, 0.1, 2.0], [0.5, 2.3])
    for row in rows.itertuples():
        ball, far = PoincareBall(row.c), torch.tensor([[row.r, 0.0], [-row.r, 0.0]], dtype=torch.float64)
        ends = ball.exp0(far)
        assert 100 * math.sqrt(row.c) * ends[0].norm() == pytest.approx(row.share)
        assert ball.between(torch.zeros(2), ends[0]) == pytest.approx(row.distance)
        assert ball.between(*ends) == pytest.approx(2 * row.distance)
        assert row.c_r2 == pytest.approx(row.c * row.r**2)
    published = tables.reach([C], [R]).iloc[0]
    assert round(published["share"]) == 62 and 2 * published["distance"] == pytest.approx(9.2)


@pytest.mark.parametrize("margin", [1e-3, 1e-5])
def test_the_boundary_clip_acts_from_there_on(margin):
    at, ball = tables.boundary(margin, C), PoincareBall(C)
    for near, acts in ((0.999, False), (1.001, True)):
        point = ball.exp0(torch.tensor([near * at, 0.0], dtype=torch.float64))
        assert torch.equal(ball.project(point, margin), point) != acts
    assert at > 5 * R


def loss_of(e, kind, labels):
    ball = PoincareBall(C)
    z = tables.place(e, C, R) if kind == "feature clipping" else ball.exp0(e)
    return PairwiseCrossEntropy(ball, TAU)(ball.project(z, 1e-3) if kind == "boundary clip only" else z, labels)


@pytest.mark.parametrize("kind", tables.KINDS[:3])
@pytest.mark.parametrize("norm", [1.0, 5.0, 14.0])
def test_the_gradient_is_the_slope(batch, kind, norm):
    """Along the outputs and sideways, by steps of all outputs one after the other."""
    e, labels = batch
    way = torch.nn.functional.normalize(e, dim=-1)
    across = torch.stack([-way[:, 1], way[:, 0]], dim=-1)
    slopes = {"along": way, "sideways": across}
    row = tables.gradient(e, [norm], C, TAU, R, 1e-3).set_index("kind").loc[kind]
    found = {}
    for part, direction in slopes.items():
        steps = []
        for place in range(len(e)):
            move = torch.zeros_like(e)
            move[place] = 1e-6 * direction[place]
            two = [loss_of(norm * way + sign * move, kind, labels).item() for sign in (1, -1)]
            steps.append((two[0] - two[1]) / 2e-6)
        found[part] = math.sqrt(np.mean(np.square(steps)))
        assert row[part] == pytest.approx(found[part], rel=1e-4, abs=1e-6)
    total = math.sqrt(len(e)) * math.hypot(*found.values())
    assert row["log10_total"] == pytest.approx(math.log10(total), abs=1e-4)


def test_clipping_keeps_something_to_learn_in_a_sorted_batch():
    e = tables.sorted_batch(50, 128)
    assert e.shape == (100, 128)
    rows = tables.gradient(e, [2.0, 5.0], C, TAU, R, 1e-3).pivot(index="norm", columns="kind", values="log10_total")
    assert rows.loc[2.0, "no clipping"] == rows.loc[2.0, "feature clipping"]
    assert rows.loc[5.0, "feature clipping"] > rows.loc[5.0, "no clipping"] + 1
    z = tables.place(e, C, R)
    share = tables.softmax(PoincareBall(C).pairwise(z, z), TAU)
    assert share[torch.arange(100), torch.arange(100) ^ 1].min() > 0.99
