"""Where files are: absolute paths, so that papermill, pytest, nbval and Jupyter agree, and writing them whole."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
PIPELINES = ROOT / "pipelines"
REPORTS = Path(os.environ.get("REPORTS_DIR", ROOT / "reports"))  # a check of the notebooks writes elsewhere
PUBLISHED = ROOT / "reports" / "published"
WEIGHTS = ROOT / "weights"


def images(loader: str) -> Path:
    """The folder of a dataset's images: drawn ones in ``build``, real ones in (or linked into) ``data``."""
    return BUILD / "data" / loader if loader == "tissue" else DATA / loader


def features(profile: str, dataset: str, encoder: str) -> Path:
    """The feature cache of one dataset and one encoder."""
    return BUILD / "features" / profile / dataset / f"{encoder}.safetensors"


def report(paper: str, profile: str, dataset: str, section: str) -> Path:
    """The folder of tables and figures of one section of a paper, for one profile and dataset."""
    return REPORTS / paper / profile / dataset / section


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target`` to write a file or folder to; rename it into place at the end.

    If the block raises, ``target`` is as it was before and the temporary path is gone.
    An existing ``target`` is replaced.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    workshop = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    draft = workshop / target.name
    try:
        yield draft
        if draft.is_dir() and target.exists():
            shutil.rmtree(target)
        draft.replace(target)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
