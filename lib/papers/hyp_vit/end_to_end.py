"""Encoder and head trained together, and the encoder as it was before (section 3.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from lib.datasets.categories import Halves, held_out
from lib.datasets.content import content
from lib.datasets.pixels import decode
from lib.datasets.table import ImageTable
from lib.encoders import networks
from lib.geometry import Geometry, PoincareBall, Sphere
from lib.losses.hyp_vit import PairwiseCrossEntropy
from lib.metrics import retrieval
from lib.papers.hyp_vit.heads import BEFORE, END
from lib.study.rates import best_rates, choose_middle
from lib.training import finetune, kept, together
from lib.training.hyp_vit import Settings, warmed
from lib.training.methods import Answer, Health, Method, points_at_rim
from lib.training.photos import Preparation
from lib.training.recipes import Recipe
from lib.training.splits import Split, repeated


@dataclass(frozen=True)
class EndToEnd:
    """Encoder and head trained together: how long and how fast, and what the network sees.

    encoder: as for :func:`lib.encoders.networks.load`. dim_out: length of the embedding. unseen: whether the query
    images are looked at whenever those that choose the step are, for the course only.
    """

    encoder: str
    dim_out: int
    settings: finetune.Settings
    preparation: Preparation
    unseen: bool = False


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
    task = _Task(images, halves, plan, store, content(images))

    def tried(grid: Sequence[tuple[str, float, float]]) -> tuple[pd.DataFrame, list[Any]]:
        rows, values = [], []
        for name, temperature, lr in grid:
            kind = kinds[name] if np.isnan(temperature) else warmed(kinds[name], temperature)
            trainings = [_once(task.at(lr), name, kind, split, learnt, aside) for split in splits]
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
    task = _Task(images, halves, plan, store, content(images))
    before = _before(task, next(iter(kinds.values())), splits[0], ks)
    answers = {BEFORE: [replace(before, split=split) for split in splits]}
    courses = []
    for name, kind in kinds.items():
        at_rate = task.at((lr_of or {}).get(name, plan.settings.lr))
        for split in splits:
            known = _once(at_rate, name, kind, split, *held_out(halves, split.seed))
            courses.append(_course(known, f"{name}, end to end", split.repeat))
            for place, answer in _searched(halves, name, _as_learnt(kind, known), split, known, ks).items():
                answers.setdefault(place, []).append(answer)
    return answers, pd.concat(courses, ignore_index=True)


def _splits(halves: Halves, seed: int, n_seeds: int = 1) -> list[Split]:
    return list(repeated([Split(0, halves.learnt, halves.queries, seed, held_out=halves.gallery)], n_seeds))


@dataclass(frozen=True)
class _Task:
    """What is learnt from and searched, how, and the folder of what is trained; ``shown``: what images hold."""

    images: ImageTable
    halves: Halves
    plan: EndToEnd
    store: kept.Store
    shown: str

    def key(self, *others: object) -> str:
        """A hash of what the images hold, of ``others``, and of the code that trains."""
        code = kept.code(
            {__name__, finetune.__name__, Settings.__module__}, "torch", "timm", "torchvision", "lightning_fabric"
        )
        return kept.key(self.shown, self.halves.names, *others, code)

    def at(self, lr: float) -> "_Task":
        """The same with another learning rate of the encoder."""
        return replace(self, plan=replace(self.plan, settings=replace(self.plan.settings, lr=lr)))

    def encoder(self) -> nn.Module:
        """The network as it is before any training."""
        return networks.load(self.plan.encoder).model

    @property
    def used(self) -> np.ndarray:
        """Rows of the training, query and gallery images."""
        return np.unique(np.concatenate([self.halves.learnt, self.halves.queries, self.halves.gallery]))

    def embedded(self, network: nn.Sequential, preparation: Preparation) -> list[Tensor]:
        """Features and embeddings (n, ...) as of :func:`lib.training.finetune.embed`, NaN for images without a use."""
        of_all = []
        for points in finetune.embed(network, decode(self.part(self.used)), preparation):
            of_all.append(points.new_full((len(self.images), points.shape[1]), torch.nan))
            of_all[-1][torch.from_numpy(self.used)] = points
        return of_all

    def part(self, rows: np.ndarray) -> ImageTable:
        """The images ``rows``, labelled by their category."""
        images = self.images
        part = images.rows.iloc[rows].assign(label=self.halves.names[rows])
        return ImageTable(images.name, images.root, part, images.group_kind)


def _before(task: _Task, kind: Settings, split: Split, ks: Sequence[int]) -> Answer:
    """The held-out images searched by the encoder before any training; ``kind`` only fills the method's place."""
    plan = task.plan

    def embedded() -> Tensor:
        encoder = task.encoder()
        return task.embedded(nn.Sequential(encoder, nn.Identity()), plan.preparation.seen_by(encoder))[0]

    features = kept.once(task.store, task.key("before", plan.encoder, plan.preparation), embedded)
    return _answer(BEFORE, kind, features, Sphere(), task.halves, split, ks)


def _once(
    task: _Task, name: str, kind: Settings, split: Split, learnt: np.ndarray, aside: np.ndarray
) -> dict[str, Any]:
    """Embeddings and features of all images, and the course of the training; trained once, then read.

    learnt, aside: rows of the images that teach, and of those that choose the step.
    """
    key = task.key(learnt, aside, split.held_out, split.test, kind, task.plan, split.seed)
    parts = task.part(learnt), task.part(aside)
    return kept.once(task.store, key, lambda: _trained(task, name, kind, split, parts, key))


def _trained(
    task: _Task, name: str, kind: Settings, split: Split, parts: tuple[ImageTable, ImageTable], key: str
) -> dict[str, Any]:
    encoder, plan = task.encoder(), task.plan
    head = kind.make(Recipe("raw", encoder.num_features, plan.dim_out), split.seed)
    loss = PairwiseCrossEntropy(head.geometry, kind.temperature, plan.settings.samples, kind.cosine)
    options = {
        "seed": split.seed,
        "store": kept.checkpoint(task.store, key),
        "what": f"{name}, end to end, seed {split.seed}",
    }
    options["unseen"] = task.part(task.halves.queries) if plan.unseen else None
    preparation = plan.preparation.seen_by(encoder)
    given = encoder, head, loss, *parts, plan.settings, preparation
    done = together.launched(finetune.finetune, *given, **options)
    features, embeddings = task.embedded(done.network, preparation)
    return {
        "features": features,
        "embeddings": embeddings,
        "history": done.history.to_dict("list"),
        "scores": done.scores.to_dict("list"),
        "best": int(done.best["step"]),
    }


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
