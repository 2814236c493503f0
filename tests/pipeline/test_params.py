"""params.yaml: what YAML silently takes for something else, and what no notebook could run, is refused in words."""

import shutil
from copy import deepcopy
from itertools import product
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import paths
from lib.errors import InputError
from lib.pipeline import own, profiles, reproduce
from lib.pipeline.notebooks import parameters, read
from lib.pipeline.params import encoders_of, load, of_names, of_parameters, of_runs, refuse

RETRIEVAL = {
    "profile": "demo",
    "dataset": "tissue",
    "encoder": "demo_vit",
    "beside": ["texture"],
    "lengths": [5, 20],
    "epochs": 25,
    "lr": 0.001,
    "half": True,
    "ks": [1, 5],
    "table": "table_2",
}
STAGES = {"ball": {"profile": "demo", "dataset": "all"}, "retrieval": RETRIEVAL}
RUNS = {
    "ball": {"all": {}},
    "retrieval": {
        "kather": {"encoder": "demo_vit", "beside": ["texture", "demo_vit-untrained"], "lengths": [5, "full"]},
        "ham10000": {"lr": 1, "epochs": 50, "half": False, "ks": [1, 20], "table": "table_3"},
    },
}


def check(runs: Any) -> None:
    refuse("the file", of_runs(runs, STAGES, ["kather", "ham10000"], ["demo_vit", "texture"]))


def written(folder, text: str):
    file = folder / "params.yaml"
    file.write_text(text, encoding="utf-8")
    return file


# Reading


def test_what_is_right_is_read_as_yaml_reads_it():
    file = paths.ROOT / "params.yaml"
    assert load(file) == yaml.safe_load(file.read_text(encoding="utf-8"))


def test_anchors_and_merges_are_no_duplicates(tmp_path):
    text = "a: &a {x: 1, y: [1, 2]}\nb: *a\nc:\n  <<: *a\n  x: 5\nd: &d\n  <<: *a\n  x: 2\ne: {<<: *d, x: 3}\n"
    found = load(written(tmp_path, text))
    assert (found["b"]["x"], found["c"]["x"], found["d"]["x"], found["e"]["x"]) == (1, 5, 2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr: 1\nepochs: 5\nlr: 2\n", "line 3: lr stands in line 1 already; keep one of them"),
        ("lr: 1e-5\n", r"line 1: 1e-5 is text in YAML; write 1\.0e-05"),
        ("a:\n- [1, 5E3]\n", r"line 2: 5E3 is text in YAML; write 5000\.0"),
        ("no: 5\n", "line 1: a name must be text; put no in quotes"),
        ("? [a, b]\n: 5\n", "line 1: a name must be text"),
        ("a: [1, 2\n", "line 2 cannot be read as YAML"),
        ("a: *b\n", "line 1 cannot be read as YAML .*undefined alias"),
        ("a: !!python/object:int 5\n", "line 1 cannot be read as YAML"),
        ("a: 1\n---\nb: 2\n", "line 2 cannot be read as YAML"),
        ("- 1\n- 2\n", "holds no settings; write lines like `name: value`"),
        ("", "holds no settings"),
        ("a: !!int ''\n", "cannot be read as YAML"),
        ("a: 2020-99-99\n", "cannot be read as YAML"),
        ("[" * 5000, "cannot be read as YAML"),
        ("a: \0\n", "cannot be read as YAML"),
    ],
)
def test_what_yaml_takes_for_something_else_is_refused_with_its_line(tmp_path, text, message):
    with pytest.raises(InputError, match=rf"params\.yaml: {message}"):
        load(written(tmp_path, text))


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path):
    with pytest.raises(InputError, match=r"params\.yaml is not there; take it from the repository"):
        load(tmp_path / "params.yaml")
    with pytest.raises(InputError, match="cannot be read as YAML"):
        load(tmp_path)
    (tmp_path / "params.yaml").write_bytes(b"\xff\xfea: 1")
    with pytest.raises(InputError, match=r"params\.yaml: cannot be read as YAML"):
        load(tmp_path / "params.yaml")


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.text(alphabet="ab15e-+.:{}[],&*!<>|?#'\"\n\t %@=~", max_size=40))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    file = written(tmp_path_factory.mktemp("fuzzed", numbered=True), text)
    try:
        assert isinstance(load(file), dict)
    except InputError as error:
        assert str(error).startswith(str(file))


# Runs


def test_runs_that_can_be_run_pass():
    check(RUNS)
    check({})
    check({"retrieval": {}})


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["retreival"], {}, "there is no stage 'retreival': did you mean retrieval"),
        (["xyz"], {}, "there is no stage 'xyz': choose one of ball, retrieval"),
        (["retrieval"], None, "retrieval = None cannot be used: write datasets with their parameters, or {}"),
        (["retrieval", "kahter"], {}, "retrieval, kahter: there is no dataset 'kahter': did you mean kather"),
        (["ball", "al"], {}, "ball, al: there is no dataset 'al': did you mean all"),
        (["retrieval", "kather"], None, "retrieval, kather: None cannot be used: write parameters as {epochs: 5}"),
        (["retrieval", "kather", "epoch"], 5, "there is no parameter 'epoch': did you mean epochs"),
        (["ball", "all", "epochs"], 5, "ball, all: there is no parameter 'epochs': it has none"),
        (["retrieval", "kather", "dataset"], "kather", "there is no parameter 'dataset'"),
        (["retrieval", "kather", "encoder"], "demo_vti", "there is no encoder 'demo_vti': did you mean demo_vit"),
        (["retrieval", "kather", "beside"], ["texture", "textur-untrained"], "no encoder 'textur-untrained': did you"),
        (["retrieval", "kather", "beside"], "texture", r"beside = 'texture' cannot be used: it must be like \['text"),
        (["retrieval", "kather", "encoder"], None, "encoder = None cannot be used: it must be like 'demo_vit'"),
        (["retrieval", "kather", "table"], 2, "table = 2 cannot be used: it must be like 'table_2'"),
        (["retrieval", "kather", "lr"], "1e-5", "lr = '1e-5' cannot be used: .* without quotes"),
        (["retrieval", "kather", "epochs"], 0, "epochs = 0 cannot be used: it must be a whole number from 1 on"),
        (["retrieval", "kather", "half"], "yes", "half = 'yes' cannot be used: it must be True or False"),
        (["retrieval", "kather", "ks"], 5, "ks = 5 cannot be used: it must be a list"),
        (["retrieval", "kather", "lengths"], [5, "ful"], "'ful' cannot be used: .*, or 'full'"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_place_and_the_way_out(path, value, message):
    runs = deepcopy(RUNS)
    part = runs
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    with pytest.raises(InputError, match=f"^the file: .*{message}"):
        check(runs)


def test_all_faults_are_named_at_once():
    runs = {"bal": {}, "retrieval": {"kather": {"epochs": -1, "encoder": "x"}, "camelyon": {}}}
    with pytest.raises(InputError) as caught:
        check(runs)
    first, *lines = str(caught.value).splitlines()
    assert first == "the file:" and len(lines) == 4 and all(line.startswith("  ") for line in lines)


def test_names_of_a_profile_are_known_ones():
    assert not [*of_names("encoder", ["demo_vit-untrained", "texture"], ["texture", "demo_vit"])]
    (fault,) = of_names("dataset", "kather", ["kather"])
    assert fault == "'kather' cannot be used: write a list of datasets, such as [kather]"
    for names in (["x"], [5], [None], [["kather"]], ["kather-untrained"]):
        (fault,) = of_names("dataset", names, ["kather"])
        assert fault.startswith("there is no dataset")


JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just("kather")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(RETRIEVAL)), JUNK)
def test_any_value_is_taken_or_refused(name, value):
    """What is taken has the type of the default."""
    runs = {"retrieval": {"kather": {name: value}}}
    try:
        check(runs)
    except InputError as error:
        assert "retrieval, kather: " in str(error)
    else:
        assert isinstance(value, type(RETRIEVAL[name])) or (name == "lr" and isinstance(value, int))


# The project's own


@pytest.mark.parametrize("profile", ["demo", "sample", "gpu", "paper"])
def test_the_runs_of_every_profile_can_be_run(profile):
    profiles.check(paths.PIPELINES / profile / "params.yaml")


@pytest.mark.parametrize("profile", ["demo", "sample", "gpu", "paper"])
def test_every_encoder_of_a_run_is_extracted(profile):
    content = profiles.profile(profile)
    blocks = [content[name] for name in profiles.FEATURES]
    extracted = {pair for block in blocks for pair in product(block["datasets"], block["encoders"])}
    runs = [run for stage in content["runs"].values() for run in stage.items()]
    wanted = {(dataset, encoder) for dataset, own in runs for encoder in encoders_of(own)}
    assert wanted and wanted - extracted == set()


@pytest.mark.parametrize("name", ["eyes", "on-2024", "own"])
def test_the_runs_for_own_images_can_be_run(name, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    profiles.check(own.pipeline(name).with_name("params.yaml"), own=name)


def test_a_slip_in_a_profile_is_refused_before_anything_is_built(tmp_path, monkeypatch):
    shutil.copytree(paths.PIPELINES, tmp_path / "pipelines")
    monkeypatch.setattr(paths, "PIPELINES", tmp_path / "pipelines")
    monkeypatch.setattr(reproduce, "dvc", lambda *words: pytest.fail("started"))
    file = tmp_path / "pipelines" / "demo" / "params.yaml"
    text = file.read_text(encoding="utf-8")
    for right, wrong, message in (
        (
            "  hyper_dino_retrieval:",
            "  hyper_dino_retreival:",
            "no stage 'hyper_dino_retreival': did you mean hyper_dino_r",
        ),
        (", demo_vit,", ", demo_vti,", "no encoder 'demo_vti': did you mean demo_vit"),
        (" lengths: [", " lengths: [0, ", r"lengths\[0\] = 0 cannot be used"),
        ("profile: demo", "profile: demo\nprofile: demo", "profile stands in line 2 already"),
    ):
        assert right in text
        file.write_text(text.replace(right, wrong, 1), encoding="utf-8")
        with pytest.raises(InputError, match=f"params.yaml: .*{message}"):
            reproduce.run("demo", None, None, force=False)


@pytest.mark.parametrize("paper", ["hyper_dino", "linear_prototypes"])
def test_the_published_values_are_parameters_of_the_notebook_with_a_meaning(paper):
    defaults = parameters(read(paths.NOTEBOOKS / f"{profiles.notebooks()[f'{paper}_retrieval']}.ipynb"))
    for group, values in load(paths.ROOT / "params.yaml")[paper].items():
        refuse(f"{paper}, {group}", of_parameters(values, defaults))
