"""One lease of a GPU ends in time, brings home what there is, and the next one goes on."""

import sys
import time
from pathlib import Path

import pytest

from lib import paths
from lib.errors import InputError
from lib.pipeline import gpu, profiles
from lib.pipeline.gpu import Step

PATIENT = """
import sys, time, subprocess
from pathlib import Path
kept = Path("build/trained/steps")
kept.parent.mkdir(parents=True, exist_ok=True)
beat = "import time\\nfor _ in range(600):\\n    open('beats', 'a').write('x'); time.sleep(0.1)"
child = subprocess.Popen([sys.executable, "-c", beat])
n = int(kept.read_text()) if kept.exists() else 0
kept.write_text(str(n + 1))
if n < 1:
    time.sleep(60)
child.kill()
print("went on from", n)
"""


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


TODO = [
    Step("tests", python("print('fine')")),
    Step("broken", python("raise ValueError('no image of class 3')")),
    Step("patient", python(PATIENT), most=2),
    Step("quick", python("from pathlib import Path; f = Path('reports/p/gpu/d/s/t.csv'); "
                         "f.parent.mkdir(parents=True); f.write_text('1'); open('count', 'a').write('x')")),
]  # fmt: skip


@pytest.fixture
def project(monkeypatch, tmp_path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.setattr(paths, "ROOT", root)
    monkeypatch.setattr(gpu, "RESERVE", 1.0)
    monkeypatch.setattr(gpu, "GRACE", 1.0)
    return root


def test_a_lease_ends_in_time_and_the_next_one_goes_on(project, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, "LEAST", 1.0)
    out, start = tmp_path / "out", time.monotonic()
    states = gpu.lease(TODO, 20, out, "gpu", "On a toaster.")
    assert time.monotonic() - start < 20
    assert states["tests"].startswith("done in ") and states["quick"].startswith("done in ")
    assert states["broken"].endswith("(exit status 1): ValueError: no image of class 3")
    assert states["patient"].startswith("ended after 2 s") or states["patient"].startswith("ended after 3 s")
    assert (out / "logs/tests.log").read_text() == "fine\n"
    assert (out / "reports/p/gpu/d/s/t.csv").read_text() == "1" and (out / "build/trained/steps").read_text() == "1"
    text = (out / "summary.md").read_text()
    assert "On a toaster." in text and "Left: broken, patient." in text
    beats = (project / "beats").stat().st_size  # of the process that the ended step had started
    time.sleep(0.5)
    assert beats == (project / "beats").stat().st_size > 0

    fresh = tmp_path / "fresh"  # a bare machine again: only the folder is the same
    fresh.mkdir()
    monkeypatch.setattr(paths, "ROOT", fresh)
    again = gpu.lease(TODO, 20, out, "gpu", "On a toaster.")
    assert (out / "logs/patient.log").read_text().endswith("went on from 1\n")
    assert again["patient"].startswith("done in ")
    assert again["quick"] == states["quick"] and not (fresh / "count").exists()
    assert (fresh / "reports/p/gpu/d/s/t.csv").exists()
    assert "Left: broken. " in (out / "summary.md").read_text()


@pytest.mark.parametrize(
    ("earlier", "lacks", "said"),
    [
        ("left", "", "not started: needs 60 s, 29 s were left"),
        ("left", "cub is not here, give DATA=<folder>", "not started: cub is not here, give DATA=<folder>"),
        ("ended after 150 s", "", "ended earlier, not started: needs 60 s, 29 s were left"),
    ],
    ids=["no time", "no images", "no time to go on"],
)
def test_a_step_is_not_started_without_time_or_images_and_stays_begun(project, tmp_path, earlier, lacks, said):
    out, step = tmp_path / "out", Step("long", python("open('never', 'w')"), lacks=lacks)
    out.mkdir()
    (out / gpu.STATE).write_text(f'{{"long": "{earlier}"}}')
    for _ in range(2):
        assert gpu.lease([step], 30, out, "gpu", "") == {"long": said}
    assert not (project / "never").exists()


def test_a_lease_that_is_stopped_says_in_which_step(project, monkeypatch, tmp_path):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(gpu, "_take", stopped)
    monkeypatch.setattr(gpu, "LEAST", 1.0)
    with pytest.raises(KeyboardInterrupt):
        gpu.lease(TODO, 20, tmp_path / "out", "gpu", "")
    assert "| tests | ended because it was stopped" in (tmp_path / "out/summary.md").read_text()
    assert '"tests": "ended because' in (tmp_path / "out" / gpu.STATE).read_text()


@pytest.mark.parametrize("given", ["0", "-1", "abc", "nan", "inf", ""])
def test_minutes_that_are_none_are_refused(given):
    assert gpu.minutes("4.5") == 4.5
    with pytest.raises(InputError, match=rf"^MINUTES={given} is no number .* MINUTES=9$"):
        gpu.minutes(given)


def test_results_go_to_a_folder_not_a_file(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file/in"):
        monkeypatch.setattr("sys.argv", ["gpu", "--minutes", "1", "--out", str(out)])
        with pytest.raises(InputError, match="file is a file; name a folder"):
            gpu.main()


def test_the_steps_follow_the_order_of_the_profile(monkeypatch, tmp_path):
    content = {"runs": {"hyp_vit_retrieval": {"cub": {}, "ham10000": {}}, "acir_ablations": {"bh200x": {}}}}
    monkeypatch.setattr(profiles, "profile", lambda name: content)
    monkeypatch.setattr(paths, "DATA", tmp_path)
    (tmp_path / "bh200x").mkdir()
    names = [step.name for step in gpu.steps("gpu", tmp_path, "a card")]
    stages = ["tests on a card", "bench on a card"]  # another device takes them anew
    assert names == [*stages, "hyp_vit_retrieval@cub", "hyp_vit_retrieval@ham10000", "acir_ablations@bh200x"]
    content["order"] = ["acir_ablations@bh200x", "hyp_vit_retrieval@cub"]
    tests, _, first, second = gpu.steps("gpu", tmp_path, "a card")
    assert not first.lacks and second.lacks.startswith("cub is not here, give DATA=<folder that holds it>")
    assert first.command[-1] == "pipelines/gpu/dvc.yaml:acir_ablations@bh200x"
    assert any(word.endswith("test_sweep.py") for word in tests.command)


def test_packages_that_are_not_here_or_too_new_are_named(monkeypatch):
    assert gpu.lacking() == []
    known = gpu.version

    def version(name: str) -> str:
        if name == "dvc":
            raise gpu.PackageNotFoundError
        return "2.5.1" if name == "numpy" else known(name)

    monkeypatch.setattr(gpu, "version", version)
    dvc, numpy = gpu.lacking()
    assert dvc.startswith("dvc") and dvc.endswith(": not here")
    assert numpy.startswith("numpy") and numpy.endswith(": 2.5.1 is here")
