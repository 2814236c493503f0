"""On real images the verdict is what notebook 90 finds: other folds, steps and trainings, the same best method."""

import pandas as pd
import pytest

from lib import paths
from lib.archive import methods, verdict


@pytest.mark.parametrize(("dataset", "rule"), [("kather", "by slide"), ("bh200x", "by patient")])
def test_the_recommended_method_is_the_best_of_notebook_90_and_clearly_above_plain_features_there(dataset, rule):
    folder = paths.report("your", "sample", dataset, "archive")
    decided = pd.read_csv(folder / "table_verdict.csv").iloc[0]
    found = pd.read_csv(paths.report("beyond", "sample", dataset, "factors") / "table_costs.csv")
    found = found[(found["archive"] == f"closed, {rule}") & (found["k"] == found["k"].max())]
    lists = found.set_index("method")["ours"]
    known = {name: lists[kind.source] for name, kind in methods.METHODS.items() if kind.source in lists}
    assert decided["outcome"] == verdict.BETTER and decided["key"] == max(known, key=known.__getitem__)
    assert known[decided["key"]] - known[methods.PLAIN] > 15
