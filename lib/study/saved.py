"""What one notebook run wrote: ``README.md`` shows its tables and pictures, ``run.json`` says where they come from.

Both lie in the section's folder ``reports/<paper>/<profile>/<dataset>/<section>``, beside a csv for each table and
figure and a png for each figure. The name of these files is the anchor of a table or figure on the page.
"""

import functools
import importlib
import json
import pkgutil
import re
from pathlib import Path
from typing import Any

from lib import devices, paths
from lib.files import whole

PAGE = "README.md"
RECORD = "run.json"
ANCHOR = re.compile(r'^<a id="(\w+)"></a>\n\n', re.M)

SHARE = 0.01
"""A rebuilt number may deviate from the committed one by this share of the largest number of its column.

With the pins of :mod:`lib.pins` every step of ``reports/bench/bits.md`` gave the same bits on all processors that were
tried; the share is for other processors, and for steps that are not among those.
"""

ELSEWHERE_SHARE, ELSEWHERE_POINTS = 0.15, 8.0
"""What was trained on another device may deviate by this share of its column's largest, and by so many points anyway.

On a GPU convolutions round to TF32 and sums have another order, so features differ by 0.3 %, and every training goes
its own way. With features of the demo moved by 0.3 %, scores of notebook 13 moved by up to 3.9 points and limits of
intervals by 1.8; in 52, where one training stands for a row, by 9.7 and 5.9.
"""


def place(notebook: str) -> tuple[str, str]:
    """The paper and the section that a notebook's file name without suffix tells.

    >>> place("13_hyper_dino_retrieval")
    ('hyper_dino', 'retrieval')
    """
    return of_stage(notebook.partition("_")[2])


def of_stage(stage: str) -> tuple[str, str]:
    """The paper and the section of a stage, such as hyper_dino_retrieval; papers are the folders of lib/papers."""
    paper = next(paper for paper in _papers() if stage.startswith(f"{paper}_"))
    return paper, stage.removeprefix(f"{paper}_")


def title(paper: str) -> str:
    """The name for people of a paper: ``TITLE`` of its room; a folder of reports without one is called as it is.

    It stands in the room of each paper, so that a new paper changes nothing that the others import.

    >>> title("hyp_vit")
    'Hyp-ViT'
    """
    return importlib.import_module(f"lib.papers.{paper}").TITLE if paper in _papers() else paper


@functools.cache
def _papers() -> list[str]:
    return [module.name for module in pkgutil.iter_modules([str(paths.ROOT / "lib/papers")]) if module.ispkg]


def add(folder: Path, name: str, run: dict[str, Any], about: dict[str, Any], text: str) -> None:
    """Put a table or figure into the page and the record of ``folder``, or replace the one of this name.

    Args:
        folder: of the section.
        name: of the csv, without suffix.
        run: where it comes from; what it shares with the folder's first table or figure is written once.
        about: what is its own, as title, caption and tolerance.
        text: what the page shows, in Markdown.
    """
    record = json.loads(_read(folder / RECORD) or json.dumps({"run": run, "shown": {}}))
    own = {key: value for key, value in run.items() if record["run"].get(key) != value}
    record["shown"][name] = about | own
    _write(folder / RECORD, json.dumps(record, indent=1, ensure_ascii=False))
    paper, profile, dataset, section = folder.parts[-4:]
    heading = f"# {title(paper)}, {section}, {profile}" + f" on {dataset}" * (dataset != "all")
    parts = _parts(folder) | {name: text}
    _write(folder / PAGE, "\n\n".join([heading, *(f'<a id="{key}"></a>\n\n{part}' for key, part in parts.items())]))


def device(record: dict[str, Any]) -> str:
    """What the numbers of a table or figure were trained on, by its :func:`record`, which of the CPU says nothing."""
    return record.get("device", devices.CPU)


def records(text: str) -> dict[str, dict[str, Any]]:
    """Name → what a ``run.json`` says of each table and figure: its run, title, caption and tolerance."""
    record = json.loads(text)
    return {name: {"name": name} | record["run"] | about for name, about in record["shown"].items()}


def record(file: Path) -> dict[str, Any]:
    """What is said of the table or figure in ``file``, its csv or png."""
    return records((file.parent / RECORD).read_text(encoding="utf-8"))[file.stem]


def text(file: Path) -> str:
    """What the page shows of the table or figure in ``file``: title, table or picture, caption and stamp."""
    return _parts(file.parent)[file.stem]


def _parts(folder: Path) -> dict[str, str]:
    _, *parts = ANCHOR.split(_read(folder / PAGE))
    return {name: part.strip() for name, part in zip(parts[::2], parts[1::2], strict=True)}


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _write(file: Path, text: str) -> None:
    with whole(file) as draft:
        draft.write_text(text + "\n", encoding="utf-8")
