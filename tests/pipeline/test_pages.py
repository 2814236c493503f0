"""The pages are current, and their links lead somewhere; the index has every section, the errata every number."""

import json
import re

import pandas as pd
import pytest

from lib import paths
from lib.datasets.catalogue import DATASETS
from lib.pipeline import pages, profiles
from lib.study import saved
from lib.study.saved import place

NAMES = ("README.md", "reports/findings.md", "reports/index.md")
TEXTS = {name: (paths.ROOT / name).read_text(encoding="utf-8") for name in NAMES}
RUNS = {
    "demo": {"beyond_stage": {"tissue": {"encoder": "texture"}, "tissue_100x": {}, "tissue_40x": {}}},
    "sample": {"beyond_stage": {"kather": {"encoder": "texture"}}},
    "paper": {"beyond_stage": {"bh40x": {"encoder": "dino_vits16"}}},
}


@pytest.mark.parametrize("name", NAMES)
def test_the_generated_parts_are_current(name):
    assert pages.filled(TEXTS[name]) == TEXTS[name] and "<!-- /" in TEXTS[name]


def leads(page: str, target: str) -> bool:
    """Whether there is such a file, and such a heading or anchor in it, if one is named."""
    name, _, heading = target.partition("#")
    file = (paths.ROOT / page).parent / name
    if not heading or not file.is_file():
        return file.exists()
    text = file.read_text(encoding="utf-8")
    titles = [title.lower().replace(" ", "-") for title in re.findall(r"^##+ (.*)$", text, flags=re.M)]
    return heading in titles or f'<a id="{heading}"></a>' in text


@pytest.mark.parametrize("page", NAMES)
def test_links_and_pictures_lead_somewhere(page):
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", TEXTS[page]) if "://" not in target]
    assert targets and [target for target in targets if not leads(page, target)] == []


@pytest.fixture
def reports(tmp_path, monkeypatch):
    """Reports of one section, in a project with no other."""
    monkeypatch.setattr(paths, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(profiles, "notebooks", lambda: {"beyond_stage": "90_beyond_stage"})
    monkeypatch.setattr(profiles, "runs", RUNS.__getitem__)
    (tmp_path / "90_beyond_stage.ipynb").touch()
    return tmp_path / "reports"


def save(reports, profile: str, dataset: str, *names: str) -> None:
    for name in names:
        key = {"paper": "beyond", "profile": profile, "dataset": dataset, "notebook": "90_beyond_stage"}
        saved.add(reports / "beyond" / profile / dataset / "stage", name, key, {"title": "MAP@k"}, "")


def test_a_section_is_a_line_with_what_is_there_and_what_a_run_needs(reports):
    save(reports, "demo", "tissue", "table_2", "figure_more")
    save(reports, "demo", "tissue_100x", "table_4")
    save(reports, "demo", "tissue_40x", "table_3")
    save(reports, "sample", "kather", "table_2")
    (line,) = [line for line in pages.sections().splitlines() if "90 stage" in line]
    numbered, drawn, real = line.split(" | ")[1:]
    pages_of = [f"beyond/demo/{name}/stage/README.md" for name in ("tissue", "tissue_40x", "tissue_100x")]
    assert numbered == " · ".join(f"[Table {n}]({page}#table_{n})" for n, page in zip((2, 3, 4), pages_of, strict=True))
    assert re.findall(r"\((.+?)\)", drawn) == pages_of, "small magnifications stand before large ones"
    assert real == "[Kather 2016](beyond/sample/kather/stage/README.md) |"
    assert pages.lacking("beyond") == ["- needs BreakHis at 40X, weights of dino_vits16 (profile paper): notebook 90"]


def test_own_images_have_a_list_of_their_own(reports):
    for profile, dataset in (("demo", "tissue"), ("own", "eyes"), ("own", "birds")):
        save(reports, profile, dataset, "table_2")
    assert "eyes" not in pages.sections()
    listed = pages.write_own("eyes").read_text()
    assert "(beyond/own/eyes/stage/README.md)" in listed and "birds" not in listed


def test_the_index_has_every_committed_section_and_stays_light():
    index = TEXTS["reports/index.md"]
    for file in paths.COMMITTED.glob("*/*/*/*/run.json"):
        assert f"({file.with_name(saved.PAGE).relative_to(paths.COMMITTED).as_posix()})" in index
    assert len(index.encode()) < 20_000


def test_every_dataset_has_its_licence_and_address_once():
    text = pages.licences()
    for name in set(DATASETS) - {*paths.DRAWN, "folder"}:
        facts = DATASETS[name]
        assert text.count((facts.doi or facts.page) + " |") == 1 and facts.licence in text


def test_the_five_papers_are_cited_under_the_titles_of_the_published_tables():
    references = pages.references()
    published = set.union(*(set(pd.read_csv(file)["paper"]) for file in paths.PUBLISHED.glob("*.csv")))
    assert len(references) == 5 and {reference["title"] for reference in references} == published
    names = [reference["abbreviation"] for reference in references]
    assert [*names, pages.titles()["beyond"], pages.titles()["your"]] == list(pages.titles().values())
    for reference in references:
        assert reference["authors"] and reference["type"] and pages.cited(reference) in TEXTS["README.md"]
        assert "url" in reference or "isbn" in reference or "no public address" in reference["notes"]


def test_every_notebook_stands_with_its_paper():
    for line, (paper, name) in zip(pages.papers().splitlines(), pages.titles().items(), strict=True):
        found = re.findall(r"notebooks/(\w+)\.ipynb", line)
        assert line.startswith(f"* **{name}**") and {place(notebook)[0] for notebook in found} == {paper}


# The errata

NUMBER = re.compile(r"\b(?:HD|HV|AC|LP|LT)-\d+\b")
LIST = (paths.ROOT / "reports" / "errata.md").read_text(encoding="utf-8")
ROWS = [line.strip("| ").split(" | ") for line in LIST.splitlines() if NUMBER.match(line.removeprefix("| "))]
CITING = ("lib/**/*.py", "tests/**/*.py", "pipelines/**/*.yaml", "params.yaml", "README.md", "reports/*/*/*/*/*.md")
TENS = {"HD": "1", "HV": "2", "AC": "3", "LP": "4", "LT": "5"}
"""Paper → how its notebooks begin; those that begin with 9 are beyond the papers."""


def in_notebooks() -> dict[str, set[str]]:
    """Notebook → the numbers in what its author wrote, not in the pictures of its outputs."""
    cells = {
        path.name: json.loads(path.read_text(encoding="utf-8"))["cells"]
        for path in paths.NOTEBOOKS.glob("[0-9]*.ipynb")
    }
    return {name: set(NUMBER.findall("\n".join("".join(c["source"]) for c in of))) for name, of in cells.items()}


def test_every_erratum_that_is_cited_is_in_the_list_and_every_one_in_a_notebook():
    listed, by = [row[0] for row in ROWS], in_notebooks()
    files = [path for pattern in CITING for path in paths.ROOT.glob(pattern)]
    cited = set.union(*by.values(), *(set(NUMBER.findall(path.read_text(encoding="utf-8"))) for path in files))
    assert {"HD-11", "LP-9"} <= cited <= set(listed)
    ours = {number: {name for name in by if name.startswith((TENS[number[:2]], "9"))} for number in listed}
    assert [number for number in listed if not any(number in by[name] for name in ours[number])] == []


def test_every_erratum_says_what_the_paper_does_and_what_we_do():
    numbers = [row[0] for row in ROWS]
    counts = {paper: sum(number.startswith(paper) for number in numbers) for paper in TENS}
    assert numbers == [f"{paper}-{number + 1}" for paper, count in counts.items() for number in range(count)]
    assert all(len(row) == 3 and min(map(len, row[1:])) > 15 for row in ROWS)
