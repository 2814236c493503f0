"""A study: which methods are compared on which images, at which rates, and what their queries got."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from lib.study.rates import best_rates, choose_middle
from lib.study.scores import Measure, Scores, of_answers
from lib.training.experiment import ask, fit
from lib.training.methods import Answer, Method
from lib.training.splits import Split, repeated


@dataclass(frozen=True)
class Arm:
    """A row of a table: a method on the features of an encoder.

    about: what the row changes, by the names of columns. also: further ways to search the same network, of
    :data:`lib.training.methods.SEARCHES`.
    """

    method: Method
    encoder: str
    about: Mapping[str, Any] = field(default_factory=dict)
    also: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The method's."""
        return self.method.name

    def at(self, lr: float) -> "Arm":
        """The same at another learning rate."""
        return replace(self, method=replace(self.method, schedule=replace(self.method.schedule, lr=lr)))


@dataclass(frozen=True, eq=False)
class Study:
    """Images, their features and splits, alike for all arms.

    Attributes:
        features: encoder → (n, dim), or (V, n, dim) of V views of each image.
        labels: (n,) classes; an answer of the query's class is right.
        groups: (n,) units of the paired tests, for example patients.
        splits: what is learnt from, the queries and the gallery.
        aside: a split inside of the training images, by which rates are chosen.
        ks, metric: of the lists.
        gallery: of :data:`lib.training.splits.GALLERIES`. apart: (n,) in the open gallery a query finds nothing of its
            own; by default ``groups``.
        n_seeds: trainings of each split.
    """

    features: Mapping[str, np.ndarray]
    labels: np.ndarray
    groups: np.ndarray
    splits: Sequence[Split]
    aside: Split
    ks: Sequence[int]
    metric: str = "ap_min"
    gallery: str = "closed"
    apart: np.ndarray | None = None
    n_seeds: int = 5

    def answers(self, arms: Sequence[Arm], what: str = "heads") -> dict[str, dict[str, list[Answer]]]:
        """Search ("own", or one of ``also``) → method → an answer for each split and training."""
        answers: dict[str, dict[str, list[Answer]]] = {"own": {}}
        for encoder in dict.fromkeys(arm.encoder for arm in arms):
            x, own = self.features[encoder], [arm for arm in arms if arm.encoder == encoder]
            image = x[0] if x.ndim == 3 else x
            searches = {f"{arm.name}|{how}": (arm, how) for arm in own for how in ("own", *arm.also)}
            methods = [
                replace(arm.method, name=name, search=arm.method.search if how == "own" else how)
                for name, (arm, how) in searches.items()
            ]
            fitted = fit(x, self.labels, methods, repeated(self.splits, self.n_seeds), what=what)
            where = {"gallery": self.gallery, "groups": self.groups if self.apart is None else self.apart}
            by_search = ask(fitted, image, self.labels, self.ks, **where, what=f"{what}, queries")
            for name, (arm, how) in searches.items():
                answers.setdefault(how, {})[arm.name] = by_search[name]
        places = {arm.name: place for place, arm in enumerate(arms)}
        return {
            how: dict(sorted(methods.items(), key=lambda item: places[item[0]])) for how, methods in answers.items()
        }

    def run(self, arms: Sequence[Arm], measure: Measure = lambda _: {}, what: str = "heads") -> Scores:
        """Train all arms and let the queries ask; the scores' rows are told apart by search and method.

        measure: more numbers of every training.
        """
        return of_answers(self.answers(arms, what), self.groups, measure, rule="search")

    def choose(self, arms: Sequence[Arm], rates: Sequence[float], n_seeds: int = 1) -> pd.DataFrame:
        """Every arm at every rate on the images set aside; :func:`lib.study.rates.choose_middle` says which is chosen.

        Columns method, lr, loss and those of that function; the units of its error are ``groups``.
        """
        aside = replace(self, splits=[self.aside], n_seeds=n_seeds, ks=self.ks[:1])
        rows, values = [], []
        for lr in rates:
            tried = aside.answers([replace(arm.at(lr), also=()) for arm in arms], what=f"learning rate {lr:g}")["own"]
            for name, answers in tried.items():
                values.append([100 * answer.per_query.values[self.metric, self.ks[0]] for answer in answers])
                rows.append({"method": name, "lr": lr, "loss": np.mean([answer.health.loss for answer in answers])})
        table = choose_middle(pd.DataFrame(rows), values, self.groups[self.aside.test])
        places = {arm.name: place for place, arm in enumerate(arms)}
        return table.sort_values("method", kind="stable", key=lambda names: names.map(places), ignore_index=True)


def at_rates(arms: Sequence[Arm], tried: pd.DataFrame) -> list[Arm]:
    """Each arm at the rate that :meth:`Study.choose` chose; an arm that it did not try, as plain features, as it is."""
    lr = best_rates(tried)
    return [arm.at(lr[arm.name]) if arm.name in lr else arm for arm in arms]
