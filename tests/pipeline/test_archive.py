"""The commands on your own images: what a folder holds, and what is refused before or instead of an answer."""

import shutil
import sys

import numpy as np
import pytest
from PIL import Image

from lib import paths
from lib.archive import methods, trials
from lib.errors import InputError
from lib.pipeline import archive, check
from tests.images import pictures

PATIENTS = [f"{label}/{site}/p{n}/{label}_{n}.png" for label in ("fat", "muscle") for site in "ab" for n in (1, 2, 3)]


def test_a_check_counts_names_what_is_ignored_and_says_who_the_patient_is(tmp_path):
    data = pictures(tmp_path / "tiles", *PATIENTS, "fat/a/p4/more.png", "bone/b/p9/1.png", "bone/b/p9/2.png")
    (data / "fat/a/p1/slide.svs").write_text("")
    (data / "nerve").mkdir()
    (data / "fat/a/p4/more.png").write_bytes(b"no picture")
    with pytest.warns(UserWarning):
        said = check.text(data)
    assert "tiles: your own images" in said and "3 classes, 8 patients, 15 images" in said
    assert "bone          2 images       1 patient\n" in said and "Images of one patient only" in said
    assert "bone/b/p9/1.png is of patient b/p9. 6 of 8 patients have images of several classes." in said
    assert "Ignored (2):\n  fat/a/p1/slide.svs: not one of .png" in said
    assert "nerve: class folder without images" in said
    assert "leaves them out) (1):\n  fat/a/p4/more.png: not an image that can be read here" in said
    assert "make archive under a minute (efficientnet_lite0), make reproduce PROFILE=sample about " in said


def test_a_check_says_where_there_are_no_patients_and_groups_are_listed(tmp_path):
    data = pictures(tmp_path / "tiles", "fat/1.png", "fat/2.png", "muscle/3.png")
    assert "Patient: there is no folder between class and image" in check.text(data, encoder="uni.npz")
    assert "make archive" not in check.text(data, encoder="uni.npz")
    (data / "groups.csv").write_text("path,group\n1.png,x\n2.png,y\n3.png,x\n")
    assert "Patient: images are kept together by group (groups.csv): fat/1.png is of x." in check.text(data)


def test_a_larger_folder_takes_longer():
    seconds = {n: check.own_seconds(n, check.profiles.settings()) for n in (30, 300, 3000, 30000)}
    assert 2 * seconds[30] > seconds[300] > seconds[30], "a head takes as many steps, however few images there are"
    assert 2 * seconds[300] < seconds[3000] and 8 * seconds[3000] < seconds[30000]


def test_the_estimate_counts_the_trainings_that_there_will_be():
    """The checks read nothing heavy, so the numbers of folds and trainings stand there once more."""
    of = [np.repeat(["a", "b"], n // 2) for n in (check.MANY, check.MANY + 2)]
    counts = [folds * seeds + folds for folds, seeds in (trials.effort(labels, 5, 5) for labels in of)]
    assert counts == [more * (2 * 2 + 2) for more in check.MORE]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Commands run here, with tiles of three patients."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    pictures(tmp_path / "tiles", *PATIENTS)
    return tmp_path


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["archive", *map(str, words)])
    archive.main()


@pytest.mark.filterwarnings("ignore")
def test_an_archive_is_found_asked_and_kept_from_harm(home, monkeypatch, capsys):
    with pytest.raises(InputError, match="there is no archive in"):
        run(monkeypatch, "ask", "tiles/fat/a/p1/fat_1.png")
    run(monkeypatch, "build", "tiles", "--encoder", "texture")
    run(monkeypatch, "ask", "tiles/fat/a/p1/fat_1.png", "--leave-out", "a/p1", "--only", "fat, muscle", "--k", "3")
    said = capsys.readouterr().out
    assert "archive/tiles.asked/p1_fat_1.png" in said and "fat/a/p1/fat_1.png" not in said.split("rank")[1]
    run(monkeypatch, "ask", "tiles/fat/a/p1/fat_1.png")
    assert "Left out: images of the patient a/p1." in (said := capsys.readouterr().out)
    assert "a/p1/" not in said.split("rank")[1].split("Vote")[0]
    run(monkeypatch, "build", "tiles", "--encoder", "texture", "--archive", "archive/second")
    with pytest.raises(InputError, match="several archives, say ARCHIVE=<folder>: archive/second, archive/tiles"):
        run(monkeypatch, "ask", "tiles/fat/a/p1/fat_1.png")
    from lib.archive.archive import Archive

    shutil.rmtree("archive/second")
    Image.new("RGB", (8, 8), "red").save("other.png")
    kept = Archive.load("archive/tiles")
    kept.add(["other.png"], ["fat"], ["p9"])
    kept.save()
    with pytest.raises(InputError, match="holds 1 images from elsewhere"):
        run(monkeypatch, "build", "tiles", "--encoder", "texture")


def test_what_the_verdict_recommends_is_taken_for_the_same_images(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    (table,) = archive.finding.tables(pictures(tmp_path / "tiles", *PATIENTS))
    assert archive.recommended(table) == ("efficientnet_lite0", "plain") and "plain" in methods.METHODS
    report = paths.report("your", "own", "tiles", "archive")
    report.mkdir(parents=True)
    (report / "table_verdict.csv").write_text("outcome,key,encoder\nuse it,hyper_dino,densenet121\n")
    (report / "table_found.csv").write_text("class,images,groups,used\nfat,6,6,6\nmuscle,6,6,6\n")
    assert archive.recommended(table) == ("densenet121", "hyper_dino")
    (report / "table_found.csv").write_text("class,images,groups,used\nfat,6,6,6\nmuscle,9,9,9\n")
    assert archive.recommended(table) == ("efficientnet_lite0", "plain")
    assert "is of other images of this name" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", ""], "say where your images are: DATA=<folder>"),
        (["ask", ""], "say what to ask with: IMAGE=<file>"),
        (["check", "nowhere"], "DATA=nowhere is not a folder"),
        (["build", "tiles", "--method", "plan"], "there is no method 'plan': did you mean plain"),
        (["ask", "x.png", "--archive", "tiles"], "is no archive: it has no about.json"),
    ],
)
def test_mistakes_are_named_before_anything_is_done(home, monkeypatch, words, said):
    with pytest.raises(InputError, match=said):
        run(monkeypatch, *words)
    assert not (home / "build").exists()
