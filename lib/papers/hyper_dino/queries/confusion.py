"""Which class the first answer has."""

import pandas as pd

from lib.figures import confusion as pictures
from lib.results.shown import Figure
from lib.results.store import Run


def confusion(table: pd.DataFrame) -> pd.DataFrame:
    """Which class the first answer has: columns rule, query_class, answer_class, n, share (percent of the queries).

    table: rows of :func:`.lists.answers` with their rule.
    """
    first = table[table["rank"] == 1].rename(columns={"reference_class": "answer_class"})
    counts = first.groupby(["rule", "query_class", "answer_class"], sort=False).size().rename("n").reset_index()
    of_class = counts.groupby(["rule", "query_class"])["n"].transform("sum")
    return counts.assign(share=100 * counts["n"] / of_class)


def mistaken(rows: pd.DataFrame, n: int = 3) -> list[str]:
    """The ``n`` classes that are most often taken for another, from the rows of :func:`confusion`, by fold rule."""
    wrong = rows[rows["query_class"] != rows["answer_class"]].sort_values("share", ascending=False, kind="stable")
    return [
        f"Folds {rule}: "
        + ", ".join(
            f"{row.query_class} answered by {row.answer_class} ({row.share:.0f} %)" for row in part.itertuples()
        )
        for rule, part in ((rule, wrong[wrong["rule"] == rule].head(n)) for rule in rows["rule"].unique())
    ]


def figure_confusion(run: Run, rows: pd.DataFrame) -> Figure:
    """The confusion of the first answer as a picture."""
    text = (
        f"The class of the first answer by {run.parameters['recipe']}, every image as a query of its fold; each row is "
        "the percentage of the queries of that class. The diagonal is what is right. One training of each fold."
    )
    return Figure("confusion of the first answer", rows, text, figure=pictures.confusion(rows))
