"""A section is one page and one record, whatever is saved in whatever order."""

import re

import pandas as pd
import pytest

from lib import devices, paths
from lib.study import saved
from lib.study.shown import Table
from lib.study.store import Run

RUN = {"profile": "demo", "encoder": "texture", "parameters": {"epochs": 3}}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "hyper_dino" / "demo" / "tissue" / "retrieval"


def test_the_page_shows_all_in_the_order_of_saving_and_each_once(folder):
    for name, text in (("table_2", "## Two"), ("figure_1", "## One\n\n![One](figure_1.png)"), ("table_2", "## Again")):
        saved.add(folder, name, RUN, {"title": name}, text)
    assert (folder / saved.PAGE).read_text() == (
        "# Hyper-DINO, retrieval, demo on tissue\n\n"
        '<a id="table_2"></a>\n\n## Again\n\n<a id="figure_1"></a>\n\n## One\n\n![One](figure_1.png)\n'
    )
    assert saved.text(folder / "figure_1.png") == "## One\n\n![One](figure_1.png)"


def test_what_a_table_does_not_share_with_the_first_is_its_own(folder):
    saved.add(folder, "table_2", RUN, {"title": "two"}, "")
    saved.add(folder, "table_3", RUN | {"encoder": "demo_vit"}, {"title": "three"}, "")
    assert saved.record(folder / "table_2.csv") == {"name": "table_2", "title": "two"} | RUN
    assert saved.record(folder / "table_3.csv") == {"name": "table_3", "title": "three"} | RUN | {"encoder": "demo_vit"}
    assert (folder / saved.RECORD).read_text().count("epochs") == 1


def test_every_committed_section_has_a_page_and_a_record_of_all_its_tables_and_figures():
    folders = {file.parent for file in paths.COMMITTED.glob("*/*/*/*/*.csv")}
    for folder in folders:
        names = {file.stem for file in folder.glob("*.csv")}
        anchors = re.findall(r'<a id="(\w+)">', (folder / saved.PAGE).read_text(encoding="utf-8"))
        assert names == set(anchors) == set(saved.records((folder / saved.RECORD).read_text(encoding="utf-8"))), folder
        assert len(anchors) == len(names)
        pictures = re.findall(r"^!\[.*\]\((\w+)\.png\)$", (folder / saved.PAGE).read_text(encoding="utf-8"), re.M)
        assert set(pictures) == {file.stem for file in folder.glob("*.png")}
    assert len(folders) > 50


def test_the_record_says_on_what_was_trained_and_nothing_on_the_cpu(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    run = Run("13_hyper_dino_retrieval", "sample", "kather", "240 images", "abc", "texture")
    for name, text in (("CPU", None), ("NVIDIA H100", "NVIDIA H100")):
        monkeypatch.setattr(devices, "name", lambda name=name: name)
        run.save(f"table_{name[-1]}", Table("X", pd.DataFrame({"ours": [1.0]}), "", markdown=""))
        record = saved.record(run.folder / f"table_{name[-1]}.csv")
        assert record.get("device") == text and saved.device(record) == name
