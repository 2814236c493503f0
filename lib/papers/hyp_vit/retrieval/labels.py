"""What else the first answer shares with its query: the label, such as the diagnosis, where categories are others.

Where a category is a lesion, to find it again is to recognise one and the same spot of skin. What a doctor asks is
another question: are the answers of the same diagnosis, where the lesion itself is not in the archive?
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.papers.hyp_vit.names import HYP, NONE, SPH
from lib.papers.hyp_vit.retrieval import frozen
from lib.papers.hyp_vit.retrieval.tables import METRIC
from lib.results import answers
from lib.results.markdown import markdown_table, percent
from lib.training.methods import Answer, Fitted

Found = dict[str, list[Answer]]
WITH, WITHOUT = "own category in the archive", "own category left out"
PAIRS = [(HYP, NONE), (HYP, SPH)]


def asked(
    several: Mapping[str, Sequence[Fitted]], x: np.ndarray, categories: np.ndarray, labels: np.ndarray
) -> dict[str, Found]:
    """Whether the first answer has the query's label, with its own category in the archive and without.

    several: of :func:`.frozen.fitted`. x: (n, dim) features; categories, labels: (n,) of all images, as numbers.
    """
    groups = {WITH: None, WITHOUT: categories}
    return {name: frozen.asked(several, x, labels, [1], "labels", of) for name, of in groups.items()}


def values(found: Mapping[str, Found], by_category: pd.DataFrame) -> pd.DataFrame:
    """A row per method: category, label, label_alone (own category left out), by_class and the chance of each; percent.

    by_category: Recall@1 of the categories, of :func:`.tables.recall`. by_class: label_alone averaged per label first.
    """
    rows = answers.values(found).query("metric == @METRIC").set_index("method")
    alone, within = (rows[rows["rule"] == rule] for rule in (WITHOUT, WITH))
    category = by_category[by_category["k"] == 1].set_index("method").loc[alone.index]
    columns = {
        "category": category["ours"],
        "label": within["ours"],
        "label_alone": alone["ours"],
        "seeds_spread": alone["seeds_spread"],
        "by_class": alone["class_mean"],
        "chance_category": category["chance"],
        "chance_label": within["chance"],
        "chance_label_alone": alone["chance"],
        "n_without_relevant": alone["n_without_relevant"],
    }
    return pd.DataFrame(columns).reset_index()


def layout(rows: pd.DataFrame) -> str:
    """The rows of :func:`values`, then chance, as Markdown."""
    chance = rows.iloc[0]
    lines = [
        {
            "method": row.method,
            "own category first": percent(row.category),
            "right label first": percent(row.label),
            "own category left out: right label first": percent(row.label_alone),
            "± trainings": percent(row.seeds_spread),
            "labels alike": percent(row.by_class),
        }
        for row in rows.itertuples()
    ]
    last = [chance["chance_category"], chance["chance_label"], chance["chance_label_alone"]]
    lines.append(dict(zip(lines[0], ["chance", *map(percent, last), "–", "–"], strict=True)))
    return markdown_table(pd.DataFrame(lines))


def tests(found: Mapping[str, Found], names: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Paired tests of the right label first, own category left out, over categories (``names: (n,)``) and trainings."""
    alone = found[WITHOUT]
    pairs = [pair for pair in PAIRS if set(pair) <= set(alone)]
    return answers.compare({WITHOUT: alone}, names, pairs, [1], metric=METRIC, seed=seed).drop(columns="rule")
