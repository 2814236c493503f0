"""The README says what is so: its numbers are those of the reports, its commands exist, its links lead somewhere."""

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from lib import paths, search
from lib.datasets.catalogue import DATASETS
from lib.errors import InputError
from lib.geometry import Euclidean, Sphere
from lib.pipeline import readme

TEXT = (paths.ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
COMMANDS = sorted(
    set(re.findall(r"`(make [^`<]+?)(?: DATA=<folder>)?`", TEXT)) | set(re.findall(r"^(make .*)$", TEXT, flags=re.M))
)


def test_the_generated_part_is_current():
    assert readme.filled(TEXT) == TEXT


def test_every_number_of_the_results_is_in_a_report():
    part = TEXT.partition(readme.START)[2].partition(readme.END)[0]
    values = set(re.findall(r"\d+\.\d\d", part))
    tables = "\n".join(path.read_text() for path in (paths.ROOT / "reports").rglob("table_*.csv"))
    reported = {f"{float(value):.2f}" for value in re.findall(r"\d+\.\d{4}", tables)}
    assert values and values <= reported


def test_every_paper_and_dataset_has_one_row_of_the_committed_values():
    rows = readme.table().set_index(["paper", "images"])
    assert rows.index.is_unique and set(rows.index.get_level_values(0)) == {"Hyper-DINO", "Linear prototypes"}
    built = {file.parts[-3] for file in (paths.ROOT / "reports/hyper_dino/sample").glob("*/retrieval/table_beside.csv")}
    assert sum(paper == "Hyper-DINO" for paper, _ in rows.index) == len(built)
    file = paths.report("hyper_dino", "sample", "bh200x", "retrieval") / "table_opponents.csv"
    values = pd.read_csv(file).set_index(["rule", "method", "metric", "k"])["ours"].sort_index()
    names = "raw features, cosine", "Hyper-DINO(PCA(384), 32)"
    plain, head = (values["by patient", name, "ap_min", 20] for name in names)
    row = rows.xs("Hyper-DINO").filter(like="BreakHis at 200X", axis=0).iloc[0]
    assert row["by group: list"] == f"{plain:.2f} → {head:.2f}"


def test_the_published_values_are_those_of_the_abstract_and_the_text():
    rows = readme.table()
    printed = {(row["paper"], row["images"].split(",")[0]): row["published: list"] for row in rows.to_dict("records")}
    assert printed["Hyper-DINO", "Kather 2016"] == "88.46 → 94.61"
    assert printed["Hyper-DINO", "BreakHis at 200X"] == "53.48 → 78.91"  # the baseline stands in the text alone
    assert readme._published("linear_prototypes", "ham10000") == {"published: list": "52.81 → 68.15"}


def test_without_real_images_the_drawn_tiles_stand_and_nothing_published(monkeypatch):
    found = readme.profiles.runs
    monkeypatch.setattr(
        readme.profiles, "runs", lambda name: found("demo") if name == "demo" else {key: {} for key in found(name)}
    )
    rows = readme.table()
    assert set(rows["paper"]) == {"Hyper-DINO", "Linear prototypes"}
    assert rows["images"].str.startswith("procedural").all() and set(rows["published: list"]) == {"–"}


def test_the_other_papers_rows_are_those_of_their_tables_and_tests():
    rows = readme.others().set_index(["paper", "images"])
    assert rows.index.is_unique and set(rows.index.get_level_values(0)) == {"Hyp-ViT", "ACIR", "Label tree"}
    row, folder = rows.loc["Hyp-ViT", "CUB-200-2011 birds"], paths.report("hyp_vit", "sample", "cub", "retrieval")
    values = pd.read_csv(folder / "table_2.csv").query("k == 1").set_index("method")["ours"]
    assert row["plain"] == f"{values['no head']:.2f}" and row["Hyp, ACIR, HWC+LAM"] == f"{values['Hyp']:.2f}"
    tests = pd.read_csv(folder / "table_tests.csv").query("first == 'Hyp' and second == 'Sph' and k == 1")
    gain = f"{tests['difference'].item():+.2f}"
    assert row["difference"] == (f"**{gain}**" if tests["p_holm"].item() <= 0.05 else gain)
    assert rows.loc["Hyp-ViT"]["by class"].eq("–").all(), "its categories are all new: each counts alike already"
    by_class = pd.read_csv(paths.REPORTS / "acir/sample/ham10000/hashing/table_tests_by_class.csv")
    gain = by_class.query("first == 'ACIR-16bit' and second == 'CSQ-16bit'")["difference"].item()
    assert rows.loc["ACIR", "HAM10000"]["by class"].strip("*") == f"{gain:+.2f}"


def test_the_findings_follow_from_the_tests(monkeypatch):
    """Other results make other findings: only a difference that is above 0 and clear is counted."""
    groups = {"n_units": 9, "p_floor": 0.002, "title": "Kather 2016"}
    leak = [("ball", 20, -9.5, 0.01), ("no mapper", 20, 1.25, 0.5)]
    control = [("flat, half margin", 20, -3.5, 0.01), ("no mapper", 20, 7.75, 0.2)]
    gains = [("raw features, cosine", 20, 2.75, 0.2), ("raw features, cosine", 1, 4.5, 0.001), ("NCA(32)", 1, 8, 0.01)]
    gains += [("linear classifier, probability", 20, -1.5, 0.03)]
    rare = [("raw features, cosine", 20, -6.25, 0.01), ("linear classifier, probability", 20, -7.75, 0.01)]
    opened = [("no mapper", 20, 4.25, 0.6), ("flat, half margin", 20, -4.5, 0.02), (readme.LOGITS, 20, -9, 0.2)]
    votes = [("Hyper-DINO(PCA(8), 4)", 1, 14.14), ("Hyper-DINO(PCA(8), 4)", 3, 99), ("raw features, cosine", 1, 20.59)]
    names, by_slide = ["k", "difference", "p_holm"], {"rule": "by slide"} | groups
    tables = {
        "table_leakage": pd.DataFrame(leak, columns=["method", *names]).assign(**groups),
        "table_control_tests": pd.DataFrame(control, columns=["second", *names]).assign(first="ball", **by_slide),
        "table_tests": pd.DataFrame(gains, columns=["second", *names]).assign(**by_slide),
        "table_gallery_tests": pd.DataFrame(opened, columns=["second", *names]).assign(**groups, rule="open"),
        "table_patients": pd.DataFrame(votes, columns=["method", "k", "macro_f1"]).assign(title="Kather 2016"),
        "table_tests_by_class": pd.DataFrame(rare, columns=["second", *names]).assign(**by_slide),
    }
    monkeypatch.setattr(readme, "paired", lambda section, name: tables[name])
    own, curvature, gain, unseen = readme.findings()
    assert "the head helps on 0 of 1 datasets" in unseen and "components: +4.25 on Kather 2016. Against" in unseen
    assert "flat space it wins on 0 of 1 and loses on 1, against a classifier's logits on 0 of 1 and 0" in unseen
    assert unseen.endswith(": -4.50 and -9.00 on Kather 2016.")
    assert "group, on 1 of 1 datasets" in own and "+9.50 and -1.25 on Kather 2016" in own
    assert "helps on 0 of 1 datasets" in curvature and "-3.50 on Kather 2016" in curvature
    assert "on 0 of 1 datasets over a list of 20, on 1 of 1" in gain and "+2.75 and +4.50 on Kather 2016" in gain
    assert "counting alike, on 0 of 1: -6.25 on Kather 2016." in gain
    assert "it wins on 0 of 1 and loses on 1: -1.50 on Kather 2016; every class alike" in gain
    assert "alike, on 0 of 1 and 1: -7.75 on Kather 2016. Untested, the group left out" in gain
    assert gain.endswith("of the first answer: 14.1 (plain: 20.6) on Kather 2016.")
    tables["table_tests_by_class"] = tables["table_patients"] = pd.DataFrame()
    assert readme.findings()[2].endswith("loses on 1: -1.50 on Kather 2016.")
    assert "counting alike" not in readme.findings()[2]


def test_installation_stands_in_the_first_screen_and_the_page_is_short():
    assert TEXT.index("make reproduce") < 1200 and TEXT.index("make reproduce") < TEXT.index(readme.START)
    assert len([word for word in TEXT.split() if set(word) - set("|-–→")]) < 1300


def test_words_are_explained_before_they_are_used():
    explained = TEXT.index("## What it shows so far")
    for word in ("MAP@", "by group", "plain features"):
        assert TEXT.lower().index(word.lower()) > explained
        assert f"**{word.rstrip('@')}".lower() in TEXT.lower()


@pytest.mark.parametrize("command", COMMANDS)
def test_make_knows_every_command(command):
    done = subprocess.run([*command.split(), "--dry-run"], cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_links_and_pictures_lead_somewhere():
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", TEXT) if "://" not in target]
    assert targets and [target for target in targets if not (paths.ROOT / target).exists()] == []


def test_licences_are_those_of_the_catalogue():
    for name in ("kather", "breakhis", "ham10000", "cub"):
        assert DATASETS[name].licence in TEXT
    for name in set(DATASETS) - {*paths.DRAWN, "folder"}:
        assert (DATASETS[name].doi or DATASETS[name].page) in TEXT


def test_every_target_of_make_is_described():
    targets = re.findall(r"^([a-z-]+):.*##", MAKEFILE, flags=re.M)
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.M)[1].split()
    assert sorted(targets) == sorted(set(phony) - {"lint", "unit", "check-notebooks"})


MORE_LIKE_THIS, NEW_TILE = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)
SNIPPET = "\n".join(
    re.findall(r"^(?:    (.*))?$", search.__doc__.partition("::\n")[2].partition("Without")[0], flags=re.M)
)
EXACT = re.match(r".*^distances, indices = nearest\(.*?\n", SNIPPET, flags=re.S | re.M)[0]
"""The snippet as far as the exact search."""


def clusters(d: int, n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """``n`` vectors (n, d) around 20 places, mostly noise and as long as those of a network; and the place of each."""
    centres = torch.randn(20, d, generator=torch.Generator().manual_seed(99))
    random = torch.Generator().manual_seed(seed)
    place = torch.randint(20, (n,), generator=random)
    return centres[place] + 2 * torch.randn(n, d, generator=random), place


@pytest.mark.parametrize("form", [torch.Tensor.clone, torch.Tensor.numpy], ids=["tensors", "arrays"])
@pytest.mark.parametrize("d", [32, 128, 384])
def test_the_code_runs_as_it_stands_and_finds_what_flat_space_finds(d, form, tmp_path):
    (gallery, place), (query, asked) = clusters(d, 1500, 0), clusters(d, 100, 1)

    def precision(found: torch.Tensor) -> float:
        return (place[found[:, :10]] == asked[:, None]).double().mean().item()

    flat = precision(torch.cdist(query.double(), gallery.double()).topk(10, largest=False).indices)
    for code in (EXACT, SNIPPET):
        found = {"gallery": form(gallery), "query": form(query), "folder": tmp_path / "archive"}
        exec(code, found)
        assert precision(found["indices"]) >= flat - 0.005
        assert (found["distances"].diff(dim=1) >= 0).all()
        points = found["query"].double(), found["gallery"].double()
        exact = found["ball"].pairwise(*points).topk(20, largest=False)
        torch.testing.assert_close(found["distances"], exact.values.float())
        alike = (found["indices"] == exact.indices).double().mean().item()
        assert alike == 1 if code is EXACT else alike > 0.95


def test_a_folder_of_tiles_gives_the_nearest_to_the_first_and_to_a_new_one(tmp_path, monkeypatch, capsys):
    """As it stands, in a folder with tiles of its layout: twins of the first lie with its patient, and with another."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for number in range(24):
        file = tmp_path / f"my_tiles/class_{number % 2}/patient_{number % 6}/tile_{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(file)
    first, other = (tmp_path / f"my_tiles/class_{number}/patient_{number}/twin.png" for number in (0, 1))
    for target in (first, other, tmp_path / "new_tile.png"):
        shutil.copy(tmp_path / "my_tiles/class_0/patient_0/tile_00.png", target)
    named = {}
    exec(MORE_LIKE_THIS, named)
    order = named["names"].iloc[named["indices"][0]].tolist()
    assert len(order) == 20 and order[0] == "class_1/patient_1/twin.png"
    assert named["names"].iloc[0] == "class_0/patient_0/tile_00.png"
    assert not any("patient_0/" in name for name in order), "its own patient"
    assert "twin.png" in capsys.readouterr().out
    exec(NEW_TILE, named)
    assert named["its_vector"].shape == (1, 1280)
    twins = {"class_0/patient_0/tile_00.png", "class_0/patient_0/twin.png", "class_1/patient_1/twin.png"}
    assert set(capsys.readouterr().out.splitlines()[:3]) == twins


def test_a_small_folder_is_searched_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for number, (label, patient) in enumerate([("a", 1), ("a", 1), ("b", 2)]):
        file = tmp_path / f"my_tiles/{label}/patient_{patient}/{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 40), (60 * number, 90, 120)).save(file)
    exec(MORE_LIKE_THIS, {})
    assert capsys.readouterr().out.split() == ["query:", "a/patient_1/0.png", "b/patient_2/2.png"]


def test_without_the_scale_the_code_is_refused_in_words():
    (gallery, _), (query, _) = clusters(384, 200, 0), clusters(384, 5, 1)
    found = {"gallery": gallery, "query": query}
    with pytest.raises(InputError, match=r"query row \d lies on the rim of the ball"):
        exec(EXACT.replace("scale(", "ball.exp0("), found)


def test_the_other_spaces_are_named():
    for space in (Euclidean(), Sphere()):
        assert f"{type(space).__name__}()" in search.__doc__ and f'"{space.name}"' in search.__doc__
