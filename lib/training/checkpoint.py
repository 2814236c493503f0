"""Checkpoints of a training that may break off; of several processes all read them and the first alone writes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lib.errors import InputError
from lib.training import kept

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def write(place: "Fabric", store: Path | None, state: Mapping[str, Any]) -> None:
    """Keep ``state`` in ``store``, with its checksum, whole or as it was before; None keeps nothing."""
    if store is not None and place.is_global_zero:
        kept.write(store, state)


@contextmanager
def read(store: Path | None) -> Iterator[dict[str, Any] | None]:
    """What ``store`` holds, on the CPU, to be taken over within the block; None if there is none.

    Raises InputError, naming the file, if it is not what was written, or the block misses something in it. What else
    goes wrong, such as memory that is too small, says nothing against the file, and passes.
    """
    try:
        yield kept.read(store) if store and store.is_file() else None
    except kept.Damaged as error:
        raise InputError(f"{store}: the checkpoint is damaged. Remove it to start anew.") from error
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{store}: the checkpoint is of another version of this training. Remove it to start anew."
        ) from error


def remove(place: "Fabric", store: Path | None) -> None:
    """The training is at its end, and nothing has to go on from ``store`` once all processes have read it."""
    place.barrier()
    if store is not None and place.is_global_zero:
        store.unlink(missing_ok=True)
