"""How far a wrong answer is from the right one in a tree of classes (*Climbing the Label Tree*, section 3.5).

All of a method's values belong to one set of predictions: :func:`of_predictions` gives them together, image by image,
so that they can be paired by patient. Three identities hold then, and the tests assert them:

* HF1 >= Top-1, because a right answer has HF1 = 1 (the published tables break it in 29 of 36 rows, erratum LT-4);
* where all leaves have depth L, HF1 without the root is H-Acc, and HF1 with it (1 + L·H-Acc)/(L + 1): on such a tree
  the three rank methods alike, and only on an unbalanced tree do they say different things;
* PC-Order + violations = 1 apart from ties (erratum LT-6).
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry, PoincareBall, Sphere
from lib.geometry.means import frechet_mean
from lib.geometry.points import Points, as_tensor
from lib.taxonomy import Taxonomy


class ParentOrder(NamedTuple):
    """What the distances to the groups of one level say of each image, (n,) each.

    order: PC-Order, 1 where its own group is nearest, 1/t where t groups share the first place, else 0.
    violation: 1 where some other group is as near as its own or nearer, else 0. tied: whether its own group shares the
    first place.
    """

    order: np.ndarray
    violation: np.ndarray
    tied: np.ndarray


def hf1(true: ArrayLike, predicted: ArrayLike, taxonomy: Taxonomy, root: bool = True) -> np.ndarray:
    """F1 of the ancestors of the answer and of the right class, both with the class itself, for each image.

    Args:
        true, predicted: (n,) codes of leaves (:meth:`lib.taxonomy.Taxonomy.codes`).
        root: whether the root is an ancestor. All classes share it, so with it the worst answer is above 0.

    Returns:
        (n,) from 0 to 1.

    Raises:
        InputError: for codes that are none of the tree's leaves, lists of different length, and no images.

    "ductal" for "lobular" shares {malignant} of {malignant, ductal} and {malignant, lobular}; "adenosis" none:

    >>> from lib.taxonomy import from_nested
    >>> kin = from_nested("tumour", {"benign": ["adenosis"], "malignant": ["ductal", "lobular"]})
    >>> true, answers = kin.codes(["lobular"] * 3), kin.codes(["lobular", "ductal", "adenosis"])
    >>> hf1(true, answers, kin, root=False), hf1(true, answers, kin).round(3)
    (array([1. , 0.5, 0. ]), array([1.   , 0.667, 0.333]))
    """
    true, predicted = _codes(true, predicted, taxonomy)
    shared, depths = taxonomy.shared_depth(true, predicted), taxonomy.leaf_depths()
    return 2 * (shared + root) / (depths[true] + depths[predicted] + 2 * root)


def h_acc(true: ArrayLike, predicted: ArrayLike, taxonomy: Taxonomy) -> np.ndarray:
    """1 − d/(2L) of each image, with d the edges of the tree between answer and right class, and its depth L.

    Arguments, result and errors as :func:`hf1`. Where leaves end above level L, an answer in another branch is above 0.

    "df" ends at level 1: it is three edges away from "mel", and the longest way of the tree would be 2L = 4:

    >>> from lib.taxonomy import from_nested
    >>> kin = from_nested("skin", {"melanocytic": ["mel", "nv"], "df": None})
    >>> h_acc(kin.codes(["mel"] * 3), kin.codes(["mel", "nv", "df"]), kin)
    array([1.  , 0.5 , 0.25])
    """
    true, predicted = _codes(true, predicted, taxonomy)
    depths = taxonomy.leaf_depths()
    edges = depths[true] + depths[predicted] - 2 * taxonomy.shared_depth(true, predicted)
    return 1 - edges / (2 * taxonomy.depth)


def of_predictions(true: ArrayLike, predicted: ArrayLike, taxonomy: Taxonomy) -> pd.DataFrame:
    """Every measure of one set of predictions, a row for each image; arguments and errors as :func:`hf1`.

    Columns: top1, hf1 (with the root), hf1_below_root, h_acc, shared_depth: of the lowest common ancestor.

    >>> from lib.taxonomy import from_nested
    >>> kin = from_nested("tumour", {"benign": ["adenosis"], "malignant": ["ductal", "lobular"]})
    >>> of_predictions(kin.codes(["ductal", "ductal"]), kin.codes(["lobular", "ductal"]), kin).mean().round(3).to_dict()
    {'top1': 0.5, 'hf1': 0.833, 'hf1_below_root': 0.75, 'h_acc': 0.75, 'shared_depth': 1.5}
    """
    true, predicted = _codes(true, predicted, taxonomy)
    return pd.DataFrame(
        {
            "top1": (true == predicted).astype(float),
            "hf1": hf1(true, predicted, taxonomy),
            "hf1_below_root": hf1(true, predicted, taxonomy, root=False),
            "h_acc": h_acc(true, predicted, taxonomy),
            "shared_depth": taxonomy.shared_depth(true, predicted),
        }
    )


def severity(true: ArrayLike, predicted: ArrayLike, taxonomy: Taxonomy) -> pd.DataFrame:
    """Of the wrong answers, at which depth they leave the way to the right class; arguments as :func:`hf1`.

    Returns:
        A row for each depth 0 to L − 1: depth (of the lowest common ancestor; 0 is another branch of the root),
        mistakes, share (of all mistakes) and within (the share that is right down to this depth or further). Shares are
        NaN where there are no mistakes.

    Two of three mistakes stay among the malignant tumours:

    >>> from lib.taxonomy import from_nested
    >>> kin = from_nested("tumour", {"benign": ["adenosis"], "malignant": ["ductal", "lobular"]})
    >>> answers = kin.codes(["ductal", "lobular", "lobular", "adenosis"])
    >>> severity(kin.codes(["ductal"] * 4), answers, kin).round(2).to_dict("list")
    {'depth': [0, 1], 'mistakes': [1, 2], 'share': [0.33, 0.67], 'within': [1.0, 0.67]}
    """
    true, predicted = _codes(true, predicted, taxonomy)
    wrong = true != predicted
    counts = np.bincount(taxonomy.shared_depth(true, predicted)[wrong], minlength=taxonomy.depth)
    within = counts[::-1].cumsum()[::-1]
    n = wrong.sum() or np.nan
    return pd.DataFrame(
        {"depth": np.arange(taxonomy.depth), "mistakes": counts, "share": counts / n, "within": within / n}
    )


def prototypes(z: Points, node_codes: ArrayLike, n_nodes: int, geometry: Geometry) -> Tensor:
    """The mean of each group's training embeddings, as section 4.4 recomputes it for every method.

    The average in flat space, the direction of the sum on the sphere, and in the ball the converged Fréchet mean. The
    paper takes three steps of eq. 3 with beta = 1: they end beside the mean of points that lie close together, but of
    points further than about 2/√c from it they lead away (d coth d, how curved a squared distance is, is 2 at 1.92).

    Args:
        z: (n, d) points of ``geometry``.
        node_codes: (n,) the group of each image, 0 to n_nodes − 1:
            ``taxonomy.ancestor_codes(level)[taxonomy.codes(labels)]``.
        n_nodes: how many groups there are.

    Returns:
        (n_nodes, d) in the dtype of ``z``.

    Raises:
        InputError: for a group without an image or, on the sphere, without a direction, NaN, and codes that do not fit.

    >>> from lib.geometry import Euclidean
    >>> prototypes([[0.0, 0.0], [2.0, 0.0], [5.0, 1.0]], [0, 0, 1], 2, Euclidean()).tolist()
    [[1.0, 0.0], [5.0, 1.0]]
    """
    z, groups = as_tensor(z), np.asarray(node_codes)
    if z.ndim != 2 or groups.shape != z.shape[:1]:
        raise InputError(f"embeddings of shape {tuple(z.shape)} need one group each, but {groups.shape} are given")
    checks.values(geometry=geometry)
    checks.codes("groups", groups, n_nodes, f"there are {n_nodes}")
    if (broken := ~z.isfinite().all(-1)).any():
        raise InputError(f"the embedding of image {int(broken.nonzero()[0])} holds NaN or infinity")
    if (empty := np.setdiff1d(np.arange(n_nodes), groups)).size:
        raise InputError(
            f"group {empty[0]} has no training image ({len(empty)} of {n_nodes} groups have none), so it has no "
            "prototype; cut the tree above it or leave its classes out"
        )
    rows = (torch.from_numpy(np.flatnonzero(groups == node)) for node in range(n_nodes))
    means = torch.stack([_mean(z[chosen], geometry) for chosen in rows])
    if isinstance(geometry, Sphere) and (lost := ~means.any(-1)).any():
        raise InputError(f"the images of group {int(lost.nonzero()[0])} cancel on the sphere: they have no mean there")
    return means


def parent_order(distance: Points, own: ArrayLike) -> ParentOrder:
    """Is an image's own group the nearest of its level?  (PC-Order and parent-distance violations.)

    Args:
        distance: (n, n_nodes) of each image to the :func:`prototypes` of one level.
        own: (n,) its own group, ``taxonomy.ancestor_codes(level)[codes]``; a leaf that ends above the level is a
            group of its own there.

    Raises:
        InputError: for no images, a level with one group only, NaN, and groups that do not fit.

    The third image is as near to the other group as to its own:

    >>> found = parent_order([[1.0, 2.0], [3.0, 2.0], [2.0, 2.0]], [0, 0, 0])
    >>> found.order.tolist(), found.violation.tolist(), found.tied.tolist()
    ([1.0, 0.0, 0.5], [0.0, 1.0, 1.0], [False, False, True])
    """
    distance, own = as_tensor(distance, "distances").detach().cpu().numpy(), np.asarray(own)
    if distance.ndim != 2 or own.shape != distance.shape[:1]:
        raise InputError(
            f"distances of shape {distance.shape} need one group for each image, but {own.shape} are given"
        )
    if distance.shape[1] < 2:
        raise InputError("this level has one group only, so no group is the wrong one; take a deeper level")
    checks.codes("groups", own, distance.shape[1], f"there are {distance.shape[1]}")
    if np.isnan(distance).any():
        raise InputError(f"the distances of image {np.isnan(distance).any(axis=1).argmax()} hold NaN")
    mine = np.take_along_axis(distance, own[:, None], axis=1)
    others = np.arange(distance.shape[1]) != own[:, None]
    nearest = np.where(others, distance, np.inf).min(axis=1)
    first = mine[:, 0] <= nearest
    return ParentOrder(
        order=first / (distance == mine).sum(axis=1),
        violation=(mine[:, 0] >= nearest).astype(float),
        tied=mine[:, 0] == nearest,
    )


def _mean(z: Tensor, geometry: Geometry) -> Tensor:
    return frechet_mean(z, float(geometry.c)) if isinstance(geometry, PoincareBall) else geometry.mean(z)


def _codes(true: ArrayLike, predicted: ArrayLike, taxonomy: Taxonomy) -> tuple[np.ndarray, np.ndarray]:
    true, predicted = np.asarray(true), np.asarray(predicted)
    if true.ndim != 1 or true.shape != predicted.shape:
        raise InputError(f"right classes {true.shape} and answers {predicted.shape}: expected two lists of one length")
    for what, codes in (("right classes", true), ("answers", predicted)):
        checks.codes(what, codes, len(taxonomy.leaves), f"{taxonomy.name} has {len(taxonomy.leaves)} leaves")
    return true, predicted
