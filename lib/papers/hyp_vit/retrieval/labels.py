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
COMMONEST = "always the commonest label"
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


def values(found: Mapping[str, Found], by_category: pd.DataFrame, archive: np.ndarray) -> pd.DataFrame:
    """A row per method: category, label, label_alone (own category left out), by_class and the chance of each; percent.

    by_category: Recall@1 of the categories, of :func:`.tables.recall`. by_class: label_alone averaged per label first.
    archive: the labels of the images that are searched; the last row answers with the commonest of them, always.
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
        "chance_by_class": alone["class_chance"],
        "n_without_relevant": alone["n_without_relevant"],
    }
    table = pd.DataFrame(columns).reset_index()
    return pd.concat([table, _commonest(found, table, archive)], ignore_index=True)


def _commonest(found: Mapping[str, Found], table: pd.DataFrame, archive: np.ndarray) -> pd.DataFrame:
    """How often the commonest label of the archive is right, as a row like those of the ``table``."""
    label = np.bincount(archive).argmax()
    asked = {rule: next(iter(by_method.values()))[0].per_query for rule, by_method in found.items()}
    right = {rule: (one.classes == label)[one.values[METRIC, 1].notna()] for rule, one in asked.items()}
    alone = asked[WITHOUT].classes[asked[WITHOUT].values[METRIC, 1].notna()]
    row = table.iloc[[0]].assign(method=COMMONEST, category=np.nan, seeds_spread=np.nan)
    return row.assign(
        label=100 * right[WITH].mean(),
        label_alone=100 * right[WITHOUT].mean(),
        by_class=100 * (label in alone) / len(np.unique(alone)),
    )


def layout(rows: pd.DataFrame) -> str:
    """The rows of :func:`values`, then chance, as Markdown; a dash where nothing varies or nothing can be counted."""
    chance = rows.iloc[0]
    shown = rows.assign(seeds_spread=rows["seeds_spread"].replace(0.0, np.nan))
    lines = [
        {
            "method": row.method,
            "own category first": percent(row.category),
            "right label first": percent(row.label),
            "own category left out: right label first": percent(row.label_alone),
            "± trainings": percent(row.seeds_spread),
            "labels alike": percent(row.by_class),
        }
        for row in shown.itertuples()
    ]
    last = [chance["chance_category"], chance["chance_label"], chance["chance_label_alone"]]
    of_classes = percent(chance["chance_by_class"])
    lines.append(dict(zip(lines[0], ["chance", *map(percent, last), "–", of_classes], strict=True)))
    return markdown_table(pd.DataFrame(lines))


def sentences(rows: pd.DataFrame) -> list[str]:
    """How many methods are right more often than the commonest label, own category left out; rows of :func:`values`."""
    methods, (blind,) = rows[rows["method"] != COMMONEST], rows[rows["method"] == COMMONEST].to_dict("records")
    lines = []
    for column, how in (("label_alone", ""), ("by_class", ", labels counting alike")):
        above = methods.loc[methods[column] > blind[column], "method"]
        named = f": {', '.join(above)}" if 0 < len(above) < len(methods) else ""
        lines.append(
            f"own category left out{how}: the commonest label as every answer is right in {blind[column]:.2f} %, the "
            f"first answer more often than that by {len(above)} of {len(methods)} methods{named}"
        )
    return lines


def tests(found: Mapping[str, Found], names: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Paired tests of the right label first, own category left out, over categories (``names: (n,)``) and trainings."""
    alone = found[WITHOUT]
    pairs = [pair for pair in PAIRS if set(pair) <= set(alone)]
    return answers.compare({WITHOUT: alone}, names, pairs, [1], metric=METRIC, seed=seed).drop(columns="rule")
