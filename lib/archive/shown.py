"""An answer as people read it: lines for a terminal, and a strip of pictures."""

import io
import textwrap
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from lib.archive.answers import LEARNT, Answer, Query
from lib.archive.archive import Archive
from lib.archive.embeddings import is_vector
from lib.datasets.images import read_image
from lib.figures import strips

HEADS = ("rank", "class", "distance", "patient", "image")


def text(archive: Archive, answer: Answer) -> str:
    """The answer for a terminal: a table of the nearest, the votes with their accuracy, and what is unlike."""
    rows = [
        (str(rank), row.label, f"{row.distance:.3f}", row.patient, row.image_id)
        for rank, row in answer.neighbours.iterrows()
    ]
    if archive.about["group_kind"] == "image":
        rows, heads = [row[:3] + row[4:] for row in rows], HEADS[:3] + HEADS[4:]
    else:
        heads = HEADS
    cells = [[harmless(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip() for row in cells]
    parts = ["\n".join(lines), "\n".join(votes(answer)), measured(archive, answer), LEARNT * answer.learnt]
    if answer.unlike:
        parts.insert(0, textwrap.fill(f"Unlike anything here: {answer.unlike}.", 100))
    return "\n\n".join(filter(None, parts))


def votes(answer: Answer) -> list[str]:
    """A sentence for the vote of 3 and of 5 each, as far as there are so many answers."""
    lines = []
    for k, (label, share) in answer.votes.items():
        if k > 1:
            lines.append(f"Vote of {k}: {harmless(label)} ({round(share * k)} of {k}).")
            if k in answer.accuracy:
                lines[-1] += f" Of all votes of {k}, {100 * answer.accuracy[k]:.0f} in 100 are right here."
    return lines


def measured(archive: Archive, answer: Answer) -> str:
    """On what the accuracy of votes rests."""
    if not archive.accuracy:
        return f"How often votes are right was {archive.how}."
    if answer.unlike:
        return "How often votes are right was measured on images of this archive, and does not hold for this one."
    if not answer.accuracy:
        return "How often votes are right was measured with all classes, and not with those that you chose."
    return f"Measured on {archive.about['measured']['asked']:,} images of this archive, {archive.how}."


def strip(archive: Archive, image: Query, answer: Answer, title: str) -> Figure:
    """The query and its nearest, with distance and class; frames only where the query's class is known.

    title: above the query. Raises InputError as :meth:`lib.archive.archive.Archive.ask`, and without an answer.
    """
    own = archive.own(image)
    row = None if own is None else archive.rows.loc[own]
    shown = [
        strips.Answer(
            Image.open(io.BytesIO(archive.thumbnail(found.id))),
            found.label,
            found.distance,
            None if row is None else found.label == row.label,
            own_group=row is not None and found.patient == row.patient,
        )
        for found in answer.neighbours.itertuples()
    ]
    lines = [title, *([] if row is None else [row.label]), *(["Unlike anything here"] if answer.unlike else [])]
    kind = archive.about["group_kind"]
    return strips.strips([strips.Strip(_picture(archive, image, own), "\n".join(lines), shown)], kind, columns=5)


def harmless(text: str) -> str:
    """A name as a terminal may show it: what is not printed, such as a command to the terminal, becomes "?".

    >>> harmless("fat\\x1b[31m"), harmless("组织 <b>")
    ('fat?[31m', '组织 <b>')
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _picture(archive: Archive, image: Query, own: int | None) -> Image.Image | None:
    """The query's picture; None for a vector."""
    if isinstance(image, Image.Image):
        return image
    if isinstance(image, str | Path) and Path(image).is_file():
        return None if is_vector(Path(image)) else read_image(Path(image))
    return None if own is None else Image.open(io.BytesIO(archive.thumbnail(own)))
