"""Long work shows that it moves: a bar for people who watch, a plain line now and then where nobody does."""

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tqdm.auto import tqdm

T = TypeVar("T")
_here = threading.local()
"""Whether this thread reports nothing."""


def watched() -> bool:
    """Whether a person watches: a terminal, or a live notebook that was not started headlessly."""
    if os.environ.get("HEADLESS") or os.environ.get("CI"):
        return False
    ipython = sys.modules.get("IPython")
    return sys.stderr.isatty() or bool(ipython and ipython.get_ipython())


@contextmanager
def silently() -> Iterator[None]:
    """Inside of this nothing is reported: it is a part of something larger, and that reports."""
    before, _here.silent = getattr(_here, "silent", False), True
    try:
        yield
    finally:
        _here.silent = before


def track(
    items: Iterable[T],
    *,
    total: int,
    what: str,
    unit: str,
    size: Callable[[T], int] = lambda _: 1,
    note: Callable[[T], str] = lambda _: "",
) -> Iterator[T]:
    """Yield ``items`` and report on standard error how much is done.

    Args:
        items: what is worked through.
        total: how much there is, in units.
        what: the name of the work.
        unit: what is counted, in the plural.
        size: how many units an item is, for work in batches.
        note: what to say about the last item, for example its loss.
    """
    if getattr(_here, "silent", False):
        yield from items
        return
    done = 0
    with tqdm(total=total, desc=what, unit=f" {unit}", disable=not watched()) as bar:
        for item in items:
            yield item
            before, done = done, done + size(item)
            bar.set_postfix_str(note(item), refresh=False)
            bar.update(size(item))
            if bar.disable and 10 * done // total > 10 * before // total:
                parts = f"{what}: {done} of {total} {unit}", note(item)
                print(", ".join(filter(None, parts)), file=sys.stderr, flush=True)
