"""A checkpoint is whole, gone at the end, and named where it cannot be used."""

import pytest
import torch

from lib.errors import InputError
from lib.training import checkpoint
from lib.training.together import fabric


def test_what_is_written_is_read_until_it_is_removed(tmp_path):
    place, store = fabric("cpu"), tmp_path / "one.checkpoint"
    for state in ({"history": [1.0]}, {"history": [1.0, 0.5]}):
        checkpoint.write(place, store, state)
        with checkpoint.read(store) as found:
            assert found == state
    checkpoint.remove(place, store)
    with checkpoint.read(store) as found:
        assert found is None and not list(tmp_path.iterdir())


def test_without_a_place_nothing_is_kept():
    place = fabric("cpu")
    checkpoint.write(place, None, {})
    checkpoint.remove(place, None)
    with checkpoint.read(None) as found:
        assert found is None


def test_what_lacks_something_is_of_another_version_and_not_damaged(tmp_path):
    store = tmp_path / "one.checkpoint"
    checkpoint.write(fabric("cpu"), store, {"history": [1.0]})
    message = r"one\.checkpoint: the checkpoint is of another version of this training\. Remove it"
    with pytest.raises(InputError, match=message), checkpoint.read(store) as found:
        found["weights"]


@pytest.mark.parametrize("share", [0, 0.001, 0.2, 0.5, 0.8, 0.999])
def test_one_flipped_bit_is_damage_wherever_it_is(tmp_path, share):
    """torch itself reads most of these files without a word."""
    store = tmp_path / "one.checkpoint"
    checkpoint.write(fabric("cpu"), store, {"weights": torch.ones(10_000), "history": [1.0]})
    data = bytearray(store.read_bytes())
    data[int(share * len(data))] ^= 4
    store.write_bytes(data)
    message = r"one\.checkpoint: the checkpoint is damaged\. Remove it to start anew"
    with pytest.raises(InputError, match=message), checkpoint.read(store):
        pass


@pytest.mark.parametrize("junk", [b"junk", b""])
def test_what_cannot_be_read_is_named(tmp_path, junk):
    store = tmp_path / "one.checkpoint"
    store.write_bytes(junk)
    with pytest.raises(InputError, match=r"one\.checkpoint: the checkpoint is damaged"), checkpoint.read(store):
        pass


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, MemoryError, torch.OutOfMemoryError])
def test_what_says_nothing_against_the_file_passes(tmp_path, monkeypatch, stop):
    """Memory that is too small is no damage: nobody is to remove a good checkpoint."""
    store = tmp_path / "one.checkpoint"
    checkpoint.write(fabric("cpu"), store, {})
    with pytest.raises(stop), checkpoint.read(store):
        raise stop
    monkeypatch.setattr(torch, "load", raising(stop))
    with pytest.raises(stop), checkpoint.read(store):
        pass


def raising(error):
    def load(*_, **__):
        raise error

    return load
