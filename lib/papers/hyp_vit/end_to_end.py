"""Encoder and head trained together, and the encoder as it was before (section 3.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.datasets.categories import Halves, held_out
from lib.datasets.content import content
from lib.datasets.table import ImageTable
from lib.geometry import Geometry, PoincareBall, Sphere
from lib.metrics import retrieval
from lib.papers.hyp_vit.heads import BEFORE, END
from lib.study.rates import best_rates, choose_middle
from lib.training import kept
from lib.training.hyp_vit import Settings, warmed
from lib.training.hyp_vit_end_to_end import EndToEnd, Task
from lib.training.methods import Answer, Health, Method, points_at_rim
from lib.training.recipes import Recipe
from lib.training.splits import Split, repeated


def rates(
    images: ImageTable,
    halves: Halves,
    kinds: Mapping[str, Settings],
    plan: EndToEnd,
    candidates: Sequence[float],
    *,
    temperatures: Sequence[float] = (),
    n_seeds: int = 1,
    seed: int = 0,
    store: kept.Store = "trained",
) -> pd.DataFrame:
    """Recall@1 of the head of every kind at each learning rate of the encoder, on categories set aside.

    It is the mean of ``n_seeds`` trainings, each at its best step, all with the same categories set aside. Columns
    method (the kind), lr, step (largest), loss (mean), and those of :func:`lib.study.rates.choose_middle`, paired
    over these categories. The first training of the chosen rate is the first one of :func:`end_to_end`, if it is as
    long.

    temperatures: τ to be tried of every kind, at the first rate; the rates are then tried at the one that is chosen.
    Column temperature, NaN without any.
    """
    splits = _splits(halves, seed, n_seeds)
    learnt, aside = held_out(halves, seed)
    task = Task(images, halves, plan, store, content(images))

    def tried(grid: Sequence[tuple[str, float, float]]) -> tuple[pd.DataFrame, list[Any]]:
        rows, values = [], []
        for name, temperature, lr in grid:
            kind = kinds[name] if np.isnan(temperature) else warmed(kinds[name], temperature)
            trainings = [task.at(lr).trained(name, kind, split, learnt, aside) for split in splits]
            values.append([100 * _right(known, halves, _as_learnt(kind, known), aside) for known in trainings])
            ends = {"step": max(known["best"] for known in trainings), "loss": np.mean([*map(_last_loss, trainings)])}
            rows.append({"method": name, "temperature": temperature, "lr": lr} | ends)
        return pd.DataFrame(rows), values

    own, first = dict.fromkeys(kinds, np.nan), None
    if temperatures:
        grid = [(name, temperature, candidates[0]) for name in kinds for temperature in temperatures]
        first = choose_middle(*tried(grid), halves.codes[aside], order=("temperature",))
        own = best_rates(first, value="temperature")
    then = choose_middle(*tried([(name, own[name], lr) for name in kinds for lr in candidates]), halves.codes[aside])
    if first is None:
        return then.drop(columns="temperature")
    both = pd.concat([first[~first["chosen"]], then]).sort_values(["temperature", "lr"])
    places = both["method"].map([*kinds].index)
    return both.iloc[places.argsort(kind="stable")].reset_index(drop=True)


def end_to_end(
    images: ImageTable,
    halves: Halves,
    kinds: Mapping[str, Settings],
    plan: EndToEnd,
    ks: Sequence[int],
    *,
    lr_of: Mapping[str, float] | None = None,
    n_seeds: int = 1,
    seed: int = 0,
    store: kept.Store = "trained",
) -> tuple[dict[str, list[Answer]], pd.DataFrame]:
    """Answers of the head and of the encoder of every kind and training, and the course of all trainings.

    Names are "Hyp, end to end, head" and "..., encoder", and ``BEFORE``. The step with the best Recall@1 of the head on
    categories set aside is kept (the paper names no rule). Steps count up to it. Columns of the course: method, repeat,
    step, loss, head, encoder (validation, percent), and as :class:`lib.training.finetune.Finetuned` has them those of
    unseen images and c. ``lr_of``: kind → learning rate of the encoder, else the plan's.
    """
    splits = _splits(halves, seed, n_seeds)
    task = Task(images, halves, plan, store, content(images))
    before = _answer(BEFORE, next(iter(kinds.values())), task.before(), Sphere(), halves, splits[0], ks)
    answers = {BEFORE: [replace(before, split=split) for split in splits]}
    courses = []
    for name, kind in kinds.items():
        at_rate = task.at((lr_of or {}).get(name, plan.settings.lr))
        for split in splits:
            known = at_rate.trained(name, kind, split, *held_out(halves, split.seed))
            courses.append(_course(known, f"{name}, end to end", split.repeat))
            for place, answer in _searched(halves, name, _as_learnt(kind, known), split, known, ks).items():
                answers.setdefault(place, []).append(answer)
    return answers, pd.concat(courses, ignore_index=True)


def _splits(halves: Halves, seed: int, n_seeds: int = 1) -> list[Split]:
    return list(repeated([Split(0, halves.learnt, halves.queries, seed, held_out=halves.gallery)], n_seeds))


def _right(known: Mapping[str, Any], halves: Halves, kind: Settings, rows: np.ndarray) -> np.ndarray:
    """(q,) which of the images ``rows``, which search each other by the head's embedding, find their category first."""
    points, codes = known["embeddings"][torch.from_numpy(rows)], halves.codes[rows]
    queries = retrieval.evaluate(points, points, codes, codes, kind.geometry, (1,), rows, rows)
    return queries.values["hit_rate", 1].to_numpy()


def _as_learnt(kind: Settings, known: Mapping[str, Any]) -> Settings:
    """``kind`` with the c that was learnt up to the step that was kept, if any was."""
    if not kind.learn_c:
        return kind
    c = dict(zip(known["scores"]["step"], known["scores"]["c"], strict=True))
    return replace(kind, geometry=PoincareBall(c[known["best"]]))


def _course(known: Mapping[str, Any], name: str, repeat: int) -> pd.DataFrame:
    losses = pd.DataFrame(known["history"])
    losses["step"] += 1  # taken so far, as the scores count them
    scores = pd.DataFrame(known["scores"])
    scores[[name for name in scores if name.endswith(("head", "encoder"))]] *= 100
    return losses.merge(scores, on="step", how="outer").assign(method=name, repeat=repeat)


def _searched(
    halves: Halves, name: str, kind: Settings, split: Split, known: Mapping[str, Any], ks: Sequence[int]
) -> dict[str, Answer]:
    """The held-out images searched by the head's embedding, and by the encoder's feature with D_cos."""
    spaces = {"head": (known["embeddings"], kind.geometry), "encoder": (known["features"], Sphere())}
    answers = {}
    for place, (points, space) in spaces.items():
        rim = points_at_rim(kind, points[split.train]) if place == "head" else np.nan
        answer = _answer(f"{name}{END}{place}", kind, points, space, halves, split, ks)
        answers[answer.method.name] = replace(
            answer, health=Health(_last_loss(known), rim, known["best"]), history=list(known["history"]["loss"])
        )
    return answers


def _last_loss(known: Mapping[str, Any]) -> float:
    """The mean loss of the ten steps before the one that was kept."""
    best, losses = known["best"], known["history"]["loss"]
    return float(np.mean(losses[max(0, best - 10) : best] or losses[:1]))


def _answer(
    name: str, kind: Settings, points: Tensor, space: Geometry, halves: Halves, split: Split, ks: Sequence[int]
) -> Answer:
    """The held-out images, ``points: (n, dim)`` of all, search each other in ``space``."""
    ids, codes, dim = np.arange(len(halves.codes)), halves.codes, points.shape[1]
    sides = [(points[rows], codes[rows], ids[rows]) for rows in (split.test, split.held_out)]
    (query, of_query, query_ids), (gallery, of_gallery, gallery_ids) = sides
    values = retrieval.evaluate(query, gallery, of_query, of_gallery, space, tuple(ks), query_ids, gallery_ids)
    method = Method(name, Recipe("raw", dim, dim), kind)
    return Answer(method, split, Health(), [], gallery.norm(dim=-1).numpy(), values)
