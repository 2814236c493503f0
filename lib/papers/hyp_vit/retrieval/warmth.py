"""Is it the curvature, or a temperature or rate? Hyp and Sph at one τ and rate, and each at those chosen for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from lib.papers.hyp_vit.names import END, FLAT, HYP, LEARNT, ONE, SPH, UNCLIPPED
from lib.papers.hyp_vit.retrieval.end_to_end import EndToEnd
from lib.papers.hyp_vit.retrieval.figures import PLACES
from lib.results import paired
from lib.results.markdown import markdown_table, percent, points
from lib.results.rates import best_rates
from lib.training.hyp_vit import Settings, flat, warmed

QUESTION = "temperature or curvature?"


def kinds(settings: Settings, temperatures: Sequence[float]) -> dict[str, Settings]:
    """What is trained beside Hyp and Sph where temperatures are tried: the flat head, clipped."""
    return {FLAT: flat(settings)} if temperatures else {}


def shorter(several: Sequence[tuple], steps: int) -> list[tuple]:
    """Plans of :func:`.networks.plans` of so many steps, which look at no unseen images; 0 leaves them as they are."""

    def cut(plan: EndToEnd) -> EndToEnd:
        return replace(plan, settings=replace(plan.settings, steps=steps), unseen=False) if steps else plan

    return [(of_one, cut(plan)) for of_one, plan in several]


def at_chosen(several: Sequence[tuple], tried: pd.DataFrame) -> list[tuple]:
    """The plans with every kind at its own τ, and of the first network Sph at that of Hyp as well.

    tried: of :func:`.networks.rates`; where it knows no temperature, all is as it was.
    """
    if "temperature" not in tried:
        return list(several)
    own = best_rates(tried, value="temperature")
    first, *others = [({name: warmed(kind, own[name]) for name, kind in of.items()}, plan) for of, plan in several]
    return [(first[0] | {ONE: warmed(first[0][SPH], own[HYP])}, first[1]), *others]


def variants(several: Sequence[tuple]) -> list[tuple]:
    """Hyp of the first network at its own τ, not clipped, and with a c that learns along."""
    of, plan = several[0]
    return [({UNCLIPPED: replace(of[HYP], clip_radius=None), LEARNT: replace(of[HYP], learn_c=True)}, plan)]


def rates(tried: pd.DataFrame) -> dict[str, float]:
    """Kind → its chosen rate of the encoder; Sph at Hyp's τ and the variants have that of Hyp."""
    own = best_rates(tried)
    if "temperature" not in tried:
        return own
    return own | dict.fromkeys((ONE, UNCLIPPED, LEARNT), own[HYP])


def named(tried: pd.DataFrame) -> pd.DataFrame:
    """``tried`` with τ behind the names, so that a table of rates has a row for each."""
    if "temperature" not in tried:
        return tried
    return tried.assign(method=tried["method"] + ", τ = " + tried["temperature"].map("{:g}".format))


def says(tried: pd.DataFrame) -> str:
    """Which τ each kind chose, as a sentence for captions; empty where none was tried."""
    own = best_rates(tried, value="temperature") if "temperature" in tried else {}
    return f" τ: {', '.join(f'{name} {it:g}' for name, it in own.items())}." if own else ""


def edges(tried: pd.DataFrame) -> list[str]:
    """Which kinds chose the least or the largest τ that was tried."""
    if "temperature" not in tried:
        return []
    ends = tried["temperature"].min(), tried["temperature"].max()
    own = best_rates(tried, value="temperature")
    told = "; ".join(f"{name} ({it:g})" for name, it in own.items() if it in ends)
    return [f"τ at an end of what was tried, beyond which there may be a better one: {told}"] if told else []


def verdicts(tests: pd.DataFrame, tried: pd.DataFrame) -> pd.DataFrame:
    """Of head and encoder, what Hyp gains at one τ and rate, and what is left where Sph has its own; and the verdict.

    tests: of :func:`.comparisons.tests` at one K. Columns place, k, tau_hyp, tau_sph, rate_hyp, rate_sph, at_one,
    at_own (differences, points), p_one, p_own (Holm), verdict.
    """
    taus, rate = best_rates(tried, value="temperature"), best_rates(tried)
    asked = tests[(tests["question"] == QUESTION) & (tests["k"] == tests["k"].min())]
    of = {(test.first, test.second): test for test in asked.itertuples()}
    rows = []
    for place in PLACES:
        one, own = (of[f"{HYP}{END}{place}", f"{name}{END}{place}"] for name in (ONE, SPH))
        row = {"place": place, "k": one.k, "tau_hyp": taus[HYP], "tau_sph": taus[SPH], "rate_hyp": rate[HYP]}
        row |= {"rate_sph": rate[SPH], "at_one": one.difference, "at_own": own.difference}
        row |= {"p_one": one.p_holm, "p_own": own.p_holm}
        rows.append(row | {"verdict": _verdict(one, own, row)})
    return pd.DataFrame(rows)


def _verdict(one: Any, own: Any, row: Mapping[str, float]) -> str:
    """What two tests of Hyp against Sph say together: both at the τ and rate of Hyp, and each at its own.

    >>> from types import SimpleNamespace as Test
    >>> test = {"difference": 2.0, "p_holm": 0.01, "p_floor": 0.002, "n_units": 10, "n_tests": 2}
    >>> row = {"tau_hyp": 0.2, "tau_sph": 0.1, "rate_hyp": 3e-5, "rate_sph": 3e-5}
    >>> _verdict(Test(**test), Test(**test), row)
    'ahead, also of Sph at its own: the temperature does not explain the lead'
    >>> _verdict(Test(**test), Test(**test | {"difference": 0.5, "p_holm": 0.4}), row)
    'ahead; with Sph at its own no lead is clear: it is the temperature, and not the curvature'
    """
    at_one, at_own = paired.relation(one), paired.relation(own)
    better, worse = paired.CLEAR
    differ = {"temperature": row["tau_hyp"] != row["tau_sph"], "rate": row["rate_hyp"] != row["rate_sph"]}
    what = " or the ".join(name for name, apart in differ.items() if apart)
    if not what:
        told = "ahead" if at_one == better else "no lead is clear"
        return f"{told}; both chose the same τ and rate, which explain nothing"
    if at_one == better and at_own == better:
        return f"ahead, also of Sph at its own: the {what} does not explain the lead"
    if at_one == better and own.difference > one.difference / 2:
        return "ahead; with Sph at its own no lead is clear, but most of it is left: it cannot be told"
    if at_one == better:
        end = "Sph is ahead" if at_own == worse else "no lead is clear"
        return f"ahead; with Sph at its own {end}: it is the {what}, and not the curvature"
    if at_own == worse:
        return "no lead, and Sph at its own is ahead: nothing speaks for the curvature"
    return f"no lead is clear, so that there is none for a {what} to explain"


def layout(rows: pd.DataFrame) -> str:
    """:func:`verdicts` as Markdown."""
    columns = {"place": "searched by", "tau_hyp": "τ of Hyp", "rate_hyp": "rate of Hyp", "tau_sph": "τ of Sph"}
    shown = rows[[*columns]].rename(columns=columns).assign(**{"rate of Sph": rows["rate_sph"].map("{:g}".format)})
    shown["rate of Hyp"] = rows["rate_hyp"].map("{:g}".format)
    for column, title in {"one": "Hyp − Sph, both at Hyp's", "own": "Hyp − Sph, each at its own"}.items():
        pairs = zip(rows[f"at_{column}"], rows[f"p_{column}"], strict=True)
        shown[title] = [f"{points(gain)}" + ("" if np.isnan(p) else f" (p {p:.3f})") for gain, p in pairs]
    return markdown_table(shown.assign(verdict=rows["verdict"]))


def steps(course: pd.DataFrame) -> pd.DataFrame:
    """Recall@1 of unseen categories at fixed steps, and at the step that validation picks; c where it is learnt.

    course: of :func:`.end_to_end.end_to_end` with unseen images. Columns method, place, at ("25", or "chosen"), ours
    (mean, percent; of place "c" the curvature), spread (over trainings) and n_seeds.
    """
    looked = course.dropna(subset=["head"])
    best = looked.loc[looked.groupby(["method", "repeat"], sort=False)["head"].idxmax()].assign(at="chosen")
    both = pd.concat([looked.assign(at=looked["step"].map("{:.0f}".format)), best])
    values = {place: f"unseen_{place}" for place in PLACES} | ({"c": "c"} if "c" in course else {})
    frames = [
        both.dropna(subset=column)
        .groupby(["method", "at"], sort=False)[column]
        .agg(ours="mean", spread="std", n_seeds="size")
        .reset_index()
        .assign(place=place)
        for place, column in values.items()
    ]
    return pd.concat(frames, ignore_index=True)[["method", "place", "at", "ours", "spread", "n_seeds"]]


def steps_layout(rows: pd.DataFrame) -> str:
    """:func:`steps` as Markdown, a row for each method and place."""
    shown = rows.assign(
        cell=[f"{row.ours:.3f}" if row.place == "c" else percent(row.ours) for row in rows.itertuples()],
        method=rows["method"].str.removesuffix(END.rstrip(", ")),
    )
    order = [one for one in dict.fromkeys(shown["at"]) if one != "chosen"] + ["chosen"]
    wide = shown.pivot_table(index=["method", "place"], columns="at", values="cell", aggfunc="first", sort=False)
    wide = wide[order].rename(columns={"chosen": "at the chosen step"} | {at: f"step {at}" for at in order[:-1]})
    return markdown_table(wide.fillna("–").reset_index())
