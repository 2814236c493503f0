"""Pages for readers: README.md, ``reports/findings.md`` and ``reports/index.md`` (``python -m lib.pipeline.pages``).

They are written by hand, but for what stands between ``<!-- name -->`` and ``<!-- /name -->``: that is made from
``reports/`` and ``CITATION.cff``.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from lib import errors, paths
from lib.datasets.catalogue import DATASETS, facts
from lib.encoders.models import MODELS
from lib.files import whole
from lib.pipeline import profiles
from lib.study import saved
from lib.study.markdown import literal, markdown_table
from lib.study.saved import place

PART = re.compile(r"<!-- ([\w ]+) -->\n\n.*?\n\n<!-- /\1 -->", re.S)
PROFILES = ("demo", "sample", "gpu", "paper")


def update() -> None:
    """Bring all pages up to date."""
    write(paths.ROOT / "README.md", paths.ROOT / "README.md")
    for name in ("findings.md", "index.md"):
        write(paths.COMMITTED / name, paths.REPORTS / name)


def write(page: Path, target: Path) -> None:
    """Write ``page`` with its parts made anew to ``target``, which may be itself."""
    text = filled(page.read_text(encoding="utf-8"))
    with whole(target) as draft:
        draft.write_text(text, encoding="utf-8")


def filled(text: str) -> str:
    """``text`` with every part made anew.

    >>> filled("before <!-- licences -->\\n\\nold\\n\\n<!-- /licences --> after").count("| ") > 10
    True
    """
    return PART.sub(lambda match: f"<!-- {match[1]} -->\n\n{part(match[1])}\n\n<!-- /{match[1]} -->", text)


def part(name: str) -> str:
    """What stands between the markers of this name."""
    from lib.pipeline import findings, scores  # they need scipy, and a command is to begin at once

    kind, _, paper = name.partition(" ")
    return {
        "findings": lambda: f"{markdown_table(findings.front())}\n\n*{images()}.*",
        "differences": lambda: _table(findings.differences(), "question", "difference"),
        "claims": lambda: _table(scores.claims(paper), "method and measure", "images", "method's score"),
        "curvature": lambda: _table(findings.curvature(), "loss"),
        "papers": papers,
        "sections": sections,
        "licences": licences,
    }[kind]()


def _table(rows: pd.DataFrame, *columns: str) -> str:
    return markdown_table(once(rows, list(columns)))


def once(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The rows without what a cell of these columns repeats from the row above, if all columns before it repeat too.

    >>> rows = pd.DataFrame({"paper": ["ACIR", "ACIR", "Hyp-ViT"], "k": [1, 1, 1]})
    >>> once(rows, ["paper", "k"]).to_numpy().tolist()
    [['ACIR', '1'], ['', ''], ['Hyp-ViT', '1']]
    """
    texts = rows[columns].astype(str)
    again = (texts == texts.shift()).cummin(axis=1)
    return rows.assign(**texts.mask(again, ""))


def images() -> str:
    """Which images the README's findings are of, and how many."""
    files = sorted(paths.REPORTS.glob("hyper_dino/sample/*/retrieval/table_tests.csv"))
    parts = [saved.record(file)["images"].replace(" of ", "/").split(", ") for file in files]
    return "; ".join(f"{name}: {count}, {groups}" for name, count, _, groups in parts)


# The index


def sections(root: str = "") -> str:
    """Every section of every paper, with links to its pages, and what runs would add that is not there.

    root: how links begin, from where they are shown.
    """
    parts = []
    for paper, title in titles().items():
        names = [path.stem for path in _notebooks() if place(path.stem)[0] == paper]
        rows = pd.DataFrame([_section(name, root) for name in names])
        parts += [f"## {title}", markdown_table(rows)]
        if lines := lacking(paper):
            parts += ["Not here yet; `make plan PROFILE=paper` says how to get it:", "\n".join(lines)]
    return "\n\n".join(parts)


def titles() -> dict[str, str]:
    """Every paper and its name for people, in the order of the notebooks."""
    return {paper: saved.title(paper) for paper in dict.fromkeys(place(file.stem)[0] for file in _notebooks())}


def _notebooks() -> list[Path]:
    return sorted(paths.NOTEBOOKS.glob("[1-9]*_*.ipynb"))


def _section(notebook: str, root: str) -> dict[str, str]:
    """A section's line: its notebook, what its paper numbers, its pages of synthetic tiles and of real images."""
    paper, section = place(notebook)
    records = [file for profile in PROFILES for file in _records(paper, profile, section)]
    numbered: dict[str, str] = {}
    for file in records:
        for name in saved.records(file.read_text(encoding="utf-8")):
            if re.fullmatch(r"(table|figure)_\d+", name):
                numbered.setdefault(name, f"[{_called(name)}]({root}{_page(file)}#{name})")
    pages: dict[str, list[str]] = {"synthetic": [], "real images": []}
    for file in records:
        profile, dataset = file.parts[-4:-2]
        title = dataset if profile == "demo" else facts(dataset).title + f", {profile}" * (profile != "sample")
        pages["synthetic" if profile == "demo" else "real images"].append(f"[{title}]({root}{_page(file)})")
    link = f"[{notebook[:2]} {section.replace('_', ' ')}]({'' if root else '../notebooks/'}{notebook}.ipynb)"
    lines = {kind: " · ".join(links) or "–" for kind, links in pages.items()}
    return {"notebook": link, "of the paper": " · ".join(numbered[n] for n in sorted(numbered)) or "–"} | lines


def _records(paper: str, profile: str, section: str) -> list[Path]:
    return sorted((paths.REPORTS / paper / profile).glob(f"*/{section}/{saved.RECORD}"), key=_natural)


def _natural(path: Path) -> str:
    """Sorts numbers in names by their size: tissue_40x before tissue_100x."""
    return re.sub(r"\d+", lambda match: match.group().zfill(4), path.as_posix())


def _page(record: Path) -> str:
    return record.with_name(saved.PAGE).relative_to(paths.REPORTS).as_posix()


def _called(name: str) -> str:
    """How a paper calls what it numbers.

    >>> _called("table_5"), _called("figure_3")
    ('Table 5', 'Fig. 3')
    """
    return name.replace("table_", "Table ").replace("figure_", "Fig. ")


def lacking(paper: str) -> list[str]:
    """One line for each need of a run of the sample or the paper profile: the notebooks that it would fill."""
    needs: dict[str, list[str]] = {}
    for profile in ("sample", "paper"):
        runs = profiles.runs(profile)
        for stage, notebook in profiles.notebooks().items():
            for dataset, run in runs[stage].items() if place(notebook)[0] == paper else ():
                if not paths.report(paper, profile, dataset, place(notebook)[1]).exists():
                    needs.setdefault(f"needs {wanted(dataset, run)} (profile {profile})", []).append(notebook[:2])
    return [f"- {need}: notebook {', '.join(numbers)}" for need, numbers in needs.items()]


def wanted(dataset: str, run: dict[str, Any]) -> str:
    """What a run needs that the repository does not hold: images, and weights that have to be downloaded."""
    title = DATASETS[dataset].title if dataset in DATASETS else "a run"
    return f"{title}, weights of {run['encoder']}" if run.get("encoder") in MODELS else title


def licences() -> str:
    """The datasets of the papers, each once, with its licence and address."""
    known = [data for name, data in DATASETS.items() if name not in paths.DRAWN and data.licence]
    rows = [(data.title, data.licence, f"https://doi.org/{data.doi}" if data.doi else data.page) for data in known]
    return markdown_table(pd.DataFrame(rows, columns=["dataset", "licence", "address"]).drop_duplicates("address"))


def write_own(name: str) -> Path:
    """Write ``reports/own-<name>.md``: which method serves the own dataset ``name``; returns its path.

    Verdict, what is in the folder, one picture, one table; then a list of all pages that there are.
    """
    lines = [f"# {name}", *_verdict(paths.report("your", "own", name, "archive"))]
    links = []
    for notebook in _notebooks():
        paper, section = place(notebook.stem)
        for file in (file for file in _records(paper, "own", section) if file.parts[-3] == name):
            links.append(f"- [{saved.title(paper)}, {section.replace('_', ' ')}]({_page(file)})")
    lines += ["All pages on your own images (git sees none of them):", "\n".join(links)]
    target = paths.REPORTS / f"own-{name}.md"
    with whole(target) as draft:
        draft.write_text("\n\n".join([*lines, ""]), encoding="utf-8")
    return target


def _verdict(folder: Path) -> Iterator[str]:
    """The parts of the page that rest on notebook 93, whose reports are in ``folder``; nothing where it was not run."""
    if not (folder / saved.RECORD).exists():
        return
    link = folder.relative_to(paths.REPORTS).as_posix()
    yield saved.text(folder / "table_verdict.csv").split("\n\n")[1]
    yield f"## What is in the folder\n\n{_found(folder)}"
    for shown in ("figure_gain", "table_methods"):
        yield saved.text(folder / f"{shown}.csv").replace(f"]({shown}.png)", f"]({link}/{shown}.png)")


def _found(folder: Path, most: int = 20) -> str:
    """Images, classes and patients in words, then what was left out, by name."""
    counts = pd.read_csv(folder / "table_found.csv", dtype={"class": str})
    classes = ", ".join(f"{row.name_} ({row.images})" for row in counts.rename(columns={"class": "name_"}).itertuples())
    lines = [f"{saved.record(folder / 'table_found.csv')['images']}. Images of each class: {classes}."]
    if (file := folder / "table_left_out.csv").exists():
        rows = pd.read_csv(file, dtype=str)
        lines += ["Left out:", *(f"- {row.what}: {row.why}" for row in rows[:most].itertuples())]
        lines += [f"- and {len(rows) - most:,} more, in {file.name} beside the tables"] * (len(rows) > most)
    return literal("\n".join([lines[0], *([""] if len(lines) > 1 else []), *lines[1:]]))


# The papers


def references() -> list[dict[str, Any]]:
    """The papers of ``CITATION.cff``; ``abbreviation`` is the paper's name in :func:`titles`."""
    return yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]


def cited(reference: dict[str, Any]) -> str:
    """Title with its address, authors, and what is known of year and place.

    >>> authors = [{"family-names": name} for name in ("Łażewski", "Cyganek")]
    >>> cited({"title": "Hyper-DINO", "authors": authors})
    '*Hyper-DINO* (Łażewski and Cyganek)'
    """
    names = [author.get("family-names", author.get("name")) for author in reference["authors"]]
    written = " and ".join(names if len(names) < 3 else [names[0], "others"])
    isbn = f"ISBN {reference['isbn']}" if "isbn" in reference else None
    known = [reference.get("publisher", {}).get("name"), reference.get("year"), isbn, reference.get("notes")]
    title = f"*{reference['title']}*"
    title = f"[{title}]({reference['url']})" if "url" in reference else title
    return f"{title} ({', '.join(str(part) for part in [written, *known] if part)})"


def papers() -> str:
    """The papers and their notebooks, and the notebooks that go beyond them."""
    about = {reference["abbreviation"]: f" {cited(reference)}." for reference in references()}
    lines = []
    for paper, title in titles().items():
        files = [file for file in _notebooks() if place(file.stem)[0] == paper]
        links = "·".join(f"[{file.stem[:2]}](notebooks/{file.name})" for file in files)
        lines.append(f"* **{title}**:{about.get(title, '')} Notebooks {links}")
    return "\n".join(lines)


if __name__ == "__main__":
    errors.one_message(update)
