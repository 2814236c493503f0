"""No committed number of the demo comes from a head that was held at the rim, but for those that say so."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.papers.hyp_vit.heads import UNCLIPPED
from lib.papers.hyper_dino.mapper.start import PRINTED
from lib.papers.linear_prototypes.tuning import LEFT
from lib.study.scores import of_answers
from lib.training.experiment import answers
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.methods import of_recipes
from lib.training.recipes import Recipe
from lib.training.splits import splits

MOST = 5
"""Percent of the training images that may be at the rim at the end."""

SAID = (PRINTED, UNCLIPPED, LEFT)
"""What a row may say of itself that is at the rim."""


REAL = {
    "beyond/bh200x/factors/table_margins.csv",
    "beyond/bh200x/factors/table_tree.csv",
    "beyond/ham10000/factors/table_margins.csv",
    "beyond/ham10000/factors/table_tree.csv",
    "hyper_dino/bh200x/mapper/table_choice.csv",
    "hyper_dino/bh200x/retrieval/table_5.csv",
}
"""Of real images: a margin of 4, a start norm that was tried, and 1,280 numbers out of 1,280, one training a fold; all
say so."""


def held(reports: Path, profile: str = "demo") -> list[str]:
    """Tables and figures of a profile with a trained row that is at the rim and does not say why.

    It may begin as printed, have no clipping, or be a candidate that nobody chose.
    """
    found = []
    for file in sorted(reports.glob(f"*/{profile}/*/*/*.csv")):
        rows = pd.read_csv(file)
        if "rim" in rows:
            at_rim = (" ".join(map(str, row)) for row in rows[rows["rim"] > MOST].itertuples())
            name = file.relative_to(reports).as_posix().replace(f"/{profile}/", "/")
            found += [name] * any(not any(why in row for why in SAID) for row in at_rim)
    return found


def test_no_default_row_of_the_committed_demo_is_at_the_rim():
    assert list(paths.REPORTS.glob("hyper_dino/demo/*/retrieval/table_2.csv"))
    assert held(paths.REPORTS) == []


def test_no_other_row_of_real_images_is_at_the_rim():
    assert list(paths.REPORTS.glob("linear_prototypes/sample/*/retrieval/table_variants.csv"))
    assert set(held(paths.REPORTS, "sample")) == REAL


@pytest.mark.parametrize(
    ("start_norm", "method", "expected"),
    [(0.0, "", ["hyper_dino/tissue/section/t.csv"]), (0.0, PRINTED, []), (0.3, "", [])],
)
def test_a_head_that_begins_at_the_rim_and_stays_there_is_found(tmp_path, monkeypatch, start_norm, method, expected):
    """Switching the start off is noticed, unless the row says so."""
    monkeypatch.setattr(paths, "TRAINED", None)
    rng, labels = np.random.default_rng(0), np.arange(60) % 3
    x = (rng.normal(size=(60, 200)) + rng.normal(size=(3, 200))[labels]).astype(np.float32)
    methods = of_recipes([Recipe("scaled", 200, 900)], Settings(start_norm=start_norm), Schedule(epochs=5))
    found = answers(x, labels, methods, splits(np.arange(60) % 2, 0)[:1], (1,), workers=1)
    file = tmp_path / "hyper_dino/demo/tissue/section/t.csv"
    file.parent.mkdir(parents=True)
    of_answers({"by image": {f"{method} head": several for several in found.values()}}).means().to_csv(
        file, index=False
    )
    assert held(tmp_path) == expected
