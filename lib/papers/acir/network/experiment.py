"""What each level of the network carries alone, and whose image the fused level speaks of."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.encoders.taps import Taps, pooled
from lib.geometry import Euclidean, Geometry, Sphere
from lib.heads.acir import ConsolidatedHash
from lib.heads.scaling import widths
from lib.metrics import retrieval
from lib.papers.acir.choices import l_wsc
from lib.papers.acir.hashing.experiment import TOP
from lib.results.rates import choose_middle
from lib.training import acir
from lib.training.acir import Design, Job, Trained
from lib.training.hashing import Even
from lib.training.methods import Answer, Health
from lib.training.splits import Split, repeated

LEVELS = ("shallow level", "fused level", "pixels of PiT", "class token", "numbers before the sign", "code")
POOLED = "pooled deep map, no network"
UNTRAINED, TRAINED = "untrained", "trained"
FUSED = LEVELS[1]


def choose(
    taps: Taps,
    labels: np.ndarray,
    prints: np.ndarray,
    design: Design,
    schedule: Even,
    rates: Sequence[float],
    aside: Split,
    n_seeds: int = 1,
    *,
    groups: np.ndarray | None = None,
    workers: int = -1,
) -> pd.DataFrame:
    """mAP of the code on images set aside at each learning rate, mean of ``n_seeds`` trainings.

    groups: (n,) over which rates are paired. Columns method (ACIR), lr, loss (mean), and those of
    :func:`lib.results.rates.choose_middle`.
    """
    wanted, splits = l_wsc(labels, aside.train, prints.shape[1]), repeated([aside], n_seeds)
    jobs = [Job(f"rate {lr:g}", design, wanted, lr, split.seed) for lr in rates for split in splits]
    found = acir.fit([taps], labels, prints, aside.train, jobs, schedule, workers=workers, what="learning rates")
    values = [
        100 * _asked(_signs(one.outputs(taps).h), labels, aside, Euclidean()).values["ap_min", TOP] for one in found
    ]
    of_rate = [slice(at, at + n_seeds) for at in range(0, len(jobs), n_seeds)]
    losses = [np.mean([one.history[-1] for one in found[part]]) for part in of_rate]
    rows = pd.DataFrame({"method": "ACIR", "lr": list(rates), "loss": losses})
    return choose_middle(rows, [values[part] for part in of_rate], None if groups is None else groups[aside.test])


def train(
    taps: Taps,
    labels: np.ndarray,
    prints: np.ndarray,
    design: Design,
    schedule: Even,
    lr: float,
    splits: Sequence[Split],
    *,
    workers: int = -1,
) -> dict[str, list[Trained]]:
    """The network untrained and trained, once for each of ``splits``, which differ in their seed alone."""
    rows = splits[0].train
    wanted = l_wsc(labels, rows, prints.shape[1])
    jobs = [Job(f"seed {split.seed}", design, wanted, lr, split.seed) for split in splits]
    networks = [acir.untrained(taps, rows, design, split.seed) for split in splits]
    before = [Trained(design, s.seed, network, [], 0) for s, network in zip(splits, networks, strict=True)]
    return {
        UNTRAINED: before,
        TRAINED: acir.fit([taps], labels, prints, rows, jobs, schedule, workers=workers),
    }


def asked(
    several: Mapping[str, Sequence[Trained]], taps: Taps, labels: np.ndarray, splits: Sequence[Split]
) -> dict[str, list[Answer]]:
    """Answers of every level, untrained and trained, and of the pooled deep map, in the closed gallery.

    A level is searched by the cosine after each number is standardised by the training images; a code by its bits.
    """
    found: dict[str, list[Answer]] = {}
    for state, ones in several.items():
        for one, split in zip(ones, splits, strict=True):
            coded = one.outputs(taps)
            points = [*(_standard(level, split) for level in coded.levels), _standard(coded.h, split), _signs(coded.h)]
            for name, z in zip(LEVELS, points, strict=True):
                geometry = Euclidean() if name == "code" else Sphere()
                answer = _answer(_asked(z, labels, split, geometry), split, one)
                found.setdefault(f"{name}, {state}", []).append(answer)
    plain = _asked(_standard(pooled(taps), splits[0]), labels, splits[0], Sphere())
    found[POOLED] = [_answer(plain, split) for split in splits]
    return found


def _answer(per_query: retrieval.PerQuery, split: Split, one: Trained | None = None) -> Answer:
    trained = one is not None and one.steps > 0
    health = Health(one.history[-1], np.nan, one.steps) if trained else Health()
    return Answer(None, split, health, one.history if trained else [], np.empty(0), per_query)  # type: ignore[arg-type]


def _asked(z: np.ndarray, labels: np.ndarray, split: Split, geometry: Geometry) -> retrieval.PerQuery:
    query, gallery = torch.tensor(z[split.test]), torch.tensor(z[split.train])
    return retrieval.evaluate(query, gallery, labels[split.test], labels[split.train], geometry, (TOP,))


def _signs(h: np.ndarray) -> np.ndarray:
    return np.where(h >= 0, 1.0, -1.0)


def _standard(z: np.ndarray, split: Split) -> np.ndarray:
    """Each number less its mean over the training images, over its deviation, float64."""
    own = z[split.train].astype(np.float64)
    return (z - own.mean(0)) / widths(own.std(0))


@torch.inference_mode()
def fused(network: ConsolidatedHash, shallow: Tensor, deep: Tensor, values: Tensor) -> np.ndarray:
    """The fused level (n, channels), weights from ``shallow`` and ``deep``, values from other shallow maps.

    For an image as it is, shallow and values are one. Of DaRF as Equation 9 is printed: where its queries come from the
    shallow map (AC-24), values come from ``deep``.
    """
    fusion, parts = network.fusion, []
    for maps in zip(*(x.split(acir.AT_ONCE) for x in (shallow, deep, values)), strict=True):
        near, far, other = (x.float() for x in maps)
        near, far = network.maps(near, far)
        far = network.far(far)
        weights = fusion.attention(network.near(near), far)
        held = network.near(network.maps(other, maps[1].float())[0])
        parts.append(fusion.mix(weights, held, far).mean((2, 3)))
    return torch.cat(parts).numpy()


EXCHANGES = ("nothing", "deep map (weights)", "shallow map (values)", "shallow map (weights and values)")
"""What of a query is a stranger's."""


def exchanged(
    several: Mapping[str, Sequence[Trained]], taps: Taps, labels: np.ndarray, splits: Sequence[Split]
) -> pd.DataFrame:
    """Whose image the fused level of a query speaks of, where one of its maps is another image's.

    The archive stays as it is. Columns network, repeat, exchanged (of :data:`EXCHANGES`), mAP (of the query's own
    class, percent), moved (how far the level moves, as a share of the mean distance from the query to the stranger).
    """
    shallow, deep = torch.tensor(taps.shallow), torch.tensor(taps.deep)
    rows = []
    for state, ones in several.items():
        for one, split in zip(ones, splits, strict=True):
            test = torch.from_numpy(split.test)
            order = np.random.default_rng(split.seed).permutation(len(test))
            other = test[np.roll(order, 1)[np.argsort(order)]]  # never the image itself
            own = fused(one.network, shallow, deep, shallow)
            apart = np.linalg.norm(own[split.test] - own[other], axis=1).mean()
            whose = [(test, test, test), (test, other, test), (test, test, other), (other, test, other)]
            for name, (near, far, values) in zip(EXCHANGES, whose, strict=True):
                z = own.copy()
                z[split.test] = fused(one.network, shallow[near], deep[far], shallow[values])
                moved = np.linalg.norm(z[split.test] - own[split.test], axis=1).mean() / apart
                per_query = _asked(_standard(z, split), labels, split, Sphere())
                cells = {"mAP": 100 * per_query.values["ap_min", TOP].mean(), "moved": moved}
                rows.append({"network": state, "repeat": split.repeat, "exchanged": name} | cells)
    return pd.DataFrame(rows)


@torch.inference_mode()
def evenness(several: Mapping[str, Sequence[Trained]], taps: Taps, rows: np.ndarray) -> pd.DataFrame:
    """How evenly attention spreads: entropy as a share of that of equal weights, mean over images, heads and pixels.

    Columns network, repeat, part, evenness (percent).
    """
    shallow, deep = acir.tensors(taps.take(rows))
    found: list[dict[str, Any]] = []
    for state, ones in several.items():
        for repeat, one in enumerate(ones):
            for part, weights in attention(one.network, shallow, deep).items():
                entropy = torch.special.entr(weights).sum(-1) / np.log(weights.shape[-1])
                cells = {"network": state, "repeat": repeat, "part": part}
                found.append(cells | {"evenness": 100 * entropy.mean().item()})
    return pd.DataFrame(found)


@torch.inference_mode()
def attention(network: ConsolidatedHash, shallow: Tensor, deep: Tensor) -> dict[str, Tensor]:
    """Weights of each part that looks around, of float32 maps; the class token's are those of PiT's last layer."""
    near, far = network.maps(shallow, deep)
    token = network.pit.attention(far)[:, -1, :, 0, 1:]  # on pixels, without the token itself
    return {
        "ConvMSA, shallow": network.near.attention(near),
        "ConvMSA, deep": network.far.attention(far),
        "PiT, class token": token / token.sum(-1, keepdim=True),
        "DaRF": network.fusion.attention(network.near(near), network.far(far)),
    }


@torch.inference_mode()
def joined(network: ConsolidatedHash, taps: Taps) -> Tensor:
    """What the KAN layer gets of every image: (n, numbers), joined and normalised."""
    levels = acir.outputs(network, taps).levels
    return network.norm(torch.cat([torch.tensor(level) for level in levels[1:]], dim=1))
