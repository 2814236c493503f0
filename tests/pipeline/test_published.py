"""The library's defaults are the published hyper-parameters, and one place says so."""

import tomllib

import pytest
import yaml

from lib import paths
from lib.pipeline import profiles
from lib.training import hyper_dino, linear_prototypes
from lib.training.episodes import Episodes
from lib.training.fit import Schedule


@pytest.mark.parametrize(
    ("default", "paper", "groups"),
    [
        (hyper_dino.Settings(), "hyper_dino", ["mapper", "loss", "features"]),
        (Schedule(), "hyper_dino", ["training"]),
        (linear_prototypes.Settings(), "linear_prototypes", ["head"]),
        (Episodes(), "linear_prototypes", ["training"]),
    ],
    ids=["Hyper-DINO", "its schedule", "linear prototypes", "its episodes"],
)
def test_defaults_are_those_of_params(default, paper, groups):
    published = {name: value for group in groups for name, value in profiles.settings()[paper][group].items()}
    curvature = getattr(getattr(default, "geometry", None), "c", None)
    ours = vars(default) | {"support": getattr(default, "k", None), "curvature": curvature}
    known = {name: value for name, value in published.items() if name in ours}
    assert known and {name: ours[name] for name in known} == known


def test_licence_and_citation_agree_with_the_package():
    package = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["license"] == package["license"] == "MIT"
    assert citation["version"] == package["version"]
    assert citation["authors"][0]["name"] in (paths.ROOT / "LICENSE").read_text(encoding="utf-8")
