"""Fig. 2 and the plateau of section 5: objectives over temperatures, and HWC over α and γ."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import pandas as pd
from matplotlib.figure import Figure

from lib.figures.lines import lines, look
from lib.losses.label_tree import FORMS
from lib.papers.label_tree import names, questions
from lib.papers.label_tree.experiment import Images, Scored, run
from lib.papers.label_tree.questions import by_question
from lib.study import paired
from lib.study.columns import Column, Layout
from lib.training.label_tree import Objective, Schedule
from lib.training.splits import Split

DRAWN = (names.SUPCON, names.OUTSIDE, names.AS_PRINTED, names.AS_TOLD, names.BY_COSINE, names.MARGIN, names.BOTH)
"""The curves of Fig. 2: SupCon, weights outside of the softmax, HWC as printed and shifted; and, ours, with LAM."""
TITLES = {"hf1": "HF1", "violation": "Violations", "top1": "Top-1"}
LAYOUTS = {
    "table_rivals": paired.tests_layout(questions.NAMES),
    "table_best": Layout(
        [
            Column("method"),
            Column("own best τ", "temperature", "{:g}"),
            *(Column(title, measure) for measure, title in TITLES.items()),
        ]
    ),
}
Over = Mapping[tuple, Sequence[Scored]]
"""Method and τ, or form, α and γ → scores of each training."""


def over_temperatures(
    seen: Images,
    objectives: Mapping[str, Objective],
    splits: Sequence[Split],
    schedule: Schedule,
    temperatures: Sequence[float],
) -> Over:
    """Every objective of :data:`DRAWN`, and the constant ω, at every τ."""
    wanted = {name: objectives[name + names.FLAT] for name in (*DRAWN, names.CONSTANT)}
    tried = {(name, tau): replace(kind, temperature=tau) for name, kind in wanted.items() for tau in temperatures}
    scores = run(seen, {f"{name}, τ = {tau:g}": kind for (name, tau), kind in tried.items()}, splits, schedule)
    return dict(zip(tried, scores.values(), strict=True))


def over_weights(
    seen: Images,
    base: Objective,
    splits: Sequence[Split],
    schedule: Schedule,
    alphas: Sequence[float],
    gammas: Sequence[float],
    forms: Sequence[str] = FORMS[:3],
) -> Over:
    """HWC at every pair of α and γ, in three forms."""
    tried = {
        (form, alpha, gamma): replace(base, pairs="HWC", form=form, alpha=alpha, gamma=gamma)
        for form, alpha, gamma in product(forms, alphas, gammas)
    }
    kinds = {f"HWC {form}, α = {alpha:g}, γ = {gamma:g}": kind for (form, alpha, gamma), kind in tried.items()}
    return dict(zip(tried, run(seen, kinds, splits, schedule).values(), strict=True))


def rows(scores: Over, keys: Sequence[str]) -> pd.DataFrame:
    """A row per training: repeat, first_loss, loss, rim, steps, :data:`TITLES` (percent), and ``keys``."""
    table = [
        {"repeat": part.split.repeat, "first_loss": part.history[0], "loss": part.health.loss}
        | {"rim": part.health.rim, "steps": part.health.steps}
        | {measure: 100 * part.values[measure].mean() for measure in TITLES}
        | dict(zip(keys, place, strict=True))
        for place, scored in scores.items()
        for part in scored
    ]
    return pd.DataFrame(table)


OVER_TAU, OVER_WEIGHTS = ["method", "temperature"], ["form", "alpha", "gamma"]
"""What a row of a sweep is of."""


def best(rows: pd.DataFrame, keys: Sequence[str], *, with_violations: bool = False) -> pd.DataFrame:
    """Every method or form where its HF1, the mean of its trainings, is highest; of equal ones the first.

    rows: of :func:`rows`. keys: the method or form, and what was tried. with_violations: HF1 less violations.
    """
    means = rows.groupby(list(keys), sort=False)[[*TITLES, "loss"]].mean().reset_index()
    score = means["hf1"] - with_violations * means["violation"]
    return means.loc[score.groupby(means[keys[0]], sort=False).idxmax()].reset_index(drop=True)


def rivals(scores: Over, by_tau: pd.DataFrame, cells: Over, by_weight: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Each method at its own best τ, and each form at its best α and γ, against SupCon at its own τ.

    Paired over groups and trainings, each rival a question. The images are those that chose, so p is too small.
    """
    of_tau, of_weights = (
        best(rows, keys, with_violations=True)[keys].itertuples(index=False, name=None)
        for rows, keys in ((by_tau, OVER_TAU), (by_weight, OVER_WEIGHTS))
    )
    at_best = {name: scores[name, tau] for name, tau in of_tau} | {called(cell): cells[cell] for cell in of_weights}
    rival = {f"{name} against SupCon": [(name, names.SUPCON)] for name in at_best if name != names.SUPCON}
    return by_question(at_best, rival, seed)


def called(cell: tuple[str, float, float]) -> str:
    """What a form at one α and γ is called.

    >>> called(("shifted", 0.2, 1.0))
    'HWC at α = 0.2, γ = 1'
    """
    form, alpha, gamma = cell
    return f"{names.OF_FORM[form]} at α = {alpha:g}, γ = {gamma:g}"


def temperature_figure(by_tau: pd.DataFrame) -> Figure:
    """Fig. 2: HF1 and violations of every method against τ, bars over trainings."""
    return _figure(by_tau.rename(columns={"method": "line", "temperature": "x"}), "temperature τ (log scale)", log=True)


def weight_figure(by_weight: pd.DataFrame) -> Figure:
    """HF1 and violations over γ, a line for each form and α, bars over trainings."""
    titles = by_weight["form"].map(names.OF_FORM) + ", α = " + by_weight["alpha"].map("{:g}".format)
    return _figure(by_weight.assign(line=titles, x=by_weight["gamma"]), "γ (weighs negatives)")


def _figure(table: pd.DataFrame, xlabel: str, log: bool = False) -> Figure:
    titles = {"hf1": "HF1, higher is better", "violation": "violations, lower is better"}
    parts = []
    for measure, title in titles.items():
        means = table.groupby(["line", "x"], sort=False)[measure].agg(["mean", "std"]).reset_index()
        parts.append(means.rename(columns={"mean": "y", "std": "spread"}).assign(panel=title))
    looks = {names.SUPCON: look(0) | {"color": "black", "linewidth": 2}}
    options = {"log": log, "sharey": False, "looks": looks, "height": 4.2}
    return lines(pd.concat(parts), xlabel=xlabel, ylabel="percent", **options)
