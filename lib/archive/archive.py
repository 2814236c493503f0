"""Images that can be asked: who is nearest to a new one, what these vote for, and whether it is unlike all of them."""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from lib import checks, files
from lib.archive import embeddings, keeping
from lib.archive.answers import Answer, Query
from lib.archive.app import opinions
from lib.archive.keeping import Parts
from lib.archive.measured import VOTES, has_learnt
from lib.archive.thumbnails import FILE, Thumbnails, small
from lib.datasets.images import Notices, read_image, tell
from lib.datasets.table import ImageTable, check_names
from lib.encoders import registry
from lib.encoders.cache import Encoder
from lib.errors import InputError, suggestion
from lib.search.index import Index
from lib.search.refusal import Gate


class Archive:
    """Images with codes, labels, patients and thumbnails; made by :meth:`build` or :meth:`load`.

    rows: a row for each image, by its id: image_id, label, patient, path (where the file was), sha256 (of the file).
    What :meth:`add` and :meth:`remove` change is in memory until :meth:`save`.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts, self._facts = parts, parts.facts
        self.folder: Path | None = None
        self._seen: str | None = None
        self._gone: set[str] = set()
        self._encoder: Encoder | None = None

    @property
    def rows(self) -> pd.DataFrame:
        """A row for each image, by its id."""
        return self._parts.rows

    @property
    def index(self) -> Index:
        """Where the codes are, and what searches them."""
        return self._parts.index

    @classmethod
    def build(
        cls,
        table: ImageTable,
        encoder: Encoder | str | Path,
        method: str = "plain",
        index: str = "exact",
        features: Path | None = None,
        on_broken: str = "error",
    ) -> "Archive":
        """An archive of the images of ``table``.

        Args:
            table: the images; its groups are the patients.
            encoder: one of ours, its name, or a file of embeddings (:func:`lib.archive.embeddings.read`).
            method: one of :data:`lib.archive.methods.METHODS`, fitted on all images.
            index: one of :data:`lib.archive.keeping.KINDS`.
            features: a cache file of features, from which an interrupted build goes on.
            on_broken: "error" names all images that cannot be read, "skip" leaves them out, with a warning.

        Raises InputError as its parts do: for fewer than two images, broken ones, an unknown encoder, method or index.
        """
        from lib.archive import building  # all papers' heads, which nobody waits for who asks

        parts, encoder = building.parts(table, encoder, method, index, features, on_broken)
        archive = cls(parts)
        archive._encoder = encoder
        return archive

    @property
    def about(self) -> dict[str, Any]:
        """What it is: name, version, encoder, method, space, c, dim, classes and patients with counts, accuracy, ..."""
        of, counts = self.index.provenance, self.rows["label"].value_counts().sort_index()
        return self._facts | {
            "space": of.space,
            "c": of.c,
            "dim": of.dim,
            "images": len(self.rows),
            "classes": {str(label): int(n) for label, n in counts.items()},
            "patients": int(self.rows["patient"].nunique()),
        }

    @property
    def accuracy(self) -> dict[int, float]:
        """k → the share of votes of k that was right when the archive was built."""
        return {int(k): share for k, share in self._facts["measured"]["accuracy"].items()}

    @property
    def how(self) -> str:
        """How the accuracy of votes was measured, in words, and whether the archive has changed since."""
        return self._facts["measured"]["how"] + ", before images were added or removed" * self._facts["changed"]

    @property
    def learnt(self) -> bool:
        """Whether a head has learnt from the images."""
        return has_learnt(self._parts.fitted)

    @property
    def gate(self) -> Gate | None:
        """The rule of "unlike anything here", on the encoder's features (:mod:`lib.archive.novelty`)."""
        rule = self._facts["gate"]
        return None if rule is None else Gate(**rule)

    def __len__(self) -> int:
        return len(self.rows)

    def thumbnail(self, number: int) -> bytes:
        """The small JPEG of the image with this id."""
        self._known(number)
        return self._parts.thumbnails[int(number)]

    def ask(
        self, image: Query, k: int = 20, leave_out: str | None = None, only: str | Sequence[str] | None = None
    ) -> Answer:
        """The ``k`` images nearest to a query, or as many as there are.

        Args:
            image: see :data:`lib.archive.answers.Query`. An image of the archive is no answer to itself.
            leave_out: a patient whose images do not answer.
            only: classes that may answer.

        Raises InputError for a patient or a class that is not there, a file that cannot be read, and an image where
        the archive has no encoder, or another one than here.
        """
        checks.values(k=k)
        without = {} if leave_out is None else {"patient": [self._named("patient", leave_out)]}
        wanted = [only] if isinstance(only, str) else only
        classes = {} if wanted is None else {"class": [self._named("label", label) for label in wanted]}
        own, x = self._meant(image)
        n, where = max(k, *VOTES), {"only": classes or None, "without": without or None}
        distances, ids = self.index.search(self._code(own, x), n + (own is not None), **where)
        distances, ids = distances[0].numpy(), ids[0].numpy()
        there = (ids >= 0) & (ids != (-1 if own is None else own))
        distances, ids = distances[there][:n], ids[there][:n]
        found = self.rows.loc[ids, ["label", "patient", "image_id"]].reset_index()
        found.insert(1, "distance", distances)
        found.index = pd.RangeIndex(1, len(found) + 1, name="rank")
        labels = found["label"].tolist()
        votes = {n: Counter(labels[:n]).most_common(1)[0] for n in VOTES if n <= len(labels)}
        unlike = self._unlike(own, x, without.get("patient", []))
        return Answer(
            found.iloc[:k],
            {n: (label, count / n) for n, (label, count) in votes.items()},
            {} if classes or unlike else self.accuracy,
            unlike,
            self.learnt and own is not None and own not in self._facts["added"],
        )

    def _unlike(self, own: int | None, x: np.ndarray | None, without: Sequence[str]) -> str | None:
        """Why a query (its id, or its features) is unlike all images, but for those of some patients."""
        if self.gate is None:
            return None
        rows = self.rows
        may = ~rows["patient"].isin(without).to_numpy() & (rows.index != own)
        angle = self._parts.features.angle(x if own is None else int(rows.index.get_loc(own)), may)
        return None if angle is None else self.gate.reason(angle)

    def add(
        self,
        paths: Sequence[str | Path],
        labels: Sequence[str],
        patients: Sequence[str],
        vectors: np.ndarray | None = None,
    ) -> np.ndarray:
        """Add images; their ids. The head stays as it is, and so does what was measured.

        vectors: features (n, dim) of the images, where the archive was built from embeddings of the laboratory.
        Raises InputError, before anything is changed, for a file that cannot be read, or is there already.
        """
        paths = [Path(path) for path in paths]
        if not len(paths) == len(labels) == len(patients):
            raise InputError(f"there are {len(paths)} files, {len(labels)} labels and {len(patients)} patients")
        new = pd.DataFrame(
            {
                "image_id": [path.as_posix() for path in paths],
                "label": [checks.spelled(label) for label in labels],
                "patient": [checks.spelled(patient) for patient in patients],
                "path": [str(path.absolute()) for path in paths],
            }
        )
        for column in new:
            check_names(new[column])
        images = _read(paths)
        new["sha256"] = [files.sha256(path) for path in paths]
        twice = new["sha256"].isin(self.rows["sha256"]) | new["sha256"].duplicated()
        if twice.any():
            first = paths[int(twice.to_numpy().argmax())]
            raise InputError(f"{first} is in the archive already, or given twice. Leave it out.")
        if (same := new["image_id"].isin(self.rows["image_id"])).any():
            first = paths[int(same.to_numpy().argmax())]
            raise InputError(f"{first}: another image of this name is in the archive already. Rename the file.")
        for label in sorted(set(new["label"]) - set(self.rows["label"])):
            warnings.warn(f"{label} is a new class: {suggestion(label, self.about['classes'])}", stacklevel=2)
        x = self.encoder().encode(images) if vectors is None else np.asarray(vectors, dtype=np.float32)
        if x.shape != (len(new), self._facts["features"]):
            raise InputError(f"vectors have shape {x.shape}; expected ({len(new)}, {self._facts['features']})")
        features = self._parts.features.followed_by(x)
        ids = np.asarray(self.index.add(self._parts.fitted.embed(x), fields=keeping.fields(new)))
        self._parts.features = features
        self._parts.thumbnails.put(dict(zip(ids.tolist(), map(small, images), strict=True)))
        new.index = pd.Index(ids, name="id")
        self._parts.rows = pd.concat([self.rows, new])
        self._facts["added"] = [*self._facts["added"], *ids.tolist()]
        self._facts["changed"] = True
        return ids

    def remove(self, ids: Iterable[int]) -> None:
        """Remove images: after :meth:`save` no file of the archive, and no cache of it, has their vectors or names.

        What is not of the archive, and may show them, is listed in :mod:`lib.archive`.

        The head stays as it is: build the archive anew for one that has not learnt from them. Raises InputError for an
        id that is not there.
        """
        ids = [self._known(number) for number in ids]
        self.index.remove(ids)
        self._facts["added"] = [number for number in self._facts["added"] if number not in ids]
        self._facts["changed"] = self._facts["changed"] or bool(ids)
        self._gone |= set(self.rows.loc[ids, "sha256"])
        self._facts["skipped"] = keeping.without(self._facts["skipped"], self.rows.loc[ids])
        self._parts.features = self._parts.features.where(~self.rows.index.isin(ids))
        self._parts.rows = self.rows.drop(index=ids)

    def save(self, folder: Path | str | None = None) -> None:
        """Write the archive into ``folder``, by default its own, which is as before until the new one is whole.

        Raises InputError for a folder with anything but an archive in it, and where somebody else has changed the
        archive since it was opened.
        """
        if folder is None and self.folder is None:
            raise InputError("this archive has no folder yet: say where to save it")
        folder = Path(folder or self.folder).resolve()
        if folder == self.folder and keeping.state(folder) != self._seen:
            raise InputError(f"{folder} has been changed by somebody else since it was opened. Open it again.")
        keeping.write(folder, self._parts)
        self._parts.thumbnails = Thumbnails(folder / FILE)
        self.folder, self._seen = folder, keeping.state(folder)
        if self._facts["cache"]:
            keeping.forget(Path(self._facts["cache"]), self.rows["image_id"])
        opinions.forget(opinions.beside(folder), self._gone - set(self.rows["sha256"]))

    @classmethod
    def load(cls, folder: Path | str) -> "Archive":
        """Open an archive; InputError if ``folder`` is none, is damaged, or of another version."""
        folder = Path(folder).resolve()
        archive = cls(keeping.read(folder))
        archive.folder, archive._seen = folder, keeping.state(folder)
        return archive

    def encoder(self) -> Encoder:
        """The encoder that new images go through; InputError where there is none here, or another one."""
        if self._encoder is None:
            built = self._facts["encoder"]
            if built.get("weights") == embeddings.FOREIGN:
                raise InputError(
                    f"This archive was built from embeddings ({built['encoder']}), so a new image cannot be embedded "
                    "here. Ask with an image of the archive (its path below the data folder), or with its vector in "
                    "a file (.npy)."
                )
            encoder = registry.make(built["encoder"])
            embeddings.check_same(built, encoder)
            self._encoder = encoder
        return self._encoder

    def code(self, image: Query) -> Any:
        """The numbers (1, d) by which a query is searched; raises InputError as :meth:`ask`."""
        return self._code(*self._meant(image))

    def _code(self, own: int | None, x: np.ndarray | None) -> Any:
        return self._parts.fitted.embed(x[None]) if own is None else self.index.vectors([own])

    def _meant(self, image: Query) -> tuple[int | None, np.ndarray | None]:
        """The id of an image of the archive, or the features (dim,) of a new one; the other is None."""
        if (own := self.own(image)) is not None:
            return own, None
        if isinstance(image, str | Path):
            file = Path(image)
            if not file.is_file():
                meant = suggestion(str(image), self.rows["image_id"])
                raise InputError(f"there is no file {image}, and this archive has no image of that name: {meant}")
            vector = embeddings.is_vector(file)
            image = embeddings.vector(file, self._facts["features"]) if vector else _read([file])[0]
        if isinstance(image, np.ndarray) and image.ndim == 1:
            if image.shape != (self._facts["features"],):
                raise InputError(f"the query has {len(image)} numbers; this archive needs {self._facts['features']}")
            return None, np.asarray(image, dtype=np.float32)
        picture = image.convert("RGB") if isinstance(image, Image.Image) else image
        return None, self.encoder().encode([picture])[0]

    def own(self, image: Query) -> int | None:
        """The id of the archive's image that is meant, by id, the very bytes of a file, or name; None for a new one."""
        if isinstance(image, int | np.integer):
            return self._known(image)
        if not isinstance(image, str | Path):
            return None
        if Path(image).is_file():  # a new image may lie where one of the archive was, and bear its name
            rows = self.rows.index[self.rows["sha256"] == files.sha256(Path(image))]
        else:
            rows = self.rows.index[self.rows["image_id"] == checks.spelled(str(image))]
        return int(rows[0]) if len(rows) else None

    def _known(self, number: int) -> int:
        if number not in self.rows.index:
            raise InputError(f"this archive has no image with the id {number}")
        return int(number)

    def _named(self, column: str, name: str) -> str:
        """A class or patient as it is spelled here."""
        name, known = checks.spelled(str(name)), self.rows[column].unique().tolist()
        if name not in known:
            what = "class" if column == "label" else "patient"
            raise InputError(f"this archive has no {what} {name}: {suggestion(name, known)}")
        return name


def _read(paths: Sequence[Path]) -> list[Image.Image]:
    """All images, with a warning of what is read otherwise than somebody may expect."""
    notices: Notices = {}
    images = [read_image(path, notices) for path in paths]
    tell(notices)
    return images
