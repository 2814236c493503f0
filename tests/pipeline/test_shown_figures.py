"""Figures of committed notebooks are pictures: a bare object that no backend draws would leave its name alone."""

import pytest

from lib import paths
from lib.pipeline.notebooks import read

ALL = sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_no_figure_is_left_as_its_name(path):
    """This reads the committed outputs, so it is red from a mended cell until the notebook is built again."""
    outputs = [(n, out) for n, cell in enumerate(read(path).cells) for out in cell.get("outputs", ())]
    named = [
        n
        for n, out in outputs
        if set(out.get("data", ())) == {"text/plain"} and out.data["text/plain"].startswith("<Figure")
    ]
    assert named == []
