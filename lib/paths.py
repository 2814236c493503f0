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
REPORTS = ROOT / os.environ.get("REPORTS_DIR", "reports")  # the lab and the checks of the notebooks write elsewhere
PUBLISHED = ROOT / "reports" / "published"
WEIGHTS = ROOT / "weights"


def images(loader: str) -> Path:
    """The folder of a dataset's images: drawn ones in ``build``, real ones in (or linked into) ``data``."""
    return BUILD / "data" / loader if loader == "tissue" else DATA / loader


def features(dataset: str, encoder: str) -> Path:
    """The feature cache of one dataset and one encoder."""
    return BUILD / "features" / dataset / f"{encoder}.safetensors"


def report(paper: str, profile: str, dataset: str) -> Path:
    """The folder of one paper's tables and figures for one profile and dataset."""
    return REPORTS / paper / profile / dataset


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
