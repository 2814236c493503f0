"""Networks of Tables 2, 4 and 5 on frozen maps: rates chosen on patients set aside, every row trained several times."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pandas as pd
import torch

from lib.datasets.table import ImageTable
from lib.encoders import taps, zoo
from lib.encoders.backbones import UNTRAINED as RANDOM
from lib.encoders.models import MODELS
from lib.encoders.taps import Taps
from lib.papers.acir.ablations import parts, scores
from lib.papers.acir.ablations.parts import Row
from lib.papers.acir.ablations.scores import Scored
from lib.papers.acir.choices import of_classes
from lib.papers.acir.hashing.experiment import TOP
from lib.processes import spread
from lib.results.rates import choose_middle
from lib.training import acir
from lib.training.acir import Job, Trained
from lib.training.hashing import Even
from lib.training.splits import Split, repeated


@dataclass(frozen=True, eq=False)
class Material:
    """What is learnt from: maps by eye (see :mod:`.parts`), classes (n,), fingerprints (n, p), and the schedule."""

    eyes: Mapping[str, Taps]
    labels: np.ndarray
    prints: np.ndarray
    schedule: Even
    workers: int = -1

    @property
    def n_classes(self) -> int:
        return int(self.labels.max()) + 1

    def seen(self, rows: Iterable[Row]) -> list[Row]:
        """Those of ``rows`` whose eye there is: without weights of a ViT its rows are left out."""
        return [row for row in rows if row.eye in self.eyes]


def token(features: np.ndarray) -> Taps:
    """Features (n, d) as maps of one pixel, so that they are trained like the others; the shallow map is empty."""
    return Taps(np.zeros((len(features), 1, 1, 1), np.float16), features[:, :, None, None].astype(np.float16))


def lacking(vit: str) -> str | None:
    """What the rows of a vision transformer say where its weights are not on this machine; None where they are."""
    how = zoo.wanting(vit) if vit in MODELS else None
    size = re.search(r"\(about [^)]+\)", how or "")
    return None if how is None else f"needs weights of {vit} {size[0] if size else ''}".strip()


def eyes(images: ImageTable, encoder: str, features: np.ndarray | None) -> dict[str, Taps]:
    """Maps of an encoder, of the same encoder untrained, and of a vision transformer's ``features: (n, d)``, if any."""
    found = {parts.PRETRAINED: taps.extract(images, encoder), parts.UNTRAINED: taps.extract(images, encoder + RANDOM)}
    return found if features is None else found | {parts.TOKEN: token(features)}


@dataclass(frozen=True)
class Setting:
    """A row as it is trained: at a learning rate, ACIR's losses with this α and form of L_Q."""

    row: Row
    lr: float
    alpha: float = 0.0
    quantisation: str = "ours"

    @property
    def network(self) -> "Setting":
        """What is trained for it: ranking by content trains nothing, α is ACIR's alone, and at 0 no form matters."""
        alpha = self.alpha if self.row.loss in parts.OURS else 0.0
        form = self.quantisation if alpha else "ours"
        return Setting(replace(self.row, name="", content=False, like=""), self.lr, alpha, form)


def trained(
    material: Material, settings: Sequence[Setting], splits: Sequence[Split], *, what: str = "networks"
) -> dict[tuple[Setting, int], Trained]:
    """The network of every setting for every split, of which the images that teach are the same.

    Keys: :attr:`Setting.network` and the split's repeat; settings that differ in nothing that is trained share one.
    """
    found, n = {}, material.prints.shape[1]
    counted = of_classes(material.labels, splits[0].train)
    own = dict.fromkeys(setting.network for setting in settings)
    for eye in dict.fromkeys(one.row.eye for one in own):
        keys = [(one, split) for one in own if one.row.eye == eye for split in splits]
        jobs = []
        for one, split in keys:
            known = parts.losses(one.alpha, n, material.n_classes, one.row.design.bits, counted, one.quantisation)
            jobs.append(
                Job(f"{one.row.loss}, {one.row.design}", one.row.design, known[one.row.loss], one.lr, split.seed)
            )
        given = [material.eyes[eye]], material.labels, material.prints, splits[0].train, jobs, material.schedule
        made = acir.fit(*given, workers=material.workers, what=what)
        found |= {(one, split.repeat): network for (one, split), network in zip(keys, made, strict=True)}
    return found


def scored(
    material: Material, settings: Sequence[Setting], splits: Sequence[Split], *, what: str = "networks"
) -> list[list[Scored]]:
    """What every setting finds in the closed gallery, trained on every split; a list over splits for each."""
    networks = trained(material, settings, splits, what=what)
    sharing: dict[Setting, list[int]] = {}
    for number, setting in enumerate(settings):
        sharing.setdefault(setting.network, []).append(number)
    keys = [(one, numbers, split) for one, numbers in sharing.items() for split in splits]
    jobs = (
        joblib.delayed(_asked)(
            networks[one, split.repeat],
            material.eyes[one.row.eye],
            material.labels,
            split,
            [settings[number].row for number in numbers],
        )
        for one, numbers, split in keys
    )
    found: list[list[Scored]] = [[] for _ in settings]
    for (_, numbers, _), several in zip(keys, spread(jobs, material.workers), strict=True):
        for number, one in zip(numbers, several, strict=True):
            found[number].append(one)
    return found


def _asked(one: Trained, seen: Taps, labels: np.ndarray, split: Split, rows: Sequence[Row]) -> list[Scored]:
    """What one network finds, ranked as each of the ``rows`` asks for."""
    torch.set_num_threads(1)  # as it was trained, so that the result does not depend on the processors
    h, levels = one.outputs(seen)
    health = one.history, one.steps, parameters(one), h.shape[1] / 8
    return [
        Scored(
            row.name,
            split.repeat,
            scores.by_content(h, levels, labels, split) if row.content else scores.by_code(h, labels, split),
            *health,
        )
        for row in rows
    ]


def run(
    material: Material,
    rows: Sequence[Row],
    rates: Mapping[str, float],
    alpha: float,
    split: Split,
    n_seeds: int,
    *,
    what: str = "networks",
) -> dict[str, list[Scored]]:
    """Every row trained ``n_seeds`` times at its rate (by :attr:`Row.rate`), ACIR's losses with ``alpha``."""
    settings = [Setting(row, rates[row.rate], alpha) for row in rows]
    found = scored(material, settings, repeated([split], n_seeds), what=what)
    return {row.name: several for row, several in zip(rows, found, strict=True)}


def choose(
    material: Material,
    rows: Sequence[Row],
    candidates: Sequence[float],
    aside: Split,
    n_seeds: int = 1,
    *,
    groups: np.ndarray | None = None,
) -> pd.DataFrame:
    """mAP (min(k, R)) of every row at every rate, mean of ``n_seeds`` trainings, on patients set aside and at α = 0.

    α = 0 is what the printed loss comes to (AC-4). groups: (n,) over which rates are paired. Columns name
    (:attr:`Row.rate`), lr, and those of :func:`lib.results.rates.choose_middle`.
    """
    own: dict[str, Row] = {}
    for row in rows:
        if row.rate == row.name or row.rate not in own:
            own[row.rate] = replace(row, content=False)
    settings = [Setting(row, lr) for row in own.values() for lr in candidates]
    values = _values(material, settings, aside, n_seeds, "learning rates")
    tried = pd.DataFrame({"name": [name for name in own for _ in candidates], "lr": [one.lr for one in settings]})
    return choose_middle(tried, values, None if groups is None else groups[aside.test], "name")


def choose_alpha(
    material: Material,
    row: Row,
    lr: float,
    alphas: Sequence[float],
    aside: Split,
    n_seeds: int = 1,
    *,
    groups: np.ndarray | None = None,
) -> pd.DataFrame:
    """The same for α of our L_Q: columns name, alpha, and those of the rule."""
    settings = [Setting(row, lr, alpha) for alpha in alphas]
    values = _values(material, settings, aside, n_seeds, "α")
    tried = pd.DataFrame({"name": row.name, "alpha": list(alphas)})
    return choose_middle(tried, values, None if groups is None else groups[aside.test], "name", ["alpha"])


def by_alpha(
    material: Material, row: Row, lr: float, alphas: Sequence[float], split: Split, n_seeds: int
) -> dict[tuple[str, float], list[Scored]]:
    """:data:`FULL` with each form of L_Q at each α: (form, α) → one per training.

    As printed and in the authors' code the term is a constant; these two are trained once, at the largest α, to see
    whether they end where α = 0 does (at 0 no form is another).
    """
    several, ends = repeated([split], n_seeds), {0.0, max(alphas)}
    keys = [("ours", alpha) for alpha in alphas]
    done = scored(material, [Setting(row, lr, alpha) for _, alpha in keys], several, what="α")
    found = dict(zip(keys, done, strict=True))
    keys = [(form, alpha) for form in ("printed", "code") for alpha in alphas if alpha in ends]
    settings = [Setting(row, lr, alpha, form) for form, alpha in keys]
    return found | dict(zip(keys, scored(material, settings, several[:1], what="α, other forms"), strict=True))


def longer(
    material: Material, rows: Sequence[Row], chosen: Mapping[str, float], alpha: float, split: Split, times: int
) -> dict[str, list[Scored]]:
    """``rows`` trained once for as many epochs as all others, and once for ``times`` as many; the epochs by name."""
    found = {}
    for epochs in (material.schedule.epochs, times * material.schedule.epochs):
        changed = replace(material, schedule=replace(material.schedule, epochs=epochs))
        done = run(changed, rows, chosen, alpha, split, 1, what=f"{epochs} epochs")
        found |= {f"{name}, {epochs} epochs": several for name, several in done.items()}
    return found


def _values(
    material: Material, settings: Sequence[Setting], aside: Split, n_seeds: int, what: str
) -> list[list[pd.Series]]:
    """AP (min(k, R), percent) of those who are asked by patients set aside, for each setting and training."""
    found = scored(material, settings, repeated([aside], n_seeds), what=what)
    return [[100 * one.per_query.values["ap_min", TOP] for one in several] for several in found]


def parameters(one: Trained) -> int:
    """How many numbers were trained for the code: without the shallow map's convolution where nothing reads it."""
    unused = one.network.narrow[0] if one.design.narrow and not one.design.fusion else None
    total = sum(value.numel() for value in one.network.parameters())
    return total - (sum(value.numel() for value in unused.parameters()) if unused is not None else 0)
