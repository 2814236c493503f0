"""Every erratum that is cited is in the list, once, with what the paper says and what we do."""

import json
import re

from lib import paths

NUMBER = re.compile(r"\b(?:HD|HV|AC|LP|LT)-\d+\b")
LIST = (paths.ROOT / "reports" / "errata.md").read_text(encoding="utf-8")
ROWS = [line.strip("| ").split(" | ") for line in LIST.splitlines() if NUMBER.match(line.removeprefix("| "))]
TEXTS = ("lib/**/*.py", "tests/**/*.py", "pipelines/**/*.yaml", "params.yaml", "README.md", "reports/*/*/*/*/*.md")


def cited() -> dict[str, str]:
    """Number → a file that cites it; of a notebook what its author wrote, not the pictures in its outputs."""
    found = {}
    for path in (path for pattern in TEXTS for path in paths.ROOT.glob(pattern)):
        found |= dict.fromkeys(NUMBER.findall(path.read_text(encoding="utf-8")), path.name)
    for path in paths.NOTEBOOKS.glob("[0-9]*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
        found |= dict.fromkeys(NUMBER.findall(text), path.name)
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


def test_the_list_is_linked_where_people_start():
    for page in ("README.md", "reports/index.md"):
        assert "errata.md)" in (paths.ROOT / page).read_text(encoding="utf-8")
