"""What queries got: one tidy table for every paper, and all means, spreads, class means and tests that rest on it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lib.errors import InputError
from lib.metrics import retrieval
from lib.metrics.retrieval import PerQuery
from lib.study import differences
from lib.training.methods import Answer, Health
from lib.training.splits import Split

QUERY = ["fold", "repeat", "query", "group", "label"]
"""A query: its fold, the training that it searches, its image, the unit of the paired tests, and its class."""

HEALTH = {"loss": "mean", "rim": "max", "steps": "max"}
"""How the health of several trainings becomes one row's; anything else that was measured is averaged."""

Answers = Mapping[str, Sequence["Answer | Scored"]]
"""Method → its answer on each split."""

Measure = Callable[[Answer], Mapping[str, float]]
"""More numbers of a training, from its answer."""


@dataclass(frozen=True, eq=False)
class Scores:
    """A row per query and a row per training.

    Attributes:
        values: from 0 to 1, NaN where a query has nothing to find; columns (metric, k); index: what tells the rows of a
            table apart (``names``, as rule and method), then :data:`QUERY`.
        chance: what a gallery in random order gives, laid out as ``values``; NaN where nobody knows.
        trainings: loss, rim, steps and what else was measured; index ``names``, fold, repeat.
    """

    values: pd.DataFrame
    chance: pd.DataFrame
    trainings: pd.DataFrame

    @property
    def names(self) -> list[str]:
        """The levels of the index that tell the rows of a table apart."""
        return [name for name in self.values.index.names if name not in QUERY]

    def means(self) -> pd.DataFrame:
        """A row for each of ``names``, metric and k; percent.

        Columns ours (mean over folds and trainings), spread (standard deviation over folds, of means over trainings),
        seeds_spread (over trainings, of means over folds; NaN where there is one), class_mean (the queries of all folds
        of a training together, averaged per class first; then over trainings), chance, class_chance, n_seeds,
        n_queries, n_without_relevant (of the first training: all are searched by the same queries) and the health.
        """
        names = self.names
        split = 100 * self.values.groupby([*names, "fold", "repeat"], sort=False).mean()
        over = {
            "ours": split.groupby(names, sort=False).mean(),
            "spread": _deviation(split, names, "fold"),
            "seeds_spread": _deviation(split, names, "repeat"),
            "class_mean": self._class_means(self.values),
            "chance": 100 * self.chance.groupby([*names, "fold", "repeat"], sort=False).mean().groupby(names).mean(),
            "class_chance": self._class_means(self.chance),
        }
        aligned = {name: frame.reindex(over["ours"].index) for name, frame in over.items()}
        rows = pd.concat(aligned, axis=1, names=["measure"]).stack(["metric", "k"], future_stack=True)
        first = self.values[self.values.index.get_level_values("repeat") == 0]
        empty = first.iloc[:, 0].isna().groupby(names, sort=False)
        repeats = split.index.to_frame(index=False).groupby(names, sort=False)["repeat"].nunique()
        counts = pd.DataFrame({"n_seeds": repeats, "n_queries": empty.size(), "n_without_relevant": empty.sum()})
        health = self.trainings.groupby(names, sort=False).agg(
            {name: HEALTH.get(name, "mean") for name in self.trainings}
        )
        return rows.reset_index().join(counts, on=names).join(health, on=names)

    def _class_means(self, values: pd.DataFrame) -> pd.DataFrame:
        of_class = values.groupby([*self.names, "repeat", "label"], sort=False).mean()
        return 100 * of_class.groupby([*self.names, "repeat"], sort=False).mean().groupby(self.names, sort=False).mean()

    def of(self, name: Any, metric: str, k: int) -> pd.Series:
        """The value of every query of one row of a table; ``name`` is its place in ``names``, a tuple of several."""
        return self.values[metric, k].xs(name, level=self.names if isinstance(name, tuple) else self.names[0])

    def beside(self, names: Mapping[str, Any], metric: str, k: int) -> pd.DataFrame:
        """Queries that several rows of a table have, whatever their fold: a column each; all that all can answer.

        names: column → a row as in :meth:`of`.
        """
        return pd.DataFrame(
            {title: self.of(name, metric, k).droplevel("fold") for title, name in names.items()}
        ).dropna()

    def tests(
        self,
        pairs: Sequence[tuple[str, str]],
        ks: Sequence[int],
        *,
        metric: str = "ap_min",
        by_class: bool = False,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Paired tests between methods on the same queries, over groups of images and over trainings.

        Args:
            pairs: names of methods, which is compared with which, at each value of the other ``names`` that has both.
            ks: list lengths. metric: what is compared.
            by_class: compare means over classes (:func:`lib.study.differences.of_classes`).
            seed: of the random sign flips.

        Returns:
            A row per place, pair and k: the other ``names``, first, second, k, difference (first minus second,
            percentage points) and the fields of :func:`lib.study.differences.together`; p is corrected for all rows.

        Raises:
            InputError: where two methods were not searched by the same queries, or trained equally often.
        """
        places = [name for name in self.names if name != "method"]
        parts = self.values.groupby(places, sort=False) if places else [((), self.values)]
        lines = []
        for place, part in parts:
            at = dict(zip(places, place if isinstance(place, tuple) else (place,), strict=True))
            here = set(part.index.get_level_values("method"))
            for first, second in (pair for pair in pairs if here.issuperset(pair)):
                for k in ks:
                    a, b = (part[metric, k].xs(name, level="method") for name in (first, second))
                    test = differences.of_queries(a, b, by_class, seed)
                    lines.append(at | {"first": first, "second": second, "k": k} | test)
        together = {(line["first"], line["second"]) for line in lines}
        if lost := [pair for pair in pairs if tuple(pair) not in together]:
            raise InputError(f"{lost[0][0]} and {lost[0][1]} were nowhere searched by the same queries")
        return differences.together(lines)


def _deviation(split: pd.DataFrame, names: Sequence[str], over: str) -> pd.DataFrame:
    return split.groupby([*names, over], sort=False).mean().groupby(names, sort=False).std()


@dataclass(frozen=True, eq=False)
class Scored:
    """What the queries of a training got, for :func:`of_answers`, where a paper trains and searches by itself.

    history: the mean loss of each epoch. steps: of the optimiser.
    """

    split: Split
    per_query: PerQuery
    history: Sequence[float] = ()
    steps: int = 0

    @property
    def health(self) -> Health:
        """How the training ended."""
        return Health(self.history[-1] if len(self.history) else np.nan, np.nan, self.steps)


def of_answers(
    by_place: Mapping[str, Answers],
    groups: np.ndarray | None = None,
    measure: Measure = lambda _: {},
    rule: str = "rule",
) -> Scores:
    """The scores of answers: rule of the folds, or gallery, → method → one answer for each split.

    groups: (n,) of all images, the units of the paired tests; every image by itself if not given. rule: what the first
    level is called.
    """
    by_training = {
        (place, method, answer.split.fold, answer.split.repeat): answer
        for place, methods in by_place.items()
        for method, answers in methods.items()
        for answer in answers
    }
    trainings = pd.MultiIndex.from_tuples(by_training, names=[rule, "method", "fold", "repeat"])
    health = pd.DataFrame([vars(answer.health) | dict(measure(answer)) for answer in by_training.values()], trainings)
    each = trainings.repeat([len(answer.split.test) for answer in by_training.values()])
    queries = np.concatenate([answer.split.test for answer in by_training.values()])
    per_query = retrieval.together([answer.per_query for answer in by_training.values()])
    index = [*(each.get_level_values(name) for name in each.names), queries]
    index += [queries if groups is None else groups[queries], per_query.classes]
    index = pd.MultiIndex.from_arrays(index, names=[*each.names, *QUERY[2:]])
    return Scores(per_query.values.set_axis(index), per_query.chance.set_axis(index), health)


def of_values(values: pd.DataFrame, trainings: pd.DataFrame, names: Sequence[str] = ("method",)) -> Scores:
    """The scores of what a paper trains and searches by itself.

    values: a row per query, columns ``names``, :data:`QUERY` and one for each measure, from 0 to 1: (metric, k), or its
    metric where there is no k. trainings: columns ``names``, fold, repeat, health and what else was measured.

    Raises:
        InputError: for a column that is missing.
    """
    for frame, needed in ((values, [*names, *QUERY]), (trainings, [*names, "fold", "repeat"])):
        if missing := [name for name in needed if name not in frame]:
            raise InputError(f"scores need the columns {', '.join(needed)}; missing: {', '.join(missing)}")
    table = values.set_index([*names, *QUERY])
    pairs = [column if isinstance(column, tuple) else (column, 0) for column in table]
    table.columns = pd.MultiIndex.from_tuples(pairs, names=["metric", "k"])
    return Scores(table, table * np.nan, trainings.set_index([*names, "fold", "repeat"]))
