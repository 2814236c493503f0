"""MAP@k at several k against torchmetrics and pytorch-metric-learning, on embeddings of the ball."""

import numpy as np
import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from torch import Tensor
from torchmetrics.functional.retrieval import retrieval_average_precision
from torchmetrics.retrieval import RetrievalMAP

from lib.bench.searching import BALL, codes
from lib.bench.timing import Row, milliseconds
from lib.metrics.retrieval import evaluate
from lib.search import nearest

KS = (1, 5, 10, 20)


def rows(queries: int = 2000, size: int = 20_000, d: int = 32) -> list[Row]:
    """MAP at 1, 5, 10 and 20 of ``queries`` in ``size``.

    Ours gives five metrics at each k. torchmetrics gets 1/(1 + key) as the score, as it drops scores ≤ 0, and divides
    by the hits; pytorch-metric-learning gets our exact neighbours, divides by the number of relevant items, and knows
    one k at a time: it computes k = 20 only.
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

    def neighbours(some: Tensor, k: int, others: Tensor, _: bool) -> tuple[Tensor, Tensor]:
        return nearest(some, others, k, BALL)

    def calculator() -> float:
        name = "mean_average_precision"
        peer = AccuracyCalculator(include=(name,), k=KS[-1], knn_func=neighbours)
        return peer.get_accuracy(query, labels, gallery, gallery_labels)[name]

    what = f"MAP@1, 5, 10, 20 of {queries:,} queries in {size:,}"
    by_hits, at_20 = ours()[1], ours()[2, -1] * KS[-1] / (size / 8)
    row = Row(what, "ms", "metrics.evaluate", "", 1.0, 1.0)
    return [
        _row(row, "torchmetrics RetrievalMAP", ours, metric_objects, "≥ 20", _equal(by_hits, metric_objects())),
        _row(row, "torchmetrics functional", ours, function_per_query, "", _equal(by_hits, function_per_query())),
        _row(row, "pytorch-metric-learning, k = 20", ours, calculator, "", _equal(at_20, calculator())),
    ]


def _row(row: Row, peer: str, ours, other, aim: str, check: str) -> Row:
    return Row(row.what, row.unit, row.ours, peer, *milliseconds(ours, other, repeats=1), aim, check)


def _equal(ours: object, peer: object) -> str:
    return f"values within {np.abs(np.subtract(ours, peer)).max():.0e}"
