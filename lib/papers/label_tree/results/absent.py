"""Published rows of datasets that no committed report is of, with what ours need in their place."""

from collections.abc import Iterable

import pandas as pd

from lib import paths
from lib.datasets.catalogue import DATASETS
from lib.papers.label_tree import published
from lib.papers.label_tree.results.tables import COLUMNS, marked
from lib.results.markdown import markdown_table, percent

SHORT = {"in_shop": "In-Shop", "inaturalist": "iNaturalist"}
"""What a cell calls a dataset whose title is long."""
THEIRS = {"Recall@5": "R@5"}
"""Published names of measures → ours."""


def datasets(run: str, reported: Iterable[str] | None = None) -> list[str]:
    """The published datasets, in the paper's order, that this ``run`` is not of and no sample report is of.

    reported: names of datasets with a sample report, read from ``reports/`` if not given.

    >>> datasets("in_shop", ["bh200x", "ham10000"]), datasets("tissue", ["bh200x", "ham10000", "odir", "in_shop"])
    (['odir', 'inaturalist'], ['inaturalist'])
    """
    if reported is None:
        reported = [folder.parent.name for folder in paths.COMMITTED.glob("label_tree/sample/*/results")]
    there = {"breakhis" if name.startswith("bh") else name for name in (*reported, run)}
    return [name for name in published.DATASETS if name not in there]


def rows(names: Iterable[str]) -> pd.DataFrame:
    """Published rows of ``names``, percent: columns dataset, method, and the measures that they have."""
    table = published.results().rename(columns=THEIRS)
    table = table[table["dataset"].isin(list(names))].reset_index(drop=True)
    measures = [title for title in COLUMNS.values() if table[title].notna().any()]
    return table[["dataset", "method"]].join(100 * table[measures])


def layout(table: pd.DataFrame) -> str:
    """Published rows of each dataset, then one that says what ours need, as Markdown; signs as in the other tables."""
    measures, lines = [name for name in table.columns if name in COLUMNS.values()], []
    for name, part in table.groupby("dataset", sort=False):
        first = {"dataset": published.DATASETS[name]}
        for row in part.to_dict("records"):
            signs = marked({"Top-1": float("nan")} | row)
            cells = {title: percent(row[title]) + signs.get(title, "") for title in measures}
            lines.append(first | {"method": row["method"], "whose": "published"} | cells)
        there = {title: f"needs {needed(name)}" for title in measures if part[title].notna().any()}
        lines.append(first | {"method": "all of ours", "whose": "ours"} | there)
    return markdown_table(pd.DataFrame(lines).fillna("–"))


def needed(dataset: str) -> str:
    """What a run on a dataset lacks, in short.

    >>> needed("inaturalist"), needed("ham10000")
    ('iNaturalist', 'HAM10000')
    """
    return SHORT.get(dataset) or (DATASETS[dataset].title if dataset in DATASETS else published.DATASETS[dataset])
