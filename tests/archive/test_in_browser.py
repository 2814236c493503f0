"""The page in a real browser, by mouse and keyboard: served, and opened as files."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lib.archive.app import opinions
from lib.archive.app.export import export
from lib.archive.archive import Archive
from tests.archive.conftest import MARKUP

pytestmark = pytest.mark.slow


@pytest.fixture
def tab(browser):
    """A tab in which nothing may go wrong but what its ``wanted`` names, and which asks nobody but this computer."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    tab.set_default_timeout(120_000)
    wrong = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    tab.on("dialog", lambda dialog: wrong.append(f"dialog {dialog.message}") or dialog.dismiss())
    requests, tab.wanted = [], []
    tab.on("request", lambda request: requests.append(request.url))
    yield tab
    tab.close()
    assert [text for text in wrong if not any(part in text for part in tab.wanted)] == []
    assert [url for url in requests if not url.startswith(("http://127.0.0.1:", "file:///", "data:", "blob:"))] == []


def until(tab, true: str) -> None:
    """Wait for it; the browser's own way of waiting is an eval, which the page forbids."""
    for _ in range(2400):  # two minutes: other tests want the processors as well
        if tab.evaluate(true):
            return
        tab.wait_for_timeout(50)
    pytest.fail(f"never came: {true}")


def ranks(tab) -> list[str]:
    """Rank, distance, class and patient of every answer, as they are read."""
    until(tab, "!document.getElementById('grid').hasAttribute('aria-busy')")
    return [card.inner_text() for card in tab.locator("#grid .card").all()]


def patients(tab) -> set[str]:
    return {re.search(r"patient_\d", text)[0] for text in ranks(tab)}


def ask_first(tab) -> None:
    tab.locator("#images .pick").first.focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#grid .card img[src]")


def test_ask_filter_and_compare_by_keyboard_and_what_archives_hold_stays_text(page, tab):
    tab.goto(page.address)
    ask_first(tab)
    assert len(ranks(tab)) == 18 and tab.locator("#shown").inner_text() == "18 of 24 images"
    assert "patient_0" in tab.locator("#query").inner_text() and "patient_0" not in patients(tab)
    assert MARKUP in tab.locator("#votes").inner_text() and MARKUP in tab.locator("#classes").inner_text()
    assert tab.locator("img[src='x']").count() == 0
    switch = tab.get_by_role("switch", name="Same patient left out")
    assert switch.is_checked()
    switch.focus()
    tab.keyboard.press("Space")
    until(tab, "[...document.querySelectorAll('#grid .note')].some(p => p.textContent == 'patient_0')")
    tab.get_by_role("checkbox", name="carcinoma").uncheck()
    until(tab, "document.querySelectorAll('#grid .card').length == 15")
    assert (
        "carcinoma" not in "".join(ranks(tab))
        and "0 / 8" in tab.locator("#classes li", has_text="carcinoma").inner_text()
    )
    assert tab.locator("#classes li", has_text="normal").inner_text().split() == ["normal", "8", "/", "8"]
    tab.get_by_role("button", name="Compare number 2 with your image").click()
    pair = tab.locator("#compare")
    assert pair.locator("figcaption").last.inner_text().startswith("2: distance")
    tab.keyboard.press("ArrowRight")
    until(tab, "document.querySelector('#compare figure:last-child figcaption').innerText.startsWith('3:')")
    until(tab, "[...document.querySelectorAll('#compare img')].every(image => image.naturalWidth)")
    tab.keyboard.press("Escape")
    assert not pair.is_visible()
    tab.go_back()
    assert tab.url.rstrip("/") == page.address


def test_an_image_of_ones_own_a_yes_and_a_strip(page, tab, built):
    pixels = np.random.default_rng(5).normal(130, 25, (60, 40, 3)).clip(0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(file := io.BytesIO(), "TIFF")
    tab.goto(page.address)
    tab.get_by_label("Its patient (optional)").fill("patient_1")
    own = {"name": f"{MARKUP}.tif", "mimeType": "image/tiff", "buffer": file.getvalue()}
    tab.set_input_files("#file", own)
    tab.wait_for_selector("#grid .card img[src]")
    assert len(ranks(tab)) == 18 and "patient_1" not in patients(tab)
    assert tab.locator("#query img").evaluate("image => image.decode().then(() => image.naturalHeight)") == 60
    yes = tab.get_by_role("button", name="Number 1 is like your image", exact=True)
    yes.click()
    until(tab, "document.querySelector('[aria-pressed=true]')")
    with opinions.beside(built).open(encoding="utf-8", newline="") as stream:
        (line,) = csv.DictReader(stream)
    opinions.beside(built).unlink()
    assert (line["said"], line["rank"], line["left_out"], line["query"]) == ("yes", "1", "patient_1", own["name"])
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save as a picture").click()
    with Image.open(download.value.path()) as strip:
        assert strip.format == "PNG" and strip.width > 2000 and len(strip.convert("RGB").getcolors(10**6)) > 1000


def test_a_broken_image_is_named_and_the_question_before_stays(page, tab):
    tab.goto(page.address)
    ask_first(tab)
    before = ranks(tab)
    tab.wanted.append("status of 422")
    tab.set_input_files("#file", {"name": "x.png", "mimeType": "image/png", "buffer": b"no image"})
    tab.wait_for_selector("#trouble:not([hidden])")
    assert tab.get_by_role("alert").inner_text().startswith("Your image: not an image that can be read here.")
    assert ranks(tab) == before
    tab.get_by_role("checkbox", name="carcinoma").uncheck()  # is asked of the image before, not of the broken one
    until(tab, "document.querySelectorAll('#grid .card').length == 12")
    assert "patient_0" in tab.locator("#query").inner_text()


def test_the_map_moves_as_the_ball_does(page, tab):
    tab.goto(page.address)
    ask_first(tab)
    moved = tab.evaluate(
        """() => {
            const [from, to, other] = [[0.3, 0.1], [-0.2, 0.5], [0.6, -0.6]];
            const gap = (z, w) => size(over(plus(z, [-w[0], -w[1]]), plus([1, 0], times(z, [-w[0], w[1]]))));
            const view = moving(from, to);
            const back = apply(inverse(view), apply(view, other));
            return [apply(view, from), to, gap(from, other), gap(apply(view, from), apply(view, other)), back, other];
        }"""
    )
    for found, wanted in zip(moved[::2], moved[1::2], strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    canvas = tab.locator("#disk")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    where = "map.where(3)"
    x, y = tab.evaluate(where)
    tab.mouse.move(box["x"] + x, box["y"] + y)
    tab.mouse.down()
    tab.mouse.move(box["x"] + x + 60, box["y"] + y + 40, steps=5)
    tab.mouse.up()
    until(tab, f"Math.abs({where}[0] - {x + 60}) < 2 && Math.abs({where}[1] - {y + 40}) < 2")
    tab.mouse.move(box["x"] + x + 60, box["y"] + y + 40)
    tab.mouse.wheel(0, -400)
    tab.wait_for_timeout(200)
    np.testing.assert_allclose(tab.evaluate(where), [x + 60, y + 40], atol=2)  # what lies under the mouse stays there
    canvas.focus()
    for key in ("0", "+", "ArrowLeft"):
        tab.keyboard.press(key)
    pointed = tab.locator("#pointed figcaption").inner_text()
    tab.keyboard.press("Enter")
    until(tab, f"document.getElementById('query').innerText.includes({json.dumps(pointed.split(', ')[-1])})")


def test_the_exported_page_opens_by_a_double_click(tab, built, tmp_path: Path):
    tab.goto(export(Archive.load(built), tmp_path / "page").as_uri())
    ask_first(tab)
    assert len(ranks(tab)) == 18 and "patient_0" not in patients(tab)
    assert not tab.locator("#file").is_visible()
    tab.get_by_role("checkbox", name="carcinoma").uncheck()
    until(tab, "document.querySelectorAll('#grid .card').length == 12")
    assert [text.split()[0] for text in ranks(tab)] == [str(rank) for rank in range(1, 13)]
    tab.get_by_role("button", name="Number 2 is not like your image").click()
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save yes and no").click()
    assert download.value.path().read_text(encoding="utf-8").splitlines()[1].endswith('"no"')
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save as a picture").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    tab.wanted.append("Content Security Policy")
    assert tab.evaluate("fetch('https://elsewhere.example/').then(() => 'sent', () => 'refused')") == "refused"


def test_nothing_is_cut_off_on_a_telephone(page, tab):
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.goto(f"{page.address}/#image=9")
    tab.wait_for_selector("#grid .card img[src]")
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
