"""The README says what is so: its numbers are those of the reports, its commands exist, its links lead somewhere."""

import re
import subprocess

import pytest
import torch

from lib import paths
from lib.datasets import DATASETS
from lib.pipeline import readme

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


def test_the_code_runs_as_it_stands(tmp_path):
    code = re.search(r"```python\n(.*?)```", TEXT, flags=re.S)[1]
    random = torch.Generator().manual_seed(0)
    gallery, query = (0.2 * torch.randn(n, 16, generator=random) for n in (300, 5))
    found = {"gallery": gallery, "query": query, "folder": tmp_path / "archive"}
    exec(code, found)
    exact = found["ball"].pairwise(found["query"], found["gallery"]).topk(20, largest=False)
    assert torch.equal(found["indices"], exact.indices)
    torch.testing.assert_close(found["distances"], exact.values)
