"""An archive answers as leave-one-patient-out search says, refuses in words, and forgets what is removed."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image

from lib.archive import embeddings, keeping, shown
from lib.archive.answers import LEARNT
from lib.archive.app import content, opinions
from lib.archive.archive import Archive
from lib.encoders.texture import Texture
from lib.errors import BrokenImage, InputError
from lib.metrics import votes as majority
from lib.search import nearest
from tests.archive.conftest import CLASSES, MARKUP, tile


def same(answer, other) -> bool:
    return answer.neighbours.equals(other.neighbours) and (answer.votes, answer.unlike) == (other.votes, other.unlike)


def test_an_image_is_asked_by_file_name_number_or_pixels_and_never_answers_itself(
    archive, tiles, table, tmp_path, monkeypatch
):
    name = table.rows["image_id"][0]
    answers = [archive.ask(query, k=6) for query in (tiles / name, name, archive.own(name))]
    assert all(same(answers[0], answer) for answer in answers[1:])
    points = torch.from_numpy(Texture().encode([Image.open(table.path(row)) for row in range(len(table))]))
    standard = archive._parts.fitted.embed(points.numpy())
    expected = nearest(standard[:1], standard[1:], 6, "sphere")
    np.testing.assert_allclose(answers[0].neighbours["distance"], expected[0][0], rtol=1e-5)
    assert answers[0].neighbours["image_id"].tolist() == table.rows["image_id"][1 + expected[1][0].numpy()].tolist()
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True)
    tile("normal", 999).save(tmp_path / name)  # another image of this name
    assert archive.own(name) is None and same(archive.ask(name, k=6), archive.ask(tile("normal", 999), k=6))
    found = archive.ask(Image.open(tiles / name), k=1).neighbours
    assert found["image_id"].tolist() == [name] and found["distance"].iloc[0] == pytest.approx(0, abs=1e-3)


def test_patients_are_left_out_classes_chosen_and_votes_counted(archive, tiles):
    name = "carcinoma/patient_1/tile_02.png"
    answer = archive.ask(name, k=30, leave_out="patient_1", only=["normal", MARKUP])
    found = answer.neighbours
    assert set(found["label"]) == {"normal", MARKUP} and "patient_1" not in set(found["patient"]) and len(found) == 12
    assert (found["distance"].diff().dropna() >= 0).all() and found.index.tolist() == list(range(1, 13))
    label, share = answer.votes[3]
    assert share == found["label"][:3].eq(label).mean() >= 2 / 3 and answer.votes[1] == (found["label"].iloc[0], 1)
    assert len(archive.ask(name, k=1).neighbours) == 1 and archive.ask(name, k=1).votes[5][1] in (0.4, 0.6, 0.8, 1.0)
    with pytest.raises(InputError, match="no patient patient_11: did you mean patient_1"):
        archive.ask(name, leave_out="patient_11")
    with pytest.raises(InputError, match="no class carcinom: did you mean carcinoma"):
        archive.ask(name, only="carcinom")


def test_votes_are_measured_without_the_own_patient(archive, table):
    points = archive.index.vectors(archive.rows.index.tolist())
    own = table.groups
    first = nearest(points, points, 5, "sphere", own, own)[1].numpy()
    right = table.labels[first] == table.labels[:, None]
    assert archive.accuracy[1] == right[:, 0].mean() and archive.accuracy[3] == (right[:, :3].sum(1) > 1).mean()
    assert archive.about["measured"]["asked"] == 24 and archive.about["classes"] == dict.fromkeys(sorted(CLASSES), 8)


def test_what_learns_is_measured_on_patients_that_it_has_not_seen(table, monkeypatch, quick):
    """Features without a meaning: a head finds the labels of what it has learnt from, and no others."""
    voting = Mock(side_effect=majority.votes)
    monkeypatch.setattr(majority, "votes", voting)
    monkeypatch.setattr(Texture, "encode", lambda self, images: _noise(len(images), self.dim))
    archive = Archive.build(table, "texture", "linear")
    known = [archive.ask(number, k=1).neighbours["label"].iloc[0] for number in archive.rows.index]
    assert np.mean(known == archive.rows["label"]) > 0.8 > 0.65 > archive.accuracy[1]
    assert archive.how.endswith("(4 times)")
    patients = [(set(call.kwargs["query_ids"]), set(call.kwargs["gallery_ids"])) for call in voting.call_args_list]
    assert len(patients) == 4 and all(asking | learnt == set(table.groups) for asking, learnt in patients)
    assert not any(asking & learnt for asking, learnt in patients)
    of_own, of_new = (content.reply(archive, query, None, None) for query in (0, Image.new("RGB", (9, 9))))
    assert of_own["learnt"] and not of_new["learnt"]
    assert content.APART in content.overview(archive, Mock(note="", place=lambda codes: [[0, 0]] * 24))["plane"]["note"]
    assert shown.text(archive, archive.ask(0)).endswith(LEARNT) and not archive.ask(np.zeros(156)).learnt


def test_what_folds_do_not_allow_is_not_measured_and_images_whose_class_nobody_else_has_do_not_ask(table, quick):
    alone = replace(table, rows=table.rows.drop(index=range(1, 8)))
    assert Archive.build(alone, "texture").how.endswith("; without 1 whose class no other patient has")
    few = Archive.build(replace(table, rows=table.rows.drop(index=[1, *range(3, 8)])), "texture", "hyp_vit")
    assert few.how.startswith("not measured: without some patients, Hyp-ViT's head cannot be fitted here: it needs two")
    assert not few.accuracy and "right was not measured" in shown.text(few, few.ask(0))


def _noise(n: int, dim: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, dim)).astype(np.float32)


@pytest.mark.parametrize("name", ["plain", "linear", "acir"])
def test_an_image_unlike_all_is_called_so_under_every_head_and_answered_all_the_same(table, tmp_path, quick, name):
    Archive.build(table, "texture", name).save(tmp_path / "a")
    archive = Archive.load(tmp_path / "a")
    odd = Image.fromarray(np.zeros((40, 40, 3), dtype=np.uint8) + np.array([250, 0, 120], dtype=np.uint8))
    answer = archive.ask(odd, only="normal")
    assert "its nearest image is at an angle of" in answer.unlike and len(answer.neighbours) == 8
    assert archive.ask(odd).accuracy == {} and "does not hold for this one" in shown.text(archive, archive.ask(odd))
    assert archive.ask(tile("normal", 999)).unlike is None
    odd.save(tmp_path / "odd.png")
    (number,) = archive.add([tmp_path / "odd.png"], ["normal"], ["patient_9"])
    assert archive.ask(odd).unlike is None and archive.ask(odd, leave_out="patient_9").unlike == answer.unlike
    assert archive.ask(number).unlike == answer.unlike
    archive.remove([number])
    assert archive.ask(odd).unlike == answer.unlike


def test_an_archive_is_the_same_to_the_bit_every_time(table, built, tmp_path):
    Archive.build(table, "texture").save(tmp_path / "b")
    assert keeping.state(tmp_path / "b") == keeping.state(built)


def test_queries_of_other_kinds_are_read_or_named(archive, tiles, tmp_path, monkeypatch):
    plain = tile("normal", 5)
    turned = plain.rotate(90, expand=True)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 270 degrees
    turned.save(tmp_path / "turned.png", exif=exif)
    grey = (np.asarray(plain.convert("L")).astype(np.uint16) << 8) + 7
    Image.fromarray(grey).save(tmp_path / "grey.png")
    plain.convert("L").save(tmp_path / "same.png")
    Image.new("RGB", (1, 1), "red").save(tmp_path / "tiny.png")
    assert same(archive.ask(tmp_path / "turned.png"), archive.ask(plain))
    assert same(archive.ask(tmp_path / "grey.png"), archive.ask(tmp_path / "same.png"))
    assert len(archive.ask(tmp_path / "tiny.png").neighbours) == 20
    (tmp_path / "cut.png").write_bytes((tmp_path / "grey.png").read_bytes()[:-200])
    with pytest.raises(BrokenImage, match=r"cut\.png: the image is damaged"):
        archive.ask(tmp_path / "cut.png")
    with pytest.raises(
        InputError, match=r"tile_99[.]png, and this archive has no image of that name: did you mean normal"
    ):
        archive.ask("normal/patient_1/tile_99.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(BrokenImage, match=r"same\.png: too large, over 200 pixels"):
        archive.ask(tmp_path / "same.png")


def test_what_is_added_is_found_and_errors_change_nothing(archive, tiles, tmp_path):
    tile("normal", 999).save(tmp_path / "new.png")
    with pytest.warns(UserWarning, match="norml is a new class: did you mean normal"):
        (number,) = archive.add([tmp_path / "new.png"], ["norml"], ["patient_9"])
    assert number == 24 and archive.ask(number, k=1).neighbours["label"].tolist() == ["normal"]
    assert archive.ask(tile("normal", 999), k=1).neighbours["id"].tolist() == [24] and len(archive) == 25
    assert archive.thumbnail(number)[:2] == b"\xff\xd8" and archive.about["patients"] == 5
    before = archive.rows
    assert archive.how == "own patient left out, before images were added or removed"
    (tmp_path / "broken.png").write_bytes(b"")
    for files, problem in (
        ([tmp_path / "new.png"], "in the archive already"),
        ([tmp_path / "broken.png"], "the file is empty"),
        ([tiles / "normal/patient_1/tile_12.png"] * 2, "in the archive already"),
    ):
        with pytest.raises(InputError, match=problem):
            archive.add(files, ["normal"] * len(files), ["p"] * len(files))
        assert archive.rows is before and len(archive.index) == 25
    tile("normal", 997).save(tmp_path / "other.png")
    tile("normal", 996).save(tmp_path / "new.png")
    with pytest.raises(InputError, match=r"/new\.png: another image of this name"):
        archive.add([tmp_path / "other.png", tmp_path / "new.png"], ["normal"] * 2, ["p"] * 2)
    archive.remove([number])
    tile("normal", 998).save(tmp_path / "newer.png")
    assert archive.add([tmp_path / "newer.png"], ["normal"], ["p"]).tolist() == [25]


@pytest.mark.parametrize("name", ["plain", "linear"])
def test_what_is_removed_is_in_no_file(table, tmp_path, quick, name):
    cached = tmp_path / "features.safetensors"
    archive = Archive.build(table, "texture", name, features=cached)
    archive.save(tmp_path / "a")
    number = 7
    vector = archive.index.vectors([number]).numpy().astype(np.float32).tobytes()
    feature = Texture().encode([Image.open(table.path(7))]).tobytes()
    direction = archive._parts.features.directions[number].numpy().tobytes()
    yes, of = opinions.beside(tmp_path / "a"), archive.rows.loc
    for query, found in ((7, 1), (2, 7), (2, 1)):
        names = {"query": of[query, "image_id"], "answer": of[found, "image_id"]}
        hashes = {"query_sha256": of[query, "sha256"], "answer_sha256": of[found, "sha256"]}
        opinions.keep(yes, said="yes", **names, **hashes)
    named = [of[number, name].encode() for name in ("image_id", "sha256")]
    traces = [vector, feature, direction, archive.thumbnail(number), *named]

    def holding(trace: bytes) -> list[str]:
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        return [path.name for path in files if trace in path.read_bytes()]

    assert all(map(holding, traces))
    archive.remove([number])
    archive.save()
    assert [holding(trace) for trace in traces] == [[]] * len(traces)
    assert opinions.latest(yes, archive.rows["sha256"][2]) == {archive.rows["sha256"][1]: "yes"}
    again = Archive.load(tmp_path / "a")
    assert len(again) == 23 and number not in again.ask(tile("normal", 999), k=24).neighbours["id"].tolist()
    with pytest.raises(InputError, match="no image with the id 7"):
        again.remove([number])


def test_folders_that_are_no_archive_of_this_version_are_refused(archive, built, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"is no archive: it has no about[.]json"):
        Archive.load(tmp_path)
    monkeypatch.setattr(keeping, "VERSION", 0)
    archive.save(tmp_path / "older")
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"archive of version 0, not 2\. Build it again"):
        Archive.load(tmp_path / "older")
    archive.save(tmp_path / "damaged")
    (tmp_path / "damaged" / keeping.ROWS).write_text("id\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"rows\.csv is damaged"):
        Archive.load(tmp_path / "damaged")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years")
    with pytest.raises(InputError, match="is not replaced"):
        archive.save(tmp_path / "mine")
    assert (tmp_path / "mine/thesis.txt").read_text() == "years"


def test_another_encoder_and_another_writer_are_noticed(archive, tmp_path, monkeypatch):
    archive.save(tmp_path / "a")
    first, second = Archive.load(tmp_path / "a"), Archive.load(tmp_path / "a")
    first.remove([0])
    first.save()
    with pytest.raises(InputError, match="changed by somebody else"):
        second.save()
    known = Texture().provenance
    monkeypatch.setattr(Texture, "provenance", known | {"source_sha256": "other", "scikit-image": "99"})
    with pytest.raises(
        InputError, match=r"encoder texture, and the encoder here is not the same [(]source_sha256: \w+… there, other"
    ):
        second.ask(tile("normal", 1))
    monkeypatch.setattr(Texture, "provenance", known | {"scikit-image": "99"})
    assert len(second.ask(tile("normal", 1)).neighbours) == 20


def test_an_interrupted_build_goes_on_where_it_stopped(tmp_path, tiles, table, monkeypatch):
    class Failing(Texture):
        batch_size = 2
        seen = 0

        def encode(self, images):
            if Failing.seen >= 16:
                raise KeyboardInterrupt
            Failing.seen += len(images)
            return super().encode(images)

    with pytest.raises(KeyboardInterrupt):
        Archive.build(table, Failing(), features=tmp_path / "cached.safetensors")
    Failing.seen = 8
    archive = Archive.build(table, Failing(), features=tmp_path / "cached.safetensors")
    assert Failing.seen == 16 and len(archive) == 24


def test_embeddings_of_the_laboratory_are_asked_by_name_bytes_and_vector(table, tiles, tmp_path, monkeypatch):
    x, names = _noise(24, 6), table.rows["image_id"].tolist()
    np.savez(tmp_path / "uni.npz", ids=[*names[::-1], "elsewhere.png"], vectors=np.vstack([x[::-1], x[:1]]))
    archive = Archive.build(table, str(tmp_path / "uni.npz"))
    archive.save(tmp_path / "a")
    archive = Archive.load(tmp_path / "a")
    np.testing.assert_allclose(archive.index.vectors([3]).numpy()[0], x[3])
    np.save(tmp_path / "query.npy", x[:1])
    assert same(archive.ask(names[0]), archive.ask(tiles / names[0]))
    assert archive.ask(tmp_path / "query.npy", k=1).neighbours["image_id"].tolist() == names[:1]
    tile("normal", 999).save(tmp_path / "new.png")
    with pytest.raises(InputError, match=r"built from embeddings \(uni.npz\), so a new image cannot be embedded"):
        archive.ask(tmp_path / "new.png")
    assert archive.add([tmp_path / "new.png"], ["normal"], ["p"], vectors=x[:1] + 1).tolist() == [24]
    np.savez(tmp_path / "few.npz", ids=names[1:], vectors=x[1:])
    with pytest.raises(InputError, match="no vector for 1 of 24 images, such as"):
        embeddings.read(tmp_path / "few.npz", table)
    np.savez(tmp_path / "odd.npz", names=names, vectors=x)
    with pytest.raises(InputError, match="holds names, vectors, but nothing called ids or id"):
        embeddings.read(tmp_path / "odd.npz", table)


def test_a_parquet_file_may_have_one_column_of_vectors_or_one_for_each_number(table, tmp_path, monkeypatch):
    x, names = _noise(24, 3), table.rows["image_id"]
    (tmp_path / "uni.parquet").write_bytes(b"PAR1")
    columns = {f"f{i}": x[:, i] for i in range(3)}
    for held in ({"id": names, "embedding": list(x)}, {"path": names, **columns}):
        monkeypatch.setattr(embeddings.pd, "read_parquet", lambda file, held=held: embeddings.pd.DataFrame(held))
        np.testing.assert_array_equal(embeddings.read(tmp_path / "uni.parquet", table).values, x)
    monkeypatch.setattr(embeddings.pd, "read_parquet", Mock(side_effect=ImportError))
    with pytest.raises(InputError, match="needs pyarrow"):
        embeddings.read(tmp_path / "uni.parquet", table)


def test_names_are_checked_before_work_begins(table):
    with pytest.raises(InputError, match="no method 'hyperdino': did you mean hyper_dino"):
        Archive.build(table, "texture", "hyperdino")
    with pytest.raises(InputError, match="no index 'quik': did you mean quick"):
        Archive.build(table, "texture", index="quik")
