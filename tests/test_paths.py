"""Files appear whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lib import paths
from lib.paths import whole


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ({}, paths.ROOT / "reports"),
        ({"REPORTS_DIR": "build/lab"}, paths.ROOT / "build" / "lab"),
        ({"REPORTS_DIR": "/somewhere/else"}, Path("/somewhere/else")),
    ],
)
def test_reports_go_where_they_are_sent_whatever_the_working_folder(tmp_path, chosen, found):
    clean = {name: value for name, value in os.environ.items() if name != "REPORTS_DIR"}
    words = [sys.executable, "-c", "from lib import paths; print(paths.REPORTS)"]
    done = subprocess.run(words, env=clean | chosen, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(found)


def test_a_file_appears_when_it_is_finished(tmp_path):
    target = tmp_path / "sub" / "table.csv"
    with whole(target) as draft:
        draft.write_text("done")
        assert not target.exists()
    assert target.read_text() == "done"
    assert [path.name for path in target.parent.iterdir()] == ["table.csv"]


@pytest.mark.parametrize("existing", [None, "old"])
def test_an_interrupted_write_leaves_everything_as_it_was(tmp_path, existing):
    target = tmp_path / "table.csv"
    if existing:
        target.write_text(existing)
    with pytest.raises(KeyboardInterrupt), whole(target) as draft:
        draft.write_text("half")
        raise KeyboardInterrupt
    assert [path.read_text() for path in tmp_path.iterdir()] == ([existing] if existing else [])


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "tiles"
    for content in ("one", "two"):
        with whole(target) as draft:
            draft.mkdir()
            (draft / content).write_text(content)
    assert [path.name for path in target.iterdir()] == ["two"]
    assert [path.name for path in tmp_path.iterdir()] == ["tiles"]
