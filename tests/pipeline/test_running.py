"""Why a run of DVC did not come to its end is said in one sentence, with the process that is in the way."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dvc.exceptions import DvcException

from lib import paths
from lib.errors import InputError
from lib.pipeline import running

STAGES = """
stages:
  slow: {cmd: "touch started; sleep 600", outs: [slow: {cache: false}]}
  broken: {cmd: "exit 1", outs: [broken: {cache: false}]}
  whole: {cmd: "touch whole", outs: [whole: {cache: false}]}
"""
LOCK = "import time, zc.lockfile as z; lock = z.LockFile('.dvc/tmp/lock'); open('started', 'w'); time.sleep(600)"
OTHERS = {"a stage": ["-m", "dvc", "repro", "slow"], "the repository": ["-c", LOCK]}


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    (tmp_path / "dvc.yaml").write_text(STAGES)
    for command in (["git", "init", "--quiet"], [sys.executable, "-m", "dvc", "init", "--quiet"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture(params=OTHERS)
def other(request, project) -> Iterator[subprocess.Popen]:
    """Another process that holds one of DVC's locks."""
    process = subprocess.Popen([sys.executable, *OTHERS[request.param]], cwd=project)
    while not (project / "started").exists():
        time.sleep(0.1)
    yield process
    process.kill()
    process.wait()


def test_the_second_of_two_runs_names_the_first(other):
    message = rf"another run is under way \(process {other.pid}\): wait for it to end"
    with pytest.raises(InputError, match=message):
        running.dvc("repro", "--quiet", "slow")
    with pytest.raises(InputError, match=message), running.explained():
        raise DvcException("of a pipeline in this process")
    other.kill()
    other.wait()
    with pytest.raises(InputError, match="a stage failed; its message stands above"):
        running.dvc("repro", "--quiet", "broken")


def test_stages_side_by_side_are_no_other_run(other):
    with pytest.raises(InputError, match="a stage failed"), running.explained(alone=False):
        raise DvcException("of one of them")


def test_a_run_alone_goes_through(project):
    running.dvc("repro", "--quiet", "whole")
    assert (project / "whole").exists()


def test_an_archive_without_git_is_told_what_it_lacks(project):
    (project / ".git").rename(project / "git")
    with pytest.raises(InputError, match=rf"^{project}: fatal: not a git repository.*`git clone`, not as an archive"):
        running.dvc("repro", "whole")
