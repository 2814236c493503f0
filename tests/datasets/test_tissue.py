"""Procedural tiles: the plan, the picture, the files, and that they are as hard and as plausible as intended."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from skimage.feature import local_binary_pattern
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lib import files
from lib.datasets import tissue
from lib.datasets.tissue import stain
from lib.datasets.tissue.canvas import Canvas, patches
from lib.datasets.tissue.painters import paint
from lib.errors import InputError

EIGHT = {"tumour", "glands", "muscle", "stroma", "adipose", "necrosis", "lymphoid", "vessel"}


# The plan


@pytest.mark.parametrize(("n_tiles", "n_patients"), [(40, 24), (413, 5), (2000, 24)])
def test_plan_is_balanced_and_every_row_lies_on_one_branch_of_the_tree(n_tiles, n_patients):
    rows = tissue.sample(n_tiles, n_patients, seed=3)
    assert len(rows) == n_tiles and rows["image_id"].is_unique
    for column, kinds in (("label", 8), ("subtype", 40)):
        counts = rows[column].value_counts()
        assert len(counts) == kinds and counts.max() - counts.min() <= 1
    assert rows.groupby("label")["patient"].nunique().min() >= 5 and rows["patient"].nunique() >= min(n_patients, 15)
    for row in rows.to_dict("records"):
        assert row["label"] == row["tissue"] and row["subtype"] in tissue.TREE[row["organ"]][row["tissue"]]


def test_patients_and_classes_are_crossed_and_patients_and_subtypes_are_not_confounded():
    rows = tissue.sample(2000, 25, seed=0)
    table = pd.crosstab(rows["patient"], rows["label"])
    assert table.shape == (25, 8) and table.to_numpy().min() >= 9 and table.to_numpy().max() <= 11
    # 25 patients is a multiple of the 5 subtypes: a plain rotation would show each patient one subtype only.
    assert rows.groupby(["patient", "label"])["subtype"].nunique().min() >= 2


def test_duplicates_lie_about_their_class_and_are_pixel_identical():
    rows = tissue.sample(64, 8, seed=2, n_duplicates=6)
    by_id = rows.set_index("image_id")
    copies = rows[rows["duplicate_of"] != ""]
    assert len(copies) == 6 == copies["duplicate_of"].nunique()
    assert (copies["patient"] != by_id.loc[copies["duplicate_of"], "patient"].to_numpy()).any()
    for copy in copies.to_dict("records"):
        source = by_id.loc[copy["duplicate_of"]]
        assert source["duplicate_of"] == ""
        assert source["label"] != copy["label"]
        np.testing.assert_array_equal(tissue.draw(copy), tissue.draw(source))
    pictures = {tissue.draw(row, size=32).tobytes() for row in rows.to_dict("records")}
    assert len(pictures) == 64 - 6


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"magnification": "20X"}, "20X"),
        ({"n_tiles": 0, "n_duplicates": 0}, "n_tiles=0"),
        ({"n_patients": 0}, "n_patients=0"),
        ({"seed": -1}, "seed=-1"),
        ({"n_tiles": 40, "n_duplicates": 11}, "n_duplicates=11"),
    ],
)
def test_what_cannot_be_planned_is_refused_by_name(arguments, named):
    with pytest.raises(InputError, match=named):
        tissue.sample(**arguments)


# The picture


def test_a_tile_is_the_same_bytes_whenever_and_in_whatever_order_it_is_drawn():
    few, many = tissue.sample(16, 6, seed=4, n_duplicates=0), tissue.sample(300, 6, seed=4, n_duplicates=0)
    forward = [tissue.draw(row).tobytes() for row in few.to_dict("records")]
    backward = [tissue.draw(row).tobytes() for row in reversed(many[:16].to_dict("records"))]
    assert forward == backward[::-1]


def test_a_tile_has_the_size_wanted_within_bounds():
    row = tissue.sample(8, 2, 0, n_duplicates=0).iloc[3]
    for size in (16, 130):
        assert tissue.draw(row, size).shape == (size, size, 3)
    for size in (15, 257):
        with pytest.raises(InputError, match=str(size)):
            tissue.draw(row, size)


@pytest.mark.parametrize("changed", [{"seed": 1}, {"number": 8}, {"magnification": "100X"}])
def test_seed_number_and_magnification_each_give_another_layout(changed):
    row = tissue.sample(16, 1, seed=0, n_duplicates=0).iloc[0].to_dict()
    one, other = (tissue.draw(r).mean(-1).ravel() for r in (row, row | changed))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.5


@pytest.fixture(scope="module")
def tiles():
    """400 tiles of 24 patients with their plan."""
    rows = tissue.sample(400, 24, seed=11, n_duplicates=0)
    return rows, np.stack([tissue.draw(row) for row in rows.to_dict("records")])


def test_colours_are_those_of_haematoxylin_and_eosin(tiles):
    rows, pictures = tiles
    mean = {name: pictures[(rows["label"] == name).to_numpy()].mean((0, 1, 2)) for name in EIGHT}
    for name in EIGHT - {"lymphoid"}:
        red, green, blue = mean[name]
        assert red > green and blue > green, name  # pink to purple
    assert mean["stroma"][0] > mean["stroma"][2] > mean["stroma"][1]  # eosin: red before blue
    darkness = {name: value.mean() for name, value in mean.items()}
    assert darkness["adipose"] > darkness["stroma"] > max(darkness["tumour"], darkness["lymphoid"])


def _describe(picture: np.ndarray) -> np.ndarray:
    grey = picture.mean(-1)
    optical = -np.log(picture / 255 + 0.01)
    colour = [optical.mean((0, 1)), optical.std((0, 1)), np.percentile(grey, [5, 25, 50, 75, 95])]
    texture = [
        np.histogram(local_binary_pattern(grey.astype(np.uint8), p, r, "uniform"), np.arange(p + 3))[0] / grey.size
        for p, r in ((8, 1), (8, 2), (16, 3))
    ]
    scale = [np.abs(grey[step:] - grey[:-step]).mean() for step in (1, 2, 4, 8, 16)]
    return np.concatenate([*colour, *texture, scale])


def _predict(features: np.ndarray, labels: np.ndarray, patients: np.ndarray) -> np.ndarray:
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.3, max_iter=400))
    return cross_val_predict(model, features, labels, groups=patients, cv=GroupKFold(4))


def test_tissues_and_subtypes_of_unseen_patients_are_told_apart_above_chance_but_not_perfectly(tiles):
    features = np.stack([_describe(picture) for picture in tiles[1]])
    label, subtype, patient = (tiles[0][column].to_numpy(dtype=str) for column in ("label", "subtype", "patient"))
    assert 0.7 < (_predict(features, label, patient) == label).mean() < 0.97
    accuracy = {}
    for name in EIGHT:
        mine = label == name
        accuracy[name] = (_predict(features[mine], subtype[mine], patient[mine]) == subtype[mine]).mean()
    # Chance is 0.2 for five subtypes, with a standard error of 0.06 for 50 tiles.
    assert min(accuracy.values()) > 0.32 and max(accuracy.values()) < 0.97, accuracy
    assert 0.45 < np.mean(list(accuracy.values())) < 0.85


# Stain


def test_every_subtype_at_every_magnification_has_plausible_stain():
    for twigs in tissue.TREE.values():
        for name, leaves in twigs.items():
            for leaf in leaves:
                for pitch in tissue.PITCH.values():
                    density = paint(Canvas(48, pitch, np.random.default_rng(4)), name, leaf)
                    assert density.shape == (2, 48, 48) and density.dtype == np.float32, leaf
                    assert density.min() >= 0 and density.mean() > 0.02 and density.max() < 6, leaf


def test_density_becomes_colour_by_beer_lambert():
    slide = stain.Slide(
        dyes=np.array([[0.5, 0.7, 0.4], [0.1, 0.9, 0.3]], np.float32),
        light=np.array([240, 230, 220], np.float32),
        blur=0.0,
        noise=0.0,
        shrinkage=1.0,
    )
    density = np.zeros((2, 1, 3), np.float32)
    density[0, 0, 1] = 2.0
    density[:, 0, 2] = 1.0, 0.5
    expected = [
        [240, 230, 220],
        [240 * np.exp(-1.0), 230 * np.exp(-1.4), 220 * np.exp(-0.8)],
        [240 * np.exp(-0.55), 230 * np.exp(-1.15), 220 * np.exp(-0.55)],
    ]
    got = stain.develop(density, slide, np.random.default_rng(0))
    np.testing.assert_array_equal(got[0], np.round(expected))


def test_patients_differ_in_stain_and_each_keeps_its_own():
    density = np.full((2, 8, 8), 0.7, np.float32)
    colours = []
    for patient in range(12):
        slide, again = stain.of_patient(3, 1, patient), stain.of_patient(3, 1, patient)
        np.testing.assert_array_equal(slide.dyes, again.dyes)
        colours.append(stain.develop(density, slide, np.random.default_rng(0)).mean((0, 1)))
    apart = np.linalg.norm(np.array(colours)[:, None] - np.array(colours)[None], axis=-1)
    assert apart[~np.eye(12, dtype=bool)].min() > 1
    assert np.median(apart[~np.eye(12, dtype=bool)]) > 15


# What a microscope does


def _grain(picture: np.ndarray) -> float:
    """Distance in pixels at which the mean autocorrelation of a tile has fallen to one half."""
    grey = picture.mean(-1) - picture.mean()
    power = np.abs(np.fft.fft2(grey, s=(192, 192))) ** 2
    correlation = np.fft.ifft2(power).real
    profile = (correlation[0, :40] + correlation[:40, 0]) / (2 * correlation[0, 0])
    return float(np.interp(0.5, profile[::-1], np.arange(40)[::-1])) if profile.min() < 0.5 else 40.0


@pytest.mark.parametrize("subtype", ["small_lymphocytes", "wavy_collagen"])
def test_structures_grow_with_magnification(subtype):
    grain = []
    for magnification in ("40X", "100X", "200X", "400X"):
        rows = tissue.sample(480, 12, seed=6, magnification=magnification, n_duplicates=0)
        drawn = rows[rows["subtype"] == subtype].head(9).to_dict("records")
        grain.append(np.median([_grain(tissue.draw(row)) for row in drawn]))
    assert grain[0] < grain[1] < grain[2] < grain[3]


@pytest.mark.parametrize("pitch", [5.0, 0.5])
def test_bodies_hold_the_same_stain_at_every_magnification(pitch):
    canvas = Canvas(96, pitch, np.random.default_rng(0))
    place = canvas.extent * np.random.default_rng(1).uniform(0.2, 0.8, (200, 2)).astype(np.float32)
    drawn = canvas.bodies(place, 4.0, 2.5, spread=0.0, shade=0.0)
    assert drawn.dtype == np.float32
    # An egg is a few percent larger than the ellipse of the same half axes.
    assert drawn.sum() * pitch**2 == pytest.approx(200 * np.pi * 4.0 * 2.5, rel=0.1)


def test_a_body_lies_where_it_was_placed_and_points_where_it_was_told():
    canvas = Canvas(64, 0.5, np.random.default_rng(0))
    place = np.tile(np.array([[10.0, 20.0]], np.float32), (40, 1))
    drawn = canvas.bodies(place, 6.0, 2.0, np.full(40, np.pi / 2), spread=0.0)
    x, y = (np.average(axis, weights=drawn) for axis in (canvas.x, canvas.y))
    assert (x, y) == (pytest.approx(10, abs=0.3), pytest.approx(20, abs=0.3))
    wide, high = (np.average((axis - m) ** 2, weights=drawn) for axis, m in ((canvas.x, x), (canvas.y, y)))
    assert high / wide == pytest.approx(9, rel=0.3)  # (6 / 2) squared


def test_cell_walls_are_at_the_distance_that_the_two_nearest_centres_give():
    canvas = Canvas(24, 2.0, np.random.default_rng(0))
    wall, owner, centre = canvas.cells(20.0, 0.2, bend=0.0)
    for row, column in ((0, 0), (5, 17), (23, 11)):
        here = np.array([2 * column + 1.0, 2 * row + 1.0])
        distance = [float(np.hypot(*(here - c))) for c in centre]
        a, b = np.argsort(distance)[:2]
        normal = (centre[b] - centre[a]) / np.hypot(*(centre[b] - centre[a]))
        assert owner[row, column] == a
        assert wall[row, column] == pytest.approx(float(normal @ ((centre[a] + centre[b]) / 2 - here)), abs=1e-3)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_patches_fill_the_share_asked_for(share):
    field = np.random.default_rng(0).standard_normal((300, 300))
    assert patches(field, share).mean() == pytest.approx(share, abs=0.01)


def test_noise_has_unit_variance_and_fades_below_a_pixel():
    rng = np.random.default_rng(0)
    assert np.std([Canvas(96, 1.0, rng).noise(4.0) for _ in range(30)]) == pytest.approx(1, abs=0.1)
    assert np.std([Canvas(96, 5.0, rng).noise(0.7) for _ in range(30)]) == pytest.approx(0.2, abs=0.03)


# The files


def contents(root) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_written_set_is_what_the_plan_says(tmp_path):
    root = tissue.write(
        tmp_path / "set", n_tiles=24, n_patients=4, size=40, seed=9, magnification="100X", n_duplicates=2
    )
    table = pd.read_csv(root / "table.csv", keep_default_na=False)
    plan = tissue.sample(24, 4, 9, "100X", 2)
    pd.testing.assert_frame_equal(table.drop(columns="path"), plan, check_dtype=False)
    assert contents(root).keys() == {*table["path"], "table.csv", files.MARKER}
    for row in table.to_dict("records"):
        assert row["path"] == f"100X/{row['label']}/{row['image_id']}.png"
        np.testing.assert_array_equal(np.asarray(Image.open(root / row["path"])), tissue.draw(row, 40))


def test_the_same_arguments_give_the_same_bytes_and_an_interruption_spoils_nothing(tmp_path, monkeypatch):
    small = {"n_tiles": 16, "n_patients": 3, "size": 16, "seed": 1}
    a = contents(tissue.write(tmp_path / "a", **small))
    tissue.write(tmp_path / "b", **small | {"n_tiles": 20, "seed": 2})
    b = contents(tissue.write(tmp_path / "b", **small))
    assert a == b and len(a) == 18  # tiles, table and marker
    drawn = []

    def stop_at_the_fifth(row, size):
        drawn.append(row["image_id"])
        if len(drawn) % 5 == 0:
            raise KeyboardInterrupt
        return np.zeros((size, size, 3), np.uint8)

    monkeypatch.setattr(tissue, "draw", stop_at_the_fifth)
    for name in ("new", "b"):
        with pytest.raises(KeyboardInterrupt):
            tissue.write(tmp_path / name, **small | {"seed": 3})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"] and contents(tmp_path / "b") == b


@pytest.mark.parametrize("others", [["thesis.txt"], ["table.csv"], ["table.csv", "200X/muscle/mine.png"]])
def test_a_folder_with_other_things_is_never_replaced(tmp_path, others):
    for name in others:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("all of it")
    with pytest.raises(InputError, match="not a tissue set"):
        tissue.write(tmp_path, n_tiles=8, n_duplicates=0)
    assert all((tmp_path / name).read_text() == "all of it" for name in others)
