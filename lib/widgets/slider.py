"""A slider that everybody can read: labelled, moved with the keyboard, announced as it is shown."""

from collections.abc import Sequence
from pathlib import Path

import anywidget
import numpy as np
from traitlets import Int, List, Unicode

from lib.errors import InputError


class Slider(anywidget.AnyWidget):
    """A slider over a list of values, each shown and announced with three digits.

    It is the browser's own range input. The sliders of ipywidgets have no accessible name, and a screen reader says
    0.6000000000000001 where they show 0.60, and the exponent where they show a power of ten.

    Attributes:
        index: the position, which the browser moves; it is sent when the slider is let go or a key is pressed.
        texts: what every position shows.

    Args:
        description: the label.
        values: of the positions, from left to right.
        start: one of the values.

    Raises:
        InputError: if ``start``, or a value that is set later, is not one of the values.
    """

    _esm = Path(__file__).with_name("slider.js")
    _css = Path(__file__).with_name("slider.css")
    description = Unicode().tag(sync=True)
    texts = List(Unicode()).tag(sync=True)
    index = Int().tag(sync=True)

    def __init__(self, description: str, values: Sequence[float], start: float) -> None:
        self.values = tuple(values)
        super().__init__(description=description, texts=[f"{value:.3g}" for value in self.values])
        self.value = start

    @property
    def value(self) -> float:
        """The value of the position."""
        return self.values[self.index]

    @value.setter
    def value(self, value: float) -> None:
        near = np.flatnonzero(np.isclose(self.values, value))
        if not near.size:
            raise InputError(
                f"the slider {self.description!r} has no position {value}; it has: {', '.join(self.texts)}"
            )
        self.index = int(near[0])

    def __repr__(self) -> str:
        return f"Slider({self.description!r}, {self.texts[self.index]})"
