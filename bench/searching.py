"""Nearest neighbours in the ball: exact against FAISS's inner products and a loop of queries, indexes against exact."""

import faiss
import torch
from torch import Tensor

from bench.timing import Row, Work, milliseconds
from lib.geometry import PoincareBall
from lib.papers.beyond.storage import overlap
from lib.search import nearest
from lib.search.index import FaissHnsw, Index, Qdrant
from lib.search.inner import InnerProduct

BALL = PoincareBall(1.0)
K = 20


def codes(n: int, d: int, seed: int) -> Tensor:
    """``n`` embeddings as a trained mapper leaves them: eight classes, each a cloud about its own direction."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(8, d, generator=torch.Generator().manual_seed(0)) * 0.1
    return BALL.exp0(centres[torch.arange(n) % 8] + 0.15 * torch.randn(n, d, generator=generator))


def rows(queries: int = 1000, size: int = 100_000, d: int = 32, embedded: int = 20_000) -> list[Row]:
    """Top-20 of ``queries`` in ``size`` codes; Qdrant's embedded mode in the first ``embedded`` of them."""
    query, gallery = codes(queries, d, 1), codes(size, d, 2)
    form = InnerProduct.about(BALL, gallery)
    flat = faiss.IndexFlatIP(d + 2)
    flat.add(form.gallery(gallery).numpy())
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
    hnsw = FaissHnsw.build(gallery, BALL, "bench")
    few = gallery[:embedded]
    qdrant = Qdrant.build(few, BALL, "bench")
    return [
        timed(
            what,
            "search.nearest",
            exact,
            "faiss.IndexFlatIP on d + 2 numbers",
            lambda: flat.search(form.query(query).numpy(), K),
            "≥ 1/1.5",
            f"ours {equal}; FAISS alone {floor:.2%} of it",
        ),
        timed(what, "search.nearest", exact, "one query after another", loop, "", "", repeats=1),
        timed(
            what,
            "FAISS HNSW, re-ranked",
            lambda: hnsw.search(query, K),
            "search.nearest",
            exact,
            "",
            _recall(hnsw, query, order),
        ),
        timed(
            f"top {K} of {queries:,} queries in {embedded:,} codes of {d} numbers",
            "Qdrant embedded, re-ranked",
            lambda: qdrant.search(query, K),
            "search.nearest",
            lambda: nearest(query, few, K, BALL),
            "",
            _recall(qdrant, query, nearest(query, few, K, BALL)[1]),
            repeats=1,
        ),
    ]


def _order64(query: Tensor, gallery: Tensor) -> Tensor:
    """By the distances themselves, in float64, a few queries at a time; stable, so that ties are in gallery order."""
    wide = gallery.double()
    found = [BALL.pairwise(some.double(), wide).sort(dim=1, stable=True).indices[:, :K] for some in query.split(20)]
    return torch.cat(found)


def _agreement(found: Tensor, order: Tensor) -> float:
    return (found == order).double().mean().item()


def _recall(index: Index, query: Tensor, order: Tensor) -> str:
    return f"recall@{K} {overlap(index.search(query, K)[1], order):.4f} (aim ≥ 0.99)"
