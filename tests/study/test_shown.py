from dataclasses import replace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from lib import paths
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


def test_a_table_shows_what_is_saved():
    table = Table("MAP@k", ROWS, "In percent.", markdown="| a |")
    assert [output["text/markdown"] for output in shown(table)] == ["| a |\n\n*In percent.*"]
    (output,) = shown(RUN.save("table_2", table))
    assert output["text/markdown"] == f"| a |\n\n*In percent.*\n\n{RUN.stamp}"
    text = saved.text(RUN.folder / "table_2.csv")
    assert text == f"## Hyper-DINO, MAP@k on tissue\n\n| a |\n\nIn percent.\n\n{RUN.stamp}"
    assert pd.read_csv(RUN.folder / "table_2.csv").equals(ROWS)


def test_a_name_in_a_caption_is_no_html_and_no_formula():
    table = RUN.save("table_2", Table("MAP@k", ROWS, "A query of <img src=x> and $y$, p < 0.05.", markdown=""))
    texts = [shown(table)[0]["text/markdown"], saved.text(RUN.folder / "table_2.csv")]
    assert all(r"A query of &lt;img src=x> and \$y\$, p < 0.05." in text for text in texts)


def test_who_asks_stands_below_where_it_is_known():
    assert "asked" not in RUN.stamp
    asked = replace(RUN, parameters={"asked": 7})
    assert " · asked: 7 · " in asked.stamp


def test_a_figure_shows_what_is_saved():
    figure = plt.figure(figsize=(1, 1))
    plt.close(figure)
    RUN.save("figure_3", Figure("norms", ROWS, "Norms.", figure=figure))
    assert {file.name for file in RUN.folder.iterdir()} == {"README.md", "run.json", "figure_3.csv", "figure_3.png"}
    text = saved.text(RUN.folder / "figure_3.csv")
    picture = "![Hyper-DINO, norms on tissue](figure_3.png)"
    assert text == f"## Hyper-DINO, norms on tissue\n\n{picture}\n\nNorms.\n\n{RUN.stamp}"
    assert shown(Figure("norms", ROWS, "Norms.", figure=figure))[-1]["text/markdown"] == "*Norms.*"


def test_the_record_says_where_the_numbers_come_from():
    RUN.save("table_2", Table("MAP@k", ROWS, "In percent.", markdown=""))
    record = saved.record(RUN.folder / "table_2.csv")
    assert (record["paper"], record["notebook"], record["parameters"]) == ("hyper_dino", RUN.notebook, {"epochs": 3})
    assert (record["title"], record["digest"]) == ("Hyper-DINO, MAP@k on tissue", "abc")


def test_what_is_free_must_be_a_column():
    with pytest.raises(ValueError, match="MAP@k: no column referense"):
        Table("MAP@k", ROWS, "", markdown="", free=["referense"])
