"""Writing tables and figures to ``reports/``, each with the story of where it comes from."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from matplotlib import figure as mpl

from lib import devices, paths
from lib.datasets.catalogue import facts
from lib.figures import style
from lib.files import whole
from lib.study import saved
from lib.study.columns import declared
from lib.study.markdown import literal
from lib.study.shown import Figure, Table

P_VALUES = ("p_value", "p_seeds", "p_holm", "wilcoxon_p", "wilcoxon_holm")
"""Columns that no rebuild is compared in: without an effect any p is as likely as another."""

Shown = TypeVar("Shown", Table, Figure)


def _number(value: float) -> str:
    """A number of a csv: four decimals, or as many digits where these would leave less of it, as of a learning rate.

    >>> _number(83.33333), _number(0.0), _number(3e-05), _number(0.00039992)
    ('83.3333', '0.0000', '3.000e-05', '3.999e-04')
    """
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.3e}"


@dataclass(frozen=True)
class Run:
    """What every table and figure of one notebook run has in common.

    Attributes:
        notebook: file name without suffix.
        profile: ``demo``, ``sample`` or ``paper``.
        dataset: short name of the images, also the folder in ``reports/``; "all" where there are none.
        images: a phrase that says exactly which images were used and how many.
        digest: a hash of these images, by which two runs know whether they saw the same.
        encoder: a phrase that names the encoder and the length of its features.
        parameters: the notebook's parameters, by the names that captions use.
    """

    notebook: str
    profile: str
    dataset: str
    images: str
    digest: str
    encoder: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def paper(self) -> str:
        """The paper whose notebook this is, a folder of ``lib/papers``."""
        return saved.place(self.notebook)[0]

    @property
    def section(self) -> str:
        """The notebook's name without number and paper: what its stage, its module and its reports are called."""
        return saved.place(self.notebook)[1]

    @property
    def layouts(self) -> dict[str, Callable[[pd.DataFrame], str]]:
        """Table → its layout, as the section's module declares it."""
        return declared(self.paper, self.section)

    @property
    def folder(self) -> Path:
        """Where the run's tables and figures go."""
        return paths.report(self.paper, self.profile, self.dataset, self.section)

    @property
    def stamp(self) -> str:
        """The line under every table and figure; the notebook's parameter ``n_queries``, if any, is shown."""
        queries = f" · queries: {self.parameters['n_queries']}" if "n_queries" in self.parameters else ""
        return (
            f"Profile: {self.profile} · images: {self.images}{queries} · encoder: {self.encoder} · "
            f"notebook: {self.notebook}"
        )

    def save(self, name: str, shown: Shown) -> Shown:
        """Write a table or figure to the run's folder under ``name``; return it with its stamp, for a cell to show.

        Both get ``<name>.csv`` (every number), a part of the folder's page (a table in the paper's layout, or the
        picture, above the caption) and of its record (where they come from and how far a rebuild may deviate), see
        :mod:`lib.study.saved`; a figure also ``<name>.png``. A table without Markdown gets it from its csv.
        """
        title = f"{saved.title(self.paper)}, {shown.title}" + f" on {self.dataset}" * (self.dataset != "all")
        with whole(self.folder / f"{name}.csv") as draft:
            shown.rows.to_csv(draft, index=False, float_format=_number, lineterminator="\n")
        if isinstance(shown, Table) and shown.markdown is None:
            shown = replace(shown, markdown=self.layouts[name](pd.read_csv(self.folder / f"{name}.csv")))
        if isinstance(shown, Figure):
            style.save(shown.figure, self.folder / f"{name}.png")
        tolerance = {"share": saved.SHARE, "free": [c for c in shown.rows.columns if c in {*shown.free, *P_VALUES}]}
        about = {"title": title, "caption": shown.caption, "tolerance": tolerance}
        body = shown.markdown if isinstance(shown, Table) else f"![{title}]({name}.png)"
        below = literal(f"{shown.caption}\n\n{self.stamp}")
        run = {"paper": self.paper} | asdict(self)
        if (device := devices.name()) != devices.CPU:  # of which no record speaks
            run["device"] = device
        saved.add(self.folder, name, run, about, f"## {title}\n\n{body}\n\n{below}")
        return replace(shown, stamp=self.stamp)

    def save_pictures(self, name: str, shown: Figure, bare: mpl.Figure) -> Figure:
        """:meth:`save` of a figure that shows images; returns the one with its images, as a notebook shows it.

        Images that may be published go to the reports, with the line that their licence asks for. Of others the reports
        get ``bare``, the figure without them, and the one with them goes to ``build/figures/<profile>/<dataset>/``.
        """
        source = facts(self.dataset).pictures
        shown = replace(shown, caption=f"{shown.caption} {source}" if source else shown.caption)
        if source is not None:
            return self.save(name, shown)
        style.save(shown.figure, paths.BUILD / "figures" / self.profile / self.dataset / f"{name}.png")
        text = f"{shown.caption} The pictures themselves are not published; a run puts them below build/figures."
        self.save(name, replace(shown, caption=text, figure=bare))
        return shown
