"""What else the first answer shares with its query: the label, such as the diagnosis, where categories are others.

Where a category is a lesion, to find it again is to recognise one and the same spot of skin. A doctor's question is
whether answers have the same diagnosis where the lesion itself is not in the gallery.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.papers.hyp_vit.heads import HYP, METRIC, NONE, SPH
from lib.study.columns import Column, Layout
from lib.study.markdown import percent
from lib.study.run import Arm, Study
from lib.study.scores import Answers, of_answers
from lib.training.experiment import ask, fit
from lib.training.splits import repeated

COMMONEST = "always the commonest label"
WITH, WITHOUT = "own category in the gallery", "own category left out"
LAYOUT = Layout(
    [
        Column("method"),
        Column("own category first", "category", chance="chance_category"),
        Column("right label first", "label", chance="chance_label"),
        Column("own category left out: right label first", "label_alone", chance="chance_label_alone"),
        Column("± trainings", "seeds_spread", lambda value: percent(value) if value else "–"),
        Column("labels alike", "by_class", chance="chance_by_class"),
    ]
)


def by_label(study: Study, arms: Sequence[Arm], labels: np.ndarray) -> dict[str, Answers]:
    """The networks of ``arms``, where an answer of the query's label is right; labels: (n,) of all images."""
    x, methods = study.features[arms[0].encoder], [arm.method for arm in arms]
    fitted = fit(x, study.labels, methods, repeated(study.splits, study.n_seeds))
    groups = {WITH: np.arange(len(x)), WITHOUT: study.labels}
    return {name: ask(fitted, x, labels, [1], gallery="open", groups=of) for name, of in groups.items()}


def values(answers: Mapping[str, Answers], by_category: pd.DataFrame, gallery: np.ndarray) -> pd.DataFrame:
    """A row per method: category, label, label_alone (own category left out), by_class and the chance of each; percent.

    by_category: of :func:`.retrieval.recall`. by_class: label_alone averaged per label first. gallery: the labels that
    are searched; the last row answers with the commonest of them, always.
    """
    rows = of_answers(answers).means().query("metric == @METRIC").set_index("method")
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
    label = np.bincount(gallery).argmax()
    with_answer = {}
    for rule, methods in answers.items():
        queries = next(iter(methods.values()))[0].per_query
        with_answer[rule] = queries.classes[queries.values[METRIC, 1].notna()]
    shares = {rule: 100 * (classes == label).mean() for rule, classes in with_answer.items()}
    rare = with_answer[WITHOUT]
    blind = {"method": COMMONEST, "category": np.nan, "seeds_spread": np.nan, "label": shares[WITH]}
    blind |= {"label_alone": shares[WITHOUT], "by_class": 100 * (label in rare) / len(np.unique(rare))}
    return pd.concat([table, table.iloc[[0]].assign(**blind)], ignore_index=True)


def tests(answers: Mapping[str, Answers], names: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Paired tests of the right label first, own category left out, over categories (``names: (n,)``) and trainings."""
    alone = {WITHOUT: answers[WITHOUT]}
    pairs = [(HYP, NONE), (HYP, SPH)]
    return of_answers(alone, names).tests(pairs, [1], metric=METRIC, seed=seed).drop(columns="rule")
