"""Long work shows that it moves: a bar for people who watch, a plain line now and then where nobody does."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tqdm.auto import tqdm

T = TypeVar("T")


def watched() -> bool:
    """Whether a person watches: a terminal, or a live notebook that was not started headlessly."""
    if os.environ.get("HEADLESS") or os.environ.get("CI"):
        return False
    ipython = sys.modules.get("IPython")
    return sys.stderr.isatty() or bool(ipython and ipython.get_ipython())


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
