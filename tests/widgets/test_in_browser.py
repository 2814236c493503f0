"""The lab and its sliders in a real browser: run all, then move every slider with the keyboard, as a reader does."""

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib import paths
from lib.papers.hyper_dino import ball
from lib.pipeline import lab as working
from lib.widgets.slider import Slider

pytestmark = pytest.mark.slow

START = paths.NOTEBOOKS / "00_start_here.ipynb"
BALL = paths.NOTEBOOKS / "11_hyper_dino_ball.ipynb"
TOKEN = "a-token-for-this-test-only"
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},  # cells out of sight exist as well
    "apputils-extension/notification": {"checkForUpdates": False, "doNotDisturbMode": True, "fetchNews": "false"},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Working copies as ``make lab`` makes them."""
    folder = tmp_path_factory.mktemp("lab") / "copies"
    assert working.refresh(folder) == []
    return folder


@pytest.fixture(scope="module")
def lab(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the lab, started as ``make lab`` starts it but without the user's settings."""
    own = tmp_path_factory.mktemp("own")
    names = ("config", "data", "runtime", "settings", "workspaces", "ipython")
    folders = {name: own / name for name in names}
    for folder in folders.values():
        folder.mkdir()
    for name, values in SETTINGS.items():
        extension, plugin = name.split("/")
        file = folders["settings"] / "@jupyterlab" / extension / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = working.environment(home) | {
        "JUPYTER_CONFIG_DIR": str(folders["config"]),
        "JUPYTER_DATA_DIR": str(folders["data"]),
        "JUPYTER_RUNTIME_DIR": str(folders["runtime"]),
        "JUPYTERLAB_SETTINGS_DIR": str(folders["settings"]),
        "JUPYTERLAB_WORKSPACES_DIR": str(folders["workspaces"]),
        "IPYTHONDIR": str(folders["ipython"]),
    }
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.token": TOKEN,
        "ServerApp.open_browser": False,
        "MappingKernelManager.cull_idle_timeout": 300,  # if the tests are killed, kernels and server end by themselves
        "MappingKernelManager.cull_connected": True,
        "ServerApp.shutdown_no_activity_timeout": 300,
        "LabApp.expose_app_in_browser": True,
        "LabApp.extension_manager": "readonly",
    }
    command = working.command(home, [f"--{name}={value}" for name, value in options.items()])
    log = own / "lab.log"
    with log.open("w") as stream:
        server = subprocess.Popen(command, env=environment, cwd=own, stdout=stream, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(lambda: answers(f"{address}/api/status?token={TOKEN}"), 60, log)
        yield address
    finally:
        server.terminate()
        server.wait(30)


def answers(url: str) -> bool:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=2) as response:
            return response.status == 200
    except OSError:
        return False


def wait_for(ready: Callable[[], bool], seconds: float, log: Path) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, f"JupyterLab does not answer:\n{log.read_text()}"
        time.sleep(0.2)


def run_all(page, address: str, path: Path) -> None:
    """Open the copy of the notebook ``path`` and run all its cells."""
    page.goto(f"{address}/lab/tree/notebooks/{path.name}?token={TOKEN}&reset")
    page.wait_for_function(
        """() => {
            const panel = window.jupyterapp?.shell.currentWidget;
            return panel?.context?.isReady && panel.sessionContext.session?.kernel?.connectionStatus === 'connected';
        }""",
        timeout=60_000,
    )
    page.evaluate(
        """() => {
            window.allRun = false;
            window.jupyterapp.commands.execute('notebook:run-all-cells').then(() => { window.allRun = true; });
        }"""
    )
    page.wait_for_function("window.allRun", timeout=600_000)


def assert_nothing_failed(page) -> None:
    cells = page.evaluate("window.jupyterapp.shell.currentWidget.context.model.toJSON().cells")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [out["evalue"] for cell in code for out in cell["outputs"] if out["output_type"] == "error"] == []
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert page.get_by_text("Error displaying widget").count() == 0
    assert page.get_by_text("Error creating widget").count() == 0


def announced(page, name: str) -> str:
    """What a screen reader says of the slider with this label, which is what stands beside it."""
    slider = page.get_by_role("slider", name=name, exact=True)
    slider.wait_for(timeout=30_000)
    assert (
        slider.get_attribute("aria-label")
        == name
        == page.locator(f"label[for={slider.get_attribute('id')}]").inner_text()
    )
    said = slider.get_attribute("aria-valuetext")
    assert slider.locator("xpath=following-sibling::span").inner_text() == said
    return said


def press(page, key: str, slider: Slider) -> str:
    """Focus the slider as Tab does, press a key, and return the numbers when they and the picture have changed."""
    numbers = page.locator(".jupyter-widgets.widget-html pre")
    picture = page.locator("img.jupyter-widgets.widget-image")
    before = numbers.inner_text(), picture.get_attribute("src")
    handle = page.get_by_role("slider", name=slider.description, exact=True)
    handle.focus()
    page.keyboard.press(key)
    page.wait_for_function(
        """([text, src]) => document.querySelector('.jupyter-widgets.widget-html pre').innerText !== text
            && document.querySelector('img.jupyter-widgets.widget-image').src !== src""",
        arg=before,
    )
    assert handle.evaluate("handle => handle === document.activeElement")
    return numbers.inner_text()


def test_after_run_all_every_slider_answers_the_arrow_keys_and_says_what_it_shows(lab, browser):
    """Of one notebook: a test of each paper moves the sliders of its own without a browser."""
    board = ball.explore()
    page = browser.new_page()
    run_all(page, lab, BALL)
    assert_nothing_failed(page)
    for slider in board.sliders.values():
        for key, step in (("ArrowRight", 1), ("ArrowUp", 1), ("ArrowLeft", -1)):
            assert announced(page, slider.description) == slider.texts[slider.index]
            slider.index += step
            assert press(page, key, slider) == board.text
        assert announced(page, slider.description) == slider.texts[slider.index]
    assert_nothing_failed(page)
    page.close()


def test_what_is_run_and_saved_in_the_lab_stays_in_the_lab(lab, home, browser):
    ours = [START, paths.ROOT / "reports" / "index.md"]
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in ours]
    notebook, index = (home / path.relative_to(paths.ROOT) for path in ours)
    index.unlink()
    page = browser.new_page()
    run_all(page, lab, START)
    assert_nothing_failed(page)
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.close()
    assert notebook.read_bytes() != before[0][0] and "hyper_dino/demo/all/ball" in index.read_text()
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in ours] == before
