"""Rankings by Hamming distance, and by content where that is equal, query by query (Section 3.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import joblib
import numpy as np
import pandas as pd

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.metrics import hashing, retrieval, ties
from lib.metrics.significance import paired_permutation
from lib.papers.acir import published
from lib.papers.acir.heads import ACIR, TOP
from lib.papers.acir.training import RIVALS, Codes, Material, content_keys, trained
from lib.processes import spread
from lib.progress import track
from lib.study import paired
from lib.study.columns import Column, Layout, over_trainings, printed, steps
from lib.study.differences import together
from lib.study.markdown import markdown_table
from lib.study.rates import choose_middle
from lib.training.acir import Design
from lib.training.splits import Split

HAMMING, BEST, WORST = "Hamming alone", "best order of ties", "worst order of ties"
POOLED, LEVELS = "pooled feature of the stem", "mean of all levels"
LEVEL = "level: "
"""Before the name of a level that ranks by itself."""

QUERIES = 1200
"""Of a larger set of queries so many are drawn."""

WITHIN = 10
"""Answers of the query's class among which we look for what is finer than the class."""

KEYS = ["method", "bits", "ranking"]


def choose(
    material: Material,
    design: Design,
    candidates: Sequence[float],
    split: Split,
    groups: np.ndarray,
    n_seeds: int = 1,
) -> pd.DataFrame:
    """mAP (min(k, R), Hamming alone) of every method at each learning rate on validation images, mean of ``n_seeds``.

    groups: (n,) over which rates are paired. Columns method, lr, and those of :func:`lib.study.rates.choose_middle`.
    """
    search = Search(split.test, split.train, material.labels)
    values: dict[tuple[str, float], list[pd.Series]] = {}
    for lr in candidates:
        rates = dict.fromkeys((ACIR, *RIVALS), lr)
        for codes in trained(material, design, [design.bits], rates, split, n_seeds):
            ap = measured(codes, None, search, [HAMMING])["ap_min"]
            values.setdefault((codes.method, lr), []).append(ap)
    rows = pd.DataFrame(list(values), columns=["method", "lr"])
    return choose_middle(rows, list(values.values()), groups[split.test])


@dataclass(frozen=True, eq=False)
class Search:
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


def keys(codes: Codes, pooled: np.ndarray | None, search: Search) -> dict[str, np.ndarray]:
    """Every ranking as keys (q, m), the nearest smallest: by Hamming distance, and by each content where that is equal.

    ``pooled``: (n, ·) feature of the frozen stem, which every method has; None for the Hamming distance only.
    """
    packed, contents = hashing.pack(codes.h), {} if pooled is None else {POOLED: [pooled]}
    if pooled is not None and codes.levels:
        contents |= {LEVELS: list(codes.levels.values())}
        contents |= {f"{LEVEL}{name}": [level] for name, level in codes.levels.items()}
    by_content = {n: content_keys(packed, content, search.queries, search.gallery) for n, content in contents.items()}
    return {HAMMING: hashing.hamming(packed[search.queries], packed[search.gallery])} | by_content


def measured(
    codes: Codes, pooled: np.ndarray | None, search: Search, rankings: Sequence[str] | None = None
) -> pd.DataFrame:
    """What every query gets from every ranking, a row each, percent.

    Columns method, bits, repeat, ranking, query (index of the image), ap_hits, ap_min (AP@100), tied (pairs of the
    first 100 whose order is open), and a column for each of ``search.finer``: the share of hits in the first
    :data:`WITHIN` answers of the query's class. rankings: some of them; if not given all, with the bounds of the ties.
    """
    by = keys(codes, pooled, search)
    relevant, others = search.relevant, search.others
    if search.own_out:
        relevant &= others
        by = {name: np.where(others, key, codes.bits + 1) for name, key in by.items()}
    if rankings is None:
        best, worst = ties.orders(by[HAMMING], relevant)
        by |= {BEST: best, WORST: worst}
    k = min(TOP, len(search.gallery))
    frames = []
    for name in rankings or by:
        key, values = by[name], {}
        for z in ("hits", "min"):
            values[f"ap_{z}"] = 100 * retrieval.average_precision_at_k(key, relevant, [k], z).numpy()[:, 0]
        values["tied"] = 100 * ties.tied_pairs(key, k)
        for what in search.finer:
            values[what] = 100 * ties.share_among(key, relevant & others, search.finer_hits(what), WITHIN)
        about = {"method": codes.method, "bits": codes.bits, "repeat": codes.repeat, "ranking": name}
        frames.append(pd.DataFrame(about | {"query": search.queries} | values))
    return pd.concat(frames, ignore_index=True)


def all_measured(all_codes: Sequence[Codes], pooled: np.ndarray, search: Search, *, workers: int = -1) -> pd.DataFrame:
    """:func:`measured` for every training, one after the other."""
    jobs = (joblib.delayed(measured)(codes, pooled, search) for codes in all_codes)
    frames = track(spread(jobs, workers), total=len(all_codes), what="rankings", unit="methods")
    return pd.concat(frames, ignore_index=True)


def joined(values: pd.DataFrame, own: pd.DataFrame, name: str) -> pd.DataFrame:
    """``values`` with the column ``name`` of the same queries, trainings and rankings in another gallery, ``own``."""
    same = [*KEYS, "repeat", "query"]
    return values.merge(own[[*same, name]], on=same, how="left", validate="one_to_one")


def summary(values: pd.DataFrame) -> pd.DataFrame:
    """Means of :func:`measured` over queries and trainings: :data:`KEYS`, measures, spread (± of mAP), n_seeds."""
    trainings = values.drop(columns="query").groupby([*KEYS, "repeat"], sort=False).mean()
    grouped = trainings.groupby(KEYS, sort=False)
    return grouped.mean().assign(spread=grouped["ap_min"].std(), n_seeds=grouped.size()).reset_index()


COMMONEST = "always the commonest class"
"""The trivial answer of Table 6: the class of which the archive has most images, whatever the query and the ball."""


def radii(all_codes: Sequence[Codes], search: Search, balls: Sequence[int]) -> pd.DataFrame:
    """Table 6: :func:`lib.metrics.hashing.by_centre` in percent, with method and repeat; last the trivial answer.

    Queries of a class that the archive has no image of, and so no centre, are left out and counted (n_left_out). Of
    several commonest classes the first is the trivial answer.
    """
    labels = search.labels[search.gallery]
    classes, counts = np.unique(labels, return_counts=True)
    queries = search.queries[np.isin(search.labels[search.queries], classes)]
    commonest = np.tile(np.arange(len(classes)) != counts.argmax(), (len(queries), 1)).astype(int)
    answers = {}
    for codes in all_codes:
        _, centres = hashing.centres(codes.h[search.gallery], labels)
        answers[codes.method, codes.repeat] = hashing.hamming(hashing.pack(codes.h)[queries], centres)
    frames = []
    for (method, repeat), distance in (answers | {(COMMONEST, 0): commonest}).items():
        rows = hashing.by_centre(distance, search.labels[queries], classes, balls)
        rows[["accuracy", "precision", "recall"]] *= 100
        rows["n_left_out"] = len(search.queries) - len(queries)
        frames.append(rows.assign(method=method, repeat=repeat))
    return pd.concat(frames, ignore_index=True)


def table_6(rows: pd.DataFrame) -> str:
    """Table 6 as Markdown: a row per radius of ours, published columns first.

    A cell is ``accuracy (precision / recall)``; ours has ± of the accuracy over trainings. The trivial answer has a
    column, and does not count among those that leave queries in no ball.
    """
    ours = over_trainings(rows, ["method", "radius"])
    theirs = published.radii()
    theirs = theirs[theirs["radius"].isin(ours["radius"])].assign(whose="published")
    known = ours.assign(whose=ours["method"].map(lambda name: "" if name == COMMONEST else "ours"))
    wide: dict[str, dict[int, str]] = {}
    for row in pd.concat([theirs, known]).itertuples():
        numbers = (row.accuracy, row.accuracy_spread, row.precision, row.recall)
        accuracy, spread, precision, recall = (printed(number, "1") for number in numbers)
        name = f"{row.method}, {row.whose}".removesuffix(", ")
        cell = f"{accuracy}{f' ± {spread}' * (spread != '–')} ({precision} / {recall})"
        wide.setdefault(name, {})[row.radius] = cell
    rejected = ours[ours["method"] != COMMONEST].groupby("radius")["n_rejected"].agg(["min", "max"])
    wide["queries in no ball"] = {r: f"{low:.0f} to {high:.0f}" for r, (low, high) in rejected.iterrows()}
    return markdown_table(pd.DataFrame(wide).fillna("–").rename_axis("R").reset_index())


def pairs(lengths: Sequence[int], bits: int, finer: Sequence[str]) -> list[tuple]:
    """What is tested: (measure, bits, (method, ranking), (method, ranking))."""
    content = [(LEVELS, HAMMING), (POOLED, HAMMING), (LEVELS, POOLED)]
    own = [("ap_min", n, (ACIR, a), (ACIR, b)) for n in lengths for a, b in content]
    rivals = [("ap_min", bits, (ACIR, LEVELS), (name, how)) for name in RIVALS for how in (HAMMING, POOLED)]
    within = [(name, bits, (ACIR, a), (ACIR, b)) for name in finer for a, b in content]
    return own + rivals + within + [(name, bits, (ACIR, LEVELS), ("CSQ", POOLED)) for name in finer]


def tests(values: pd.DataFrame, wanted: Sequence[tuple], groups: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Paired tests over groups and trainings of all :func:`pairs`, corrected together; groups: (n,) of all images.

    Columns measure, bits, first, second, then those of :func:`lib.study.differences.together`.
    """
    by_query = values.set_index([*KEYS, "repeat", "query"]).sort_index()
    rows = []
    for measure, bits, *names in wanted:
        a, b = (by_query.loc[method, bits, ranking][measure] for method, ranking in names)
        repeats, query = (a.index.get_level_values(name).to_numpy() for name in ("repeat", "query"))
        test = paired_permutation(a.to_numpy(), b.loc[a.index].to_numpy(), groups[query], repeats, seed=seed)
        cells = {"measure": measure, "bits": bits} | dict(zip(("first", "second"), map(", ".join, names), strict=True))
        rows.append(cells | asdict(test))
    return together(rows)


def _value(name: str) -> str:
    """What is tested. More of the same patient is more, and neither better nor worse."""
    return f"mAP@{TOP}" if name == "ap_min" else f"same {name}, first {WITHIN} of the class"


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
    "table_6": table_6,
    "table_health": HEALTH,
    "table_ties": TIES,
    "table_within": table_within,
    "table_tests": paired.tests_layout(
        {"measure": "value", "bits": "bits"} | paired.METHODS, forms={"measure": _value}
    ),
}
