"""Features extracted once: a file of numbers that knows where they come from.

Everything is keyed by the SHA-256 of the image files, so a rerun computes only what is new or has changed, identical
files get identical numbers, and an interrupted extraction goes on where it stopped.
"""

import hashlib
import json
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
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
    """Features of the images of one table, as a cache file holds them.

    values: (n, dim) float32, a row for each image of ``sha256``, in this order.
    sha256: image id → SHA-256 of the image's file.
    skipped: images without features and why.
    dataset: name of the table. encoder: its provenance.
    """

    values: np.ndarray
    sha256: dict[str, str]
    skipped: dict[str, str]
    dataset: str
    encoder: dict[str, str]

    @property
    def image_ids(self) -> tuple[str, ...]:
        """Row i of the values belongs to the image with the i-th id."""
        return tuple(self.sha256)

    @property
    def provenance(self) -> dict[str, str]:
        """The encoder's, the dataset's name, and one SHA-256 over all image ids and image files."""
        pairs = json.dumps(list(self.sha256.items())).encode()
        return {**self.encoder, "dataset": self.dataset, "images_sha256": hashlib.sha256(pairs).hexdigest()}

    @property
    def images(self) -> tuple[str, dict[str, str], set[str]]:
        """Which images these are, in whatever order."""
        return self.dataset, self.sha256, set(self.skipped)

    def align(self, table: ImageTable) -> tuple[ImageTable, np.ndarray]:
        """The table without its skipped images, and values in which row i belongs to row i of that table.

        Raises InputError if the table has an image that was neither extracted nor skipped.
        """
        row = {image_id: index for index, image_id in enumerate(self.sha256)}
        wanted = table.rows["image_id"].tolist()
        unknown = [image_id for image_id in wanted if image_id not in row and image_id not in self.skipped]
        if unknown:
            raise InputError(
                f"No features for {_some(unknown)} of {table.name}: these features were extracted from "
                f"{self.dataset} with other images. Extract them again for this table."
            )
        kept = [image_id for image_id in wanted if image_id in row]
        return table.take(kept), self.values[[row[image_id] for image_id in kept]]

    def take(self, image_ids: Collection[str]) -> "Features":
        """The features of these images only."""
        rows = [row for row, image_id in enumerate(self.sha256) if image_id in image_ids]
        sha256, skipped = ({i: of[i] for i in of if i in image_ids} for of in (self.sha256, self.skipped))
        return replace(self, values=self.values[rows], sha256=sha256, skipped=skipped)

    def write(self, path: Path) -> None:
        """Write the cache file."""
        # One metadata key: safetensors writes several in random order, and equal features should be equal files.
        record = {
            "format": FORMAT,
            "encoder": self.encoder,
            "dataset": self.dataset,
            "sha256": list(self.sha256.items()),
            "skipped": self.skipped,
        }
        signed = json.dumps({**record, "checksum": _checksum(record, self.values)})
        with files.whole(path) as draft:
            draft.write_bytes(save({"values": self.values}, metadata={"provenance": signed}))


def load(path: Path) -> Features:
    """The features in a cache file; InputError if it is missing, damaged or older, MissingWeights as noted in it."""
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
        return Features(values, dict(record["sha256"]), record["skipped"], record["dataset"], record["encoder"])
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
    file_of = _files_of(table)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sha256 = dict(zip(file_of, pool.map(_file_sha256, file_of.values()), strict=True))

    files.sweep(target.parent)
    parts = target.with_name(f"{target.name}.parts")
    cached = _current(target, sha256, encoder)
    known = {
        digest: vector
        for stored in (cached, *map(_undamaged, files.steps(parts, ".safetensors")))
        if stored is not None and stored.encoder == encoder.provenance
        for digest, vector in zip(stored.sha256.values(), stored.values, strict=True)
    }
    skipped: dict[str, str] = {}
    notices: Notices = {}
    accepted = cached.skipped.keys() if cached and on_broken is None else set()
    pending = [image_id for image_id in file_of if sha256[image_id] not in known]
    read = stream([file_of[image_id] for image_id in pending], chunk=batch_size)
    shown = _shown(read, f"{encoder.name} features of {table.name}", len(pending))
    for start, part in zip(range(0, len(pending), batch_size), shown, strict=True):
        batch = pending[start : start + batch_size]
        skipped |= {batch[place]: why for place, why in part.reasons.items()}
        for notice, named in part.notices.items():
            notices.setdefault(notice, []).extend(named)
        if on_broken != "skip" and skipped.keys() - accepted:
            rest = _shown(read, f"{table.name}, trying to read", len(pending) - start - len(batch))
            raise broken([*skipped.values(), *(why for other in rest for why in other.reasons.values())])
        images = {image_id: image for image_id, image in zip(batch, part.images, strict=True) if image is not None}
        if images:
            values = _encode(encoder, list(images.values()), list(images))
            made = Features(values, {i: sha256[i] for i in images}, {}, table.name, encoder.provenance)
            made.write(parts / f"{sha256[next(iter(images))]}.safetensors")
            known.update(zip(made.sha256.values(), values, strict=True))

    tell(notices)
    used = {image_id: digest for image_id, digest in sha256.items() if image_id not in skipped}
    if not used:
        raise InputError(f"None of the {len(table)} images of {table.name} can be read: {next(iter(skipped.values()))}")
    values = np.stack([known[digest] for digest in used.values()])
    features = Features(values, used, skipped, table.name, encoder.provenance)
    if cached is None or features.images != cached.images:
        features.write(target)
    files.empty(parts)
    return features


def view_files(target: Path, n_views: int) -> list[Path]:
    """The cache file of each view of the images; that of view 0, the image itself, is ``target``."""
    checks.values(n_views=n_views)
    target = Path(target)
    return [target, *(target.with_suffix(".views") / f"{view}{target.suffix}" for view in range(1, n_views))]


def load_views(target: Path, n_views: int) -> list[Features]:
    """What :func:`lib.encoders.views.extract` wrote: the features of each view.

    Raises InputError if a view is missing or damaged, or of another encoder, augmentation or seed than the others.
    """
    of_views = view_files(target, n_views)
    plain, *views = map(load, of_views)
    for number, (view, file) in enumerate(zip(views, of_views[1:], strict=True), start=1):
        images = (plain if view.image_ids == plain.image_ids else view).provenance["images_sha256"]
        wanted = {**views[0].provenance, **plain.provenance, "view": str(number), "images_sha256": images}
        if differing := _differing(wanted, view.provenance):
            raise InputError(
                f"{file} is no view {number} beside {target} ({differing} differ): extract the views again."
            )
    return [plain, *views]


def align(table: ImageTable, features: Sequence[Features]) -> tuple[ImageTable, list[np.ndarray]]:
    """The table without the images that any of the ``features`` skipped, and the values of each in its order."""
    table = reduce(lambda rest, one: one.align(rest)[0], features, table)
    return table, [one.align(table)[1] for one in features]


def keep(target: Path, table: ImageTable, encoder: str) -> bool:
    """Whether a cache file holds features of the encoder of that name for all of the table's images as they are.

    If so, other images leave it, as in :func:`extract`.
    """
    try:
        stored = load(target)
    except InputError:
        return False
    file_of = _files_of(table)
    known = stored.sha256 | dict.fromkeys(stored.skipped)
    same = all(known.get(image_id, "") in (None, _file_sha256(file)) for image_id, file in file_of.items())
    if not same or stored.encoder.get("encoder") != encoder:
        return False
    if known.keys() > file_of.keys():
        stored.take(file_of.keys()).write(target)
    return True


def note_missing(target: Path, reason: str) -> None:
    """Write to the cache file that there are no features because the encoder has no weights here."""
    with files.whole(Path(target)) as draft:
        draft.write_bytes(save({}, metadata={"missing": reason}))


def _files_of(table: ImageTable) -> dict[str, Path]:
    """The file of every image."""
    return {image_id: table.path(row) for row, image_id in enumerate(table.rows["image_id"])}


def _undamaged(path: Path) -> Features | None:
    """What a file holds; a damaged file is reported and counts as none."""
    if not path.exists():
        return None
    try:
        return load(path)
    except InputError as error:
        log.warning("%s Computing its features again.", error)
        return None


def _current(target: Path, sha256: dict[str, str], encoder: Encoder) -> Features | None:
    """What the target holds of this encoder; another encoder and changed images are reported."""
    stored = _undamaged(target)
    if stored is None:
        return None
    if differing := _differing(stored.encoder, encoder.provenance):
        log.warning("%s: made by another encoder (%s), computing again.", target, differing)
        return None
    if changed := [i for i, digest in sha256.items() if stored.sha256.get(i, digest) != digest]:
        log.warning("%s: images changed since, computing these again: %s.", target, _some(changed))
    return stored


def _differing(one: dict[str, str], other: dict[str, str]) -> str:
    """The keys in which two records differ."""
    return ", ".join(sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key)))


def _encode(encoder: Encoder, images: list[np.ndarray], image_ids: list[str]) -> np.ndarray:
    """The numbers of ``images``, in batches that are all of the encoder's size, if it has one.

    In a batch of another size torch adds in another order. The last batch is filled up with its last image, so that an
    image has the same bits after an interruption, and when others come or go.
    """
    filled = [*images, *images[-1:] * (-len(images) % getattr(encoder, "batch_size", 1))]
    values = np.ascontiguousarray(encoder.encode(filled)[: len(images)], dtype=np.float32)
    if values.shape != (len(images), encoder.dim):
        raise InputError(f"{encoder.name} gave {values.shape} numbers for {len(images)} images of {encoder.dim}.")
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise InputError(
            f"{encoder.name} gives infinite or undefined features for {_some([image_ids[i] for i in bad])}: "
            "check the encoder's weights, or compute in more than half precision, as DEVICE=cpu does."
        )
    return values


def _shown(parts: Iterable[Part], what: str, total: int) -> Iterator[Part]:
    """The parts, with a report of how many images are done."""
    return track(parts, total=total, what=what, unit="images", size=lambda part: len(part.images))


def _file_sha256(path: Path) -> str:
    """SHA-256 of a file, or of its path where it cannot be opened, which reading the image will report."""
    try:
        return files.sha256(path)
    except OSError:
        return hashlib.sha256(str(path).encode()).hexdigest()


def _some(names: Sequence[str]) -> str:
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + rest
