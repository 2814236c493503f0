"""Errors that speak to the person at the keyboard: what is wrong, where, and the way out."""

import difflib
import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any


class InputError(ValueError):
    """Something that was handed in cannot be used; the message names the file, row or value and the way out."""


class BrokenImage(InputError):
    """An image file that is empty, truncated or not an image."""


class MissingDataset(InputError):
    """A dataset that is not on this machine; the message says what it is, how large, and how to get it."""


class MissingWeights(InputError):
    """Encoder weights that are neither on this machine nor downloadable from here."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """What may have been meant by ``name``, which is none of the ``known``; if nothing is near, the first 20 of these.

    >>> suggestion("kahter", ["kather", "ham10000"]), suggestion("x", ["kather", "ham10000"])
    ('did you mean kather?', 'choose one of kather, ham10000')
    """
    known = list(dict.fromkeys(known))
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"choose one of {', '.join(known[:20])}"


STOPPED = 130
"""The exit status of a command that was stopped by Ctrl-C."""

_DISK = {
    errno.ENOSPC: "the disk is full. Make room",
    errno.EDQUOT: "your share of the disk is full. Make room",
    errno.EROFS: "this disk can only be read. Make it writable, or take a copy elsewhere",
}


def of_disk(error: OSError) -> str | None:
    """What happened, and the way out, where the disk takes no more; None for any other error.

    >>> print(of_disk(OSError(errno.ENOSPC, "No space left on device", "build/x.npy")))
    build/x.npy cannot be written: the disk is full. Make room and run the same command again; what was finished is kept
    """
    if error.errno not in _DISK:
        return None
    file = os.fsdecode(error.filename) if error.filename else "a file"
    return f"{file} cannot be written: {_DISK[error.errno]} and run the same command again; what was finished is kept"


def one_message(main: Callable[[], None]) -> None:
    """Run a command-line ``main``; what a person can mend ends it in one sentence, without a traceback.

    An :class:`InputError`, or a disk that takes no more, ends it with exit status 2, Ctrl-C with :data:`STOPPED`.
    Warnings of ours are printed as what they say, without the line of code that they come from.
    """
    usual = warnings.formatwarning

    def plain(message: Warning | str, category: type[Warning], *where: Any) -> str:
        return f"notice: {message}\n" if category is UserWarning else usual(message, category, *where)

    warnings.formatwarning = plain
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        if (sentence := of_disk(error)) is None:
            raise
        print(f"error: {sentence}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("stopped; what was finished is kept, run the same command again to go on", file=sys.stderr)
        raise SystemExit(STOPPED) from None
