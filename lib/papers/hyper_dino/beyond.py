"""Notebook 16, beyond the paper: flat heads, the query's own group, other galleries, switches, choice of the length."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.figures.forest import forest
from lib.figures.lines import lines, look, with_level
from lib.papers.hyper_dino.protocols import EPOCHS, EQUAL
from lib.study import answers, captions, measures, paired
from lib.study.answers import CLASS_MEAN
from lib.study.columns import HEALTH, Column, Layout
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
    """MAP@k of two methods under three definitions, and their precision, also over classes first.

    The gain and the health are the second's.
    """
    table = of_answers(results).means().query("k == @k").set_index(["rule", "metric", "method"])
    rows = []
    for rule in results:
        for metric, label in DEFINITIONS.items():
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
    columns = [
        Column("method"),
        Column("k", form="0"),
        Column("MAP@k, folds by image", "by_image"),
        Column(f"folds by {kind}", "by_group"),
        *(Column(f"class mean {name}", f"class_mean_{side}") for side, name in names.items()),
        Column("chance"),
        *paired.columns(f"by {kind} − by image, points"),
        Column("queries", "n_queries", "0"),
        *(Column(f"all queries, {name}", f"all_{side}") for side, name in names.items()),
    ]
    ends = [
        rows[["method", *(f"{c}_{side}" for c in ENDED)]].set_axis(["method", *ENDED], axis=1).assign(folds=name)
        for side, name in names.items()
    ]
    ended = Layout([Column("method"), Column("folds"), *HEALTH], by=("method", "folds"))
    ends = pd.concat(ends).sort_index(kind="stable")
    parts = Layout(columns, by=(), prepare=paired.outcomes)(rows), "How the trainings ended:", ended(ends)
    return "\n\n".join(parts)


CHOICE = [Column("choice"), Column("k", form="0"), Column("lengths", form=str), Column("MAP@k", "value")]
DEFINITIONS = {
    "ap_min": "÷ min(k, relevant)",
    "ap_hits": "÷ hits found",
    "ap_k": "÷ k",
    "precision": "precision: no order",
}
DEFINED = ("no mapper", "ball", "no mapper, class mean", "ball, class mean", "chance", "gain")
LAYOUTS = {
    "table_control": answers.layout(),
    "table_control_tests": paired.by_length(),
    "table_leakage": leakage_layout,
    "table_gallery": answers.layout("gallery"),
    "table_gallery_tests": paired.by_length("gallery"),
    "table_switches": Layout(
        [
            Column("what is changed", "method"),
            Column("k", form="0"),
            Column("MAP@k", "ours"),
            Column("class mean", "class_mean"),
            Column("chance"),
            *paired.columns("minus default, points"),
            *HEALTH,
        ],
        by=(),
        prepare=paired.outcomes,
    ),
    "table_end_to_end": answers.layout(),
    "table_end_to_end_tests": paired.by_length(),
    "table_definitions": Layout(
        [Column("folds", "rule"), Column("definition"), *map(Column, DEFINED), *HEALTH], by=("rule", "definition")
    ),
    "table_dealt": paired.by_length(),
    "table_dealt_by_class": paired.by_length(),
    "table_selection": Layout(
        [*CHOICE, Column("class mean", "class_mean"), Column("chance"), *HEALTH], ("choice", "k")
    ),
}

TRAINED = f"Heads were trained {{n_seeds}} times for {{epochs}} epochs (published: {Schedule().epochs})."
MAP = f"MAP@k in percent, AP divided by min(k, relevant). {TRAINED}"
ENDS = f"{CLASS_MEAN} Chance: a gallery in random order. At the rim: worst training."
SCORED = f"{MAP} Means over the folds. {ENDS}"
SPREAD = "± one standard deviation over the folds; ± seeds: over the trainings, at the largest k."
TESTED = f"{TRAINED} MAP@k in percent. {measures.SAYS}"
DEALT = (
    "Classes were dealt among the images at random, trained on and searched, anew for each training: a gain is what "
    "the measure favours, and chance."
)
SWITCHED = "Input {input}; {folds_used} of {folds} folds by group."
KNOWING = "what knowing the group is worth"
OPEN = "closed and open gallery"
SHOWN = {
    "table_control": ("curved and flat heads", f"{SCORED} {SPREAD}"),
    "table_control_tests": ("the ball and its opponents, paired", TESTED),
    "table_leakage": (
        KNOWING,
        f"{MAP} Averaged per group first. {ENDS} Tested {{own_group}}. All queries: over all images that can be "
        f"answered both times. {paired.SAYS}",
    ),
    "figure_leakage": (
        KNOWING,
        "MAP@k with images of the query's own group in the gallery (by image) and without. Dotted: chance. Tested "
        "{own_group}.",
    ),
    "table_gallery": (OPEN, f"{SCORED} All images of the half that is learnt from. {SPREAD}"),
    "table_gallery_tests": (f"{OPEN}, paired", TESTED),
    "figure_gallery": (
        OPEN,
        "MAP@k over the number of images learnt from, in as many steps as all of them take (solid), or in {epochs} "
        "epochs (dashed); means over {n_seeds} trainings; bars: standard deviation over the two halves.",
    ),
    "table_switches": ("switches", f"{SCORED} {SWITCHED} {paired.SAYS}"),
    "table_definitions": (
        "definitions of MAP@k, and precision",
        f"In percent, for the longest list. {TRAINED} Means over the folds. {ENDS}",
    ),
    "table_dealt": ("classes dealt at random", f"{DEALT} {TESTED}"),
    "table_dealt_by_class": ("classes dealt at random, classes alike", f"{DEALT} Each class counts alike. {TESTED}"),
    "table_selection": (
        "who chooses the length",
        f"{SCORED} MAP at the longest list chooses the number of components of PCA. {SWITCHED}",
    ),
}
"""Title and caption; the run's parameters fill them."""


def table(run: Run, name: str, rows: pd.DataFrame) -> Table:
    """One of :data:`LAYOUTS`."""
    free = ["lengths"] if name == "table_selection" else ()
    return captions.table(run, SHOWN, name, rows, free, own_group=paired.of_own_group(rows))


def figure_gallery(run: Run, rows: pd.DataFrame) -> Figure:
    """MAP@k over the number of images learnt from (:func:`gallery_values`), a panel for each gallery and k."""
    drawn = rows.assign(
        panel=[f"{row.gallery}, k = {row.k}" for row in rows.itertuples()], x=rows["n_train"], y=rows["ours"]
    )
    drawn["line"] = drawn["method"].where(drawn["length"] == EQUAL, drawn["method"] + f", {EPOCHS}")
    drawn["spread"] = drawn["spread"].where(drawn["length"] == EQUAL)
    looks = {name: look(n) | {"dashes": (None, None)} for n, name in enumerate(rows["method"].unique())}
    looks |= {f"{name}, {EPOCHS}": settings | {"dashes": (3, 2)} for name, settings in looks.items()}
    looks["chance"] = {"color": "black", "dashes": (1, 2), "marker": ""}
    figure = lines(with_level(drawn), xlabel="images learnt from", ylabel="MAP@k (%)", log=True, looks=looks)
    return captions.figure(run, SHOWN, "figure_gallery", rows, figure)


def figure_leakage(run: Run, rows: pd.DataFrame) -> Figure:
    """MAP@k with images of the query's own group in the gallery and without, a panel for each k; dotted: chance."""
    sides = {"by_image": "folds by image", "by_group": f"by {rows['group_kind'].iloc[0]}"}
    drawn = pd.concat([rows.assign(difference=rows[side], series=name) for side, name in sides.items()])
    panel = "k = " + drawn["k"].astype(str)
    drawn = drawn.assign(name=drawn["method"], panel=panel, low=np.nan, high=np.nan, clear=True)
    figure = forest(drawn, xlabel="MAP@k (%)", zero=False)
    for axis, (_, part) in zip(figure.axes, rows.groupby("k", sort=False), strict=True):
        axis.axvline(part["chance"].iloc[0], color="black", linestyle=":", linewidth=1)
    return captions.figure(run, SHOWN, "figure_leakage", rows, figure, own_group=paired.of_own_group(rows))
