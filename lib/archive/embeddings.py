"""What makes vectors of images: an encoder of ours, or embeddings that the laboratory has computed elsewhere."""

import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from lib import files
from lib.checks import spelled
from lib.datasets.table import ImageTable, some
from lib.encoders import cache, registry
from lib.encoders.cache import Encoder, Features
from lib.errors import InputError

FILES = (".npz", ".parquet")
IDS, VECTORS = ("ids", "id", "image_id", "path"), ("vectors", "vector", "features", "embeddings", "embedding")
"""What arrays or columns may be called; in a .parquet file the vectors may also be one column for each number."""
FOREIGN = "embeddings of the laboratory"
ROUNDING = {"timm", "dtype", "scikit-image"}
"""Of an encoder's provenance: what moves its numbers by rounding only."""


def extract(
    table: ImageTable, encoder: Encoder | str | Path, target: Path | None, on_broken: str
) -> tuple[Features, Encoder | None]:
    """The features of a table, and the encoder of ours that made them."""
    if isinstance(encoder, Path) or (isinstance(encoder, str) and encoder.lower().endswith(FILES)):
        return read(Path(encoder), table), None
    encoder = registry.make(encoder) if isinstance(encoder, str) else encoder
    if target is not None:
        return cache.extract(table, encoder, target, on_broken), encoder
    with tempfile.TemporaryDirectory() as place:
        return cache.extract(table, encoder, Path(place) / "features.safetensors", on_broken), encoder


def read(file: Path, table: ImageTable) -> Features:
    """The vectors that ``file`` has for the images of ``table``, whose ids are their paths below its folder.

    Raises InputError, naming the file, for one that cannot be read, and for an image that it does not list or lists
    twice; rows of other images are left alone.
    """
    ids, vectors = _contents(file)
    if vectors.ndim != 2 or len(ids) != len(vectors) or not vectors.size:
        raise InputError(f"{file}: {len(ids)} ids and vectors of shape {vectors.shape}; expected (n,) and (n, d).")
    if len(bad := np.flatnonzero(~np.isfinite(vectors).all(axis=1))):
        raise InputError(f"{file}: the vector of {ids[bad[0]]} holds NaN or infinity. Compute it again.")
    keys = [spelled(str(name)).replace("\\", "/").removeprefix("./") for name in ids]
    row_of = dict(zip(keys, range(len(keys)), strict=True))
    if len(row_of) < len(keys):
        twice = pd.Series(keys)[pd.Series(keys).duplicated()].iloc[0]
        raise InputError(f"{file}: {twice} is listed more than once. Keep one vector for each image.")
    wanted = [spelled(image_id) for image_id in table.rows["image_id"]]
    if unlisted := [image_id for image_id in wanted if image_id not in row_of]:
        raise InputError(
            f"{file} has no vector for {len(unlisted)} of {len(wanted)} images, such as {some(unlisted)}. Its ids are "
            f"to be paths below {table.root}; it has {some(keys)}."
        )
    values = vectors[[row_of[image_id] for image_id in wanted]].astype(np.float32)
    sha256 = {image_id: files.sha256(table.path(row)) for row, image_id in enumerate(table.rows["image_id"])}
    about = {"encoder": file.name, "weights": FOREIGN, "file_sha256": files.sha256(file)}
    return Features(values, sha256, {}, table.name, about)


def vector(file: Path, dim: int) -> np.ndarray:
    """The one vector (dim,) in a .npy, .npz or .parquet file; InputError for several, or another length."""
    try:
        values = np.load(file, allow_pickle=False) if file.suffix.lower() == ".npy" else _contents(file)[1]
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{file} cannot be read as a vector ({error}). Save it with numpy.save.") from error
    values = np.asarray(values, dtype=np.float32).squeeze()
    if values.shape != (dim,) or not np.isfinite(values).all():
        raise InputError(f"{file} holds numbers of shape {values.shape}; expected one vector of {dim} finite numbers.")
    return values


def is_vector(file: Path) -> bool:
    """Whether the name is that of a file of vectors."""
    return file.suffix.lower() in (".npy", *FILES)


def check_same(built: Mapping[str, str], encoder: Encoder) -> None:
    """Raise InputError, saying what differs, unless ``encoder`` makes the numbers that the archive was ``built`` with.

    Other versions of a library, and half precision, move numbers by rounding and are let pass.
    """
    here = encoder.provenance
    differing = [name for name in built if built[name] != here.get(name) and name not in ROUNDING]
    if differing:
        shown = "; ".join(
            f"{name}: {_short(built[name])} there, {_short(here.get(name, 'none'))} here" for name in differing[:3]
        )
        raise InputError(
            f"This archive was built with the encoder {built['encoder']}, and the encoder here is not the same "
            f"({shown}). Distances between the two would mean nothing. Build the archive again with make archive, or "
            "take the weights that it was built with."
        )


def named(encoder: Mapping[str, str]) -> str:
    """An encoder in one line, for the index."""
    return " ".join([encoder["encoder"], encoder.get("weights_sha256", "")[:12]]).strip()


def _short(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:12]}…"


def _contents(file: Path) -> tuple[list[str], np.ndarray]:
    """The ids and the vectors in a file."""
    if not file.is_file():
        raise InputError(f"{file}: no such file.")
    try:
        return _of_npz(file) if file.suffix.lower() == ".npz" else _of_parquet(file)
    except ImportError as error:
        raise InputError(
            f"{file} needs pyarrow, which is not installed: pip install pyarrow. Or save ids and vectors with "
            "numpy.savez."
        ) from error
    except InputError:
        raise
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"{file} cannot be read ({error}). Save ids and vectors with numpy.savez.") from error


def _of_npz(file: Path) -> tuple[list[str], np.ndarray]:
    with np.load(file, allow_pickle=False) as held:
        ids, vectors = (_one_of(names, held.files, file) for names in (IDS, VECTORS))
        return held[ids].astype(str).tolist(), held[vectors]


def _of_parquet(file: Path) -> tuple[list[str], np.ndarray]:
    held = pd.read_parquet(file)
    ids = _one_of(IDS, [*held], file)
    rest = held.drop(columns=ids)
    if any(name in rest for name in VECTORS):
        column = rest[_one_of(VECTORS, [*rest], file)]
        return held[ids].astype(str).tolist(), np.stack([np.asarray(row, dtype=np.float32) for row in column])
    return held[ids].astype(str).tolist(), rest.select_dtypes("number").to_numpy(dtype=np.float32)


def _one_of(names: tuple[str, ...], held: list[str], file: Path) -> str:
    for name in names:
        if name in held:
            return name
    raise InputError(f"{file} holds {', '.join(map(str, held[:8]))}, but nothing called {' or '.join(names)}.")
