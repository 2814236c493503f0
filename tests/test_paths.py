"""Files appear whole or not at all."""

import pytest

from lib.paths import whole


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
