"""What ends a command ends it in one sentence, if a person can mend it, and with a status of its own."""

import errno
from pathlib import Path

import pytest

from lib import files
from lib.errors import InputError, one_message

KEPT = "and run the same command again; what was finished is kept"


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (InputError("row 7 has no label"), 2, "error: row 7 has no label"),
        (KeyboardInterrupt(), 130, "stopped; what was finished is kept, run the same command again to go on"),
        (OSError(errno.ENOSPC, "", "a.npy"), 2, f"error: a.npy cannot be written: the disk is full. Make room {KEPT}"),
        (OSError(errno.ENOSPC, ""), 2, f"error: a file cannot be written: the disk is full. Make room {KEPT}"),
    ],
)
def test_a_command_ends_in_one_sentence(capsys, error, status, sentence):
    def main():
        raise error

    with pytest.raises(SystemExit) as ended:
        one_message(main)
    assert ended.value.code == status and capsys.readouterr().err == f"{sentence}\n"


@pytest.mark.parametrize("error", [ZeroDivisionError(), PermissionError(errno.EACCES, "", "a.npy"), OSError("odd")])
def test_what_nobody_can_mend_by_hand_keeps_its_traceback(error):
    def main():
        raise error

    with pytest.raises(type(error)):
        one_message(main)


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path):
    """A write to a full disk says no name; /dev/full is one."""
    with (
        pytest.raises(OSError) as full,
        files.whole(tmp_path / "x.npy"),
        Path("/dev/full").open("wb", buffering=0) as disk,
    ):
        disk.write(b"all of it")
    assert full.value.errno == errno.ENOSPC and full.value.filename == str(tmp_path / "x.npy")
    assert not list(tmp_path.iterdir())
