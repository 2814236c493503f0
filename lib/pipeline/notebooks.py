"""The life of a notebook: stripped to a source, run headlessly with parameters, brought back to be read.

``python -m lib.pipeline.code``               notebooks/*.ipynb without outputs → build/source/ (what the pipelines run)
``python -m lib.pipeline.notebooks run``      build/source/NN.ipynb with parameters → build/executed/, reports/
``python -m lib.pipeline.notebooks renew``    what agreed with reports/ and lies in build/rebuilt/ is to be built again
``python -m lib.pipeline.notebooks collect``  the executed demo notebooks → notebooks/, as readers see them
"""

import argparse
import json
import logging
import os
import re
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from lib import errors, files
from lib.errors import InputError
from lib.figures import screen
from lib.files import whole, workshop
from lib.paths import BUILD, NOTEBOOKS, REPORTS, ROOT
from lib.pipeline import compare, params

SOURCE = BUILD / "source"
EXECUTED = BUILD / "executed"
DONE = BUILD / "done"  # one file per finished run: not in git, so a fresh clone rebuilds what it holds
FAILED = BUILD / "failed"
REBUILT = compare.REBUILT
SECTION = "section of reports"
REPORT = re.compile(r"README\.md|run\.json|(table|figure)_\w+\.(csv|json|md|png|svg)")
OS_ERROR = re.compile(r"\[Errno (?P<number>\d+)\] (?P<what>[^:]*)(: '(?P<file>.*)')?")
FROZEN, WHOLE = "frozen", "gpu"  # cells about heads on frozen features, left out where whole networks are trained
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read(path: Path) -> NotebookNode:
    """The notebook in ``path`` in the current format."""
    return nbformat.read(path, as_version=4)


def write(notebook: NotebookNode, path: Path) -> None:
    """Write ``notebook`` to ``path``, whole or not at all, and only if something changed."""
    text = nbformat.writes(notebook) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        with whole(path) as draft:
            draft.write_text(text, encoding="utf-8")


def stripped(notebook: NotebookNode) -> NotebookNode:
    """``notebook`` without outputs, counts, ids and editor metadata: what decides its results, and nothing else."""
    cells = []
    for number, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        bare = {
            "cell_type": cell.cell_type,
            "id": f"cell-{number}",
            "metadata": {"tags": tags} if tags else {},
            "source": cell.source,
        }
        if cell.cell_type == "code":
            bare |= {"execution_count": None, "outputs": []}
        cells.append(nbformat.from_dict(bare))
    return nbformat.from_dict({"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5})


def parameters(notebook: NotebookNode) -> dict[str, Any]:
    """The parameters of a notebook, what its cell tagged ``parameters`` assigns; without such a cell it has none.

    Raises:
        InputError: if the cell holds anything but plain assignments of literals.
    """
    for cell in notebook.cells:
        if "parameters" in cell.metadata.get("tags", []):
            try:
                return params.assigned(cell.source)
            except (AttributeError, ValueError) as error:
                raise InputError(
                    f"the parameters cell must hold lines like `name = 1.0` and nothing else ({error}):\n{cell.source}"
                ) from error
    return {}


def run(name: str, profile: str, dataset: str, words: Sequence[str]) -> Path:
    """Run the stripped notebook ``name`` with parameters, headlessly, from the project's root; returns where it is.

    Args:
        name: file name without suffix, for example ``13_hyper_dino_retrieval``.
        profile, dataset: where the executed copy goes; passed on as parameters if the notebook has them.
        words: further parameters, see :func:`lib.pipeline.params.read_arguments`.

    Raises:
        InputError: unknown notebook or parameter, a value without meaning, or when a cell raised one; the message is
            that cell's.
    """
    source = SOURCE / f"{name}.ipynb"
    if not source.exists():
        known = ", ".join(sorted(path.stem for path in SOURCE.glob("*.ipynb"))) or "none; run `dvc repro source` first"
        raise InputError(f"there is no notebook {name!r} in {SOURCE.relative_to(ROOT)}; there is: {known}")
    notebook = read(source)
    known = parameters(notebook)
    given = params.read_arguments(words, known)
    params.refuse(f"notebook {name}", params.of_parameters(given, known))
    values = {key: value for key, value in {"profile": profile, "dataset": dataset}.items() if key in known} | given
    check_writable(REPORTS)
    target, failed = (folder / profile / dataset / f"{name}.ipynb" for folder in (EXECUTED, FAILED))
    done = DONE / profile / dataset / name
    for file in (done, failed):
        file.unlink(missing_ok=True)
    if profile == WHOLE:
        notebook.cells = [cell for cell in notebook.cells if FROZEN not in cell.metadata.get("tags", [])]
    with whole(target) as draft, reports_whole(bool(values)):
        _execute(notebook, draft, values, failed)
    with whole(done) as draft:
        draft.write_text("done\n", encoding="utf-8")
    return target


def _execute(notebook: NotebookNode, draft: Path, values: dict[str, Any], failed: Path) -> None:
    """Run ``notebook`` into ``draft``; if a cell fails, what ran is kept as ``failed``."""
    os.environ["HEADLESS"] = "1"
    logging.getLogger("papermill").setLevel(logging.ERROR)  # it takes a line that sets two parameters for none
    try:
        papermill.execute_notebook(
            notebook,
            draft,
            parameters=values,
            cwd=ROOT,
            progress_bar=False,
            stdout_file=sys.stdout,
            stderr_file=sys.stderr,
            kernel_name="python3",
            extra_arguments=["--log-level=CRITICAL"],  # a kernel that is stopped complains at length
        )
    except PapermillExecutionError as error:
        with whole(failed) as kept:
            shutil.copy2(draft, kept)
        mendable = issubclass(getattr(errors, error.ename, Exception), InputError)
        if (sentence := error.evalue if mendable else errors.of_disk(_os_error(error.evalue))) is not None:
            raise InputError(f"notebook {failed.stem}, cell {error.exec_count}: {sentence}") from error
        raise


def _os_error(text: str) -> OSError:
    """The error that a cell shows as this text, ``[Errno 28] No space left on device: 'file'``."""
    known = OS_ERROR.fullmatch(text)
    return OSError(int(known["number"]), known["what"], known["file"]) if known else OSError(text)


@contextmanager
def reports_whole(section: bool) -> Iterator[None]:
    """Let a notebook write its section's folder aside, and put it in place of the old one when the run ends.

    section: whether the notebook writes such a folder; 00_start_here, which has no parameters, writes the index of all.
    If the block raises, ``reports/`` is as it was before. A folder that agrees with the old one within its tolerance
    (:func:`lib.pipeline.compare.agree`) goes to ``build/rebuilt/``, and the old one stays, unless RENEW is set.
    """
    if not section:
        yield
        return
    with workshop(BUILD / "reports") as desk:
        before = os.environ.get("REPORTS_DIR")
        os.environ["REPORTS_DIR"] = str(desk)
        try:
            yield
        finally:
            os.environ.pop("REPORTS_DIR") if before is None else os.environ.update(REPORTS_DIR=before)
        for folder in sorted(desk.glob("*/*/*/*")):
            put_in_place(folder, folder.relative_to(desk))


def check_writable(folder: Path) -> None:
    """Raise InputError if nothing can be written to ``folder``, or where it is to be made: before anything runs."""
    place = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(place, os.W_OK):
        raise InputError(
            f"{place} cannot be written to, and results go there: change its permissions, or copy the "
            "project to a disk that takes files"
        )


def put_in_place(folder: Path, name: Path) -> None:
    """Move a finished section to ``reports/<name>``, or to ``build/rebuilt/<name>`` if what stands there may stay."""
    standing, rebuilt = REPORTS / name, REBUILT / name
    stays = not os.environ.get("RENEW") and compare.agree(standing, folder)
    with whole(rebuilt if stays else standing, SECTION, older=holds_reports) as draft:
        folder.replace(draft)
    if stays:
        print(f"{name}: agrees within its tolerance and stays; the new one is in {rebuilt} (RENEW=1 takes it)")
    elif rebuilt.exists():
        files.remove(rebuilt, SECTION)


def renew() -> None:
    """Forget that the sections in ``build/rebuilt/`` are done: the next build makes them again."""
    for file in REBUILT.glob("*/*/*/*/run.json"):
        record = json.loads(file.read_text(encoding="utf-8"))["run"]
        (DONE / record["profile"] / record["dataset"] / record["notebook"]).unlink(missing_ok=True)


def holds_reports(folder: Path) -> bool:
    """Whether ``folder`` holds tables and figures of ours and nothing else; those of early versions have no marker."""
    return all(REPORT.fullmatch(path.name) for path in folder.iterdir())


def readable(executed: NotebookNode, source: NotebookNode) -> NotebookNode:
    """The executed notebook as committed: small pictures; no injected cell, timings, progress lines, widget state."""
    cells = [cell for cell in executed.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    result = stripped(source)
    count = 0
    for bare, cell in zip(result.cells, cells, strict=True):
        if cell.cell_type != "code":
            continue
        count += 1
        bare.execution_count = count
        bare.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
        for out in bare.outputs:
            out.get("metadata", {}).clear()
            screen.reduce_output(out)
            if out.output_type == "execute_result":
                out.execution_count = count
    return result


def strip_all() -> None:
    """Write the stripped copy of every notebook to ``build/source``, and nothing but these."""
    with whole(SOURCE, "set of stripped notebooks") as draft:
        draft.mkdir()
        for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
            write(stripped(read(path)), draft / path.name)


def collect(names: Collection[str] = ()) -> list[str]:
    """Bring the executed demo notebooks, all or those of these names, back to ``notebooks/``; returns the names.

    Raises:
        InputError: before any is written, if a notebook was not run to its end, or not since its text changed.
    """
    paths = [path for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")) if not names or path.stem in names]
    if lost := sorted({*names} - {path.stem for path in paths}):
        raise InputError(f"no notebook {lost[0]!r} in {NOTEBOOKS}")
    done = {path: _finished(path) for path in paths}
    for path, notebook in done.items():
        write(notebook, path)
    return [path.stem for path in paths]


def _finished(path: Path) -> NotebookNode:
    """The demo's run of a notebook, as it is committed."""
    source = stripped(read(path))
    dataset = parameters(source).get("dataset", "all")
    executed = EXECUTED / "demo" / dataset / path.name
    if not executed.exists() or not (DONE / "demo" / dataset / path.stem).exists():
        raise InputError(f"no finished run of {path.name} with the demo profile; run `make reproduce` first")
    done = read(executed)
    sources = [c.source for c in done.cells if "injected-parameters" not in c.metadata.get("tags", [])]
    if sources != [cell.source for cell in source.cells]:
        raise InputError(f"{path.name} has changed since it was last run; run `make reproduce` first")
    return readable(done, source)


def main() -> None:
    """Command line, see the top of this module."""
    parser = argparse.ArgumentParser(prog="python -m lib.pipeline.notebooks", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("collect").add_argument("names", nargs="*")
    verbs.add_parser("renew")
    runner = verbs.add_parser("run")
    runner.add_argument("name")
    runner.add_argument("profile")
    runner.add_argument("dataset")
    arguments, words = parser.parse_known_args()
    if arguments.verb == "run":
        print("wrote", run(arguments.name, arguments.profile, arguments.dataset, words).relative_to(ROOT))
    elif words:
        parser.error(f"unknown arguments: {' '.join(words)}")
    elif arguments.verb == "renew":
        renew()
    else:
        print("\n".join(f"notebooks/{name}.ipynb" for name in collect(arguments.names)))


if __name__ == "__main__":
    errors.one_message(main)
