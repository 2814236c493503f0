"""Small folders of images and lists."""

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.datasets import finding, loaders
from lib.datasets.images import is_image

Case = namedtuple("Case", "home files rows kind skipped", defaults=("image", ()))
"""Where a dataset is recognised, its files, and columns of its table in the order of the rows."""


def columns(names: str, values: Iterable[tuple]) -> dict[str, list]:
    """The columns of these names from one tuple for each row."""
    return dict(zip(names.split(), map(list, zip(*values, strict=True)), strict=True))


def make(root: Path, files: Mapping[str, object] | list[str]) -> Path:
    """Below ``root`` a picture of 12 x 9 pixels for each name of an image, and for others the text given, if any."""
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8))
    for name in files:
        content = files[name] if isinstance(files, Mapping) else None
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(root / name)
        elif is_image(Path(name)):
            picture.save(root / name)
        else:
            (root / name).write_text(content or "", encoding="utf-8")
    return root


@pytest.fixture(name="make")
def _make() -> Callable[..., Path]:
    return make


@pytest.fixture
def place(tmp_path) -> Callable[[Case], Path]:
    """The folder of a case (home, files, ...), below the folder of the test."""
    return lambda case: make(tmp_path / case.home, case.files)


@pytest.fixture
def check_published(tmp_path, place) -> Callable[[str, Case], None]:
    """A dataset is recognised from above and in its folder, and its table has the rows of the case."""

    def check(dataset: str, case: Case) -> None:
        home = place(case)
        magnifications = dict.fromkeys(("bh100x", "bh200x", "bh40x"), home)
        places = magnifications if dataset == "breakhis" else {dataset: home}
        assert finding.find(tmp_path) == places == finding.find(home)
        table = loaders.load(dataset, tmp_path)
        pd.testing.assert_frame_equal(table.rows[[*case.rows]], pd.DataFrame(case.rows), check_dtype=False)
        assert list(table.rows)[:4] == ["image_id", "path", "label", "group"]
        assert (table.name, table.group_kind, table.skipped) == (dataset, case.kind, case.skipped)
        assert all(table.path(row).is_file() for row in range(len(table)))
        if case.kind == "image":
            assert table.groups.tolist() == table.rows["image_id"].tolist()

    return check


@pytest.fixture
def check_left_out(place, make) -> Callable[[str, Case, Mapping[str, str]], None]:
    """Check that ``others``, files with the reasons why no image of the dataset is in them, are not read but listed."""

    def check(name: str, case: Case, others: Mapping[str, str]) -> None:
        table = loaders.load(name, make(place(case), list(others)))
        assert len(table) == len(next(iter(case.rows.values())))
        skipped = dict(table.skipped)
        assert len(skipped) == len(others) + len(case.skipped)
        assert all(reason in skipped[other] for other, reason in others.items())

    return check
