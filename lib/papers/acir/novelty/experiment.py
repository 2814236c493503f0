"""Codes, networks and decoders of known classes, each trained several times, and scores of novelty."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pandas as pd
import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor
from torch.nn.functional import interpolate

from lib.encoders.taps import Taps
from lib.metrics import hashing, novelty
from lib.papers.acir import heads as hash_heads
from lib.papers.acir.heads import ACIR, l_wsc
from lib.papers.acir.novelty.scene import ASIDE, KNOWN, LEARNT, NEAR, Scene
from lib.papers.acir.training import Codes, Material, of_head, of_network
from lib.processes import spread
from lib.progress import track
from lib.study.rates import choose_middle
from lib.training import experiment, rebuild
from lib.training.acir import Design, Job
from lib.training.hashing import Even
from lib.training.rebuild import Rebuilder
from lib.training.splits import Split, repeated

HEADS = ("CSQ", "DPN", "DCH")
RESIDUAL, L1 = "residual, MS-SSIM", "residual, L1"
BLUR, BLUR_L1 = "blur, MS-SSIM", "blur, L1"
TWO_SIDED = "residual, L1, both sides"
NEAREST, MAHALANOBIS = "nearest feature", "Mahalanobis"
BOTH, BOTH_L1, INSTEAD = "ACIR and MS-SSIM", "ACIR and L1", "ACIR and nearest feature"
DECODER = "decoder"
BATCH = 64


@dataclass(frozen=True)
class Plan:
    """What is trained: bits of a code, the schedule, how long decoders learn, and how often all of it."""

    bits: int
    schedule: Even
    decoder: Even
    n_seeds: int
    seed: int = 0

    @property
    def seeds(self) -> list[int]:
        """One for each training of a network or decoder."""
        return [self.seed + repeat for repeat in range(self.n_seeds)]


def distances(codes: Codes, scene: Scene) -> np.ndarray:
    """Bits to the centre of each known class, (n, C): a centre is the majority of the training images."""
    learnt = scene.rows(LEARNT)
    _, centres = hashing.centres(codes.h[learnt], scene.labels[learnt])
    return hashing.hamming(hashing.pack(codes.h), centres)


def heads(scene: Scene, plan: Plan, rates: Mapping[str, float], *, bits: int | None = None) -> dict[str, list[Codes]]:
    """Hash heads on the pooled deep map, each loss of ``rates`` but ACIR's, ``plan.n_seeds`` times."""
    x, bits = scene.features(), bits or plan.bits
    splits = repeated([Split(0, scene.rows(LEARNT), scene.rows(ASIDE), plan.seed)], plan.n_seeds)
    shared = hash_heads.Plan(x.shape[1], 0, len(scene.classes), plan.schedule)
    losses = hash_heads.losses(shared, bits)
    methods = {name: shared.method(name, losses[name], bits, rate) for name, rate in rates.items() if name != ACIR}
    fitted = experiment.fit(x, scene.labels, list(methods.values()), splits, what=f"heads of {bits} bits")
    return {name: [of_head(name, head, x) for head in fitted[method.name]] for name, method in methods.items()}


def networks(scene: Scene, plan: Plan, prints: np.ndarray, rate: float) -> list[Codes]:
    """ACIR's network on both maps, once for each seed."""
    rows = scene.rows(LEARNT)
    loss = l_wsc(scene.labels, rows)
    jobs = [Job(ACIR, Design(bits=plan.bits), loss, rate, seed) for seed in plan.seeds]
    trained = Material([scene.taps], scene.labels, prints, plan.schedule).fit(jobs, rows, "networks of ACIR")
    return [of_network(ACIR, repeat, network, scene.taps) for repeat, network in enumerate(trained)]


def choose(scene: Scene, plan: Plan, prints: np.ndarray, rates: Sequence[float], n_seeds: int = 1) -> pd.DataFrame:
    """The learning rate of every method, by ``n_seeds`` trainings: columns method, lr, and those of the rule.

    Rule: :func:`lib.study.rates.choose_middle`, paired over patients; validation: of the known images of patients set
    aside, how many are nearest to the centre of their own class. No novel image has a say.
    """
    rows, values, plan = [], [], replace(plan, n_seeds=n_seeds)
    for rate in rates:
        coders = heads(scene, plan, dict.fromkeys(HEADS, rate))
        coders[ACIR] = networks(scene, plan, prints, rate)
        for name, trainings in coders.items():
            values.append([100 * right(coder, scene, ASIDE) for coder in trainings])
            rows.append({"method": name, "lr": rate})
    return choose_middle(pd.DataFrame(rows), values, scene.groups[scene.rows(ASIDE)])


def right(codes: Codes, scene: Scene, part: str) -> np.ndarray:
    """The share of each image of a part that goes to its own class; t nearest centres get 1/t each."""
    rows = scene.rows(part)
    return nearest_shares(distances(codes, scene)[rows])[np.arange(len(rows)), scene.labels[rows]]


def nearest_shares(distance: np.ndarray) -> np.ndarray:
    """Which class gets a query with these distances (q, C) to the centres: 1/t for each of t nearest ones, (q, C)."""
    nearest = distance == distance.min(axis=1, keepdims=True)
    return nearest / nearest.sum(axis=1, keepdims=True)


def decoders(scene: Scene, plan: Plan) -> list[Rebuilder]:
    """The decoder of Section 3.4, once for each seed: it sees the frozen deep map of the training images."""
    rows = scene.rows(LEARNT)
    deep, pixels = scene.taps.deep[rows], scene.pixels[rows]
    given = Taps(deep, deep), pixels, np.arange(len(deep)), plan.decoder  # a decoder looks at no shallow map
    jobs = (joblib.delayed(rebuild.fit_decoder)(*given, seed) for seed in plan.seeds)
    return list(track(spread(jobs), total=plan.n_seeds, what="decoders", unit="decoders"))


def residuals(
    scene: Scene, decoders: Sequence[Rebuilder], kinds: Sequence[str], rows: np.ndarray, *, workers: int = -1
) -> dict[str, np.ndarray]:
    """What each decoder loses of the images ``rows``, NaN for all others: kind → (decoders, n).

    kinds: of :func:`lib.metrics.novelty.residual`. workers: as in :func:`lib.processes.spread`.
    """
    pixels, deep = scene.pixels[rows], scene.taps.deep[rows]
    jobs = (joblib.delayed(_residuals)(pixels, deep, kinds, decoder) for decoder in decoders)
    residual = np.full((len(kinds), len(decoders), len(scene.pixels)), np.nan)
    for number, lost in enumerate(track(spread(jobs, workers), total=len(decoders), what="residuals", unit="decoders")):
        residual[:, number, rows] = lost
    return dict(zip(kinds, residual, strict=True))


def blur_residuals(scene: Scene, kinds: Sequence[str]) -> dict[str, np.ndarray]:
    """What is lost where an image is shrunk to as many pixels as the deep map has: kind → (n,)."""
    return dict(zip(kinds, _residuals(scene.pixels, scene.taps.deep, kinds), strict=True))


def _residuals(
    pixels: np.ndarray, deep: np.ndarray, kinds: Sequence[str], decoder: Rebuilder | None = None
) -> np.ndarray:
    """(kinds, images); without a decoder those of :func:`blurred` images."""
    parts = []
    for start in range(0, len(pixels), BATCH):
        some = slice(start, start + BATCH)
        images = torch.tensor(pixels[some]).float() / 255
        if decoder is None:
            rebuilt = blurred(images, deep.shape[2])
        else:
            rebuilt = torch.as_tensor(decoder.rebuild(Taps(deep[some], deep[some])))
        parts.append([novelty.residual(images, rebuilt, kind) for kind in kinds])
    return np.concatenate(parts, axis=1)


def blurred(images: Tensor, side: int) -> Tensor:
    """Images (n, c, h, w) shrunk to ``side`` pixels and enlarged again: a decoder that has learnt nothing."""
    small = interpolate(images, (side, side), mode="area")
    # Bicubic interpolation overshoots at edges.
    return interpolate(small, images.shape[2:], mode="bicubic", align_corners=False).clamp(0, 1)


def health(scene: Scene, coders: Mapping[str, Sequence[Codes]], decoders: Sequence[Rebuilder]) -> pd.DataFrame:
    """How every training went: method, repeat, loss_first, loss_last, steps; right (known queries that
    go to their own class by the nearest centre, percent; NaN for decoders)."""
    rows = [
        {"method": name, "repeat": repeat, "loss_first": trained.history[0], "loss_last": trained.history[-1]}
        | {"steps": trained.steps, "right": np.nan if name == DECODER else 100 * right(trained, scene, KNOWN).mean()}
        for name, trainings in (*coders.items(), (DECODER, decoders))
        for repeat, trained in enumerate(trainings)
    ]
    return pd.DataFrame(rows)


def nearest_feature(scene: Scene) -> np.ndarray:
    """The distance of every image's pooled feature to the nearest one learnt from, its own left out, (n,)."""
    x, learnt = scene.features().astype(np.float64), scene.rows(LEARNT)
    distance, place = NearestNeighbors(n_neighbors=2).fit(x[learnt]).kneighbors(x)
    own = learnt[place[:, 0]] == np.arange(len(x))
    return np.where(own, distance[:, 1], distance[:, 0])


def mahalanobis(scene: Scene) -> np.ndarray:
    """The distance of every image's pooled feature to the nearest class mean, in units of the spread in a class."""
    x, learnt = scene.features(), scene.rows(LEARNT)
    return novelty.mahalanobis(x, x[learnt], scene.labels[learnt])


def standard(score: np.ndarray, aside: np.ndarray, least: float = 0.0) -> np.ndarray:
    """A score in standard deviations from its mean over known images of patients set aside (rows ``aside``).

    least: the smallest deviation that is divided by, half a bit for codes: all of them may lie on their centres.
    """
    deviation = max(float(score[aside].std()), least, np.finfo(np.float64).tiny)
    return (score - score[aside].mean()) / deviation


def each_class(scene: Scene, plan: Plan, rate: float, rebuilt: bool) -> pd.DataFrame:
    """Each class in turn left out, CSQ trained anew without it: columns class, n, score, auroc (percent).

    A class is passed over where all its images belong to patients without queries.

    rebuilt: whether a decoder is trained anew as well, for its L1 residual.
    """
    rows, plan = [], replace(plan, n_seeds=1)
    for name in scene.tables[0].classes:
        turn = scene.without(name, plan.seed)
        known, near = turn.rows(KNOWN), turn.rows(NEAR)
        if near.size == 0:
            continue
        code = heads(turn, plan, {"CSQ": rate})["CSQ"][0]
        scores = {"CSQ": distances(code, turn).min(axis=1), NEAREST: nearest_feature(turn)}
        scores |= {MAHALANOBIS: mahalanobis(turn), BLUR_L1: blur_residuals(turn, ["l1"])["l1"]}
        if rebuilt:
            both = np.concatenate([known, near])
            scores[L1] = residuals(turn, decoders(turn, plan), ["l1"], both)["l1"][0]
        for score, values in scores.items():
            auroc = novelty.separation(values[known], values[near])["auroc"]
            rows.append({"class": name, "n": len(near), "score": score, "auroc": 100 * auroc})
    return pd.DataFrame(rows)
