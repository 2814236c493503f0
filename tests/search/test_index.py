"""Every index against the exact search, saved, loaded, damaged and mismatched."""

import contextlib
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lib import files
from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.search import index, nearest, provenance
from lib.search.index import FaissFlat, FaissHnsw, Qdrant
from lib.search.synthetic import clusters

KINDS = (FaissFlat, FaissHnsw, Qdrant)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
every_space = pytest.mark.parametrize("space", [Euclidean(), Sphere(), PoincareBall(0.5)], ids=lambda s: s.name)


def points(n: int, seed: int, reach: float = 0.95) -> torch.Tensor:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 8))
    return torch.from_numpy(x / np.linalg.norm(x, axis=1, keepdims=True) * random.uniform(0, reach, (n, 1))).float()


GALLERY, QUERY = points(3000, 0), points(40, 1)


@every_kind
@every_space
def test_nearly_all_of_the_nearest_are_found_and_in_order(kind, space):
    gallery = GALLERY[:600] if kind is Qdrant else GALLERY  # in this process it is slow
    built = kind.build(gallery, space, "demo_vit")
    distances, indices = built.search(QUERY, 20)
    expected, exact = nearest(QUERY, gallery, 20, space)
    found = np.mean([len(set(a) & set(b)) / 20 for a, b in zip(exact.tolist(), indices.tolist(), strict=True)])
    assert found >= 0.99
    torch.testing.assert_close(distances, space.between(QUERY[:, None], gallery[indices]))
    assert (distances.diff(dim=1) >= 0).all()
    if kind is not FaissHnsw:
        assert torch.equal(indices, exact) and torch.equal(distances, expected)


@pytest.mark.parametrize("radii", [(0, 12), (8, 12)])
@pytest.mark.parametrize("d", [5, 32])
def test_a_graph_finds_nearly_all_at_every_radius(d, radii):
    """Norms of the d + 2 numbers spread by up to 70,000; a graph among them finds 20 % there."""
    gallery, query = clusters(3000, d, radii, seed=2), clusters(50, d, radii, seed=1)
    built = FaissHnsw.build(gallery, PoincareBall(), "e")
    distances = built.search(query, 10)[0]
    assert (distances <= nearest(query, gallery, 10, PoincareBall())[0][:, -1:]).double().mean() >= 0.99
    assert built.provenance.recall >= 0.99


class Forgetful(FaissFlat):
    """Proposes nothing beyond the first ``kept`` points of its gallery."""

    kind = "forgetful"
    kept: int

    def propose(self, vectors, n):
        found = super().propose(vectors, len(self.points))
        return np.where(found < self.kept, found, -1)


@pytest.mark.parametrize("kept", [3000, 2900, 2000])
def test_recall_on_the_gallery_is_kept_and_judged(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(Forgetful, "kept", kept, raising=False)
    if kept == 2000:
        with pytest.raises(InputError, match=r"3,000 points \(radius 4.*finds 6.* 90% are the least: search exactly"):
            Forgetful.build(GALLERY, PoincareBall(), "e")
        return
    with (
        contextlib.nullcontext() if kept == 3000 else pytest.warns(UserWarning, match=r"forgetful .* finds 9.* exactly")
    ):
        built = Forgetful.build(GALLERY, PoincareBall(), "e")
    rows = np.sort(np.random.default_rng(0).permutation(3000)[:100])
    near = nearest(GALLERY[rows], GALLERY, 10, PoincareBall(), rows, np.arange(3000))[1]
    assert built.provenance.recall == pytest.approx((near < kept).double().mean().item())


@every_kind
def test_saved_and_loaded_it_answers_alike(kind, tmp_path):
    built = kind.build(GALLERY[:500], PoincareBall(0.5), "demo_vit 1a2b")
    built.save(tmp_path / "index")
    loaded = kind.load(tmp_path / "index", encoder="demo_vit 1a2b", space="poincare", c=0.5, dim=8)
    assert loaded.provenance == built.provenance and loaded.provenance.size == 500
    assert 0.99 <= loaded.provenance.recall <= 1
    for before, after in zip(built.search(QUERY, 5), loaded.search(QUERY, 5), strict=True):
        assert torch.equal(before, after)
    copies = torch.cat([points(200, 2), points(200, 2)])  # duplicates come in gallery order and at distance zero
    distances, indices = kind.build(copies, PoincareBall(), "e").search(copies[:5], 2)
    assert indices.tolist() == [[i, i + 200] for i in range(5)] and (distances == 0).all()


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
def test_another_space_or_encoder_is_refused(expected, message, tmp_path):
    FaissFlat.build(GALLERY[:50], PoincareBall(0.5), "demo_vit").save(tmp_path / "index")
    with pytest.raises(InputError, match=message):
        FaissFlat.load(tmp_path / "index", **expected)
    with pytest.raises(InputError, match="holds a faiss flat index"):
        Qdrant.load(tmp_path / "index")


def sign(folder: Path) -> None:
    """Make the marker vouch for the files as they are now, as somebody would who writes such a folder by hand."""
    marker = folder / files.MARKER
    about = json.loads(marker.read_text())
    about["files"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in about["files"]}
    marker.write_text(json.dumps(about))


@pytest.mark.parametrize("kind", [FaissFlat, FaissHnsw], ids=lambda kind: kind.kind)
def test_a_flipped_bit_is_refused_or_harmless(kind, tmp_path):
    """In every file, the marker and the headers among them; the message names the folder."""
    folder, refused, random = tmp_path / "index", 0, np.random.default_rng(0)
    built = kind.build(GALLERY[:60], PoincareBall(0.5), "demo_vit")
    built.save(folder)
    expected = built.search(QUERY, 5)
    files = sorted(folder.iterdir())
    assert len(files) == 3
    for trial in range(120):
        file = files[trial % 3]
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
    assert refused > 100
    kind.load(folder)


@pytest.fixture
def folder(tmp_path):
    """A saved index of 50 points."""
    FaissFlat.build(GALLERY[:50], PoincareBall(0.5), "e").save(tmp_path / "index")
    return tmp_path / "index"


def test_what_is_damaged_or_no_index_is_named(folder, tmp_path):
    with pytest.raises(InputError, match=r"is not a search index .* Make it again, or copy it .* hidden files"):
        FaissFlat.load(tmp_path)
    vectors = folder / "vectors.faiss"
    for gallery, message in ((GALLERY[:40], "40 vectors of 10 numbers"), (GALLERY[:50, :5], "50 vectors of 7 numbers")):
        FaissFlat.build(gallery, Euclidean(), "e").save(tmp_path / "other")
        vectors.write_bytes((tmp_path / "other/vectors.faiss").read_bytes())
        sign(folder)
        with pytest.raises(InputError, match=rf"{message}, but these points need 50 of 10"):
            FaissFlat.load(folder)
    vectors.write_bytes(vectors.read_bytes()[:200])
    with pytest.raises(InputError, match=r"vectors\.faiss is damaged"):
        FaissFlat.load(folder)
    sign(folder)
    with pytest.raises(InputError, match=r"vectors\.faiss cannot be read"):
        FaissFlat.load(folder)
    (folder / "points.safetensors").unlink()
    with pytest.raises(InputError, match=r"points\.safetensors is missing"):
        FaissFlat.load(folder)


ABOUT = {"c": 0.5, "dim": 8, "encoder": "e", "format": "3", "kind": "faiss flat", "size": 50, "space": "poincare"}
ABOUT |= {"recall": 1.0}
SAVED = {"points": torch.zeros(50, 8), "centre": torch.zeros(8)}


@pytest.mark.parametrize(
    ("about", "tensors", "message"),
    [
        ({"c": "x"}, {}, "c is 'x' and not a number"),
        ({"c": -1.0}, {}, "c is -1.0"),
        ({"dim": 9}, {}, "has dim 9, but 8"),
        ({"dim": "8"}, {}, "dim is '8' and not a whole number"),
        ({"space": "hyperboloid"}, {}, "unknown geometry"),
        ({"colour": "red"}, {}, "colour is missing, or nothing"),
        ({"recall": 1.5}, {}, "recall = 1.5"),
        ({"format": "1"}, {}, "of format 1"),
        ({"encoder": ...}, {}, "encoder is missing"),
        ({"kind": ...}, {}, "holds a nameless"),
        ({}, {"points": torch.zeros(50)}, r"points\.safetensors is"),
        ({}, {"centre": torch.zeros(9)}, r"points\.safetensors is"),
        ({}, {"points": torch.full((50, 8), torch.nan)}, r"points\.safetensors is"),
        ({}, {"centre": ...}, r"points\.safetensors is"),
    ],
)
def test_an_index_that_says_what_cannot_be_or_lacks_its_points_is_refused(about, tensors, message, folder):
    assert provenance._contents(folder / "points.safetensors")[0] == ABOUT
    says, holds = (
        {name: value for name, value in whole.items() if value is not ...} for whole in (ABOUT | about, SAVED | tensors)
    )
    save_file(holds, folder / "points.safetensors", {"about": json.dumps(says)})
    sign(folder)
    with pytest.raises(InputError, match=message):
        FaissFlat.load(folder)


def test_what_has_no_meaning_is_refused_in_words():
    """Some of the options end Python: FAISS crashes."""
    for options in ({"neighbours": 1}, {"neighbours": 10**6}, {"build_effort": 2.5}, {"effort": "9"}):
        with pytest.raises(InputError, match=f"{next(iter(options))} = .* cannot be used"):
            FaissHnsw.build(GALLERY[:50], Euclidean(), "e", **options)
    for gallery, message in (
        (torch.zeros(0, 8), "at least one point"),
        (torch.zeros(8), "expected"),
        (torch.full((2, 8), torch.nan), "gallery row 0 holds NaN"),
        (torch.eye(8), "row 0 lies on the rim"),
    ):
        with pytest.raises(InputError, match=message):
            FaissFlat.build(gallery, PoincareBall(), "e")
    built = FaissFlat.build(GALLERY[:50], PoincareBall(), "e")
    for query, k, candidates, message in (
        (torch.zeros(1, 7), 1, None, "the index holds 8 numbers"),
        (torch.full((1, 8), torch.inf), 1, None, "query row 0 holds NaN or infinity"),
        (torch.eye(8), 1, None, "row 0 lies on the rim"),
        (torch.zeros(1, 8), 51, None, "k = 51"),
        (torch.zeros(1, 8), 0, None, "k = 0"),
        (torch.zeros(1, 8), 1, 0, "candidates = 0"),
    ):
        with pytest.raises(InputError, match=message):
            built.search(query, k, candidates)


# What is saved replaces an index and nothing else


def test_a_thesis_is_never_removed(tmp_path):
    (tmp_path / "thesis.txt").write_text("all of it")
    built = FaissFlat.build(GALLERY[:50], Euclidean(), "e")
    with pytest.raises(InputError, match=r"is not a search index .* Name another folder"):
        built.save(tmp_path)
    built.save(tmp_path / "index")
    (tmp_path / "index" / "thesis.txt").write_text("all of it")
    with pytest.raises(InputError, match=r"thesis\.txt is no part of the search index"):
        built.save(tmp_path / "index")
    assert [path.read_text() for path in sorted(tmp_path.rglob("thesis.txt"))] == ["all of it"] * 2
    other = tmp_path / "points only"
    other.mkdir()
    save_file({"points": torch.zeros(3, 3)}, other / "points.safetensors")
    with pytest.raises(InputError, match="not a search index"):
        built.save(other)
    assert [path.name for path in other.iterdir()] == ["points.safetensors"]


@pytest.mark.parametrize("thesis", [False, True])
def test_an_index_from_before_there_were_markers_is_replaced_if_nothing_else_is_with_it(tmp_path, thesis):
    folder = tmp_path / "index"
    FaissFlat.build(GALLERY[:50], Euclidean(), "old").save(folder)
    (folder / files.MARKER).unlink()
    if thesis:
        (folder / "thesis.txt").write_text("all of it")
    with pytest.raises(InputError, match="not a search index") if thesis else contextlib.nullcontext():
        Qdrant.build(GALLERY[:50], Euclidean(), "new").save(folder)
    assert thesis == (folder / "thesis.txt").exists() == (folder / "vectors.faiss").exists()


def test_a_server_is_the_same_code(monkeypatch):
    """With a URL the client is asked for that server; everything else is unchanged."""
    import qdrant_client

    asked, local = [], qdrant_client.QdrantClient
    monkeypatch.setattr(
        index.library("qdrant_client"),
        "QdrantClient",
        lambda *place, url=None: (asked.append(url), local(":memory:"))[1],
    )
    built = Qdrant.build(GALLERY[:100], PoincareBall(), "e", url="http://archive:6333")
    assert asked == ["http://archive:6333"]
    assert torch.equal(built.search(QUERY, 3)[1], nearest(QUERY, GALLERY[:100], 3, PoincareBall())[1])
