"""The numbers about the loss against plain loops, geoopt and finite differences; the sliders show them."""

import math
import re
import warnings

import numpy as np
import pytest
import torch

from lib.geometry import PoincareBall
from lib.heads.hyp_vit import ClippedProjection
from lib.losses.hyp_vit import PairwiseCrossEntropy, cosine_distance, pairwise_cross_entropy
from lib.papers.hyp_vit import loss, loss_pictures

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    import geoopt

C, R, TAU = 0.1, 2.3, 0.2
START = {"c": C, "temperature": TAU, "clip_radius": R}


@pytest.fixture
def batch():
    return loss.small_batch()


def by_loops(e: torch.Tensor, c: float, temperature: float, clip_radius: float) -> dict[str, float]:
    """Lines of the readout from geoopt's distances, pair by pair."""
    space = geoopt.PoincareBall(torch.tensor(c, dtype=torch.float64))
    points = [space.expmap0(row * min(1.0, clip_radius / row.norm().item())) for row in e]
    apart = [[space.dist(x, y).item() for y in points] for x in points]
    total, shares = 0.0, []
    for i in range(8):
        below = sum(math.exp(-apart[i][k] / temperature) for k in range(8) if k != i)
        shares.append(math.exp(-apart[i][i ^ 1] / temperature) / below)
        total -= math.log(shares[i])
    return {
        "largest norm": 100 * math.sqrt(c) * max(point.norm().item() for point in points),
        "  distance": apart[loss.ANCHOR][loss.ANCHOR ^ 1],
        "  share of softmax": 100 * shares[loss.ANCHOR],
        "loss of the batch": total / 4,
    }


def shown(text: str, line: str) -> float:
    """The first number behind ``line`` of a readout."""
    (rest,) = (row.partition(line)[2] for row in text.splitlines() if row.startswith(line))
    return float(re.search(r"-?\d+(\.\d+)?", rest)[0])


@pytest.mark.parametrize(
    "move", [{}, {"c": 2.0}, {"temperature": 0.05}, {"temperature": 1.0}, {"clip_radius": 0.5}], ids=str
)
def test_the_readout_is_what_loops_and_geoopt_compute(batch, move):
    board = loss_pictures.explore()
    before, picture = board.readout.value, board.picture.value
    assert board.values == START
    for name, value in move.items():
        board.sliders[name].value = value
    for line, number in by_loops(batch[0], **START | move).items():
        assert shown(board.text, line) == pytest.approx(number, abs=6e-3 if "norm" in line or "share" in line else 6e-5)
    assert (board.readout.value != before) == (board.picture.value != picture) == bool(move)


def test_at_c_0_there_is_no_rim_and_distances_are_doubled(batch):
    e, _ = batch
    text = loss_pictures.describe(0.0, TAU, 6.0)
    assert "no rim" in text and "  0 of 8 outputs" in text
    assert shown(text, "  distance") == pytest.approx(2 * (e[0] - e[1]).norm().item(), abs=6e-5)


@pytest.mark.parametrize("c", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("r", [0.5, 2.3, None])
def test_points_are_placed_as_the_head_places_them(batch, c, r):
    e, _ = batch
    head = ClippedProjection(2, 2, geometry=PoincareBall(c), clip_radius=r).double()
    with torch.no_grad():
        head.linear.weight.copy_(torch.eye(2))
        torch.testing.assert_close(loss.place(e, c, r), head(e), rtol=0, atol=0)


def test_the_overview_is_the_definition_and_the_softmax_is_what_the_loss_sees(batch):
    e, labels = batch
    z = loss.place(e, C, R)
    apart, rows = PoincareBall(C).pairwise(z, z), torch.arange(8)
    share = loss.softmax(apart, TAU)
    torch.testing.assert_close(share.sum(-1), torch.ones(8, dtype=torch.float64))
    of_loss = -share[rows, rows ^ 1].log().sum() / 4
    torch.testing.assert_close(PairwiseCrossEntropy(PoincareBall(C), TAU)(z, labels), of_loss)
    for i, row in loss.overview(e, labels, C, R, TAU).iterrows():
        assert row["positive"] == pytest.approx(100 * share[i, i ^ 1].item())
        assert row["length"] == pytest.approx(math.hypot(row["e_1"], row["e_2"]))
        assert row["norm"] == pytest.approx(100 * math.tanh(math.sqrt(C) * min(row["length"], R)))
        assert math.hypot(row["z_1"], row["z_2"]) == pytest.approx(row["norm"] / 100 / math.sqrt(C))


@pytest.mark.parametrize("d", [2, 3])
def test_the_sum_over_the_whole_batch_by_loops(d):
    points = torch.rand(4 * d, 3, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    apart, total = PoincareBall(C).pairwise(points, points), 0.0
    for i in range(4 * d):
        below = sum(math.exp(-apart[i, k] / TAU) for k in range(4 * d) if k != i)
        total -= sum(
            math.log(math.exp(-apart[i, j] / TAU) / below) for j in range(4 * d) if j != i and j // d == i // d
        )
    whole = loss.whole_batch(apart, d, TAU).item()
    assert whole == pytest.approx(total / 4)
    by_subsets = pairwise_cross_entropy(apart, d, TAU, torch.ones(4, dtype=torch.bool)).item()
    assert whole == pytest.approx(by_subsets) if d == 2 else whole > by_subsets


@pytest.mark.parametrize("margin", [1e-3, 1e-5])
def test_the_boundary_clip_acts_from_there_on(margin):
    at, ball = loss.boundary(margin, C), PoincareBall(C)
    for near, acts in ((0.999, False), (1.001, True)):
        point = ball.exp0(torch.tensor([near * at, 0.0], dtype=torch.float64))
        assert torch.equal(ball.project(point, margin), point) != acts


@pytest.mark.parametrize("kind", loss.KINDS[:3])
@pytest.mark.parametrize("norm", [1.0, 14.0])
def test_the_gradient_is_the_slope(batch, kind, norm):
    """Along the outputs and sideways, by steps of all outputs one after the other."""
    e, labels = batch
    way, ball = torch.nn.functional.normalize(e, dim=-1), PoincareBall(C)

    def of(e):
        z = loss.place(e, C, R) if kind == "feature clipping" else ball.exp0(e)
        z = ball.project(z, 1e-3) if kind == "boundary clip only" else z
        return PairwiseCrossEntropy(ball, TAU)(z, labels).item()

    row = loss.gradient(e, [norm], C, TAU, R, 1e-3).set_index("kind").loc[kind]
    parts = {"along": way, "sideways": torch.stack([-way[:, 1], way[:, 0]], dim=-1)}
    slopes = {}
    for part, direction in parts.items():
        moves = [1e-6 * direction * (torch.arange(8)[:, None] == place) for place in range(8)]
        slopes[part] = np.sqrt(np.mean([((of(norm * way + m) - of(norm * way - m)) / 2e-6) ** 2 for m in moves]))
        assert row[part] == pytest.approx(slopes[part], rel=1e-4, abs=1e-6)
    total = math.sqrt(len(e)) * math.hypot(*slopes.values())
    assert row["log10_total"] == pytest.approx(math.log10(total), abs=1e-4)


def test_clipping_keeps_something_to_learn_in_a_sorted_batch():
    rows = loss.gradient(loss.sorted_batch(50, 128), [2.0, 5.0], C, TAU, R, 1e-3)
    rows = rows.pivot(index="norm", columns="kind", values="log10_total")
    assert rows.loc[2.0, "no clipping"] == rows.loc[2.0, "feature clipping"]
    assert rows.loc[5.0, "feature clipping"] > rows.loc[5.0, "no clipping"] + 1


def test_shares_are_of_the_distance_that_is_named(batch):
    e, labels = batch
    rows = loss.shares({"D_cos": cosine_distance(e, e)}, [TAU], labels, loss.ANCHOR)
    assert rows["apart"].tolist() == pytest.approx(cosine_distance(e, e)[0, 1:].tolist())
    assert rows["share"].sum() == pytest.approx(100) and rows["positive"].tolist() == [True] + 6 * [False]
