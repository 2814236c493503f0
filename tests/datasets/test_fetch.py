"""Downloads against a server of our own: whole or not at all, and nothing is written outside the target."""

import hashlib
import io
import tarfile
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lib import paths
from lib.datasets import catalogue, fetch, loaders
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset

KATHER = {
    f"Kather_texture_2016_image_tiles_5000/{folder}/{i}_CRC-Prim-HE-0{i}_00{i}.tif_Row_1_Col_1.tif": folder
    for folder in ("01_TUMOR", "02_STROMA")
    for i in (1, 2)
}
BREAKHIS = {
    f"BreaKHis_v1/histology_slides/breast/{kind}/SOB/{slide}/{m}X/SOB_{slide}-{m}-001.png": kind
    for kind, slide in (("benign", "B_A-14-22549AB"), ("malignant", "M_DC-14-2523"))
    for m in (40, 200)
}
METADATA = """lesion_id,image_id,dx,dx_type,age,sex,localization
HAM_1,ISIC_1,nv,histo,50,male,back
HAM_2,ISIC_2,mel,histo,60,female,face
"""


def tile(name: str) -> bytes:
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])
    pixels = np.random.default_rng(seed).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, {"tif": "TIFF", "png": "PNG", "jpg": "JPEG"}[name.rpartition(".")[2]])
    return stream.getvalue()


def zipped(*members: str | tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    """The tiles of these names, and other entries with what they hold."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(*(member if isinstance(member, tuple) else (member, tile(member))))
    return stream.getvalue()


def tarred(*members: str | tuple[tarfile.TarInfo, bytes]) -> bytes:
    """The same as a tar."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for member in members:
            info, data = member if isinstance(member, tuple) else (tarfile.TarInfo(member), tile(member))
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, target: str = "", data: bytes = b""
) -> tuple[tarfile.TarInfo, bytes]:
    """What a tar holds beside tiles: a link of this kind, or a file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, data


class Server:
    """Serves ``files``; of a name in ``broken`` it sends half and hangs up. ``asked`` remembers the requests."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.broken: set[str] = set()
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.lstrip("/")
                server.asked.append(name)
                if name not in server.files:
                    self.send_error(404)
                    return
                data = server.files[name]
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2] if name in server.broken else data)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    served = Server()
    yield served
    served.http.shutdown()
    served.http.server_close()


@pytest.fixture
def offer(server, monkeypatch):
    """Serve files as the archives of a dataset, with their true checksums unless told otherwise."""

    def offered(dataset: str, files: dict[str, bytes], checksum: str = "true") -> None:
        server.files |= files
        base = f"http://127.0.0.1:{server.http.server_port}"
        archives = tuple(
            catalogue.Archive(f"{base}/{name}", name, f"sha256:{hashlib.sha256(data).hexdigest()}")
            for name, data in files.items()
        )
        if checksum != "true":
            archives = tuple(replace(archive, checksum=checksum or None) for archive in archives)
        monkeypatch.setitem(catalogue.DATASETS, dataset, replace(catalogue.DATASETS[dataset], files=archives))

    return offered


def left(data: Path) -> list[str]:
    """What lies in data/ after a failure, checksum records and finished downloads aside."""
    return [p.name for p in (data / "originals").glob("*") if not p.name.endswith((".sha256", ".download"))] + [
        p.name for p in data.glob("*") if p.name != "originals"
    ]


def test_a_zip_becomes_the_dataset_and_a_second_call_downloads_nothing(server, offer):
    offer("kather", {"tiles.zip": zipped(*KATHER)})
    assert list(fetch.fetch("kather")) == ["kather"] == list(fetch.fetch("kather"))
    table = loaders.load("kather", paths.images("kather"))
    assert len(table) == 4 and set(table.labels) == {"tumor", "stroma"}
    assert read_image(table.path(0)).size == (8, 8)
    assert sorted(left(paths.DATA)) == ["kather", "kather"] and server.asked == ["tiles.zip"]


def test_every_magnification_of_breakhis_is_found(offer):
    offer("breakhis", {"BreaKHis_v1.tar.gz": tarred(*BREAKHIS)})
    assert sorted(fetch.fetch("breakhis")) == ["bh200x", "bh40x"]
    assert len(loaders.load("bh200x", paths.images("bh200x"))) == 2


def test_a_broken_download_leaves_nothing_and_goes_on_with_what_is_missing(server, offer):
    files = {
        "HAM10000_metadata.csv": METADATA.encode(),
        "one.zip": zipped("ISIC_1.jpg"),
        "two.zip": zipped("ISIC_2.jpg"),
    }
    offer("ham10000", files)
    server.broken = {"one.zip"}
    with pytest.raises(InputError, match=r"one\.zip: the download broke off .* Run again, or download http"):
        fetch.fetch("ham10000")
    server.broken, lost = set(), server.files.pop("one.zip")
    with pytest.raises(InputError, match=r"one\.zip: the download broke off \(404"):
        fetch.fetch("ham10000")
    assert left(paths.DATA) == []
    server.files["one.zip"] = lost
    fetch.fetch("ham10000")
    assert server.asked == ["HAM10000_metadata.csv", "one.zip", "one.zip", "one.zip", "two.zip"]
    assert sorted(loaders.load("ham10000", paths.images("ham10000")).labels) == ["mel", "nv"]


def test_without_a_published_checksum_the_first_download_decides(server, offer, capsys):
    data = zipped(*KATHER)
    offer("kather", {"tiles.zip": data}, checksum="")
    fetch.fetch("kather")
    assert f"SHA-256 is {hashlib.sha256(data).hexdigest()}" in capsys.readouterr().out
    fetch.shutil.rmtree(paths.DATA / "originals" / "kather")
    server.files["tiles.zip"] = zipped(*list(KATHER)[:3])
    with pytest.raises(InputError, match=r"another checksum(?s:.)*remove .*originals/tiles\.zip\.sha256 first"):
        fetch.fetch("kather")


LOGIN = b"  <!DOCTYPE html><title>Log in</title>"


@pytest.mark.parametrize("name", ["tiles.zip", "tiles.tar.gz"])
def test_a_login_page_is_no_archive_and_not_remembered(server, offer, name):
    offer("kather", {name: LOGIN}, checksum="")
    with pytest.raises(InputError, match=rf"{name}: http.* no archive, perhaps a page to log in; .*'<!DOCTYPE html>"):
        fetch.fetch("kather")
    assert not [file for file in paths.DATA.rglob("*") if file.is_file()]
    server.files[name] = (zipped if name.endswith("zip") else tarred)(*KATHER)
    assert list(fetch.fetch("kather")) == ["kather"]


@pytest.mark.parametrize("name", ["tiles.zip", "tiles.tar.gz"])
def test_a_bomb_is_refused_before_it_is_written(offer, monkeypatch, name):
    """Zeros, which take a thousandth of their size."""
    zeros = bytes(30_000_000)
    data = zipped(*KATHER, ("0.tif", zeros)) if name.endswith("zip") else tarred(entry("0.tif", data=zeros))
    assert len(data) < 50_000
    offer("kather", {name: data})
    monkeypatch.setattr(fetch.shutil, "copyfileobj", None)  # with which zipfile writes a member
    monkeypatch.setattr(fetch.tarfile, "copyfileobj", None)
    with pytest.raises(
        InputError, match=r"it would become 30 MB or more, and 1\d MB is much for its size. Remove .*tiles"
    ):
        fetch.fetch("kather")
    assert left(paths.DATA) == []


def link(name: str) -> tuple[zipfile.ZipInfo, bytes]:
    """A link in a zip."""
    member = zipfile.ZipInfo(name)
    member.external_attr = 0o120777 << 16
    return member, b"/etc/passwd"


def encrypted() -> bytes:
    """A zip whose first member is encrypted, as both of its headers say."""
    data = bytearray(zipped(*KATHER))
    data[data.index(b"PK\x03\x04") + 6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


OUT, NOT = "leads out of the folder", "is not unpacked"
REFUSED = {
    "wrong checksum": (zipped(*KATHER), r"tiles\.zip: what was downloaded has another checksum"),
    "something else": (zipped("a/1.png", "b/2.png"), r"does not hold Kather 2016. Look into .*\.kather\.download, rem"),
    "encrypted": (encrypted(), r"cannot be unpacked here \(.*encrypted.*another program and say where: DATA="),
    "truncated": (zipped(*KATHER)[:-100], r"tiles\.zip cannot be unpacked"),
    "zip, path above": (zipped(*KATHER, "../outside.tif"), OUT),
    "zip, absolute path": (zipped(*KATHER, "/tmp/outside.tif"), OUT),
    "zip, path in and out": (zipped(*KATHER, "a/../../outside.tif"), OUT),
    "zip, path of Windows": (zipped(*KATHER, "..\\outside.tif"), OUT),
    "zip, link": (zipped(*KATHER, link("link.tif")), r"link\.tif is a link"),
    "tar, path": (tarred(*KATHER, entry("../outside.tif")), NOT),
    "tar, absolute link": (tarred(*KATHER, entry("link.tif", tarfile.SYMTYPE, "/etc/passwd")), NOT),
    "tar, link out": (tarred(*KATHER, entry("link.tif", tarfile.SYMTYPE, "../../outside")), NOT),
    "tar, hard link out": (tarred(*KATHER, entry("link.tif", tarfile.LNKTYPE, "../outside")), NOT),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_unpacked_is_named_and_leaves_nothing(offer, tmp_path, case):
    data, message = REFUSED[case]
    checksum = {"wrong checksum": "sha256:" + "0" * 64, "something else": ""}.get(case, "true")
    offer("kather", {"tiles.tar.gz" if case.startswith("tar") else "tiles.zip": data}, checksum)
    with pytest.raises(InputError, match=message):
        fetch.fetch("kather")
    assert left(paths.DATA) == [] and not list(tmp_path.rglob("outside*"))
    assert case != "something else" or not list(paths.DATA.rglob("*.sha256"))  # it is not remembered


def test_a_zip_with_an_entry_for_its_own_folder_is_unpacked(offer):
    offer("kather", {"tiles.zip": zipped(*KATHER, (zipfile.ZipInfo("./"), b""))})
    assert list(fetch.fetch("kather")) == ["kather"]


def test_what_a_killed_download_left_goes_with_the_next_one(offer):
    """Half a file of the downloader, and archives of a run that was killed when all was unpacked."""
    offer("kather", {"tiles.zip": zipped(*KATHER)})
    downloads = paths.DATA / "originals" / ".kather.download"
    for _ in range(2):  # before there is a dataset, and after
        downloads.mkdir(parents=True, exist_ok=True)
        for name in ("tmpk3j2a_b1", "thesis.txt", "tiles.zip"):
            (downloads / name).write_bytes(zipped(*KATHER))
        fetch.fetch("kather")
        assert [path.name for path in downloads.iterdir()] == ["thesis.txt"]
    (downloads / "thesis.txt").unlink()
    fetch.fetch("kather")
    assert sorted(path.name for path in downloads.parent.iterdir()) == ["kather"]


def test_too_little_space_is_said_before_anything_is_downloaded(server, offer, monkeypatch):
    offer("kather", {"tiles.zip": zipped(*KATHER)})
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1e8}))
    with pytest.raises(InputError, match=r"0\.1 GB free; Kather 2016 needs 0\.6 GB"):
        fetch.fetch("kather")
    assert server.asked == []


@pytest.mark.parametrize("name", ["tissue", "bh200x", "nonsense"])
def test_what_cannot_be_downloaded_is_refused(name):
    with pytest.raises(InputError, match="choose one of kather, breakhis, ham10000"):
        fetch.fetch(name)


@pytest.mark.parametrize("name", ["odir", "ovarian", "radin_ct"])
def test_what_has_to_be_downloaded_by_hand_says_where(name, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    what = catalogue.DATASETS[name]
    with pytest.raises(MissingDataset) as caught:
        fetch.fetch(name)
    parts = (f"needs {name}: ", what.summary(), what.layout, f"Download it by hand: {what.page}\n")
    assert all(part in str(caught.value) for part in parts) and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_archive_is_never_unpacked_without_a_word(tmp_path, seed):
    """gzip's checksum stands behind the last member, where tarfile does not look."""
    rng = np.random.default_rng(seed)
    data = bytearray(tarred(entry("one.bin", data=rng.bytes(20_000))))
    for place in rng.integers(20, len(data) - 8, 2):
        data[place] ^= 1 << int(rng.integers(8))
    (tmp_path / "bad.tar.gz").write_bytes(data)
    with pytest.raises(InputError, match=r"bad\.tar\.gz"):
        fetch.unpack(tmp_path / "bad.tar.gz", tmp_path / "out")
