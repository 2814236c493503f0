"""What the first answer is worth under every ranking: how often it is right, and macro F1."""

from collections.abc import Sequence

import joblib
import numpy as np
import pandas as pd

from lib.metrics import retrieval
from lib.metrics.classes import over_classes
from lib.metrics.votes import macro_f1
from lib.papers.acir.hashing.first import commonest
from lib.papers.acir.radius import COMMONEST
from lib.papers.acir.ranking.experiment import HAMMING, LEVELS, POOLED, Coder, Scene, keys
from lib.processes import spread
from lib.results.markdown import markdown_table, percent

RANKINGS = (HAMMING, POOLED, LEVELS)


def chosen(key: np.ndarray, gallery_labels: np.ndarray, seed: int) -> np.ndarray:
    """The class of the first answer to each query, (q,): that of the smallest ``key: (q, m)``, of equal ones at random.

    >>> chosen(np.array([[2, 1, 3], [0, 4, 4]]), np.array(["a", "b", "c"]), seed=0).tolist()
    ['b', 'a']
    """
    order = np.random.default_rng(seed).permutation(key.shape[1])
    return gallery_labels[order[key[:, order].argmin(axis=1)]]


def measured(coder: Coder, pooled: np.ndarray, scene: Scene) -> pd.DataFrame:
    """A row per ranking of :data:`RANKINGS` that the coder has: method, bits, repeat, ranking, and in percent

    first (precision of the first answer, ties in expectation), first_class (each class counts alike) and macro_f1 (ties
    at random). Queries whose class the archive lacks are left out. pooled: (n, ·) as in :mod:`.experiment`.
    """
    of, labels = scene.labels[scene.gallery], scene.labels[scene.queries]
    asked, rows = np.isin(labels, of), []
    for name, key in keys(coder, pooled, scene).items():
        if name not in RANKINGS:
            continue
        right = retrieval.precision_at_k(key[asked], scene.relevant[asked], [1]).numpy()[:, 0]
        by_class = over_classes(pd.Series(right), labels[asked])
        f1 = macro_f1(labels[asked], chosen(key[asked], of, coder.repeat))
        values = {"first": right.mean(), "first_class": by_class, "macro_f1": f1}
        about = {"method": coder.method, "bits": coder.bits, "repeat": coder.repeat, "ranking": name}
        rows.append(about | {measure: 100 * value for measure, value in values.items()})
    return pd.DataFrame(rows)


def table(coders: Sequence[Coder], pooled: np.ndarray, scene: Scene, bits: int, *, workers: int = -1) -> pd.DataFrame:
    """:func:`measured` for every coder of that length, one after the other."""
    jobs = (joblib.delayed(measured)(one, pooled, scene) for one in coders if one.bits == bits)
    return pd.concat(spread(jobs, workers), ignore_index=True)


def layout(rows: pd.DataFrame, scene: Scene) -> str:
    """A row per method and ranking as Markdown, means ± over trainings; then chance and the commonest class."""
    lines = []
    for (method, ranking), part in rows.groupby(["method", "ranking"], sort=False):
        first = f"{_spread(part['first'])} ({percent(part['first_class'].mean())})"
        lines.append({"method": method, "ranking": ranking, "first answer": first, F1: _spread(part["macro_f1"])})
    labels, of = scene.labels[scene.queries], scene.labels[scene.gallery]
    shares = pd.Series(scene.relevant.mean(axis=1)[np.isin(labels, of)])
    by_class = over_classes(shares, labels[np.isin(labels, of)])
    lines.append({"method": "chance", "first answer": f"{percent(100 * shares.mean())} ({percent(100 * by_class)})"})
    lines.append({"method": COMMONEST, F1: percent(commonest(labels, of))})
    return markdown_table(pd.DataFrame(lines).fillna("–"))


F1 = "macro F1"


def _spread(values: pd.Series) -> str:
    return percent(values.mean()) + (f" ± {percent(values.std())}" if len(values) > 1 else "")
