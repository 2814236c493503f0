"""Stem and network trained together, as in the paper, beside the same networks on the frozen stem."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pandas as pd
import torch

from lib.datasets.table import ImageTable
from lib.encoders import taps
from lib.papers.acir.ablations import experiment, parts, scores
from lib.papers.acir.ablations.experiment import Material
from lib.papers.acir.ablations.parts import CAUCHY, CNN, FULL, PRETRAINED, STRUCTURE, Row
from lib.papers.acir.ablations.scores import Scored
from lib.papers.acir.ablations.tables import chance, first, health, score
from lib.papers.acir.choices import of_classes
from lib.processes import spread
from lib.results.markdown import markdown_table
from lib.training.acir import Design, Job
from lib.training.acir_end_to_end import fit_end_to_end
from lib.training.hashing import Even
from lib.training.splits import Split, repeated

FROZEN, WHOLE = "stem frozen", "end to end"


@dataclass(frozen=True)
class Plan:
    """encoder: the stem. pixels: the side of what it sees. schedule: of both trainings. lr: of the stem."""

    encoder: str
    pixels: int
    schedule: Even
    lr: float


def candidates(design: Design) -> list[Row]:
    """Every loss of this notebook on the network that is left without its parts, and ACIR, which comes last."""
    plain = replace(design, pit=False, fusion=False, kan=False)
    losses = {"CSQ": "CSQ", "DCH": CAUCHY, "QSMIH": "QSMIH", f"{CNN} + L_WSC": STRUCTURE}
    others = [Row(name, plain, loss) for name, loss in losses.items()]
    return [*others, Row(FULL, design, STRUCTURE, content=True)]


def strongest(rows: Sequence[Row], tried: pd.DataFrame, n: int = 2) -> list[Row]:
    """The last of ``rows``, and before it the ``n`` others that patients set aside find best, at their chosen rates.

    tried: of :func:`.experiment.choose`, on the frozen stem. No query has a say in who is an opponent.
    """
    best = tried[tried["chosen"]].set_index("name")["validation"]
    names = set(best.loc[[row.rate for row in rows[:-1]]].nlargest(n).index)
    return [*(row for row in rows[:-1] if row.rate in names), rows[-1]]


def material(images: ImageTable, known: Material, plan: Plan) -> Material:
    """What the frozen stem makes of images of that size, for the same classes and fingerprints."""
    return replace(known, eyes={PRETRAINED: taps.extract(images, plan.encoder)}, schedule=plan.schedule)


def run(
    images: ImageTable,
    frozen: Material,
    plan: Plan,
    rows: Sequence[Row],
    rates: dict[str, float],
    alpha: float,
    split: Split,
    n_trainings: int,
) -> dict[str, list[Scored]]:
    """Every row trained ``n_trainings`` times on frozen maps and with the stem: "ACIR, end to end" and so on.

    frozen: of :func:`material`. The network learns at its rate of ``rates`` either way.
    """
    found = experiment.run(frozen, rows, rates, alpha, split, n_trainings, what=FROZEN)
    named = {f"{name}, {FROZEN}": [replace(one, name=f"{name}, {FROZEN}") for one in found[name]] for name in found}
    seen, several = taps.pixels(images, plan.encoder), list(repeated([split], n_trainings))
    keys = [(row, one) for row in rows for one in several]
    jobs = (joblib.delayed(_scored)(seen, frozen, plan, row, rates[row.rate], alpha, one) for row, one in keys)
    for one in spread(jobs, frozen.workers):
        named.setdefault(one.name, []).append(one)
    return named


def _scored(seen: np.ndarray, frozen: Material, plan: Plan, row: Row, lr: float, alpha: float, split: Split) -> Scored:
    torch.set_num_threads(1)  # so that the result does not depend on the processors
    labels, prints = frozen.labels, frozen.prints
    counted = of_classes(labels, split.train)
    loss = parts.losses(alpha, prints.shape[1], frozen.n_classes, row.design.bits, counted)[row.loss]
    name = f"{row.name}, {WHOLE}"
    job = Job(name, row.design, loss, lr, split.seed)
    given = seen, labels, prints, split.train, job, plan.schedule, plan.encoder, plan.pixels
    made = fit_end_to_end(*given, stem_lr=plan.lr, what=f"{name}, seed {split.seed}")
    h, levels = made.outputs(seen)
    values = scores.by_content(h, levels, labels, split) if row.content else scores.by_code(h, labels, split)
    return Scored(name, split.repeat, values, made.history, made.steps, experiment.parameters(made), h.shape[1] / 8)


def pairs(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What is tested: each row end to end against itself on the frozen stem, and the last one against the others.

    >>> pairs(candidates(Design(bits=16)))[-4:-2]
    [('ACIR, end to end', 'CSQ, end to end'), ('ACIR, end to end', 'DCH, end to end')]
    """
    names, last = [row.name for row in rows], rows[-1].name
    learnt = [(f"{name}, {WHOLE}", f"{name}, {FROZEN}") for name in names]
    return learnt + [(f"{last}, {WHOLE}", f"{name}, {WHOLE}") for name in names[:-1]]


def layout(table: pd.DataFrame) -> str:
    """A row of :func:`.scores.means` per method and stem as Markdown; parameters are those behind the stem."""
    lines = [
        {"method": row["name"], "mAP (maAP)": score(row), "min(k, R)": score(row, "_min"), "first answer": first(row)}
        | {name.replace("parameters", "parameters, without the stem's"): text for name, text in health(row).items()}
        for _, row in table.iterrows()
    ]
    return markdown_table(pd.DataFrame([*lines, {"method": "chance"} | chance(table, "mAP (maAP)")]).fillna("–"))
