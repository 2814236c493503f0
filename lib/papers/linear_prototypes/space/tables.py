"""The space in tables, tests and Fig. 4."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import pandas as pd

from lib.metrics.significance import paired_permutation
from lib.papers.linear_prototypes import figures
from lib.papers.linear_prototypes.space.measures import MEASURES, Measured, Space, control, first_components
from lib.results import differences, paired
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Figure, Table
from lib.results.store import Run

AXES = ("component_1", "component_2", "component_3")
"""Coordinates of Fig. 4: they turn with the slightest change."""

SEES = 10.0
"""By how many points the kernel classifier is better on the control where the test is said to see."""


def rows(found: Mapping[str, Sequence[Measured]]) -> pd.DataFrame:
    """One row per method and measure: method, measure, ours (mean), spread (over folds), seeds_spread, n_seeds."""
    lines = [
        {"method": name, "fold": one.fold, "repeat": one.repeat} | one.values
        for name, several in found.items()
        for one in several
    ]
    keys = ["method", "measure"]
    long = pd.DataFrame(lines).melt([keys[0], "fold", "repeat"], list(MEASURES), keys[1])

    def over(what: str) -> pd.Series:
        return long.groupby([*keys, what], sort=False)["value"].mean().groupby(keys, sort=False).std()

    table = long.groupby(keys, sort=False).agg(ours=("value", "mean"), n_seeds=("repeat", "nunique"))
    return table.assign(spread=over("fold"), seeds_spread=over("repeat")).reset_index()


def tests(found: Mapping[str, Sequence[Measured]], seed: int = 0) -> pd.DataFrame:
    """What the title claims, tested on held-out images over their groups and over trainings, a row each.

    found: three methods, the frozen features, the paper's head, and one linear layer. Columns first and second, each a
    method and one of its measures, then as :func:`lib.results.answers.compare`.
    """
    plain, head, linear = found
    pairs = [
        ((head, "silhouette"), (plain, "silhouette")),
        ((head, "linear"), (plain, "linear")),
        ((plain, "kernel"), (plain, "linear")),
        ((head, "kernel"), (head, "linear")),
        ((linear, "centroid"), (head, "centroid")),
    ]
    images = {name: pd.concat([one.images.assign(repeat=one.repeat) for one in of]) for name, of in found.items()}
    lines = []
    for first, second in pairs:
        a, b = (images[name][value].to_numpy() for name, value in (first, second))
        one = paired_permutation(a, b, *(images[plain][name].to_numpy() for name in ("group", "repeat")), seed=seed)
        names = [f"{name}, {MEASURES[value].removesuffix(', %')}" for name, value in (first, second)]
        lines.append({"first": names[0], "second": names[1]} | asdict(one))
    return differences.together(lines)


def layout(table: pd.DataFrame) -> str:
    """A row per method, a column per measure, ± over folds and in brackets over seeds, as Markdown."""
    cells = table.assign(
        cell=[
            f"{percent(row.ours)} ± {percent(row.spread)} ({percent(row.seeds_spread)})" for row in table.itertuples()
        ]
    )
    wide = cells.pivot_table(index="method", columns="measure", values="cell", aggfunc="first", sort=False)
    return markdown_table(wide[list(MEASURES)].rename(columns=MEASURES).reset_index())


def tests_layout(tests: pd.DataFrame) -> str:
    """The table of :func:`tests` as Markdown."""
    lines = [
        {"first": test.first, "second": test.second} | paired.cells(test, "first − second")
        for test in tests.itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def verdicts(tests: pd.DataFrame) -> list[str]:
    """What the tests say about the title's claim, a sentence each; what both sides share is named once."""
    lines = []
    for test in tests.itertuples():
        (method, _, measure), (other, _, by) = (name.rpartition(", ") for name in (test.first, test.second))
        shared, first, second = (method, measure, by) if method == other else (measure, method, other)
        lines.append(f"{shared}: {first} {paired.relation(test)} {second} ({paired.size(test)})")
    return lines


def came_out(tests: pd.DataFrame) -> list[str]:
    """The answer to the title's claim, from the first three tests of :func:`tests`."""
    tighter, separable, bent = (paired.relation(test) for test in tests.head(3).itertuples())
    if any(relation.startswith("cannot") for relation in (tighter, separable, bent)):
        return ["There are too few groups to answer."]
    found = {
        "is better than": "A kernel finds more in the frozen features than a line: they were not linearly separable.",
        "is worse than": "The kernel classifier does worse on the frozen features than a line, so it could have missed "
        "what no line divides: this cannot be told here.",
    }
    kernel, heads = paired.unclear(tests.iloc[[2]]), paired.unclear(tests.head(2))
    nothing = f"A kernel adds nothing to the frozen features that these tests can tell{kernel}."
    tight = {"is better than": "tighter", "is worse than": "looser"}.get(tighter, "not clearly tighter or looser")
    line = {"is better than": "more", "is worse than": "less"}.get(separable, "not clearly more or less")
    link = "but" if {tighter, separable} == {"is better than", "is worse than"} else "and"
    return [found.get(bent, nothing), f"With the head, classes are {tight}, {link} {line} separable by a line{heads}."]


def table(run: Run, measures: pd.DataFrame) -> Table:
    """The measures, as :func:`rows` makes them."""
    text = (
        f"Mean over folds and seeds ± standard deviation over {run.parameters['folds']} folds by "
        f"{run.parameters['groups']}, in brackets over {run.parameters['seeds']} trainings; {_about(run)} Classifiers "
        "learn from the training images, and what they leave open is chosen on folds of these; accuracies are means "
        "over the classes of a fold, in which every class asks equally often."
    )
    return Table("the space of the embeddings", measures, text, markdown=layout(measures))


def table_control(run: Run, spaces: Mapping[str, Space], seed: int = 0) -> Table:
    """Could the probe have found what is not linear? :func:`.measures.control` of each space, all of one split.

    Columns method, linear and kernel (percent).
    """
    rows = pd.DataFrame([{"method": name} | control(one, seed) for name, one in spaces.items()])
    cells = rows.assign(**{kind: rows[kind].map(percent) for kind in ("linear", "kernel")})
    text = (
        "Two classes that no plane divides (XOR), made of the principal components of each method's embeddings, every "
        "component shuffled over the images by itself: balanced accuracy in percent of both classifiers, which learn "
        f"on the shuffled training part of fold 0 (by {run.parameters['groups']}) and are asked on its shuffled "
        "held-out part. Guessing gives 50."
    )
    named = {kind: f"{kind} classifier, %" for kind in ("linear", "kernel")}
    return Table("control of the probe", rows, text, markdown=markdown_table(cells.rename(columns=named)))


def control_said(rows: pd.DataFrame) -> list[str]:
    """Whether the probe could see, from the rows of :func:`table_control`: a sentence for each method."""
    return [
        f"{row.method}: the linear classifier {row.linear:.1f} %, the kernel classifier {row.kernel:.1f} %, so the "
        f"test {'can' if row.kernel - row.linear > SEES else 'can hardly'} see"
        for row in rows.itertuples()
    ]


def table_tests(run: Run, tested: pd.DataFrame) -> Table:
    """The tests, as :func:`tests` makes them."""
    text = f"Held-out images: percent given to their own class, and silhouette times 100; {_about(run)} {paired.SAYS}"
    return Table("tests of the space", tested, text, markdown=tests_layout(tested))


def figure_4(run: Run, spaces: Mapping[str, Space], labels: Sequence[str]) -> Figure:
    """Fig. 4: the first components of each method's space, all of one split; labels: of its held-out images."""
    parts = {name: first_components(one) for name, one in spaces.items()}
    frames = [pd.DataFrame(xyz, columns=AXES).assign(method=name, label=labels) for name, (xyz, _) in parts.items()]
    text = (
        f"First three principal components of the training images, fold 0; shown are {_about(run)} Rare classes are "
        "drawn over common ones; a class that outnumbers all others together is small and pale."
    )
    drawn = figures.components(parts, labels)
    return Figure("the space of the embeddings", pd.concat(frames), text, free=AXES, figure=drawn)


def _about(run: Run) -> str:
    return (
        f"embeddings of length 1 of {run.parameters['groups']}s that were held out; heads trained for "
        f"{run.parameters['epochs']} epochs (published: 100) by episodes on the others."
    )
