"""Embeddings on the Poincaré disk, what such a picture holds, and the one image that everybody finds (section 3.3).

Fig. 2 and supplement B.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.datasets.categories import Halves
from lib.datasets.table import ImageTable
from lib.geometry import Euclidean, Geometry, Sphere, clip
from lib.metrics import retrieval
from lib.papers.hyp_vit import heads
from lib.papers.hyp_vit.disk_pictures import NEAR, SHOWN
from lib.papers.hyp_vit.heads import HYP, UNCLIPPED
from lib.search.exact import nearest
from lib.study import paired
from lib.study.columns import Column, Layout
from lib.study.run import Arm, Study
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.methods import Fitted

TWO, NO_HEAD, NOISE = "Hyp, two numbers", ", no head", "noise"
OF_A_LAYOUT = ("begun", "shown", "shown_low", "shown_high", "kept", "same_shown", "mixed")
"""Columns that rest on UMAP, whose steps depend on the last bit of every number before them."""


def arms(settings: Settings, encoder: str, dim: int, dim_out: int, schedule: ByClass) -> list[Arm]:
    """The head of the paper, the same not clipped, and the same with two numbers."""
    methods = heads.heads(settings, dim, dim_out, schedule, (HYP, UNCLIPPED))
    methods += [replace(methods[0], name=TWO, recipe=replace(methods[0].recipe, dim_out=2))]
    return heads.arms(methods, encoder)


def kinds(images: ImageTable, parts: Halves, *columns: str) -> tuple[str, np.ndarray]:
    """What the points of a picture are marked by: the name, and the kind of every image, (n,).

    The first of ``columns`` that the images have with fewer values than there are categories, else the categories.
    """
    used = np.union1d(parts.learnt, parts.queries)
    for column in columns:
        if column in images.rows and images.rows[column].iloc[used].nunique() < parts.count(used):
            return column, images.rows[column].astype(str).to_numpy()
    return "category", parts.names


def marks(level: str, kind: np.ndarray, rows: np.ndarray) -> str:
    """What a caption says of the marks of the images ``rows``; level, kind: from :func:`kinds`.

    >>> marks("label", np.array(["tumour", "stroma"]), np.array([0, 1]))
    'Marks: label, which is coarser than the categories of the head.'
    """
    coarser = ", which is coarser than the categories of the head" * (level != "category")
    if len(np.unique(kind[rows])) <= SHOWN:
        return f"Marks: {level}{coarser}."
    return f"Marks: the {SHOWN} largest, by {level}{coarser}; grey dots: all others."


def placed(points: Mapping[str, np.ndarray], rows: Mapping[str, np.ndarray], kind: np.ndarray) -> pd.DataFrame:
    """A row per image and picture: picture, x, y, kind.

    points: picture → (n, 2) in the unit disk. rows: picture → (n,) its images. kind: of all images.
    """
    frames = [
        pd.DataFrame({"picture": name, "x": xy[:, 0], "y": xy[:, 1], "kind": kind[rows[name]]})
        for name, xy in points.items()
    ]
    return pd.concat(frames, ignore_index=True)


D_HYP, D_COS, D_FLAT = "D_hyp", "D_cos", "flat"
"""How one network is searched: its points in the ball by D_hyp or D_cos, or its outputs by their flat distance."""


def hubs(fitted: Mapping[str, Sequence[Fitted]], x: np.ndarray, codes: np.ndarray, queries: np.ndarray) -> pd.DataFrame:
    """How often the commonest first answer is given, and where it lies; every image of ``queries`` searches the others.

    Columns method, repeat, search, recall (Recall@1, of equally near answers its expected value), most (of all queries,
    those whose first answer is the commonest one), rest_of_it and rest (norm in the ball of that answer, and the median
    of all, percent of the radius); percent.
    """
    lines = []
    for name, trainings in fitted.items():
        for head in trainings:
            embedded, e = head.embed(x[queries]), outputs(head, x[queries])
            rest = 100 * head.geometry.c**0.5 * embedded.norm(dim=-1)
            spaces = {D_HYP: (embedded, head.geometry), D_COS: (embedded, Sphere()), D_FLAT: (e, Euclidean())}
            for search, (points, space) in spaces.items():
                cells = _hub(points, space, codes[queries], rest)
                lines.append({"method": name, "repeat": head.split.repeat, "search": search} | cells)
    return pd.DataFrame(lines)


@torch.inference_mode()
def outputs(fitted: Fitted, x: np.ndarray) -> Tensor:
    """What the head hands to exp0, (n, d): vectors of flat space, clipped where the head clips."""
    e, radius = fitted.network.linear(torch.from_numpy(fitted.reduction(x))), fitted.network.clip_radius
    return e if radius is None else clip(e, radius)


def _hub(points: Tensor, space: Geometry, codes: np.ndarray, rest: Tensor) -> dict[str, float]:
    """The commonest first answer among ``points: (n, d)``; codes, rest: (n,) category and norm of each."""
    own = np.arange(len(points))
    first = nearest(points, points, 1, space, own, own)[1][:, 0]
    hits = retrieval.evaluate(points, points, codes, codes, space, (1,), own, own).values["hit_rate", 1]
    counts = torch.bincount(first, minlength=len(points))
    commonest = counts.argmax()
    return {
        "recall": 100 * float(hits.mean()),
        "most": 100 * counts[commonest].item() / len(points),
        "rest_of_it": rest[commonest].item(),
        "rest": rest.median().item(),
    }


def hub_tests(study: Study, arms: Sequence[Arm], seed: int = 0) -> pd.DataFrame:
    """Paired tests of Recall@1 over categories: D_cos against D_hyp on the same networks, and Hyp against others by
    D_cos, which says whether anything is left that the search does not account for.
    """
    cosine = [Arm(method, arm.encoder) for arm in arms for method in heads.by_cosine([arm.method])]
    pairs = [(by_cosine.name, arm.name) for by_cosine, arm in zip(cosine, arms, strict=True)]
    pairs += [(HYP, by_cosine) for by_cosine, name in pairs if name != HYP]
    scores = study.run([*arms, *cosine])
    return scores.tests(pairs, [1], metric="hit_rate", seed=seed).drop(columns="search")


LAYOUTS = {
    "table_disk": Layout(
        [
            Column("picture"),
            Column("images", form="0"),
            Column("embeddings rest at", "rest", "1 %"),
            Column("picture begins at", "begun", "1 %"),
            Column("shown at", "shown", "1 %"),
            Column(f"nearest {NEAR} kept", "kept", "1 %"),
            Column(f"of {NEAR}, own category at most", "at_most"),
            Column("of these, embedding", "same", "1 %"),
            Column("of these, picture", "same_shown", "1 %"),
            Column("by chance", "chance", "1 %"),
            Column("radius with own neighbours", "mixed", "+2", brackets="mixed_most"),
        ],
        ("picture",),
    ),
    "table_hubs": Layout(
        [
            Column("method"),
            Column("search"),
            Column("Recall@1", "recall"),
            Column("queries with the commonest first answer", "most", "1 %"),
            Column("it rests at", "rest_of_it", "2 %"),
            Column("median of all", "rest", "2 %"),
        ],
        ("method", "search"),
        repeats="repeat",
    ),
    "table_hub_tests": paired.tests_layout(paired.METHODS | {"k": "K"}),
}
