"""SupCon and HWC at values tuned on validation images: τ of one, α and γ of the other, for each fold by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import pandas as pd

from lib.losses.label_tree import BY_ROLE
from lib.papers.label_tree import experiment, names
from lib.papers.label_tree.experiment import Images, Scored
from lib.study.columns import Column, Layout
from lib.training.label_tree import Objective, Schedule
from lib.training.splits import Split

TUNED = {
    names.SUPCON: "SupCon, chosen τ",
    names.SUPCON_COSINE: "SupCon, cosine logits, chosen τ",
    names.AS_TOLD: "HWC, chosen α, γ",
    names.BY_COSINE: "HWC, cosine logits, chosen α, γ",
    names.NO_TREE: "HWC, ω by role, chosen α, γ",
    names.NO_TREE_COSINE: "HWC, cosine, ω by role, chosen α, γ",
}
"""What is trained at values of its own choice, and what it is called then."""
AT_THEIRS = {names.AS_TOLD: "HWC, ω by role, at HWC's α, γ", names.BY_COSINE: "HWC, cosine, ω by role, at HWC's α, γ"}
"""HWC without its tree, at the values that HWC has chosen."""
SIGNS = {"temperature": "τ", "alpha": "α", "gamma": "γ"}


@dataclass(frozen=True)
class Candidates:
    """What is tried: every τ of SupCon, every pair of α and γ of HWC."""

    temperatures: Sequence[float]
    alphas: Sequence[float]
    gammas: Sequence[float]

    def of(self, base: Objective) -> dict[str, list[Objective]]:
        """Name → objectives that differ from ``base`` in what is tuned."""
        kinds = names.objectives(base, 1.0, 1.0)
        tau = [{"temperature": value} for value in self.temperatures]
        weights = [{"alpha": alpha, "gamma": gamma} for alpha, gamma in product(self.alphas, self.gammas)]
        tried = {name: tau if name in (names.SUPCON, names.SUPCON_COSINE) else weights for name in TUNED}
        return {name: [replace(kinds[name + names.FLAT], **values) for values in row] for name, row in tried.items()}


def tune(
    seen: Images,
    base: Objective,
    candidates: Candidates,
    splits: Sequence[Split],
    schedule: Schedule,
    n_tried: int,
    seed: int,
) -> pd.DataFrame:
    """Every candidate on the validation images of each fold; n_tried: trainings of each split that try.

    Columns name, fold, temperature, alpha, gamma, hf1 and order (percent, means of trainings), and chosen: where the
    sum of both is highest, of equal ones the first. Not the middle one, as of rates: pairs lie in no order.
    """
    aside = [experiment.validation(seen, split, seed) for split in splits if split.repeat < n_tried]
    kinds = [(name, kind) for name, row in candidates.of(base).items() for kind in row]
    named = {f"{name}, τ = {kind.temperature:g}, α = {kind.alpha:g}, γ = {kind.gamma:g}": kind for name, kind in kinds}
    scores = experiment.run(seen, named, aside, schedule, what="choosing")
    lines = []
    for (name, kind), scored in zip(kinds, scores.values(), strict=True):
        values = {key: getattr(kind, key) for key in SIGNS}
        of_folds = pd.concat([part.values[["hf1", "order"]].assign(fold=part.split.fold) for part in scored])
        for fold, part in of_folds.groupby("fold"):
            means = part[["hf1", "order"]].mean()
            lines.append({"name": name, "fold": fold} | values | (100 * means).to_dict())
    table = pd.DataFrame(lines)
    score = table["hf1"] + table["order"].fillna(0)  # a flat tree has no order
    best = score.groupby([table["name"], table["fold"]]).idxmax()
    return table.assign(chosen=table.index.isin(best))


def trained(
    seen: Images, base: Objective, tried: pd.DataFrame, splits: Sequence[Split], schedule: Schedule
) -> dict[str, list[Scored]]:
    """What :func:`tune` chose, trained and measured: name → scores on each split, in their order.

    HWC without its tree is there twice: at α and γ of its own choice, and at those that HWC has chosen.
    """
    kinds, best = names.objectives(base, 1.0, 1.0), tried[tried["chosen"]].set_index(["name", "fold"])
    scores: dict[tuple[str, int, int], Scored] = {}
    for fold in dict.fromkeys(split.fold for split in splits):
        values = {name: best.loc[(name, fold), list(SIGNS)].to_dict() for name in TUNED}
        named = {title + names.FLAT: replace(kinds[name + names.FLAT], **values[name]) for name, title in TUNED.items()}
        without = {"constant": BY_ROLE}
        named |= {
            title + names.FLAT: replace(kinds[name + names.FLAT], **without, **values[name])
            for name, title in AT_THEIRS.items()
        }
        mine = [split for split in splits if split.fold == fold]
        for name, scored in experiment.run(seen, named, mine, schedule, what="chosen").items():
            scores |= {(name, fold, part.split.repeat): part for part in scored}
    titles = [name + names.FLAT for name in (*TUNED.values(), *AT_THEIRS.values())]
    return {name: [scores[name, split.fold, split.repeat] for split in splits] for name in titles}


def _by_fold(tried: pd.DataFrame) -> pd.DataFrame:
    """A row per name and fold: what was chosen, with its scores, and the lowest of each that was tried."""
    rows = []
    for (name, fold), part in tried.groupby(["name", "fold"], sort=False):
        best = part[part["chosen"]].iloc[0]
        keys = ["temperature"] if name in (names.SUPCON, names.SUPCON_COSINE) else ["alpha", "gamma"]
        ends = [SIGNS[key] for key in keys if best[key] in (part[key].min(), part[key].max())]
        texts = {"values": ", ".join(f"{SIGNS[key]} = {best[key]:g}" for key in keys), "ends": ", ".join(ends) or "–"}
        lowest = {f"{measure}_lowest": part[measure].min() for measure in ("hf1", "order")}
        rows.append({"method": TUNED[name], "number": fold + 1, "n": len(part)} | texts | best.to_dict() | lowest)
    return pd.DataFrame(rows)


LAYOUT = Layout(
    [
        Column("method"),
        Column("fold", "number", "0"),
        Column("tried", "n", "0"),
        Column("chosen", "values"),
        Column("at an end of what was tried", "ends"),
        Column("HF1", "hf1"),
        Column("PC-Order", "order"),
        Column("HF1, lowest tried", "hf1_lowest"),
        Column("PC-Order, lowest tried", "order_lowest"),
    ],
    by=(),
    prepare=_by_fold,
)
"""What :func:`tune` tried."""
