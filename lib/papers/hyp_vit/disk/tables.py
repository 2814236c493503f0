"""What the pictures hold, as rows and as sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from torch import Tensor

from lib.datasets.categories import Halves
from lib.datasets.table import ImageTable
from lib.papers.hyp_vit.disk import figures
from lib.papers.hyp_vit.disk.layout import NEAR
from lib.papers.hyp_vit.names import HYP, UNCLIPPED
from lib.papers.hyp_vit.retrieval import frozen
from lib.papers.hyp_vit.retrieval import tables as recalls
from lib.results.markdown import markdown_table
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.methods import Method

TWO = "Hyp, two numbers"
NO_HEAD = ", no head"
"""Behind the name of a picture: the features of the same images."""
NOISE = "noise"
OF_A_LAYOUT = ("begun", "shown", "shown_low", "shown_high", "kept", "same_shown", "mixed")
"""Columns that rest on UMAP, whose steps depend on the last bit of every number before them."""


def heads(settings: Settings, dim: int, dim_out: int, schedule: ByClass) -> list[Method]:
    """The head of the paper, the same not clipped, and the same with two numbers."""
    wanted = (HYP, UNCLIPPED)
    known = [one for one in frozen.heads(settings, dim, dim_out, schedule) if one.name in wanted]
    return [*known, replace(known[0], name=TWO, recipe=replace(known[0].recipe, dim_out=2))]


def kinds(images: ImageTable, parts: Halves, *columns: str) -> tuple[str, np.ndarray]:
    """What the points of a picture are marked by, where categories may be too many to tell apart.

    The first of ``columns`` that the images have with fewer values than there are categories, else the categories:
    what it is called, and the kind of every image, (n,).
    """
    used = np.union1d(parts.learnt, parts.queries)
    for column in columns:
        if column in images.rows and images.rows[column].iloc[used].nunique() < parts.count(used):
            return column, images.rows[column].astype(str).to_numpy()
    return "category", parts.names


def marks(of: str, kind: np.ndarray, rows: np.ndarray) -> str:
    """What a caption says of the marks of the images ``rows``; of, kind: from :func:`kinds`.

    >>> marks("label", np.array(["tumour", "stroma"]), np.array([0, 1]))
    'Marks: label, which is coarser than the categories of the head.'
    """
    coarser = ", which is coarser than the categories of the head" * (of != "category")
    if len(np.unique(kind[rows])) <= figures.SHOWN:
        return f"Marks: {of}{coarser}."
    return f"Marks: the {figures.SHOWN} largest, by {of}{coarser}; grey dots: all others."


def placed(points: Mapping[str, np.ndarray], rows: Mapping[str, np.ndarray], kind: np.ndarray) -> pd.DataFrame:
    """Columns picture, x, y, kind: a row per image and picture.

    Args:
        points: picture → (n, 2) in the unit disk.
        rows: picture → (n,) the images of its points.
        kind: of all images.
    """
    frames = [
        pd.DataFrame({"picture": name, "x": xy[:, 0], "y": xy[:, 1], "kind": kind[rows[name]]})
        for name, xy in points.items()
    ]
    return pd.concat(frames, ignore_index=True)


def bound_sentences(points: Mapping[str, Sequence[Tensor]], settings: Settings) -> list[str]:
    """Which part of the embeddings (n, dim) of each head's trainings is at the bound that clipping sets."""
    furthest = recalls.bound(settings)
    lines = []
    for name, trainings in points.items():
        norms = [embedded.norm(dim=-1).numpy() for embedded in trainings]
        at_bound = [recalls.clipped(settings, one) for one in norms]
        innermost = min(recalls.shares(settings, one).min() for one in norms)
        lines.append(
            f"{name}: {np.mean(at_bound):.1f} % at the bound of {furthest:.1f} % ({min(at_bound):.1f} to "
            f"{max(at_bound):.1f} over {len(norms)} trainings), the innermost of all at {innermost:.1f} %"
        )
    return lines


def compared_layout(rows: pd.DataFrame) -> str:
    """:func:`lib.papers.hyp_vit.disk.layout.compared` as Markdown."""
    lines = [
        {
            "picture": row.picture,
            "images": row.images,
            "embeddings rest at": "–" if np.isnan(row.rest) else f"{row.rest:.1f} %",
            "picture begins at": f"{row.begun:.1f} %",
            "shown at": f"{row.shown:.1f} % ({row.shown_low:.1f} to {row.shown_high:.1f})",
            f"nearest {NEAR} kept (by chance)": f"{row.kept:.1f} % ({_kept_by_chance(row.images):.1f})",
            f"of {NEAR}, own category at most": f"{row.at_most:.2f}",
            "of these, embedding": f"{row.same:.1f} %",
            "of these, picture": f"{row.same_shown:.1f} %",
            "by chance": f"{row.chance:.1f} %",
            "radius with own neighbours (at most)": f"{_signed(row.mixed)} ({_signed(row.mixed_most)})",
        }
        for row in rows.itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def _kept_by_chance(images: int) -> float:
    """Of :data:`NEAR` images of a picture, how many are true neighbours if it shows none; percent.

    >>> _kept_by_chance(101)
    10.0
    """
    return 100 * NEAR / (images - 1)


ONCE = "Of one training and one seed of UMAP: differences between these numbers were seen once, and not tested."
"""What heads the sentences about pictures."""


def disk_sentences(rows: pd.DataFrame) -> list[str]:
    """:data:`ONCE`; where embeddings rest and where a picture shows them, its true neighbours, and what radii say."""
    told = [
        f"{row.picture}: {_resting(row.rest)}the picture begins at {row.begun:.1f} % and shows half of them between "
        f"{row.shown_low:.1f} and {row.shown_high:.1f} %; of ten neighbours in it {row.kept / 10:.1f} are true "
        f"(by chance {_kept_by_chance(row.images) / 10:.2f}); of at most {row.at_most:.2f} of the own category "
        f"{row.same_shown:.1f} % are among them (in the embedding {row.same:.1f} %, by chance {row.chance:.1f} %)"
        for row in rows.itertuples()
    ]
    return [ONCE, *told, ends(rows), radii(rows)]


def ends(rows: pd.DataFrame) -> str:
    """Where pictures begin and end, and where that of noise does."""
    noise = rows.set_index("picture")["shown"][NOISE]
    return (
        f"median radius of the pictures: they begin at {rows['begun'].min():.1f} to {rows['begun'].max():.1f} % and "
        f"end at {rows['shown'].min():.1f} to {rows['shown'].max():.1f} %, that of noise at {noise:.1f} %"
    )


def radii(rows: pd.DataFrame) -> str:
    """Whether points further in have more mixed neighbours, beside the same images without a head, and noise."""
    by = rows.set_index("picture")
    told = []
    for name in (name for name in by.index if not name.endswith(NO_HEAD)):
        bare = f"{name}{NO_HEAD}"
        beside = f", without a head {_bounded(by.loc[bare])}" if bare in by.index else ""
        told.append(f"{name} {_bounded(by.loc[name])}{beside}")
    return (
        "rank correlation of the radius in the picture with the own category's share of the nearest embeddings, "
        "above 0 where points further in have more mixed neighbours; in brackets the most that it could be, since "
        f"images with equal shares are tied: {'; '.join(told)}"
    )


def _bounded(row: pd.Series) -> str:
    return f"{_signed(row['mixed'])} ({_signed(row['mixed_most'])})"


def in_short(rows: pd.DataFrame) -> list[str]:
    """The two things that a picture is read for, with the head, without it, and of noise; rows of ``compared``."""
    by = rows.set_index("picture")
    radius = [f"{name} {by.loc[name, 'shown']:.1f} %" for name in by.index]
    own = [
        f"{name} {by.loc[name, 'same_shown']:.1f} % with the head, {by.loc[name + NO_HEAD, 'same_shown']:.1f} % without"
        for name in by.index
        if name + NO_HEAD in by.index
    ]
    return [
        f"median radius in the picture: {'; '.join(radius)}",
        f"own category among the nearest in the picture, of what is possible: {'; '.join(own)}",
    ]


def _signed(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:+.2f}"


def _resting(rest: float) -> str:
    return "" if np.isnan(rest) else f"embeddings rest at {rest:.1f} % of the radius, "
