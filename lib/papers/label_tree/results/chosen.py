"""SupCon and HWC at values chosen on validation images: τ of one, α and γ of the other, for each fold by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import pandas as pd

from lib.losses.label_tree import BY_ROLE
from lib.papers.label_tree import experiment
from lib.papers.label_tree.experiment import Images, Scored
from lib.papers.label_tree.names import (
    AS_TOLD,
    BY_COSINE,
    FLAT,
    NO_TREE,
    NO_TREE_COSINE,
    SUPCON,
    SUPCON_COSINE,
    objectives,
)
from lib.results.markdown import markdown_table, percent
from lib.training.label_tree import Objective, Schedule
from lib.training.splits import Split

CHOSEN = {
    SUPCON: "SupCon, chosen τ",
    SUPCON_COSINE: "SupCon, cosine logits, chosen τ",
    AS_TOLD: "HWC, chosen α, γ",
    BY_COSINE: "HWC, cosine logits, chosen α, γ",
    NO_TREE: "HWC, ω by role, chosen α, γ",
    NO_TREE_COSINE: "HWC, cosine, ω by role, chosen α, γ",
}
"""What is trained at values of its own choice, and what it is called then."""
AT_THEIRS = {AS_TOLD: "HWC, chosen α, γ, ω by role", BY_COSINE: "HWC, cosine, chosen α, γ, ω by role"}
"""HWC without its tree, at the values that HWC has chosen."""


@dataclass(frozen=True)
class Candidates:
    """What is tried: every τ of SupCon, every pair of α and γ of HWC."""

    temperatures: Sequence[float]
    alphas: Sequence[float]
    gammas: Sequence[float]

    def of(self, base: Objective) -> dict[str, list[Objective]]:
        """Name → objectives that differ from ``base`` in what is chosen."""
        kinds = objectives(base, 1.0, 1.0)
        tau = [{"temperature": value} for value in self.temperatures]
        weights = [{"alpha": alpha, "gamma": gamma} for alpha, gamma in product(self.alphas, self.gammas)]
        tried = {name: tau if name in (SUPCON, SUPCON_COSINE) else weights for name in CHOSEN}
        return {name: [replace(kinds[name + FLAT], **one) for one in several] for name, several in tried.items()}


def tried(
    seen: Images,
    base: Objective,
    candidates: Candidates,
    several: Sequence[Split],
    schedule: Schedule,
    n_tried: int,
    seed: int,
) -> pd.DataFrame:
    """Every candidate on the validation images of each fold, a third of the groups that it learns from.

    n_tried: how many of the trainings of each split try. Columns name, fold, temperature, alpha, gamma, hf1 and order
    (percent, means of trainings), and chosen: where the sum of both is highest, of equal ones the first. Not
    the middle one, as of rates: pairs of α and γ lie in no order.
    """
    splits = [experiment.validation(seen, split, seed) for split in several if split.repeat < n_tried]
    kinds = [(name, one) for name, all_of in candidates.of(base).items() for one in all_of]
    named = {f"{name}, τ = {one.temperature:g}, α = {one.alpha:g}, γ = {one.gamma:g}": one for name, one in kinds}
    found = experiment.run(seen, named, splits, schedule, what="choosing")
    lines = []
    for (name, one), scored in zip(kinds, found.values(), strict=True):
        values = {key: getattr(one, key) for key in ("temperature", "alpha", "gamma")}
        for fold in sorted({each.split.fold for each in scored}):
            means = pd.concat([each.values[["hf1", "order"]] for each in scored if each.split.fold == fold]).mean()
            lines.append({"name": name, "fold": fold} | values | (100 * means).to_dict())
    table = pd.DataFrame(lines)
    score = table["hf1"] + table["order"].fillna(0)  # a flat tree has no order
    best = score.groupby([table["name"], table["fold"]]).idxmax()
    return table.assign(chosen=table.index.isin(best))


def trained(
    seen: Images, base: Objective, table: pd.DataFrame, several: Sequence[Split], schedule: Schedule
) -> dict[str, list[Scored]]:
    """What was chosen, of :func:`tried`, trained and measured: name → one per split, in their order.

    HWC without its tree is there twice: at α and γ of its own choice, and at those that HWC has chosen.
    """
    kinds, best = objectives(base, 1.0, 1.0), table[table["chosen"]].set_index(["name", "fold"])
    found: dict[tuple[str, int, int], Scored] = {}
    for fold in dict.fromkeys(split.fold for split in several):
        mine = [split for split in several if split.fold == fold]
        values = {name: best.loc[(name, fold), ["temperature", "alpha", "gamma"]].to_dict() for name in CHOSEN}
        named = {title + FLAT: replace(kinds[name + FLAT], **values[name]) for name, title in CHOSEN.items()}
        named |= {
            title + FLAT: replace(kinds[name + FLAT], constant=BY_ROLE, **values[name])
            for name, title in AT_THEIRS.items()
        }
        for name, scored in experiment.run(seen, named, mine, schedule, what="chosen").items():
            found |= {(name, fold, one.split.repeat): one for one in scored}
    names = [name + FLAT for name in (*CHOSEN.values(), *AT_THEIRS.values())]
    return {name: [found[name, split.fold, split.repeat] for split in several] for name in names}


def layout(table: pd.DataFrame) -> str:
    """What was chosen in each fold, with its scores, and the lowest of each that was tried, as Markdown."""
    lines = []
    for (name, fold), part in table.groupby(["name", "fold"], sort=False):
        one = part[part["chosen"]].iloc[0]
        values = ["temperature"] if name in (SUPCON, SUPCON_COSINE) else ["alpha", "gamma"]
        ends = [SIGNS[key] for key in values if one[key] in (part[key].min(), part[key].max())]
        lines.append(
            {"method": CHOSEN[name], "fold": fold + 1, "tried": len(part)}
            | {"chosen": ", ".join(f"{SIGNS[key]} = {one[key]:g}" for key in values)}
            | {"at an end of what was tried": ", ".join(ends) or "–"}
            | {title: percent(one[key]) for key, title in MEASURES.items()}
            | {f"{title}, lowest tried": percent(part[key].min()) for key, title in MEASURES.items()}
        )
    return markdown_table(pd.DataFrame(lines))


SIGNS = {"temperature": "τ", "alpha": "α", "gamma": "γ"}
MEASURES = {"hf1": "HF1", "order": "PC-Order"}
