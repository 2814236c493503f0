"""Every index against the exact search, saved, loaded, damaged and mismatched."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

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
    built = kind.build(GALLERY, space, "demo_vit")
    distances, indices = built.search(QUERY, 20)
    expected, exact = nearest(QUERY, GALLERY, 20, space)
    found = np.mean([len(set(a) & set(b)) / 20 for a, b in zip(exact.tolist(), indices.tolist(), strict=True)])
    assert found >= 0.99
    torch.testing.assert_close(distances, space.between(QUERY[:, None], GALLERY[indices]))
    assert (distances.diff(dim=1) >= 0).all()
    if kind is not FaissHnsw:
        assert torch.equal(indices, exact) and torch.equal(distances, expected)


@pytest.mark.parametrize("radii", [(0, 8), (0, 12), (8, 12)])
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


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (FaissHnsw, {"neighbours": 1}),
        (FaissHnsw, {"neighbours": 0}),
        (FaissHnsw, {"neighbours": -4}),
        (FaissHnsw, {"neighbours": 10**6}),
        (FaissHnsw, {"build_effort": 0}),
        (FaissHnsw, {"build_effort": 2.5}),
        (FaissHnsw, {"effort": "9"}),
    ],
)
def test_options_without_meaning_are_refused(kind, options):
    """Several of them end Python: FAISS crashes."""
    with pytest.raises(InputError, match=f"{next(iter(options))} = .* cannot be used"):
        kind.build(GALLERY[:50], Euclidean(), "e", **options)


@every_kind
@pytest.mark.parametrize("candidates", [0, -1, "9", 2.5])
def test_candidates_without_meaning_are_refused(kind, candidates):
    with pytest.raises(InputError, match="candidates = "):
        kind.build(GALLERY[:50], Euclidean(), "e").search(QUERY, 1, candidates)


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
    assert 0.99 <= loaded.provenance.recall <= 1
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
    for trial in range(300):
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
    assert refused > 250
    kind.load(folder)


def test_what_is_damaged_or_no_index_is_named(tmp_path):
    with pytest.raises(InputError, match=r"is not a search index .* Make it again, or copy it .* hidden files"):
        FaissFlat.load(tmp_path)
    folder = tmp_path / "index"
    FaissFlat.build(GALLERY[:50], Euclidean(), "e").save(folder)
    vectors = (folder / "vectors.faiss").read_bytes()
    (folder / "vectors.faiss").write_bytes(vectors[: len(vectors) // 2])
    with pytest.raises(InputError, match=r"vectors\.faiss is damaged"):
        FaissFlat.load(folder)
    sign(folder)
    with pytest.raises(InputError, match=r"vectors\.faiss cannot be read"):
        FaissFlat.load(folder)
    (folder / "points.safetensors").unlink()
    with pytest.raises(InputError, match=r"points\.safetensors is missing"):
        FaissFlat.load(folder)


@pytest.mark.parametrize(
    ("gallery", "message"),
    [(GALLERY[:40], "40 vectors of 10 numbers"), (GALLERY[:50, :5], "50 vectors of 7 numbers")],
    ids=["number", "dimension"],
)
def test_vectors_of_other_points_are_refused(gallery, message, tmp_path):
    folder = tmp_path / "index"
    FaissFlat.build(GALLERY[:50], Euclidean(), "e").save(folder)
    FaissFlat.build(gallery, Euclidean(), "e").save(tmp_path / "other")
    (folder / "vectors.faiss").write_bytes((tmp_path / "other/vectors.faiss").read_bytes())
    sign(folder)
    with pytest.raises(InputError, match=rf"{message}, but these points need 50 of 10"):
        FaissFlat.load(folder)


ABOUT = {"c": 0.5, "dim": 8, "encoder": "e", "format": "3", "kind": "faiss flat", "size": 50, "space": "poincare"}
ABOUT |= {"recall": 1.0}


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"c": "x"}, "c is 'x' and not a number"),
        ({"c": -1.0}, "c is -1.0"),
        ({"c": float("nan")}, "c is nan"),
        ({"dim": 9}, "has dim 9, but 8"),
        ({"size": 9}, "has size 9, but 50"),
        ({"dim": "8"}, "dim is '8' and not a whole number"),
        ({"encoder": None}, "encoder is None and not text"),
        ({"space": "hyperboloid"}, "unknown geometry"),
        ({"colour": "red"}, "colour is missing, or nothing"),
        ({"recall": 1.5}, "recall = 1.5"),
        ({"format": "1"}, "of format 1"),
        ({"kind": None}, "holds a None index"),
    ],
    ids=str,
)
def test_an_index_that_says_what_cannot_be_is_refused(about, message, tmp_path):
    folder = tmp_path / "index"
    FaissFlat.build(GALLERY[:50], PoincareBall(0.5), "e").save(folder)
    assert provenance._contents(folder / "points.safetensors")[0] == ABOUT
    tensors = load_file(folder / "points.safetensors")
    save_file(tensors, folder / "points.safetensors", {"about": json.dumps(ABOUT | about)})
    sign(folder)
    with pytest.raises(InputError, match=message):
        FaissFlat.load(folder)


@pytest.mark.parametrize("missing", ["c", "encoder", "kind", "format"])
def test_an_index_that_does_not_say_what_it_is_is_refused(missing, tmp_path):
    folder = tmp_path / "index"
    FaissFlat.build(GALLERY[:50], PoincareBall(0.5), "e").save(folder)
    about = {name: value for name, value in ABOUT.items() if name != missing}
    save_file(load_file(folder / "points.safetensors"), folder / "points.safetensors", {"about": json.dumps(about)})
    sign(folder)
    with pytest.raises(InputError, match=f"{missing} is missing|holds a nameless|format unknown"):
        FaissFlat.load(folder)


@pytest.mark.parametrize(
    "tensors",
    [
        {"points": torch.zeros(50), "centre": torch.zeros(8)},
        {"points": torch.zeros(()), "centre": torch.zeros(8)},
        {"points": torch.zeros(50, 8), "centre": torch.zeros(9)},
        {"points": torch.full((50, 8), torch.nan), "centre": torch.zeros(8)},
        {"points": torch.zeros(50, 8)},
    ],
    ids=["flat", "one number", "centre", "nan", "no centre"],
)
def test_an_index_without_its_points_is_refused(tensors, tmp_path):
    folder = tmp_path / "index"
    FaissFlat.build(GALLERY[:50], PoincareBall(0.5), "e").save(folder)
    save_file(tensors, folder / "points.safetensors", {"about": json.dumps(ABOUT)})
    sign(folder)
    with pytest.raises(InputError, match=r"points\.safetensors is"):
        FaissFlat.load(folder)


def test_asking_for_what_an_index_does_not_have_names_what_it_has(tmp_path):
    FaissFlat.build(GALLERY[:50], Euclidean(), "e").save(tmp_path / "index")
    with pytest.raises(InputError, match="has no dimension that could be 8; it has encoder, space, c, dim, size"):
        FaissFlat.load(tmp_path / "index", dimension=8)


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


def test_points_that_somebody_else_has_saved_are_not_taken_for_an_old_index(tmp_path):
    save_file({"points": torch.zeros(3, 3)}, tmp_path / "points.safetensors")
    with pytest.raises(InputError, match="not a search index"):
        FaissFlat.build(GALLERY[:50], Euclidean(), "e").save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["points.safetensors"]


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


@pytest.mark.parametrize("moment", ["writing", "replacing"])
def test_a_killed_save_leaves_the_old_index_and_the_next_load_tidies_up(tmp_path, moment):
    """The process dies while the vectors are being written, or when the old index is already moved aside."""
    folder = tmp_path / "index"
    FaissFlat.build(GALLERY[:50], Euclidean(), "old").save(folder)
    code = f"""
        import os, signal, torch
        from pathlib import Path
        from lib.geometry import Euclidean
        from lib.search.index import FaissFlat
        moves, replace = [], Path.replace
        def dies(self, target):
            if moves:
                os.kill(os.getpid(), signal.SIGKILL)
            moves.append(replace(self, target))
        class Killed(FaissFlat):
            def write(self, folder):
                super().write(folder)
                if {moment == "writing"}:
                    os.kill(os.getpid(), signal.SIGKILL)
        Path.replace = dies
        Killed.build(torch.zeros(20, 8), Euclidean(), "new").save({str(folder)!r})
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert ended.returncode == -signal.SIGKILL
    assert folder.exists() == (moment == "writing") and len(list(tmp_path.glob(".index.*"))) == 1
    assert FaissFlat.load(folder).provenance.encoder == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


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
