"""Hashes of the committed reports of real images: a notebook of the demo runs again when those that it shows change.

``python -m lib.pipeline.real`` writes ``build/real/<profile>/<notebook>``, which stages depend on. They cannot depend
on the reports themselves: these are what the sample's stages write, and DVC would run the sample before the demo.
"""

import re
from pathlib import Path

from lib import errors, paths
from lib.files import sha256, whole
from lib.study.real import GPU, PROFILE
from lib.study.saved import place

REAL = paths.BUILD / "real"
READERS = {"demo": True, "sample": False, "gpu": False, "paper": False, "own": False}
"""Profile → whether its notebooks show reports of real images (:mod:`lib.study.real`); others have such images."""
ALSO = re.compile(r'notebook=\\"(\w+)\\"')
"""How a cell, as JSON has it, names a notebook whose reports it shows too."""


def shown(notebook: str) -> list[str]:
    """The notebooks whose reports a notebook shows: its own, and those that its cells name.

    >>> shown("42_linear_prototypes_significance")
    ['41_linear_prototypes_retrieval', '42_linear_prototypes_significance']
    """
    source = (paths.NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8")
    return sorted({notebook, *ALSO.findall(source)})


def reports(notebook: str) -> list[Path]:
    """The files of the sample, and of large trainings, that a notebook shows, of all datasets."""
    candidates = (
        file
        for paper, section in map(place, shown(notebook))
        for profile in (PROFILE, GPU)
        for file in (paths.COMMITTED / paper / profile).glob(f"*/{section}/[!.]*")
    )
    return sorted(file for file in candidates if file.is_file())


def hashes(notebook: str) -> str:
    """One line for each of :func:`reports`: path and hash."""
    return "".join(f"{file.relative_to(paths.COMMITTED).as_posix()} {sha256(file)}\n" for file in reports(notebook))


def write() -> None:
    """Write ``build/real`` anew: a file for each profile and notebook of a paper."""
    notebooks = [path.stem for path in sorted(paths.NOTEBOOKS.glob("[1-9]*.ipynb"))]
    with whole(REAL, "set of hashes") as draft:
        for profile, reads in READERS.items():
            (draft / profile).mkdir(parents=True)
            for notebook in notebooks:
                (draft / profile / notebook).write_text(hashes(notebook) if reads else "", encoding="utf-8")


if __name__ == "__main__":
    errors.one_message(write)
