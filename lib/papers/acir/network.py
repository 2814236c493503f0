"""What each level of the network carries by itself, how evenly its parts attend, and what DaRF hands on."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.encoders.taps import Taps
from lib.geometry import Euclidean, Sphere
from lib.heads.acir import ConsolidatedHash
from lib.heads.scaling import widths
from lib.papers.acir import parts
from lib.papers.acir.heads import TOP, l_wsc
from lib.papers.acir.training import Material, first_loss, search
from lib.study import paired
from lib.study.columns import HEALTH, Column, Layout
from lib.study.markdown import markdown_table
from lib.study.rates import choose_middle, rates_layout
from lib.study.scores import Scored, of_answers
from lib.training import acir
from lib.training.acir import Design, Job, Trained
from lib.training.splits import Split, repeated

LEVELS = ("shallow level", "fused level", "pixels of PiT", "class token", "numbers before the sign", "code")
POOLED = "pooled deep map, no network"
UNTRAINED, TRAINED = "untrained", "trained"
SHALLOW, FUSED, PIXELS, TOKEN, NUMBERS, CODE = LEVELS


def choose(
    material: Material,
    design: Design,
    rates: Sequence[float],
    aside: Split,
    groups: np.ndarray,
    n_seeds: int = 1,
) -> pd.DataFrame:
    """mAP of the code on images set aside at each learning rate, mean of ``n_seeds`` trainings.

    groups: (n,) over which rates are paired. Columns method (ACIR), lr, loss (mean), and those of
    :func:`lib.study.rates.choose_middle`.
    """
    loss, splits = l_wsc(material.labels, aside.train), repeated([aside], n_seeds)
    jobs = [Job(f"rate {lr:g}", design, loss, lr, split.seed) for lr in rates for split in splits]
    trained = material.fit(jobs, aside.train, "learning rates")
    values = []
    for fitted in trained:
        per_query = search(_signs(fitted.outputs(material.views[0]).h), material.labels, aside, Euclidean())
        values.append(100 * per_query.values["ap_min", TOP])
    of_rate = [slice(at, at + n_seeds) for at in range(0, len(jobs), n_seeds)]
    losses = [np.mean([fitted.history[-1] for fitted in trained[part]]) for part in of_rate]
    rows = pd.DataFrame({"method": "ACIR", "lr": list(rates), "loss": losses})
    return choose_middle(rows, [values[part] for part in of_rate], groups[aside.test])


def train(material: Material, design: Design, lr: float, splits: Sequence[Split]) -> dict[str, list[Trained]]:
    """The network untrained and trained, once for each of ``splits``, which differ in their seed only."""
    rows = splits[0].train
    loss = l_wsc(material.labels, rows)
    starts = [acir.untrained(material.views[0], rows, design, split.seed) for split in splits]
    jobs = [Job(f"seed {split.seed}", design, loss, lr, split.seed) for split in splits]
    return {
        UNTRAINED: [Trained(design, split.seed, start, [], 0) for split, start in zip(splits, starts, strict=True)],
        TRAINED: material.fit(jobs, rows, "networks"),
    }


def answers(
    networks: Mapping[str, Sequence[Trained]], material: Material, splits: Sequence[Split]
) -> dict[str, list[Scored]]:
    """What every level finds, untrained and trained, and the pooled deep map, in the closed gallery.

    A level is searched by the cosine after each number is standardised by the training images; a code by its bits.
    """
    labels, by_level = material.labels, {}
    for state, trainings in networks.items():
        for fitted, split in zip(trainings, splits, strict=True):
            coded = fitted.outputs(material.views[0])
            points = [*(_standard(level, split) for level in coded.levels), _standard(coded.h, split), _signs(coded.h)]
            for name, z in zip(LEVELS, points, strict=True):
                values = search(z, labels, split, Euclidean() if name == CODE else Sphere())
                by_level.setdefault(f"{name}, {state}", []).append(Scored(split, values, fitted.history, fitted.steps))
    plain = search(_standard(material.pooled, splits[0]), labels, splits[0], Sphere())
    return by_level | {POOLED: [Scored(split, plain) for split in splits]}


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


def exchanged(networks: Mapping[str, Sequence[Trained]], material: Material, splits: Sequence[Split]) -> pd.DataFrame:
    """Whose image the fused level of a query speaks of, where one of its maps is another image's.

    The archive stays as it is. Columns network, repeat, exchanged (of :data:`EXCHANGES`), mAP (of the query's own
    class, percent), moved (how far the level moves, as a share of the mean distance from the query to the stranger).
    """
    shallow, deep = (torch.tensor(level) for level in material.views[0])
    rows = []
    for state, trainings in networks.items():
        for fitted, split in zip(trainings, splits, strict=True):
            test = torch.from_numpy(split.test)
            order = np.random.default_rng(split.seed).permutation(len(test))
            other = test[np.roll(order, 1)[np.argsort(order)]]  # never the image itself
            own = fused(fitted.network, shallow, deep, shallow)
            apart = np.linalg.norm(own[split.test] - own[other], axis=1).mean()
            whose = [(test, test, test), (test, other, test), (test, test, other), (other, test, other)]
            for name, (near, far, values) in zip(EXCHANGES, whose, strict=True):
                z = own.copy()
                z[split.test] = fused(fitted.network, shallow[near], deep[far], shallow[values])
                moved = np.linalg.norm(z[split.test] - own[split.test], axis=1).mean() / apart
                per_query = search(_standard(z, split), material.labels, split, Sphere())
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
        for repeat, fitted in enumerate(trainings):
            for part, weights in attention(fitted.network, shallow, deep).items():
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


def levels(by_level: Mapping[str, Sequence[Scored]]) -> pd.DataFrame:
    """mAP of every level: columns level, network, mAP, spread (over trainings), class_mean, chance (percent),
    loss_first, loss (last) and steps of the training, n_seeds.
    """
    rows = of_answers({"closed": by_level}, measure=first_loss).means().query("metric == 'ap_min' and k == @TOP")
    parts = rows["method"].str.rsplit(", ", n=1)
    rows = rows.assign(level=parts.str[0], network=parts.str[1]).drop(columns="spread")
    rows = rows.rename(columns={"ours": "mAP", "seeds_spread": "spread"})
    rows.loc[rows["method"] == POOLED, ["level", "network"]] = [POOLED, "–"]
    columns = ["level", "network", "mAP", "spread", "class_mean", "chance", "loss_first", "loss", "steps", "n_seeds"]
    return rows[columns].reset_index(drop=True)


PAIRS = (
    *((f"{level}, {TRAINED}", f"{level}, {UNTRAINED}") for level in LEVELS),
    *(
        (f"{a}, {TRAINED}", f"{b}, {TRAINED}")
        for a, b in ((TOKEN, PIXELS), (TOKEN, FUSED), (FUSED, SHALLOW), (NUMBERS, TOKEN), (NUMBERS, CODE))
    ),
    *((f"{name}, {TRAINED}", POOLED) for name in (TOKEN, CODE)),
)
"""What is tested: each level trained against untrained, trained levels among them, and two against no network."""


def tests(by_level: Mapping[str, Sequence[Scored]], groups: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Paired tests of :data:`PAIRS` over patients and trainings."""
    return of_answers({"closed": by_level}, groups).tests(PAIRS, [TOP], seed=seed).drop(columns="rule")


LAYOUTS = {
    "table_open": markdown_table,
    "table_parts": parts.LAYOUT,
    "table_tests": paired.tests_layout(),
    "table_rates": rates_layout(),
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
