"""A word means the same in every paper: the same values of the same queries give the same class mean."""

import numpy as np
import pandas as pd
import pytest

from lib.metrics import retrieval
from lib.metrics.retrieval import PerQuery
from lib.papers.acir import hashing
from lib.papers.acir.ablations import rows
from lib.papers.acir.training import Sized as OfNetwork
from lib.papers.beyond import storage
from lib.papers.hyper_dino import queries
from lib.papers.hyper_dino import retrieval as hyper_dino
from lib.papers.label_tree import results as label_tree
from lib.papers.label_tree.experiment import Scored
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

K = 100
RIGHT = {0: [("a", 1.0), ("a", 1.0), ("a", 0.0), ("b", 0.0)], 1: [("a", 1.0), ("b", 1.0), ("b", 1.0), ("b", 0.5)]}
"""Fold → class and value of each query; class b asks once in the first fold."""
POOLED = (3 / 4 + 2.5 / 4) / 2
FOLD_BY_FOLD = ((2 / 3 + 0) / 2 + (1 + 2.5 / 3) / 2) / 2


def per_query(fold: int) -> PerQuery:
    classes, values = zip(*RIGHT[fold], strict=True)
    columns = pd.MultiIndex.from_product([["ap_min", "ap_hits"], [1, K]], names=["metric", "k"])
    frame = pd.DataFrame(np.repeat(np.array(values)[:, None], 4, axis=1), columns=columns)
    return PerQuery(frame, np.array(classes), np.full(4, 5), np.full(4, 20))


def by_answers() -> dict[str, dict[str, list[Answer]]]:
    method = Method("ball-16bit", Recipe("PCA", 4, 2), Settings())
    parts = [Split(fold, np.arange(20, 30), np.arange(4), fold) for fold in RIGHT]
    several = [Answer(method, part, Health(), [0.5], np.zeros(1), per_query(part.fold)) for part in parts]
    return {"closed": {method.name: several}}


def of_hyper_dino() -> float:
    rows = hyper_dino.retrieval_table(by_answers(), 4, "none")
    return rows.query("metric == 'ap_min' and k == 1")["class_mean"].item()


def of_acir() -> float:
    return hashing.maps(by_answers()).query("metric == 'ap_min' and k == 1")["class_mean"].item()


def of_ablations() -> float:
    both = retrieval.together([per_query(fold) for fold in RIGHT])
    split = Split(0, np.arange(20, 30), np.arange(8), 0)
    return rows.frame({"row": [OfNetwork(split, both)]})["first_class"].item()


def of_label_tree() -> float:
    several = []
    for fold in RIGHT:
        one = per_query(fold)
        values = pd.DataFrame(dict.fromkeys(label_tree.SHARES, one.values["ap_min", 1]))
        values = values.assign(leaf=one.classes, group="a")
        split = Split(fold, np.arange(20, 30), np.arange(4), 0)
        several.append(Scored("no head", split, Health(), [], values))
    return label_tree.rows({"no head": several}).query("measure == 'top1'")["class_mean"].item()


def of_twins() -> float:
    rows = pd.concat([pd.DataFrame(RIGHT[fold], columns=["label", "hit"]) for fold in RIGHT], ignore_index=True)
    return queries._means(rows.assign(ap=0.0, hit_chance=0.1, ap_chance=0.1), 5)["class_mean_1"]


def of_storage() -> float:
    both = retrieval.together([per_query(fold) for fold in RIGHT])
    return storage.of_metric(both, storage.CLASS_MEANS)["class_mean_1"]


@pytest.mark.parametrize("of", [of_hyper_dino, of_acir, of_ablations, of_label_tree, of_twins, of_storage])
def test_every_paper_has_one_class_mean(of):
    assert of() == pytest.approx(100 * POOLED) and abs(POOLED - FOLD_BY_FOLD) > 0.06
