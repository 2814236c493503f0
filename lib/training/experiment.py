"""One experiment for every paper: fit methods (features → reduction → head → distance) on splits, let queries ask."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import joblib
import numpy as np
import pandas as pd
from torch import nn

from lib import checks
from lib.errors import InputError
from lib.heads import Reduction
from lib.metrics import retrieval
from lib.metrics import votes as majority
from lib.processes import spread
from lib.progress import track
from lib.training import kept, reductions, sweep
from lib.training.methods import Answer, Fitted, Head, Lessons, Method, measured
from lib.training.recipes import Recipe
from lib.training.splits import Split, check


def fit(
    features: np.ndarray,
    labels: np.ndarray,
    methods: Sequence[Method],
    splits: Sequence[Split],
    *,
    workers: int = -1,
    what: str = "heads",
) -> dict[str, list[Fitted]]:
    """Fit every method on the training part of every split: scaler and reduction, then all heads at once.

    On a CPU the heads of a method are a stack of their own for each repeat, so that a method's result does not depend
    on the others, nor on how many repeats there are; on a GPU it does not but for rounding. What was trained before,
    here or in another notebook, comes from ``build/trained``. Scaler and reduction are those of a fold, fitted once for
    all of its repeats.

    Args:
        features: (n, dim), or (V, n, dim) of V views of each image, the first of which is the image itself.
        labels: (n,) integer classes.
        methods: of different names; those that differ only in their search are trained once. Methods of one split see
            the images in one order.
        splits: on which they are fitted.
        workers, what: as in :func:`lib.training.sweep.fit`. The result does not depend on ``workers``.

    Returns:
        Name → one per split.

    Raises:
        InputError: for two methods of one name, and what the reduction or the head refuses.
    """
    names = [method.name for method in methods]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"methods need different names; twice: {', '.join(twice)}")
    views = features if features.ndim == 3 else features[None]
    wanted = {(s, m.training): m for s in range(len(splits)) for m in methods}
    first = _first(splits)
    keys = {key: _input(first[key[0]], m, len(views)) for key, m in wanted.items()}
    inputs = {keys[key]: m for key, m in wanted.items()}
    jobs = (
        joblib.delayed(_reduce)(views[: key[-1]], labels, splits[key[0]], m.recipe, m.head, kept.folder("trained"))
        for key, m in inputs.items()
    )
    done = track(spread(jobs, workers), total=len(inputs), what=f"{what}, inputs", unit="inputs")
    reduced = dict(zip(inputs, done, strict=True))

    networks = {key: m.head.make(m.recipe, splits[key[0]].seed) for key, m in wanted.items() if m.recipe.dim_out}
    lessons = {}
    for key in networks:
        split, m = splits[key[0]], wanted[key]
        rows = reduced[keys[key]][1]
        m.head.start(networks[key], rows[0])
        lessons[key] = m.head.lessons(rows, labels[split.labelled], m.schedule, f"fold {split.fold}")
    history = _train(networks, lessons, wanted, splits, workers, what)
    fitted: dict[str, list[Fitted]] = {m.name: [] for m in methods}
    for s, split in enumerate(splits):
        for m in methods:
            key = s, m.training
            network, losses, (reduction, rows) = networks.get(key), history.get(key, []), reduced[keys[key]]
            health = measured(m.head, network, rows[0], lessons.get(key), losses)
            fitted[m.name].append(Fitted(m, split, reduction, network, losses, health))
    return fitted


def _first(splits: Sequence[Split]) -> list[int]:
    """For every split the first one that is learnt from in the same way but for the seed."""
    first: dict[tuple, int] = {}
    same = [(split.fold, split.train.tobytes(), split.labelled.tobytes()) for split in splits]
    return [first.setdefault(key, number) for number, key in enumerate(same)]


def _input(split: int, method: Method, n_views: int) -> tuple[Hashable, ...]:
    """What a reduction depends on; the number of views comes last."""
    recipe, head = method.recipe, method.head
    nca_images = head.nca_images if recipe.source == "NCA" else 0
    return split, recipe.source, recipe.dim_in, head.half, nca_images, n_views if method.augmented else 1


def _reduce(
    views: np.ndarray, labels: np.ndarray, split: Split, recipe: Recipe, head: Head, store: kept.Store
) -> tuple[Reduction, np.ndarray]:
    """A reduction fitted on the training part, and all views of its labelled images reduced."""
    train = views[0][split.train], labels[split.train]
    options = {"half": head.half, "nca_images": head.nca_images, "seed": split.seed}
    reduction = reductions.fit(*train, recipe.source, recipe.dim_in, store=store, **options)
    return reduction, np.stack([reduction(view[split.labelled]) for view in views])


def _train(
    networks: Mapping[tuple, nn.Module],
    lessons: Mapping[tuple, Lessons],
    wanted: Mapping[tuple, Method],
    splits: Sequence[Split],
    workers: int,
    what: str,
) -> dict[tuple, list[float]]:
    """Train all networks in place, those with one loss and schedule side by side; the loss of every epoch."""
    stacks = dict.fromkeys((key[1], splits[key[0]].repeat) for key in networks)
    numbers = {stack: number for number, stack in enumerate(stacks)}
    kinds: dict[tuple, list[tuple]] = {}
    for key, lesson in lessons.items():
        kinds.setdefault((lesson.loss, lesson.schedule, wanted[key].head.at_once), []).append(key)
    history = {}
    for (loss, schedule, at_once), keys in kinds.items():
        tasks = [
            sweep.Task(
                f"{wanted[key].name}, fold {splits[key[0]].fold}, seed {splits[key[0]].seed}",
                networks[key],
                lessons[key].x,
                lessons[key].labels,
                splits[key[0]].seed,
                numbers[key[1], splits[key[0]].repeat],
            )
            for key in keys
        ]
        done = sweep.fit(tasks, loss, schedule, store=kept.folder("trained"), workers=workers, chunk=at_once, what=what)
        history |= dict(zip(keys, done, strict=True))
    return history


def ask(
    fitted: Mapping[str, Sequence[Fitted]],
    x: np.ndarray,
    labels: np.ndarray,
    ks: Sequence[int],
    *,
    gallery: str = "closed",
    groups: np.ndarray | None = None,
    workers: int = -1,
    what: str = "queries",
) -> dict[str, list[Answer]]:
    """Let the queries of every split search its gallery.

    What was not trained answers alike in every repeat of a fold, and searches once for all of them.

    Args:
        fitted: name → one per split.
        x: (n, dim) features of the images. labels: (n,).
        ks: list lengths.
        gallery: one of :data:`GALLERIES`; in the open one no query meets an image of its own group.
        groups: (n,) of all images; needed for the open gallery. With them no image of a query's own group may be among
            the images that were learnt from.
        workers, what: as in :func:`lib.training.sweep.fit`.

    Raises:
        InputError: for an open gallery without groups; with groups, for a query that is in its own gallery, and for a
            k that is larger than the gallery.
    """
    checks.values(ks=ks)
    if gallery == "open" and groups is None:
        raise InputError(
            "the open gallery holds the queries themselves: give the groups, so that each is left out of its own"
        )
    different = {_searched(head, gallery): head for of_splits in fitted.values() for head in of_splits}
    reduced = {}

    def seen(head: Fitted, rows: np.ndarray) -> np.ndarray:
        key = id(head.reduction), rows.tobytes()  # many heads share a reduction
        if key not in reduced:
            reduced[key] = head.reduction(x[rows])
        return reduced[key]

    if groups is not None:
        for split in dict.fromkeys(head.split for head in different.values()):
            check(split, groups, split.train, k=1)  # what was learnt from, whichever gallery is searched
            check(split, groups, split.gallery(gallery), max(ks), own_left_out=gallery == "open")

    def job(head: Fitted) -> tuple:
        sides = head.split.test, head.split.gallery(gallery)
        own = groups if gallery == "open" else None
        return joblib.delayed(_search)(head, *(seen(head, rows) for rows in sides), labels, *sides, ks, own)

    found = track(spread(map(job, different.values()), workers), total=len(different), what=what, unit="searches")
    of = dict(zip(different, found, strict=True))
    return {
        name: [Answer(f.method, f.split, f.health, f.history, *of[_searched(f, gallery)]) for f in of_splits]
        for name, of_splits in fitted.items()
    }


def _searched(fitted: Fitted, gallery: str) -> tuple[Hashable, ...]:
    """What the result of a search depends on: the method, and what it became on these rows."""
    split = fitted.split
    rows = (split.train, split.test, split.gallery(gallery))
    return (fitted.method.name, id(fitted.reduction), id(fitted.network), *(part.tobytes() for part in rows))


def search(
    fitted: Fitted,
    x: np.ndarray,
    labels: np.ndarray,
    queries: np.ndarray,
    gallery: np.ndarray,
    ks: Sequence[int],
    ids: np.ndarray | None = None,
) -> tuple[np.ndarray, retrieval.PerQuery]:
    """Let the images ``queries`` search the images ``gallery`` (indices); the gallery's norms and the values.

    ``ids: (n,)`` of all images leaves out what shares the query's id, as in :func:`lib.metrics.retrieval.evaluate`.
    """
    reduced = fitted.reduction(x[queries]), fitted.reduction(x[gallery])
    return _search(fitted, *reduced, labels, queries, gallery, ks, ids)


def _search(
    fitted: Fitted,
    query: np.ndarray,
    searched: np.ndarray,
    labels: np.ndarray,
    queries: np.ndarray,
    gallery: np.ndarray,
    ks: Sequence[int],
    ids: np.ndarray | None,
) -> tuple[np.ndarray, retrieval.PerQuery]:
    """As :func:`search`, from the reduced features of both sides, (q, n) and (m, n)."""
    embedded = fitted.placed(searched)
    known = (None, None) if ids is None else (ids[queries], ids[gallery])
    per_query = retrieval.evaluate(
        fitted.placed(query), embedded, labels[queries], labels[gallery], fitted.space, tuple(ks), *known
    )
    return embedded.norm(dim=-1).numpy(), per_query


@dataclass(frozen=True, eq=False)
class Voted:
    """What the nearest images vote for: the queries of one split that have an answer, an image of their class.

    repeat: which training. classes: (q,) of these queries. votes: (q, 3) classes, columns as
    :data:`lib.metrics.votes.KS`. n_without_relevant: queries without an answer, which are left out.
    """

    repeat: int
    classes: np.ndarray
    votes: np.ndarray
    n_without_relevant: int


ARCHIVES = {"closed": "closed", "whole": "all"}
"""The archives that vote, without the query's own group: the images that were learnt from, or all images there are."""


def votes(
    fitted: Mapping[str, Sequence[Fitted]],
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    *,
    archives: Sequence[str] = tuple(ARCHIVES),
    workers: int = -1,
) -> dict[str, dict[str, list[Voted]]]:
    """Leave one patient out: what the nearest images of other groups vote for; archive → name → one per split.

    Each of ``archives``, of :data:`ARCHIVES`, is searched, without the query's group. In the whole one are also images
    that nobody learnt from, those of the query's own fold. Nothing was fitted on the query's group: InputError where
    the splits are not by group. Other arguments and errors as :func:`ask`.
    """
    heads = [head for of_splits in fitted.values() for head in of_splits]
    jobs = (joblib.delayed(_vote)(head, x, labels, groups, ARCHIVES[name]) for name in archives for head in heads)
    voted = track(spread(jobs, workers), total=len(archives) * len(heads), what="votes", unit="searches")
    return {
        archive: {name: list(islice(voted, len(of_splits))) for name, of_splits in fitted.items()}
        for archive in archives
    }


def _vote(head: Fitted, x: np.ndarray, labels: np.ndarray, groups: np.ndarray, gallery: str) -> Voted:
    split, rows = head.split, head.split.gallery(gallery)
    check(split, groups, split.train, k=1)
    queries = answerable(split.test, rows, labels, groups)
    classes = np.empty((0, len(majority.KS)), dtype=labels.dtype)
    if len(queries):
        points, space = (head.embed(x[queries]), head.embed(x[rows])), head.space
        ids = {"query_ids": groups[queries], "gallery_ids": groups[rows]}
        classes = majority.votes(*points, labels[rows], space, **ids)
    return Voted(split.repeat, labels[queries], classes, len(split.test) - len(queries))


def answerable(queries: np.ndarray, gallery: np.ndarray, labels: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Those of the images ``queries`` that have an image of their class and of another group in ``gallery`` (indices).

    labels, groups: (n,) of all images.

    >>> answerable(np.array([0, 1]), np.array([2, 3]), np.array(list("abab")), np.array(["p", "q", "r", "q"])).tolist()
    [0]
    """
    pairs = pd.DataFrame({"label": labels[gallery], "group": groups[gallery]}).drop_duplicates()
    n_groups = pairs["label"].value_counts().reindex(labels[queries], fill_value=0).to_numpy()
    own = pd.MultiIndex.from_arrays([labels[queries], groups[queries]]).isin(pd.MultiIndex.from_frame(pairs))
    return queries[n_groups > own]


def answers(
    features: np.ndarray,
    labels: np.ndarray,
    methods: Sequence[Method],
    splits: Sequence[Split],
    ks: Sequence[int],
    *,
    workers: int = -1,
    what: str = "heads",
) -> dict[str, list[Answer]]:
    """Fit, and ask the closed gallery: name → one answer per split. Arguments as :func:`fit` and :func:`ask`."""
    checks.values(ks=ks)
    fitted = fit(features, labels, methods, splits, workers=workers, what=what)
    x = features if features.ndim == 2 else features[0]
    return ask(fitted, x, labels, ks, workers=workers, what=f"{what}, queries")
