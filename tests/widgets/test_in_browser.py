"""The sliders in a real JupyterLab in a real browser, moved with the keyboard as a reader moves them."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from nbformat import NotebookNode

from lib import datasets, encoders, notebooks, paths
from lib.errors import MissingDataset
from lib.heads import HyperbolicMapper, Reduction
from lib.training import grid, plane
from lib.training.episodes import Episodes
from lib.widgets import ball, contrastive, prototypes
from lib.widgets.board import Board

pytestmark = pytest.mark.slow

BALL = paths.NOTEBOOKS / "11_hyper_dino_ball.ipynb"
LOSS = paths.NOTEBOOKS / "12_hyper_dino_mapper.ipynb"
PLANE = paths.NOTEBOOKS / "40_linear_prototypes_plane.ipynb"
TOKEN = "a-token-for-this-test-only"
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},  # cells out of sight exist as well
    "apputils-extension/notification": {"checkForUpdates": False, "doNotDisturbMode": True, "fetchNews": "false"},
}


def absent(what: str) -> None:
    """Skip where somebody works without it; fail where everything must be checked."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab that sees copies of the notebooks and none of the user's settings."""
    home = tmp_path_factory.mktemp("lab")
    names = ("config", "data", "runtime", "settings", "workspaces", "ipython", "reports", "notebooks")
    folders = {name: home / name for name in names}
    for folder in folders.values():
        folder.mkdir()
    for name, values in SETTINGS.items():
        extension, plugin = name.split("/")
        file = folders["settings"] / "@jupyterlab" / extension / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    for path in (BALL, LOSS, PLANE):
        notebooks.write(up_to_the_sliders(path), folders["notebooks"] / path.name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(folders["config"]),
        "JUPYTER_DATA_DIR": str(folders["data"]),
        "JUPYTER_RUNTIME_DIR": str(folders["runtime"]),
        "JUPYTERLAB_SETTINGS_DIR": str(folders["settings"]),
        "JUPYTERLAB_WORKSPACES_DIR": str(folders["workspaces"]),
        "IPYTHONDIR": str(folders["ipython"]),
        "REPORTS_DIR": str(folders["reports"]),
        "PYTHONPATH": str(paths.ROOT),
        "HEADLESS": "1",
    }
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.token": TOKEN,
        "ServerApp.root_dir": folders["notebooks"],
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "MappingKernelManager.cull_idle_timeout": 300,  # if the tests are killed, kernels and server end by themselves
        "MappingKernelManager.cull_connected": True,
        "ServerApp.shutdown_no_activity_timeout": 300,
        "LabApp.expose_app_in_browser": True,
        "LabApp.extension_manager": "readonly",
    }
    command = [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())]
    log = home / "lab.log"
    with log.open("w") as stream:
        server = subprocess.Popen(command, env=environment, cwd=home, stdout=stream, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(lambda: answers(f"{address}/api/status?token={TOKEN}"), 60, log)
        yield address
    finally:
        server.terminate()
        server.wait(30)


def up_to_the_sliders(path: Path) -> NotebookNode:
    """A copy without outputs that ends with the sliders: what comes after them is not asked for here."""
    copy = notebooks.stripped(notebooks.read(path))
    (sliders,) = (n for n, cell in enumerate(copy.cells) if "nbval-ignore-output" in cell.metadata.get("tags", []))
    copy.cells = copy.cells[: sliders + 1]
    return copy


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


@pytest.fixture(scope="module")
def browser() -> Iterator:
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        absent("no Chromium on this machine; on Debian: apt-get install chromium")
    quiet = ("gpu", "quic", "background-networking", "component-update", "sync", "dev-shm-usage")
    flags = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, headless=True, args=flags)
        yield running
        running.close()


def run_all(page, address: str, path: Path) -> None:
    """Open the copy of the notebook ``path`` and run all its cells."""
    page.goto(f"{address}/lab/tree/{path.name}?token={TOKEN}&reset")
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
    page.wait_for_function("window.allRun", timeout=240_000)


def assert_nothing_failed(page) -> None:
    cells = page.evaluate("window.jupyterapp.shell.currentWidget.context.model.toJSON().cells")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [out["evalue"] for cell in code for out in cell["outputs"] if out["output_type"] == "error"] == []
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert page.get_by_text("Error displaying widget").count() == 0
    assert page.get_by_text("Error creating widget").count() == 0


def press_right(page, board: Board, slider: str) -> str:
    """Focus the slider as Tab does, press the right arrow, and return the readout when it has changed."""
    description = board.sliders[slider].description
    row = page.locator(".jupyter-widgets.widget-slider", has=page.get_by_text(description, exact=True))
    handle = row.get_by_role("slider")
    handle.wait_for(timeout=30_000)
    readout = page.locator(".jupyter-widgets.widget-html pre")
    picture = page.locator("img.jupyter-widgets.widget-image")
    before = readout.inner_text(), picture.get_attribute("src")
    assert before[0] == board.text
    handle.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "before => document.querySelector('.jupyter-widgets.widget-html pre').innerText !== before", arg=before[0]
    )
    page.wait_for_function(
        "before => document.querySelector('img.jupyter-widgets.widget-image').src !== before", arg=before[1]
    )
    return readout.inner_text()


def tiles_for(path: Path) -> tuple[datasets.ImageTable, np.ndarray]:
    """The embedded tiles and their features of the encoder of a notebook."""
    try:
        images = datasets.load("tissue", paths.images("tissue"))
    except MissingDataset as missing:
        absent(f"the embedded tiles have not been drawn yet: run make reproduce ({missing})")
    encoder = notebooks.parameters(notebooks.read(path))["encoder"]
    return encoders.extract(images, encoders.make(encoder), paths.features("demo", "tissue", encoder)).align(images)


def board_of_the_plane() -> Board:
    """What notebook 40 shows, computed here: the same images, the same head, the same training."""
    images, x = tiles_for(PLANE)
    own = notebooks.parameters(notebooks.read(PLANE))
    rows = np.flatnonzero(images.codes < own["n_classes"])
    labels = images.codes[rows]
    v, _ = plane.flat_embedding(x[rows], labels, Episodes(epochs=own["epochs"]), seed=own["seed"])
    shown = grid.few(labels, own["images_per_class"], own["n_classes"], own["seed"])
    v, y = v[shown], torch.from_numpy(labels[shown])
    return prototypes.explore(v, y, images.classes[: own["n_classes"]], plane.hardest(v, y), own["seed"])


def published_board() -> Board:
    """What notebook 12 shows, computed here: the same images, the same mapper, the same training."""
    images, x = tiles_for(LOSS)
    few = grid.few(images.codes, per_class=6, classes=8, seed=0)
    small = Reduction.fit(x, images.codes, "PCA", 32)(x[few])
    head = HyperbolicMapper(32, 2, generator=torch.Generator().manual_seed(0))
    values = contrastive.M0, contrastive.ALPHA, contrastive.NORM_WEIGHT, contrastive.STEPS
    trained = grid.fit(head, small, np.asarray(images.codes[few]), *values)
    return contrastive.explore(trained, images.classes, step=30)


BOARDS = [
    (BALL, ball.explore, {"c": 1.05, "clip_radius": 0.7, "x": 0.65, "y": 0.35}),
    (LOSS, published_board, {"m0": 0.75, "alpha": 0.2, "norm_weight": 0.01, "step": 35}),
    (PLANE, board_of_the_plane, {"k": 6, "temperature": 10**0.25, "c": 0.1}),
]


@pytest.mark.parametrize(("path", "expected", "after_one_step"), BOARDS, ids=lambda part: getattr(part, "stem", ""))
def test_the_sliders_answer_the_arrow_keys(lab, browser, path, expected, after_one_step):
    board = expected()
    page = browser.new_page()
    run_all(page, lab, path)
    assert_nothing_failed(page)
    for slider, value in after_one_step.items():
        found = press_right(page, board, slider)
        board.sliders[slider].value = value
        assert found == board.text
    assert_nothing_failed(page)
    page.close()
