"""MAP@k and Recall@K at several k against peers, on embeddings of the ball."""

import geoopt
import numpy as np
import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from torch import Tensor
from torchmetrics.functional.retrieval import retrieval_average_precision
from torchmetrics.retrieval import RetrievalMAP

from bench.searching import BALL, codes
from bench.timing import Row, milliseconds
from lib.geometry import Euclidean, Geometry, PoincareBall
from lib.metrics.retrieval import evaluate
from lib.search import nearest

KS = (1, 5, 10, 20)


def rows(queries: int = 2000, size: int = 20_000, d: int = 32) -> list[Row]:
    """MAP at 1, 5, 10 and 20 of ``queries`` in ``size``.

    Ours gives five metrics at each k. torchmetrics gets 1/(1 + key) as the score, as it drops scores ≤ 0, and divides
    by the hits.
    """
    query, gallery = codes(queries, d, 1), codes(size, d, 2)
    labels, gallery_labels = torch.arange(queries) % 8, torch.arange(size) % 8

    def ours() -> np.ndarray:
        values = evaluate(query, gallery, labels.numpy(), gallery_labels.numpy(), BALL, KS).values
        return values.mean().to_numpy().reshape(5, len(KS))  # ap_min, ap_hits, ap_k, precision, hit rate

    def scores(start: int) -> tuple[Tensor, Tensor]:
        block = slice(start, start + 500)
        return 1 / (1 + BALL.rank_key(query[block], gallery)), labels[block, None] == gallery_labels

    def metric_objects() -> list[float]:
        metrics = [RetrievalMAP(top_k=k) for k in KS]
        for start in range(0, queries, 500):
            score, relevant = scores(start)
            numbers = torch.arange(start, start + len(score))[:, None].expand_as(score)
            for metric in metrics:
                metric.update(score.flatten(), relevant.flatten(), numbers.flatten())
        return [metric.compute().item() for metric in metrics]

    def function_per_query() -> list[float]:
        found = []
        for start in range(0, queries, 500):
            for score, relevant in zip(*scores(start), strict=True):
                found.append([retrieval_average_precision(score, relevant, top_k=k).item() for k in KS])
        return np.mean(found, axis=0).tolist()

    by_hits = ours()[1]
    row = Row(f"MAP@1, 5, 10, 20 of {queries:,} queries in {size:,}", "ms", "metrics.evaluate", "", 1.0, 1.0)
    return [
        _row(row, "torchmetrics RetrievalMAP", ours, metric_objects, "≥ 20", _equal(by_hits, metric_objects())),
        _row(row, "torchmetrics functional", ours, function_per_query, "", _equal(by_hits, function_per_query())),
        calculator_row(queries, size, d, BALL),
        *(calculator_row(queries, size, wide, Euclidean()) for wide in (d, 12 * d)),
        recall_row(queries // 4),
    ]


def calculator_row(queries: int, size: int, d: int, space: Geometry) -> Row:
    """MAP of ``queries`` in ``size`` points of ``d`` numbers against pytorch-metric-learning.

    It divides by the number of relevant items, and knows one k at a time: it computes k = 20 only. In flat space it
    searches as it comes, by FAISS; in another space it gets our exact neighbours.
    """
    query, gallery = codes(queries, d, 1), codes(size, d, 2)
    labels, gallery_labels = torch.arange(queries) % 8, torch.arange(size) % 8
    name, k, flat = "mean_average_precision", KS[-1], isinstance(space, Euclidean)

    def ours() -> float:
        values = evaluate(query, gallery, labels.numpy(), gallery_labels.numpy(), space, KS).values
        return values["ap_k", k].mean() * k / (size / 8)

    def neighbours(some: Tensor, n: int, others: Tensor, _: bool) -> tuple[Tensor, Tensor]:
        return nearest(some, others, n, space)

    def calculator() -> float:
        peer = AccuracyCalculator(include=(name,), k=k, knn_func=None if flat else neighbours)
        return peer.get_accuracy(query, labels, gallery, gallery_labels)[name]

    what = f"MAP@1, 5, 10, 20 of {queries:,} queries in {size:,}, {space.name}, {d} numbers"
    peer = f"pytorch-metric-learning, k = {k}, {'FAISS' if flat else 'our search'}"
    row = Row(what, "ms", "metrics.evaluate", "", 1.0, 1.0)
    return _row(row, peer, ours, calculator, "≥ 1", _equal(ours(), calculator()))


def recall_row(n: int, d: int = 128, c: float = 0.1) -> Row:
    """Recall@1, 2, 4 and 8 of ``n`` images among themselves, all at the radius where Hyp-ViT's heads rest.

    The peer asks one query after the other, distances by Equation 2 of the paper in geoopt.
    """
    generator = torch.Generator().manual_seed(0)
    points = 0.621 / c**0.5 * torch.nn.functional.normalize(torch.randn(n, d, generator=generator), dim=-1)
    labels, ks, own = torch.arange(n) % max(2, n // 20), (1, 2, 4, 8), np.arange(n)
    home = geoopt.PoincareBall(c=c)

    def ours() -> np.ndarray:
        values = evaluate(points, points, labels.numpy(), labels.numpy(), PoincareBall(c), ks, own, own).values
        return values["hit_rate"].mean().to_numpy()

    def one_by_one() -> np.ndarray:
        hits = torch.zeros(n, ks[-1], dtype=torch.bool)
        for query in range(n):
            distance = home.dist(points[query], points)
            distance[query] = torch.inf
            hits[query] = labels[distance.topk(ks[-1], largest=False).indices] == labels[query]
        return torch.stack([hits[:, :k].any(dim=1).double().mean() for k in ks]).numpy()

    row = Row(f"Recall@1, 2, 4, 8 of {n:,} images among themselves", "ms", "metrics.evaluate", "", 1.0, 1.0)
    return _row(row, "geoopt, one query after another", ours, one_by_one, "", _equal(ours(), one_by_one()))


def _row(row: Row, peer: str, ours, other, aim: str, check: str) -> Row:
    return Row(row.what, row.unit, row.ours, peer, *milliseconds(ours, other, repeats=1), aim, check)


def _equal(ours: object, peer: object) -> str:
    return f"values within {np.abs(np.subtract(ours, peer)).max():.0e}"
