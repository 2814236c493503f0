"""Figures that show images: saved with them where their licence allows it, else without."""

from dataclasses import replace

from matplotlib import figure as mpl

from lib import paths
from lib.datasets.catalogue import facts
from lib.figures import style
from lib.study.shown import Figure
from lib.study.store import Run


def save(run: Run, name: str, shown: Figure, bare: mpl.Figure) -> Figure:
    """Write a figure that shows images; returns the one with its images, as a notebook shows it.

    Images that may be published go to the reports, with the line that their licence asks for. Of others the reports
    get ``bare``, the figure without them, and the one with them goes to ``build/figures/<profile>/<dataset>/``.
    """
    source = facts(run.dataset).pictures
    shown = replace(shown, caption=f"{shown.caption} {source}" if source else shown.caption)
    if source is not None:
        return run.save(name, shown)
    style.save(shown.figure, paths.BUILD / "figures" / run.profile / run.dataset / f"{name}.png")
    text = f"{shown.caption} The pictures themselves are not published; a run puts them below build/figures."
    run.save(name, replace(shown, caption=text, figure=bare))
    return shown
