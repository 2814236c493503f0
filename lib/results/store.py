"""Writing tables and figures to ``reports/``, each with the story of where it comes from."""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from lib import paths
from lib.figures import style
from lib.files import whole
from lib.results.markdown import markdown_table, percent
from lib.results.tolerance import SHARE

__all__ = ["Run", "markdown_table", "percent"]


P_VALUES = ("p_value", "p_holm", "wilcoxon_p", "wilcoxon_holm")
"""Columns that no rebuild is compared in: without an effect any p is as likely as another."""


@dataclass(frozen=True)
class Run:
    """What every table and figure of one notebook run has in common.

    Attributes:
        paper: short name, for example ``hyper_dino``.
        profile: ``demo``, ``sample`` or ``paper``.
        dataset: short name of the images, also the folder in ``reports/``.
        notebook: file name without suffix.
        images: a phrase that says exactly which images were used and how many.
        digest: a hash of these images, by which two runs know whether they saw the same.
        encoder: a phrase that names the encoder and the length of its features.
        parameters: the notebook's parameters.
    """

    paper: str
    profile: str
    dataset: str
    notebook: str
    images: str
    digest: str
    encoder: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the run's tables and figures go."""
        return paths.report(self.paper, self.profile, self.dataset, self.section)

    @property
    def section(self) -> str:
        """The notebook's name without number and paper: what its stage, its module and its reports are called."""
        return self.notebook.partition("_")[2].removeprefix(f"{self.paper}_")

    @property
    def stamp(self) -> str:
        """The line under every table and figure."""
        return f"Profile: {self.profile} · images: {self.images} · encoder: {self.encoder} · notebook: {self.notebook}"

    def save_table(
        self,
        name: str,
        title: str,
        frame: pd.DataFrame,
        markdown: str,
        caption: str,
        *,
        free: Collection[str] = (),
        of: float | None = None,
    ) -> Path:
        """Write ``<name>.csv`` (every number), ``.md`` (the paper's layout) and ``.json``; returns the md path.

        free: columns that a rebuild need not agree in, because the slightest change of a number turns them over: single
            answers, coordinates, which candidate won; p-values are always free.
        of: what numbers may deviate by :data:`SHARE` of, where it is not the largest number of the table: 100 for
            differences of percentages.
        """
        self._save_numbers(name, title, frame, caption, free, of)
        target = self.folder / f"{name}.md"
        with whole(target) as draft:
            draft.write_text(f"# {title}\n\n{markdown}\n\n{caption}\n\n{self.stamp}\n", encoding="utf-8")
        return target

    def save_figure(
        self,
        name: str,
        title: str,
        figure: Figure,
        frame: pd.DataFrame,
        caption: str,
        *,
        free: Collection[str] = (),
        of: float | None = None,
    ) -> Path:
        """Write ``<name>.svg``, ``.png``, what is drawn as ``.csv``, and ``.json``; returns the png path.

        free, of: as in :meth:`save_table`.
        """
        self._save_numbers(name, title, frame, caption, free, of)
        for suffix in ("svg", "png"):
            with whole(self.folder / f"{name}.{suffix}") as draft:
                style.save(figure, draft)
        return self.folder / f"{name}.png"

    def _save_numbers(
        self, name: str, title: str, frame: pd.DataFrame, caption: str, free: Collection[str], of: float | None
    ) -> None:
        """The numbers as csv, and as json where they come from and how far a rebuild may deviate."""
        if unknown := [column for column in free if column not in frame.columns]:
            raise ValueError(f"{name} has no column {', '.join(unknown)} that could be free")
        tolerance = {"share": SHARE, "free": [c for c in frame.columns if c in {*free, *P_VALUES}]}
        tolerance |= {} if of is None else {"of": of}
        with whole(self.folder / f"{name}.csv") as draft:
            frame.to_csv(draft, index=False, float_format="%.4f", lineterminator="\n")
        with whole(self.folder / f"{name}.json") as draft:
            record = {"name": name, "title": title, "caption": caption} | asdict(self) | {"tolerance": tolerance}
            draft.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
