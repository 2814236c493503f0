"""The index in a database: the file of milvus-lite in every run, and a Milvus server that is restarted and killed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, Geometry, PoincareBall, Sphere
from lib.geometry.inner import InnerProduct
from lib.search import database, milvus, nearest
from lib.search.index import Index
from lib.search.local import Exact
from lib.search.synthetic import clusters

pytest.importorskip("pymilvus", reason="needs the extra index: pip install 'hyperbolic-retrieval-companion[index]'")
pytest.importorskip("milvus_lite", reason="needs milvus-lite, which is not made for Windows")

BALL = PoincareBall()
GALLERY, QUERY, MORE = (clusters(n, 5, (0, 12), seed) for n, seed in ((600, 2), (5, 1), (90, 3)))
"""At all radii: the norms of what the database compares differ by a factor of 70,000."""

PATIENTS = ['O"Neill', "it's", "back\\slash", "new\nline", "Ünï 中 😀", ""]
PATIENTS += ["zero\x00", "p1 or id >= 0", "%", "{x}", "p11"]


def fields(n: int) -> dict[str, list[str]]:
    return {"class": [f"class {i % 7}" for i in range(n)], "patient of": [PATIENTS[i % 11] for i in range(n)]}


def pair(place: Any, points: torch.Tensor = GALLERY, space: Geometry = BALL) -> tuple[milvus.Milvus, Exact]:
    """The same points in the database and in the exact index."""
    texts = fields(len(points))
    return milvus.Milvus.build(points, space, "e", texts, place=place), Exact.build(points, space, "e", texts)


def same(index: Index, exact: Index, query: torch.Tensor = QUERY) -> None:
    """They give the same answers to the bit, whatever is left out."""
    filters = [{}, {"only": {"class": ["class 3", "class 5"]}}, {"only": {"class": []}}]
    filters += [{"without": {"patient of": [patient]}} for patient in PATIENTS]
    filters += [{"only": {"class": "class 3"}, "without": {"patient of": [*PATIENTS[:5], "nobody"]}}]
    for some in filters:
        for ours, true in zip(index.search(query, 10, **some), exact.search(query, 10, **some), strict=True):
            assert torch.equal(ours, true), some


def holds(folder: Path, *what: bytes) -> list[bool]:
    """For each of these, whether a file below ``folder`` has it."""
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return [any(some in file for file in files) for some in what]


def test_a_file_answers_as_the_exact_index_does_after_every_change(tmp_path):
    index, exact = pair(tmp_path / "gallery.db")
    assert index.provenance.recall == 1
    assert torch.equal(index.search(QUERY, 10)[1], nearest(QUERY, GALLERY, 10, BALL)[1])
    same(index, exact)
    for kind in (index, exact):
        assert kind.add(MORE, fields(90)).tolist() == list(range(600, 690))
        kind.remove([0, 17, 601])
        kind.remove(kind.search(QUERY, 1)[1].unique().numpy())
    same(index, exact)
    index.save(tmp_path / "index")
    same(milvus.Milvus.load(tmp_path / "index", encoder="e", c=1.0), exact)


@pytest.mark.parametrize("space", [Euclidean(), Sphere()], ids=lambda space: space.name)
def test_every_space_by_a_file_that_nobody_keeps(space):
    index, exact = pair(None, GALLERY[:200], space)
    same(index, exact)


def test_more_answers_than_points(tmp_path):
    index = milvus.Milvus.build(GALLERY[:3], BALL, "e")
    distances, ids = index.search(QUERY[:1], 5)
    assert sorted(ids[0, :3].tolist()) == [0, 1, 2] and ids[0, 3:].tolist() == [-1, -1]
    assert distances[0, 3:].isinf().all()
    index.remove([0, 1, 2])
    assert (index.search(QUERY, 1)[1] == -1).all()
    with pytest.raises(InputError, match=r"is no place for a database: name a file that ends in \.db, or a URL"):
        milvus.Milvus.build(GALLERY[:3], BALL, "e", place=tmp_path / "gallery.sqlite")


def test_what_was_removed_is_in_no_file_and_names_never_are_in_the_database(tmp_path):
    index, _ = pair(tmp_path / "database" / "gallery.db")
    index.save(tmp_path / "index")
    form = InnerProduct.about(BALL, GALLERY)
    vector, kept = (form.gallery(GALLERY[row, None]).numpy().tobytes() for row in (17, 18))
    assert holds(tmp_path / "database", vector, kept, b"slash", b"class 3") == [True, True, False, False]
    index.remove([17])
    index.save(tmp_path / "index")
    assert holds(tmp_path / "database", vector, kept) == [False, True]
    assert holds(tmp_path / "index", *(GALLERY[row].numpy().tobytes() for row in (17, 18))) == [False, True]


def test_each_saved_folder_keeps_its_own_answers_also_where_the_database_is_lost(tmp_path):
    index, exact = pair(tmp_path / "database" / "gallery.db")
    index.save(tmp_path / "first")
    index.remove(range(300))
    index.save(tmp_path / "second")
    same(milvus.Milvus.load(tmp_path / "first"), exact)
    index.drop()
    exact.remove(range(300))
    same(milvus.Milvus.load(tmp_path / "second"), exact)
    (tmp_path / "database").rename(tmp_path / "moved")
    same(milvus.Milvus.load(tmp_path / "second"), exact)
    assert not (tmp_path / "database").exists()


def test_a_database_that_is_full_changes_nothing(tmp_path, monkeypatch):
    index, exact = pair(tmp_path / "gallery.db")
    index.save(tmp_path / "index")
    monkeypatch.setattr(milvus, "REQUEST", 30 * 4 * 7)  # 30 vectors at a time
    client = database.library("pymilvus").MilvusClient
    insert, room = client.insert, [True] * 2

    def full_soon(*given, **options):
        if not room:
            raise database.library("pymilvus").MilvusException(9, "quota exceeded[reason=disk quota exceeded]")
        room.pop()
        return insert(*given, **options)

    with monkeypatch.context() as patched:
        patched.setattr(client, "insert", full_soon)
        with pytest.raises(InputError, match=r"gallery\.db did not .*disk quota exceeded.* needs room on its disk"):
            index.add(MORE, fields(90))
    same(index, exact)
    assert index._collection.count() == len(index) == 600  # the 60 that had come are gone
    with monkeypatch.context() as patched:
        patched.setattr(client, "insert", full_soon)
        with pytest.raises(InputError, match="disk quota exceeded"):
            index.save(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    for kind in (index, exact):
        assert kind.add(MORE, fields(90))[0] == 600
    same(index, exact)


def test_a_server_that_is_not_there_and_a_password_in_a_url():
    with pytest.raises(InputError, match=r"http://127\.0\.0\.1:1 did not .* See that it runs, can be reached"):
        milvus.Milvus.build(GALLERY, BALL, "e", place="http://127.0.0.1:1")
    with pytest.raises(InputError, match=r"MILVUS_TOKEN, and name http://archive:19530$") as raised:
        milvus.Milvus.build(GALLERY, BALL, "e", place="http://me:secret@archive:19530")
    assert "secret" not in str(raised.value)


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[Any]:
    pytest.importorskip("milvus", reason="needs a Milvus server for Linux on x86_64: pip install milvus==2.3.5")
    from bench.milvus_server import Server

    with Server(tmp_path_factory.mktemp("milvus")) as running:
        yield running


@pytest.mark.slow
def test_a_server_that_is_restarted_and_killed_gives_the_same_answers(server, tmp_path, monkeypatch):
    index, exact = pair(server.url)
    assert index.provenance.recall == 1
    same(index, exact)
    index.save(tmp_path / "index")

    def client(_: int) -> None:
        same(milvus.Milvus.load(tmp_path / "index"), exact, QUERY[:2])

    with ThreadPoolExecutor(20) as clients:
        list(clients.map(client, range(20)))

    server.stop()
    with pytest.raises(InputError, match=f"{server.url} did not .* See that it runs"):
        index.search(QUERY, 10)
    server.start()
    same(index, exact)

    _kill_at_insert(3, server, monkeypatch)
    with pytest.raises(InputError, match=f"{server.url} did not"):
        index.add(MORE, fields(90))
    server.start()
    assert milvus.Milvus.load(tmp_path / "index")._collection.count() == 600
    same(index, exact)
    for kind in (index, exact):
        kind.add(MORE, fields(90))
        kind.remove([1, 2, 650])
    same(index, exact)
    index.save(tmp_path / "index")

    server.kill()
    server.start()
    same(milvus.Milvus.load(tmp_path / "index"), exact)
    index.drop()


def _kill_at_insert(n: int, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is killed while it is sent the n-th of many parts."""
    monkeypatch.setattr(milvus, "REQUEST", 5 * 4 * 7)  # 5 vectors at a time
    insert, calls = database.Collection.insert, []

    def killing(*given):
        calls.append(given)
        with ThreadPoolExecutor(1) as killer:
            if len(calls) == n:
                killer.submit(server.kill)
            insert(*given)

    monkeypatch.setattr(database.Collection, "insert", killing)
