"""An archive of your own images: what is in a folder, build it, ask it, show it.

``python -m lib.pipeline.archive check DATA``, ``build DATA``, ``ask IMAGE``, ``app``, ``export``; ``--help`` lists the
options.
"""

import argparse
from pathlib import Path

from lib import errors, paths
from lib.datasets import finding
from lib.datasets.table import ImageTable, read_csv, some
from lib.errors import InputError
from lib.pipeline.check import ENCODER

HOME = Path("archive")
"""Where archives are, below the current folder, if nothing else is said."""


def build(data: Path, name: str | None, encoder: str | None, method: str | None, target: Path | None) -> Path:
    """Build the archive of the images below ``data``; its folder. See :meth:`lib.archive.archive.Archive.build`.

    encoder, method: if not given, those that :func:`recommended` names.
    """
    from lib.archive import methods
    from lib.archive.archive import Archive
    from lib.pipeline import profiles

    tables = finding.tables(data, name)
    if len(tables) > 1:
        raise InputError(f"{data} holds several datasets: say NAME={tables[0].name}, or one of the others")
    (table,) = tables
    target = target or HOME / table.name
    check_older(target, table)
    best_encoder, best = recommended(table)
    encoder = encoder or best_encoder
    method = method or (best if encoder == best_encoder else methods.PLAIN)
    about = f"{methods.named(method).title} of {encoder}"
    print(f"{table.name}: {len(table):,} images, {len(table.classes)} classes; {about}", flush=True)
    cached = paths.features("archive", table.name, Path(encoder).stem)
    archive = Archive.build(table, encoder, method, features=cached, on_broken=profiles.settings()["on_broken"])
    archive.save(target)
    return target


def recommended(table: ImageTable) -> tuple[str, str]:
    """Encoder and method that the verdict of ``make reproduce`` names for these images, plain features without one.

    The method is a name of :data:`lib.archive.methods.METHODS`. A verdict on other images of the same name does not
    count: classes and how many images each has must be the same.
    """
    there = table.rows["label"].value_counts().to_dict()
    for profile in ("own", "sample"):
        folder = paths.report("your", profile, table.name, "archive")
        file, contents = folder / "table_verdict.csv", folder / "table_found.csv"
        if file.is_file() and contents.is_file():
            rows, row = read_csv(contents, ["class", "images"]), read_csv(file, ["encoder", "key"]).iloc[0]
            if dict(zip(rows["class"], rows["images"].astype(int), strict=True)) == there:
                print(f"as {file} recommends")
                return row.encoder, row.key
            print(f"notice: {file} is of other images of this name, and does not count: run make reproduce again")
    return ENCODER, "plain"


def check_older(target: Path, table: ImageTable) -> None:
    """Raise InputError if an archive at ``target`` holds images that were added from elsewhere, and would be lost."""
    from lib.archive.archive import Archive
    from lib.archive.keeping import ABOUT

    if not (target / ABOUT).is_file():
        return
    try:
        rows = Archive.load(target).rows
    except InputError:  # of an older version, or damaged: there is nothing to keep
        return
    elsewhere = [path for path in rows["path"] if not Path(path).is_relative_to(table.root.absolute())]
    if elsewhere:
        raise InputError(
            f"{target} holds {len(elsewhere)} images from elsewhere than {table.root}, such as {some(elsewhere)}. "
            "A new archive would not have them. Name another one: ARCHIVE=<folder>"
        )


def ask(
    image: str, folder: Path | None, leave_out: str | None, only: list[str] | None, k: int
) -> tuple[str, Path | None]:
    """What an archive answers, as text, and the file of the strip; see :meth:`lib.archive.archive.Archive.ask`.

    An image of the archive is asked about without its own patient, as the accuracy of votes was measured.
    """
    from lib.archive.archive import Archive
    from lib.archive.shown import harmless, strip, text
    from lib.figures.style import save

    folder = folder or the_one()
    archive = Archive.load(folder)
    own, kind = archive.own(image), archive.about["group_kind"]
    if leave_out is None and own is not None and kind != "image":
        leave_out = archive.rows.loc[own, "patient"]
    answer = archive.ask(image, k, leave_out, only)
    if not len(answer.neighbours):
        return "No image of the archive may answer: allow more classes, or leave out no patient.", None
    name = "_".join(Path(image).with_suffix(".png").parts[-2:])
    file = folder.with_name(f"{folder.name}.asked") / name
    save(strip(archive, image, answer, Path(image).name), file)
    left_out = "" if leave_out is None else f"\n\nLeft out: images of the {kind} {harmless(leave_out)}."
    return text(archive, answer) + left_out, file


def the_one() -> Path:
    """The folder of the only archive below :data:`HOME`."""
    there = sorted(path.parent for path in HOME.glob("*/about.json"))
    if len(there) == 1:
        return there[0]
    if not there:
        raise InputError(f"there is no archive in {HOME.absolute()}: make archive DATA=<folder>, or ARCHIVE=<folder>")
    raise InputError(f"there are several archives, say ARCHIVE=<folder>: {', '.join(map(str, there))}")


def main() -> None:
    """Command line, see the top of this module."""
    parser = argparse.ArgumentParser(prog="python -m lib.pipeline.archive", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("check", "build"):
        add = verbs.add_parser(verb).add_argument
        add("data", help="a folder with a folder for each class, or a known dataset")
        add("--name", help="which dataset DATA is; or the name of your own images, else the folder's")
        add("--encoder", help="of ours, with weights in weights/, or a file of embeddings (.npz, .parquet)")
    add("--method", help="how images are compared, else as the verdict of make reproduce recommends")
    add("--archive", type=Path, help="the folder of the archive, else archive/<name>")
    add = verbs.add_parser("ask").add_argument
    add("image", help="an image, an image of the archive by its name, or a vector in a file (.npy)")
    add("--archive", type=Path, help="the folder of the archive; not needed if there is one")
    add("--leave-out", help="a patient whose images do not answer; an image of the archive: its own")
    add("--only", help="classes that may answer, with commas between them")
    add("--k", type=int, default=10, help="how many answers")
    add = verbs.add_parser("app").add_argument
    add("--archive", type=Path, help="the folder of the archive; not needed if there is one")
    add("--host", default="127.0.0.1", help="the address of the page: by default only this computer sees it")
    add("--port", type=int, default=8000)
    add = verbs.add_parser("export").add_argument
    add("--archive", type=Path, help="the folder of the archive; not needed if there is one")
    add("--out", type=Path, help="the folder to write, else <archive>.page")
    given = parser.parse_args()
    if given.verb == "ask" and not given.image:
        raise InputError("say what to ask with: IMAGE=<file>")
    if given.verb in ("check", "build") and not given.data:
        raise InputError("say where your images are: DATA=<folder>")
    if given.verb == "check":
        from lib.pipeline import check

        print(check.text(Path(given.data), given.name, given.encoder))
    elif given.verb == "build":
        target = build(Path(given.data), given.name, given.encoder, given.method, given.archive)
        print(f"{target}: ready. Ask it: make ask IMAGE=<file> ARCHIVE={target}")
    elif given.verb == "app":
        from lib.archive.app.server import serve

        serve(given.archive or the_one(), given.host, given.port)
    elif given.verb == "export":
        from lib.archive.app.export import export
        from lib.archive.archive import Archive

        folder = given.archive or the_one()
        page = export(Archive.load(folder), given.out or folder.with_name(f"{folder.name}.page"))
        print(f"{page}: ready. Open it by a double click; hand on the whole folder.")
    else:
        only = given.only and [label.strip() for label in given.only.split(",") if label.strip()]
        answer, file = ask(given.image, given.archive, given.leave_out, only, given.k)
        print(answer)
        if file:
            print(f"\nPicture: {file}")


if __name__ == "__main__":
    errors.one_message(main)
