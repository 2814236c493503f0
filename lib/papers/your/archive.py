"""Notebook 93: which method serves your images, as one table and one picture."""

import pandas as pd

from lib.figures.forest import forest
from lib.study import paired
from lib.study.columns import Column, Layout
from lib.study.shown import Figure, Table

SAYS = (
    "Precision@k: the share of the first k answers that show the query's class, percent, means over folds and "
    "trainings (the verdict and its test average the images of each patient, or other group, first). A class with "
    "fewer images than k cannot fill the list. "
    "By image: the archive knows other images of the query's patient; by patient, or whatever your folders tell: it "
    "knows none. Closed: the archive is what a method learnt from; open: other new images, on which nothing was "
    "fitted. Class mean: averaged per class first. Macro F1 of the first answer, and of the majority of 3 and of 5, "
    "without the query's patient. Seconds: one training on all images, on one processor, components apart; a dash: "
    "none is needed. Bytes of a code: the code alone, two for each number, one for eight bits. An archive keeps more: "
    "codes to search by, the encoder's features, thumbnails."
)


def placed(rows: pd.DataFrame, strict: str) -> pd.DataFrame:
    """``rows`` of :class:`lib.archive.trials.Measured` with place, "k, archive", and own, the k in the strict one."""
    place = rows["k"].astype(str) + ", " + rows["archive"]
    return rows.assign(place=place, own=rows["k"].where(rows["archive"] == strict))


def verdict_text(rows: pd.DataFrame) -> str:
    """A verdict, a row of its csv, as a page begins with it.

    >>> verdict_text(pd.DataFrame([{"sentence": "Use this.", "further": None}]))
    '**Use this.**'
    """
    sentence, further = rows.iloc[0][["sentence", "further"]]
    return f"**{sentence}**" + ("" if pd.isna(further) else f" {further}")


LAYOUTS = {
    "table_verdict": lambda rows: verdict_text(rows),
    "table_methods": Layout(
        [
            Column("method"),
            Column("precision@{}", "ours", "1", over="place", chance="chance"),
            Column("class mean@{}", "class_mean", "1", over="own", chance="class_chance"),
            *(Column(f"macro F1, {vote}", f"f1_{k}", "1") for k, vote in {1: "first", 3: "of 3", 5: "of 5"}.items()),
            Column("against plain features", "gain"),
            Column("seconds to train", "seconds", "1"),
            Column("bytes of a code", "bytes", "0"),
        ]
    ),
    "table_tests": paired.tests_layout({"first": "method", "second": "compared with"}, "points of precision"),
    "table_found": Layout(
        [Column("class"), *(Column(name, form="0") for name in ("images", "groups", "used", "queries"))], by=("class",)
    ),
    "table_left_out": Layout([Column("what"), Column("why")], by=()),
}


def table_verdict(rows: pd.DataFrame) -> Table:
    """What to use; rows: of :class:`lib.archive.verdict.Verdict`."""
    about = "The rule that decides is the same for all images; it stands in lib/archive/verdict.py."
    return Table("the verdict", rows, about, free=["sentence", "further"])


def table_methods(rows: pd.DataFrame, tests: pd.DataFrame, strict: str) -> Table:
    """Every method, a line each; rows, tests, strict: of :class:`lib.archive.trials.Measured`."""
    gains = {test.first: f"{test.difference:+.1f}, {paired.verdict(test)}" for test in tests.itertuples(index=False)}
    shown = placed(rows, strict).assign(gain=rows["method"].map(gains))
    return Table(
        "which method serves your images",
        shown,
        f"{SAYS} Against plain features: points of the longest list, {strict}.",
        free=["seconds"],
    )


def table_tests(tests: pd.DataFrame) -> Table:
    """Every method against plain features."""
    return Table("each method against plain features", tests.drop(columns="rule"), paired.SAYS)


def figure_gain(tests: pd.DataFrame, k: int, strict: str) -> Figure:
    """What each method gains over plain features, the largest first."""
    rows = tests.sort_values("difference", ascending=False, kind="stable").rename(columns={"first": "name"})
    text = (
        f"Points of precision@{k} that each method has more than plain features ({strict}). Lines: 95 % interval over "
        "groups and trainings. Filled: clear after Holm's correction."
    )
    figure = forest(rows, xlabel=f"points of precision@{k} above plain features", row_height=0.36, width=34)
    kept = tests[["first", "difference", "low", "high", "p_holm"]]
    return Figure("what each method gains over plain features", kept, text, figure=figure)
