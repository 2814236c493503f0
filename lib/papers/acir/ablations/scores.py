"""What a trained network's codes are worth: values per query, rows over trainings, paired tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch

from lib.geometry import Sphere
from lib.metrics import hashing, retrieval
from lib.metrics.classes import over_classes
from lib.metrics.retrieval import PerQuery
from lib.papers.acir.hashing.experiment import TOP
from lib.results import differences
from lib.training.splits import Split

KS = (1, TOP)
BLOCK = 256
"""Queries whose similarity to the whole archive is in memory at a time."""


@dataclass(frozen=True, eq=False)
class Scored:
    """One training of a row: its values per query, and its health.

    name: of the row. repeat: which training. history: the mean loss of every epoch, empty where nothing was trained.
    steps: of the optimiser. parameters: that were trained, for the code alone. size: bytes of an image in the archive.
    """

    name: str
    repeat: int
    per_query: PerQuery
    history: Sequence[float] = field(default_factory=list)
    steps: int = 0
    parameters: int = 0
    size: float = np.nan


Found = Mapping[str, Sequence[Scored]]
"""Row → one per training."""


def by_code(h: np.ndarray, labels: np.ndarray, split: Split) -> PerQuery:
    """The signs of ``h: (n, bits)``, ranked by Hamming distance in the closed gallery, ties in expectation."""
    return hashing.evaluate(h[split.test], h[split.train], labels[split.test], labels[split.train], KS)


def by_content(h: np.ndarray, levels: Sequence[np.ndarray], labels: np.ndarray, split: Split) -> PerQuery:
    """The same, and where distances are equal by the mean correlation of ``levels``, (n, ·) each (Section 3.5)."""
    codes = hashing.pack(h[split.test]), hashing.pack(h[split.train])
    gallery = [level[split.train] for level in levels]
    relevant = labels[split.test][:, None] == labels[split.train]
    values = []
    for start in range(0, len(split.test), BLOCK):
        rows = slice(start, start + BLOCK)
        near = hashing.content_similarity([level[split.test[rows]] for level in levels], gallery)
        key = hashing.content_key(hashing.hamming(codes[0][rows], codes[1]), near)
        both = [retrieval.average_precision_at_k(key, relevant[rows], KS, z) for z in ("min", "hits")]
        values.append(torch.cat(both, dim=1).numpy())
    columns = pd.MultiIndex.from_product([["ap_min", "ap_hits"], KS], names=["metric", "k"])
    frame = pd.DataFrame(np.concatenate(values), columns=columns)
    sizes = np.full(len(split.test), len(split.train))
    return PerQuery(frame, labels[split.test], relevant.sum(axis=1), sizes)


def by_cosine(x: np.ndarray, labels: np.ndarray, split: Split) -> PerQuery:
    """Numbers ``x: (n, d)`` as they are, ranked by cosine in the closed gallery."""
    z = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))
    return retrieval.evaluate(z[split.test], z[split.train], labels[split.test], labels[split.train], Sphere(), KS)


def rows(found: Found) -> pd.DataFrame:
    """A row per training: name, repeat, then

    mAP and maAP (hits, percent), mAP_min and maAP_min (min(k, R)), first and first_class (precision of the first
    answer, and its class mean), chance of each of these (chance_mAP and so on, of an archive in random order),
    n_queries, n_without_relevant, loss_first, loss_last (NaN without training), steps, parameters, size.
    """
    lines = []
    for name, several in found.items():
        for one in several:
            mean = one.per_query.mean().set_index(["metric", "k"])
            cells = {"name": name, "repeat": one.repeat} | _measures(one.per_query.values, one.per_query.classes)
            random = _measures(one.per_query.chance, one.per_query.classes)
            cells |= {f"chance_{measure}": value for measure, value in random.items()}
            cells |= {name: int(mean.iloc[0][name]) for name in ("n_queries", "n_without_relevant")}
            first, last = (one.history[0], one.history[-1]) if len(one.history) else (np.nan, np.nan)
            health = {"loss_first": first, "loss_last": last, "steps": one.steps, "parameters": one.parameters}
            lines.append(cells | health | {"size": one.size})
    return pd.DataFrame(lines)


MEASURES = {"mAP": ("ap_hits", TOP), "mAP_min": ("ap_min", TOP), "first": ("ap_min", 1)}
"""Means over queries → metric and k; each has a class mean."""
CLASS_MEANS = {"mAP": "maAP", "mAP_min": "maAP_min", "first": "first_class"}


def _measures(values: pd.DataFrame, classes: np.ndarray) -> dict[str, float]:
    """Every measure and its class mean, percent, of values per query."""
    found = {}
    for name, column in MEASURES.items():
        found[name] = 100 * values[column].mean()
        found[CLASS_MEANS[name]] = 100 * over_classes(values[column], classes)
    return found


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Of :func:`rows`, over trainings: a row per name with the mean of every column, n_seeds, and the standard

    deviations of both ways to divide: seeds_spread of mAP, seeds_spread_min of mAP_min (NaN for one training).
    """
    grouped = table.groupby("name", sort=False)
    numbers = [column for column in table.columns if column not in ("name", "repeat")]
    spreads = {f"seeds_spread{end}": grouped[f"mAP{end}"].std() for end in ("", "_min")}
    return grouped[numbers].mean().assign(**spreads, n_seeds=grouped["repeat"].nunique()).reset_index()


def tests(
    found: Found, pairs: Sequence[tuple[str, str]], groups: np.ndarray, seed: int = 0, *, by_class: bool = False
) -> pd.DataFrame:
    """Paired tests of mAP (min(k, R)) over groups and trainings, corrected together; ``pairs``: first against second.

    groups: (q,) of the queries. by_class: of maAP, where each class counts alike. Where one of two was made once, as
    what is not trained, it stands beside every training of the other.
    """
    lines = []
    for first, second in pairs:
        n = max(len(found[first]), len(found[second]))
        a, b = ([one.per_query for one in _times(found[name], n)] for name in (first, second))
        repeats = np.repeat(np.arange(n), len(groups))
        how = {"repeats": repeats, "by_class": by_class, "seed": seed}
        measured = differences.difference(a, b, np.tile(groups, n), TOP, **how)
        lines.append({"first": first, "second": second} | measured)
    return differences.together(lines)


def _times(several: Sequence[Scored], n: int) -> Sequence[Scored]:
    return list(several) * n if len(several) == 1 else several
