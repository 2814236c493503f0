"""Where heads begin: by counting, by measuring, and what the first batch does to them there."""

import numpy as np
import pytest
import torch

from lib.geometry import PoincareBall
from lib.papers.hyper_dino.mapper import start
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.recipes import Recipe
from lib.training.splits import repeated, splits

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(4), 20)
X = (RNG.normal(size=(80, 300)) + 0.5 * RNG.normal(size=(4, 300))[LABELS]).astype(np.float32)
SPLITS = splits(np.arange(80) % 4, 0)[:1]
WIDE, LONG, SHORT = (Recipe("scaled", 300, out) for out in (1500, 300, 8))
SCHEDULE = Schedule(epochs=3, batch_size=30)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> start.Arms:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lib.paths.TRAINED", tmp_path_factory.mktemp("trained"))
        return start.fit(X, LABELS, [WIDE, LONG, SHORT], Settings(), SCHEDULE, repeated(SPLITS, 2), [0, 0.3], workers=1)


def test_the_course_begins_with_the_network_before_training(fitted):
    rows = start.courses(fitted, X, LABELS).set_index(["start", "method"])
    assert rows.loc["start norm 0.3"]["before"].tolist() == pytest.approx([0.3] * 3, abs=0.02)
    printed, ours = rows.loc[("as printed", WIDE.name)], rows.loc[("start norm 0.3", WIDE.name)]
    assert printed["rim_before"] == 100 and printed["before_low"] == pytest.approx(0.999, abs=1e-3)
    assert printed["held"] == 100 and ours["held"] == 0
    assert printed["apart"] > 5 and 1 < ours["apart"] < 2
    norms = fitted["as printed"][SHORT.name][0].embed(X[SPLITS[0].train]).norm(dim=-1)
    row = rows.loc[("as printed", SHORT.name)]
    assert row["before_low"] <= row["before"] and row["after_low"] <= norms.median() <= row["after_high"]


def by_differences(e: torch.Tensor, y: np.ndarray, delta: float) -> dict[str, float]:
    """Each image moved a little along its e, and all pairs one by one, in float64."""
    ball, loss = PoincareBall(), Settings().loss

    def total(outputs: torch.Tensor) -> float:
        return loss(ball.project(ball.exp0(outputs), margin=delta), torch.from_numpy(y)).item()

    def moved(i: int, by: float) -> torch.Tensor:
        outputs = e.clone()
        outputs[i] *= 1 + by
        return outputs

    slopes = [(total(moved(i, 1e-6)) - total(moved(i, -1e-6))) / 2e-6 for i in range(len(e))]
    h = ball.project(ball.exp0(e), margin=delta)
    apart = {(i, j): ball.between(h[i], h[j]).item() for i in range(len(e)) for j in range(len(e)) if i != j}
    margin = 0.5 + 0.1 * np.mean(list(apart.values()))
    other = [distance / margin for (i, j), distance in apart.items() if y[i] != y[j]]
    return {"held": 100 * np.mean(np.abs(slopes) < 1e-7), "apart": np.mean(other)}


@pytest.mark.parametrize(("begin", "recipe"), [("start norm 0.3", SHORT), ("as printed", SHORT), ("as printed", LONG)])
def test_what_the_first_batch_asks_is_that_of_plain_differences(fitted, begin, recipe):
    one = fitted[begin][recipe.name][0]
    rows = one.reduction(X[SPLITS[0].train])
    network = start.untrained(one, rows)
    batch = next(SCHEDULE.batches(torch.from_numpy(LABELS[SPLITS[0].train]), SPLITS[0].seed)).numpy()
    e = network.layers(torch.from_numpy(rows[batch])).detach().double()
    expected = by_differences(e, LABELS[SPLITS[0].train][batch], network.delta)
    assert start.first_gradient(one, network, rows, LABELS) == pytest.approx(expected, rel=1e-3)
    if recipe == LONG:
        assert 0 < expected["held"] < 100


def test_a_curve_counts_batches(fitted):
    """Sixty images in batches of thirty are two batches an epoch."""
    rows = start.curves(fitted).query("start == 'as printed'")
    of_short = rows[rows["head"] == SHORT.name]
    assert of_short["iteration"].tolist() == [2, 4, 6] * 2 and of_short["seed"].nunique() == 2
    first, second = (head.history for head in fitted["as printed"][SHORT.name])
    assert of_short["loss"].tolist() == first + second and first != second
