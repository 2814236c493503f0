"""What the whole network has to beat: one linear layer, and features that are no codes at all."""

from collections.abc import Sequence

import numpy as np

from lib.encoders.taps import pooled
from lib.papers.acir.ablations import parts, scores
from lib.papers.acir.ablations.experiment import Material, Setting, trained
from lib.papers.acir.ablations.parts import CAUCHY, PRETRAINED, STRUCTURE, Row
from lib.papers.acir.ablations.scores import Scored
from lib.papers.acir.choices import of_classes
from lib.papers.acir.hashing import experiment as heads
from lib.papers.acir.hashing.experiment import TOP
from lib.training.methods import Fitted
from lib.training.splits import Split, repeated

FLOAT = 4
"""Bytes of a float32."""


def layers(
    material: Material,
    bits: int,
    candidates: Sequence[float],
    aside: Split,
    split: Split,
    n_seeds: int,
    alpha: float,
    n_choosing: int = 1,
) -> dict[str, list[Scored]]:
    """:data:`lib.papers.acir.ablations.parts.LAYER` with the Cauchy loss and with L_WSC, ACIR's α given.

    Its rate is chosen among ``candidates`` on patients set aside, by ``n_choosing`` trainings. Adam trains it, without
    warm-up, as in notebook 31.
    """
    x, n = np.concatenate([pooled(material.eyes[PRETRAINED]), material.prints], axis=1), material.prints.shape[1]
    plan = heads.Plan(x.shape[1] - n, n, material.n_classes, material.schedule)
    tries, known = (
        parts.losses(alpha, n, material.n_classes, bits, of_classes(material.labels, one.train))
        for one in (aside, split)
    )
    found = {}
    for name in (CAUCHY, STRUCTURE):
        methods = {lr: plan.method(f"{name} {lr:g}", tries[name], bits, lr) for lr in candidates}
        tried = heads.fitted(x, material.labels, list(methods.values()), aside, n_choosing, workers=material.workers)
        values = {lr: _value(tried[method.name], x, material.labels) for lr, method in methods.items()}
        best = plan.method(name, known[name], bits, max(values, key=values.get))
        (several,) = heads.fitted(x, material.labels, [best], split, n_seeds, workers=material.workers).values()
        size = sum(value.numel() for value in several[0].network.layers.parameters())
        found[parts.layer(name)] = [
            Scored(
                parts.layer(name),
                one.split.repeat,
                scores.by_code(one.embed(x).numpy(), material.labels, one.split),
                one.history,
                one.health.steps,
                size,
                bits / 8,
            )
            for one in several
        ]
    return found


def _value(several: Sequence[Fitted], x: np.ndarray, labels: np.ndarray) -> float:
    found = [scores.by_code(one.embed(x).numpy(), labels, one.split).values["ap_min", TOP].mean() for one in several]
    return float(np.mean(found))


def floats(
    material: Material, features: np.ndarray, row: Row, lr: float, alpha: float, split: Split, n_seeds: int
) -> dict[str, list[Scored]]:
    """What is not compressed, ranked by cosine: the encoder's feature, the pooled map, and what ACIR makes its code of.

    features: (n, d) of the encoder; row: ACIR, as trained for its codes. Sizes are those of float32.
    """
    plain = {f"feature of the encoder, {features.shape[1]} numbers": features}
    deep = pooled(material.eyes[PRETRAINED])
    plain[f"pooled deep map, {deep.shape[1]} numbers"] = deep
    found = {
        name: [Scored(name, 0, scores.by_cosine(x, material.labels, split), size=FLOAT * x.shape[1])]
        for name, x in plain.items()
    }
    several = repeated([split], n_seeds)
    setting = Setting(row, lr, alpha)
    networks = trained(material, [setting], several)
    for one in several:
        network = networks[setting.network, one.repeat]
        levels = np.concatenate(network.outputs(material.eyes[PRETRAINED]).levels[1:], axis=1)
        name = f"what {parts.FULL} makes its code of, {levels.shape[1]} numbers"
        health = {"history": network.history, "steps": network.steps, "size": FLOAT * levels.shape[1]}
        done = Scored(name, one.repeat, scores.by_cosine(levels, material.labels, one), **health)
        found.setdefault(name, []).append(done)
    return found
