"""Retrieval metrics under explicit names; equal distances count with their expected value.

With ``rel(i)`` = 1 where the item at rank i is relevant, ``H(i)`` hits among the first i and R relevant items::

    AP@k        = sum over i <= k of rel(i) H(i) / i, divided by
                  "min"   min(k, R): 1 for the best possible ranking (our default)
                  "hits"  H(k): torchmetrics, OML, deep hashing; one hit at rank 1 and no other gives 1
                  "k"     k: below 1 where R < k
    precision@k = H(k) / k
    hit rate@k  = 1 if H(k) > 0: the "Recall@K" of metric learning

Items at equal distance are a set in random order, and every value is the exact mean over these orders (McSherry and
Najork, "Computing information retrieval performance measures efficiently in the presence of tied scores", ECIR
2008). The denominator H(k) is itself random where a set of ties goes beyond rank k: "hits" is then the mean over the
hypergeometric number of hits. Sorting instead would let the order of the files decide (a few integer Hamming
distances spread the same AP from 0.08 to 0.28), and torchmetrics drops every score <= 0, so -distance gives it AP 0.

A list shorter than k (a small gallery) is allowed: it counts as if filled with irrelevant items.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry, by_name
from lib.geometry.points import Points, as_tensor
from lib.metrics.classes import over_classes
from lib.metrics.keys import DISTANCES, common_codes, counts, rank_keys
from lib.metrics.shortlist import shortlists

Denominator = Literal["min", "hits", "k"]


@dataclass(frozen=True)
class PerQuery:
    """Metrics of each query, as fractions of 1.

    ``values``: one row per query, columns (metric, k) with metric in ap_min, ap_hits, ap_k, precision, hit_rate; a
    query without any relevant gallery item is NaN throughout. ``classes``: (q,) its class. ``n_relevant``,
    ``n_gallery``: (q,) relevant items of its gallery, and all items.
    """

    values: pd.DataFrame
    classes: np.ndarray
    n_relevant: np.ndarray
    n_gallery: np.ndarray

    @property
    def chance(self) -> pd.DataFrame:
        """What a gallery in random order gives on average, laid out as ``values``.

        One of four images is of the query's class:

        >>> columns = pd.MultiIndex.from_product([["ap_min", "hit_rate"], [1, 2]], names=["metric", "k"])
        >>> blank = pd.DataFrame([[0.0] * 4], columns=columns)
        >>> PerQuery(blank, np.array(["a"]), np.array([1]), np.array([4])).chance.round(3).values.tolist()
        [[0.25, 0.375, 0.25, 0.5]]
        """
        metrics, ks = (list(dict.fromkeys(self.values.columns.get_level_values(name))) for name in ("metric", "k"))
        # Queries with the same counts have the same chance: computed once for all of them.
        width = self.n_gallery.max(initial=0) + 1
        pairs, query = np.unique(self.n_relevant * width + self.n_gallery, return_inverse=True)
        cut = _in_random_order(*map(torch.from_numpy, divmod(pairs, width)), ks)
        values = torch.cat([_METRICS[metric](cut) for metric in metrics], dim=1)[query]
        return pd.DataFrame(values.numpy(), columns=pd.MultiIndex.from_product([metrics, ks], names=["metric", "k"]))

    def mean(self) -> pd.DataFrame:
        """Means over the queries that have a relevant item.

        Returns:
            Columns metric, k, value, class_mean (:func:`lib.metrics.classes.over_classes`), chance and class_chance
            (the same two of a gallery in random order), n_queries (all of them), n_without_relevant (those that the
            means leave out). Class means of several folds are those of :func:`together`, not their average.
        """
        chance = self.chance
        parts = {
            "value": self.values.mean(),
            "class_mean": over_classes(self.values, self.classes),
            "chance": chance.mean(),
            "class_chance": over_classes(chance, self.classes),
        }
        counts = {"n_queries": len(self.values), "n_without_relevant": int((self.n_relevant == 0).sum())}
        return pd.DataFrame(parts).reset_index().assign(**counts)


def together(parts: Sequence[PerQuery]) -> PerQuery:
    """The queries of several folds as one table, fold after fold."""
    values = pd.concat([part.values for part in parts], ignore_index=True)
    names = ("classes", "n_relevant", "n_gallery")
    return PerQuery(values, *(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@torch.no_grad()
def evaluate(
    query: Points,
    gallery: Points,
    query_labels: ArrayLike,
    gallery_labels: ArrayLike,
    geometry: str | Geometry,
    ks: Sequence[int] = (1, 5, 10, 20),
    query_ids: ArrayLike | None = None,
    gallery_ids: ArrayLike | None = None,
    block: int | None = None,
) -> PerQuery:
    """Every metric of this module for each query; an item is relevant if it has the query's label.

    ``query``: (q, d), ``gallery``: (m, d) in ``geometry`` (or its name); labels and ids one per row. A gallery item
    with the query's id is left out of that query's gallery: image ids leave out the image itself, patient ids all
    images of the patient. Without ids nothing is left out. At most ``block`` x m distances exist at a time; None takes
    as many queries as make 2²⁵ of them, so that a gallery of a million points stays below two GB. Raises InputError
    for an empty or mismatched input, a missing label or id, k < 1, a point on the rim of the ball or beyond it, and a
    distance that is not finite.

    Leave one out: each "a" finds the "b" before the other "a", and the "b" has no other "b":

    >>> from lib.geometry import Euclidean
    >>> points, labels, ids = torch.tensor([[0.0], [1.0], [3.0]]), ["a", "b", "a"], [0, 1, 2]
    >>> result = evaluate(points, points, labels, labels, Euclidean(), (2,), ids, ids)
    >>> result.values["ap_min", 2].tolist()
    [0.5, nan, 0.5]
    >>> print(result.mean().tail(2).drop(columns=["class_mean", "chance", "class_chance"]).to_string(index=False))
       metric  k  value  n_queries  n_without_relevant
    precision  2    0.5          3                   1
     hit_rate  2    1.0          3                   1
    """
    checks.values(ks=ks)
    ks = list(dict.fromkeys(ks))
    query, gallery, geometry = as_tensor(query, "query"), as_tensor(gallery, "gallery"), by_name(geometry)
    key = rank_keys(query, gallery, geometry, query_ids, gallery_ids)
    ids = None if query_ids is None else common_codes(query_ids, gallery_ids, query, gallery, "id")
    classes = common_codes(query_labels, gallery_labels, query, gallery, "label")
    n_relevant, n_gallery = counts(classes, ids)
    if block is None:
        block = max(1, DISTANCES // len(gallery))
    checks.whole("block", block)
    short = shortlists(query, gallery, geometry, ids, min(max(ks), len(gallery)))

    def cut(rows: slice | Tensor, keys: Tensor, relevant: Tensor) -> _Cut:
        all_relevant = n_relevant[rows, None].cpu().double().expand(-1, len(ks))
        return _cut(keys, relevant, ks)._replace(n_relevant=all_relevant)

    def thorough(rows: slice | Tensor) -> _Cut:
        return cut(rows, key(rows, slice(None)), classes[0][rows, None] == classes[1])

    def quick(rows: slice) -> _Cut:
        keys, columns, certain = short(rows)
        found = cut(rows, keys, classes[0][rows, None] == classes[1][columns])
        if certain.all():
            return found
        rest = (~certain).nonzero()[:, 0]
        exact = thorough(rest + rows.start)
        return _Cut(*(part.index_copy(0, rest, values) for part, values in zip(found, exact, strict=True)))

    values = []
    for start in range(0, len(query), block):
        found = (quick if short else thorough)(slice(start, start + block))
        values.append(torch.cat([metric(found) for metric in _METRICS.values()], dim=1))
    columns = pd.MultiIndex.from_product([list(_METRICS), ks], names=["metric", "k"])
    frame = pd.DataFrame(torch.cat(values).numpy(), columns=columns)
    return PerQuery(frame, np.asarray(query_labels), n_relevant.cpu().numpy(), n_gallery.cpu().numpy())


def average_precision_at_k(
    distance: Points, relevant: Points, ks: Sequence[int], denominator: Denominator = "min"
) -> Tensor:
    """AP@k = sum over i <= k of rel(i) H(i) / i, over min(k, R), the hits H(k) (0 if there is none) or k.

    ``distance``: (q, m), inf for an item that is not in this query's gallery; ``relevant``: (q, m) bool.
    Returns (q, len(ks)) float64, NaN for a query without any relevant item. Raises InputError for NaN and k < 1.

    Ranks 1 and 3 of the first 5 are relevant, R = 4, so the sum is 1/1 + 2/3; the denominators are 4, 2 and 5:

    >>> distance = torch.tensor([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]])
    >>> relevant = torch.tensor([[True, False, True, False, False, True, True]])
    >>> [round(average_precision_at_k(distance, relevant, [5], z).item(), 4) for z in ("min", "hits", "k")]
    [0.4167, 0.8333, 0.3333]

    A relevant and an irrelevant item at the same distance: AP is 1 in one order and 1/2 in the other:

    >>> average_precision_at_k(torch.tensor([[2, 2]]), torch.tensor([[True, False]]), [2]).item()
    0.75
    """
    if denominator not in ("min", "hits", "k"):
        raise InputError(f"denominator {denominator!r} is not known; use 'min', 'hits' or 'k'")
    return _average_precision(_cut(distance, relevant, ks), denominator)


class _Cut(NamedTuple):
    """What a metric at k needs, each (q, len(ks)) float64: the set of ties at rank k and what comes before it."""

    k: Tensor
    n_relevant: Tensor
    rank: Tensor  # k, or the gallery's size where that is smaller
    start: Tensor  # items before the set
    size: Tensor  # items in the set, beyond rank k too
    hits: Tensor  # relevant items in the set
    hits_before: Tensor
    gain: Tensor  # mean of the sum of rel(i) H(i) / i up to rank k
    gain_before: Tensor  # and up to the start of the set

    @property
    def room(self) -> Tensor:
        """How many items of the set fit in the first k."""
        return self.rank - self.start

    @property
    def open(self) -> Tensor:
        """Whether the set goes on beyond rank k, so that chance decides how many of its hits the first k hold."""
        return self.room < self.size

    @property
    def mean_hits(self) -> Tensor:
        return self.hits_before + self.room * self.hits / self.size


def _cut(distance: Points, relevant: Points, ks: Sequence[int]) -> _Cut:
    """Rank each row once, as deep as the largest k, and describe the cut at every k."""
    distance, relevant = as_tensor(distance, "distances"), as_tensor(relevant, "relevance")
    _check(distance, relevant, ks)
    relevant = relevant & (distance != torch.inf)
    width = distance.shape[1]
    depth = min(max(ks), width)
    nearest, index = distance.topk(min(depth + 1, width), dim=1, largest=False)
    hit = relevant.gather(1, index[:, :depth]).cpu().double()
    differs = nearest[:, 1:depth] != nearest[:, : depth - 1]
    ties = torch.nn.functional.pad(differs, (1, 0)).cumsum(dim=1).cpu()
    sizes = torch.zeros_like(hit).scatter_add_(1, ties, torch.ones_like(hit))
    hits = torch.zeros_like(hit).scatter_add_(1, ties, hit)
    if depth < width:
        # Where the last set goes on beyond the depth, its other members are counted in the whole row.
        cut = (nearest[:, depth] == nearest[:, depth - 1]).nonzero().squeeze(1)
        members = distance[cut] == nearest[cut, depth - 1, None]
        last = (cut.cpu(), ties[cut.cpu(), -1])
        sizes[last] = members.sum(dim=1).cpu().double()
        hits[last] = (members & relevant[cut]).sum(dim=1).cpu().double()

    rank = torch.arange(1, depth + 1).double().expand_as(hit)
    start, size = (sizes.cumsum(dim=1) - sizes).gather(1, ties), sizes.gather(1, ties)
    hits_before, hits = (hits.cumsum(dim=1) - hits).gather(1, ties), hits.gather(1, ties)
    # Given that this item is relevant, each of the rank - start - 1 items of its set that come before it is relevant
    # with probability (hits - 1) / (size - 1); the clamp is for sets of one, where no item comes before.
    others = (rank - start - 1) * (hits - 1) / (size - 1).clamp(min=1)
    gain = torch.nn.functional.pad((hits / size * (hits_before + 1 + others) / rank).cumsum(dim=1), (1, 0))
    gain_before = gain.gather(1, start.long())

    at = torch.tensor([min(k, depth) - 1 for k in ks])
    k = torch.tensor(ks).double().expand(len(hit), -1)
    n_relevant = relevant.sum(dim=1, keepdim=True).cpu().double().expand_as(k)
    per_rank = (rank, start, size, hits, hits_before, gain[:, 1:], gain_before)
    return _Cut(k, n_relevant, *(values[:, at] for values in per_rank))


def _in_random_order(n_relevant: Tensor, n_gallery: Tensor, ks: Sequence[int]) -> _Cut:
    """The cuts of galleries in which all ``n_gallery`` items, ``n_relevant`` of them relevant, are at one distance."""
    hits, size = (counts.double()[:, None].expand(-1, len(ks)) for counts in (n_relevant, n_gallery))
    k = torch.tensor(ks).double().expand_as(hits)
    # No list is longer than its gallery, however large k is.
    i = torch.arange(1, min(max(ks), int(n_gallery.max())) + 1).double()
    share = hits[:, :1] / size[:, :1].clamp(min=1)  # an empty gallery has no hits either
    others = (i - 1) * (hits[:, :1] - 1) / (size[:, :1] - 1).clamp(min=1)  # of one item none comes before
    gain = torch.nn.functional.pad((share * (1 + others) / i).cumsum(dim=1), (1, 0))
    rank, none = torch.minimum(k, size), torch.zeros_like(k)
    return _Cut(k, hits, rank, none, size, hits, none, gain.gather(1, rank.long()), none)


def _check(distance: Tensor, relevant: Tensor, ks: Sequence[int]) -> None:
    if distance.ndim != 2 or distance.shape != relevant.shape or relevant.dtype != torch.bool:
        raise InputError(
            f"distance {tuple(distance.shape)} and relevant {tuple(relevant.shape)} {relevant.dtype}: "
            "expected the same shape (q, m) and a bool relevant"
        )
    if distance.numel() == 0:
        raise InputError(f"there are no distances (shape {tuple(distance.shape)})")
    checks.values(ks=ks)
    if distance.amax().isnan():  # NaN wins every maximum
        row = distance.isnan().any(dim=1).nonzero()[0].item()
        raise InputError(f"the distances of query row {row} hold NaN")


def _average_precision(cut: _Cut, denominator: Denominator) -> Tensor:
    divisor = {"min": torch.minimum(cut.k, cut.n_relevant), "hits": cut.mean_hits, "k": cut.k}[denominator]
    # Without a hit the gain is 0, and AP is 0 rather than 0/0.
    value = cut.gain / divisor.clamp(min=1)
    if denominator == "hits":
        value = value.masked_scatter(cut.open, _mean_over_hits(cut))
    return _defined(value, cut)


def _mean_over_hits(cut: _Cut) -> Tensor:
    """Mean AP over H(k) at the open cuts, (n open,): over h, the hits that the set has in the first k."""
    h, chance = _hypergeometric(cut)
    rank, start, room, hits_before, gain_before = (
        part[cut.open].unsqueeze(1) for part in (cut.rank, cut.start, cut.room, cut.hits_before, cut.gain_before)
    )
    # Given h, its places among the room ranks of the set are random: sums over these ranks of 1/i and (i-start-1)/i.
    inverse = torch.digamma(rank + 1) - torch.digamma(start + 1)
    ascent = room - (start + 1) * inverse
    # Both clamps stand before a factor 0: a single rank has ascent 0, and no hit at all has gain 0.
    gain = h / room * ((hits_before + 1) * inverse + (h - 1) / (room - 1).clamp(min=1) * ascent)
    return (chance * (gain_before + gain) / (hits_before + h).clamp(min=1)).sum(dim=1)


def _hypergeometric(cut: _Cut) -> tuple[Tensor, Tensor]:
    """For the open cuts: h = 0 ... as (H,) and P(h of the set's relevant items are in the first k) as (n open, H)."""
    room, size, hits = (part[cut.open].unsqueeze(1) for part in (cut.room, cut.size, cut.hits))
    h = torch.arange(int(cut.room.max().item()) + 1).double()
    # log of C(hits, h) C(size - hits, room - h) up to a constant; lgamma is inf, the chance 0, at impossible h.
    counts = (h, hits - h, room - h, size - hits - room + h)
    return h, torch.softmax(-sum(torch.lgamma(count + 1) for count in counts), dim=1)


def _precision(cut: _Cut) -> Tensor:
    return _defined(cut.mean_hits / cut.k, cut)


def _hit_rate(cut: _Cut) -> Tensor:
    value = (cut.mean_hits > 0).double()
    miss = _hypergeometric(cut)[1][:, 0] * (cut.hits_before[cut.open] == 0)
    return _defined(value.masked_scatter(cut.open, 1 - miss), cut)


def _defined(value: Tensor, cut: _Cut) -> Tensor:
    return value.masked_fill(cut.n_relevant == 0, torch.nan)


_METRICS: dict[str, Callable[[_Cut], Tensor]] = {
    "ap_min": partial(_average_precision, denominator="min"),
    "ap_hits": partial(_average_precision, denominator="hits"),
    "ap_k": partial(_average_precision, denominator="k"),
    "precision": _precision,
    "hit_rate": _hit_rate,
}
