"""Whatever moment a process is killed at, the archive is as it was before or as it is afterwards."""

import shutil
from pathlib import Path

import pytest

from lib.archive.archive import Archive
from tests.archive.conftest import tile
from tests.test_files import dies

QUERY = tile("normal", 5)


def added(archive: Archive, place: Path) -> None:
    tile("normal", 999).save(place / "new.png")
    archive.add([place / "new.png"], ["normal"], ["patient_9"])


def removed(archive: Archive, place: Path) -> None:
    archive.remove([0, 1, 8])


@pytest.mark.parametrize("change", [added, removed])
def test_a_killed_save_leaves_the_archive_before_or_after(built, tmp_path, change):
    """One step after another, each from the same archive."""
    folder = tmp_path / "home" / "my_tiles"
    seen, step, killed = [], 0, True
    while killed:
        shutil.copytree(built, folder)
        archive = Archive.load(folder)
        before = archive.ask(QUERY).neighbours
        change(archive, tmp_path)
        after = archive.ask(QUERY).neighbours
        killed = dies(archive.save, step)
        found = Archive.load(folder)
        seen.append(len(found) == len(archive))
        assert found.ask(QUERY).neighbours.equals(after if seen[-1] else before)
        assert all(found.thumbnail(number)[:2] == b"\xff\xd8" for number in found.rows.index)
        assert [path.name for path in folder.parent.iterdir()] == ["my_tiles"]
        shutil.rmtree(folder)
        step += 3
    assert seen == sorted(seen) and {*seen} == {False, True}


def test_a_killed_first_save_leaves_nothing_or_all(archive, tmp_path):
    folder, step, seen = tmp_path / "home" / "my_tiles", 0, []
    while not seen or not seen[-1]:
        dies(lambda: archive.save(folder), step)
        seen.append(folder.exists())
        step += 7
    assert len(seen) > 3 and len(Archive.load(folder)) == 24
