"""Sliders, a picture and a text: the one kind of widget of this project."""

import html
import io
from collections.abc import Callable, Mapping

import ipywidgets as widgets
from IPython.display import Image
from matplotlib.figure import Figure

from lib.figures import style
from lib.widgets.slider import Slider

DPI = 100


class Board(widgets.VBox):
    """Sliders above, a picture and its numbers below; a moved slider redraws both.

    The picture is a plain PNG of fixed height, so that nothing flickers, and nothing is drawn while a slider is still
    being dragged. Every slider can be focused with Tab and moved with the arrow keys.

    Attributes:
        sliders: name → slider; each name is an argument of ``draw`` and ``describe``.
        picture: the PNG.
        readout: the numbers, as preformatted HTML.

    Args:
        sliders: as above.
        draw: values → figure.
        describe: values → text.
        height: of the picture, in pixels.
    """

    def __init__(
        self,
        sliders: Mapping[str, Slider],
        draw: Callable[..., Figure],
        describe: Callable[..., str],
        height: int,
    ) -> None:
        self.sliders = dict(sliders)
        self._draw, self._describe = draw, describe
        self.picture = widgets.Image(format="png", layout=widgets.Layout(height=f"{height}px", flex="0 0 auto"))
        self.readout = widgets.HTML()
        for slider in self.sliders.values():
            slider.observe(lambda _: self.redraw(), names="index")
        self.redraw()
        rows = widgets.Layout(display="flex", flex_flow="row wrap")
        below = [self.picture, self.readout]
        super().__init__([widgets.Box(list(self.sliders.values()), layout=rows), widgets.Box(below, layout=rows)])

    @property
    def values(self) -> dict[str, float]:
        """What the sliders say."""
        return {name: slider.value for name, slider in self.sliders.items()}

    @property
    def text(self) -> str:
        """The readout without its markup."""
        return self._describe(**self.values)

    def still(self) -> Image:
        """The picture as it stands, as an ordinary output: it is there for readers without a kernel too."""
        return Image(data=bytes(self.picture.value))

    def redraw(self) -> None:
        """Draw the picture and write the numbers for what the sliders say."""
        with style.alone:
            self.picture.value = png(self._draw(**self.values))
            self.readout.value = f"<pre>{html.escape(self.text)}</pre>"


def png(figure: Figure) -> bytes:
    """``figure`` as a PNG, compressed little and fast."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI, pil_kwargs={"compress_level": 1})
    return file.getvalue()
