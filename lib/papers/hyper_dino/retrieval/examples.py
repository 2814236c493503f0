"""What the explaining pictures of notebook 13 show: the method's steps, folds of a few patients, AP@k worked out."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from PIL import Image

from lib.datasets.catalogue import facts
from lib.datasets.drawing import of_each_class
from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.geometry import Sphere
from lib.metrics.retrieval import average_precision_at_k
from lib.papers.hyper_dino.retrieval import pictures
from lib.results.shown import Figure
from lib.search import nearest
from lib.training.methods import Method

DENOMINATORS = {"min": "min(k, R)", "hits": "hits", "k": "k"}


def figure_method(encoder: str, dim: int, method: Method) -> Figure:
    """The whole method as one diagram; ``dim``: numbers that the encoder gives, ``method``: the mapper shown."""
    recipe, nothing = method.recipe, "nothing of yours"
    steps = [
        ("images", "images", "photographs", nothing),
        ("network", "frozen encoder", f"{dim:,} numbers", nothing),
        ("axes", "scaler, then\nPCA (or NCA)", f"{recipe.dim_in} numbers", "training images"),
        ("network", "mapper", f"{recipe.dim_out} numbers", "training images and their classes"),
        ("ball", "Poincaré ball", "distance to every\nreference image", nothing),
        ("list", "answers", "nearest first", nothing),
    ]
    rows = pd.DataFrame(steps, columns=["glyph", "step", "numbers", "learns_from"])
    text = (
        f"The method with the encoder {encoder} and {recipe.name}. Only the dark step is trained with classes; NCA "
        "looks at them too. A query goes the same way as the reference images, and finds those that lie nearest."
    )
    return Figure("the whole method", rows, text, figure=pictures.method(rows))


def figure_folds(images: ImageTable, fold_of: Mapping[str, np.ndarray], n_groups: int = 5, n_images: int = 9) -> Figure:
    """Images of the groups that have most of them, with the fold of each under every rule; ``fold_of``: rule → (n,)."""
    groups = pd.Series(images.groups).value_counts(sort=False).sort_values(ascending=False, kind="stable").index
    lines = [
        {"rule": rule, "group": group, "place": place, "image": image, "fold": fold[image]}
        for rule, fold in fold_of.items()
        for group in groups[:n_groups]
        for place, image in enumerate(np.flatnonzero(images.groups == group)[:n_images])
    ]
    rows = pd.DataFrame(lines)
    kind = images.group_kind
    text = f"A few images of {rows['group'].nunique()} of the {len(groups)} {kind}s, a row each. "
    text += "By image, a query finds images of its own row in the archive, whenever their number is another one" + (
        f"; by {kind}, never." if len(fold_of) > 1 else "."
    )
    text = f"{text} {_about_pictures(images)}".rstrip()
    ids = images.rows["image_id"].to_numpy()
    shown = pictures.folds(rows, _drawn(images, rows["image"].unique()), kind)
    return Figure("folds by image and by group", rows.assign(image=ids[rows["image"]]), text, figure=shown)


def worked(x: np.ndarray, images: ImageTable, seed: int, k: int = 10, per_class: int = 6) -> pd.DataFrame:
    """A query and its first answers from a small archive, such that the denominators of AP@k differ.

    The archive has ``per_class`` images of each class, at most half of them, drawn at random, and is searched by cosine
    of the features ``x: (n, dim)``. Of the others the first query is taken that has a right answer at rank 1 and one
    after an error, and fewer hits than there could be.

    Returns:
        One row per rank: query, relevant (right images in the archive), rank, image (both its place in ``images``),
        label, right, precision (of the ranks so far).
    """
    labels = images.labels
    archive = of_each_class(labels, seed, per_class=per_class, fraction=0.5)
    k = min(k, len(archive))
    queries = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(len(labels)), archive))
    points = torch.from_numpy(x).float()
    answers = archive[nearest(points[queries], points[archive], k, Sphere())[1].numpy()]
    right = labels[answers] == labels[queries][:, None]
    relevant = (labels[archive] == labels[queries][:, None]).sum(axis=1)
    hits, last = right.sum(axis=1), k - right[:, ::-1].argmax(axis=1)
    chosen = (right[:, 0] & (last > hits) & (hits < np.minimum(relevant, k))).argmax()
    rows = pd.DataFrame({"rank": np.arange(1, k + 1), "image": answers[chosen], "right": right[chosen]})
    rows.insert(0, "query", queries[chosen])
    rows.insert(1, "relevant", relevant[chosen])
    precision = rows["right"].cumsum() / rows["rank"]
    return rows.assign(label=labels[rows["image"]], precision=precision)


def figure_ap(images: ImageTable, rows: pd.DataFrame) -> Figure:
    """AP@k of the list of :func:`worked` under every denominator."""
    k, query, relevant = len(rows), rows["query"].iloc[0], rows["relevant"].iloc[0]
    values = ap_values(rows)
    text = (
        f"A query of class {images.labels[query].replace('_', ' ')} and its {k} nearest images in a small archive, in "
        f"which R = {relevant} images are of its class. A bar stands where the answer is right; it is as high as the "
        "share of right answers so far. The sum of the bars is divided by one of three numbers. "
        f"{_about_pictures(images)}"
    ).rstrip()
    drawn = _drawn(images, [query, *rows["image"]])
    shown = pictures.precisions(rows, [drawn.get(image) for image in (query, *rows["image"])], values)
    ids = images.rows["image_id"].to_numpy()
    named = rows.assign(query=ids[rows["query"]], image=ids[rows["image"]])
    free = ("query", "image", "label", "right", "precision", "relevant")
    return Figure("AP@k on one list of answers", named, text, free=free, figure=shown)


def ap_values(rows: pd.DataFrame) -> dict[str, float]:
    """What AP@k divides by → AP@k of the list of :func:`worked`.

    >>> rows = pd.DataFrame({"rank": [1, 2, 3], "right": [True, False, True], "relevant": 6})
    >>> {name: round(value, 3) for name, value in ap_values(rows).items()}
    {'min(k, R)': 0.556, 'hits': 0.833, 'k': 0.556}
    """
    k = len(rows)
    unseen = int(rows["relevant"].iloc[0] - rows["right"].sum())  # right images of the archive behind rank k
    right = torch.tensor([*rows["right"], *[True] * unseen])[None]
    distance = torch.arange(right.shape[1]).double()[None]
    return {
        name: average_precision_at_k(distance, right, [k], denominator).item()
        for denominator, name in DENOMINATORS.items()
    }


def _about_pictures(images: ImageTable) -> str:
    """What the licence of the images asks to be said, or why their places stay grey."""
    source = facts(images.name).pictures
    return "The tiles are grey because these pictures may not be published here." if source is None else source


def _drawn(images: ImageTable, wanted: Sequence[int]) -> dict[int, Image.Image]:
    """The pictures of the ``wanted`` images if they may be published, else none."""
    if facts(images.name).pictures is None:
        return {}
    return {int(i): read_image(images.path(i)) for i in wanted}
