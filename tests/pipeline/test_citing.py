"""CITATION.cff and the README name the five papers, and the README every notebook under its own."""

import re

import pandas as pd

from lib import paths
from lib.pipeline import citing
from lib.results.papers import PAPERS, place

TEXT = (paths.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_five_papers_are_cited_under_the_titles_of_the_published_tables():
    titles = [reference["title"] for reference in citing.references()]
    published = set()
    for file in paths.PUBLISHED.glob("*.csv"):
        published |= set(pd.read_csv(file)["paper"])
    assert len(titles) == 5 and set(titles) == published
    names = [reference["abbreviation"] for reference in citing.references()]
    assert [*names, PAPERS["beyond"]] == list(PAPERS.values())
    assert all(reference["authors"] and reference["type"] for reference in citing.references())


def test_the_readme_has_every_title_and_says_how_to_cite():
    assert all(citing.cited(reference) in TEXT for reference in citing.references())
    for reference in citing.references():
        assert "url" in reference or "isbn" in reference or "no public address" in reference["notes"]
    assert "(CITATION.cff)" in TEXT.partition("## Citing")[2].partition("##")[0]


def test_every_notebook_stands_with_its_paper():
    lines = citing.listed().splitlines()
    assert len(lines) == len(PAPERS)
    for line, (paper, name) in zip(lines, PAPERS.items(), strict=True):
        found = re.findall(r"notebooks/(\w+)\.ipynb", line)
        assert line.startswith(f"* **{name}**") and found
        assert {place(notebook)[0] for notebook in found} == {paper}
