"""The state of every table and figure, as one matrix a paper: what lies in ``reports/``, and what a run still needs."""

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from lib import files, paths
from lib.datasets.catalogue import DATASETS
from lib.encoders.models import MODELS
from lib.pipeline import profiles
from lib.results.markdown import markdown_table

PAPERS = {
    "hyper_dino": "Hyper-DINO",
    "linear_prototypes": "Linear prototypes",
    "beyond": "Beyond the papers",
}
COLUMNS = ["paper", "section", "name", "profile", "dataset", "notebook", "title", "images", "encoder", "link"]
DEMO = "demo"
"""Column of everything made from embedded tiles or from no images at all."""


def written(profile: str) -> Iterator[dict[str, Any]]:
    """The records of all tables and figures of ``profile``, each with ``section`` and ``link`` added."""
    for record in sorted(paths.REPORTS.glob(f"*/{profile}/*/*/*.json")):
        shown = next(path for path in map(record.with_suffix, (".md", ".png")) if path.exists())
        link = shown.relative_to(paths.REPORTS).as_posix()
        yield json.loads(record.read_text(encoding="utf-8")) | {"section": record.parts[-2], "link": link}


def lacking(built: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """What runs of the sample and the paper profile would make that is not in ``built``.

    A run makes what the demo's run of its notebook makes; ``table`` and ``figure`` stand for the run's own names.
    """
    notebooks, demo = profiles.notebooks(), profiles.runs("demo")
    made = set(zip(built["profile"], built["dataset"], built["notebook"], strict=True))
    for profile in ("sample", "paper"):
        for stage, datasets in profiles.runs(profile).items():
            shown = built[(built["profile"] == "demo") & (built["notebook"] == notebooks[stage])]
            example = next(iter(demo[stage].values()), {})
            for dataset, run in datasets.items():
                if (profile, dataset, notebooks[stage]) in made:
                    continue
                own = {example.get(kind): run.get(kind) for kind in ("table", "figure") if kind in example}
                for row in shown.to_dict("records"):
                    name = own.get(row["name"], row["name"])
                    yield (
                        row
                        | {"profile": profile, "dataset": dataset, "name": name, "link": "", "encoder": ""}
                        | {"images": f"needs {wanted(dataset, run)}"}
                    )


def wanted(dataset: str, run: dict[str, Any]) -> str:
    """What a run needs that the repository does not hold: images, and weights that have to be downloaded."""
    title = DATASETS[dataset].title if dataset in DATASETS else "a run"
    return f"{title}, weights of {run['encoder']}" if run.get("encoder") in MODELS else title


def overview() -> pd.DataFrame:
    """One row per table or figure and run: paper, section, name, profile, dataset, notebook, title, images, link.

    What is not there has no link, and ``images`` says what it needs.
    """
    records = [record for profile in ("demo", "sample", "paper") for record in written(profile)]
    built = pd.DataFrame(records, columns=COLUMNS)
    rows = pd.concat([built, pd.DataFrame(list(lacking(built)))], ignore_index=True)
    rows["added"] = [_number(name) is None for name in rows["name"]]  # what the paper numbers comes first
    order = ["notebook", "added", "name"]
    return rows.sort_values(order, kind="stable", ignore_index=True)[COLUMNS]


def label(name: str) -> str:
    """How the paper calls a table or figure; what we add goes by its word.

    >>> label("table_5"), label("figure_2"), label("figure_leakage")
    ('Table 5', 'Fig. 2', 'Figure: leakage')
    """
    kind, _, rest = name.partition("_")
    number = _number(name)
    words = {"table": ("Table {}", "Table: {}"), "figure": ("Fig. {}", "Figure: {}")}[kind]
    return words[number is None].format(number or rest.replace("_", " "))


def _number(name: str) -> str | None:
    """The number that the paper gives a table or figure, in its own digits."""
    found = re.fullmatch(r"[a-z]+_(\d+|[ivx]+)", name)
    return found and found[1].upper()


@functools.cache
def numbered() -> dict[tuple[str, str], str]:
    """(stage, name) → the dataset's title, for tables and figures that the paper has once for each dataset."""
    found = {}
    for stage, datasets in profiles.runs("paper").items():
        for dataset, run in datasets.items():
            found |= {(stage, run[kind]): DATASETS[dataset].title for kind in ("table", "figure") if kind in run}
    return found


def matrix(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per table or figure of one paper, one column for the demo and each dataset that has results."""
    column = rows["dataset"].where(rows["profile"] != "demo", DEMO)
    there = set(column[rows["link"] != ""])
    columns = [DEMO, *(dataset for dataset in DATASETS if dataset in there)]
    lines = []
    for (notebook, name), block in rows.assign(column=column).groupby(["notebook", "name"], sort=False):
        if (block["link"] == "").all():
            continue
        cells = {title_of(c): _cell(block[block["column"] == c]) for c in columns}
        whose = numbered().get((notebook.partition("_")[2], name))
        what = ", ".join(filter(None, (label(name), whose)))
        link = f"[{notebook[:2]}](../notebooks/{notebook}.ipynb)"
        lines.append({"": what, "what it shows": _about(block.iloc[0])} | cells | {"notebook": link})
    return pd.DataFrame(lines)


def title_of(dataset: str) -> str:
    """How the papers call a dataset."""
    return DATASETS[dataset].title if dataset in DATASETS else dataset


def _cell(block: pd.DataFrame) -> str:
    """Links, the best profile last; else what is needed; else nothing."""
    links = [f"[{profile}]({link})" for profile, link in zip(block["profile"], block["link"], strict=True) if link]
    return " · ".join(links) if links else next(iter(block["images"]), "–")


def _about(row: pd.Series) -> str:
    """The title without the paper's name and the dataset's, which head the table and the column."""
    title = re.sub(rf",? (on|in|of) {row['dataset']}\b", "", row["title"])
    return title.removeprefix(f"{PAPERS.get(row['paper'], '')}, ")


def missing(rows: pd.DataFrame) -> list[str]:
    """One line for each need: the tables and figures that it would fill."""
    lines = []
    for need, block in rows[rows["link"] == ""].groupby("images", sort=False):
        keys = {
            (notebook.partition("_")[2], name) for notebook, name in zip(block["notebook"], block["name"], strict=True)
        }
        own = keys & numbered().keys()
        named = ", ".join(label(name) for _, name in sorted(own))
        rest = f"{len(keys - own)} of the tables and figures above"
        where = " and ".join(sorted(set(block["profile"])))
        lines.append(f"- {need} (profile {where}): {' and '.join(filter(None, (named, rest)))}")
    return lines


def markdown(rows: pd.DataFrame) -> str:
    """``reports/index.md``: a matrix for each paper, and what is missing folded below it."""
    parts = [
        "# Every table and figure",
        "Made from `reports/` by `00_start_here`. *demo*: procedural tiles, never the paper's numbers. *sample*: real "
        "images, fewer than the paper had. *paper*: its own images, encoder and epochs. Which images, how many, "
        "which encoder and which parameters, stands below each table and in the json beside it.",
    ]
    for paper, title in PAPERS.items():
        block = rows[rows["paper"] == paper]
        if len(block):
            parts += [f"## {title}", markdown_table(matrix(block))]
        if lines := missing(block):
            parts += ["Not here yet; `make plan PROFILE=paper` says how to get it:", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def write() -> pd.DataFrame:
    """Write ``reports/index.md``; returns the overview."""
    rows = overview()
    _write(markdown(rows), paths.REPORTS / "index.md")
    return rows


def write_own(name: str) -> Path:
    """Write ``reports/own-<name>.md``, a list of what there is for the own dataset ``name``; returns its path."""
    rows = pd.DataFrame([record for record in written("own") if record["dataset"] == name])
    lines = [f"- [{label(row['name'])}, {row['title']}]({row['link']})" for row in rows.to_dict("records")]
    target = paths.REPORTS / f"own-{name}.md"
    about = "Tables and figures of your own images. None of this is under version control."
    _write("\n".join([f"# {name}", "", about, "", *lines, ""]), target)
    return target


def _write(text: str, target: Path) -> None:
    with files.whole(target) as draft:
        draft.write_text(text, encoding="utf-8")
