"""Notebooks of the own-folder runs go through, end to end, on folders as people have them."""

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import joblib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from lib import paths
from lib.archive import methods
from lib.datasets import loaders
from lib.encoders import registry, views, zoo
from lib.figures import style
from lib.papers.hyper_dino.mapper import grid
from lib.pipeline import notebooks, own, params, profiles
from lib.search import synthetic
from lib.search.synthetic import hierarchy as made_up
from lib.study.paired import relation
from lib.training import dino, kept
from lib.training.dino import pretrain as distil
from lib.training.distillation import Settings

NAME = "eyes"
PIPELINE = own.pipeline(NAME, every=True)
RUNS = {stage: runs[NAME] for stage, runs in params.load(PIPELINE.with_name("params.yaml"))["runs"].items() if runs}
TINY = {
    "epochs": 1,
    "mapper_epochs": 1,
    "steps": 2,
    "experiments": 10,
    "nca_images": 60,
    "n_views": 2,
    "n_seeds": 2,
    "folds_used": 2,
    "lengths": [5, "full"],
    "ks": [1, 6, 200],  # more than any gallery here has
}


SWEEP = {"M0": (0, 0.5), "ALPHA": (0, 0.1), "NORM_WEIGHT": (1e-3,), "STEPS": (0, 30)}
NETWORKS = zoo.table()


def images(n: int, patients: int = 0) -> list[str]:
    """File names of n images in their class folder, dealt to so many patients (0: none is known)."""
    return [f"patient_{i % patients}/{i}.png" if patients else f"{i}.png" for i in range(n)]


FOLDERS = {
    "no patients": {f"species_{label}": images(30) for label in "abcdefgh"},
    "a patient per image": {
        label: [f"{label}_{i}/tile.png" for i in range(15)] for label in ("adenoma", "normal", "polyp")
    },
    "two classes": {"benign": images(14), "malignant": images(13)},
    "a class of one image": {"benign": images(14), "malignant": images(14), "normal": images(14), "rare": images(1)},
    "two patients": {label: images(16, patients=2) for label in ("benign", "malignant", "normal")},
    "two patients of one class each": {
        "benign": [f"patient_0/{i}.png" for i in range(14)],
        "malignant": [f"patient_1/{i}.png" for i in range(14)],
    },
}

HARDEST = ("a class of one image", "two patients", "two patients of one class each")
"""On these every notebook runs; on the others those that make folds, from which all others take theirs."""


class Colours:
    """A stand-in for every encoder: means and deviations of the colours in nine parts of the image."""

    dim = 54

    def __init__(self, name: str) -> None:
        self.name = name
        self.provenance = {"encoder": name}

    def encode(self, images: list[np.ndarray]) -> np.ndarray:
        small = [Image.fromarray(image).resize((12, 12)) for image in images]
        pixels = np.stack([np.asarray(image, dtype=np.float32) for image in small])
        parts = pixels.reshape(len(images), 3, 4, 3, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(len(images), 9, 16, 3)
        return np.concatenate([parts.mean(axis=2), parts.std(axis=2)], axis=1).reshape(len(images), -1)


def draw(root: Path, classes: dict[str, list[str]]) -> None:
    """Noise around a colour of the class, in files of these names."""
    rng = np.random.default_rng(0)
    for colour, (label, files) in zip(rng.integers(60, 200, (len(classes), 3)), classes.items(), strict=True):
        for file in files:
            pixels = colour + rng.normal(0, 15, 3) + rng.normal(0, 40, (24, 24, 3))
            (root / label / file).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(root / label / file)


def hierarchy(n: int, *rest: Any, **options: Any) -> Tensor:
    """A twentieth of it."""
    return made_up(n // 20, *rest, **options)


def save(figure: Figure, path: Path) -> None:
    """Draw a figure small."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=20)


def pretrain(pixels: Tensor, settings: Settings, **rest: Any) -> dino.Distilled:
    """Two steps of it."""
    return distil(pixels, replace(settings, steps=2, batch_size=4), **rest)


def one_at_a_time(function: Callable) -> Callable:
    """The function behind a lock: two threads that parse sources can end in a SystemError in Python 3.11."""
    lock = Lock()

    def locked(*arguments: Any) -> Any:
        with lock:
            return function(*arguments)

    return locked


class Own:
    """A folder of one's own and what its notebooks left behind, each run once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done: dict[str, dict[str, Any]] = {}
        self.notices: dict[str, str] = {}

    def run(self, stage: str) -> dict[str, Any]:
        """The names of a stage's notebook after its last cell, run with its own-folder parameters but tiny ones."""
        if stage == "linear_prototypes_significance":
            self.run("linear_prototypes_retrieval")
        if stage not in self.done:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always", UserWarning)
                self.done[stage] = executed(stage)
            self.notices[stage] = "\n".join(str(notice.message) for notice in heard if notice.category is UserWarning)
            assert not [notice for notice in heard if issubclass(notice.category, RuntimeWarning)]
        return self.done[stage]


@pytest.fixture(scope="module", params=FOLDERS)
def folder(request, tmp_path_factory) -> Iterator[Own]:
    """A folder where the project looks for it, reports beside it, and short work."""
    root = tmp_path_factory.mktemp("own")
    draw(root / "data" / NAME, FOLDERS[request.param])
    with pytest.MonkeyPatch.context() as patch, joblib.parallel_config(backend="threading"):
        for name, place in {"DATA": "data", "BUILD": "build", "REPORTS": "reports"}.items():
            patch.setattr(paths, name, root / place)
        patch.setenv("HEADLESS", "1")
        for name, values in SWEEP.items():
            patch.setattr(grid, name, values)
        for name in ("STEPS", "STEPS_OF_A_CLASS", "EPOCHS"):
            patch.setattr(methods, name, 1)
        patch.setattr(registry, "make", Colours)
        patch.setattr(zoo, "table", lambda: NETWORKS)
        patch.setattr(style, "save", save)
        patch.setattr(dino, "pretrain", pretrain)
        patch.setattr(synthetic, "hierarchy", hierarchy)
        patch.setattr(kept, "fingerprint", one_at_a_time(kept.fingerprint))
        extract()
        yield Own(request.param)


def extract() -> None:
    """What the stages before the notebooks write: the table, features, views."""
    content = params.load(PIPELINE.with_name("params.yaml"))
    images = loaders.load(NAME, paths.images(NAME))
    images.write(paths.table("own", NAME))
    for name in content["features"]["encoders"]:
        views.extract(images, Colours(name), paths.features("own", NAME, name), TINY["n_views"])


def executed(stage: str) -> dict[str, Any]:
    """What the cells of a stage's notebook leave behind."""
    notebook, settings = profiles.notebooks()[stage], profiles.settings()
    given = {"profile": "own", "dataset": NAME}
    for paper, section in re.findall(r"\$\{(\w+)\.(\w+)\}", profiles.commands()[stage]):
        given |= settings[paper][section]
    given |= RUNS[stage] | TINY
    names: dict[str, Any] = {"__name__": "__main__"}
    source = notebooks.read(paths.NOTEBOOKS / f"{notebook}.ipynb")
    for number, cell in enumerate(source.cells):
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{notebook}, cell {number}", "exec"), names)
        if "parameters" in cell.metadata.get("tags", []):
            names |= {name: given[name] for name in notebooks.parameters(source) if name in given}
    return names


@pytest.mark.parametrize("folder", HARDEST, indirect=True, scope="module")
@pytest.mark.parametrize("stage", RUNS)
def test_every_notebook_goes_through(folder, stage):
    assert stage in folder.done or folder.run(stage)


def test_the_rules_are_those_that_the_folder_allows(folder):
    by_name = folder.run("hyper_dino_retrieval")
    expected = ["by image", "by patient"] if folder.name == "two patients" else ["by image"]
    assert by_name["numbers"]["rule"].unique().tolist() == list(by_name["fold_of"]) == expected
    assert by_name["numbers"]["ours"].notna().all()
    n_folds = {rule: len(set(fold.tolist())) for rule, fold in by_name["fold_of"].items()}
    assert n_folds == dict(zip(expected, (5, 2), strict=False))


def test_a_notice_says_what_is_missing(folder):
    folder.run("hyper_dino_retrieval")
    words = {
        "no patients": "every image is a group of its own",
        "a patient per image": "every image is a group of its own",
        "two classes": "k = 200 is left out",
        "a class of one image": r"left out, because 5 folds need 5 images of a class: rare \(1\)",
        "two patients": "2 folds by group instead of 5: there are 2 groups",
        "two patients of one class each": "2 groups cannot be divided into folds",
    }
    assert re.search(words[folder.name], folder.notices["hyper_dino_retrieval"])


def test_a_class_of_one_image_is_in_no_table(folder):
    assert "rare" not in folder.run("linear_prototypes_retrieval")["images"].classes


def test_few_groups_are_not_taken_for_evidence(folder):
    if folder.name not in ("no patients", "two patients"):
        pytest.skip("some comparisons of a few dozen images have enough groups, some have not")
    few = folder.name == "two patients"
    relations = [relation(test) for test in folder.run("linear_prototypes_significance")["rows"].itertuples()]
    assert [words.startswith("cannot, with") for words in relations] == [few] * len(relations)
    assert folder.run("linear_prototypes_retrieval")["results"].keys() == ({"closed"} if few else {"closed", "open"})
