"""Names from the data can be drawn with the one font of the house, whatever they are written in."""

import warnings
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from lib import paths
from lib.figures import strips, style
from lib.figures.heat import confusion
from lib.papers.hyper_dino.mapper import grid
from lib.papers.linear_prototypes import plane, space

NAMES = ["肝臓", "피부", "กล้ามเนื้อ", "Größe", r"$\frac$ $y$"]
CODES = np.arange(12) % 5
POINTS = np.stack([np.linspace(-0.4, 0.4, 12), np.linspace(0.3, -0.2, 12)], axis=1)


def pairs():
    return grid.pairs(POINTS, CODES, NAMES, np.linalg.norm(POINTS[:, None] - POINTS, axis=-1), 0.2)


def regions():
    v = torch.from_numpy(POINTS)
    return plane.regions(plane.place(v, torch.from_numpy(CODES), torch.arange(12), 1, 1.0, 0.5), CODES, NAMES, 11, 1, 1)


def components():
    return space.figure_4({"head": (np.pad(POINTS, ((0, 0), (0, 1))), (50, 30, 20))}, np.array(NAMES)[CODES])


def answers():
    image = Image.new("RGB", (9, 9))
    found = [strips.Answer(image, name, 0.1, right=True) for name in NAMES]
    return strips.strips([strips.Strip(image, f"query {name}/1.png\n{name}", found) for name in NAMES])


def mistakes():
    rows = [("by image", query, answer, 20.0) for query in NAMES for answer in NAMES]
    return confusion(pd.DataFrame(rows, columns=["rule", "query_class", "answer_class", "share"]))


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setenv("FORMAT", "svg")
    return tmp_path


@pytest.mark.parametrize("draw", [pairs, regions, components, answers, mistakes])
def test_no_name_is_taken_for_a_formula_or_lacks_a_glyph(draw, folders):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("error", message="Glyph")
        style.save(figure := draw(), folders / "reports/p/figure.png")
    text = "".join(ElementTree.parse(folders / "build/svg/p/figure.svg").getroot().itertext())
    assert NAMES[-1] in text
    shown = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    shown += [label.get_text() for axis in figure.axes for label in (axis.title, *axis.get_xticklabels())]
    assert all(any(name in text for text in shown) for name in ("GanZang", "Größe"))


@pytest.mark.parametrize("draw", [answers, regions])
def test_a_picture_has_a_palette_and_the_same_bytes_whenever_it_is_drawn(draw, folders):
    files = [folders / "reports/p" / name for name in ("one.png", "two.png")]
    for file in files:
        style.save(draw(), file)
    assert files[0].read_bytes() == files[1].read_bytes()
    with Image.open(files[0]) as picture:
        assert picture.mode == "P" and picture.convert("RGB").getpixel((0, 0)) == (255, 255, 255)


def test_svg_is_drawn_of_reports_where_it_is_asked_for(folders, monkeypatch):
    style.save(answers(), folders / "build/figures/figure.png")
    monkeypatch.delenv("FORMAT")
    style.save(answers(), folders / "reports/p/figure.png")
    assert list(folders.rglob("*.svg")) == [] and len(list(folders.rglob("*.png"))) == 2


def test_names_in_latin_greek_and_cyrillic_letters_stay_as_they_are():
    for name in ("naevus", "œdème", "Größe", "ткань", "δέρμα", "carcinoma_2 (G3)\nline"):
        assert style.legible(name) == name
