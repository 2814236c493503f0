"""Nearest neighbours in the ball: exact against FAISS's inner products and a loop of queries, indexes against FAISS."""

from functools import partial

import faiss
import torch
from torch import Tensor

from bench.timing import Row, Work, milliseconds
from lib.geometry import PoincareBall
from lib.geometry.inner import InnerProduct
from lib.papers.beyond.storage import overlap
from lib.search import nearest
from lib.search.index import Index
from lib.search.local import Exact
from lib.search.quick import Quick

BALL = PoincareBall(1.0)
K = 20
FLAT = "faiss.IndexFlatIP on d + 2 numbers"


def codes(n: int, d: int, seed: int) -> Tensor:
    """``n`` embeddings as a trained mapper leaves them: eight classes, each a cloud about its own direction."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(8, d, generator=torch.Generator().manual_seed(0)) * 0.1
    return BALL.exp0(centres[torch.arange(n) % 8] + 0.15 * torch.randn(n, d, generator=generator))


def rows(queries: int = 1000, size: int = 100_000, d: int = 32, large: int = 1_000_000) -> list[Row]:
    """Top-20 of ``queries`` in ``size`` codes, and of one query among ``large``."""
    query, gallery = codes(queries, d, 1), codes(size, d, 2)
    form, flat = _flat(gallery)
    what = f"top {K} of {queries:,} queries in {size:,} codes of {d} numbers"

    def timed(what: str, ours: str, work: Work, peer: str, other: Work, aim: str, check: str, repeats: int = 5) -> Row:
        return Row(what, "ms", ours, peer, *milliseconds(work, other, repeats), aim, check)

    def exact() -> Tensor:
        return nearest(query, gallery, K, BALL)[1]

    def loop() -> Tensor:
        return torch.stack([BALL.between(one, gallery).topk(K, largest=False).indices for one in query])

    order = _order64(query, gallery)
    equal = "the float64 order" if torch.equal(exact(), order) else f"{_agreement(exact(), order):.4%} of the order"
    floor = _agreement(torch.from_numpy(flat.search(form.query(query).numpy(), K)[1]), order)
    quick = Quick.build(gallery, BALL, "bench")
    return [
        timed(
            what,
            "search.nearest",
            exact,
            FLAT,
            lambda: flat.search(form.query(query).numpy(), K),
            "≥ 1/1.5",
            f"ours {equal}; FAISS alone {floor:.2%} of it",
        ),
        timed(what, "search.nearest", exact, "one query after another", loop, "", "", repeats=1),
        timed(
            what,
            "Quick",
            lambda: quick.search(query, K),
            FLAT,
            lambda: flat.search(form.query(query).numpy(), K),
            "",
            _recall(quick, query, order),
        ),
        *_alone(codes(large, d, 2), query[:1]),
    ]


def _alone(gallery: Tensor, query: Tensor) -> list[Row]:
    """One query in a large gallery that is prepared."""
    form, flat = _flat(gallery)
    order = nearest(query, gallery, K, BALL)[1]
    what = f"top {K} of one query in {len(gallery):,} codes of {gallery.shape[1]} numbers"
    made = []
    for kind, aim in ((Exact, "≥ 3"), (Quick, "")):
        index = kind.build(gallery, BALL, "bench")
        ours = partial(index.search, query, K)
        times = milliseconds(ours, lambda: flat.search(form.query(query).numpy(), K), 30)
        made.append(Row(what, "ms", kind.__name__, FLAT, *times, aim, _recall(index, query, order)))
    return made


def _flat(gallery: Tensor) -> tuple[InnerProduct, faiss.IndexFlatIP]:
    form = InnerProduct.about(BALL, gallery)
    flat = faiss.IndexFlatIP(gallery.shape[1] + 2)
    flat.add(form.gallery(gallery).numpy())
    return form, flat


def _order64(query: Tensor, gallery: Tensor) -> Tensor:
    """By the distances themselves, in float64, a few queries at a time; stable, so that ties are in gallery order."""
    wide = gallery.double()
    found = [BALL.pairwise(some.double(), wide).sort(dim=1, stable=True).indices[:, :K] for some in query.split(20)]
    return torch.cat(found)


def _agreement(found: Tensor, order: Tensor) -> float:
    return (found == order).double().mean().item()


def _recall(index: Index, query: Tensor, order: Tensor) -> str:
    return f"recall@{K} {overlap(index.search(query, K)[1], order):.4f} (aim ≥ 0.99)"
