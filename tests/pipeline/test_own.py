"""Your own images: each folder has its own pipeline and results, and nothing old stands beside what is new."""

import subprocess
import sys
from pathlib import Path

import pytest

from lib import paths
from lib.errors import InputError
from lib.files import MARKER
from lib.pipeline import own, profiles
from tests.pipeline.stopping import stop

STAGES = """
stages:
  p_stage:
    foreach: ${runs.p_stage}
    do:
      wdir: ../..
      cmd: python write.py ${key}
      deps: ["data/${key}"]
      outs:
        - "build/features/${profile}/${key}/x.views": {cache: false, persist: true}
        - "reports/p/${profile}/${key}/stage": {cache: false, persist: true}
"""
WRITE = """
import sys
from pathlib import Path
from lib.files import whole
from lib.pipeline.notebooks import SECTION
value = Path("data", sys.argv[1], "image").read_text()
if value == "broken":
    raise SystemExit(1)
views = Path("build/features/own", sys.argv[1], "x.views")
views.mkdir(parents=True, exist_ok=True)
(views / "1.safetensors").write_text(value)  # what was extracted before is extracted on
with whole(Path("reports/p/own", sys.argv[1], "stage"), SECTION) as draft:
    draft.mkdir()
    (draft / f"table_{value}.csv").write_text(value)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with one small stage, that ignores build/ as this project does."""
    files = {
        ".gitignore": "/build/\n",
        "write.py": WRITE,
        "dvc.yaml": "stages:\n  source:\n    cmd: touch build/source\n    outs: [build/source: {cache: false}]\n"
        "  real:\n    cmd: touch build/real\n    outs: [build/real: {cache: false}]\n",
        "pipelines/sample/dvc.yaml": STAGES,
        "pipelines/sample/params.yaml": "runs: {p_stage: {}}\n",
        "pipelines/own.yaml": "profile: own\nruns: {p_stage: {'${name}': {}}}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for command in (["git", "init", "--quiet"], [sys.executable, "-m", "dvc", "init", "--quiet"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    for name, place in {"ROOT": ".", "BUILD": "build", "PIPELINES": "pipelines", "REPORTS": "reports"}.items():
        monkeypatch.setattr(paths, name, (tmp_path / place).resolve())
    monkeypatch.setattr(profiles, "check", lambda file, own: None)
    monkeypatch.setenv("PYTHONPATH", str(Path(own.__file__).parents[2]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tables(project: Path, name: str = "eyes") -> list[str]:
    folder = project / "reports/p/own" / name / "stage"
    return sorted(file.name for file in folder.iterdir() if file.name != MARKER) if folder.exists() else []


def built(project: Path, value: str, name: str = "eyes") -> list[str]:
    """The tables that are there when the images have been replaced and the pipeline has run."""
    (project / "data" / name).mkdir(parents=True, exist_ok=True)
    (project / "data" / name / "image").write_text(value)
    own.run(name)
    return tables(project, name)


def test_two_folders_of_images_stay_apart_and_git_sees_neither(project):
    built(project, "one")
    assert built(project, "two", "birds") == ["table_two.csv"] and tables(project) == ["table_one.csv"]
    ignored = (paths.NOTEBOOKS.parent / ".gitignore").read_text()
    (project / ".gitignore").write_text(ignored)
    shown = subprocess.run(["git", "status", "--short", "-uall"], capture_output=True, text=True, check=True).stdout
    assert "eyes" not in shown and "birds" not in shown


def test_a_second_run_does_nothing_and_other_images_replace_everything(project):
    (name,) = built(project, "one")
    table = project / "reports/p/own/eyes/stage" / name
    before = table.stat().st_mtime_ns
    own.run("eyes")
    assert table.stat().st_mtime_ns == before
    assert built(project, "three") == ["table_three.csv"]


def test_where_a_run_breaks_off_no_old_table_stands_for_a_new_one(project):
    built(project, "one")
    with pytest.raises(InputError, match="a stage failed"):
        built(project, "broken")
    assert tables(project) == []
    assert built(project, "four") == ["table_four.csv"]


def test_a_pipeline_of_an_earlier_version_does_not_stop_another(project):
    old = own.pipeline("birds")
    old.write_text(old.read_text().replace("runs.p_stage", "runs.gone"))
    assert built(project, "one") == ["table_one.csv"]


def test_what_somebody_put_beside_the_tables_is_not_removed(project):
    built(project, "one")
    thesis = project / "reports/p/own/eyes/stage/thesis.txt"
    thesis.write_text("mine")
    with pytest.raises(InputError, match=r"thesis\.txt"):
        built(project, "two")
    assert thesis.read_text() == "mine"


TWO = """
stages:
  p_stage:
    foreach: ${runs.p_stage}
    do:
      wdir: ../..
      cmd: python begin.py begun-p
      outs: ["p-${key}": {cache: false}]
  q_stage:
    foreach: ${runs.p_stage}
    do:
      wdir: ../..
      cmd: python begin.py begun-q
      outs: ["q-${key}": {cache: false}]
"""
BEGIN = """
import signal
import sys
import time
from pathlib import Path
signal.signal(signal.SIGINT, signal.SIG_DFL)
Path(sys.argv[1]).touch()
time.sleep(60)
"""
STOPPING = """
import sys
from pathlib import Path
from lib import errors, paths
from lib.pipeline import own, profiles
here = Path(sys.argv[1])
paths.ROOT, paths.BUILD, paths.PIPELINES, paths.REPORTS = here, here / "build", here / "pipelines", here / "reports"
profiles.check = lambda *_, **__: None
errors.one_message(lambda: own.run("mine"))
"""


@pytest.mark.slow
def test_ctrl_c_stops_all_stages_and_not_only_the_one_that_runs(project):
    """The stage that runs ends by it, and no other begins."""
    (project / "pipelines/sample/dvc.yaml").write_text(TWO)
    (project / "begin.py").write_text(BEGIN)  # one process: a shell lives on if Ctrl-C comes between its two commands
    stop(STOPPING, project, "begun-*")
    assert len(list(project.glob("begun-*"))) == 1
