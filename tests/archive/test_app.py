"""The page of an archive: its answers are the archive's, to one client and to twenty; what is wrong is said."""

import csv
import io
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lib.archive.app import content, opinions, server
from lib.archive.app.export import export
from lib.archive.app.plane import DISK, Plane
from lib.archive.archive import Archive
from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.pipeline import archive as commands
from tests.archive.conftest import CLASSES, MARKUP


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    image.save(file := io.BytesIO(), kind)
    return file.getvalue()


def drawing(seed: int, mean: float = 120.0) -> Image.Image:
    pixels = np.random.default_rng(seed).normal(mean, 25, (50, 30, 3)).clip(0, 255)
    return Image.fromarray(pixels.astype(np.uint8))


def content_of(script: str) -> dict:
    return json.loads(script.removeprefix("const ARCHIVE = ").rstrip(";\n"))


def test_the_page_is_whole_and_loads_nothing_from_elsewhere(page):
    start = page.get("")
    assert "default-src 'none'" in start.headers["Content-Security-Policy"]
    for name in re.findall(r'(?:src|href)="([\w.]+)"', start.text):
        assert page.get(name).status_code == 200, name
    for file in content.PAGE.iterdir():
        foreign = r"https?:|//\w+\.|innerHTML|insertAdjacentHTML|document\.write|\bstyle=|\son\w+="
        assert not re.search(foreign, file.read_text(encoding="utf-8")), file


def test_the_page_is_told_every_class_patient_and_picture(page, archive):
    about = content_of(page.get("data.js").text)
    assert {of["label"]: of["count"] for of in about["classes"]} == dict.fromkeys(CLASSES, 8)
    assert about["patients"] == ["patient_0", "patient_1", "patient_2", "patient_3"] and about["kind"] == "patient"
    assert {int(number) for number in about["rows"]} == set(archive.rows.index)
    for number in (0, 20):
        assert page.get(f"pictures/{number}").content == archive.thumbnail(number)
        assert Image.open(io.BytesIO(page.get(f"large/{number}").content)).size == (40, 40)
    assert "no image with the id 99" in page.get("pictures/99").json()["message"]


@pytest.mark.parametrize("only", [None, [MARKUP], [MARKUP, "carcinoma"]])
@pytest.mark.parametrize("apart", [0, 1])
def test_an_image_of_the_archive_gets_the_answers_of_the_archive(page, archive, only, apart):
    patient = archive.rows.at[9, "patient"] if apart else None
    wanted = archive.ask(9, k=20, leave_out=patient, only=only)
    got = page.get("ask/9", params={"apart": apart, "class": only}).json()
    assert got["ids"] == wanted.neighbours["id"].tolist() and 9 not in got["ids"]
    np.testing.assert_allclose(got["distances"], wanted.neighbours["distance"], rtol=1e-6)
    assert {int(k): tuple(vote) for k, vote in got["votes"].items()} == wanted.votes
    assert patient not in archive.rows.loc[got["ids"], "patient"].tolist()


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_an_image_of_ones_own_is_asked_for_and_shown(page, archive, tmp_path, kind):
    sent = encoded(drawing(1), kind)
    (tmp_path / "own").write_bytes(sent)
    wanted = archive.ask(tmp_path / "own", k=20, leave_out="patient_1")
    got = page.post("ask", params={"apart": 1, "patient": "patient_1"}, data=sent).json()
    assert got["ids"] == wanted.neighbours["id"].tolist() and got["left_out"] == "patient_1"
    assert got["picture"].startswith("data:image/jpeg;base64,") and len(got["at"]) == 2
    everybody = page.post("ask", params={"apart": 1, "patient": "nobody's"}, data=sent).json()
    assert everybody["left_out"] is None and len(everybody["ids"]) == 20
    assert page.post("ask", params={"apart": 0, "patient": "patient_1"}, data=sent).json()["ids"] == everybody["ids"]


def test_a_copy_of_an_image_is_known_with_its_patient(page, tiles):
    copy = (tiles / "carcinoma" / "patient_1" / "tile_02.png").read_bytes()
    assert page.post("ask", params={"apart": 1}, data=copy).json()["left_out"] == "patient_1"


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"", "empty"),
        (b"%PDF-1.7 no image at all", "not an image that can be read here. Convert it to PNG, JPEG or TIFF"),
        (encoded(drawing(2))[:900], "damaged"),
        (encoded(Image.new("1", (9000, 9000))), "too large, 9,000 × 9,000"),
        (b"x" * (server.BYTES + 1), "may have 30 MB"),
    ],
    ids=["empty", "of another kind", "broken off", "many pixels", "many bytes"],
)
def test_what_is_no_image_gets_a_message(page, sent, message):
    answer = page.post("ask", data=sent)
    assert answer.status_code in (413, 422) and message in answer.json()["message"]
    assert "Traceback" not in answer.text and "/tmp" not in answer.text


def test_what_is_not_in_the_archive_gets_a_message(page):
    assert "no image with the number 99" in page.get("ask/99").json()["message"]
    assert "no class lihgt" in page.get("ask/1?class=lihgt").json()["message"]


def test_twenty_clients_at_once_are_answered_as_one_alone(page):
    sent = {number: encoded(drawing(number, 40 + 10 * number)) for number in range(10)}

    def ask(client: int) -> dict:
        if client % 2:
            return page.get(f"ask/{client}", params={"apart": client % 4 // 2, "class": CLASSES[1:]}).json()
        return page.post("ask", params={"patient": "patient_2", "apart": 1}, data=sent[client // 2]).json()

    alone = [ask(client) for client in range(20)]
    with ThreadPoolExecutor(20) as clients:
        for _ in range(3):
            assert list(clients.map(ask, range(20))) == alone
    assert len({json.dumps(answer["distances"]) for answer in alone}) == 20


def said(page, answer: int, word: str, query: str = "mine.png", sha256: str = "0" * 64, **options):
    opinion = {"query": query, "query_sha256": sha256, "answer": answer, "rank": 1, "distance": 0.5, "said": word}
    return page.post("opinions", json=opinion, **options)


def test_of_yes_and_no_from_twenty_clients_nothing_is_lost(page, archive, built):
    file = opinions.beside(built)
    file.write_bytes(b"")
    with ThreadPoolExecutor(20) as clients:
        done = list(clients.map(lambda n: said(page, n % 24, "yes", f'a "{n}",\nb').status_code, range(100)))
    assert done == [200] * 100
    with file.open("ab") as stream:
        stream.write(b"2026-01-01,half a li")  # as a process leaves it that was killed
    said(page, 3, "no")
    with file.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert {line["query"] for line in lines[:100]} == {f'a "{n}",\nb' for n in range(100)}
    assert len(lines) == 102 and lines[-1]["said"] == "no" and lines[-1]["label"] == MARKUP
    rows, latest = archive.rows, opinions.latest(file, "0" * 64)
    assert latest[rows.at[3, "sha256"]] == "no" and latest[rows.at[4, "sha256"]] == "yes"
    answer = page.get("ask/0").json()
    file.unlink()
    assert answer["opinions"] == {}


def test_what_was_said_is_shown_when_the_same_is_asked_again(page, built):
    first = page.get("ask/5").json()
    said(page, first["ids"][2], "no", sha256=first["sha256"])
    assert page.get("ask/5").json()["opinions"] == {str(first["ids"][2]): "no"}
    opinions.beside(built).unlink()


def test_only_the_page_itself_may_send(page, built):
    for wrong in ({"said": "perhaps", "answer": 1}, {"said": "yes", "answer": 99}, {"said": "yes", "answer": "1"}, [1]):
        assert page.post("opinions", json=wrong).status_code == 422
    assert said(page, 1, "yes", headers={"Origin": "http://elsewhere.example"}).status_code == 403
    assert page.get("data.js", headers={"Host": "elsewhere.example"}).status_code == 400
    assert page.get("../content.py").status_code == 404
    assert not opinions.beside(built).exists()


def test_an_archive_that_is_saved_anew_is_opened_anew(built, tmp_path, monkeypatch):
    home = tmp_path / "mine"
    shutil.copytree(built, home)
    opened = server.Opened(home)
    before = opened.now()
    assert opened.now() is before
    changed = Archive.load(home)
    changed.remove([4])
    changed.save()
    archive, _, state = opened.now()
    assert 4 not in archive.rows.index and state != before[2]

    def saved_meanwhile() -> None:
        changed.remove([5])
        changed.save()
        raise InputError("half of it is of before")

    changed.remove([6])
    changed.save()
    with monkeypatch.context() as patch:
        patch.setattr(opened, "_load", saved_meanwhile)
        assert opened.now()[2] == state
    assert 5 not in opened.now()[0].rows.index


def test_an_address_that_is_taken_and_a_folder_without_an_archive_are_named(page, tmp_path):
    port = int(page.address.rpartition(":")[2])
    with pytest.raises(InputError, match=f"port {port} cannot be used .*PORT={port + 1}"):
        server.bound("127.0.0.1", port)
    with pytest.raises(InputError, match="is no archive"):
        server.app(tmp_path)


def test_the_exported_page_has_the_answers_of_the_served_one(page, archive, built, tmp_path):
    out = tmp_path / "page"
    for _ in range(2):  # the second takes the place of the first
        assert export(archive, out) == out / "index.html"
    kept = content_of((out / "data.js").read_text(encoding="utf-8"))
    for number, answers in kept["answers"].items():
        for apart, answer in zip((1, 0), answers, strict=True):
            served = page.get(f"ask/{number}", params={"apart": apart}).json()
            assert {name: served[name] for name in answer} == answer
    assert {file.stem for file in (out / "pictures").iterdir()} == set(kept["rows"])
    assert {file.name for file in content.PAGE.iterdir()} <= {file.name for file in out.iterdir()}
    (out / "mine.txt").touch()
    with pytest.raises(InputError, match=r"mine\.txt is no part"):
        export(archive, out)
    with pytest.raises(InputError, match="lies in the archive itself"):
        export(archive, built / "page")


def test_the_commands_find_the_archive_and_say_where_the_page_is(built, tmp_path, monkeypatch, capsys):
    shutil.copytree(built, tmp_path / "archive" / "mine")
    monkeypatch.chdir(tmp_path)
    served = []
    monkeypatch.setattr(server, "serve", lambda *given: served.append(given))
    for command in (["export"], ["app"], ["app", "--archive", str(built), "--host", "0.0.0.0", "--port", "9"]):
        monkeypatch.setattr("sys.argv", ["archive", *command])
        commands.main()
    page = tmp_path / "archive" / "mine.page" / "index.html"
    assert page.is_file() and str(page) in capsys.readouterr().out
    assert served == [(Path("archive/mine"), "127.0.0.1", 8000), (built, "0.0.0.0", 9)]


def test_codes_of_two_numbers_are_shown_as_they_lie_in_the_ball():
    space = PoincareBall(0.25)
    codes = space.exp0(torch.randn(30, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    plane = Plane.of(codes, space)
    at = torch.tensor(plane.place(codes), dtype=torch.float64)
    # The disk has c = 1: the same picture, in which lengths are half as long.
    torch.testing.assert_close(DISK.pairwise(at, at), space.pairwise(codes, codes) / 2, rtol=1e-2, atol=1e-3)
    assert "two numbers" in plane.note and plane.unit == 2


@pytest.mark.parametrize("space", [Euclidean(), Sphere(), PoincareBall(1.0)], ids=lambda space: space.name)
@pytest.mark.parametrize("dim", [1, 2, 40])
def test_every_archive_has_a_map_inside_the_disk(space, dim):
    x = torch.randn(25, dim, generator=torch.Generator().manual_seed(1)) * 3 + 5
    codes = space.project(space.exp0(x))
    at = np.array(Plane.of(codes, space).place(codes))
    assert at.shape == (25, 2) and (np.hypot(*at.T) < 1).all()
    assert Plane.of(codes, space).place(codes) == at.tolist()
    same = Plane.of(codes[:1].expand(5, -1), space)
    assert np.isfinite(same.place(codes[:1])).all()
