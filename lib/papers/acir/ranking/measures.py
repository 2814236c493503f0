"""What a ranking is worth, query by query: by Hamming distance, and with content where that is equal (Section 3.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import joblib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.figures.lines import lines
from lib.metrics import hashing, retrieval, ties
from lib.metrics.significance import paired_permutation
from lib.papers.acir import radius
from lib.papers.acir.heads import ACIR, TOP
from lib.processes import spread
from lib.progress import track
from lib.study import paired
from lib.study.columns import Column, Layout, steps
from lib.study.differences import together
from lib.training.splits import Split

OPPONENTS = ("CSQ", "DCH", "DPN")
HAMMING, BEST, WORST = "Hamming alone", "best order of ties", "worst order of ties"
POOLED, LEVELS = "pooled feature of the stem", "mean of all levels"
LEVEL = "level: "
"""Before the name of a level that ranks by itself."""

QUERIES = 1200
"""Of a larger set of queries so many are drawn."""

WITHIN = 10
"""Answers of the query's class among which we look for what is finer than the class."""

KEYS = ["method", "bits", "ranking"]


@dataclass(frozen=True, eq=False)
class Coder:
    """A trained method and what it makes of all n images.

    h: (n, bits) numbers before the sign. levels: name → (n, ·) features of the network, from shallow to deep; empty for
    a head, which has none of its own. history: mean loss of each epoch. steps: of the optimiser.
    """

    method: str
    bits: int
    repeat: int
    h: np.ndarray
    history: Sequence[float]
    steps: int
    levels: Mapping[str, np.ndarray] = field(default_factory=dict)

    def content(self, pooled: np.ndarray) -> dict[str, list[np.ndarray]]:
        """Ranking → the features that it compares; ``pooled``: (n, ·) of the frozen stem, which everybody has."""
        rankings = {POOLED: [pooled]}
        if self.levels:
            rankings |= {LEVELS: list(self.levels.values())}
            rankings |= {f"{LEVEL}{name}": [level] for name, level in self.levels.items()}
        return rankings


@dataclass(frozen=True, eq=False)
class Scene:
    """Queries and gallery (indices of images), and what is known of every image: (n,) each.

    finer: name → what is finer than the class, such as the subtype; only images of the query's class are looked at.
    own_out: the gallery holds the queries, and each is left out of its own.
    """

    queries: np.ndarray
    gallery: np.ndarray
    labels: np.ndarray
    finer: Mapping[str, np.ndarray] = field(default_factory=dict)
    own_out: bool = False

    @property
    def relevant(self) -> np.ndarray:
        """(q, m) bool: which images are of the query's class."""
        return self.labels[self.queries][:, None] == self.labels[self.gallery]

    @property
    def others(self) -> np.ndarray:
        """(q, m) bool: which images are not the query itself."""
        return self.queries[:, None] != self.gallery

    def finer_hits(self, name: str) -> np.ndarray:
        """(q, m) bool: which images share what is finer than the class."""
        return self.finer[name][self.queries][:, None] == self.finer[name][self.gallery]

    def chance(self, name: str) -> float:
        """The share of hits among all other images of the class, percent, mean over queries that have any."""
        among = self.relevant & self.others
        n = among.sum(axis=1)
        return 100 * float(((among & self.finer_hits(name)).sum(axis=1)[n > 0] / n[n > 0]).mean())

    def random_order(self) -> dict[str, float]:
        """ap_hits and ap_min of a gallery in random order, percent: all images at one distance, in expectation."""
        key, k = np.zeros(self.relevant.shape), [min(TOP, len(self.gallery))]
        values = {z: retrieval.average_precision_at_k(key, self.relevant, k, z) for z in ("hits", "min")}
        return {f"ap_{z}": 100 * value.nanmean().item() for z, value in values.items()}


def queries(split: Split, seed: int) -> np.ndarray:
    """All of ``split.test``, or :data:`QUERIES` of them drawn, in order."""
    if len(split.test) <= QUERIES:
        return split.test
    return np.sort(np.random.default_rng(seed).choice(split.test, QUERIES, replace=False))


def finer_of(images: ImageTable, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Columns of the table of images that say something finer than the class, such as the subtype: name → (n,).

    "none" is none. Raises InputError for a column that is not there.
    """
    names = [name for name in names if name != "none"]
    if lacking := [name for name in names if name not in images.rows]:
        raise InputError(f"{images.name}: the table has no column {', '.join(lacking)}; finer: [none] takes none")
    return {name: images.rows[name].to_numpy(dtype=str) for name in names}


def keys(coder: Coder, pooled: np.ndarray | None, scene: Scene) -> dict[str, np.ndarray]:
    """Every ranking as keys (q, m), the nearest smallest: by Hamming distance, and by each content where that is equal.

    ``pooled``: None for the Hamming distance only.
    """
    packed = hashing.pack(coder.h)
    distance = hashing.hamming(packed[scene.queries], packed[scene.gallery])
    rankings: dict[str, np.ndarray] = {HAMMING: distance}
    for name, features in ({} if pooled is None else coder.content(pooled)).items():
        sides = ([level[rows] for level in features] for rows in (scene.queries, scene.gallery))
        rankings[name] = hashing.content_key(distance, hashing.content_similarity(*sides))
    return rankings


def measured(
    coder: Coder, pooled: np.ndarray | None, scene: Scene, rankings: Sequence[str] | None = None
) -> pd.DataFrame:
    """What every query gets from every ranking, a row each, percent.

    Columns method, bits, repeat, ranking, query (index of the image), ap_hits, ap_min (AP@100), tied (pairs of the
    first 100 whose order is open), and a column for each of ``scene.finer``: the share of hits in the first
    :data:`WITHIN` answers of the query's class. rankings: some of them; if not given all, with the bounds of the ties.
    """
    by = keys(coder, pooled, scene)
    relevant, others = scene.relevant, scene.others
    if scene.own_out:
        relevant &= others
        by = {name: np.where(others, key, coder.bits + 1) for name, key in by.items()}
    if rankings is None:
        best, worst = ties.orders(by[HAMMING], relevant)
        by |= {BEST: best, WORST: worst}
    k = min(TOP, len(scene.gallery))
    frames = []
    for name in rankings or by:
        key, values = by[name], {}
        for z in ("hits", "min"):
            values[f"ap_{z}"] = 100 * retrieval.average_precision_at_k(key, relevant, [k], z).numpy()[:, 0]
        values["tied"] = 100 * ties.tied_pairs(key, k)
        for what in scene.finer:
            values[what] = 100 * ties.share_among(key, relevant & others, scene.finer_hits(what), WITHIN)
        about = {"method": coder.method, "bits": coder.bits, "repeat": coder.repeat, "ranking": name}
        frames.append(pd.DataFrame(about | {"query": scene.queries} | values))
    return pd.concat(frames, ignore_index=True)


def all_measured(coders: Sequence[Coder], pooled: np.ndarray, scene: Scene, *, workers: int = -1) -> pd.DataFrame:
    """:func:`measured` for every coder, one after the other."""
    jobs = (joblib.delayed(measured)(coder, pooled, scene) for coder in coders)
    frames = track(spread(jobs, workers), total=len(coders), what="rankings", unit="methods")
    return pd.concat(frames, ignore_index=True)


def beside(values: pd.DataFrame, own: pd.DataFrame, name: str) -> pd.DataFrame:
    """``values`` with the column ``name`` of the same queries, trainings and rankings in another gallery, ``own``."""
    same = [*KEYS, "repeat", "query"]
    return values.merge(own[[*same, name]], on=same, how="left", validate="one_to_one")


def summary(values: pd.DataFrame) -> pd.DataFrame:
    """Means of :func:`measured` over queries and trainings: :data:`KEYS`, measures, spread (± of mAP), n_seeds."""
    trainings = values.drop(columns="query").groupby([*KEYS, "repeat"], sort=False).mean()
    grouped = trainings.groupby(KEYS, sort=False)
    return grouped.mean().assign(spread=grouped["ap_min"].std(), n_seeds=grouped.size()).reset_index()


def radii(coders: Sequence[Coder], scene: Scene, several: Sequence[int]) -> pd.DataFrame:
    """Table 6: :func:`lib.papers.acir.radius.by_radius` of every coder; last the trivial answer."""
    sides = scene.queries, scene.gallery
    labels, frames = [scene.labels[side] for side in sides], []
    for coder in coders:
        rows = radius.by_radius(*(coder.h[side] for side in sides), *labels, several)
        frames.append(rows.assign(method=coder.method, repeat=coder.repeat))
    return pd.concat([*frames, radius.commonest(*labels, several)], ignore_index=True)


def pairs(lengths: Sequence[int], bits: int, finer: Sequence[str]) -> list[tuple]:
    """What is tested: (measure, bits, (method, ranking), (method, ranking))."""
    content = [(LEVELS, HAMMING), (POOLED, HAMMING), (LEVELS, POOLED)]
    own = [("ap_min", n, (ACIR, a), (ACIR, b)) for n in lengths for a, b in content]
    rivals = [("ap_min", bits, (ACIR, LEVELS), (name, how)) for name in OPPONENTS for how in (HAMMING, POOLED)]
    within = [(name, bits, (ACIR, a), (ACIR, b)) for name in finer for a, b in content]
    return own + rivals + within + [(name, bits, (ACIR, LEVELS), ("CSQ", POOLED)) for name in finer]


def tests(values: pd.DataFrame, wanted: Sequence[tuple], groups: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Paired tests over groups and trainings of all :func:`pairs`, corrected together; groups: (n,) of all images.

    Columns measure, bits, first, second, then those of :func:`lib.study.differences.together`.
    """
    of = values.set_index([*KEYS, "repeat", "query"]).sort_index()
    rows = []
    for measure, bits, *names in wanted:
        a, b = (of.loc[method, bits, ranking][measure] for method, ranking in names)
        repeats, query = (a.index.get_level_values(name).to_numpy() for name in ("repeat", "query"))
        test = paired_permutation(a.to_numpy(), b.loc[a.index].to_numpy(), groups[query], repeats, seed=seed)
        cells = {"measure": measure, "bits": bits} | dict(zip(("first", "second"), map(", ".join, names), strict=True))
        rows.append(cells | asdict(test))
    return together(rows)


def tests_layout(rows: pd.DataFrame) -> str:
    """The paired tests as Markdown. More of the same patient is more, and neither better nor worse."""
    names = {name: f"same {name}, first {WITHIN} of the class" for name in rows["measure"]} | {"ap_min": f"mAP@{TOP}"}
    named = rows.assign(measure=rows["measure"].map(names))
    return paired.tests_layout(named, {"measure": "value", "bits": "bits"} | paired.METHODS)


def figure_ties(rows: pd.DataFrame) -> Figure:
    """mAP over the length of the code by what decides ties; rows: of :func:`summary`."""
    shown = rows[~rows["ranking"].str.startswith(LEVEL)].assign(spread=np.nan)
    names = {"method": "panel", "ranking": "line", "ap_min": "y"}
    shown = shown.assign(x=shown["bits"].map("{:g}".format)).rename(columns=names)
    return lines(shown, xlabel="bits", ylabel=f"mAP@{TOP}, min(k, R) (%)")


def _at(title: str, ranking: str, value: str = "ap_min", form: str = "2") -> Column:
    return Column(title, value, form, at=("ranking", ranking))


TIES = Layout(
    (
        Column("method"),
        Column("bits", form="0"),
        _at(f"tied pairs in the first {TOP}", HAMMING, "tied", "1 %"),
        _at("mAP, worst order", WORST),
        _at("in expectation", HAMMING),
        _at("best order", BEST),
        _at("by the pooled feature", POOLED),
        _at("by ACIR's levels", LEVELS),
        _at("± over trainings", HAMMING, "spread"),
    ),
    by=("method", "bits"),
)
HEALTH = Layout(
    (
        Column("method"),
        Column("bits", form="0"),
        Column("loss of the first epoch", "loss_first", "3"),
        Column("of the last", "loss_last", "3"),
        Column("steps", form=steps),
    ),
    by=("method", "bits"),
)


def table_within(rows: pd.DataFrame) -> str:
    """:func:`summary` of one length: what the first of the class share beyond it, a row per ranking."""
    known = (*KEYS, "ap_hits", "ap_min", "tied", "spread", "n_seeds")
    finer = [Column(f"same {name}", name) for name in rows.columns if name not in known]
    layout = Layout((Column("method"), Column("ranking"), *finer), by=("method", "ranking"))
    return layout(rows[~rows["ranking"].isin([BEST, WORST])])


LAYOUTS = {
    "table_6": radius.table_6,
    "table_health": HEALTH,
    "table_ties": TIES,
    "table_within": table_within,
}
