"""Bad input to the commands of the README ends in one readable message; what is found decides what runs."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from lib import errors, paths
from lib.datasets import finding, named
from lib.errors import InputError
from lib.pipeline import notebooks, plan, profiles, reproduce
from tests.images import pictures
from tests.pipeline.stopping import stop

SHARE = "LOKY_MAX_CPU_COUNT"


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    return tmp_path / "data"


KATHER = tuple(f"k/{folder}/1025D_CRC-Prim-HE-10_020.tif_Row_1_Col_601.tif" for folder in named.KATHER)


def test_found_datasets_are_linked_and_linked_anew(data, tmp_path):
    for copy in ("one", "two"):
        found = finding.link(pictures(tmp_path / copy, *KATHER))
        assert found == {"kather": tmp_path / copy / "k"}
        assert (data / "kather").resolve() == (tmp_path / copy / "k").resolve()


def stages_on(dataset: str) -> list[str]:
    """Every stage of the sample profile that runs on one dataset, in the order of params.yaml."""
    runs = profiles.runs("sample")
    return [f"pipelines/sample/dvc.yaml:{stage}@{dataset}" for stage in runs if dataset in runs[stage]]


def test_only_what_was_found_runs(data):
    """A dataset that lies in data/ from an earlier call is left out when another one is named."""
    (data / "bh200x").mkdir(parents=True)
    stages, missing = reproduce.targets("sample", {"kather": Path()})
    assert stages == stages_on("kather") and len(stages) > 1
    assert missing == ["cub", "ham10000", "odir"], "what is here is not missing, only not asked for"


def test_without_data_everything_that_is_there_runs(data):
    (data / "ham10000").mkdir(parents=True)
    stages, _ = reproduce.targets("sample")
    assert stages == stages_on("ham10000")


def test_the_demo_is_built_in_layers_of_which_each_needs_only_those_before():
    drawn, *layers = reproduce.layers("demo")
    assert [name.partition("@")[0] for name in drawn] == ["drawn"] * len(paths.DRAWN)
    kinds = [{name.rpartition(":")[2].partition("@")[0] for name in layer} for layer in layers]
    tables, features, views, runs, late = kinds
    assert tables == {"tables"} and views == {"views"} and runs | late == set(profiles.notebooks())
    assert late == {"linear_prototypes_significance"} and not runs & late
    assert set.union(*kinds) | {"features_more"} == set(profiles.stages()) and features < set(profiles.FEATURES)
    needed = [" ".join(profiles.stages()[stage].get("do", profiles.stages()[stage])["deps"]) for stage in features]
    assert not any("build/features" in deps or "reports/" in deps for deps in needed)


def test_the_longest_notebooks_come_first_and_each_stage_has_its_share_of_the_processors(monkeypatch):
    built: dict[str, str] = {}
    monkeypatch.setattr(reproduce.joblib, "cpu_count", lambda: 5)
    monkeypatch.setattr(reproduce, "dvc", lambda *words, **said: built.setdefault(words[-1], said.get(SHARE)))
    reproduce.build_demo("--force")
    layers = reproduce.layers("demo")
    assert {built[stage] for layer in layers for stage in layer} == {"2"} and built["start_here"] is None
    settings = profiles.settings()
    times = [plan.demo_seconds(stage.rpartition(":")[2].partition("@")[0], settings) for stage in layers[-2]]
    assert times == sorted(times, reverse=True) and times[0] > times[-1]


def test_the_features_of_a_profile_are_extracted_without_its_notebooks(monkeypatch):
    words: list[str] = []
    monkeypatch.setattr(reproduce, "dvc", lambda *given: words.extend(given))
    monkeypatch.setattr(sys, "argv", ["reproduce", "features", "demo"])
    reproduce.main()
    assert words == ["repro", "--quiet", "pipelines/demo/dvc.yaml:features", "pipelines/demo/dvc.yaml:views"]


def test_reports_that_cannot_be_written_are_named_before_anything_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "REPORTS", tmp_path / "reports" / "new")
    monkeypatch.setattr(notebooks.os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(InputError, match=rf"^{tmp_path} cannot be written to, and results go there"):
        reproduce.run("sample", None, None, force=False)


@pytest.mark.parametrize(
    ("profile", "data", "name", "message"),
    [
        ("demo", "slides", None, "add PROFILE=sample"),
        ("demo", None, "mine", "add DATA=<folder>"),
        ("sample", None, None, "say where: DATA=<folder>"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_trained_is_removed(
    monkeypatch, tmp_path, profile, data, name, message
):
    monkeypatch.setattr(paths, "images", lambda dataset: tmp_path / dataset)
    monkeypatch.setattr(paths, "TRAINED", tmp_path / "trained")
    (kept := tmp_path / "trained" / "a.pt").parent.mkdir()
    kept.touch()
    with pytest.raises(errors.InputError, match=message):
        reproduce.run(profile, data and Path(data), name, True)
    assert kept.exists()


def command(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-m", *words], cwd=paths.ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_commands_of_the_pipeline_run_and_bad_input_ends_in_one_message(tmp_path):
    root, table = pictures(tmp_path / "mine", "a/1.png", "b/1.png"), str(tmp_path / "table.csv")
    given = ["--dataset", "folder", "--target", table, "--root"]
    assert command("lib.datasets", *given, str(root))[0] == 0
    for words, message in (
        (["lib.datasets", *given, str(tmp_path / "nowhere")], "does not exist"),
        (["lib.encoders", "--table", table, "--encoder", "textur", "--target", "f.safetensors"], "mean texture"),
    ):
        status, _, errors = command(*words)
        assert status == 2 and errors.startswith("error: ") and message in errors and "Traceback" not in errors


SCRIPT = """
import sys
from pathlib import Path
from lib import errors
from lib.pipeline import notebooks
here = Path(sys.argv[1])
notebooks.SOURCE, notebooks.EXECUTED, notebooks.FAILED, notebooks.DONE = here, here / "x", here / "f", here / "d"
errors.one_message(lambda: notebooks.run("99_x", "demo", "tissue", []))
"""


@pytest.mark.slow
def test_ctrl_c_in_a_notebook_ends_in_one_sentence(tmp_path):
    begun = tmp_path / "begun"
    cell = f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(300)"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)]), tmp_path / "99_x.ipynb")
    stop(SCRIPT, tmp_path, begun.name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["99_x.ipynb", "begun", "x"]
    assert not [path for path in (tmp_path / "x").rglob("*") if path.is_file()]
