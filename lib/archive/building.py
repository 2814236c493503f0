"""How an archive is made of images."""

import warnings
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pandas as pd

from lib.archive import embeddings, methods
from lib.archive.keeping import KINDS, Parts, fields
from lib.archive.measured import measure
from lib.archive.novelty import Features
from lib.archive.thumbnails import Thumbnails, of_files
from lib.datasets.table import ImageTable
from lib.encoders.cache import Encoder
from lib.errors import InputError, suggestion


def parts(
    table: ImageTable, encoder: Encoder | str | Path, method: str, index: str, features: Path | None, on_broken: str
) -> tuple[Parts, Encoder | None]:
    """The parts of a new archive, and the encoder if it is ours; see :meth:`lib.archive.archive.Archive.build`."""
    methods.named(method)  # before anything is computed
    if index not in KINDS:
        raise InputError(f"there is no index {index!r}: {suggestion(index, KINDS)}")
    found, encoder = embeddings.extract(table, encoder, features, on_broken)
    table, x = found.align(table)
    if len(table) < 2:
        raise InputError(f"{table.name} has {len(table)} image that can be read. An archive needs two or more.")
    options = {"kin": methods.branches(table), "encoder": found.encoder["encoder"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of numbers that hardly vary, once for each fold
        fitted = methods.fit_all(method, x, table.codes, **options)
        known = Features.of(x, methods.fit_all(methods.PLAIN, x, table.codes, encoder=options["encoder"]))
        gate = known.gate(table.groups)
        fit = partial(methods.fit_splits, method, **options)
        about = measure(fit, fitted, x, table.codes, table.groups, table.group_kind)
    rows = table.rows[["image_id", "label"]].assign(
        patient=table.groups,
        path=[str(table.path(row).absolute()) for row in range(len(table))],
        sha256=[found.sha256[image_id] for image_id in table.rows["image_id"]],
    )
    facts = {
        "name": table.name,
        "encoder": found.encoder,
        "method": method,
        "index": index,
        "group_kind": table.group_kind,
        "skipped": dict(table.skipped) | found.skipped,
        "features": x.shape[1],
        "added": [],
        "changed": False,
        "gate": None if gate is None else asdict(gate),
        "measured": about,
        "cache": None if features is None else str(Path(features).absolute()),
    }
    made = KINDS[index].build(fitted.embed(x), fitted.space, embeddings.named(found.encoder), fields=fields(rows))
    pictures = of_files([table.path(row) for row in range(len(table))], table.name)
    rows.index = pd.Index(made.ids, name="id")
    thumbnails = Thumbnails(new=dict(zip(rows.index, pictures, strict=True)))
    return Parts(rows, made, fitted, known, thumbnails, facts), encoder
