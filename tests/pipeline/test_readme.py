"""The README says what is so: its numbers are those of the reports, its commands exist, its links lead somewhere."""

import re
import shlex
import shutil
import subprocess
import sys

import pandas as pd
import pytest
import torch
from PIL import Image

from lib import paths, search
from lib.errors import InputError
from lib.pipeline import archive
from tests.images import pictures

TEXT = (paths.ROOT / "README.md").read_text(encoding="utf-8")
FOUND = "<!-- findings -->"
MAKEFILE = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
COMMANDS = sorted(
    set(re.findall(r"`(make [^`<]+?)(?: DATA=<folder>)?`", TEXT)) | set(re.findall(r"^(make .*)$", TEXT, flags=re.M))
)


def sentences(text: str) -> list[str]:
    """The sentences that a reader sees: without code, comments, tables and the targets of links."""
    text = re.sub(r"```.*?```|<!--.*?-->|^\|.*$", "\n\n", text, flags=re.S | re.M)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"(?<=[.!?])[*)]*\s+|\n\s*\n|\n(?=[*#]|\d+\. )", text)
    return [part for part in parts if part.strip()]


def test_the_page_is_short_and_so_are_its_sentences_and_tables():
    assert len(TEXT.split()) <= 900
    assert TEXT.index("make reproduce") < TEXT.index("make test") < TEXT.index("make lab") < TEXT.index(FOUND)
    assert [part for part in sentences(TEXT) if len(part.split()) > 25] == []
    assert all(line.count("|") <= 6 for line in TEXT.splitlines() if line.startswith("|"))
    assert len(sentences("One is short. Two [is a link](a.b), too.\n\n* Three")) == 3


def test_words_are_explained_before_the_findings_use_them():
    for word in ("**head**", "**plain features**", "MAP@k", "**Bold**", "*First answer*", "*patient*", "*Curved*"):
        assert 0 <= TEXT.index(word) < TEXT.index(FOUND)


def test_the_first_picture_shows_what_its_caption_says():
    """Eight queries, one per tissue; of those drawn, the head gains most on the upper and harms the lower most."""
    rows = pd.read_csv(paths.report("hyper_dino", "sample", "kather", "queries") / "figure_beside.csv")
    right = rows.groupby(["query", "method"])["right"].sum().unstack()
    gains = right["with the head"] - right["plain features"]
    assert "Of eight queries the head helps the upper one most, and harms the lower one most." in TEXT
    assert len(gains) == rows["query_class"].nunique() == 8 and gains.max() > 0 > gains.min()
    assert not rows["own_group"].any() and rows["rank"].max() == 10


@pytest.mark.parametrize("command", COMMANDS)
def test_make_knows_every_command(command):
    done = subprocess.run([*command.split(), "--dry-run"], cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_target_of_make_is_described():
    targets = re.findall(r"^([a-z-]+):.*##", MAKEFILE, flags=re.M)
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.M)[1].split()
    assert sorted(targets) == sorted(set(phony) - {"lint", "unit", "check-notebooks"})


(ONE_LOSS,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)
OWN = re.findall(r"^make (?:check|archive|ask) .*$", TEXT, flags=re.M)
SNIPPET = "\n".join(
    re.findall(r"^(?:    (.*))?$", search.__doc__.partition("::\n")[2].partition("Without")[0], flags=re.M)
)
EXACT = re.match(r".*^distances, indices = nearest\(.*?\n", SNIPPET, flags=re.S | re.M)[0]
"""The snippet as far as the exact search."""


def clusters(d: int, n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """``n`` vectors (n, d) around 20 places, mostly noise and as long as those of a network; and the place of each."""
    centres = torch.randn(20, d, generator=torch.Generator().manual_seed(99))
    random = torch.Generator().manual_seed(seed)
    place = torch.randint(20, (n,), generator=random)
    return centres[place] + 2 * torch.randn(n, d, generator=random), place


@pytest.mark.parametrize("form", [torch.Tensor.clone, torch.Tensor.numpy], ids=["tensors", "arrays"])
@pytest.mark.parametrize("d", [32, 128, 384])
def test_the_code_runs_as_it_stands_and_finds_what_flat_space_finds(d, form, tmp_path):
    (gallery, place), (query, place_of_query) = clusters(d, 1500, 0), clusters(d, 100, 1)

    def precision(found: torch.Tensor) -> float:
        return (place[found[:, :10]] == place_of_query[:, None]).double().mean().item()

    flat = precision(torch.cdist(query.double(), gallery.double()).topk(10, largest=False).indices)
    for code in (EXACT, SNIPPET):
        found = {"gallery": form(gallery), "query": form(query), "folder": tmp_path / "archive"}
        found["patients"] = ["p1"] * len(gallery)
        exec(code, found)
        assert precision(found["indices"]) >= flat - 0.005
        assert (found["distances"].diff(dim=1) >= 0).all()
        points = found["query"].double(), found["gallery"].double()
        exact = found["ball"].pairwise(*points).topk(20, largest=False)
        torch.testing.assert_close(found["distances"], exact.values.float())
        assert torch.equal(found["indices"], exact.indices)
        assert code is EXACT or torch.equal(found["ids"], exact.indices)


def test_one_loss_learns_and_without_a_start_finds_as_few_as_the_page_says(capsys):
    """The number in the text is that of a training; another processor may find one of the 80 more or fewer."""
    start = "head.start(old, norm=0.3)\n"
    assert start in ONE_LOSS
    printed = []
    for code in (ONE_LOSS, ONE_LOSS.replace(start, "")):
        exec(code, {})
        printed.append(float(re.search(r"\d\.\d*", capsys.readouterr().out).group()))
    stated = [float(number) for number in re.search(r"falls from (\S+) to about (\d\.\d+)", TEXT).groups()]
    assert printed == pytest.approx(stated, abs=0.03)


def test_a_folder_of_tiles_is_checked_kept_and_asked(tmp_path, monkeypatch, capsys):
    """As the page says it, in a folder with tiles of its layout: twins of the new tile lie with two patients."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    names = (f"class_{number % 2}/patient_{number % 6}/tile_{number:02}.png" for number in range(24))
    pictures(tmp_path / "my_tiles", *names, side=40)
    Image.open(tmp_path / "my_tiles/class_0/patient_0/tile_00.png").save(tmp_path / "new_tile.png", compress_level=1)
    shutil.copy(tmp_path / "new_tile.png", tmp_path / "my_tiles/class_1/patient_1/twin.png")
    said = []
    for command in OWN:
        # without the option a make within a make ends with a line of its own
        dry = [*command.split(), "--dry-run", "--no-print-directory"]
        done = subprocess.run(dry, cwd=paths.ROOT, capture_output=True, text=True, check=True)
        words = shlex.split(done.stdout.splitlines()[-1])
        monkeypatch.setattr(sys, "argv", words[words.index(archive.__name__) :])
        archive.main()
        said.append(capsys.readouterr().out)
    checked, built, answer = said
    assert "25 images" in checked and "6 patients" in checked
    assert "make ask IMAGE=" in built and (tmp_path / "archive/my_tiles/about.json").is_file()
    found = [line.split() for line in answer.splitlines() if re.match(r"\d", line)]
    assert len(found) == 10 and found[0][1:] == ["class_0", "0.000", "patient_0", "class_0/patient_0/tile_00.png"]
    assert "Vote of 5" in answer and (tmp_path / answer.split("Picture: ")[1].strip()).is_file()


def test_without_the_scale_the_code_is_refused_in_words():
    (gallery, _), (query, _) = clusters(384, 200, 0), clusters(384, 5, 1)
    found = {"gallery": gallery, "query": query}
    with pytest.raises(InputError, match=r"query row \d lies on the rim of the ball"):
        exec(EXACT.replace("scale(", "ball.exp0("), found)
