"""What real images say: committed reports of the sample, which the notebooks of the demo show at their end.

No image is needed: the tables and figures are in ``reports/<paper>/sample/<dataset>/<section>/`` of every clone. A
figure is a link to its file: ``reports/`` lies beside ``notebooks/``, in JupyterLab's copies too. Beside them stand
the large trainings of the profile ``gpu``, once they have been run.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import Markdown, display

from lib import paths
from lib.datasets.catalogue import DATASETS, facts
from lib.study import saved
from lib.study.store import Run

PROFILE, GPU = "sample", "gpu"
REAL_ALREADY = "These are real images already; what others say is in [reports/index.md](../reports/index.md)."
NOTHING = {
    PROFILE: "There is no sample report of {called}; `make reproduce PROFILE=sample DATA=<folder>` makes it.",
    GPU: "Of this there is no large training (224 px) yet; on a GPU, `make gpu` runs it.",
}
ABSENT = "No {} report of {} yet: {}."
LACKING = "{}: {}."
PART = "These are some of the tests; the correction counts all that the csv has."


@dataclass(frozen=True)
class Real:
    """What all datasets of the sample say in Markdown, one after the other; it shows itself in a notebook."""

    parts: tuple[str, ...]

    @property
    def markdown(self) -> str:
        """All words of it."""
        return "\n\n".join(self.parts)

    def _ipython_display_(self) -> None:
        for part in self.parts:
            display(Markdown(part))


def all_of(*reports: Real) -> Real:
    """One after the other; what they say alike, such as that nothing was run yet, once."""
    return Real(tuple(dict.fromkeys(part for report in reports for part in report.parts)))


def figures(run: Run, *names: str, profile: str = PROFILE) -> Real:
    """The figures of the sample that belong to a notebook, each with its caption, images and encoder.

    Args:
        run: of the notebook, whose paper and section are looked up.
        names: of figures, as they were saved; ``figure_*`` where a dataset has its own.
        profile: whose reports, those of the sample or of :data:`GPU`.
    """

    def shown(record: dict[str, Any], file: Path) -> str:
        link = f"![{record['title']}](../reports/{file.relative_to(paths.COMMITTED).as_posix()})"
        return f"{link}\n\n**{record['heading']}.** {_below(record)}"

    return _collected(run, names, ".png", shown, profile=profile)


def tables(
    run: Run,
    *names: str,
    rows: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
    lacking: str = "",
    profile: str = PROFILE,
) -> Real:
    """The tables of the sample, published rows and ours, each with caption, images and encoder.

    They are shown as they were saved; paired tests are laid out anew, as the section declares it.

    rows: the rows of paired tests that are shown, if not all.
    lacking: why a dataset with other reports of the notebook has no such table; without it, it is said to be missing.
    """
    layouts = run.layouts

    def shown(record: dict[str, Any], file: Path) -> str:
        _, *parts, _, _ = saved.text(file).split("\n\n")  # below the title, above caption and stamp
        tests = pd.read_csv(file)
        if "p_holm" in tests and file.stem in layouts:
            with suppress(AttributeError, KeyError):  # of an earlier version, which lacks what is read
                parts = [layouts[file.stem](rows(tests) if rows else tests)]
        text = "\n\n".join(parts)
        return f"**{record['heading']}**\n\n{text}\n\n{_below(record)}"

    return _collected(run, names, ".csv", shown, lacking, profile, note=PART if rows else "")


def overview(run: Run, say: Callable[[dict[str, pd.DataFrame]], str], name: str) -> Real:
    """What ``say`` makes of one table of all datasets of the sample, by their titles, as one Markdown table."""
    if run.profile != "demo":
        return Real((REAL_ALREADY,))
    files = {facts(dataset).title: folder / f"{name}.csv" for dataset, folder in _folders(run).items()}
    tables = {title: pd.read_csv(file) for title, file in files.items() if file.exists()}
    return Real((say(tables) if tables else NOTHING[PROFILE].format(called=name),))


def _collected(
    run: Run,
    names: tuple[str, ...],
    suffix: str,
    text: Callable[[dict[str, Any], Path], str],
    lacking: str = "",
    profile: str = PROFILE,
    note: str = "",
) -> Real:
    """A part for each file of each dataset of the profile.

    Of several ``names`` a dataset may have its own: it is said to miss them where it has none, but others of the
    section. ``lacking``: as in :func:`tables`. ``note``: a further sentence of every caption.
    """
    if run.profile != "demo":
        return Real((REAL_ALREADY,))
    of_each = {
        dataset: [file for name in names for file in sorted(folder.glob(f"{name}{suffix}"))]
        for dataset, folder in _folders(run, profile).items()
    }
    records = {file: _titled(saved.record(file), note) for files in of_each.values() for file in files}
    own, shared = _captions(records) if suffix == ".csv" else ({}, [])  # a picture is read with its whole caption
    parts = shared + [
        text(record | {"caption": own.get(file, record["caption"])}, file) for file, record in records.items()
    ]
    absent = [facts(dataset).title for dataset, files in of_each.items() if not files]
    called = ", ".join(dict.fromkeys(_readable(name, run.section) for name in names))
    if not parts:
        return Real((NOTHING[profile].format(called=called),))
    if absent:
        titles = ", ".join(absent)
        parts.append(LACKING.format(titles, lacking) if lacking else ABSENT.format(profile, called, titles))
    return Real(tuple(parts))


def _captions(records: Mapping[Path, Mapping[str, Any]]) -> tuple[dict[Path, str], list[str]]:
    """What each caption says of its own dataset only, and what those of one name share, said once above all.

    >>> of = {"a": "Heads by patient. Rows are methods.", "b": "Heads by image. Rows are methods."}
    >>> records = {name: {"about": "Scores", "caption": said} for name, said in of.items()}
    >>> _captions({Path(name, "table_1.csv"): record for name, record in records.items()})[1]
    ['**Scores, each dataset.** *Rows are methods.*']
    """
    sentences = {file: re.split(r"(?<=\.) (?=[A-Z])", record["caption"]) for file, record in records.items()}
    own, shared = {file: record["caption"] for file, record in records.items()}, []
    for name in dict.fromkeys(file.name for file in records):
        files = [file for file in records if file.name == name]
        alike = [said for said in sentences[files[0]] if all(said in sentences[file] for file in files)]
        if len(files) == 1 or not alike:
            continue
        shared.append(f"**{records[files[0]]['about']}, each dataset.** *{' '.join(alike)}*")
        own |= {file: " ".join(said for said in sentences[file] if said not in alike) for file in files}
    return own, shared


def _titled(record: dict[str, Any], note: str) -> dict[str, Any]:
    """``record`` with what it is ``about``, the ``heading`` of its dataset, and the note in its caption."""
    about = record["title"].removesuffix(f" on {record['dataset']}")
    caption = f"{record['caption']} {note}".strip()
    return record | {"about": about, "heading": f"{facts(record['dataset']).title}: {about}", "caption": caption}


def _below(record: Mapping[str, Any]) -> str:
    """Caption and stamp, as they stand below a table or figure."""
    return "\n\n".join(filter(None, [record["caption"] and f"*{record['caption']}*", _stamp(record)]))


def _readable(name: str, section: str) -> str:
    """What a sentence calls the files of ``name``; a pattern is no name.

    >>> _readable("figure_3", "queries"), _readable("figure_[45q]*", "queries")
    ('figure_3', 'figures of queries')
    """
    return f"{name.partition('_')[0]}s of {section}" if set(name) & set("*?[") else name


def _folders(run: Run, profile: str = PROFILE) -> dict[str, Path]:
    """Dataset → its reports of the section in that profile, in the catalogue's order, then by name."""
    rank = {name: place for place, name in enumerate(DATASETS)}
    there = {folder.parent.name: folder for folder in (paths.COMMITTED / run.paper / profile).glob(f"*/{run.section}")}
    return dict(sorted(there.items(), key=lambda item: (rank.get(item[0], len(rank)), item[0])))


def _stamp(record: Mapping[str, Any]) -> str:
    """Profile, images, encoder and notebook, as they stand under every table and figure."""
    return Run(**{name: record[name] for name in Run.__dataclass_fields__}).stamp
