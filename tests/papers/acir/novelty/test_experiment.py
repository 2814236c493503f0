"""Trainings of the novelty experiment: which classes take their turn as the one that is left out."""

from dataclasses import replace

import numpy as np

from lib.papers.acir.novelty import experiment
from lib.training.hashing import Even


def test_each_class_that_somebody_asks_with_is_left_out_once(scene):
    own = len(scene.tables[0])
    teaching = replace(scene, fold=np.where(scene.kind[:own] == "c", 1, scene.fold))
    plan = experiment.Plan(8, 192, Even(2, 16), Even(1, 8), 1, 0)
    turns = experiment.each_class(teaching, plan, 0.01, rebuilt=False)
    assert turns.drop_duplicates("class")["class"].tolist() == ["a", "b", "new"]
    assert turns["auroc"].between(0, 100).all() and (turns["n"] > 0).all()
