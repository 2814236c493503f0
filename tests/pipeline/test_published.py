"""The library's defaults are the published hyper-parameters, and one place says so."""

import tomllib

import pytest
import yaml

from lib import paths
from lib.pipeline import profiles
from lib.training import acir, hyp_vit, hyper_dino, label_tree, linear_prototypes
from lib.training.by_class import ByClass
from lib.training.episodes import Episodes
from lib.training.fit import Schedule

FIELDS = {"support": "k", "n_bits": "bits", "published_lr": "lr"}
"""What params.yaml calls otherwise than the library."""

OFF = {"margin_weight"}
"""What a default leaves out: an objective has no margin unless it is given its weight."""


@pytest.mark.parametrize(
    ("default", "paper", "groups"),
    [
        (hyper_dino.Settings(), "hyper_dino", ["mapper", "loss", "features"]),
        (Schedule(), "hyper_dino", ["training"]),
        (linear_prototypes.Settings(), "linear_prototypes", ["head"]),
        (Episodes(), "linear_prototypes", ["training"]),
        (hyp_vit.Settings(), "hyp_vit", ["head", "training"]),
        (ByClass(), "hyp_vit", ["training"]),
        (acir.Design(), "acir", ["network"]),
        (label_tree.Objective(), "label_tree", ["loss", "head"]),
        (label_tree.Schedule(), "label_tree", ["training", "head"]),
    ],
    ids=lambda value: f"{type(value).__module__}.{type(value).__name__}" if hasattr(value, "__dict__") else None,
)
def test_defaults_are_those_of_params(default, paper, groups):
    published = {name: value for group in groups for name, value in profiles.settings()[paper][group].items()}
    geometry = vars(default).get("geometry")
    ours = vars(default) | ({"curvature": geometry.c} if hasattr(geometry, "c") else {})
    ours |= {name: ours[field] for name, field in FIELDS.items() if field in ours}
    known = {name: value for name, value in published.items() if name in ours and name not in OFF}
    assert known and {name: ours[name] for name in known} == known


def test_licence_and_citation_agree_with_the_package():
    package = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["license"] == package["license"] == "MIT"
    assert citation["version"] == package["version"]
    assert citation["authors"][0]["name"] in (paths.ROOT / "LICENSE").read_text(encoding="utf-8")
