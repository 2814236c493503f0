"""Patches are cut from regions where one class fills a square; what is no pair of region and mask is refused."""

import sys

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from lib.datasets import cutting, loaders
from lib.errors import InputError, one_message

REGION = "TCGA-A1-A0SK-DX1_xmin45749_ymin25055_MPP-0.2500"
NAMES = "outside_roi tumor stroma lymphocytic_infiltrate necrosis_or_debris glandular_secretions fat plasma_cells "
NAMES += "other_immune_infiltrate normal_acinus_or_duct angioinvasion dcis"
VALUES = (0, 1, 2, 3, 4, 5, 9, 10, 11, 13, 19, 20)
CODES = "label\tGT_code\n" + "".join(f"{name}\t{value}\n" for name, value in zip(NAMES.split(), VALUES, strict=True))


def draw(path, width=16, height=16):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)).save(path)


@pytest.fixture
def bcss(tmp_path):
    """A region of 4 x 3 squares of 8 pixels, and a rest of 3 pixels at its right: as published, but for its size."""
    home = tmp_path / "0_Public-data-Amgad2019_0.25MPP"
    draw(home / "rgbs_colorNormalized" / f"{REGION}.png", width=35, height=24)
    mask = np.zeros((24, 35), dtype=np.uint8)
    mask[0:8, 0:8] = 1
    mask[0:6, 8:16], mask[6:8, 8:16] = 20, 2
    mask[8:16, 0:4], mask[8:16, 4:8] = 3, 10
    mask[8:13, 8:16], mask[13:16, 8:16] = 4, 0
    mask[16:24, 0:8], mask[16:24, 8:16] = 5, 13
    mask[:, 16:24] = 9
    (home / "masks").mkdir()
    Image.fromarray(mask).save(home / "masks" / f"{REGION}.png")
    (home / "meta").mkdir()
    (home / "meta" / "gtruth_codes.tsv").write_text(CODES)
    return home


@pytest.fixture
def lizard(tmp_path):
    """Two regions with nuclei: one square of gland, one of stroma, one of too few nuclei."""
    home = tmp_path / "lizard"
    draw(home / "Lizard_Images1" / "crag_1.png", width=24, height=8)
    draw(home / "Lizard_Images2" / "glas_2.png", width=8, height=8)
    x = np.concatenate([np.full(20, 3.0), np.full(20, 11.0), np.full(5, 19.0)])
    kinds = np.concatenate([np.full(15, 2), np.full(5, 6), np.full(10, 2), np.full(10, 3), np.full(5, 2)])
    (home / "Lizard_Labels" / "Labels").mkdir(parents=True)
    content = {"class": kinds[:, None], "centroid": np.stack([x, np.full(45, 4.0)], axis=1)}
    savemat(home / "Lizard_Labels" / "Labels" / "crag_1.mat", content)
    return home


def test_squares_are_cut_where_a_class_fills_them(bcss, lizard, tmp_path):
    counts = cutting.cut(tmp_path / "bps", bcss, lizard, pixels=8, share=0.75)
    assert counts == {"tumor": 2, "Stroma": 0, "Inflammatory": 1, "Necrosis": 0, "Fat": 3, "gland": 2}
    table = loaders.load("bps", tmp_path / "bps")
    at = {image_id.split("MPP-0.2500")[-1] for image_id in table.rows["image_id"] if image_id.startswith("tumour")}
    assert at == {"_0_0", "_8_0"}
    assert set(table.rows.query("label == 'gland'")["image_id"]) == {f"gland/{REGION}_8_16", "gland/crag_1_0_0"}
    whole = np.asarray(Image.open(bcss / "rgbs_colorNormalized" / f"{REGION}.png"))
    patch = np.asarray(Image.open(tmp_path / "bps" / "Inflammatory" / f"{REGION}_0_8.png"))
    assert np.array_equal(patch, whole[8:16, 0:8])


def test_cutting_again_replaces_what_was_cut_and_nothing_else(bcss, lizard, tmp_path):
    cutting.cut(tmp_path / "bps", bcss, None, pixels=8)
    assert cutting.cut(tmp_path / "bps", None, lizard, pixels=8)["gland"] == 1
    assert len(loaders.load("bps", tmp_path / "bps")) == 1
    draw(tmp_path / "own" / "tumor" / "1.png")
    with pytest.raises(InputError, match="own"):
        cutting.cut(tmp_path / "own", bcss, None, pixels=8)
    assert (tmp_path / "own" / "tumor" / "1.png").is_file()


def test_regions_and_masks_that_do_not_fit_are_refused(bcss, lizard, tmp_path):
    target, mask, codes = tmp_path / "bps", bcss / "masks" / f"{REGION}.png", bcss / "meta" / "gtruth_codes.tsv"
    nuclei = lizard / "Lizard_Labels" / "Labels" / "crag_1.mat"

    def refused(message, bcss=bcss, lizard=None, share=0.75):
        with pytest.raises(InputError, match=message):
            cutting.cut(target, bcss, lizard, pixels=8, share=share)
        assert not target.exists()

    refused("no square of 8 pixels", None, lizard, share=1.0)
    refused(r"share = 0\.2", share=0.2)
    refused("no folder rgbs_colorNormalized", lizard)
    refused("no regions with nuclei", None, bcss)
    nuclei.write_bytes(b"text")
    refused(r"crag_1\.mat: no class and centroid", None, lizard)
    codes.write_text(CODES.replace("fat\t9\n", ""))
    refused("does not name fat")
    codes.write_text(CODES)
    draw(mask, width=9, height=8)
    refused("has 9 x 8 pixels, its region 35 x 24: they are no pair")
    mask.unlink()
    refused("1 regions have no mask, such as TCGA-A1")


def test_the_command_says_what_it_cut(bcss, tmp_path, monkeypatch, capsys):
    arguments = ["--bcss", bcss, "--target", tmp_path / "bps", "--pixels", 8]
    monkeypatch.setattr(sys, "argv", ["cutting", *map(str, arguments)])
    one_message(cutting.main)
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'bps'}: 2 tumor, 0 Stroma, 1 Inflammatory")
    monkeypatch.setattr(sys, "argv", ["cutting", "--target", "x"])
    with pytest.raises(SystemExit):
        one_message(cutting.main)
