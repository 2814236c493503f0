"""Notebooks are parameterised safely, run as they stand in params.yaml, and are committed executed and clean."""

import json
import os
import re
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path

import nbformat
import pytest
from papermill.exceptions import PapermillExecutionError
from PIL import Image

from lib import errors, paths
from lib.errors import InputError
from lib.pipeline import compare, notebooks, profiles
from lib.pipeline.notebooks import parameters, read, readable, stripped
from lib.pipeline.params import read_arguments
from lib.study import saved

ALL = sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))
each = pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)


def notebook(*cells: tuple[str, list[str]]) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source, metadata={"tags": tags}) for source, tags in cells]
    )


DEFAULTS = {"lr": 0.1, "epochs": 3, "name": "texture", "whiten": True, "ks": [1, 5]}


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("--lr 1e-05", {"lr": 1e-05}),
        ("--lr 1", {"lr": 1.0}),
        ("--epochs 7 --epochs 9", {"epochs": 9}),
        ("--name 40", {"name": "40"}),
        ("--whiten", {"whiten": True}),
        ("--no-whiten", {"whiten": False}),
        ("--ks 1", {"ks": [1]}),
        ("--ks 5 full", {"ks": [5, "full"]}),
        ("", {}),
    ],
)
def test_arguments_get_the_type_of_the_default(words, values):
    read = read_arguments(words.split(), DEFAULTS)
    assert read == values
    assert {name: type(value) for name, value in read.items()} == {name: type(v) for name, v in values.items()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--epoch 7", "no parameter 'epoch'; it has: lr, epochs, name, whiten, ks"),
        ("--epochs 1.5", "'epochs' is 1.5, but the notebook expects a value like 3"),
        ("--lr fast", "'lr' is 'fast'"),
        ("7", "expected --name value, found '7'"),
    ],
)
def test_an_argument_that_does_not_fit_is_an_error(words, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_arguments(words.split(), DEFAULTS)


def test_a_parameters_cell_holds_literals_only():
    assert parameters(notebook(("a = 1\nb = 'x'  # note = 2", ["parameters"]), ("c = 3", []))) == {"a": 1, "b": "x"}
    assert parameters(notebook(("a, b = 1, [2]\nc = 3", ["parameters"]))) == {"a": 1, "b": [2], "c": 3}
    with pytest.raises(InputError, match="parameters cell must hold lines like"):
        parameters(notebook(("a = 1 + x", ["parameters"])))


def test_stripping_forgets_everything_that_saving_can_change():
    one = notebook(("a = 1", ["parameters"]), ("print(a)", []))
    two = notebook(("a = 1", ["parameters"]), ("print(a)", []))
    two.cells[1].outputs = [nbformat.v4.new_output("stream", text="1\n")]
    two.cells[1].execution_count = 5
    two.cells[0].metadata["editable"] = True
    two.metadata = {"language_info": {"version": "3.12.1"}, "widgets": {"state": {}}}
    assert stripped(one) == stripped(two)


def test_a_readable_notebook_has_no_trace_of_the_run():
    PICTURE.save(drawn := BytesIO(), "PNG")
    source = stripped(notebook(("a = 1", ["parameters"]), ("a", []), ("b", [])))
    done = notebook(("a = 1", ["parameters"]), ("a = 2", ["injected-parameters"]), ("a", []), ("b", []))
    for count, cell in enumerate(done.cells, start=1):
        cell.execution_count = count
        cell.metadata["papermill"] = {"duration": 1.5}
    done.cells[2].outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="progress"),
        nbformat.v4.new_output("execute_result", {"text/plain": "2"}, execution_count=3),
        nbformat.v4.new_output("display_data", {"image/png": b64encode(drawn.getvalue()).decode()}),
    ]
    done.metadata["widgets"] = {"state": 1}
    result = readable(done, source)
    assert [cell.source for cell in result.cells] == ["a = 1", "a", "b"]
    assert [cell.execution_count for cell in result.cells] == [1, 2, 3]
    answer, picture = result.cells[1].outputs
    assert (answer.output_type, answer.execution_count) == ("execute_result", 2)
    assert Image.open(BytesIO(b64decode(picture.data["image/png"]))).mode == "P"
    assert "widgets" not in result.metadata and "papermill" not in json.dumps(result)


@each
def test_a_committed_notebook_was_executed_from_top_to_bottom(path):
    """nbval passes a cell that was never executed without looking at it."""
    code = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any(cell.outputs for cell in code)
    outputs = [out for cell in code for out in cell.outputs]
    assert not any(out.output_type == "error" for out in outputs)
    alone = [out.data["text/plain"] for out in outputs if set(out.get("data", ())) == {"text/plain"}]
    assert not any(text.startswith("<Figure") for text in alone), "a figure that no backend drew"
    checked = [cell for cell in code if "nbval-check-output" in cell.metadata.get("tags", [])]
    assert checked and all(cell.outputs for cell in checked)


@each
def test_a_committed_notebook_is_clean(path):
    text = path.read_text(encoding="utf-8")
    committed = read(path)
    assert "injected-parameters" not in text and "papermill" not in committed.metadata
    assert "widgets" not in committed.metadata
    assert '"stderr"' not in text
    assert stripped(committed).cells == stripped(stripped(committed)).cells


@each
def test_a_cell_has_one_idea(path):
    """Fifteen lines at most; imports are a list, no idea. Of parameters twelve, each with a name of its own."""
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    imports = [cell for cell in cells if cell.source.startswith(("from ", "import "))][:1]
    lengths = {cell.source.splitlines()[0]: cell.source.count("\n") + 1 for cell in cells if cell not in imports}
    assert {first: n for first, n in lengths.items() if n > 15} == {}
    given = [cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert all(source.count("\n") < 12 for source in given)
    assert not any(isinstance(value, dict) for value in parameters(read(path)).values())


@pytest.mark.parametrize("path", [path for path in ALL if path.stem != "00_start_here"], ids=lambda path: path.stem)
def test_a_notebook_lays_nothing_out_itself(path):
    """What it shows is what it saves: tables and figures that show themselves; the front page shows the index."""
    code = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "code")
    assert not re.search(r"\bto_csv\b|\bsavefig\b|IPython\.display", code)


@each
def test_there_is_one_cell_of_sliders_where_there_are_any(path):
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    sliders = [cell for cell in cells if "nbval-ignore-output" in cell.metadata.get("tags", [])]
    has_sliders = re.search(r"[Ss]lider|explore\(", "".join(cell.source for cell in cells)) is not None
    assert len(sliders) == has_sliders


@each
def test_the_parameters_cell_holds_the_demo_values(path):
    """Whoever opens the notebook runs what `make reproduce` runs."""
    own = parameters(read(path))
    stages = [stage for stage, notebook in profiles.notebooks().items() if notebook == path.stem]
    if not stages:
        assert own == {}
        return
    settings = profiles.settings()
    dataset, run = next(iter(profiles.runs("demo")[stages[0]].items()))
    values = {"profile": "demo", "dataset": dataset, "seed": settings["seed"]}
    for paper, section in re.findall(r"\$\{(\w+)\.(\w+)\}", profiles.commands()[stages[0]]):
        values |= settings[paper][section]
    values |= run
    assert own.keys() >= {"profile", "dataset", *run}
    assert own == own | {name: value for name, value in values.items() if name in own}


@each
def test_notebook_stage_and_reports_have_one_name(path):
    """13_hyper_dino_retrieval, stage hyper_dino_retrieval, reports/hyper_dino/<profile>/<dataset>/retrieval."""
    stages = [stage for stage, notebook in profiles.notebooks().items() if notebook == path.stem]
    assert stages == ([] if path.stem == "00_start_here" else [path.stem.partition("_")[2]])
    for stage in stages:
        outs = profiles.stages()[stage]["do"]["outs"]
        paper, section = re.fullmatch(r"reports/(\w+)/\$\{profile\}/\$\{key\}/(\w+)", next(iter(outs[-1]))).groups()
        assert f"{paper}_{section}" == stage


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """An empty project: where notebooks lie, are run, and leave their reports."""
    for name in ("NOTEBOOKS", "SOURCE", "EXECUTED", "DONE", "FAILED", "BUILD", "REPORTS", "REBUILT"):
        monkeypatch.setattr(notebooks, name, tmp_path / name.lower())
    monkeypatch.delenv("RENEW", raising=False)
    return tmp_path


def write(project: Path, **last: str) -> None:
    """Write notebooks of two cells, the second of which is given."""
    for name, source in last.items():
        for folder in ("notebooks", "source"):
            notebooks.write(notebook(("a = 1", []), (source, [])), project / folder / f"9{name}.ipynb")


def test_a_run_that_did_not_finish_is_not_collected(project):
    """The executed copy appears when the run is over, not while it goes on, and an older one does not stand for it."""
    write(project, _x="print(a)")
    notebooks.run("9_x", "demo", "all", [])
    assert notebooks.collect() == ["9_x"]
    write(project, _x="raise RuntimeError('killed')")
    with pytest.raises(Exception, match="killed"):
        notebooks.run("9_x", "demo", "all", [])
    assert (project / "failed/demo/all/9_x.ipynb").exists()
    write(project, _x="print(a)")
    with pytest.raises(InputError, match="no finished run of 9_x"):
        notebooks.collect()


def test_all_notebooks_are_collected_or_none_and_one_can_be_named(project):
    write(project, _x="a", _y="a")
    file = project / "notebooks/9_x.ipynb"
    bare = file.read_text()
    notebooks.run("9_x", "demo", "all", [])
    with pytest.raises(InputError, match="no finished run of 9_y"):
        notebooks.collect()
    assert file.read_text() == bare
    assert notebooks.collect(["9_x"]) == ["9_x"]
    assert file.read_text() != bare
    with pytest.raises(InputError, match="no notebook '9_z'"):
        notebooks.collect(["9_z"])


def test_an_unknown_notebook_is_named():
    with pytest.raises(InputError, match=r"no notebook '99_nothing'.*there is"):
        notebooks.run("99_nothing", "demo", "tissue", [])


SECTION = Path("p/demo/d/section")


def test_a_section_appears_whole_or_not_at_all(project):
    """What a run no longer writes is gone afterwards; a run that fails leaves the old folder as it was."""

    def run(*names: str) -> None:
        with notebooks.reports_whole(True):
            folder = Path(os.environ["REPORTS_DIR"]) / SECTION
            folder.mkdir(parents=True)
            for name in names:
                (folder / name).write_text(name)
            if not names:
                raise RuntimeError("broke off")

    def files() -> list[str]:
        return sorted(path.name for path in (project / "reports" / SECTION).iterdir() if path.name[0] != ".")

    run("one.csv", "two.csv")
    run("two.csv", "three.csv")
    assert files() == ["three.csv", "two.csv"]
    with pytest.raises(RuntimeError):
        run()
    assert files() == ["three.csv", "two.csv"] and list((project / "build").iterdir()) == []


TABLE = {"title": "Recall", "caption": "p = 0.02 over 3 folds", "tolerance": {"share": 0.03, "free": ["who"]}}
RUN = {"profile": "demo", "dataset": "d", "notebook": "10_p_section"}


PICTURE = Image.new("RGB", (400, 300), (100, 100, 100))


@pytest.fixture
def build(project):
    """Run a notebook that writes one table; what then stands in reports/ and lies in build/rebuilt/."""

    def run(ours: float, who: str = "a", picture: Image.Image = PICTURE, **record: object) -> tuple[str, str | None]:
        with notebooks.reports_whole(True):
            folder = Path(os.environ["REPORTS_DIR"]) / SECTION
            folder.mkdir(parents=True)
            (folder / "table_1.csv").write_text(f"who,n,ours\n{who},3,{ours}\n")
            saved.add(folder, "table_1", RUN, TABLE | record, "")
            picture.save(folder / "figure_2.png")
        files = [project / place / SECTION / "table_1.csv" for place in ("reports", "rebuilt")]
        return tuple(file.read_text().split()[1] if file.exists() else None for file in files)

    return run


def test_a_rebuild_that_agrees_leaves_what_stands_there(build):
    assert build(90.01) == ("a,3,90.01", None)
    assert build(90.02, "b", caption="p = 0.04 over 3 folds") == ("a,3,90.01", "b,3,90.02")
    assert build(92.7) == ("a,3,90.01", "a,3,92.7")
    assert build(92.72) == ("a,3,92.72", None)  # beyond 3 %, and what was put aside is gone


@pytest.mark.parametrize(
    "other", [{"title": "Precision"}, {"caption": "p = 0.02 over 3 splits"}, {"parameters": {"k": 5}}], ids=str
)
def test_a_rebuild_that_says_something_else_replaces(build, other):
    build(90.01)
    assert build(90.02, **other) == ("a,3,90.02", None)


def test_with_the_same_numbers_a_new_layout_replaces(build, project):
    build(90.01)
    build(90.01, tolerance={"share": 0.5})
    assert saved.record(project / "reports" / SECTION / "table_1.csv")["tolerance"] == {"share": 0.5}


def redrawn(box: tuple[int, int, int, int] = (0, 0, 0, 0), level: int = 0, size: tuple[int, int] = PICTURE.size):
    """:data:`PICTURE` of another size, or with a box of another grey."""
    picture = PICTURE.resize(size)
    picture.paste((level,) * 3, box)
    return picture


@pytest.mark.parametrize(
    ("newer", "stays"),
    [
        (redrawn((9, 9, 20, 20), 100 + compare.UNSEEN), True),
        (redrawn((9, 9, 10, 11)), True),
        (redrawn((9, 9, 14, 14)), False),
        (redrawn((0, 0, 400, 300), 102 + compare.UNSEEN), False),
        (redrawn(size=(400, 301)), False),
        (redrawn(), False),
    ],
    ids=["shade", "pixels", "letter", "colour", "size", "equal"],
)
def test_a_picture_of_equal_data_that_is_rounded_otherwise_leaves_what_stands_there(build, project, newer, stays):
    build(90.01)
    assert build(90.01, picture=newer) == ("a,3,90.01", "a,3,90.01" if stays else None)
    standing = Image.open(project / "reports" / SECTION / "figure_2.png")
    assert (standing.tobytes() == newer.tobytes()) != stays


def test_whoever_wants_the_new_numbers_gets_them(build, project, monkeypatch):
    build(90.01)
    build(90.02)
    done = project / "done/demo/d/10_p_section"
    done.parent.mkdir(parents=True)
    done.touch()
    notebooks.renew()
    assert not done.exists()
    monkeypatch.setenv("RENEW", "1")
    assert build(90.02) == ("a,3,90.02", None)


@pytest.mark.parametrize("words", ["--epochs 0", "--lr -1.0", "--ks", "--ks 5 x", "--lr nan", "--folds_used -1"])
def test_a_parameter_without_meaning_is_refused_before_the_notebook_runs(project, monkeypatch, words):
    monkeypatch.setattr(notebooks, "_execute", lambda *_: pytest.fail("it runs"))
    source = notebook(("epochs = 5\nlr = 0.1\nks = [1]\nfolds_used = 2", ["parameters"]))
    notebooks.write(source, project / "source/99_x.ipynb")
    with pytest.raises(InputError):
        notebooks.run("99_x", "demo", "all", words.split())


def test_every_table_of_real_images_says_how_far_a_rebuild_may_deviate():
    tables = sorted(paths.REPORTS.glob("*/sample/*/*/*.csv"))
    assert tables and all("tolerance" in saved.record(file) for file in tables)


def test_every_notebook_is_on_the_map():
    for place in (paths.NOTEBOOKS / "00_start_here.ipynb", paths.ROOT / "README.md"):
        text = place.read_text(encoding="utf-8")
        assert [path.name for path in ALL if path.name not in text and path != place] == []


def test_a_profile_that_trains_whole_networks_leaves_out_the_cells_about_frozen_ones(project):
    source = notebook(("profile = 'demo'", ["parameters"]), ("1 / 0", ["frozen"]), ("print(profile)", []))
    notebooks.write(stripped(source), project / "source/99_x.ipynb")
    done = notebooks.read(notebooks.run("99_x", "gpu", "all", []))
    assert [cell.outputs[0].text for cell in done.cells if cell.outputs] == ["gpu\n"]
    with pytest.raises(PapermillExecutionError, match="division"):
        notebooks.run("99_x", "sample", "all", [])


FULL = "build/x.npy cannot be written: the disk is full. Make room and run the same command again; what was"


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("from lib.errors import InputError\nraise InputError('row 7 has no label')", "row 7 has no label"),
        ("raise OSError(28, 'No space left on device', 'build/x.npy')", f"{FULL} finished is kept"),
    ],
)
def test_an_error_inside_a_notebook_is_one_message(project, capsys, cell, message):
    write(project, _x=cell)
    with pytest.raises(SystemExit) as stopped:
        errors.one_message(lambda: notebooks.run("9_x", "demo", "tissue", []))
    assert stopped.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"error: notebook 9_x, cell 2: {message}"
    assert (project / "failed/demo/tissue/9_x.ipynb").exists()
