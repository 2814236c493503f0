"""Objectives over temperatures, and HWC over α and γ, as rows and in words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from lib.losses.label_tree import FORMS
from lib.papers.label_tree.experiment import Images, Scored, run
from lib.papers.label_tree.names import (
    AS_PRINTED,
    AS_TOLD,
    BOTH,
    BY_COSINE,
    CONSTANT,
    FLAT,
    MARGIN,
    OF_FORM,
    OUTSIDE,
    SUPCON,
)
from lib.papers.label_tree.results.comparisons import tests
from lib.results.markdown import markdown_table, percent
from lib.training.label_tree import Objective, Schedule
from lib.training.splits import Split

DRAWN = (SUPCON, OUTSIDE, AS_PRINTED, AS_TOLD, BY_COSINE, MARGIN, BOTH)
"""The curves of Fig. 2: SupCon, weights outside of the softmax, HWC as printed and as told; and, ours, with LAM."""
MEASURES = ("hf1", "violation", "top1")


Found = Mapping[tuple[str, float], Sequence[Scored]]
"""Method and τ → one per training."""


def trained(
    seen: Images,
    objectives: Mapping[str, Objective],
    several: Sequence[Split],
    schedule: Schedule,
    candidates: Sequence[float],
) -> Found:
    """Every objective of :data:`DRAWN`, and the constant ω, at every τ."""
    wanted = {name: objectives[name + FLAT] for name in (*DRAWN, CONSTANT)}
    tried = {(name, tau): replace(one, temperature=tau) for name, one in wanted.items() for tau in candidates}
    found = run(seen, {f"{name}, τ = {tau:g}": one for (name, tau), one in tried.items()}, several, schedule)
    return dict(zip(tried, found.values(), strict=True))


def temperatures(found: Found) -> pd.DataFrame:
    """What :func:`trained` gave: columns method, temperature, repeat, hf1, violation, top1, rim (percent), first_loss,
    loss, steps.
    """
    parts = [_rows(scored).assign(method=name, temperature=tau) for (name, tau), scored in found.items()]
    return pd.concat(parts, ignore_index=True)


Cells = Mapping[tuple[str, float, float], Sequence[Scored]]
"""Form, α and γ → one per training."""


def at_weights(
    seen: Images,
    base: Objective,
    several: Sequence[Split],
    schedule: Schedule,
    alphas: Sequence[float],
    gammas: Sequence[float],
    forms: Sequence[str] = FORMS[:3],
) -> Cells:
    """HWC at every pair of α and γ, in several forms."""
    tried = {
        (form, alpha, gamma): replace(base, pairs="HWC", form=form, alpha=alpha, gamma=gamma)
        for form in forms
        for alpha in alphas
        for gamma in gammas
    }
    names = {f"HWC {form}, α = {alpha:g}, γ = {gamma:g}": one for (form, alpha, gamma), one in tried.items()}
    return dict(zip(tried, run(seen, names, several, schedule).values(), strict=True))


def weights(found: Cells) -> pd.DataFrame:
    """What :func:`at_weights` gave: columns form, alpha, gamma, else as :func:`temperatures`."""
    parts = [
        _rows(scored).assign(form=form, alpha=alpha, gamma=gamma) for (form, alpha, gamma), scored in found.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _rows(several: Sequence[Scored]) -> pd.DataFrame:
    lines = [
        {"repeat": one.split.repeat, "first_loss": one.history[0], "loss": one.health.loss}
        | {"rim": one.health.rim, "steps": one.health.steps}
        | {measure: 100 * one.values[measure].mean() for measure in MEASURES}
        for one in several
    ]
    return pd.DataFrame(lines)


def rivals(found: Found, rows: pd.DataFrame, cells: Cells, by_weight: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Each method at its own best τ, and each form at its best α and γ, against SupCon at its own τ.

    The best has the highest HF1 less violations. Paired over groups and trainings; rows as
    :func:`lib.papers.label_tree.results.comparisons.tests`, each rival a question. The images are those that chose, so
    p is too small.
    """
    of_best = best(rows, with_violations=True).set_index("method")["temperature"]
    chosen = {name: found[name, of_best[name]] for name in of_best.index}
    chosen |= {called(key): cells[key] for key in best_cells(by_weight)}
    return tests(chosen, {f"{name} against SupCon": [(name, SUPCON)] for name in chosen if name != SUPCON}, seed)


def called(cell: tuple[str, float, float]) -> str:
    """What a form at one α and γ is called.

    >>> called(("shifted", 0.2, 1.0))
    'HWC at α = 0.2, γ = 1'
    """
    form, alpha, gamma = cell
    return f"{OF_FORM[form]} at α = {alpha:g}, γ = {gamma:g}"


def best_cells(by_weight: pd.DataFrame) -> list[tuple[str, float, float]]:
    """Of every form the α and γ with the highest HF1 less violations, means of trainings; of equal ones the first."""
    means = by_weight.groupby(["form", "alpha", "gamma"], sort=False)[["hf1", "violation"]].mean()
    score = means["hf1"] - means["violation"]
    return list(score.groupby("form", sort=False).idxmax())


def health(rows: pd.DataFrame) -> list[str]:
    """Whether the trainings of Fig. 2, or of the weights, have come anywhere: losses, points at the rim, steps."""
    fell = int((rows["loss"] < rows["first_loss"]).sum())
    rim = rows["rim"].max()
    return [
        f"the loss fell in {fell} of {len(rows)} trainings of {rows['steps'].max()} steps, by "
        f"{(1 - rows['loss'] / rows['first_loss']).median():.0%} at the median; points at the rim, worst training: "
        + ("none, on the sphere there is no rim" if np.isnan(rim) else f"{rim:.1f} %")
    ]


def best(rows: pd.DataFrame, *, with_violations: bool = False) -> pd.DataFrame:
    """Every method at the τ where its HF1, the mean of its trainings, is highest; of equal ones the first.

    with_violations: HF1 less violations, as in :func:`best_cells`.
    """
    means = rows.groupby(["method", "temperature"], sort=False)[[*MEASURES, "loss"]].mean().reset_index()
    score = means["hf1"] - with_violations * means["violation"]
    return means.loc[score.groupby(means["method"], sort=False).idxmax()].reset_index(drop=True)


def best_layout(rows: pd.DataFrame) -> str:
    """The same as Markdown, and beside it what each method has at SupCon's τ*."""
    of_best = best(rows)
    star = float(of_best.loc[of_best["method"] == SUPCON, "temperature"].iloc[0])
    at_star = rows[rows["temperature"] == star].groupby("method")[list(MEASURES)].mean()
    lines = [
        {"method": one.method, "own best τ": f"{one.temperature:g}", "HF1": percent(one.hf1)}
        | {"Violations": percent(one.violation), "Top-1": percent(one.top1)}
        | {f"HF1 at τ* = {star:g}": percent(at_star.loc[one.method, "hf1"])}
        | {f"Violations at τ* = {star:g}": percent(at_star.loc[one.method, "violation"])}
        for one in of_best.itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def sentences(rows: pd.DataFrame) -> list[str]:
    """What section 4.6 says of Fig. 2, counted: at how many τ HWC is above SupCon and outside weights are beside it."""
    means = rows.groupby(["method", "temperature"])[list(MEASURES)].mean()
    taus = sorted(rows["temperature"].unique())
    spread = rows.groupby(["method", "temperature"])["hf1"].std().mean()
    lines = []
    for name in (AS_PRINTED, AS_TOLD, BY_COSINE, OUTSIDE, CONSTANT, MARGIN, BOTH):
        if name not in means.index:
            continue
        gains = {m: means.loc[name][m] - means.loc[SUPCON][m] for m in ("hf1", "violation")}
        higher, fewer = int((gains["hf1"] > 0).sum()), int((gains["violation"] < 0).sum())
        far = gains["hf1"].abs().max()
        lines.append(
            f"{name}: HF1 above SupCon at {higher} of {len(taus)} τ, fewer violations at {fewer}; "
            f"HF1 differs by {far:.2f} points at most"
        )
    return [*lines, f"standard deviation of HF1 over trainings, on average: {spread:.2f} points"]


def answer(rows: pd.DataFrame) -> str:
    """Is HWC more than another temperature: each form, and LAM, at its own best τ, beside SupCon at its own."""
    of_best = best(rows).set_index("method")
    table, ends = of_best["hf1"], rows["temperature"].agg(["min", "max"])
    beyond = [name for name, tau in of_best["temperature"].items() if tau in ends.values]
    spread = rows.groupby(["method", "temperature"])["hf1"].std().mean()
    forms = [name for name in (AS_PRINTED, AS_TOLD, BY_COSINE, CONSTANT, MARGIN, BOTH) if name in table]
    told = "; ".join(f"{name}: {table[name]:.2f}" for name in forms)
    said = f"HF1 at each one's own best τ: SupCon: {table[SUPCON]:.2f}; {told}. Spread of trainings: {spread:.2f}"
    return said + (f". Best at an end of the τ tried, so it may lie beyond: {', '.join(beyond)}" if beyond else "")


def rival_values(rows: pd.DataFrame) -> str:
    """The τ of each method in :func:`rivals`."""
    of_best = best(rows, with_violations=True).set_index("method")["temperature"]
    return "τ with the highest HF1 less violations: " + ", ".join(f"{name}: {tau:g}" for name, tau in of_best.items())


def beside(rows: pd.DataFrame, temperature: float) -> str:
    """What SupCon has at the τ of another figure; nothing where it was not trained there."""
    there = rows[(rows["method"] == SUPCON) & (rows["temperature"] == temperature)]
    if there.empty:
        return ""
    return f"SupCon at this τ: HF1 {there['hf1'].mean():.1f}, violations {there['violation'].mean():.1f}."


def plateau(rows: pd.DataFrame, low: float = 0.2, high: float = 1.0) -> list[str]:
    """Is there a plateau? The range of HF1 and violations over the α and γ of Section 3.4, and whether they differ.

    p: analysis of variance, the cells against the trainings in them, times the number of tests.
    """
    lines, n_tests = [], 2 * rows["form"].nunique()
    for form, part in rows.groupby("form", sort=False):
        inside = part[part[["alpha", "gamma"]].apply(lambda x: x.between(low, high)).all(axis=1)]
        cells = inside.groupby(["alpha", "gamma"])[["hf1", "violation"]]
        means = cells.mean()
        width = means.max() - means.min()
        raw = {m: stats.f_oneway(*(cell[m] for _, cell in cells)).pvalue for m in ("hf1", "violation")}
        p_of = {m: min(1.0, n_tests * p) for m, p in raw.items()}
        few = f"not clear with {cells.size().min()} trainings"
        spread = cells.std().mean()
        verdict = "cells differ" if min(p_of.values()) <= 0.05 else few
        alpha, gamma = means["violation"].idxmin()
        lines.append(
            f"{OF_FORM[form]}: for α and γ from {low:g} to {high:g}, HF1 lies within {width['hf1']:.2f} points and "
            f"violations within {width['violation']:.2f} (standard deviation of trainings {spread['hf1']:.2f} and "
            f"{spread['violation']:.2f}); p = {p_of['hf1']:.2g} and {p_of['violation']:.2g}, corrected for {n_tests} "
            f"tests: {verdict}; fewest violations at α = {alpha:g}, γ = {gamma:g}"
        )
    return lines


def grid(rows: pd.DataFrame, form: str, measure: str) -> np.ndarray:
    """(alphas, gammas) means of a measure."""
    part = rows[rows["form"] == form]
    return part.groupby(["alpha", "gamma"])[measure].mean().unstack().to_numpy()
