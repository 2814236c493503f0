"""What the page is told: once of the archive, and then of each question."""

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lib.archive.answers import LEARNT, Query
from lib.archive.app.plane import Plane
from lib.archive.archive import Archive
from lib.archive.methods import METHODS
from lib.errors import InputError

PAGE = Path(__file__).parent / "page"
K = 20
APART = "A head has learnt from these images: their classes lie further apart here than those of new images would."
SPACES = {"euclidean": "in flat space", "sphere": "on the sphere (cosine)", "poincare": "in the Poincaré ball"}


def overview(archive: Archive, plane: Plane) -> dict[str, Any]:
    """The archive as the page shows it: classes with counts, a row for each image, its place on the map."""
    about, rows = archive.about, archive.rows
    kind = about["group_kind"]
    known = kind != "image"
    ids = rows.index.tolist()
    shown = rows[["image_id", "label", "patient"]] if known else rows[["image_id", "label"]].assign(patient="")
    return {
        "name": about["name"],
        "about": _sentence(about),
        "kind": kind if known else "patient",
        "version": f"hyperbolic-retrieval-companion {version('hyperbolic-retrieval-companion')}",
        "classes": [{"label": label, "count": count} for label, count in about["classes"].items()],
        "patients": sorted(rows["patient"].unique().tolist()) if known else [],
        "rows": dict(zip(ids, shown.to_dict("records"), strict=True)),
        "accuracy": archive.accuracy,
        "measured": archive.how,
        "learnt": LEARNT,
        "plane": {
            "note": f"{plane.note} {APART}" if archive.learnt else plane.note,
            "unit": plane.unit,
            "at": dict(zip(ids, plane.place(archive.index.vectors(ids)), strict=True)),
        },
    }


def _sentence(about: dict[str, Any]) -> str:
    kind = about["group_kind"]
    patients = f", {about['patients']:,} {kind}s" if kind != "image" else ""
    curvature = f", c = {about['c']:g}" if about["space"] == "poincare" else ""
    encoder, method = about["encoder"]["encoder"], METHODS[about["method"]].title
    return (
        f"{about['images']:,} images, {len(about['classes'])} classes{patients}. Encoder {encoder}, "
        f"{method}: {about['dim']} numbers an image {SPACES[about['space']]}{curvature}."
    )


def reply(archive: Archive, query: Query, patient: str | None, only: Sequence[str] | None) -> dict[str, Any]:
    """The :data:`K` nearest as the page needs them.

    patient: whose images are left out; None, or one that the archive does not know, leaves out none.
    """
    left_out = patient if patient and (archive.rows["patient"] == patient).any() else None
    answer = archive.ask(query, k=K, leave_out=left_out, only=only)
    return {
        "ids": answer.neighbours["id"].tolist(),
        "distances": [float(f"{distance:.7g}") for distance in answer.neighbours["distance"]],
        "votes": answer.votes,
        "unlike": answer.unlike,
        "learnt": answer.learnt,
        "left_out": left_out,
    }


def of_archive(archive: Archive, number: int, apart: bool, only: Sequence[str] | None = None) -> dict[str, Any]:
    """What the archive says to one of its own images; ``apart``: its patient's images do not answer."""
    if number not in archive.rows.index:
        raise InputError(f"The archive has no image with the number {number}. Load the page again.")
    row = archive.rows.loc[number]
    patient = row["patient"] if apart else None
    return reply(archive, number, patient, only) | {"sha256": row["sha256"]}


def script(content: dict[str, Any]) -> str:
    """The content as the file ``data.js``, which a page opened by a double click can load as well."""
    return f"const ARCHIVE = {json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(',', ':'))};\n"
