"""Chest radiographs as published, and as a folder per class."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lib.datasets import chest_xray, finding, loaders
from lib.errors import MissingDataset

NAMES = {
    "normal": ("IM-0011-0001-0001", "IM-0011-0001-0002", "NORMAL2-IM-0012-0001"),
    "pneumonia": ("person11_bacteria_45", "person11_virus_1", "person7_bacteria_8"),
}


def draw(root: Path, *parts: str, upper: bool = False) -> Path:
    for label, names in NAMES.items():
        folder = root.joinpath(*parts, label.upper() if upper else label)
        folder.mkdir(parents=True)
        for name in names:
            Image.fromarray(np.zeros((4, 4), np.uint8)).save(folder / f"{name}.jpeg")
    return root


@pytest.mark.parametrize(("parts", "upper"), [((), False), (("chest_xray", "test"), True)])
def test_the_label_is_the_folder_and_the_group_the_patient_of_that_class(tmp_path, parts, upper):
    table = loaders.load("chest_xray", draw(tmp_path, *parts, upper=upper))
    assert table.classes == ["normal", "pneumonia"] and len(table) == 6
    assert sorted(set(table.groups)) == ["normal 11", "normal 12", "pneumonia 11", "pneumonia 7"]
    assert table.group_kind == "patient"


def test_other_images_are_listed_and_nothing_else_is_an_error(tmp_path):
    draw(tmp_path)
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "normal" / "logo.png")
    table = chest_xray.load(tmp_path)
    assert len(table) == 6 and [what for what, _ in table.skipped] == ["normal/logo.png"]
    with pytest.raises(MissingDataset, match="1 other images"):
        for file in tmp_path.rglob("*.jpeg"):
            file.unlink()
        chest_xray.load(tmp_path)


@pytest.mark.parametrize("upper", [False, True])
def test_they_are_found_by_their_folders_and_names(tmp_path, upper):
    assert finding.find(draw(tmp_path, "x", upper=upper)) == {"chest_xray": tmp_path / "x"}
