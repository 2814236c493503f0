"""What each level of the network carries alone, what its parts look at, and what DaRF hands on."""

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
from lib.papers.acir.choices import first_losses, l_wsc
from lib.papers.acir.heads import TOP
from lib.papers.acir.network.parts import layout
from lib.study.columns import HEALTH, Column, Layout
from lib.study.rates import choose_middle
from lib.study.scores import of_answers
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
    :func:`lib.study.rates.choose_middle`.
    """
    wanted, splits = l_wsc(labels, aside.train, prints.shape[1]), repeated([aside], n_seeds)
    jobs = [Job(f"rate {lr:g}", design, wanted, lr, split.seed) for lr in rates for split in splits]
    trained = acir.fit([taps], labels, prints, aside.train, jobs, schedule, workers=workers, what="learning rates")
    values = [
        100 * _search(_signs(one.outputs(taps).h), labels, aside, Euclidean()).values["ap_min", TOP] for one in trained
    ]
    of_rate = [slice(at, at + n_seeds) for at in range(0, len(jobs), n_seeds)]
    losses = [np.mean([one.history[-1] for one in trained[part]]) for part in of_rate]
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
    starts = [acir.untrained(taps, rows, design, split.seed) for split in splits]
    before = [Trained(design, s.seed, network, [], 0) for s, network in zip(splits, starts, strict=True)]
    return {
        UNTRAINED: before,
        TRAINED: acir.fit([taps], labels, prints, rows, jobs, schedule, workers=workers),
    }


def answers(
    networks: Mapping[str, Sequence[Trained]], taps: Taps, labels: np.ndarray, splits: Sequence[Split]
) -> dict[str, list[Answer]]:
    """Answers of every level, untrained and trained, and of the pooled deep map, in the closed gallery.

    A level is searched by the cosine after each number is standardised by the training images; a code by its bits.
    """
    by_level: dict[str, list[Answer]] = {}
    for state, trainings in networks.items():
        for one, split in zip(trainings, splits, strict=True):
            coded = one.outputs(taps)
            points = [*(_standard(level, split) for level in coded.levels), _standard(coded.h, split), _signs(coded.h)]
            for name, z in zip(LEVELS, points, strict=True):
                geometry = Euclidean() if name == "code" else Sphere()
                answer = _answer(_search(z, labels, split, geometry), split, one)
                by_level.setdefault(f"{name}, {state}", []).append(answer)
    plain = _search(_standard(pooled(taps), splits[0]), labels, splits[0], Sphere())
    by_level[POOLED] = [_answer(plain, split) for split in splits]
    return by_level


def _answer(per_query: retrieval.PerQuery, split: Split, one: Trained | None = None) -> Answer:
    trained = one is not None and one.steps > 0
    health = Health(one.history[-1], np.nan, one.steps) if trained else Health()
    return Answer(None, split, health, one.history if trained else [], np.empty(0), per_query)  # type: ignore[arg-type]


def _search(z: np.ndarray, labels: np.ndarray, split: Split, geometry: Geometry) -> retrieval.PerQuery:
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
    networks: Mapping[str, Sequence[Trained]], taps: Taps, labels: np.ndarray, splits: Sequence[Split]
) -> pd.DataFrame:
    """Whose image the fused level of a query speaks of, where one of its maps is another image's.

    The archive stays as it is. Columns network, repeat, exchanged (of :data:`EXCHANGES`), mAP (of the query's own
    class, percent), moved (how far the level moves, as a share of the mean distance from the query to the stranger).
    """
    shallow, deep = torch.tensor(taps.shallow), torch.tensor(taps.deep)
    rows = []
    for state, trainings in networks.items():
        for one, split in zip(trainings, splits, strict=True):
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
                per_query = _search(_standard(z, split), labels, split, Sphere())
                cells = {"mAP": 100 * per_query.values["ap_min", TOP].mean(), "moved": moved}
                rows.append({"network": state, "repeat": split.repeat, "exchanged": name} | cells)
    return pd.DataFrame(rows)


@torch.inference_mode()
def evenness(networks: Mapping[str, Sequence[Trained]], taps: Taps, rows: np.ndarray) -> pd.DataFrame:
    """How evenly attention spreads: entropy as a share of that of equal weights, mean over images, heads and pixels.

    Columns network, repeat, part, evenness (percent).
    """
    shallow, deep = acir.tensors(taps.take(rows))
    lines: list[dict[str, Any]] = []
    for state, trainings in networks.items():
        for repeat, one in enumerate(trainings):
            for part, weights in attention(one.network, shallow, deep).items():
                entropy = torch.special.entr(weights).sum(-1) / np.log(weights.shape[-1])
                cells = {"network": state, "repeat": repeat, "part": part}
                lines.append(cells | {"evenness": 100 * entropy.mean().item()})
    return pd.DataFrame(lines)


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


def levels(by_level: Mapping[str, Sequence[Answer]]) -> pd.DataFrame:
    """mAP of every level: columns level, network, mAP, spread (over trainings), class_mean, chance (percent),
    loss_first, loss (last) and steps of the training, n_seeds.
    """
    rows = of_answers({"closed": by_level}).means().query("metric == 'ap_min' and k == @TOP")
    parts = rows["method"].str.rsplit(", ", n=1)
    named = {"level": parts.str[0], "network": parts.str[1], "loss_first": rows["method"].map(first_losses(by_level))}
    rows = rows.assign(**named).drop(columns="spread").rename(columns={"ours": "mAP", "seeds_spread": "spread"})
    rows.loc[rows["method"] == POOLED, ["level", "network"]] = [POOLED, "–"]
    columns = ["level", "network", "mAP", "spread", "class_mean", "chance", "loss_first", "loss", "steps", "n_seeds"]
    return rows[columns].reset_index(drop=True)


SHALLOW, _, PIXELS, TOKEN, NUMBERS, CODE = LEVELS
PAIRS = (
    *((f"{level}, {TRAINED}", f"{level}, {UNTRAINED}") for level in LEVELS),
    *(
        (f"{a}, {TRAINED}", f"{b}, {TRAINED}")
        for a, b in ((TOKEN, PIXELS), (TOKEN, FUSED), (FUSED, SHALLOW), (NUMBERS, TOKEN), (NUMBERS, CODE))
    ),
    *((f"{name}, {TRAINED}", POOLED) for name in (TOKEN, CODE)),
)
"""What is tested: each level trained against untrained, trained levels among them, and two against no network."""


def tests(by_level: Mapping[str, Sequence[Answer]], groups: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Paired tests of :data:`PAIRS` over patients and trainings."""
    return of_answers({"closed": by_level}, groups).tests(PAIRS, [TOP], seed=seed).drop(columns="rule")


LAYOUTS = {
    "table_parts": layout,
    "table_levels": Layout(
        [
            Column("level"),
            Column("network"),
            Column("mAP", pm="spread", brackets="class_mean", chance="chance"),
            Column("first loss", "loss_first", "3"),
            HEALTH[0],
            HEALTH[2],
        ],
        by=["level", "network"],
    ),
    "table_exchanged": Layout(
        [
            Column("network"),
            Column("a stranger's", "exchanged"),
            Column("mAP of the fused level", "mAP", pm="mAP_spread"),
            Column("moved", form="{:.0%}"),
        ],
        by=["network", "exchanged"],
        repeats="repeat",
    ),
    "table_evenness": Layout(
        [Column("part"), Column("{}", "evenness", over="network", pm="evenness_spread")], ["part"], repeats="repeat"
    ),
}
