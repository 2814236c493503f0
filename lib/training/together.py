"""One loss over a batch that several processes share (torch.distributed); alone, both functions change nothing.

Every process embeds its part of the batch, and the loss looks at all pairs of the whole. Each process computes that
whole loss, but has a gradient for its own part alone, so the gradients of a weight are *added up* over the processes to
the gradient of the single-process loss. (Averaged, as DistributedDataParallel does it, they would be that divided by
the number of processes: a smaller step wherever the optimiser or the clipping sees the size of a gradient.)
"""

from collections.abc import Iterable

import torch
from torch import Tensor, distributed


def place() -> tuple[int, int]:
    """The number of this process and how many there are; 0 of 1 where none was started."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def gathered(z: Tensor) -> Tensor:
    """Embeddings ``z: (b, d)`` of all processes in their order, (b · processes, d), with the gradient of the own part.

    Every process hands in the same number of rows.
    """
    rank, size = place()
    if size == 1:
        return z
    parts = [torch.empty_like(z) for _ in range(size)]
    distributed.all_gather(parts, z.detach().contiguous())
    return torch.cat([*parts[:rank], z, *parts[rank + 1 :]])


def add_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Replace the gradient of each parameter by its sum over all processes; to be called before it is clipped."""
    if place()[1] > 1:
        for parameter in parameters:
            if parameter.grad is not None:
                distributed.all_reduce(parameter.grad)
