"""Checkpoints of a training that may break off; of several processes all read them and the first alone writes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lib.errors import InputError
from lib.files import whole

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def write(place: "Fabric", store: Path | None, state: Mapping[str, Any]) -> None:
    """Keep ``state`` in ``store``, whole or as it was before; None keeps nothing."""
    if store is not None and place.is_global_zero:
        with whole(store) as draft:
            torch.save(state, draft)


@contextmanager
def read(store: Path | None) -> Iterator[dict[str, Any] | None]:
    """What ``store`` holds, on the CPU, to be taken over within the block; None if there is none.

    Raises InputError, naming the file, if it cannot be read or taken over.
    """
    try:
        yield torch.load(store, map_location="cpu", weights_only=True) if store and store.is_file() else None
    except Exception as error:  # junk can fail with anything
        raise InputError(f"{store}: the checkpoint is damaged. Remove it to start anew.") from error


def remove(place: "Fabric", store: Path | None) -> None:
    """The training is at its end, and nothing has to go on from ``store`` once all processes have read it."""
    place.barrier()
    if store is not None and place.is_global_zero:
        store.unlink(missing_ok=True)
