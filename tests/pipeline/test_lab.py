"""The lab works on copies: what somebody changed is kept, what nobody changed follows the project."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from lib import paths
from lib.pipeline import lab, notebooks
from lib.pipeline.lab import refresh

NAME = "notebooks/12_loss.ipynb"
TABLE = "reports/hyper_dino/demo/table_1.csv"


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A project with one notebook and one table, in place of ours."""
    monkeypatch.setattr(lab, "ROOT", tmp_path)
    monkeypatch.setattr(lab, "NOTEBOOKS", tmp_path / "notebooks")
    save(tmp_path / NAME, "print(1)", "1\n")
    (tmp_path / TABLE).parent.mkdir(parents=True)
    (tmp_path / TABLE).write_text("ours\n1\n")
    return tmp_path


@pytest.fixture
def home(project) -> Path:
    """The lab, just opened."""
    refresh(project / "lab")
    return project / "lab"


def save(path: Path, source: str, output: str = "") -> None:
    cell = nbformat.v4.new_code_cell(source, outputs=[nbformat.v4.new_output("stream", text=output)])
    notebooks.write(nbformat.v4.new_notebook(cells=[cell]), path)


def seen(path: Path) -> tuple[str, str]:
    (cell,) = notebooks.read(path).cells
    return cell.source, cell.outputs[0].text


def test_the_lab_holds_notebooks_and_reports_side_by_side_as_the_project_does(tmp_path):
    assert refresh(tmp_path) == []
    for folder, kind in (("notebooks", "[0-9]*.ipynb"), ("reports", "*.*")):
        ours = sorted((paths.ROOT / folder).rglob(kind))
        copies = sorted((tmp_path / folder).rglob(kind))
        assert [p.relative_to(tmp_path) for p in copies] == [p.relative_to(paths.ROOT) for p in ours] and ours
        assert all(copy.read_bytes() == own.read_bytes() for copy, own in zip(copies, ours, strict=True))


def test_what_was_run_and_saved_keeps_its_outputs_until_the_project_has_news(project, home):
    save(home / NAME, "print(1)", "run here\n")
    assert refresh(home) == [] and seen(home / NAME) == ("print(1)", "run here\n")
    save(project / NAME, "print(2)", "2\n")
    assert refresh(home) == [] and seen(home / NAME) == ("print(2)", "2\n")
    save(project / NAME, "print(2)", "two\n")  # executed anew, as after a change of the library
    assert refresh(home) == [] and seen(home / NAME) == ("print(2)", "two\n")


@pytest.mark.parametrize("text", ['{"half', '{"notebooks/12_loss.ipynb": "x"}'])
def test_a_damaged_list_of_copies_is_made_anew_and_nothing_of_anybody_s_is_lost(project, home, text):
    save(home / NAME, "print('mine')")
    (home / lab.COPIED).write_text(text)
    with pytest.warns(UserWarning, match=r"\.copied\.json is damaged, and made anew"):
        refresh(home)
    assert refresh(home) == [] and seen(home / NAME)[0] == "print('mine')"


def test_what_was_changed_is_kept_and_named_once_the_project_has_news(project, home):
    save(home / NAME, "print('mine')")
    save(home / "notebooks" / "my_own.ipynb", "print('new')")
    (home / TABLE).write_text("ours\n3\n")
    assert refresh(home) == []
    save(project / NAME, "print(2)")
    (project / TABLE).write_text("ours\n2\n")
    (project / "reports" / ".demo.x1.draft").mkdir()
    (project / "reports" / ".demo.x1.draft" / "table_2.csv").write_text("half")
    for _ in range(2):
        kept = refresh(home)
        assert kept == [NAME, TABLE]
    assert seen(home / NAME)[0] == "print('mine')" and (home / TABLE).read_text() == "ours\n3\n"
    words = lab.message(home, kept)
    assert f"rename or remove yours and run `make lab` again: {NAME}\n" in words and "1 files in reports/" in words
    assert not list(home.rglob("*.draft"))
    (home / NAME).rename(home / "notebooks" / "12_mine.ipynb")
    assert refresh(home) == [TABLE] and seen(home / NAME)[0] == "print(2)"
    assert seen(home / "notebooks" / "12_mine.ipynb")[0] == "print('mine')"
    assert (home / "notebooks" / "my_own.ipynb").exists()


@pytest.mark.parametrize("broken", ["half a notebook", "[]"])
def test_what_the_project_gave_up_goes_unless_it_was_changed(project, home, broken):
    (home / NAME).write_text(broken)
    for name in (NAME, TABLE):
        (project / name).unlink()
    assert refresh(home) == []
    assert (home / NAME).read_text() == broken and not (home / TABLE).exists()


def test_an_interrupted_refresh_is_finished_by_the_next(project, tmp_path, monkeypatch):
    home = tmp_path / "lab"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        copy = lab.shutil.copyfile

        def copy_one(source, target):
            if Path(source).suffix == ".csv":
                raise KeyboardInterrupt
            copy(source, target)

        patch.setattr(lab.shutil, "copyfile", copy_one)
        refresh(home)
    assert (home / NAME).exists() and not (home / TABLE).exists()
    assert refresh(home) == [] and (home / TABLE).exists()
    save(project / NAME, "print(2)")
    assert refresh(home) == [] and seen(home / NAME)[0] == "print(2)"


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False)])
def test_only_root_has_to_be_allowed(monkeypatch, tmp_path, user, allowed):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    words = lab.command(tmp_path, ["--port=9000"])
    assert ("--allow-root" in words) == allowed
    assert f"--ServerApp.root_dir={tmp_path}" in words and words[-1] == "--port=9000"


def test_what_runs_in_the_lab_reports_to_the_lab(tmp_path):
    code = [sys.executable, "-c", "from lib import paths; print(paths.REPORTS, paths.PUBLISHED)"]
    said = subprocess.check_output(code, env=lab.environment(tmp_path), cwd=tmp_path, text=True)
    assert said.split() == [str(tmp_path / "reports"), str(paths.ROOT / "reports" / "published")]


def test_make_clean_spares_the_lab(tmp_path):
    (tmp_path / "Makefile").write_bytes((paths.ROOT / "Makefile").read_bytes())
    for name in ("build/lab/notebooks/mine.ipynb", "build/data/tissue/tile.png", "build/features.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    for _ in range(2):
        subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, check=True)
        left = [path for path in (tmp_path / "build").rglob("*") if path.is_file()]
        assert left == [tmp_path / "build/lab/notebooks/mine.ipynb"]
    subprocess.run(["rm", "-r", tmp_path / "build"], check=True)
    subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, check=True)
