"""What the device does at most, and how near a loss, a search and a metric come to the one kernel that they need."""

import torch
from torch import Tensor

from bench.searching import codes
from bench.timing import Row, milliseconds
from lib import devices
from lib.geometry import PoincareBall
from lib.losses.hyp_vit import PairwiseCrossEntropy
from lib.metrics.retrieval import evaluate
from lib.search import nearest

BALL = PoincareBall(1.0)
KS = (1, 5, 10, 20)
SIZES = {"cuda": (2**30, 8192, 100, 1_000_000), "cpu": (2**27, 1024, 100, 100_000)}


def rows(sizes: tuple[int, int, int, int] | None = None) -> list[Row]:
    """Copies, products, Hyp-ViT's loss on 9 images of each category, search, and MAP@k in a fiftieth of its codes.

    sizes: bytes, rows of a matrix, categories, codes; by default :data:`SIZES` of the device.
    """
    copied, side, categories, size = sizes or SIZES[devices.pick().type]
    return [_copy(copied), *_products(side), _loss(categories), *_search(size), _metric(size // 50)]


def _rate(what: str, unit: str, amount: float, work) -> Row:
    """A ceiling: ``amount`` in the time of ``work``, a thousand millionth of it; it has no peer."""
    ms, _ = milliseconds(work, lambda: None)
    return Row(what, unit, "torch", "", amount / ms / 1e6, float("nan"))


def _copy(size: int) -> Row:
    source = torch.zeros(size, dtype=torch.uint8, device=devices.pick())
    target = torch.empty_like(source)
    return _rate(f"copy, {size / 2**20:,.0f} MiB read and written", "GB/s", 2 * size, lambda: target.copy_(source))


def _products(side: int) -> list[Row]:
    found = []
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        x = torch.randn(side, side, device=devices.pick()).to(dtype)
        what = f"matrix product, {side:,} × {side:,}, {name}"
        found.append(_rate(what, "GFLOP/s", 2 * side**3, lambda x=x: x @ x))
    return found


def _loss(categories: int, samples: int = 9, d: int = 128, c: float = 0.1) -> Row:
    x = codes(categories * samples, d, 0).to(devices.pick()).requires_grad_()
    labels = torch.arange(categories, device=x.device).repeat_interleave(samples)
    loss = PairwiseCrossEntropy(PoincareBall(c), 0.2, samples)

    def back(value: Tensor) -> None:
        torch.autograd.grad(value, x)

    times = milliseconds(lambda: back(loss(x, labels)), lambda: back(torch.cdist(x, x).sum()))
    return Row(f"Hyp-ViT's loss and its gradient, {len(x)} × {d}", "ms", "PairwiseCrossEntropy", "torch.cdist", *times)


def _floor(query: Tensor, gallery: Tensor) -> Tensor:
    """The least that a search has to do: a matrix product and the largest of each row."""
    return (query @ gallery.T).topk(KS[-1]).indices


def _search(size: int, d: int = 32) -> list[Row]:
    gallery, queries = codes(size, d, 2).to(devices.pick()), codes(1000, d, 1).to(devices.pick())
    found = []
    for query in (queries, queries[:1]):
        times = milliseconds(lambda q=query: nearest(q, gallery, KS[-1], BALL), lambda q=query: _floor(q, gallery))
        what = f"top {KS[-1]} of {len(query):,} queries in {size:,} codes of {d} numbers, on the device"
        found.append(Row(what, "ms", "search.nearest", "matrix product and top-k", *times))
    return found


def _metric(size: int, d: int = 32) -> Row:
    query, gallery = codes(size // 10, d, 1).to(devices.pick()), codes(size, d, 2).to(devices.pick())
    labels, others = torch.arange(len(query)).numpy() % 8, torch.arange(size).numpy() % 8
    times = milliseconds(lambda: evaluate(query, gallery, labels, others, BALL, KS), lambda: _floor(query, gallery))
    what = f"MAP@1, 5, 10, 20 of {len(query):,} queries in {size:,}, on the device"
    return Row(what, "ms", "metrics.evaluate", "matrix product and top-k", *times)
