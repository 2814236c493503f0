"""Every index against the exact search, saved, loaded, damaged and mismatched."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.search import index, nearest
from lib.search.index import FaissFlat, FaissHnsw, Qdrant

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
    built = kind.build(GALLERY, space, "demo_vit")
    distances, indices = built.search(QUERY, 20)
    expected, exact = nearest(QUERY, GALLERY, 20, space)
    found = np.mean([len(set(a) & set(b)) / 20 for a, b in zip(exact.tolist(), indices.tolist(), strict=True)])
    assert found >= 0.99
    torch.testing.assert_close(distances, space.between(QUERY[:, None], GALLERY[indices]))
    assert (distances.diff(dim=1) >= 0).all()
    if kind is not FaissHnsw:
        assert torch.equal(indices, exact) and torch.equal(distances, expected)


@every_kind
def test_duplicates_come_in_gallery_order_and_at_distance_zero(kind):
    gallery = torch.cat([points(200, 2), points(200, 2)])
    distances, indices = kind.build(gallery, PoincareBall(), "e").search(gallery[:5], 2)
    assert indices.tolist() == [[i, i + 200] for i in range(5)] and (distances == 0).all()


@every_kind
def test_all_of_a_small_gallery(kind):
    gallery = points(7, 3)
    indices = kind.build(gallery, PoincareBall(), "e").search(QUERY[:3], 7)[1]
    assert indices.sort(dim=1).values.tolist() == [list(range(7))] * 3


@every_kind
def test_saved_and_loaded_it_answers_alike(kind, tmp_path):
    built = kind.build(GALLERY[:500], PoincareBall(0.5), "demo_vit 1a2b")
    built.save(tmp_path / "index")
    loaded = kind.load(tmp_path / "index", encoder="demo_vit 1a2b", space="poincare", c=0.5, dim=8)
    assert loaded.provenance == built.provenance and loaded.provenance.size == 500
    for before, after in zip(built.search(QUERY, 5), loaded.search(QUERY, 5), strict=True):
        assert torch.equal(before, after)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"c": 1.0}, "has c 0.5, but 1.0"),
        ({"dim": 32}, "has dim 8, but 32"),
        ({"encoder": "texture"}, "has encoder demo_vit, but texture"),
        ({"space": "euclidean"}, "has space poincare, but euclidean"),
    ],
)
def test_another_space_or_encoder_is_refused(expected, message, tmp_path):
    FaissFlat.build(GALLERY[:50], PoincareBall(0.5), "demo_vit").save(tmp_path / "index")
    with pytest.raises(InputError, match=message):
        FaissFlat.load(tmp_path / "index", **expected)


def test_another_kind_is_refused(tmp_path):
    FaissFlat.build(GALLERY[:50], Euclidean(), "e").save(tmp_path / "index")
    with pytest.raises(InputError, match="holds a faiss flat index"):
        Qdrant.load(tmp_path / "index")


def test_what_is_damaged_or_no_index_is_named(tmp_path):
    with pytest.raises(InputError, match=r"points\.safetensors is missing"):
        FaissFlat.load(tmp_path)
    folder = tmp_path / "index"
    FaissFlat.build(GALLERY[:50], Euclidean(), "e").save(folder)
    vectors = (folder / "vectors.faiss").read_bytes()
    (folder / "vectors.faiss").write_bytes(vectors[: len(vectors) // 2])
    with pytest.raises(InputError, match=r"vectors\.faiss cannot be read"):
        FaissFlat.load(folder)
    FaissFlat.build(GALLERY[:40], Euclidean(), "e").save(tmp_path / "other")
    (folder / "vectors.faiss").write_bytes((tmp_path / "other/vectors.faiss").read_bytes())
    with pytest.raises(InputError, match="40 vectors for 50 points"):
        FaissFlat.load(folder)
    points_file = (folder / "points.safetensors").read_bytes()
    (folder / "points.safetensors").write_bytes(points_file[:100])
    with pytest.raises(InputError, match="damaged or no index"):
        FaissFlat.load(folder)


@pytest.mark.parametrize(
    ("gallery", "space", "message"),
    [
        (torch.zeros(0, 3), Euclidean(), "at least one point"),
        (torch.zeros(3), Euclidean(), "expected"),
        (torch.tensor([[0.0, 0.1], [torch.nan, 0.0]]), Euclidean(), "gallery row 1 holds NaN"),
        (torch.tensor([[0.0, 0.1], [1.0, 0.0]]), PoincareBall(), "row 1 lies on the rim"),
    ],
)
def test_a_bad_gallery_is_refused(gallery, space, message):
    with pytest.raises(InputError, match=message):
        FaissFlat.build(gallery, space, "e")


@pytest.mark.parametrize(
    ("query", "k", "message"),
    [
        (torch.zeros(1, 7), 1, "the index holds 8 numbers"),
        (torch.zeros(8), 1, "the index holds 8 numbers"),
        (torch.full((1, 8), torch.inf), 1, "query row 0 holds NaN or infinity"),
        (torch.tensor([[0.0] * 8, [1.0] + [0.0] * 7]), 1, "row 1 lies on the rim"),
        (torch.zeros(1, 8), 51, "k = 51"),
        (torch.zeros(1, 8), 0, "k = 0"),
    ],
)
def test_a_bad_query_is_refused(query, k, message):
    built = FaissFlat.build(GALLERY[:50], PoincareBall(), "e")
    with pytest.raises(InputError, match=message):
        built.search(query, k)


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(InputError, match=r"companion\[index\]"):
        FaissFlat.build(GALLERY[:5], Euclidean(), "e")


def test_a_graph_that_proposes_too_few_ends_in_nothing(monkeypatch):
    built = FaissFlat.build(GALLERY[:50], Euclidean(), "e")
    monkeypatch.setattr(built, "propose", lambda vectors, n: np.array([[4, -1, -1, 2]] * len(vectors)))
    distances, indices = built.search(QUERY[:2], 3)
    assert (indices[:, 2] == -1).all() and (distances[:, 2] == torch.inf).all()
    assert set(indices[0, :2].tolist()) == {2, 4}


def test_a_killed_save_leaves_the_old_index_and_nothing_else(tmp_path):
    """The process dies while the vectors are being written."""
    folder = tmp_path / "index"
    FaissFlat.build(GALLERY[:50], Euclidean(), "old").save(folder)
    code = f"""
        import os, signal, torch
        from lib.geometry import Euclidean
        from lib.search.index import FaissFlat
        class Killed(FaissFlat):
            def write(self, folder):
                super().write(folder)
                os.kill(os.getpid(), signal.SIGKILL)
        Killed.build(torch.zeros(20, 8), Euclidean(), "new").save({str(folder)!r})
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert ended.returncode == -signal.SIGKILL
    assert FaissFlat.load(folder).provenance.encoder == "old"
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["index"]


def test_a_server_is_the_same_code(monkeypatch):
    """With a URL the client is asked for that server; everything else is unchanged."""
    import qdrant_client

    asked, local = [], qdrant_client.QdrantClient
    monkeypatch.setattr(
        index._library("qdrant_client"),
        "QdrantClient",
        lambda *place, url=None: (asked.append(url), local(":memory:"))[1],
    )
    built = Qdrant.build(GALLERY[:100], PoincareBall(), "e", url="http://archive:6333")
    assert asked == ["http://archive:6333"]
    assert torch.equal(built.search(QUERY, 3)[1], nearest(QUERY, GALLERY[:100], 3, PoincareBall())[1])
