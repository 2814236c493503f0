"""The README says what is so: its numbers are those of the reports, its commands exist, its links lead somewhere."""

import re
import subprocess

import pytest

from lib import paths
from lib.datasets import DATASETS
from lib.results import readme

TEXT = (paths.ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
COMMANDS = sorted(
    set(re.findall(r"`(make [^`<]+?)(?: DATA=<folder>)?`", TEXT)) | set(re.findall(r"^(make .*)$", TEXT, flags=re.M))
)


def test_the_generated_part_is_current():
    assert readme.filled(TEXT) == TEXT


def test_every_number_of_the_results_is_in_a_report():
    part = TEXT.partition(readme.START)[2].partition(readme.END)[0]
    values = set(re.findall(r"\d+\.\d\d", part))
    tables = "\n".join(path.read_text() for path in (paths.ROOT / "reports").rglob("table_*.csv"))
    reported = {f"{float(value):.2f}" for value in re.findall(r"\d+\.\d{4}", tables)}
    assert values and values <= reported


@pytest.mark.parametrize("command", COMMANDS)
def test_make_knows_every_command(command):
    done = subprocess.run([*command.split(), "--dry-run"], cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_links_and_pictures_lead_somewhere():
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", TEXT) if "://" not in target]
    assert targets and [target for target in targets if not (paths.ROOT / target).exists()] == []


def test_licences_are_those_of_the_catalogue():
    for name in ("kather", "breakhis", "ham10000"):
        assert DATASETS[name].doi in TEXT and DATASETS[name].licence in TEXT


def test_every_target_of_make_is_described():
    targets = re.findall(r"^([a-z-]+):.*##", MAKEFILE, flags=re.M)
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.M)[1].split()
    assert sorted(targets) == sorted(set(phony) - {"lint", "unit", "check-notebooks"})
