"""Every method is tried once in every archive, patients stay apart, and two runs give the same numbers."""

import re
from contextlib import redirect_stderr
from dataclasses import replace
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.archive import methods, trials
from lib.datasets.table import ImageTable
from lib.errors import InputError

N_PATIENTS = 6


@pytest.fixture(scope="module")
def images() -> ImageTable:
    """Three classes, of which every patient has two images each."""
    rows = [(f"{label}/{p}_{i}", label, f"p{p}") for p in range(N_PATIENTS) for label in "abc" for i in range(2)]
    rows = pd.DataFrame(rows, columns=["image_id", "label", "group"])
    return ImageTable("mine", paths.ROOT, rows.assign(path=rows["image_id"]), "patient")


@pytest.fixture(scope="module")
def features(images) -> dict[str, np.ndarray]:
    """Numbers that show the patient far better than the class."""
    rng = np.random.default_rng(0)
    patient = 4 * np.eye(N_PATIENTS, 24)[np.unique(images.groups, return_inverse=True)[1]]
    label = 2 * np.eye(3, 24, k=12)[images.codes]
    noise = rng.normal(0, 0.5, (len(images), 24))
    return {"net": (patient + label + noise).astype(np.float32), "texture": noise.astype(np.float32)}


@pytest.fixture(scope="module")
def measured(images, features, tmp_path_factory) -> list[tuple[trials.Measured, str]]:
    """The same twice, the second time trained anew, and what was reported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADLESS", "1")
        patch.setattr(methods, "STEPS", 4)
        patch.setattr(methods, "EPOCHS", 1)
        found = []
        for n in range(2):
            patch.setattr(paths, "TRAINED", tmp_path_factory.mktemp(f"trained{n}"))
            with redirect_stderr(StringIO()) as said:
                result = trials.measure(features, images, (0, 0, 1), [1, 5], 2, 2, workers=1)
            found.append((result, said.getvalue()))
    return found


def test_every_method_answers_in_every_archive_and_is_tested_against_plain_features(measured):
    result = measured[0][0]
    titles = {kind.title for name, kind in methods.METHODS.items() if name != methods.PLAIN}
    names = titles | {"plain features of net", "texture"}
    assert result.strict == "closed, by patient" and result.base == "plain features of net"
    counts = result.rows.groupby("archive")["method"].agg(["nunique", "size"])
    assert counts.to_numpy().tolist() == [[len(names), 2 * len(names)]] * 3
    assert set(result.tests["first"]) == names - {result.base} and set(result.tests["second"]) == {result.base}
    assert set(result.tests["n_units"]) == {N_PATIENTS} and set(result.tests["n_seeds"]) == {2}
    assert result.rows[["f1_1", "f1_3", "f1_5", "bytes"]].notna().all(axis=None)
    scores = {name: result.of(name)["group_mean"] for name in names}
    assert result.of("linear classifier")["seconds"] > 0 and np.isnan(result.of(result.base)["seconds"])
    gains = [scores[name] - scores[result.base] for name in result.tests["first"]]
    np.testing.assert_allclose(result.tests["difference"], gains)


def test_two_runs_give_the_same_bits_but_for_their_time(measured):
    first, second = (result.rows.drop(columns="seconds") for result, _ in measured)
    pd.testing.assert_frame_equal(first, second, check_exact=True)
    pd.testing.assert_frame_equal(measured[0][0].tests, measured[1][0].tests, check_exact=True)


def test_one_line_of_progress_over_the_whole_says_how_long_the_rest_takes(measured):
    lines = measured[0][1].splitlines()
    assert {line.partition(":")[0] for line in lines} == {"methods"} and len(lines) <= 10
    assert all(re.search(r", about [\d,]+ (second|minute)s? left$", line) for line in lines[:-1])
    assert re.fullmatch(r"methods: (\d+) of \1 folds", lines[-1])


def test_images_that_leave_too_few_to_vote_are_refused_with_the_way_out(images, features):
    few = images.rows["group"].isin(["p0", "p1"]) & (images.rows["label"] != "c")
    table = replace(images, rows=images.rows[few].reset_index(drop=True))
    with pytest.raises(InputError, match=r"8 images are too few.* here are 4.* make archive"):
        trials.measure({"net": features["net"][few]}, table, None, [1, 5], 2, 2, workers=1)


@pytest.mark.parametrize("seed", range(3))
def test_classes_dealt_at_random_are_not_told_from_plain_features_though_ap_would(
    images, features, seed, tmp_path, monkeypatch
):
    """A list of one class has a higher AP than an unsorted one, also where the class means nothing."""
    monkeypatch.setattr(paths, "TRAINED", tmp_path)
    monkeypatch.setattr(methods, "METHODS", {name: methods.METHODS[name] for name in (methods.PLAIN, "linear")})
    many, x = repeated(images, 3), np.random.default_rng(seed).normal(size=(3 * len(images), 24)).astype(np.float32)
    gains = {}
    for score in ("ap_min", trials.SCORE):
        monkeypatch.setattr(trials, "SCORE", score)
        test = trials.measure({"net": x}, many, None, [1, 10], 3, 1, seed, workers=1).tests.iloc[0]
        gains[score] = test.difference, test.p_holm
    assert gains["ap_min"][0] > 3 and gains["ap_min"][1] <= 0.05
    assert gains["precision"][1] > 0.05


def repeated(images: ImageTable, times: int) -> ImageTable:
    """So many times the patients, with as many images each."""
    rows = [
        images.rows.assign(image_id=images.rows["image_id"] + f"_{n}", group=images.rows["group"] + f"_{n}")
        for n in range(times)
    ]
    return replace(images, rows=pd.concat(rows, ignore_index=True))
