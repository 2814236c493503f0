"""Notebook 13, retrieval (section 3.3): Tables 1 to 6, Fig. 3, and the mapper beside its opponents."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib import paths
from lib.datasets.catalogue import DATASETS
from lib.figures import style
from lib.figures.forest import forest
from lib.papers.hyper_dino import validation
from lib.papers.hyper_dino.published import FAMILIES, published
from lib.papers.hyper_dino.recipes import RAW
from lib.study import answers, captions, measures, paired
from lib.study.columns import Column, Layout
from lib.study.rates import FREE, RULE, choose_middle, marked
from lib.study.scores import Answers, of_answers
from lib.study.shown import Figure, Table
from lib.study.store import Run
from lib.training import classifier, experiment
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings, flat
from lib.training.methods import Fitted, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

DINO_DIM = 384
KEYS = ["rule", "source", "dim_in", "family", "metric", "k"]

NCA = "NCA, validated length"
SHORT = (2, 3)
"""Lengths of NCA to choose from beside those of Table 1, which begin at 5.

On the test images of Kather and BreakHis 5 was the best of that table, at its end; on HAM10000 the longest is.
"""


def opponents(
    dim: int, longest: int, dim_out: int, classes: int, settings: Settings, schedule: Schedule, classifier_lr: float
) -> list[Method]:
    """Hyper-DINO(PCA, dim_out), first, and its opponents; NCA has a length for each fold (:func:`fit_nca`).

    The head's input has ``longest`` principal components of a feature of ``dim`` numbers. The classifier has the
    schedule of the heads but a rate of its own; the flat head has half the margin (HD-8).

    >>> [method.name for method in opponents(1280, 384, 32, 8, Settings(), Schedule(), 0.01)][:3]
    ['Hyper-DINO(PCA(384), 32)', 'raw features, cosine', 'PCA(384)']
    """
    subject = Recipe("PCA", longest, min(dim_out, longest))
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


def choose_length(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    splits: Sequence[Split],
    lengths: Sequence[int],
    settings: Settings,
    k: int,
) -> pd.DataFrame:
    """MAP@``k`` of NCA of every length on the validation part of every fold, which chooses by the rule of rates.

    Groups are kept apart when the training part is divided; a fifth of them validates. Lengths beyond ``dim`` are left
    out, so that one list serves every encoder; k is at most the smallest gallery.

    Returns:
        One row per fold and length: fold, length, k, chance (percent), and those of
        :func:`lib.study.rates.choose_middle`, paired over groups.
    """
    inner = validation.inner(splits, labels, groups)
    k = min(k, *(len(split.train) for split in inner))
    methods = _nca(sorted({n for n in lengths if n <= x.shape[1]}), settings)
    done = experiment.answers(x, labels, methods, inner, [k], what="NCA, validation")
    tables = []
    for split, *of_fold in zip(inner, *done.values(), strict=True):
        rows = pd.concat(
            answer.per_query.mean().query("metric == 'ap_min'").assign(length=answer.method.recipe.dim_in)
            for answer in of_fold
        )
        rows = rows[["length", "k", "chance"]].assign(fold=split.fold, chance=100 * rows["chance"])
        values = [100 * answer.per_query.values["ap_min", k] for answer in of_fold]
        tables.append(choose_middle(rows, values, groups[split.test], "fold", ["length"]))
    return pd.concat(tables, ignore_index=True)


def fit_nca(
    x: np.ndarray, labels: np.ndarray, splits: Sequence[Split], choice: pd.DataFrame, settings: Settings
) -> list[Fitted]:
    """NCA on every split, and repeat of one, of the length that its fold chose (:func:`choose_length`)."""
    length_of = choice[choice["chosen"]].set_index("fold")["length"]
    fitted = experiment.fit(x, labels, _nca(sorted(set(length_of)), settings), splits, what="NCA")
    return [fitted[f"NCA({length_of[split.fold]})"][number] for number, split in enumerate(splits)]


def _nca(lengths: Sequence[int], settings: Settings) -> list[Method]:
    return [Method(f"NCA({n})", Recipe("NCA", int(n), 0), settings, Schedule()) for n in lengths]


def retrieval_table(results: Mapping[str, Answers], dim: int, reference: str) -> pd.DataFrame:
    """Mean and spread over the folds, with the published value of the same row beside each MAP@k.

    ``dim``: length of our encoder's features; the paper's is 384. All of ours, scaled, stand beside its [CLS]; a PCA or
    NCA stands beside one of as many components, or, where our encoder has fewer, all beside all. ``reference``: the
    paper's dataset, or "none".

    Returns:
        Columns rule, source, dim_in, family, those of :meth:`lib.study.scores.Scores.means`, and published; percent.
    """
    recipes = {name: answers[0].method.recipe for methods in results.values() for name, answers in methods.items()}
    places = {name: {key: getattr(recipe, key) for key in KEYS[1:4]} for name, recipe in recipes.items()}
    table = of_answers(results).means().join(pd.DataFrame.from_dict(places, orient="index"), on="method")
    table = table[[*KEYS, *(name for name in table if name not in (*KEYS, "method"))]]
    if reference == "none":
        return table.assign(published=np.nan)
    scaled = table["source"] == "scaled"
    whole = scaled | (table["dim_in"] == min(dim, DINO_DIM))
    ours = table.assign(cls=scaled, their_dim=table["dim_in"].mask(whole, DINO_DIM))
    theirs = published(reference).rename(columns={"dim_in": "their_dim"})
    joined = ours.merge(theirs, how="left", on=["cls", "their_dim", "family", "k"])
    is_map = joined["metric"].isin(["ap_min", "ap_hits", "ap_k"])
    return joined.assign(published=joined["published"].where(is_map)).drop(columns=["cls", "their_dim"])


def configurations(recipes: Sequence[Recipe]) -> pd.DataFrame:
    """Table 1: one row per mapper, with its compression rate in numbers and in bytes (HD-15).

    Columns output, dim_out, input, dim_in, rate (numbers in per number out), bytes_in_float32, bytes_in_float16,
    bytes_out (float16), published (the paper's rate, where it has that row).
    """
    mappers = [recipe for recipe in recipes if recipe.dim_out]
    columns = {"output": "name", "dim_out": "dim_out", "input": "input", "dim_in": "dim_in"}
    rows = pd.DataFrame({name: [getattr(mapper, field) for mapper in mappers] for name, field in columns.items()})
    rows = rows.assign(
        rate=rows["dim_in"] / rows["dim_out"],
        bytes_in_float32=4 * rows["dim_in"],
        bytes_in_float16=2 * rows["dim_in"],
        bytes_out=2 * rows["dim_out"],
        input_features=[{"scaled": "[CLS]"}.get(mapper.source, f"{mapper.source}-DINO") for mapper in mappers],
    )
    theirs = pd.read_csv(paths.PUBLISHED / "hyper_dino_table1_configurations.csv")
    keys = ["input_features", "dim_in", "dim_out"]
    theirs = theirs.rename(columns={"value": "published"})[[*keys, "published"]]
    return rows.merge(theirs, how="left", on=keys).drop(columns="input_features")


def as_printed(rows: pd.DataFrame) -> str:
    """Tables 2 to 6: inputs as rows, families for each k as columns; below them class means, chance and health."""
    inputs = [Recipe(row.source, int(row.dim_in), 0).name for row in rows.itertuples()]
    rows = rows[rows["metric"] == "ap_min"].assign(input=pd.Series(inputs, rows.index))
    cells = rows.assign(
        cell=[f"k={row.k} {row.family}" for row in rows.itertuples()],
        order=-rows["dim_in"].mask(rows["source"] == "scaled", np.inf),
        column=rows["family"].map(list(FAMILIES).index),
    )
    cells = cells.sort_values(["k", "column", "order"], kind="stable")
    ends = answers.ends(rows)
    health = answers.layout()(ends.assign(method=ends["input"] + ", " + ends["family"].map(FAMILIES)))
    return f"{PAPER(cells)}\n\nClass means, chance and health of the same rows:\n\n{health}"


CELL = Column("{}", "ours", pm="spread", brackets="published", over="cell", chance="chance")
PAPER = Layout([Column("folds", "rule"), Column("input"), CELL], by=("input",), block="rule")


LENGTHS = Layout(
    [Column("folds", "rule"), Column("numbers", "length"), Column("fold {}", "cell", over="fold", chance="chance")],
    by=("length",),
    block="rule",
    prepare=lambda rows: rows.assign(cell=marked(rows), fold=rows["fold"] + 1, length=rows["length"].astype(str)),
)
"""NCA's lengths, a column for each fold, the chosen one bold."""
LAYOUTS = {
    "table_1": Layout(
        [
            Column("mapper", "output"),
            Column("numbers in", "dim_in", "0"),
            Column("numbers out", "dim_out", "0"),
            Column("rate", form="{:.4g}"),
            Column("published rate", "published", "{:g}"),
            Column("bytes out (float16)", "bytes_out", "0"),
        ],
        by=("output",),
    ),
    **{f"table_{number}": as_printed for number in range(2, 7)},
    "table_beside": as_printed,
    "table_retrieval": as_printed,
    "table_nca": LENGTHS,
    "table_opponents": answers.layout(),
    "table_tests": paired.by_length(),
    "table_tests_by_class": paired.by_length(),
    "table_patients": answers.VOTED,
}

MAP = "MAP@k in percent, AP divided by min(k, relevant)."
ARCHIVES = "Closed archive: the training images of the heads. Whole: all images of other {group}s."
SHOWN = {
    "table_1": (
        "Table 1: configurations",
        "The paper has 62 mappers, from 384 numbers. The rate counts numbers, as the paper's 12 for 384 → 32 does; in "
        "bytes that is 12 from float16 and 24 from float32 input (HD-15).",
    ),
    "table_nca": (
        "NCA's length, on validation parts",
        f"MAP of NCA only, over the longest list, on a fifth of the training part of each fold. {RULE} No query image "
        "of the fold is in it, though those of other folds are.",
    ),
    "table_opponents": (
        "the mapper and its opponents",
        f"{MAP} Mean ± standard deviation over {{folds}} folds. Heads were trained {{n_seeds}} times for {{epochs}} "
        f"epochs; ± seeds: over the trainings. {answers.CLASS_MEAN} At the rim: worst training. NCA learns from at "
        "most {nca_images:,} training images of a fold.",
    ),
    "table_tests": ("paired tests", f"MAP@k in percent. {measures.SAYS}"),
    "table_tests_by_class": (
        "paired tests of class means",
        f"MAP@k in percent; each class counts alike. {measures.SAYS}",
    ),
    "table_patients": (
        "leave one {group} out",
        f"Macro F1 in percent, over the classes that can be answered. {ARCHIVES} Nothing was fitted on the query's "
        "{group}. Left out: queries without an image of their class there. ± standard deviation over {n_seeds} "
        "trainings. Who is ahead was not tested.",
    ),
    "figure_3": (
        "MAP@k over input length",
        "MAP@k over the number of PCA or NCA components that go in; bars: one standard deviation over folds, every "
        "mapper was trained once. Published values, of other images and encoder, have a panel of their own: the better "
        "of PCA and NCA. The axes do not begin at 0.",
    ),
    "figure_opponents": (
        "the mapper and its opponents",
        f"{MAP} Bars: one standard deviation over folds, of the mean over trainings.",
    ),
}
"""Title and caption of everything but Tables 2 to 6; the run's parameters fill them."""


def table(run: Run, name: str, rows: pd.DataFrame) -> Table:
    """One of :data:`LAYOUTS` that has its words in :data:`SHOWN`."""
    return captions.table(run, SHOWN, name, rows, FREE if name == "table_nca" else ())


def retrieval(run: Run, rows: pd.DataFrame, reference: str) -> Table:
    """One of Tables 2 to 6; the caption says why our numbers differ from the published ones."""
    text = (
        f"{MAP} Mean ± standard deviation over {run.parameters['folds']} folds, test images against training images; "
        f"mappers trained for {run.parameters['epochs']} epochs (published: {Schedule().epochs}), once each. Chance: a "
        f"gallery in random order. {answers.CLASS_MEAN} Left out: queries without any relevant image. "
    )
    if reference == "none":
        return Table("MAP@k", rows, f"{text}The paper has no such table.")
    why = {
        "demo": "Ours are procedural tiles and another encoder: the layout can be compared, the values cannot.",
        "sample": "Ours saw fewer images and another encoder, so a difference has at least these two reasons.",
        "paper": "Ours has folds of its own (the paper's are not published, HD-13).",
    }
    text += f"In brackets: published for {DATASETS[reference].title} (DINO ViT-S/16, the better of PCA and NCA). "
    return Table("MAP@k", rows, text + why[run.profile])


def figure_3(run: Run, rows: pd.DataFrame, reference: str) -> Figure:
    """Fig. 3: MAP@k over the length of the input, the smallest k above the largest; a column per fold rule.

    A family has its marker, a source its line: NCA is dashed and hollow. A single length has no line.
    """
    rows = rows[(rows["metric"] == "ap_min") & rows["source"].isin(["PCA", "NCA"])].drop(columns="metric")
    panels = {f"folds {rule}": part for rule, part in rows.groupby("rule", sort=False)}
    if reference != "none":
        theirs = published(reference).query("not cls").rename(columns={"published": "ours"})
        panels[f"published: {DATASETS[reference].title}"] = theirs.assign(source="better of both", spread=np.nan)
    ks = list(dict.fromkeys([rows["k"].min(), rows["k"].max()]))
    with style.house():
        size = {"figsize": (style.WIDTH, 2.3 * len(ks)), "sharey": "row", "sharex": True, "squeeze": False}
        figure, axes = plt.subplots(len(ks), len(panels), **size)
        for row, k in zip(axes, ks, strict=True):
            for axis, (title, part) in zip(row, panels.items(), strict=True):
                _curves(axis, part[part["k"] == k])
                axis.set(title=title if k == ks[0] else "", xlabel="input length (numbers)" if k == ks[-1] else "")
            row[0].set_ylabel(f"MAP@{k} (%), chance {rows[rows['k'] == k]['chance'].mean():.1f}")
        drawn = [zip(*axis.get_legend_handles_labels(), strict=True) for axis in axes[0]]
        named = {label: handle for panel in drawn for handle, label in panel}
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return captions.figure(run, SHOWN, "figure_3", rows, figure)


def _curves(axis: plt.Axes, rows: pd.DataFrame) -> None:
    dashes, ticks = {"PCA": "-", "NCA": "--", "better of both": ":"}, (5, 10, 20, 40, 80, 160, 384)
    for (source, family), line in rows.dropna(subset="ours").groupby(["source", "family"], sort=False):
        number, line = list(FAMILIES).index(family), line.sort_values("dim_in")
        look = {"color": style.PALETTE[number], "marker": style.MARKERS[number], "markersize": 4, "capsize": 2}
        look |= {"linestyle": dashes[source] if len(line) > 1 else "", "linewidth": 1.2}
        look |= {"markerfacecolor": "white" if source == "NCA" else None, "label": f"{source}: {FAMILIES[family]}"}
        axis.errorbar(line["dim_in"], line["ours"], yerr=line["spread"].fillna(0), **look)
    axis.set_xscale("log")
    axis.set_xticks(ticks, labels=[str(tick) for tick in ticks])
    axis.minorticks_off()


def figure_opponents(run: Run, rows: pd.DataFrame) -> Figure:
    """MAP@k of the mapper and its opponents, a panel for each k, a sign for each fold rule."""
    rows = rows[rows["metric"] == "ap_min"].drop(columns="metric")
    drawn = rows.assign(panel="k = " + rows["k"].astype(str), series="folds " + rows["rule"])
    drawn = forest(drawn.rename(columns={"method": "name", "ours": "difference"}), xlabel="MAP@k (%)", zero=False)
    return captions.figure(run, SHOWN, "figure_opponents", rows, drawn)
