"""Errors that speak to the person at the keyboard: what is wrong, where, and the way out."""

import difflib
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


def one_message(main: Callable[[], None]) -> None:
    """Run a command-line ``main``; an :class:`InputError` ends it with its message alone and exit status 2.

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
