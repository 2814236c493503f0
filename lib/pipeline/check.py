"""What a folder of images holds for a run: classes, patients, what is left out and why, and how long a run takes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from PIL import Image

from lib.datasets import finding, folder
from lib.datasets.catalogue import DATASETS
from lib.datasets.images import FORMATS
from lib.datasets.table import ImageTable, some
from lib.pipeline import plan, profiles

LISTED = 20
"""So many names stand in a list; the rest is counted."""
ENCODER = "efficientnet_lite0"
EMBEDDINGS = (".npz", ".parquet")


def text(data: Path, name: str | None = None, encoder: str | None = None) -> str:
    """What a run on ``data`` would find, as people read it.

    name: as for :func:`lib.datasets.finding.find`; encoder: of the archive, the usual one if not given.
    """
    settings = profiles.settings()
    return "\n\n".join(_of(table, encoder, settings) for table in finding.tables(data, name))


def _of(table: ImageTable, encoder: str | None, settings: dict[str, Any]) -> str:
    rows = table.rows
    known = table.group_kind != "image"
    patients = f", {rows['group'].nunique():,} {_plural(table.group_kind)}" if known else ""
    kind = DATASETS[table.name].title if table.name in DATASETS else "your own images"
    parts = [
        f"{table.name}: {kind} in {table.root}. {len(table.classes)} classes{patients}, {len(rows):,} images.",
        _classes(table, known),
        _patient(table),
        _left_out("Ignored", [f"{what}: {why}" for what, why in table.skipped]),
        _left_out("Cannot be read, and stop a run (on_broken: skip in params.yaml leaves them out)", _broken(table)),
        _time(table, encoder, settings),
    ]
    return "\n".join(filter(None, parts))


def _classes(table: ImageTable, known: bool) -> str:
    """A line for each class with its images and patients, and which classes have images of one patient only."""
    counts = table.rows.groupby("label")["group"].agg(["size", "nunique"])
    width = max(map(len, counts.index), default=0)
    lines = [
        f"  {label.ljust(width)}  {n:>7,} images" + f"  {m:>6,} {_plural(table.group_kind, m)}" * known
        for label, (n, m) in zip(counts.index, counts.to_numpy(), strict=True)
    ]
    alone = counts.index[counts["nunique"] < 2].tolist() if known else []
    kind = _plural(table.group_kind, 1)
    if alone:
        lines.append(f"  Images of one {kind} only, so that no other {kind} has the answer: {some(alone, LISTED)}.")
    return "\n".join(lines)


def _patient(table: ImageTable) -> str:
    """Which level of the path is the patient, on an example."""
    if table.group_kind == "image":
        return (
            "Patient: there is no folder between class and image, so each image counts as a patient of its own. If "
            "patients have several images, scores look too good: put each patient's images into one folder."
        )
    row = table.rows.iloc[0]
    if table.group_kind != "patient":
        where = f" ({folder.GROUPS})" if table.group_kind == "group" else ""
        return f"Patient: images are kept together by {table.group_kind}{where}: {row.image_id} is of {row.group}."
    labels = table.rows.groupby("group")["label"].nunique()
    n = int((labels > 1).sum())
    mixed = f" {n:,} of {len(labels):,} patients have images of several classes." * (n > 0)
    level = "the folder below the class" if "/" not in row.group else "the folders below the class, together"
    return f"Patient: {level}: {row.image_id} is of patient {row.group}.{mixed}"


def _left_out(what: str, lines: list[str]) -> str:
    if not lines:
        return ""
    rest = [f"  and {len(lines) - LISTED:,} more"] * (len(lines) > LISTED)
    return "\n".join([f"{what} ({len(lines):,}):", *(f"  {line}" for line in lines[:LISTED]), *rest])


def _broken(table: ImageTable) -> list[str]:
    """Files that are no images, by their first bytes: a damaged end shows only when a run reads them whole."""

    def why(row: int) -> str:
        try:
            with Image.open(table.path(row), formats=FORMATS):
                return ""
        except Exception:  # decoders meet damage with OSError, SyntaxError, ValueError and more
            return f"{table.rows['image_id'].iloc[row]}: not an image that can be read here"

    with ThreadPoolExecutor() as pool:
        return list(filter(None, pool.map(why, range(len(table)))))


def _time(table: ImageTable, encoder: str | None, settings: dict[str, Any]) -> str:
    """How long the archive and a run take on the machine of the plan."""
    n, machine = len(table), settings["plan"]["machine"]
    encoder = encoder or ENCODER
    lines = []
    if not encoder.lower().endswith(EMBEDDINGS):
        lines = [f"make archive {_long(n / plan.images_per_second(encoder, settings))} ({encoder})"]
    if table.name not in DATASETS:
        lines.append(f"make reproduce PROFILE=sample {_long(own_seconds(n, settings))}")
    return f"Time, estimated for {machine}: {', '.join(lines)}." if lines else ""


MANY, MORE = 2000, (5, 2)
"""So many times the demo's trainings: 5 folds by patient with 5 trainings each, and 5 by image, where the demo has 2, 2
and 2; of more images than this 3, 3 and 3. A head takes as many steps however few images there are."""


def own_seconds(n: int, settings: dict[str, Any]) -> float:
    """Seconds of a run on ``n`` own images: features of every encoder, and notebook 93."""
    encoders = profiles.own("mine")["features"]["encoders"]
    features = sum(n / plan.images_per_second(encoder, settings) for encoder in encoders)
    tiles, trainings = settings["drawn"]["tissue"]["n_tiles"], MORE[n > MANY]
    return features + trainings * max(1, n / tiles) * plan.demo_seconds("your_archive", settings)


def _long(seconds: float) -> str:
    """A rough duration.

    >>> _long(20), _long(500), _long(8000)
    ('under a minute', 'about 8 minutes', 'about 2.2 hours')
    """
    if seconds < 60:
        return "under a minute"
    if seconds < 90:
        return "about a minute"
    return f"about {seconds / 60:.0f} minutes" if seconds < 5400 else f"about {seconds / 3600:.1f} hours"


def _plural(kind: str, n: int = 2) -> str:
    return kind if n == 1 else f"{kind}s"
