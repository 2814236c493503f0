"""The paper's parameters take a step on stand-ins for its four datasets, all the way to Tables 2 to 5."""

import numpy as np
import pytest

from lib import paths
from lib.datasets.categories import ASIDE, halves
from lib.datasets.table import ImageTable
from lib.geometry import PoincareBall
from lib.papers.hyp_vit import end_to_end, heads, published, retrieval
from lib.papers.hyp_vit import hyperparameters as section
from lib.papers.hyp_vit.heads import END, HYP
from lib.pipeline import notebooks, profiles
from lib.study.run import at_rates
from lib.training import finetune
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.hyp_vit_end_to_end import EndToEnd
from lib.training.photos import Preparation
from tests.images import coloured, listed

RETRIEVAL, SETTINGS = "hyp_vit_retrieval", "hyp_vit_hyperparameters"


def photographs(root, dataset: str, teaching: int, others: int, samples: int) -> ImageTable:
    """Photos of noise around a category's own colour, with the dataset's standard split."""
    category, number = np.divmod(np.arange((teaching + others) * samples), samples)
    asked = np.array(["query", "gallery"])[number % 2] if dataset == "in_shop" else "test"
    labels, split = [f"c{code}" for code in category], np.where(category < teaching, "train", asked)
    colours = np.random.default_rng(0).integers(30, 220, (teaching + others, 3))[category]
    return coloured(listed(labels, root, dataset, split=split), colours, (18, 20), spread=12)


def of_the_paper(stage: str, dataset: str) -> dict:
    """What the paper's pipeline hands to a notebook: its defaults, the shared settings, then those of the run."""
    shared = profiles.settings()["hyp_vit"]
    common = shared["head"] | shared["training"] | shared["protocol"]
    given = common | (shared["opponents"] if stage == RETRIEVAL else {}) | profiles.runs("paper")[stage][dataset]
    defaults = notebooks.parameters(notebooks.read(paths.NOTEBOOKS / f"{profiles.notebooks()[stage]}.ipynb"))
    assert set(given) <= set(defaults)
    return defaults | given


@pytest.mark.parametrize(("dataset", "teaching"), [("cub", 100), ("cars", 98), ("sop", 600), ("in_shop", 600)])
def test_a_batch_of_the_papers_is_filled(dataset, teaching):
    """HV-7: about 900 images, of the categories that are left to learn from."""
    profiles.check(paths.PIPELINES / "paper" / "params.yaml")
    given = of_the_paper(RETRIEVAL, dataset)
    classes, samples, left = given["n_classes"], given["samples"], teaching - max(2, round(ASIDE * teaching))
    assert classes in (left, left - 1) and section.BATCH - samples * 2 <= classes * samples <= 900
    assert given["published_rates"]  # of each network its own, for encoder and head


@pytest.mark.parametrize(("dataset", "teaching", "others"), [("cars", 98, 4), ("in_shop", 600, 40)])
def test_the_papers_parameters_take_a_step(dataset, teaching, others, tmp_path, monkeypatch, small):
    """So many categories teach that a batch of the paper's can be filled; one step, of photos of 16 pixels."""
    given = of_the_paper(RETRIEVAL, dataset)
    classes, samples, ks = given["n_classes"], given["samples"], given["ks"]
    images = photographs(tmp_path, dataset, teaching, others, samples)
    parts = halves(images, given["category"])
    monkeypatch.setattr(paths, "TRAINED", tmp_path / "trained")
    settings = Settings(PoincareBall(given["curvature"]), given["clip_radius"], given["temperature"])
    schedule = ByClass(1, classes * samples, weight_decay=given["weight_decay"], samples=samples)
    x = np.random.default_rng(0).normal(size=(len(images), 8)).astype(np.float32)
    arms = heads.arms(heads.heads(settings, 8, given["dim_out"], schedule, (HYP,)), "noise")
    study = heads.study({"noise": x}, parts, ks)
    answers = study.answers(at_rates(arms, study.choose(arms, given["rates"][:1])))["own"]
    assert answers[HYP][0].health.steps == 2  # 1,200 photos or nearly, in batches of 900

    rates = published.rate(given["network"]), None, given["weight_decay"]
    steps = finetune.Settings(1, classes * samples, samples, *rates, check_every=1)
    plan = EndToEnd(given["network"], given["dim_out"], steps, Preparation(16, 16))
    together, course = end_to_end.end_to_end(images, parts, {HYP: settings}, plan, ks, store=None)
    assert course["step"].tolist() == [0, 1] and course["loss"].notna().sum() == 1
    rows = retrieval.recall(answers | together)
    assert sorted(rows["k"].unique()) == ks and rows["ours"].between(0, 100).all()
    table = retrieval.layout(retrieval.of_dataset(2, dataset))(rows)
    assert "| Hyp-ViT (ViT-S) | published |" in table and f"| {HYP} | ours | {given['dim_out']} |" in table


def test_every_row_of_table_5_is_trained_end_to_end_with_the_papers_parameters(tmp_path, monkeypatch, small):
    """Batches of a few categories in place of the published ones, in proportion; one step, of photos of 16 pixels."""
    given, classes = of_the_paper(SETTINGS, "in_shop"), 9
    samples, ks = given["samples"], given["ks"]
    images = photographs(tmp_path, "in_shop", 24, 10, samples)
    parts = halves(images, given["category"])
    monkeypatch.setattr(paths, "TRAINED", tmp_path / "trained")
    settings = Settings(PoincareBall(given["curvature"]), given["clip_radius"], given["temperature"])
    schedule = ByClass(1, classes * samples, weight_decay=given["weight_decay"], samples=samples)
    arms = section.arms(section.default(settings, 8, given["dim_out"], schedule), "noise", parts)
    rates = given["end_to_end_lr"], given["head_lr"], given["weight_decay"]
    assert rates[:2] == (published.rate(given["network"]),) * 2
    steps = finetune.Settings(1, classes * samples, samples, *rates, check_every=1)
    plan = EndToEnd(given["network"], given["dim_out"], steps, Preparation(16, 16))
    answers = section.trained(images, parts, arms, given["end_to_end"], plan, ks)
    rows = retrieval.recall(answers).set_index("method")
    of_paper = [arm for arm in arms if arm.about["of"] != "room"]
    for arm, length in zip(of_paper, [128] * 6 + [16, 32, 64] + [128] * 3, strict=True):  # all, in their order
        places = [f"{arm.name}{END}{place}" for place in heads.PLACES]
        assert rows.loc[places, "dim"].unique().tolist() == [length, 4]
    others = [arm.name for arm in of_paper if arm.about["of"] != "head_dim"]  # four numbers keep all distances
    losses = {answers[f"{name}{END}head"][0].health.loss for name in others}
    assert len(losses) == len(others) == 9 and np.isfinite([*losses]).all()
    sizes = [arm.method.schedule.batch_size // samples for arm in arms if arm.about["of"] == "batch_size"]
    assert sizes == [2, 4, 16]  # of 900, 9 here: 200, 400 and 1,600
