"""The mapper beside its opponents, trained several times, and one patient left out as pathology reports it."""

from dataclasses import replace

import pandas as pd

from lib.papers.hyper_dino.recipes import RAW
from lib.papers.hyper_dino.retrieval import figures
from lib.results import answers
from lib.results.shown import Figure, Table
from lib.results.store import Run
from lib.training import classifier
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings, flat
from lib.training.methods import Method
from lib.training.recipes import Recipe

RARE = (
    "Macro F1 can be far below MAP@1: a rare class counts as much as a frequent one, and where it is hardly ever "
    "answered its F1 is near 0. Who is ahead was not tested: a macro F1 is one number, which groups have no share of."
)
"""Why two measures of one search can be far apart, and what is not tested."""


def methods(
    dim: int,
    longest: int,
    dim_out: int,
    classes: int,
    settings: Settings,
    schedule: Schedule,
    classifier_lr: float,
) -> list[Method]:
    """Hyper-DINO(PCA, dim_out), first, and what it is compared with: the methods on which sentences rest.

    No head: raw features by cosine, and the head's own input; labels in a linear classifier that sees the head's
    input, searched by its logits and by its class probabilities; and the head in flat space, its margin halved (HD-8).
    Labels without a head, NCA, stand in :mod:`.nca`, as each fold has its own.

    Args:
        dim: length of the feature.
        longest: number of principal components that go into a head.
        dim_out: embedding length, at most ``longest``.
        classes: number of classes.
        settings, schedule: of every head; the classifier has the schedule alone.
        classifier_lr: its learning rate.

    >>> [method.name for method in methods(1280, 384, 32, 8, Settings(), Schedule(), 0.01)][:3]
    ['Hyper-DINO(PCA(384), 32)', 'raw features, cosine', 'PCA(384)']
    """
    dim_out = min(dim_out, longest)
    subject = Recipe("PCA", longest, dim_out)
    plain = replace(subject, dim_out=0)
    linear = [
        classifier.method(f"linear classifier, {by}", subject, classes, schedule, classifier_lr, by, settings.half)
        for by in classifier.RANKINGS
    ]
    return [
        Method(subject.name, subject, settings, schedule),
        Method(RAW, Recipe("raw", dim, 0), settings, schedule, search="cosine"),
        Method(plain.name, plain, settings, schedule),
        *linear,
        Method("flat head, half margin", subject, flat(settings, settings.m0 / 2), schedule),
    ]


def table_opponents(run: Run, table: pd.DataFrame) -> Table:
    """MAP@k of the mapper and its opponents, from the rows of :func:`lib.results.answers.values`."""
    of = run.parameters
    text = (
        "MAP@k in percent, AP divided by min(k, relevant); mean ± standard deviation over "
        f"{of['folds']} folds. Every head was trained {of['n_seeds']} times for {of['epochs']} epochs; ± seeds is the "
        f"standard deviation over the trainings. {answers.CLASS_MEAN} At the rim: worst training. "
        "NCA learns from at most "
        f"{of['nca_images']:,} training images of a fold."
    )
    return Table("the mapper and its opponents", table, text, markdown=answers.layout(table))


def figure_opponents(table: pd.DataFrame) -> Figure:
    """The same as a picture."""
    rows = table[table["metric"] == "ap_min"].drop(columns="metric")
    text = (
        "MAP@k of the head and of its opponents. Bars: one standard deviation over folds, of the mean over trainings. "
        "Chance: a gallery in random order. The axes do not begin at 0."
    )
    return Figure("the mapper and its opponents", rows, text, figure=figures.opponents(rows))


def table_patients(run: Run, rows: pd.DataFrame, group_kind: str) -> Table:
    """Leave one group out: macro F1 of votes, from the rows of :func:`lib.results.answers.votes`."""
    text = (
        "Macro F1 in percent: F1 of every class that can be answered, averaged. Every image is a query once. "
        f"{_archives(group_kind)} Left out: queries without an image of their class there; they are no false alarms "
        f"either. Scaler, PCA, NCA and heads come from folds that keep a {group_kind} together, so that nothing "
        f"was fitted on the {group_kind} of the query. ± standard deviation over {run.parameters['n_seeds']} trainings."
    )
    return Table(f"leave one {group_kind} out", rows, text, markdown=answers.votes_layout(rows))


def _archives(group_kind: str) -> str:
    """What is searched, for captions."""
    return (
        f"Closed archive: the training images of the heads. Whole: all images of other {group_kind}s, trained on or "
        "not, also those of the query's own fold."
    )


def figure_patients(rows: pd.DataFrame, group_kind: str) -> Figure:
    """The same as a picture."""
    text = (
        "Macro F1 of the class of the first answer, and of the majority of the first 3 and 5, when all images of the "
        f"query's {group_kind} are left out, over the classes that can be answered. {_archives(group_kind)} Bars are "
        "one standard deviation over trainings. The axes do not begin at 0."
    )
    return Figure(f"leave one {group_kind} out", rows, text, figure=figures.patients(rows))


def votes_said(rows: pd.DataFrame) -> list[str]:
    """Macro F1 of the head and of the raw features, and which is ahead; from the rows of :func:`table_patients`.

    A row per archive, method and k (the first answer, majorities of 3 and 5) with macro_f1 and seeds_spread, percent,
    and counts; the head is the method that is called Hyper-DINO.
    """
    head = next((method for method in rows["method"] if method.startswith("Hyper-DINO")), "Hyper-DINO")
    lines = []
    for archive, part in rows.groupby("archive", sort=False):
        first, by = part.iloc[0], part.set_index(["method", "k"])
        left_out = f", {first['n_without_relevant']:,} without an answer left out" * bool(first["n_without_relevant"])
        lines.append(
            f"{archive} archive, macro F1 of {head} and of raw features by cosine, over {first['n_classes']} classes "
            f"({first['n_queries']:,} queries{left_out}):"
        )
        for k, name in answers.VOTES.items():
            ours, theirs, seeds = by["macro_f1"][head, k], by["macro_f1"][RAW, k], by["seeds_spread"][head, k]
            ahead = "the head is" if ours > theirs else "the raw features are"
            gap = abs(ours - theirs)
            hardly = ", no more than trainings differ" if gap <= seeds else ""
            spread = "" if pd.isna(seeds) else f" (± {seeds:.1f} over the trainings of the head)"
            told = f"{ours:.1f} % and {theirs:.1f} %; {ahead} ahead by {gap:.1f} points"
            lines.append(f"  {name}: {told}{hardly}{spread}")
    return [*lines, RARE]


def nca_said(rows: pd.DataFrame, dim_out: int = 32) -> list[str]:
    """How NCA alone does over the longest list at its best length, and at the tried length nearest to ``dim_out``.

    rows: of Tables 2 to 6 (rule, source, dim_in, family, metric, k, ours); a line for each rule.
    """
    alone = rows[(rows["source"] == "NCA") & (rows["family"] == "baseline") & (rows["metric"] == "ap_min")]
    alone = alone[alone["k"] == alone["k"].max()]
    lines = []
    for rule, part in alone.groupby("rule", sort=False):
        by_length = part.set_index(part["dim_in"].astype(int))["ours"]
        best, near = by_length.idxmax(), min(by_length.index, key=lambda n: abs(n - dim_out))
        other = f"; {by_length[near]:.1f} % with {near}" if near != best else ""
        lines.append(
            f"NCA only, folds {rule}, MAP@{part['k'].iloc[0]}: {by_length[best]:.1f} % with {best} numbers, the best "
            f"length of {len(by_length)} in the table of lengths{other}"
        )
    return lines
