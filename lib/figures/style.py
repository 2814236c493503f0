"""One house style: colour-blind safe, legible in grey, and the same bytes at every rebuild."""

import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from threading import RLock

import matplotlib as mpl
import seaborn as sns
from anyascii import anyascii
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font

from lib import paths
from lib.figures import screen
from lib.files import whole

PALETTE = sns.color_palette("colorblind")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("", (4, 1.5), (1, 1), (3, 1, 1, 1), (5, 1), (2, 2))
WIDTH = 7.2  # inches: the width of a page

SETTINGS = {
    "figure.dpi": 100,
    "savefig.dpi": 100,
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "svg.hashsalt": "hyperbolic-retrieval-companion",
    "svg.fonttype": "none",
    "figure.constrained_layout.use": True,
}


alone = RLock()
"""Held while something is drawn: matplotlib's settings are the process's, and sliders are answered in threads."""


def dark(color: tuple[float, float, float], most: float = 0.45) -> tuple[float, float, float]:
    """The color, darkened to a luminance of ``most``: a thin yellow line on white is not seen in grey.

    >>> dark((0.0, 0.0, 1.0)), [round(part, 2) for part in dark((1.0, 1.0, 0.0))]
    ((0.0, 0.0, 1.0), [0.49, 0.49, 0.0])
    """
    red, green, blue = color
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    share = min(1.0, most / luminance) if luminance else 1.0
    return red * share, green * share, blue * share


@contextmanager
def house() -> Iterator[None]:
    """Draw inside this context, one thread at a time; the settings of the caller are untouched."""
    with alone, mpl.rc_context():
        sns.set_theme(context="paper", style="whitegrid", palette=PALETTE)
        mpl.rcParams.update(SETTINGS)
        yield


def save(figure: Figure, path: Path) -> None:
    """Write ``figure`` to the png ``path`` as a screen shows it (:func:`lib.figures.screen.reduced`).

    If the environment says ``FORMAT=svg``, a figure of the reports is also drawn below ``build/svg``.
    Neither holds a date or a version, so that a rebuild gives the same bytes.
    """
    with whole(path) as draft:
        draft.write_bytes(screen.reduced(_drawn(figure, "png", {"Software": None})))
    if os.environ.get("FORMAT") == "svg" and path.is_relative_to(paths.REPORTS):
        name = path.relative_to(paths.REPORTS).with_suffix(".svg")
        with whole(paths.BUILD / "svg" / name) as draft:
            draft.write_bytes(_drawn(figure, "svg", {"Date": None, "Creator": None}))


def _drawn(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    with alone, mpl.rc_context(SETTINGS):
        figure.savefig(file := BytesIO(), format=kind, metadata=metadata)
    return file.getvalue()


def legible(name: str, width: int | None = None, most: int | None = None) -> str:
    """Return a name from the data (a class, a file) as text for a figure, in which no formula begins.

    name: letters that DejaVu Sans cannot draw become Latin ones. That font comes with matplotlib, so that a figure is
        the same on every machine; tables keep the name itself.
    width: letters to a line, most: lines; if given, longer ones are broken, and end in "…".

    >>> legible("naïve Größe"), legible("肝 (liver)"), legible("$y$"), legible("mucinous carcinoma of it", 12, 2)
    ('naïve Größe', 'Gan (liver)', '\\\\$y\\\\$', 'mucinous\\ncarcinoma…')
    """
    text = "".join(letter if letter == "\n" or ord(letter) in _glyphs() else anyascii(letter) for letter in name)
    if width is not None:
        broken = (textwrap.wrap(line, width, max_lines=most, placeholder="…") for line in text.split("\n"))
        text = "\n".join(part for parts in broken for part in parts)
    return text.replace("$", r"\$")


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())
