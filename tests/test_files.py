"""Files appear whole or not at all, and nothing is removed that was not made here."""

import fcntl
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lib import files
from lib.errors import InputError
from lib.files import MARKER, whole

KIND = "set of tiles"


def make(folder: Path, *contents: str, kind: str | None = KIND) -> Path:
    """A folder with a file named and filled by each of ``contents``."""
    with whole(folder, kind) as draft:
        (draft / "sub").mkdir(parents=True)
        for content in contents:
            (draft / "sub" / content).write_text(content)
    return folder


def contents(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != MARKER)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


def dies(work: Callable[[], object], step: int) -> bool:
    """Do ``work`` in a process that is killed before its n-th operation on files; whether it was."""
    if (child := os.fork()) == 0:
        left = step

        def watch(event: str, _: tuple) -> None:
            nonlocal left
            if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"):
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("existing", [None, "old"])
def test_an_interrupted_write_leaves_everything_as_it_was(tmp_path, existing):
    target = tmp_path / "table.csv"
    if existing:
        target.write_text(existing)
    with pytest.raises(KeyboardInterrupt), whole(target) as draft:
        draft.write_text("half")
        raise KeyboardInterrupt
    assert [path.read_text() for path in tmp_path.iterdir()] == ([existing] if existing else [])


# Folders: ours are replaced as a whole, others never


def test_a_link_to_a_folder_stays_one(tmp_path):
    real = make(tmp_path / "disk" / "tiles", "one")
    (tmp_path / "tiles").symlink_to(real)
    make(tmp_path / "tiles", "two")
    assert (tmp_path / "tiles").is_symlink() and contents(real) == {"sub/two": "two"}


def somebodys(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("all of it")


def with_a_thesis(folder: Path) -> None:
    make(folder, "one")
    (folder / "sub" / "thesis.txt").write_text("all of it")


def of_unreadable_kind(folder: Path) -> None:
    make(folder, "one")
    (folder / MARKER).write_text("{")


FOREIGN = {
    "somebody's": (somebodys, f"is not a {KIND} that was made here"),
    "another kind": (lambda folder: make(folder, "one", kind="search index"), "says search index"),
    "with a thesis": (with_a_thesis, r"sub/thesis\.txt is no part of the set of tiles"),
    "without a kind": (lambda folder: make(folder, "one", kind=None), "is not a set of tiles"),
    "damaged marker": (of_unreadable_kind, rf"{MARKER} is damaged"),
    "a file": (lambda folder: folder.write_text("all of it"), "is a file"),
}


@pytest.mark.parametrize("whose", FOREIGN)
def test_what_was_not_made_here_is_never_replaced(tmp_path, whose):
    makes, message = FOREIGN[whose]
    makes(tmp_path / "tiles")
    before, began = contents(tmp_path), False
    with pytest.raises(InputError, match=message) as caught, whole(tmp_path / "tiles", KIND):
        began = True
    assert not began and contents(tmp_path) == before
    assert str(tmp_path / "tiles") in str(caught.value) and re.search("[Nn]ame an", str(caught.value))


def test_a_folder_without_a_kind_replaces_no_other_and_fills_an_empty_one(tmp_path):
    (tmp_path / "tiles").mkdir()
    make(tmp_path / "tiles", "one", kind=None)
    with pytest.raises(InputError, match="a folder that is not empty, and is not replaced"):
        make(tmp_path / "tiles", "two", kind=None)
    assert contents(tmp_path) == {"tiles/sub/one": "one"}


def test_what_appears_during_the_work_is_not_replaced_either(tmp_path):
    with pytest.raises(InputError, match="is not a set of tiles"), whole(tmp_path / "tiles", KIND) as draft:
        draft.mkdir()
        somebodys(tmp_path / "tiles")
    assert contents(tmp_path) == {"tiles/thesis.txt": "all of it"}


def test_clutter_does_not_make_a_folder_somebodys(tmp_path):
    make(tmp_path / "tiles", "one")
    (tmp_path / "tiles" / "sub" / ".DS_Store").write_text("Finder was here")
    (tmp_path / "tiles" / ".ipynb_checkpoints").mkdir()
    (tmp_path / "tiles" / ".ipynb_checkpoints" / "a.ipynb").write_text("and so was Jupyter")
    assert contents(make(tmp_path / "tiles", "two")) == {"sub/two": "two"}


# Killed on the way


def test_killed_at_any_step_the_old_or_the_new_folder_is_there_after_the_next_sweep(tmp_path):
    target, outcomes = tmp_path / "tiles", []
    for step in range(200):
        make(target, "old")
        if not dies(lambda: make(target, "new", "two"), step):
            break
        files.sweep(tmp_path)
        outcomes.append(tuple(sorted(contents(target))))
        assert outcomes[-1] in {("sub/old",), ("sub/new", "sub/two")}
        files.check(target, KIND)
        assert [path.name for path in tmp_path.iterdir()] == ["tiles"]
        assert contents(make(target, "newest")) == {"sub/newest": "newest"}
    assert 10 < step < 200
    assert "sub/old" in outcomes[0] and "sub/new" in outcomes[-1]


def test_killed_at_any_step_a_file_is_old_or_new(tmp_path):
    target = tmp_path / "table.csv"

    def write() -> None:
        with whole(target) as draft:
            draft.write_text("new")

    seen = set()
    for step in range(100):
        target.write_text("old")
        if not dies(write, step):
            break
        files.sweep(tmp_path)
        seen |= set(contents(tmp_path).items())
    assert seen == {("table.csv", "old"), ("table.csv", "new")} and 3 < step < 100


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(("room", "name", "times"), [(os, "replace", 3), (shutil, "rmtree", 1)])
def test_whatever_fails_the_old_or_the_new_folder_is_there(tmp_path, monkeypatch, room, name, times, lasting):
    real, target, reached = getattr(room, name), tmp_path / "tiles", 0
    for fails_at in range(5):
        calls = 0

        def breaks(*arguments: object, fails_at: int = fails_at, **options: object) -> None:
            nonlocal calls
            calls += 1
            if calls == fails_at + 1 or (lasting and calls > fails_at):
                raise OSError("disk full")
            real(*arguments, **options)

        make(target, "old")
        expected = "new"
        with monkeypatch.context() as patched:
            patched.setattr(room, name, breaks)
            try:
                make(target, "new")
            except OSError as error:
                assert "disk full" in str(error)
                expected = "old"
        if lasting:
            files.sweep(tmp_path)
        assert contents(target) == {f"sub/{expected}": expected}
        reached += calls > fails_at
        make(target, "newest")
        assert [path.name for path in tmp_path.iterdir()] == ["tiles"]
    assert reached == times


def test_a_run_that_is_alive_keeps_its_workshop(tmp_path):
    with whole(tmp_path / "a.csv") as first:
        first.write_text("mine")
        with whole(tmp_path / "a.csv") as second:
            second.write_text("other")
        assert files.sweep(tmp_path) == []
        assert first.read_text() == "mine"
    assert contents(tmp_path) == {"a.csv": "mine"}


def test_a_sweep_tells_whose_work_was_cut_off_and_does_not_touch_what_is_no_workshop(tmp_path):
    mine = tmp_path / ".a.thesis_1.draft"
    somebodys(mine)
    (tmp_path / ".kather.download").mkdir()
    (tmp_path / ".link.abcdefgh.draft").symlink_to(make(tmp_path / "tiles", "one"))

    def hangs() -> None:
        with whole(tmp_path / "b", KIND) as draft:
            somebodys(draft)
            os.kill(os.getpid(), signal.SIGKILL)

    assert dies(hangs, 1000)
    (left,) = tmp_path.glob(".b.*.draft")
    assert [int((left / f"{MARKER}.lock").read_text())] == files.sweep(tmp_path)
    assert not left.exists()
    assert contents(tmp_path) == {".a.thesis_1.draft/thesis.txt": "all of it", "tiles/sub/one": "one"}
    assert (tmp_path / ".kather.download").is_dir() and (tmp_path / ".link.abcdefgh.draft").is_symlink()


def test_it_works_where_nothing_can_be_locked(tmp_path, monkeypatch):
    def unsupported(*_: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with whole(tmp_path / "tiles", KIND) as draft:
        draft.mkdir()
        files.sweep(tmp_path)  # a workshop that nobody can lock is not taken for abandoned
        somebodys(draft / "sub")
    assert contents(tmp_path) == {"tiles/sub/thesis.txt": "all of it"}
    assert [path.name for path in tmp_path.iterdir()] == ["tiles"]


# What was written


def test_a_folder_is_what_was_written_or_the_file_is_named(tmp_path):
    target = make(tmp_path / "tiles", "one", "two")
    files.check(target, KIND)
    with pytest.raises(InputError, match="is not a search index"):
        files.check(target, "search index")
    (target / "sub" / "two").write_text("twp")
    with pytest.raises(InputError, match=r"sub/two is damaged"):
        files.check(target, KIND)
    files.check(target, KIND, own=["sub"])  # who reads what is in there checks it
    (target / "sub" / "two").unlink()
    with pytest.raises(InputError, match=r"sub/two is missing"):
        files.check(target, KIND, own=["sub"])
    with pytest.raises(InputError, match=rf"has no {MARKER}"):
        files.check(tmp_path / "nowhere", KIND)


def test_kept_steps_are_removed_and_nothing_else(tmp_path):
    folder, step = tmp_path / "steps", "0123456789abcdef" * 4
    for name in (f"{step}.pt", f"{step}.pt.damaged", f"{step[::-1]}.safetensors"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("a step")

    def hangs() -> None:
        with whole(folder / f"{step}.pt") as draft:
            draft.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)

    assert dies(hangs, 1000)
    (folder / "thesis.pt").write_text("all of it")
    files.empty(folder)
    assert contents(folder) == {"thesis.pt": "all of it"} and len(list(folder.iterdir())) == 1
    (folder / "thesis.pt").unlink()
    files.empty(folder)
    files.empty(folder)
    assert not folder.exists()


def test_files_with_the_same_bytes_are_together_and_nothing_else(tmp_path):
    begin = b"x" * 5000
    contents = {"a": begin + b"1", "b": begin + b"2", "c": begin + b"1", "d": b"", "e": b"", "f": b"1"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "g").symlink_to("f")
    (tmp_path / "h").symlink_to("nowhere")
    same = files.alike(sorted(tmp_path.iterdir()))
    assert [[file.name for file in group] for group in same] == [["a", "c"], ["f", "g"]]
