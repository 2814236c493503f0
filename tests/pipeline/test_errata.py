"""Every erratum that is cited is in the list, once, with what the paper says and what we do."""

import json
import re

from lib import paths

NUMBER = re.compile(r"\b(?:HD|HV|AC|LP|LT)-\d+\b")
LIST = (paths.ROOT / "reports" / "errata.md").read_text(encoding="utf-8")
ROWS = [line.strip("| ").split(" | ") for line in LIST.splitlines() if NUMBER.match(line.removeprefix("| "))]
TEXTS = ("lib/**/*.py", "tests/**/*.py", "pipelines/**/*.yaml", "params.yaml", "README.md", "reports/*/*/*/*/*.md")


TENS = {"HD": "1", "HV": "2", "AC": "3", "LP": "4", "LT": "5"}
"""Paper → how its notebooks begin; those that begin with 9 are beyond the papers."""


def told() -> dict[str, set[str]]:
    """Notebook → the numbers in what its author wrote, not in the pictures of its outputs."""
    found = {}
    for path in paths.NOTEBOOKS.glob("[0-9]*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found[path.name] = set(NUMBER.findall("\n".join("".join(cell["source"]) for cell in cells)))
    return found


def cited() -> dict[str, str]:
    """Number → a file that cites it."""
    found = {}
    for path in (path for pattern in TEXTS for path in paths.ROOT.glob(pattern)):
        found |= dict.fromkeys(NUMBER.findall(path.read_text(encoding="utf-8")), path.name)
    for name, numbers in told().items():
        found |= dict.fromkeys(numbers, name)
    return found


def test_every_number_that_is_cited_is_in_the_list():
    listed, used = {row[0] for row in ROWS}, cited()
    assert {"HD-11", "LP-9"} <= used.keys()
    assert {number: where for number, where in used.items() if number not in listed} == {}


def test_every_erratum_says_what_the_paper_does_and_what_we_do():
    numbers = [row[0] for row in ROWS]
    counts = {paper: sum(number.startswith(paper) for number in numbers) for paper in ("HD", "HV", "AC", "LP", "LT")}
    assert numbers == [f"{paper}-{number + 1}" for paper, count in counts.items() for number in range(count)]
    assert all(len(row) == 3 and min(map(len, row[1:])) > 15 for row in ROWS)


def test_every_erratum_is_told_in_a_notebook_of_its_paper_or_beyond():
    by = told()
    missing = [
        row[0] for row in ROWS if not any(row[0] in by[name] for name in by if name.startswith((TENS[row[0][:2]], "9")))
    ]
    assert missing == []


def test_the_list_is_linked_where_people_start():
    for page in ("README.md", "reports/index.md"):
        assert "errata.md)" in (paths.ROOT / page).read_text(encoding="utf-8")
