import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.taxonomy import from_paths
from lib.training import label_tree
from lib.training.label_tree import Objective, Schedule, Task

TREE = from_paths("toy", ["a/1", "a/2", "b/3", "b/4"])
SHORT = Schedule(epochs=12, batch_size=32, lr=5e-3, hidden=16, dim_out=4)


@pytest.fixture(scope="module")
def views():
    """Two noisy views of 96 images in four classes, two of which lie near each other in each half."""
    random = np.random.default_rng(0)
    leaves = np.arange(96) % 4
    centres = np.array([[3, 0, 1, 0], [3, 0, -1, 0], [-3, 0, 0, 1], [-3, 0, 0, -1]], dtype=float)
    x = centres[leaves] + 0.5 * random.normal(size=(2, 96, 4))
    return x.astype(np.float32), leaves


ALL = {
    "SimCLR": Objective("SimCLR"),
    "SupCon": Objective("SupCon"),
    "outside": Objective("outside"),
    "HXE": Objective("HXE"),
    "HWC": Objective("HWC"),
    "LAM": Objective(None, margin_weight=1.0),
    "both, ball": Objective("HWC", PoincareBall(1.0), margin_weight=1.0),
}


def fit(views, tasks, **options):
    x, leaves = views
    return label_tree.fit(x, leaves, TREE, tasks, SHORT, **{"store": None, "workers": 1} | options)


def test_every_objective_learns_and_embeds_all_images(views):
    rows = np.arange(64)
    for one in fit(views, [Task(name, objective, rows, 1) for name, objective in ALL.items()]):
        assert one.history[-1] < one.history[0], one.task.name
        assert one.z.shape == (96, 4) and one.z.isfinite().all()
        assert one.health.steps == 24


def test_two_runs_give_the_same(views, tmp_path):
    tasks = [Task(name, ALL[name], np.arange(64), seed) for name in ("SupCon", "both, ball") for seed in (0, 1)]
    first, again = fit(views, tasks, store=tmp_path), fit(views, tasks)
    kept = fit(views, tasks, store=tmp_path)
    for one, other, same in zip(first, again, kept, strict=True):
        assert torch.equal(one.z, other.z) and torch.equal(one.z, same.z) and one.history == same.history
    assert len(list(tmp_path.glob("*.pt"))) == len(tasks)
    assert not torch.equal(first[0].z, first[1].z)


def test_batches_leave_nobody_out_for_good_and_take_two_different_views():
    schedule = Schedule(epochs=20, batch_size=4)
    batches = list(schedule.batches(10, 3, seed=0))
    assert len(batches) == 40 and {row for rows, _ in batches for row in rows.tolist()} == set(range(10))
    assert all((two[0] != two[1]).all() and len(set(rows.tolist())) == 4 for rows, two in batches)


def test_what_cannot_be_is_refused(views):
    x, leaves = views
    with pytest.raises(InputError, match="two views of every image are needed"):
        label_tree.fit(x[0], leaves, TREE, [], SHORT)
    with pytest.raises(InputError, match="choose one of SimCLR, SupCon"):
        Objective("supcon")
    with pytest.raises(InputError, match="teaches nothing"):
        fit(views, [Task("nothing", Objective(None), np.arange(64), 0)])
