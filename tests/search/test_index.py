"""Every kind of index behind one interface: against the exact search, added to, removed from, saved and damaged."""

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lib import files, paths
from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.search import nearest, provenance, quick
from lib.search.local import Exact
from lib.search.quick import Quick
from lib.search.synthetic import clusters, hierarchy

KINDS = (Exact, Quick)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
every_space = pytest.mark.parametrize("space", [Euclidean(), Sphere(), PoincareBall(0.5)], ids=lambda s: s.name)


def points(n: int, seed: int, reach: float = 0.95) -> torch.Tensor:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 8))
    return torch.from_numpy(x / np.linalg.norm(x, axis=1, keepdims=True) * random.uniform(0, reach, (n, 1))).float()


GALLERY, QUERY = points(3000, 0), points(40, 1)
FIELDS = {"class": [f"c{i % 3}" for i in range(3000)], "patient": [f"p{i // 10}" for i in range(3000)]}
BALL = PoincareBall()


def first(n: int, fields: dict[str, list[str]] = FIELDS) -> dict[str, list[str]]:
    return {name: texts[:n] for name, texts in fields.items()}


def alike(found, truth, kind):
    """Exact says the same to the bit, the others find 99 % of it."""
    distances, ids = found
    assert distances.dtype == torch.float32 and ids.dtype == torch.int64
    assert (distances[:, 1:] >= distances[:, :-1]).all()
    if kind is Exact:
        assert torch.equal(distances, truth[0]) and torch.equal(ids, truth[1])
    share = (ids.unsqueeze(2) == truth[1].unsqueeze(1)).any(1).double().mean()
    assert share >= 0.99


@every_kind
@every_space
def test_the_nearest_are_found_in_the_order_of_their_distances(kind, space):
    built = kind.build(GALLERY, space, "demo_vit")
    assert len(built) == 3000 and built.ids.tolist() == list(range(3000)) and built.fields == {}
    found = built.search(QUERY, 20)
    alike(found, nearest(QUERY, GALLERY, 20, space), kind)
    torch.testing.assert_close(found[0], space.between(QUERY[:, None], GALLERY[found[1]]))
    for row in (0, 7):  # alone as among others
        assert torch.equal(built.search(QUERY[row : row + 1], 20)[1], found[1][row : row + 1])


@every_kind
@pytest.mark.parametrize("radii", [(0, 12), (8, 12)])
def test_near_the_rim_the_order_is_that_of_float64(kind, radii):
    gallery, query = clusters(6000, 8, radii, seed=2), clusters(30, 8, radii, seed=1)
    built = kind.build(gallery, BALL, "e")
    key = BALL.pairwise(query.double(), gallery.double())
    distances, order = key.sort(dim=1, stable=True)
    alike(built.search(query, 10), (distances[:, :10].float(), order[:, :10]), kind)
    assert built.provenance.recall >= 0.99


@every_kind
def test_filters_leave_k_answers_where_there_are_k(kind):
    built = kind.build(GALLERY, BALL, "e", FIELDS)
    for only, without in (
        ({"class": ["c0", "c2"]}, None),
        ({"class": "c1"}, {"patient": ["p17", "p18", "nobody"]}),
        (None, {"patient": [f"p{i}" for i in range(290)]}),  # all but the last hundred points
        ({"patient": ["p3"], "class": ["c0"]}, {}),
    ):
        may = np.array(
            [
                all(FIELDS[name][i] in np.atleast_1d(some) for name, some in (only or {}).items())
                and not any(FIELDS[name][i] in some for name, some in (without or {}).items())
                for i in range(3000)
            ]
        )
        rows = torch.from_numpy(np.flatnonzero(may))
        k = min(12, len(rows))
        distances, places = nearest(QUERY, GALLERY[rows], k, BALL)
        distances, ids = torch.nn.functional.pad(distances, (0, 12 - k), value=torch.inf), rows[places]
        alike(
            built.search(QUERY, 12, only, without),
            (distances, torch.nn.functional.pad(ids, (0, 12 - k), value=-1)),
            kind,
        )
    assert (built.search(QUERY, 3, only={"class": ["nobody"]})[1] == -1).all()


@every_kind
def test_equal_points_come_in_the_order_of_their_ids(kind):
    copies = points(200, 2).repeat(2, 1)
    distances, ids = kind.build(copies, BALL, "e").search(copies[:5], 2)
    assert ids.tolist() == [[i, i + 200] for i in range(5)] and (distances == 0).all()


@every_kind
def test_ids_stay_with_their_points_and_are_never_given_twice(kind):
    built = kind.build(GALLERY[:2000], BALL, "e", first(2000))
    new = {"class": ["c9"] * 1000, "patient": FIELDS["patient"][2000:]}
    assert built.add(GALLERY[2000:], new).tolist() == list(range(2000, 3000))
    alike(built.search(QUERY, 20), nearest(QUERY, GALLERY, 20, BALL), kind)
    gone = [*range(0, 3000, 7), 2999]
    built.remove(gone)
    left = torch.tensor([i for i in range(3000) if i not in set(gone)])
    distances, places = nearest(QUERY, GALLERY[left], 20, BALL)
    alike(built.search(QUERY, 20), (distances, left[places]), kind)
    assert len(built) == len(left) == built.provenance.size and built.ids.tolist() == left.tolist()
    assert built.fields["patient"].tolist() == [FIELDS["patient"][i] for i in left]
    assert (built.search(QUERY, 20, only={"class": ["c9"]})[1] >= 2000).all()
    assert built.add(QUERY[:1], {"class": ["c0"], "patient": ["q"]}).tolist() == [3000]  # and not 2999 again
    assert built.search(QUERY[:1], 1)[1].item() == 3000
    built.remove(built.ids)
    assert len(built) == 0 and (built.search(QUERY, 2)[1] == -1).all()
    assert built.add(QUERY[:2], {"class": ["c0"] * 2, "patient": ["q"] * 2}).tolist() == [3001, 3002]
    assert built.search(QUERY[1:2], 2)[1].tolist() == [[3002, 3001]]


@every_kind
def test_saved_and_loaded_it_answers_alike_and_what_was_removed_is_in_no_file(kind, tmp_path):
    folder = tmp_path / "index"
    built = kind.build(GALLERY[:1500], PoincareBall(0.5), "demo_vit 1a2b", first(1500))
    built.save(folder)
    loaded = kind.load(folder, encoder="demo_vit 1a2b", space="poincare", c=0.5, dim=8)
    assert loaded.provenance == built.provenance and loaded.provenance.size == 1500
    assert {name: texts.tolist() for name, texts in loaded.fields.items()} == first(1500)
    for before, after in zip(built.search(QUERY, 5), loaded.search(QUERY, 5), strict=True):
        assert torch.equal(before, after)
    secret = GALLERY[77].numpy().tobytes()
    assert secret in b"".join(file.read_bytes() for file in folder.iterdir())
    assert any(b'"p7"' in file.read_bytes() for file in folder.iterdir())
    loaded.remove([*range(70, 80)])  # all of patient p7
    loaded.save(folder)  # over what it is mapped to
    for file in folder.iterdir():
        content = file.read_bytes()
        assert secret not in content and secret[:8] not in content and b'"p7"' not in content
    again = kind.load(folder)
    assert len(again) == 1490 and 77 not in again.search(GALLERY[77:78], 5)[1]
    assert again.add(QUERY[:1], {"class": ["x"], "patient": ["y"]}).tolist() == [1500]
    again.remove(again.ids)
    again.save(folder)
    assert len(kind.load(folder)) == 0


KILLED = """
import os, sys
from pathlib import Path
from lib import files
from lib.search.local import Exact

index = Exact.load(Path(sys.argv[1]))
index.add(index.points[:100] / 2)
files._mark = lambda *_: os.kill(os.getpid(), 9)  # all is written, nothing is in its place
index.save(Path(sys.argv[1]))
"""


def test_who_is_killed_while_saving_leaves_what_was_there(tmp_path):
    folder = tmp_path / "index"
    built = Exact.build(GALLERY[:300], BALL, "e")
    built.save(folder)
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder)], cwd=paths.ROOT, check=False)
    assert done.returncode == -signal.SIGKILL and len(list(tmp_path.iterdir())) == 2
    loaded = Exact.load(folder)
    assert len(loaded) == 300 and torch.equal(loaded.search(QUERY, 5)[1], built.search(QUERY, 5)[1])
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_opening_maps_the_points_into_memory(tmp_path):
    Exact.build(GALLERY, BALL, "e").save(tmp_path / "index")
    loaded = Exact.load(tmp_path / "index")
    starts = [tensor.data_ptr() for tensor in (loaded.points, loaded.kept.structure.codes)]
    mapped = [line.split()[0] for line in Path("/proc/self/maps").read_text().splitlines() if "points.safe" in line]
    ranges = [tuple(int(end, 16) for end in span.split("-")) for span in mapped]
    assert all(any(low <= start < high for low, high in ranges) for start in starts)


def test_too_little_recall_is_refused_with_the_radius_and_the_way_out(monkeypatch):
    """A tenth of the points is never proposed."""
    find, kept = Quick._find, torch.from_numpy(np.random.default_rng(0).random(3000) < 0.9)
    monkeypatch.setattr(Quick, "_find", lambda self, whole, query, k, _: find(self, whole, query, k, kept))
    with pytest.raises(InputError, match=r"quick .* 3,000 points, at radius .* 99% are the least: .*local\.Exact"):
        Quick.build(GALLERY, BALL, "e")


def test_candidates_grow_until_enough_is_found():
    gallery = hierarchy(4000, 5, seed=2)
    built = Quick.build(gallery, BALL, "e")
    assert built.candidates in quick.CANDIDATES and built.provenance.recall >= 0.99
    with pytest.raises(InputError, match="candidates = 0 cannot be used"):
        Quick.build(gallery, BALL, "e", candidates=0)


# What is refused


@every_kind
@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"c": 1.0}, "has c 0.5, but 1.0"),
        ({"dim": 32}, "has dim 8, but 32"),
        ({"encoder": "texture"}, "has encoder demo_vit, but texture"),
        ({"space": "euclidean"}, "has space poincare, but euclidean"),
        ({"dimension": 8}, "has no dimension that could be 8; it has encoder, space, c, dim, size"),
    ],
)
def test_another_space_or_encoder_is_refused(kind, expected, message, tmp_path):
    kind.build(GALLERY[:50], PoincareBall(0.5), "demo_vit").save(tmp_path / "index")
    with pytest.raises(InputError, match=message):
        kind.load(tmp_path / "index", **expected)
    other = next(other for other in KINDS if other is not kind)
    with pytest.raises(InputError, match=f"holds an index '{kind.kind}' of format 4, not '{other.kind}'"):
        other.load(tmp_path / "index")


@every_kind
def test_what_has_no_meaning_is_refused_in_words(kind):
    for gallery, space, message in (
        (torch.zeros(0, 8), BALL, "at least one point"),
        (torch.zeros(8), BALL, r"the set gallery\[None\]"),
        (torch.full((2, 8), torch.nan), BALL, "gallery row 0 holds NaN"),
        (torch.eye(8), BALL, "gallery row 0 lies on the rim"),
        (torch.eye(8) * torch.arange(8)[:, None], Sphere(), "row 0 is zero"),
        (torch.eye(8) * 1e30, Euclidean(), "row 0 is so far away"),
    ):
        with pytest.raises(InputError, match=message):
            kind.build(gallery, space, "e")
    for fields, message in (
        ({"class": ["a"]}, "'class' needs one text for each of the 50 points"),
        ({"class": "a" * 50}, "'class' needs one text for each"),
        ({"class": [*"a" * 49, None]}, "class of row 49 is None and not a text"),
    ):
        with pytest.raises(InputError, match=message):
            kind.build(GALLERY[:50], BALL, "e", fields)
    built = kind.build(GALLERY[:50], BALL, "e", first(50))
    for query, k, filters, message in (
        (torch.zeros(1, 7), 1, {}, "the index holds 8 numbers"),
        (torch.zeros(8), 1, {}, r"the set query\[None\]"),
        (torch.full((1, 8), torch.inf), 1, {}, "query row 0 holds NaN or infinity"),
        (torch.eye(8), 1, {}, "query row 0 lies on the rim"),
        (QUERY, 0, {}, "k = 0"),
        (QUERY, 1, {"only": {"clas": ["c0"]}}, "only names the field 'clas', .*did you mean class"),
        (QUERY, 1, {"without": {"colour": ["red"]}}, "without names the field 'colour'"),
    ):
        with pytest.raises(InputError, match=message):
            built.search(query, k, **filters)
    with pytest.raises(InputError, match="with no fields, but this index keeps the fields 'class', 'patient'"):
        built.add(QUERY)
    with pytest.raises(InputError, match="no point with the id 50"):
        built.remove([3, 50])
    with pytest.raises(InputError, match="whole numbers"):
        built.remove([0.5])
    assert len(built) == 50  # nothing happened


def sign(folder: Path) -> None:
    """Make the marker vouch for the files as they are now, as somebody would who writes such a folder by hand."""
    marker = folder / files.MARKER
    about = json.loads(marker.read_text())
    about["files"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in about["files"]}
    marker.write_text(json.dumps(about))


@every_kind
def test_a_flipped_bit_is_refused_or_harmless(kind, tmp_path):
    """In every file, the marker and the headers among them; the message names the folder."""
    folder, refused, random = tmp_path / "index", 0, np.random.default_rng(0)
    built = kind.build(GALLERY[:60], PoincareBall(0.5), "demo_vit", first(60))
    built.save(folder)
    expected = built.search(QUERY, 5)
    whole = sorted(folder.iterdir())
    assert len(whole) == 4
    for trial in range(80):
        file = whole[trial % 4]
        good = file.read_bytes()
        place = random.integers(min(len(good), 400) if trial % 2 else len(good))  # every other one in a header
        file.write_bytes(good[:place] + bytes([good[place] ^ 1 << random.integers(8)]) + good[place + 1 :])
        try:
            for ours, theirs in zip(kind.load(folder, encoder="demo_vit").search(QUERY, 5), expected, strict=True):
                assert torch.equal(ours, theirs)
        except InputError as error:
            assert str(folder) in str(error)
            refused += 1
        file.write_bytes(good)
    assert refused > 65
    kind.load(folder)


@pytest.fixture
def folder(tmp_path):
    """A saved index of 50 points."""
    Exact.build(GALLERY[:50], PoincareBall(0.5), "e").save(tmp_path / "index")
    return tmp_path / "index"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"c": "x"}, "c is 'x' and not a number"),
        ({"c": -1.0}, "c is -1.0"),
        ({"dim": 9}, "the centre has the shape"),
        ({"dim": "8"}, "dim is '8' and not a whole number"),
        ({"size": 49}, r"\(50, 8\) points"),
        ({"space": "hyperboloid"}, "unknown geometry"),
        ({"colour": "red"}, "colour is missing, or nothing"),
        ({"recall": 1.5}, "recall = 1.5"),
        ({"next_id": -1}, "next_id = -1"),
        ({"centre": ["x"] * 8}, "no part of an index"),
        ({"format": "1"}, "of format 1"),
        ({"encoder": ...}, "encoder is missing"),
        ({"kind": ...}, "an index 'nameless'"),
    ],
)
def test_an_index_that_says_what_cannot_be_is_refused(change, message, folder):
    about = json.loads((folder / provenance.ABOUT).read_text()) | change
    says = {name: value for name, value in about.items() if value is not ...}
    (folder / provenance.ABOUT).write_text(json.dumps(says))
    sign(folder)
    with pytest.raises(InputError, match=message):
        Exact.load(folder)


def test_what_is_damaged_or_no_index_is_named(folder, tmp_path):
    with pytest.raises(InputError, match=r"is not a search index .* Make it again, or copy it .* hidden files"):
        Exact.load(tmp_path)
    held = folder / "points.safetensors"
    good = held.read_bytes()
    held.write_bytes(good[:200])
    with pytest.raises(InputError, match=r"points\.safetensors is damaged"):
        Exact.load(folder)
    sign(folder)
    with pytest.raises(InputError, match=r"points\.safetensors cannot be read"):
        Exact.load(folder)
    save_file({"points": torch.zeros(50, 8), "ids": torch.arange(50), "codes": torch.zeros(11, 49)}, held)
    sign(folder)
    with pytest.raises(InputError, match=r"cannot be read \(the codes do not fit the points\)"):
        Exact.load(folder)
    held.unlink()
    with pytest.raises(InputError, match=r"points\.safetensors is missing"):
        Exact.load(folder)


def test_a_thesis_is_never_removed(tmp_path):
    (tmp_path / "thesis.txt").write_text("all of it")
    built = Exact.build(GALLERY[:50], Euclidean(), "e")
    with pytest.raises(InputError, match=r"is not a search index .* Name another folder"):
        built.save(tmp_path)
    built.save(tmp_path / "index")
    (tmp_path / "index" / "thesis.txt").write_text("all of it")
    with pytest.raises(InputError, match=r"thesis\.txt is no part of the search index"):
        built.save(tmp_path / "index")
    assert [path.read_text() for path in sorted(tmp_path.rglob("thesis.txt"))] == ["all of it"] * 2
