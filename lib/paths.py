"""Where files are: absolute paths, so that papermill, pytest, nbval and Jupyter agree."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
PIPELINES = ROOT / "pipelines"
REPORTS = ROOT / os.environ.get("REPORTS_DIR", "reports")  # the lab and the checks of the notebooks write elsewhere
COMMITTED = ROOT / "reports"  # as git has them, wherever a run writes
TRAINED = BUILD / os.environ.get("TRAINED_DIR", "trained")  # what was trained once (lib.training.kept)
PUBLISHED = COMMITTED / "published"
WEIGHTS = ROOT / "weights"
DRAWN = ("tissue", "tissue_40x", "tissue_100x", "tissue_200x", "tissue_400x")
"""Datasets that this project draws."""


def images(loader: str) -> Path:
    """The folder of a dataset's images: drawn ones in ``build``, real ones in (or linked into) ``data``."""
    return (BUILD / "data" if loader in DRAWN else DATA) / loader


def table(profile: str, dataset: str) -> Path:
    """The table of one dataset's images, a row each."""
    return BUILD / "tables" / profile / f"{dataset}.csv"


def features(profile: str, dataset: str, encoder: str) -> Path:
    """The feature cache of one dataset and one encoder."""
    return BUILD / "features" / profile / dataset / f"{encoder}.safetensors"


def report(paper: str, profile: str, dataset: str, section: str) -> Path:
    """The folder of tables and figures of one section of a paper, for one profile and dataset."""
    return REPORTS / paper / profile / dataset / section
