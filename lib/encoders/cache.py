"""Features extracted once: a file of numbers that knows where they come from.

Everything is keyed by the SHA-256 of the image files, so a rerun computes only what is new or has changed, identical
files get identical numbers, and an interrupted extraction goes on where it stopped.
"""

import hashlib
import json
import logging
import os
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Protocol

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from lib import checks, files
from lib.datasets.decoding import Part, stream
from lib.datasets.images import READING, Notices, broken, tell
from lib.datasets.table import ImageTable
from lib.errors import InputError, MissingWeights
from lib.files import whole
from lib.progress import track

log = logging.getLogger(__name__)

FORMAT = f"2.{READING}"
"""Since 2 the checksum is of everything in the file. Behind it stands how images are read."""

BATCH = 16
"""Images that an encoder takes at once, if it does not say."""


class Encoder(Protocol):
    """Turns images into vectors; ``provenance`` names everything that the numbers depend on."""

    name: str
    dim: int
    provenance: dict[str, str]

    def encode(self, images: Sequence[np.ndarray]) -> np.ndarray:
        """Features (n, dim) float32 of decoded images, (h, w, 3) uint8 each; ours take Pillow's as well."""


@dataclass(frozen=True, eq=False)
class Features:
    """Features of the images of one table.

    values: (n, dim) float32, row i belongs to ``image_ids[i]``.
    provenance: the encoder's, the dataset's name, and one SHA-256 over all image ids and image files.
    skipped: images without features and why.
    """

    values: np.ndarray
    image_ids: tuple[str, ...]
    provenance: dict[str, str]
    skipped: dict[str, str]

    def align(self, table: ImageTable) -> tuple[ImageTable, np.ndarray]:
        """The table without its skipped images, and values in which row i belongs to row i of that table.

        Raises InputError if the table has an image that was neither extracted nor skipped.
        """
        row = {image_id: index for index, image_id in enumerate(self.image_ids)}
        wanted = table.rows["image_id"].tolist()
        unknown = [image_id for image_id in wanted if image_id not in row and image_id not in self.skipped]
        if unknown:
            raise InputError(
                f"No features for {_some(unknown)} of {table.name}: these features were extracted from "
                f"{self.provenance['dataset']} with other images. Extract them again for this table."
            )
        kept = [image_id for image_id in wanted if image_id in row]
        return table.take(kept), self.values[[row[image_id] for image_id in kept]]


def extract(
    table: ImageTable, encoder: Encoder, target: Path, on_broken: str | None = None, batch_size: int | None = None
) -> Features:
    """Features of every image of the table, from the cache file ``target`` as far as it has them.

    on_broken: "error" raises BrokenImage that names all unreadable images; "skip" leaves them out and lists them; None
        leaves out what was left out when ``target`` was written, and raises for any other.
    batch_size: images per call of the encoder and per part; an interruption loses at most this many. By default four
        of the encoder's own batches, or of :data:`BATCH`.

    The file holds the table's images and no others afterwards: what is known of an image that was removed leaves it.
    (Give a part of a table a file of its own.) If it did so before, it is left as it is. A damaged file is reported and
    computed again. Raises InputError when no image can be used or a feature is not finite.
    """
    target = Path(target)
    if on_broken not in ("error", "skip", None):
        raise InputError(f"on_broken must be 'error' or 'skip', not {on_broken!r}.")
    batch_size = 4 * getattr(encoder, "batch_size", BATCH) if batch_size is None else batch_size
    if batch_size < 1:
        raise InputError(f"batch_size must be 1 or more, not {batch_size}.")
    if len(table) == 0:
        raise InputError(f"{table.name} has no images under {table.root}: nothing to extract.")
    ids = table.rows["image_id"].tolist()
    file_of = {image_id: table.path(index) for index, image_id in enumerate(ids)}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sha256 = dict(zip(ids, pool.map(_file_sha256, file_of.values()), strict=True))

    files.sweep(target.parent)
    parts = target.with_name(f"{target.name}.parts")
    cached = _current(target, ids, sha256, encoder)
    sources = [cached, *map(_undamaged, files.steps(parts, ".safetensors"))]
    known = {
        digest: vector
        for stored in sources
        if stored is not None and stored.encoder == encoder.provenance
        for digest, vector in zip(stored.sha256.values(), stored.values, strict=True)
    }

    accepted = cached.skipped.keys() if cached and on_broken is None else set()
    skipped: dict[str, str] = {}
    notices: Notices = {}
    pending = [image_id for image_id in ids if sha256[image_id] not in known]
    read = stream([file_of[image_id] for image_id in pending], chunk=batch_size)
    what = f"{encoder.name} features of {table.name}"
    shown = track(read, total=len(pending), what=what, unit="images", size=_length)
    for start, part in zip(range(0, len(pending), batch_size), shown, strict=True):
        batch = pending[start : start + batch_size]
        skipped |= {batch[place]: why for place, why in part.reasons.items()}
        for notice, named in part.notices.items():
            notices.setdefault(notice, []).extend(named)
        if on_broken != "skip" and skipped.keys() - accepted:
            left = len(pending) - start - len(batch)
            others = track(read, total=left, what=f"{table.name}, trying to read", unit="images", size=_length)
            raise broken([*skipped.values(), *(why for other in others for why in other.reasons.values())])
        images = {image_id: image for image_id, image in zip(batch, part.images, strict=True) if image is not None}
        if images:
            values = _encode(encoder, list(images.values()), list(images))
            made = _Stored(values, {i: sha256[i] for i in images}, {}, table.name, encoder.provenance)
            made.write(parts / f"{sha256[next(iter(images))]}.safetensors")
            known.update(zip(made.sha256.values(), values, strict=True))

    tell(notices)
    used = {image_id: sha256[image_id] for image_id in ids if image_id not in skipped}
    if not used:
        raise InputError(f"None of the {len(ids)} images of {table.name} can be read: {skipped[ids[0]]}")
    values = np.stack([known[digest] for digest in used.values()])
    stored = _Stored(values, used, skipped, table.name, encoder.provenance)
    if cached is None or stored.of != cached.of:
        stored.write(target)
    files.empty(parts)
    return stored.features()


def load(path: Path) -> Features:
    """The features in a cache file; InputError if it is missing or damaged, MissingWeights as noted in it."""
    return _Stored.read(Path(path)).features()


def view_files(target: Path, n_views: int) -> list[Path]:
    """The cache file of each view of the images; that of view 0, the image itself, is ``target``."""
    checks.values(n_views=n_views)
    target = Path(target)
    return [target, *(target.with_suffix(".views") / f"{view}{target.suffix}" for view in range(1, n_views))]


def load_views(target: Path, n_views: int) -> list[Features]:
    """What :func:`lib.encoders.views.extract` wrote: the features of each view.

    Raises InputError if a view is missing or damaged, or of another encoder, augmentation or seed than the others.
    """
    files = view_files(target, n_views)
    views = [load(file) for file in files]
    plain = views[0]
    for number, (view, file) in enumerate(zip(views[1:], files[1:], strict=True), start=1):
        images = (plain if view.image_ids == plain.image_ids else view).provenance["images_sha256"]
        wanted = {**views[1].provenance, **plain.provenance, "view": str(number), "images_sha256": images}
        found = view.provenance
        differing = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))
        if differing:
            raise InputError(
                f"{file} is no view {number} beside {target} ({', '.join(differing)} differ): extract the views again."
            )
    return views


def align(table: ImageTable, several: Sequence[Features]) -> tuple[ImageTable, list[np.ndarray]]:
    """The table without the images that were skipped in any of ``several``, and the values of each in its order."""
    table = reduce(lambda rest, features: features.align(rest)[0], several, table)
    return table, [features.align(table)[1] for features in several]


def keep(target: Path, table: ImageTable, encoder: str) -> bool:
    """Whether a cache file holds features of the encoder of that name for all of the table's images as they are.

    If so, other images leave it, as in :func:`extract`.
    """
    try:
        stored = _Stored.read(Path(target))
    except InputError:
        return False
    files_of = dict(zip(table.rows["image_id"], map(table.path, range(len(table))), strict=True))
    known = stored.sha256 | dict.fromkeys(stored.skipped)
    same = all(known.get(image_id, "") in (None, _file_sha256(file)) for image_id, file in files_of.items())
    if not same or stored.encoder.get("encoder") != encoder:
        return False
    if known.keys() > files_of.keys():
        stored.take(files_of.keys()).write(target)
    return True


def note_missing(target: Path, reason: str) -> None:
    """Write to the cache file that there are no features because the encoder has no weights here."""
    with whole(Path(target)) as draft:
        draft.write_bytes(save({}, metadata={"missing": reason}))


@dataclass(frozen=True, eq=False)
class _Stored:
    """What a cache file holds: a vector and the image file's SHA-256 for each image, in the same order."""

    values: np.ndarray
    sha256: dict[str, str]
    skipped: dict[str, str]
    dataset: str
    encoder: dict[str, str]

    def features(self) -> Features:
        pairs = json.dumps(list(self.sha256.items())).encode()
        about = {"dataset": self.dataset, "images_sha256": hashlib.sha256(pairs).hexdigest()}
        return Features(self.values, tuple(self.sha256), {**self.encoder, **about}, self.skipped)

    @property
    def of(self) -> tuple[str, dict[str, str], set[str]]:
        """Which images these are, in whatever order."""
        return self.dataset, self.sha256, set(self.skipped)

    def take(self, image_ids: Collection[str]) -> "_Stored":
        """These images alone."""
        rows = [row for row, image_id in enumerate(self.sha256) if image_id in image_ids]
        sha256, skipped = ({i: of[i] for i in of if i in image_ids} for of in (self.sha256, self.skipped))
        return replace(self, values=self.values[rows], sha256=sha256, skipped=skipped)

    def write(self, path: Path) -> None:
        # One metadata key: safetensors writes several in random order, and equal features should be equal files.
        record = {
            "format": FORMAT,
            "encoder": self.encoder,
            "dataset": self.dataset,
            "sha256": list(self.sha256.items()),
            "skipped": self.skipped,
        }
        signed = json.dumps({**record, "checksum": _checksum(record, self.values)})
        with whole(path) as draft:
            draft.write_bytes(save({"values": self.values}, metadata={"provenance": signed}))

    @classmethod
    def read(cls, path: Path) -> "_Stored":
        """Raises InputError if the file is missing, damaged, or of an older format."""
        try:
            with safe_open(path, framework="numpy") as file:
                if reason := (file.metadata() or {}).get("missing"):
                    raise MissingWeights(reason)
                record = json.loads(file.metadata()["provenance"])
                values = file.get_tensor("values")
            if (version := record.get("format", "1")) != FORMAT:
                raise InputError(f"{path} has format {version}, not {FORMAT}: extract the features again.")
            if record.pop("checksum") != _checksum(record, values):
                raise ValueError("it is not what was written")
            return cls(values, dict(record["sha256"]), record["skipped"], record["dataset"], record["encoder"])
        except FileNotFoundError:
            raise InputError(f"There is no feature file {path}: extract the features first.") from None
        except InputError:
            raise
        except (SafetensorError, OSError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} is damaged or not a feature file ({error}).") from error


def _checksum(record: dict, values: np.ndarray) -> str:
    """SHA-256 over who computed what, of which images, and the numbers with their type and shape."""
    digest = hashlib.sha256(json.dumps([record, str(values.dtype), values.shape]).encode())
    digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _undamaged(path: Path) -> _Stored | None:
    """What a file holds; a damaged file is reported and counts as none."""
    if not path.exists():
        return None
    try:
        return _Stored.read(path)
    except InputError as error:
        log.warning("%s Computing its features again.", error)
        return None


def _current(target: Path, ids: list[str], sha256: dict[str, str], encoder: Encoder) -> _Stored | None:
    """What the target holds of this encoder; another encoder and changed images are reported."""
    stored = _undamaged(target)
    if stored is None:
        return None
    old, new = stored.encoder, encoder.provenance
    if old != new:
        differing = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        log.warning("%s: made by another encoder (%s), computing again.", target, ", ".join(differing))
        return None
    changed = [i for i in ids if i in stored.sha256 and stored.sha256[i] != sha256[i]]
    if changed:
        log.warning("%s: images changed since, computing these again: %s.", target, _some(changed))
    return stored


def _encode(encoder: Encoder, images: list[np.ndarray], image_ids: list[str]) -> np.ndarray:
    values = np.ascontiguousarray(encoder.encode(images), dtype=np.float32)
    if values.shape != (len(images), encoder.dim):
        raise InputError(f"{encoder.name} gave {values.shape} numbers for {len(images)} images of {encoder.dim}.")
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise InputError(
            f"{encoder.name} gives infinite or undefined features for {_some([image_ids[i] for i in bad])}: "
            "check the encoder's weights, or compute in more than half precision, as DEVICE=cpu does."
        )
    return values


def _length(part: Part) -> int:
    return len(part.images)


def _file_sha256(path: Path) -> str:
    """SHA-256 of a file, or of its path where it cannot be opened, which reading the image will report."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return hashlib.sha256(str(path).encode()).hexdigest()


def _some(names: Sequence[str]) -> str:
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + rest
