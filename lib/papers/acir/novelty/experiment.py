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
from lib.losses.hashing import CSQ, DCH, DPN
from lib.metrics import hashing, novelty
from lib.papers.acir.choices import l_wsc
from lib.papers.acir.novelty.scene import ASIDE, KNOWN, LEARNT, NEAR, Scene
from lib.processes import spread
from lib.progress import track
from lib.study.rates import choose_middle
from lib.training import acir, experiment, rebuild
from lib.training.acir import Design, Job, Trained
from lib.training.hashing import Even, Settings
from lib.training.methods import Fitted, Method
from lib.training.rebuild import Rebuilder
from lib.training.recipes import Recipe
from lib.training.splits import Split, repeated
from lib.training.sweep import Loss

ACIR = "ACIR"
HEADS = ("CSQ", "DPN", "DCH")
RESIDUAL, L1 = "residual, MS-SSIM", "residual, L1"
BLUR, BLUR_L1 = "blur, MS-SSIM", "blur, L1"
TWO_SIDED = "residual, L1, both sides"
NEAREST, MAHALANOBIS = "nearest feature", "Mahalanobis"
BOTH, BOTH_L1, INSTEAD = "ACIR and MS-SSIM", "ACIR and L1", "ACIR and nearest feature"
BATCH = 64


@dataclass(frozen=True)
class Plan:
    """What is trained: bits of a code, numbers of a fingerprint, the schedule, and how long decoders learn."""

    bits: int
    fingerprint: int
    schedule: Even
    decoder: Even
    n_seeds: int
    seed: int = 0

    @property
    def seeds(self) -> list[int]:
        """One for each training."""
        return [self.seed + repeat for repeat in range(self.n_seeds)]


@dataclass(frozen=True, eq=False)
class Coder:
    """A trained code: numbers before the sign of all images (n, bits), features (n, ·) of each level, its health."""

    name: str
    h: np.ndarray
    levels: Sequence[np.ndarray]
    loss_first: float
    loss_last: float
    steps: int

    @property
    def inside(self) -> np.ndarray:
        """(n, ·) what came before the last layer: the levels but the shallow one, or a head's only one."""
        return np.concatenate(self.levels[1:] or self.levels, axis=1)

    def distances(self, scene: Scene) -> np.ndarray:
        """Bits to the centre of each known class, (n, C): a centre is the majority of the images learnt from."""
        learnt = scene.rows(LEARNT)
        _, centres = hashing.centres(self.h[learnt], scene.labels[learnt])
        return hashing.hamming(hashing.pack(self.h), centres)


def losses(plan: Plan, scene: Scene, bits: int | None = None) -> dict[str, Loss]:
    """The losses of Table 3 that are losses and no architecture, and ACIR's."""
    n, bits = len(scene.classes), bits or plan.bits
    ours = l_wsc(scene.labels, scene.rows(LEARNT), plan.fingerprint)
    return {"CSQ": CSQ(n, bits), "DPN": DPN(n, bits), "DCH": DCH(), ACIR: ours}


def heads(
    scene: Scene, plan: Plan, rates: Mapping[str, float], *, bits: int | None = None, n_seeds: int | None = None
) -> dict[str, list[Coder]]:
    """Hash heads on the pooled deep map, each loss of ``rates`` but ACIR's, ``n_seeds`` times."""
    x, bits = scene.features(), bits or plan.bits
    split = Split(0, scene.rows(LEARNT), scene.rows(ASIDE), plan.seed)
    known = losses(plan, scene, bits)
    methods = [
        Method(name, Recipe("raw", x.shape[1], bits), Settings(known[name]), replace(plan.schedule, lr=rate))
        for name, rate in rates.items()
        if name != ACIR
    ]
    fitted = experiment.fit(
        x, scene.labels, methods, repeated([split], n_seeds or plan.n_seeds), what=f"heads of {bits} bits"
    )
    return {name: [_of_head(one, x) for one in trainings] for name, trainings in fitted.items()}


def _of_head(one: Fitted, x: np.ndarray) -> Coder:
    raw = replace(one, method=replace(one.method, head=replace(one.method.head, binary=False)))
    history = one.history
    return Coder(one.method.name, raw.embed(x).numpy(), [x], history[0], history[-1], one.health.steps)


def networks(scene: Scene, plan: Plan, prints: np.ndarray, rate: float, seeds: Sequence[int]) -> list[Coder]:
    """ACIR's network on both maps, once for each seed."""
    loss = losses(plan, scene)[ACIR]
    jobs = [Job(ACIR, Design(bits=plan.bits), loss, rate, seed) for seed in seeds]
    rows = scene.rows(LEARNT)
    done = acir.fit([scene.taps], scene.labels, prints, rows, jobs, plan.schedule, what="networks of ACIR")
    return [_of_network(one, scene) for one in done]


def _of_network(one: Trained, scene: Scene) -> Coder:
    coded = one.outputs(scene.taps)
    return Coder(ACIR, coded.h, coded.levels, one.history[0], one.history[-1], one.steps)


def choose(scene: Scene, plan: Plan, prints: np.ndarray, rates: Sequence[float], n_seeds: int = 1) -> pd.DataFrame:
    """The learning rate of every method, by ``n_seeds`` trainings: columns method, lr, and those of the rule.

    Rule: :func:`lib.study.rates.choose_middle`, paired over patients; validation: of the known images of patients set
    aside, how many are nearest to the centre of their own class. No novel image has a say.
    """
    rows, values, plan = [], [], replace(plan, n_seeds=n_seeds)
    for rate in rates:
        coders = heads(scene, plan, dict.fromkeys(HEADS, rate))
        coders[ACIR] = networks(scene, plan, prints, rate, plan.seeds)
        for name, trainings in coders.items():
            values.append([100 * right(coder, scene, ASIDE) for coder in trainings])
            rows.append({"method": name, "lr": rate})
    return choose_middle(pd.DataFrame(rows), values, scene.groups[scene.rows(ASIDE)])


def right(coder: Coder, scene: Scene, part: str) -> np.ndarray:
    """The share of each image of a part that goes to its own class; t nearest centres get 1/t each."""
    rows = scene.rows(part)
    return nearest_shares(coder.distances(scene)[rows])[np.arange(len(rows)), scene.labels[rows]]


def nearest_shares(distance: np.ndarray) -> np.ndarray:
    """Which class gets a query with these distances (q, C) to the centres: 1/t for each of t nearest ones, (q, C)."""
    nearest = distance == distance.min(axis=1, keepdims=True)
    return nearest / nearest.sum(axis=1, keepdims=True)


def decoders(scene: Scene, plan: Plan, seeds: Sequence[int]) -> list[Rebuilder]:
    """The decoder of Section 3.4, once for each seed: it sees the frozen deep map of the images learnt from."""
    rows = scene.rows(LEARNT)
    deep, pixels = scene.taps.deep[rows], scene.pixels[rows]
    jobs = (joblib.delayed(_decoder)(deep, pixels, plan.decoder, seed) for seed in seeds)
    return list(track(spread(jobs), total=len(seeds), what="decoders", unit="decoders"))


def _decoder(deep: np.ndarray, pixels: np.ndarray, schedule: Even, seed: int) -> Rebuilder:
    """A decoder for these maps; it looks at no shallow one."""
    return rebuild.fit_decoder(Taps(deep, deep), pixels, np.arange(len(deep)), schedule, seed)


def residuals(
    scene: Scene, decoders: Sequence[Rebuilder], kinds: Sequence[str], rows: np.ndarray, *, workers: int = -1
) -> dict[str, np.ndarray]:
    """What each decoder loses of the images ``rows``, NaN for all others: kind → (decoders, n).

    kinds: of :func:`lib.metrics.novelty.residual`. workers: as in :func:`lib.processes.spread`.
    """
    pixels, deep = scene.pixels[rows], scene.taps.deep[rows]
    jobs = (joblib.delayed(_residuals)(pixels, deep, one, kinds) for one in decoders)
    residual = np.full((len(kinds), len(decoders), len(scene.pixels)), np.nan)
    for number, lost in enumerate(track(spread(jobs, workers), total=len(decoders), what="residuals", unit="decoders")):
        residual[:, number, rows] = lost
    return dict(zip(kinds, residual, strict=True))


def _residuals(pixels: np.ndarray, deep: np.ndarray, decoder: Rebuilder, kinds: Sequence[str]) -> np.ndarray:
    """(kinds, images)."""
    parts = []
    for start in range(0, len(pixels), BATCH):
        some = slice(start, start + BATCH)
        images = torch.tensor(pixels[some]).float() / 255
        rebuilt = torch.as_tensor(decoder.rebuild(Taps(deep[some], deep[some])))
        parts.append([novelty.residual(images, rebuilt, kind) for kind in kinds])
    return np.concatenate(parts, axis=1)


def blurred(images: Tensor, side: int) -> Tensor:
    """Images (n, c, h, w) shrunk to ``side`` pixels and enlarged again: a decoder that has learnt nothing."""
    small = interpolate(images, (side, side), mode="area")
    # Bicubic interpolation overshoots at edges.
    return interpolate(small, images.shape[2:], mode="bicubic", align_corners=False).clamp(0, 1)


def blur_residuals(scene: Scene, kinds: Sequence[str]) -> dict[str, np.ndarray]:
    """What is lost where an image is shrunk to as many pixels as the deep map has: kind → (n,)."""
    side, parts = scene.taps.deep.shape[2], []
    for start in range(0, len(scene.pixels), BATCH):
        images = torch.tensor(scene.pixels[start : start + BATCH]).float() / 255
        rebuilt = blurred(images, side)
        parts.append([novelty.residual(images, rebuilt, kind) for kind in kinds])
    return dict(zip(kinds, np.concatenate(parts, axis=1), strict=True))


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


def lengths(
    scene: Scene, plan: Plan, sizes: Sequence[int], rate: float, known: Sequence[Coder]
) -> dict[int, Sequence[Coder]]:
    """CSQ's codes of each length; ``known``: those of the plan's own."""
    return {bits: known if bits == plan.bits else heads(scene, plan, {"CSQ": rate}, bits=bits)["CSQ"] for bits in sizes}


def each_class(scene: Scene, plan: Plan, rate: float, rebuilt: bool) -> pd.DataFrame:
    """Each class in turn left out, CSQ trained anew without it: columns class, n, score, auroc (percent).

    A class is passed over where all its images belong to patients without queries.

    rebuilt: whether a decoder is trained anew as well, for its L1 residual.
    """
    rows = []
    for name in scene.tables[0].classes:
        turn = scene.without(name, plan.seed)
        known, near = turn.rows(KNOWN), turn.rows(NEAR)
        if near.size == 0:
            continue
        code = heads(turn, plan, {"CSQ": rate}, n_seeds=1)["CSQ"][0]
        scores = {"CSQ": code.distances(turn).min(axis=1), NEAREST: nearest_feature(turn)}
        scores |= {MAHALANOBIS: mahalanobis(turn), BLUR_L1: blur_residuals(turn, ["l1"])["l1"]}
        if rebuilt:
            both = np.concatenate([known, near])
            scores[L1] = residuals(turn, decoders(turn, plan, [plan.seed]), ["l1"], both)["l1"][0]
        for score, values in scores.items():
            auroc = novelty.separation(values[known], values[near])["auroc"]
            rows.append({"class": name, "n": len(near), "score": score, "auroc": 100 * auroc})
    return pd.DataFrame(rows)
