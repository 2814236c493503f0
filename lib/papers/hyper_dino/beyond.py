"""Notebook 16, beyond the paper: flat heads, the query's own group, other galleries, switches, choice of the length."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from lib.figures import style
from lib.figures.forest import forest
from lib.figures.lines import lines, look
from lib.papers.hyper_dino.protocols import EPOCHS, EQUAL
from lib.study import denominators, intervals, own_group, paired
from lib.study.answers import CLASS_MEAN, health, layout
from lib.study.columns import HEALTH, Column, Layout
from lib.study.markdown import markdown_table, percent
from lib.study.scores import HEALTH as ENDED
from lib.study.scores import Answers, of_answers
from lib.study.shown import Figure, Table
from lib.study.store import Run
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.methods import Method
from lib.training.recipes import Recipe


def switch_methods(recipe: Recipe, dim: int, settings: Settings, schedule: Schedule) -> list[Method]:
    """One switch at a time that the paper leaves open, the default first (HD-6, HD-7, HD-9, HD-10, HD-17)."""
    scaled, longer = replace(recipe, source="scaled", dim_in=dim), replace(recipe, dim_out=recipe.dim_in)
    printed = replace(settings, start_norm=0.0)
    kinds = {
        "default": (recipe, settings),
        "as printed, not scaled": (recipe, printed),
        "start norm 0.1": (recipe, replace(settings, start_norm=0.1)),
        "start norm 0.8": (recipe, replace(settings, start_norm=0.8)),
        "pairs with themselves count": (recipe, replace(settings, self_pairs=True)),
        "gradient through the mean distance": (recipe, replace(settings, detach_mean=False)),
        "delta 1e-5": (recipe, replace(settings, delta=1e-5)),
        "float32 throughout": (recipe, replace(settings, half=False)),
        "scaled features, no PCA": (scaled, settings),
        "whitened PCA": (replace(recipe, source="whitened"), settings),
        "dim_in outputs, PCA": (longer, settings),
        "dim_in outputs, PCA, as printed": (longer, printed),
    }
    return [Method(name, *kind, schedule) for name, kind in kinds.items()]


def switch_rows(results: Answers, groups: np.ndarray, ks: Sequence[int], seed: int = 0) -> pd.DataFrame:
    """Every method beside the first: means (percent), and the test against the first."""
    default, *others = results
    table = of_answers({"": results}).means().query("metric == 'ap_min' and k in @ks")
    tests = of_answers({"": results}, groups).tests([(other, default) for other in others], ks, seed=seed)
    tests = tests.rename(columns={"first": "method"})
    return table.drop(columns=["metric", "n_seeds"]).merge(tests, how="left", on=["rule", "method", "k"])


def definition_rows(results: Mapping[str, Answers], first: str, second: str, k: int) -> pd.DataFrame:
    """MAP@k of two methods under three definitions, also over classes first; the gain and the health of the second."""
    table = of_answers(results).means().query("k == @k").set_index(["rule", "metric", "method"])
    rows = []
    for rule in results:
        for metric, label in {"ap_min": "÷ min(k, relevant)", "ap_hits": "÷ hits found", "ap_k": "÷ k"}.items():
            before, after = (table.loc[(rule, metric, name)] for name in (first, second))
            scores = {first: before["ours"], second: after["ours"]}
            by_class = {f"{first}, class mean": before["class_mean"], f"{second}, class mean": after["class_mean"]}
            row = {"rule": rule, "definition": label} | scores | by_class | {"chance": after["chance"]}
            rows.append(row | {"gain": after["ours"] - before["ours"]} | after[list(ENDED)].to_dict())
    return pd.DataFrame(rows)


def leakage_layout(rows: pd.DataFrame) -> str:
    """The difference is by group minus by image; below, how the trainings ended, a row per method and fold rule."""
    kind = rows["group_kind"].iloc[0]
    names = {"by_image": "by image", "by_group": f"by {kind}"}
    cells = [
        {"method": row.method, "k": row.k, "MAP@k, folds by image": percent(row.by_image)}
        | {f"folds by {kind}": percent(row.by_group), "class mean by image": percent(row.class_mean_by_image)}
        | {f"class mean by {kind}": percent(row.class_mean_by_group), "chance": percent(row.chance)}
        | paired.cells(row, f"by {kind} − by image, points")
        | {"queries": row.n_queries}
        | {f"all queries, {name}": percent(getattr(row, f"all_{side}")) for side, name in names.items()}
        for row in rows.itertuples()
    ]
    ends = [
        {"method": row["method"], "folds": name} | health(row[[f"{of}_{side}" for of in ENDED]].set_axis(ENDED))
        for _, row in rows.drop_duplicates("method").iterrows()
        for side, name in names.items()
    ]
    parts = markdown_table(pd.DataFrame(cells)), "How the trainings ended:", markdown_table(pd.DataFrame(ends))
    return "\n\n".join(parts)


def switch_layout(rows: pd.DataFrame) -> str:
    """What one switch changes; the default has no test."""
    cells = [
        {"what is changed": row["method"], "k": row["k"], "MAP@k": percent(row["ours"])}
        | {"class mean": percent(row["class_mean"]), "chance": percent(row["chance"])}
        | paired.cells(row, "minus default, points")
        | health(row)
        for _, row in rows.iterrows()
    ]
    return markdown_table(pd.DataFrame(cells))


CHOICE = [Column("choice"), Column("k", form="0"), Column("lengths", form=str), Column("MAP@k", "value")]
DEFINED = ("no mapper", "ball", "no mapper, class mean", "ball, class mean", "chance", "gain")
LAYOUTS = {
    "table_control": layout,
    "table_control_tests": denominators.layout,
    "table_leakage": leakage_layout,
    "table_gallery": partial(layout, what="gallery"),
    "table_gallery_tests": partial(denominators.layout, what="gallery"),
    "table_switches": switch_layout,
    "table_definitions": Layout(
        [Column("folds", "rule"), Column("definition"), *map(Column, DEFINED), *HEALTH], by=("rule", "definition")
    ),
    "table_selection": Layout(
        [*CHOICE, Column("class mean", "class_mean"), Column("chance"), *HEALTH], ("choice", "k")
    ),
}

MAP = (
    "MAP@k in percent, AP divided by min(k, relevant). Heads were trained {n_seeds} times for {epochs} epochs "
    f"(published: {Schedule().epochs})."
)
SCORED = f"{MAP} Means over the folds. {CLASS_MEAN} Chance: a gallery in random order. At the rim: worst training."
SPREAD = "± one standard deviation over the folds; ± seeds: over the trainings, at the largest k."
INTERVALS = f"95 % intervals over groups and trainings; filled: clear after correction. {intervals.UNCORRECTED}"
TESTED = f"{MAP} {denominators.SAYS} {paired.SAYS}"
SWITCHED = "Input {input}; {folds_used} of {folds} folds by group."
KNOWING = "what knowing the group is worth"
OPEN = "closed and open gallery"
SHOWN = {
    "table_control": ("curved and flat heads", f"{SCORED} {SPREAD}"),
    "table_control_tests": ("the ball and its opponents, paired", TESTED),
    "figure_control": ("the ball and its opponents", f"What the ball gains over each opponent. {INTERVALS}"),
    "table_leakage": (
        KNOWING,
        f"{SCORED} Tested {{asked}}. All queries: over all images that can be answered both times. {paired.SAYS}",
    ),
    "figure_leakage": (
        KNOWING,
        "MAP@k with images of the query's own group in the gallery (by image) and without. At the right: the points "
        "lost and their 95 % interval. Dotted: chance. Tested {asked}.",
    ),
    "table_gallery": (OPEN, f"{SCORED} All images of the half that is learnt from. {SPREAD}"),
    "table_gallery_tests": (f"{OPEN}, paired", TESTED),
    "figure_gallery": (
        OPEN,
        "MAP@k over the number of images learnt from, in as many steps as all of them take (solid), or in {epochs} "
        "epochs (dashed); means over {n_seeds} trainings; bars: standard deviation over the two halves.",
    ),
    "table_switches": ("switches", f"{SCORED} {SWITCHED} {paired.SAYS}"),
    "figure_switches": ("switches", f"What one switch changes. {INTERVALS} {SWITCHED}"),
    "table_definitions": ("three definitions of MAP@k", f"{SCORED} The longest list."),
    "table_selection": (
        "who chooses the length",
        f"{SCORED} MAP at the longest list chooses the number of components of PCA. {SWITCHED}",
    ),
}
"""Title and caption; the run's parameters fill them."""


def table(run: Run, name: str, rows: pd.DataFrame) -> Table:
    """One of :data:`LAYOUTS`."""
    title, text = _words(run, name, rows)
    return Table(title, rows, text, ["lengths"] if name == "table_selection" else (), markdown=LAYOUTS[name](rows))


def _words(run: Run, name: str, rows: pd.DataFrame) -> list[str]:
    asked = own_group.asked(rows) if "group_kind" in rows else ""
    return [words.format(**run.parameters, asked=asked) for words in SHOWN[name]]


def figure_differences(run: Run, name: str, tests: pd.DataFrame, xlabel: str) -> Figure:
    """The differences of tests (column name: whose) with their intervals, a panel for each k; filled: clear."""
    clear = [paired.relation(test) in paired.CLEAR for test in tests.itertuples()]
    drawn = tests.assign(panel=[f"k = {k}" for k in tests["k"]], series=tests["rule"], clear=clear)
    title, text = _words(run, name, tests)
    return Figure(title, tests, text, figure=forest(drawn, xlabel=f"{xlabel}, MAP@k (points)"))


def figure_gallery(run: Run, rows: pd.DataFrame) -> Figure:
    """MAP@k over the number of images learnt from (:func:`gallery_values`), a panel for each gallery and k."""
    drawn = rows.assign(
        panel=[f"{row.gallery}, k = {row.k}" for row in rows.itertuples()], x=rows["n_train"], y=rows["ours"]
    )
    drawn["line"] = drawn["method"].where(drawn["length"] == EQUAL, drawn["method"] + f", {EPOCHS}")
    drawn["spread"] = drawn["spread"].where(drawn["length"] == EQUAL)
    chance = drawn[drawn["method"] == "ball"].drop_duplicates(["panel", "x"]).assign(line="chance", spread=np.nan)
    drawn = pd.concat([drawn, chance.assign(y=chance["chance"])])
    looks = {name: look(n) | {"dashes": (None, None)} for n, name in enumerate(rows["method"].unique())}
    looks |= {f"{name}, {EPOCHS}": of | {"dashes": (3, 2)} for name, of in looks.items()}
    looks["chance"] = {"color": "black", "dashes": (1, 2), "marker": ""}
    figure = lines(drawn, xlabel="images learnt from", ylabel="MAP@k (%)", log=True, looks=looks)
    sizes = sorted(rows["n_train"].unique())
    for axis in figure.axes:
        axis.set_xticks(sizes, labels=map(str, sizes), rotation=45)
        axis.minorticks_off()
    title, text = _words(run, "figure_gallery", rows)
    return Figure(title, rows, text, figure=figure)


SQUARE = {"markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.3}


def figure_leakage(run: Run, rows: pd.DataFrame) -> Figure:
    """MAP@k with and without images of the query's own group in the gallery, joined by a line per method.

    Squares are so large, and empty, that a dot of nearly the same score is seen inside.
    """
    methods, ks = list(rows["method"].unique()), sorted(rows["k"].unique())
    with style.house():
        size = (style.WIDTH, 0.7 + 0.42 * len(methods))
        figure, axes = plt.subplots(1, len(ks), figsize=size, sharex=True, sharey=True, squeeze=False)
        for axis, k in zip(axes[0], ks, strict=True):
            beside = {"transform": axis.get_yaxis_transform(), "fontsize": 8}
            for row in rows[rows["k"] == k].itertuples():
                height = methods.index(row.method)
                color = style.PALETTE[height]
                axis.plot([row.by_group, row.by_image], [height, height], color=color, linewidth=1.5)
                axis.plot(row.by_image, height, "o", color=color, markersize=4.5)
                axis.plot(row.by_group, height, "s", color=color, **SQUARE)
                lost = "" if np.isnan(row.low) else f" ({-row.high:z.1f} to {-row.low:z.1f})"
                axis.text(1.02, height, f"{-row.difference:z.1f}{lost}", va="center", **beside)
            axis.text(1.02, -0.7, "points lost", va="bottom", **beside)
            axis.axvline(rows.loc[rows["k"] == k, "chance"].iloc[0], color="black", linestyle=":", linewidth=1)
            axis.set(xlim=(0, 100), title=f"k = {k}", xlabel="MAP@k (%)")
        axes[0][0].set_yticks(range(len(methods)), methods)
        axes[0][0].set_ylim(len(methods) - 0.4, -0.6)
        signs = {"folds by image": {"marker": "o", "linestyle": "", "markersize": 4.5}}
        signs |= {f"by {rows['group_kind'].iloc[0]}": {"marker": "s", "linestyle": ""} | SQUARE}
        signs |= {"chance": {"linestyle": ":"}}
        handles = [Line2D([], [], color="black", label=name, **sign) for name, sign in signs.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
        plt.close(figure)
    title, text = _words(run, "figure_leakage", rows)
    return Figure(title, rows, text, figure=figure)
