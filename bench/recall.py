"""Which share of the nearest a graph finds, by hyperbolic radius: built among d + 2 numbers, and as we build it."""

import faiss
import pandas as pd
import torch
from torch import Tensor

from lib.geometry import PoincareBall
from lib.papers.beyond.storage import overlap
from lib.progress import track
from lib.search import nearest
from lib.search.index import FaissHnsw
from lib.search.inner import InnerProduct, beside_sphere, on_sphere
from lib.search.synthetic import clusters

BALL = PoincareBall(1.0)
RADII = ((0.0, 0.4), (0.0, 2.0), (0.0, 4.0), (0.0, 8.0), (0.0, 12.0), (8.0, 12.0))
DIMS = (5, 32, 128)
K, PROPOSED, NEIGHBOURS, BUILD_EFFORT, EFFORT = 10, 56, 32, 200, 256

CAPTION = (
    f"Share of the {K} nearest that graphs of {NEIGHBOURS} neighbours find, with {EFFORT} points in view and "
    f"{PROPOSED} candidates re-ranked by their true distance: 8,000 points of 200 clusters, hyperbolic radii drawn "
    "evenly, 200 queries. norm_spread: largest norm of the d + 2 numbers of a point, divided by the smallest. d + 2: a "
    "graph among them, brought to one length. ours: FaissHnsw, a graph among the tangent vectors at the origin that is "
    "searched by the exact keys. own: the recall that it measures on its own gallery when it is built."
)


def measure(size: int = 8000, queries: int = 200, dims: tuple[int, ...] = DIMS) -> pd.DataFrame:
    """One row per radii and number of dimensions: radius, numbers, norm_spread and the recalls of :data:`CAPTION`."""
    jobs = [(d, radii) for d in dims for radii in RADII]
    rows = []
    for d, radii in track(jobs, total=len(jobs), what="recall by radius", unit="galleries"):
        gallery, query = clusters(size, d, radii, seed=2), clusters(queries, d, radii, seed=1)
        rows.append({"radius": "{:g} to {:g}".format(*radii), "numbers": d} | _row(gallery, query))
    return pd.DataFrame(rows)


def _row(gallery: Tensor, query: Tensor) -> dict[str, float]:
    truth = nearest(query, gallery, K, BALL)[1]
    form = InnerProduct.about(BALL, gallery)
    norms = form.gallery(gallery).norm(dim=1)
    ours = FaissHnsw.build(gallery, BALL, "bench", neighbours=NEIGHBOURS, build_effort=BUILD_EFFORT, effort=EFFORT)
    values = {
        "norm_spread": (norms.max() / norms.min()).item(),
        "d + 2": overlap(_among_products(form, gallery, query), truth),
        "ours": overlap(ours.search(query, K, PROPOSED)[1], truth),
        "own": ours.provenance.recall,
    }
    return {name: float(f"{value:.4g}") for name, value in values.items()}


def _among_products(form: InnerProduct, gallery: Tensor, query: Tensor) -> Tensor:
    """What a graph among the d + 2 numbers themselves finds, re-ranked: (q, k)."""
    stored = on_sphere(form.gallery(gallery))
    graph = faiss.IndexHNSWFlat(stored.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction, graph.hnsw.efSearch = BUILD_EFFORT, EFFORT
    graph.add(stored.numpy())
    proposed = torch.from_numpy(graph.search(beside_sphere(form.query(query)).numpy(), PROPOSED)[1])
    keys = form.keys(query, gallery[proposed.clamp_min(0)]).masked_fill(proposed < 0, torch.inf)
    return proposed.gather(1, keys.argsort(dim=1)[:, :K])
