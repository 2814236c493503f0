"""Further networks beside the first: the same heads and trainings, under names that say whose they are."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib import paths
from lib.datasets.categories import halves
from lib.datasets.table import ImageTable
from lib.papers.hyp_vit.names import BEFORE, HYP, NONE, SPH, UNTRAINED
from lib.papers.hyp_vit.retrieval import control, end_to_end, networks
from lib.training import finetune
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings, spherical
from lib.training.photos import Preparation

NAMES = np.repeat([f"c{number}" for number in range(12)], 6)
RNG = np.random.default_rng(0)
KINDS = {HYP: Settings(), SPH: spherical(Settings())}
PLAN = end_to_end.EndToEnd("small", 3, finetune.Settings(2, 8, 2, 1e-2, check_every=2), Preparation(16, 16))


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "TRAINED", tmp_path / "trained")
    for number in range(72):
        colour = 20 * (number // 6) + RNG.integers(0, 12, (16, 16, 3))
        Image.fromarray(colour.astype(np.uint8)).save(tmp_path / f"{number}.png")
    files = [f"{number}.png" for number in range(72)]
    rows = pd.DataFrame({"image_id": files, "path": files, "label": NAMES, "group": files})
    return ImageTable("mine", tmp_path, rows, "image")


def test_a_frozen_network_has_the_heads_of_the_control_under_its_own_name(photos):
    x = RNG.normal(size=(72, 8)).astype(np.float32)
    arguments = halves(photos), Settings(), 4, ByClass(2, 8, samples=2), [1e-3, 1e-2], [1]
    found, tried = networks.frozen({"net_a": x, "net_b": x[::-1].copy()}, *arguments, n_seeds=2)
    assert list(found) == [f"{net}, {name}" for net in ("net_a", "net_b") for name in (NONE, HYP, SPH)]
    same, rates = control.answers(x, *arguments, n_seeds=2)
    for name, several in same.items():
        for one, other in zip(several, found[name.replace("untrained encoder", "net_a")], strict=True):
            pd.testing.assert_frame_equal(one.per_query.values, other.per_query.values)
    assert tried["validation"].head(len(rates)).tolist() == rates["validation"].tolist()
    assert networks.frozen({}, *arguments)[0] == {} and networks.frozen({}, *arguments)[1].empty


def test_every_network_is_trained_end_to_end_and_tested_against_itself(photos, small):
    parts, several = halves(photos), networks.plans(KINDS, PLAN, ["small"])
    assert [(list(kinds), plan.encoder) for kinds, plan in several] == [
        ([HYP, SPH], "small"),
        (["small, Hyp", "small, Sph"], "small"),
    ]
    speeds = networks.rates(photos, parts, several, [1e-3, 1e-2])
    assert speeds["method"].unique().tolist() == [HYP, SPH, "small, Hyp", "small, Sph"]
    found, course = networks.trained(photos, parts, several, [1], lr_of={"small, Hyp": 1e-3}, n_seeds=2)
    places = [f"{kind}, end to end, {place}" for kind in (HYP, SPH) for place in ("head", "encoder")]
    assert list(found) == [BEFORE, *places, f"small, {BEFORE}", *(f"small, {place}" for place in places)]
    assert set(course["method"]) == {f"{before}{kind}, end to end" for before in ("", "small, ") for kind in KINDS}
    one, other = (found[f"{before}Sph, end to end, head"][0].per_query.values for before in ("", "small, "))
    pd.testing.assert_frame_equal(one, other)  # the same network at the same rate


def test_of_the_network_without_pretraining_hyp_alone_is_trained_at_rates_of_its_own(photos, small):
    several = networks.plans(KINDS, PLAN, [], ["small-untrained", "other"])
    assert [(list(kinds), plan.encoder) for kinds, plan in several] == [
        ([HYP, SPH], "small"),
        ([f"{UNTRAINED}{HYP}"], "small-untrained"),
        ([f"other, {HYP}"], "other"),
    ]
    found, course = networks.trained(photos, halves(photos), several[:2], [1])
    assert list(found)[-3:] == [
        f"{UNTRAINED}{BEFORE}",
        *(f"{UNTRAINED}{HYP}, end to end, {place}" for place in ("head", "encoder")),
    ]
    assert set(course["method"]) == {f"{name}, end to end" for name in (HYP, SPH, f"{UNTRAINED}{HYP}")}


def test_without_candidates_each_network_has_its_published_rate(photos, monkeypatch):
    asked = []
    monkeypatch.setattr(end_to_end, "rates", lambda *a, **o: asked.append((a[3].encoder, a[4])) or pd.DataFrame())
    plan = replace(PLAN, encoder="dino_vits16")
    several = networks.plans(KINDS, plan, ["vit_small_patch16_224.augreg_in21k"])
    networks.rates(photos, halves(photos), several, [])
    assert asked == [("dino_vits16", [1e-5]), ("vit_small_patch16_224.augreg_in21k", [3e-5])]
    assert networks.published_rates(several) == ["1e-05"] * 2 + ["3e-05"] * 2
    networks.rates(photos, halves(photos), several[:1], [1e-3])
    assert asked[-1] == ("dino_vits16", [1e-3])


def test_captions_name_further_networks():
    assert networks.says([]) == ""
    assert "(net_a, net_b)" in networks.says(["net_a", "net_b"])
