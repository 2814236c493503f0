"""Which share of the nearest is found, by hyperbolic radius: among d + 2 numbers by graph and by codes, and by ours."""

import faiss
import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.geometry import PoincareBall
from lib.geometry.inner import InnerProduct, beside_sphere, on_sphere
from lib.papers.beyond.storage import overlap
from lib.progress import track
from lib.search import nearest
from lib.search.quick import Quick
from lib.search.synthetic import clusters

BALL = PoincareBall(1.0)
RADII = ((0.0, 0.4), (0.0, 2.0), (0.0, 4.0), (0.0, 8.0), (0.0, 12.0), (8.0, 12.0))
DIMS = (5, 32, 128)
K, NEIGHBOURS, BUILD_EFFORT, EFFORT = 10, 32, 200, 256
SIZE = 40_000

CAPTION = (
    f"Share of the {K} nearest that are found: {SIZE:,} points of 200 clusters, hyperbolic radii drawn evenly, 200 "
    "queries. norm_spread: largest norm of the d + 2 numbers of a point, divided by the smallest. d + 2, graph: a "
    f"graph of {NEIGHBOURS} neighbours among them, brought to one length, with {EFFORT} points in view. d + 2, codes: "
    "4 bits of each of them, by FAISS's fast scan. ours: Quick, 4 bits of each number of the points, in rings of like "
    "factors. candidates: how many each of them compares by true distance. own: the recall that Quick measures on its "
    "own gallery when it is built, where it is least by radius."
)


def measure(size: int = SIZE, queries: int = 200, dims: tuple[int, ...] = DIMS) -> pd.DataFrame:
    """One row per radii and number of dimensions: radius, numbers, norm_spread and the columns of :data:`CAPTION`."""
    jobs = [(d, radii) for d in dims for radii in RADII]
    rows = []
    for d, radii in track(jobs, total=len(jobs), what="recall by radius", unit="galleries"):
        gallery, query = clusters(size, d, radii, seed=2), clusters(queries, d, radii, seed=1)
        rows.append({"radius": "{:g} to {:g}".format(*radii), "numbers": d} | _row(gallery, query))
    return pd.DataFrame(rows)


def _row(gallery: Tensor, query: Tensor) -> dict[str, float]:
    truth = nearest(query, gallery, K, BALL)[1]
    form = InnerProduct.about(BALL, gallery)
    vectors, asked = form.gallery(gallery), form.query(query)
    norms = vectors.norm(dim=1)
    ours = Quick.build(gallery, BALL, "bench")
    values = {"norm_spread": (norms.max() / norms.min()).item(), "candidates": ours.candidates}
    others = {
        "d + 2, graph": _graph(on_sphere(vectors), beside_sphere(asked), ours.candidates),
        "d + 2, codes": _codes(vectors, asked, ours.candidates),
    }
    for name, proposed in others.items():
        at = torch.from_numpy(proposed)
        keys = form.keys(query, gallery[at.clamp_min(0)]).masked_fill(at < 0, torch.inf)
        values[name] = overlap(at.gather(1, keys.argsort(dim=1)[:, :K]), truth)
    values |= {"ours": overlap(ours.search(query, K)[1], truth), "own": ours.provenance.recall}
    return {name: float(f"{value:.4g}") for name, value in values.items()}


def _graph(stored: Tensor, asked: Tensor, n: int) -> np.ndarray:
    graph = faiss.IndexHNSWFlat(stored.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction, graph.hnsw.efSearch = BUILD_EFFORT, EFFORT
    graph.add(stored.numpy())
    return graph.search(asked.numpy(), n)[1]


def _codes(stored: Tensor, asked: Tensor, n: int) -> np.ndarray:
    codes = faiss.IndexPQFastScan(stored.shape[1], stored.shape[1], 4, faiss.METRIC_INNER_PRODUCT)
    codes.train(stored.numpy())
    codes.add(stored.numpy())
    return codes.search(asked.numpy(), n)[1]
