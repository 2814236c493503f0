"""What the pictures hold, as rows and as sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from torch import Tensor

from lib.datasets.categories import Halves
from lib.papers.hyp_vit.disk.layout import NEAR, Cloud
from lib.papers.hyp_vit.names import HYP, UNCLIPPED
from lib.papers.hyp_vit.retrieval import frozen
from lib.papers.hyp_vit.retrieval import tables as recalls
from lib.results.markdown import markdown_table
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.methods import Method

TWO = "Hyp, two numbers"
OF_A_LAYOUT = ("begun", "shown", "shown_low", "shown_high", "kept", "same_shown", "mixed")
"""Columns that rest on UMAP, whose steps depend on the last bit of every number before them."""


def heads(settings: Settings, dim: int, dim_out: int, schedule: ByClass) -> list[Method]:
    """The head of the paper, the same not clipped, and the same with two numbers."""
    wanted = (HYP, UNCLIPPED)
    known = [one for one in frozen.heads(settings, dim, dim_out, schedule) if one.name in wanted]
    return [*known, replace(known[0], name=TWO, recipe=replace(known[0].recipe, dim_out=2))]


def placed(layouts: Mapping[str, np.ndarray], clouds: Mapping[str, Cloud], parts: Halves) -> pd.DataFrame:
    """Columns picture, x, y (in the unit disk), category: a row per image and picture."""
    names = dict(zip(parts.codes.tolist(), parts.names.tolist(), strict=True))
    frames = [
        pd.DataFrame(
            {"picture": name, "x": disk[:, 0], "y": disk[:, 1], "category": map(names.get, clouds[name].codes)}
        )
        for name, disk in layouts.items()
    ]
    return pd.concat(frames, ignore_index=True)


def plane(points: Mapping[str, tuple[Tensor, np.ndarray]], c: float, parts: Halves) -> pd.DataFrame:
    """The same columns for embeddings (n, 2) of the images rows (n,), in the ball scaled to radius one."""
    frames = []
    for name, (embedded, rows) in points.items():
        x, y = c**0.5 * embedded.numpy().T
        frames.append(pd.DataFrame({"picture": name, "x": x, "y": y, "category": parts.names[rows]}))
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
            "own category, embedding": f"{row.same:.1f} %",
            "own category, picture": f"{row.same_shown:.1f} %",
            "chance": f"{row.chance:.1f} %",
            "radius with own neighbours": _signed(row.mixed),
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
        f"(by chance {_kept_by_chance(row.images) / 10:.2f}), {row.same_shown / 10:.1f} of the own category (in the "
        f"embedding {row.same / 10:.1f}, by chance {row.chance / 10:.1f})"
        for row in rows.itertuples()
    ]
    return [ONCE, *told, radii(rows)]


NO_HEAD = ", no head"
"""Behind the name of a picture: the features of the same images."""


def radii(rows: pd.DataFrame) -> str:
    """Whether points further in have more mixed neighbours, beside the same images without a head, and noise."""
    mixed = rows.set_index("picture")["mixed"]
    told = []
    for name in (name for name in mixed.index if not name.endswith(NO_HEAD)):
        bare = f"{name}{NO_HEAD}"
        beside = f" (without a head {_signed(mixed[bare])})" if bare in mixed else ""
        told.append(f"{name} {_signed(mixed[name])}{beside}")
    return (
        f"rank correlation of the radius in the picture with the own category's share of the ten nearest embeddings, "
        f"above 0 where points further in have more mixed neighbours: {', '.join(told)}"
    )


def _signed(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:+.2f}"


def _resting(rest: float) -> str:
    return "" if np.isnan(rest) else f"embeddings rest at {rest:.1f} % of the radius, "
