"""Long work shows that it moves: a bar for people who watch, a plain line now and then where nobody does."""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm.auto import tqdm

T = TypeVar("T")


def watched() -> bool:
    """Whether a person watches: a terminal, or a live notebook that was not started headlessly."""
    if os.environ.get("HEADLESS") or os.environ.get("CI"):
        return False
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def track(items: Iterable[T], *, total: int, what: str, unit: str = "it", done: int = 0) -> Iterator[T]:
    """Yield ``items`` and report progress on standard error.

    Args:
        items: what is worked through.
        total: how many there are, counting those that were done before.
        what: the name of the work, for the bar or the lines.
        unit: what one item is called.
        done: how many were done before (resumed work).
    """
    if watched():
        yield from tqdm(items, total=total, initial=done, desc=what, unit=unit)
        return
    said = 10 * done // total if total else 10
    for item in items:
        yield item
        done += 1
        if (tenth := 10 * done // total) > said:
            said = tenth
            print(f"{what}: {done} of {total} {unit}", file=sys.stderr, flush=True)
