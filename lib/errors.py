"""Errors that speak to the person at the keyboard: what is wrong, where, and the way out."""

import sys
from collections.abc import Callable


class InputError(ValueError):
    """Something that was handed in cannot be used; the message names the file, row or value and the way out."""


class BrokenImage(InputError):
    """An image file that is empty, truncated or not an image."""


class MissingDataset(InputError):
    """A dataset that is not on this machine; the message says what it is, how large, and how to get it."""


class MissingWeights(InputError):
    """Encoder weights that are neither on this machine nor downloadable from here."""


def one_message(main: Callable[[], None]) -> None:
    """Run a command-line ``main``; an :class:`InputError` ends it with its message alone and exit status 2."""
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
