"""Procedural H&E-like tiles: a tree of organs, tissues and subtypes, patients with their own stain, no licence.

``sample`` plans a set, ``draw`` draws one tile, ``write`` puts a whole set on disk. A tile depends on the seed
and on its own number only, never on how many others are drawn.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from lib.datasets.tissue import stain
from lib.datasets.tissue.canvas import LARGEST, Canvas, ramp
from lib.datasets.tissue.painters import paint
from lib.datasets.tissue.tree import ORGANS, SUBTYPES, TREE
from lib.errors import InputError
from lib.files import whole
from lib.progress import track

__all__ = ["PITCH", "TREE", "draw", "sample", "write"]

KIND = "tissue set"
PITCH = {"40X": 5.0, "100X": 2.0, "200X": 1.0, "400X": 0.5}  # µm per pixel
MIXED = 0.4  # share of tiles with a second tissue at the border
_TISSUES = tuple(SUBTYPES)
_ORGAN = {tissue: organ for organ, tissues in ORGANS.items() for tissue in tissues}
_DUPLICATES, _STAIN, _PATIENTS, _TILE = range(4)  # what a random stream is for


def sample(
    n_tiles: int = 2000,
    n_patients: int = 24,
    seed: int = 0,
    magnification: str = "200X",
    n_duplicates: int = 4,
) -> pd.DataFrame:
    """Plan ``n_tiles`` tiles, balanced over the 40 subtypes, every class spread over all patients.

    Columns: ``image_id``, ``label`` (the tissue), ``organ``, ``tissue``, ``subtype``, ``patient``, ``magnification``,
    ``duplicate_of`` (an ``image_id`` or ""), and what :func:`draw` needs: ``seed``, ``number``, ``shown_subtype``,
    ``shown_patient``. The last ``n_duplicates`` rows show the picture of an earlier row of another class, while
    their labels claim otherwise. All other rows are the same for any larger ``n_tiles``.

    Raises :class:`InputError` if a number is out of range or the magnification is not one of 40X, 100X, 200X, 400X.
    """
    _check(n_tiles, n_patients, seed, magnification, n_duplicates)
    rows = []
    for number in range(n_tiles):
        turn, place = divmod(number, len(_TISSUES))
        tissue = _TISSUES[place]
        subtypes = tuple(SUBTYPES[tissue])
        subtype = subtypes[turn % len(subtypes)]
        patient = f"P{_patient(seed, place, turn, n_patients):02d}"
        rows.append(
            {
                "image_id": f"{magnification}_{number:05d}",
                "label": tissue,
                "organ": _ORGAN[tissue],
                "tissue": tissue,
                "subtype": subtype,
                "patient": patient,
                "magnification": magnification,
                "duplicate_of": "",
                "seed": seed,
                "number": number,
                "shown_subtype": subtype,
                "shown_patient": patient,
            }
        )
    rng = np.random.default_rng([seed, _DUPLICATES])
    sources = list(range(n_tiles - n_duplicates))
    for copy in rows[n_tiles - n_duplicates :]:
        source = rows[rng.choice([i for i in sources if rows[i]["label"] != copy["label"]])]
        sources.remove(source["number"])
        copy["duplicate_of"] = source["image_id"]
        copy.update({key: source[key] for key in ("number", "shown_subtype", "shown_patient")})
    return pd.DataFrame(rows)


def _patient(seed: int, tissue: int, turn: int, n_patients: int) -> int:
    """Patient of the ``turn``-th tile of a tissue: all patients in a shuffled order, then all of them again."""
    lap, place = divmod(turn, n_patients)
    return int(np.random.default_rng([seed, _PATIENTS, tissue, lap]).permutation(n_patients)[place])


def _check(n_tiles: int, n_patients: int, seed: int, magnification: str, n_duplicates: int) -> None:
    if magnification not in PITCH:
        raise InputError(f"magnification {magnification!r} is unknown; use one of {', '.join(PITCH)}")
    if n_tiles < 1 or n_patients < 1 or seed < 0:
        raise InputError(
            f"n_tiles={n_tiles}, n_patients={n_patients}, seed={seed}: the first two must be at least 1, the seed 0"
        )
    if not 0 <= n_duplicates <= n_tiles // 4:
        raise InputError(f"n_duplicates={n_duplicates} must lie between 0 and a quarter of n_tiles={n_tiles}")


def draw(row: Mapping[str, Any] | pd.Series, size: int = 96) -> np.ndarray:
    """Draw the tile that one ``row`` of :func:`sample` describes: (size, size, 3) uint8, always the same.

    ``size``: side in pixels, 16 to 256; the scale in µm per pixel depends on the magnification only.
    Raises :class:`InputError` for any other ``size``.
    """
    if not 16 <= size <= LARGEST:
        raise InputError(f"size={size} px is out of range; tiles can be 16 to {LARGEST} px wide")
    seed, subtype = int(row["seed"]), row["shown_subtype"]
    slide = stain.of_patient(seed, _STAIN, int(row["shown_patient"].removeprefix("P")))
    rng = np.random.default_rng([seed, _TILE, int(row["number"])])
    canvas = Canvas(size, PITCH[row["magnification"]] * slide.shrinkage, rng)
    tissue = next(name for name, subtypes in SUBTYPES.items() if subtype in subtypes)
    density = paint(canvas, tissue, subtype)
    if rng.random() < MIXED:
        density += _border(canvas) * (paint(canvas, *_neighbour(tissue, rng)) - density)
    density *= np.exp(rng.normal(0, 0.1, (2, 1, 1))).astype(np.float32)
    return stain.develop(density, slide, rng)


def _neighbour(tissue: str, rng: np.random.Generator) -> tuple[str, str]:
    """Another tissue, from the same organ in two of three cases, and one of its subtypes."""
    others = [other for other in _TISSUES if other != tissue]
    kin = [other for other in others if _ORGAN[other] == _ORGAN[tissue]]
    other = str(rng.choice(kin if rng.random() < 2 / 3 else others))
    return other, str(rng.choice(list(SUBTYPES[other])))


def _border(canvas: Canvas) -> np.ndarray:
    """1 beyond an uneven border that cuts off 10 to 35 % of the tile, 0 on this side of it."""
    across = canvas.across() + 0.07 * canvas.extent * canvas.noise(canvas.extent / 4)
    edge = np.quantile(across, 1 - canvas.rng.uniform(0.1, 0.35))
    return ramp(across, edge - 2.5, edge + 2.5).astype(np.float32)


def write(
    root: Path,
    n_tiles: int = 2000,
    n_patients: int = 24,
    size: int = 96,
    seed: int = 0,
    magnification: str = "200X",
    n_duplicates: int = 4,
) -> Path:
    """Write ``root/<magnification>/<label>/<image_id>.png`` and ``root/table.csv``, all of it or nothing.

    The table is that of :func:`sample` with a column ``path``, relative to ``root``. A set that was written to
    ``root`` before is replaced; the same arguments give the same bytes. Returns ``root``.

    Raises :class:`InputError` as :func:`sample` and :func:`draw` do, and if ``root`` holds anything else: nothing but
    a tissue set is replaced.
    """
    root = Path(root)
    rows = sample(n_tiles, n_patients, seed, magnification, n_duplicates)
    rows.insert(1, "path", rows["magnification"] + "/" + rows["label"] + "/" + rows["image_id"] + ".png")
    with whole(root, KIND) as draft:
        for folder in {Path(path).parent for path in rows["path"]}:
            (draft / folder).mkdir(parents=True)
        tiles = rows.to_dict("records")
        for row in track(tiles, total=n_tiles, what=f"drawing {root.name}", unit="tiles"):
            Image.fromarray(draw(row, size)).save(draft / row["path"], compress_level=1)
        rows.to_csv(draft / "table.csv", index=False, lineterminator="\n")
    return root
