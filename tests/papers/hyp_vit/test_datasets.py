"""The paper's four datasets, small and in their original layout, go all the way to Tables 2 to 5."""

import zlib

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from lib import paths
from lib.datasets import __main__ as tables_stage
from lib.datasets.categories import halves, held_out
from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.geometry import PoincareBall
from lib.papers.hyp_vit import hyperparameters as section
from lib.papers.hyp_vit import names, published
from lib.papers.hyp_vit.retrieval import end_to_end, frozen, tables
from lib.pipeline import notebooks, profiles
from lib.study.run import at_rates
from lib.training import experiment as training
from lib.training import finetune, sweep
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings, spherical
from lib.training.photos import Preparation

TEACHING, ASKING, IMAGES = 12, 6, 4


def photo(path, category: int) -> None:
    """Squares of a category's own colour, with noise."""
    rng = np.random.default_rng(zlib.crc32(path.name.encode()) + category)
    colour = np.random.default_rng(category).integers(30, 220, 3)
    pixels = np.clip(colour + rng.normal(0, 3, 3) + rng.normal(0, 12, (18, 20, 3)), 0, 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, "JPEG")


def every(teaching=TEACHING, asking=ASKING, images=IMAGES):
    """(category, does it teach, number of the image) of all images."""
    for category in range(teaching + asking):
        for image in range(images):
            yield category, category < teaching, image


def cub(root, teaching=TEACHING, asking=ASKING, images=IMAGES):
    """images/<number>.<species>/<photo>, species up to 100 teach."""
    for category, teaches, image in every(teaching, asking, images):
        number = category + 1 if teaches else 101 + category - teaching
        photo(root / f"CUB_200_2011/images/{number:03d}.Kind{category}_Warbler/Photo_{image:04d}.jpg", category)


def cars(root, teaching=TEACHING, asking=ASKING, images=IMAGES):
    """cars_annos.mat names photo and class; models up to 98 teach."""
    kinds = [(name, object) for name in ("relative_im_path", "class", "test")]
    kinds += [(name, object) for name in ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")]
    rows = np.empty((1, (teaching + asking) * images), dtype=kinds)
    for i, (category, teaches, _) in enumerate(every(teaching, asking, images)):
        name = f"car_ims/{i + 1:06d}.jpg"
        number = category + 1 if teaches else 99 + category - teaching
        rows[0, i] = (name, np.uint8(number), np.uint8(i % 2), 1, 2, 3, 4)
        photo(root / name, category)
    models = np.array([f"Maker Model {number} 2012" for number in range(1, 197)], dtype=object).reshape(1, -1)
    savemat(root / "cars_annos.mat", {"annotations": rows, "class_names": models})


def sop(root, teaching=TEACHING, asking=ASKING, images=IMAGES):
    """Ebay_train.txt and Ebay_test.txt list products and photos."""
    home = root / "Stanford_Online_Products"
    lists = {True: ["image_id class_id super_class_id path"], False: ["image_id class_id super_class_id path"]}
    for i, (category, teaches, image) in enumerate(every(teaching, asking, images)):
        number = category + 1 if teaches else 11319 + category
        name = f"toaster_final/{number}_{image}.JPG"
        lists[teaches].append(f"{i + 1} {number} 12 {name}")
        photo(home / name, category)
    for teaches, file in ((True, "Ebay_train.txt"), (False, "Ebay_test.txt")):
        (home / file).write_text("\n".join(lists[teaches]) + "\n")


def in_shop(root, teaching=TEACHING, asking=ASKING, images=IMAGES):
    """Eval/list_eval_partition.txt says train, query or gallery of every photo."""
    lines = []
    for category, teaches, image in every(teaching, asking, images):
        status = "train" if teaches else ("query", "gallery")[image % 2]
        name = f"img/WOMEN/Dresses/id_{category:08d}/{image:02d}_1_front.jpg"
        lines.append(f"{name:<70} id_{category:08d} {status}")
        photo(root / "Img" / name, category)
    (root / "Eval").mkdir()
    head = [str(len(lines)), "image_name item_id evaluation_status"]
    (root / "Eval/list_eval_partition.txt").write_text("\n".join([*head, *lines]) + "\n")


def in_one_process(monkeypatch, folder):
    """Nothing here is worth another process; trainings are kept in ``folder``."""
    for module in (training, sweep):
        monkeypatch.setattr(module, "spread", lambda jobs, workers: (job(*args, **more) for job, args, more in jobs))
    monkeypatch.setattr(paths, "TRAINED", folder / "trained")


def table_of(dataset, folder, monkeypatch) -> ImageTable:
    """What the stage of tables makes of the images in ``folder``."""
    target = folder / f"{dataset}.csv"
    words = ["--dataset", dataset, "--root", str(folder / "images"), "--target", str(target)]
    monkeypatch.setattr("sys.argv", ["lib.datasets", *words])
    tables_stage.main()
    return ImageTable.read(target)


@pytest.mark.parametrize("write", [cub, cars, sop, in_shop], ids=lambda write: write.__name__)
def test_a_stand_in_goes_from_its_files_to_the_tables(write, tmp_path, monkeypatch, small):
    dataset = write.__name__
    write(tmp_path / "images")
    images = table_of(dataset, tmp_path, monkeypatch)
    parts = halves(images)
    assert (parts.count(parts.learnt), parts.count(parts.gallery)) == (TEACHING, ASKING)
    assert len(parts.queries) == ASKING * IMAGES // (2 if dataset == "in_shop" else 1)

    in_one_process(monkeypatch, tmp_path)
    x = np.stack([np.asarray(read_image(images.path(i))).mean((0, 1)) for i in range(len(images))]).astype(np.float32)
    settings, schedule = Settings(PoincareBall(0.1), nca_images=40), ByClass(2, 8, samples=2)
    *plain, linear = frozen.arms(frozen.opponents(settings, 3, 2, TEACHING, schedule), "colours")
    heads = [linear, *frozen.arms(frozen.heads(settings, 3, 2, schedule)[:2], "colours")]
    study = frozen.study({"colours": x}, parts, [1, 2], n_seeds=2)
    found = study.answers([*plain, *at_rates(heads, study.choose(heads, [1e-3, 1e-2]))])["own"]

    plan = end_to_end.EndToEnd("small", 2, finetune.Settings(2, 8, 2, 1e-3, check_every=2), Preparation(16, 16))
    kinds = {names.HYP: settings, names.SPH: spherical(settings)}
    together, _ = end_to_end.end_to_end(images, parts, kinds, plan, [1, 2], store=None)
    rows = tables.recall(found | together)
    table = tables.layout(rows, tables.of_dataset(2, dataset))
    assert "| Hyp-ViT (ViT-S) | published |" in table and "| no head | ours | 3 |" in table
    assert rows.set_index(["method", "k"]).loc[(names.NONE, 1), "ours"] > 80  # colours tell the categories apart

    arms = section.arms(section.default(settings, 3, 2, schedule), "colours", parts)
    assert [arm.name for arm in arms].count("batch of 4") == 1  # 200 and 400 of 900 are both two classes
    tried = study.choose(arms, [1e-2])
    answers = study.answers(at_rates(arms, tried))
    assert len(section.settings(answers, arms, tried, 1, "default", {})) == len(arms)


RETRIEVAL, SETTINGS = "hyp_vit_retrieval", "hyp_vit_hyperparameters"


def of_the_paper(stage: str, dataset: str) -> dict:
    """What the paper's pipeline hands to a notebook: its defaults, the shared settings, then those of the run."""
    shared = profiles.settings()["hyp_vit"]
    common = shared["head"] | shared["training"] | shared["protocol"]
    given = common | (shared["opponents"] if stage == RETRIEVAL else {}) | profiles.runs("paper")[stage][dataset]
    defaults = notebooks.parameters(notebooks.read(paths.NOTEBOOKS / f"{profiles.notebooks()[stage]}.ipynb"))
    assert set(given) <= set(defaults)
    return defaults | given


@pytest.mark.parametrize(
    ("write", "teaching", "asking"), [(cub, 100, 4), (cars, 98, 4), (sop, 600, 501), (in_shop, 600, 40)]
)
def test_the_papers_parameters_take_a_step_on_a_stand_in(write, teaching, asking, tmp_path, monkeypatch, small):
    """So many categories teach that a batch of the paper's can be filled; one step, of photos of 16 pixels."""
    profiles.check(paths.PIPELINES / "paper" / "params.yaml")
    given = of_the_paper(RETRIEVAL, write.__name__)
    classes, samples, ks = given["n_classes"], given["samples"], given["ks"]
    write(tmp_path / "images", teaching, asking, samples)
    images = table_of(write.__name__, tmp_path, monkeypatch)
    parts = halves(images, given["category"])
    assert (parts.count(parts.learnt), parts.count(parts.queries)) == (teaching, asking)  # the standard split
    left = parts.count(held_out(parts, 0)[0])
    assert classes in (left, left - 1) and section.BATCH - samples * 2 <= classes * samples <= 900  # HV-7

    in_one_process(monkeypatch, tmp_path)
    settings = Settings(PoincareBall(given["curvature"]), given["clip_radius"], given["temperature"])
    schedule = ByClass(1, classes * samples, weight_decay=given["weight_decay"], samples=samples)
    x = np.random.default_rng(0).normal(size=(len(images), 8)).astype(np.float32)
    heads = frozen.arms(frozen.heads(settings, 8, given["dim_out"], schedule)[:2], "noise")
    study = frozen.study({"noise": x}, parts, ks)
    (hyp, *_), _ = study.answers(at_rates(heads, study.choose(heads, given["rates"][:1])))["own"].values()
    assert hyp.health.steps == 2 and np.isfinite(hyp.health.loss)  # 1,200 photos or nearly, in batches of 900

    assert given["published_rates"]  # of each network its own, for encoder and head
    rates = published.rate(given["network"]), None, given["weight_decay"]
    schedule = finetune.Settings(1, classes * samples, samples, *rates, check_every=1)
    plan = end_to_end.EndToEnd(given["network"], given["dim_out"], schedule, Preparation(16, 16))
    found, course = end_to_end.end_to_end(images, parts, {names.HYP: settings}, plan, ks, store=None)
    assert course["step"].tolist() == [0, 1] and course["loss"].notna().sum() == 1
    rows = tables.recall(found)
    assert sorted(rows["k"].unique()) == ks and rows["ours"].between(0, 100).all()


@pytest.mark.parametrize("write", [cars, in_shop])
def test_every_row_of_table_5_is_trained_end_to_end_with_the_papers_parameters(write, tmp_path, monkeypatch, small):
    """Batches of a few categories in place of the published ones, in proportion; one step, of photos of 16 pixels."""
    given, classes = of_the_paper(SETTINGS, write.__name__), 9
    samples, ks = given["samples"], given["ks"]
    write(tmp_path / "images", 24, 10, samples)
    images = table_of(write.__name__, tmp_path, monkeypatch)
    parts = halves(images, given["category"])

    in_one_process(monkeypatch, tmp_path)
    settings = Settings(PoincareBall(given["curvature"]), given["clip_radius"], given["temperature"])
    schedule = ByClass(1, classes * samples, weight_decay=given["weight_decay"], samples=samples)
    arms = section.arms(section.default(settings, 8, given["dim_out"], schedule), "noise", parts)
    published_rows = [arm for arm in arms if arm.about["of"] != "room"]
    rates = given["end_to_end_lr"], given["head_lr"], given["weight_decay"]
    assert rates[:2] == (published.rate(given["network"]),) * 2
    plan = end_to_end.EndToEnd(
        given["network"],
        given["dim_out"],
        finetune.Settings(1, classes * samples, samples, *rates, check_every=1),
        Preparation(16, 16),
    )
    found = section.trained(images, parts, arms, given["end_to_end"], plan, ks)
    rows = tables.recall(found).set_index("method")
    for arm, length in zip(published_rows, [128] * 6 + [16, 32, 64] + [128] * 3, strict=True):  # all, in their order
        places = [f"{arm.name}{names.END}{place}" for place in ("head", "encoder")]
        assert rows.loc[places, "dim"].unique().tolist() == [length, 4]
    others = [arm.name for arm in published_rows if arm.about["of"] != "head_dim"]  # four numbers keep all distances
    losses = {found[f"{name}{names.END}head"][0].health.loss for name in others}
    assert len(losses) == len(others) == 9 and np.isfinite([*losses]).all()
    shown = tables.layout(rows.reset_index())
    assert shown.count("| ours |") == 1 + 2 * 12 and shown.splitlines()[-1].startswith("| chance |")
    pairs = section.trained_pairs(found)
    assert len(section.tests(found, parts.names, {"end to end": pairs}, 1)) == len(pairs) == 2 * 11 + 12
    sizes = [arm.method.schedule.batch_size // samples for arm in arms if arm.about["of"] == "batch_size"]
    assert sizes == [2, 4, 16]  # of 900, 9 here: 200, 400 and 1,600
