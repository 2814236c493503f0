"""A checkpoint is whole, gone at the end, and named where it cannot be used."""

import pytest

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


def test_what_cannot_be_read_or_taken_over_is_named(tmp_path):
    store = tmp_path / "one.checkpoint"
    checkpoint.write(fabric("cpu"), store, {"history": [1.0]})
    with (
        pytest.raises(InputError, match=r"one\.checkpoint: the checkpoint is damaged"),
        checkpoint.read(store) as found,
    ):
        found["weights"]
    store.write_bytes(b"junk")
    with pytest.raises(InputError, match=r"one\.checkpoint: the checkpoint is damaged"), checkpoint.read(store):
        pass


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_none_of_its_damages(tmp_path, stop):
    with pytest.raises(stop), checkpoint.read(tmp_path / "none"):
        raise stop
