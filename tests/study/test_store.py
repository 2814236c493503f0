"""What is saved is what is shown: csv, page and record of a section, and nothing that a name could break."""

import re
from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from lib import devices, paths
from lib.study import saved
from lib.study.shown import Figure, Table
from lib.study.store import Run

ROWS = pd.DataFrame({"reference": ["a"], "ours": [1.0]})
RUN = Run("13_hyper_dino_retrieval", "demo", "tissue", "10 images", "abc", "texture (156 numbers)", {"epochs": 3})


def shown(thing: Table | Figure) -> list[dict[str, str]]:
    """What a notebook gets when ``thing`` ends a cell."""
    InteractiveShell.instance()
    try:
        with capture_output() as captured:
            thing._ipython_display_()
    finally:
        InteractiveShell.clear_instance()  # other tests have no notebook around them
    return [output.data for output in captured.outputs]


@pytest.fixture(autouse=True)
def reports(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)


def test_a_table_shows_what_is_saved_and_no_name_is_html_or_a_formula():
    run = replace(RUN, parameters=RUN.parameters | {"n_queries": 7})
    (output,) = shown(run.save("table_2", Table("MAP@k", ROWS, "Of <img src=x> and $y$, p < 0.05.", markdown="| a |")))
    below = f"Of &lt;img src=x> and \\$y\\$, p < 0.05.*\n\n{run.stamp}"
    assert output["text/markdown"] == f"| a |\n\n*{below}" and " · queries: 7 · " in run.stamp
    text = saved.text(run.folder / "table_2.csv")
    assert text == f"## Hyper-DINO, MAP@k on tissue\n\n| a |\n\n{below.replace('*', '')}"
    assert pd.read_csv(run.folder / "table_2.csv").equals(ROWS)
    record = saved.record(run.folder / "table_2.csv")
    assert (record["paper"], record["notebook"], record["digest"]) == ("hyper_dino", run.notebook, "abc")
    with pytest.raises(ValueError, match="MAP@k: no column referense"):
        Table("MAP@k", ROWS, "", free=["referense"])


def test_a_table_without_markdown_is_laid_out_by_its_section_from_its_csv():
    run = replace(RUN, notebook="16_hyper_dino_beyond")
    rows = pd.DataFrame({"choice": ["by test"], "k": [20], "lengths": ["8"], "value": [50.00004]})
    table = run.save("table_selection", Table("who chooses", rows, ""))
    assert (
        table.markdown == run.layouts["table_selection"](rows.round(4))
        and "| by test | 20 | 8 | 50.00 |" in table.markdown
    )


def test_a_figure_shows_what_is_saved():
    figure = plt.figure(figsize=(1, 1))
    plt.close(figure)
    RUN.save("figure_3", Figure("norms", ROWS, "Norms.", figure=figure))
    assert {file.name for file in RUN.folder.iterdir()} == {"README.md", "run.json", "figure_3.csv", "figure_3.png"}
    picture = "![Hyper-DINO, norms on tissue](figure_3.png)"
    text = saved.text(RUN.folder / "figure_3.csv")
    assert text == f"## Hyper-DINO, norms on tissue\n\n{picture}\n\nNorms.\n\n{RUN.stamp}"
    assert shown(Figure("norms", ROWS, "Norms.", figure=figure))[-1]["text/markdown"] == "*Norms.*"


def test_a_page_has_everything_once_and_a_record_says_once_what_is_shared(tmp_path):
    folder, run = tmp_path / "hyper_dino" / "demo" / "tissue" / "retrieval", {"encoder": "texture", "epochs": 3}
    for name, text in (("table_2", "## Two"), ("figure_1", "## One\n\n![One](figure_1.png)"), ("table_2", "## Again")):
        saved.add(folder, name, run, {"title": name}, text)
    assert (folder / saved.PAGE).read_text() == (
        "# Hyper-DINO, retrieval, demo on tissue\n\n"
        '<a id="table_2"></a>\n\n## Again\n\n<a id="figure_1"></a>\n\n## One\n\n![One](figure_1.png)\n'
    )
    saved.add(folder, "table_3", run | {"encoder": "demo_vit"}, {"title": "three"}, "")
    assert saved.record(folder / "table_2.csv") == {"name": "table_2", "title": "table_2"} | run
    assert saved.record(folder / "table_3.csv") == {"name": "table_3", "title": "three"} | run | {"encoder": "demo_vit"}
    assert (folder / saved.RECORD).read_text().count("epochs") == 1


def test_every_committed_section_has_a_page_and_a_record_of_all_its_tables_and_figures():
    folders = {file.parent for file in paths.COMMITTED.glob("*/*/*/*/*.csv")}
    for folder in folders:
        page = (folder / saved.PAGE).read_text(encoding="utf-8")
        names, anchors = {file.stem for file in folder.glob("*.csv")}, re.findall(r'<a id="(\w+)">', page)
        assert names == set(anchors) == set(saved.records((folder / saved.RECORD).read_text(encoding="utf-8"))), folder
        assert len(anchors) == len(names)
        pictures = re.findall(r"^!\[.*\]\((\w+)\.png\)$", page, re.M)
        assert set(pictures) == {file.stem for file in folder.glob("*.png")}
    assert len(folders) > 50


@pytest.mark.parametrize(("name", "text"), [("CPU", None), ("NVIDIA H100", "NVIDIA H100")])
def test_the_record_says_on_what_was_trained_and_nothing_on_the_cpu(monkeypatch, name, text):
    monkeypatch.setattr(devices, "name", lambda: name)
    RUN.save("table_2", Table("X", ROWS, "", markdown=""))
    record = saved.record(RUN.folder / "table_2.csv")
    assert record.get("device") == text and saved.device(record) == name
