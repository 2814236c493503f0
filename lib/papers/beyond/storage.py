"""Notebook 92: what a stored embedding costs, indexes against the exact search, and what ``make bench`` measured."""

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from torch import Tensor

from lib.errors import InputError
from lib.figures import style
from lib.figures.lines import lines, look
from lib.geometry import Euclidean, Geometry, PoincareBall
from lib.metrics import retrieval
from lib.progress import track
from lib.search import codecs, nearest
from lib.search.index import Index
from lib.search.local import Exact
from lib.search.quick import Quick
from lib.study import scores
from lib.study.columns import HEALTH, Column, Layout
from lib.training.methods import Fitted

STRUCTURES: tuple[type[Index], ...] = (Exact, Quick)
FLAT_CODECS: tuple[codecs.Codec, ...] = ("float32", "float16 tangent")  # flat space is its own tangent space
SCORES, CLASS_MEANS = {"value": "map", "chance": "chance"}, {"class_mean": "class_mean"}
"""What :meth:`lib.metrics.retrieval.PerQuery.mean` calls a score, and how its columns begin here."""

COSTS = (
    *(Column("folds", "rule"), Column("method"), Column("numbers", form="0"), Column("codec")),
    Column("bytes per image", "bytes", "0"),
)


def ends(rows: pd.DataFrame) -> list[int]:
    """The lengths of the shortest and the longest list in rows of :func:`codec_rows`, or of :func:`summary`."""
    ks = [int(name[4:]) for name in rows if name.startswith("map_")]
    return sorted({min(ks), max(ks)})


def storage_layout(rows: pd.DataFrame) -> str:
    """The rows of :func:`summary` for the shortest and the longest list; a part for each fold rule."""
    columns = [Column(f"MAP@{k}", f"map_{k}", chance=f"chance_{k}") for k in ends(rows)]
    columns += [Column(f"class mean@{k}", f"class_mean_{k}") for k in ends(rows)]
    columns += [Column("neighbours kept (%)", "recall"), *(Column(name, form="{:.1g}") for name in ("moved", "bound"))]
    return Layout([*COSTS, *columns, *HEALTH], by=("method", "numbers", "codec"), block="rule")(rows)


LAYOUTS = {
    "table_storage": storage_layout,
    "table_index": Layout(
        [
            *(Column("gallery"), Column("size", form="0"), Column("structure")),
            *(Column("recall"), Column("own recall", "own")),
        ],
        by=("gallery", "structure"),
    ),
}
LATENCY = Layout(
    [
        *(
            Column("structure"),
            Column("build (s)", "build_s", "{:g}"),
            Column("bytes per code on disk", "bytes", "{:g}"),
        ),
        *(Column("one query (ms)", "single_ms", "{:g}"), Column("a query among 200 (ms)", "batch_ms", "{:g}")),
        Column("recall", form="{:g}"),
    ],
    by=("structure",),
)
"""Rows of ``reports/bench/latency.csv``, of galleries of one size."""


def codec_rows(
    fitted: Mapping[str, Sequence[Fitted]], x: np.ndarray, labels: np.ndarray, rule: str, ks: Sequence[int]
) -> pd.DataFrame:
    """Every gallery in every codec, searched by queries that are not stored and stay float32; a row per fold.

    Args:
        fitted: method → one per split; their heads do not round (``half`` is false).
        x, labels: (n, dim) features and (n,) classes of all images.
        rule: the name of the fold rule, handed through.
        ks: list lengths; the longest is that of the neighbours.

    Returns:
        Columns rule, method, numbers, codec, bytes, fold; for each k map_k (percent, min), chance_k and class_mean_k
        (of all splits together, alike in each of their rows); recall (percent of the nearest items still found), moved
        and bound (largest change of a distance, and what it cannot exceed; NaN in flat space); loss, rim, steps.
    """
    rows, pooled = [], {}
    flat = [head for of_splits in fitted.values() for head in of_splits]
    for head in track(flat, total=len(flat), what=f"codecs, folds {rule}", unit="galleries"):
        gallery, query = head.embed(x[head.split.train]), head.embed(x[head.split.test])
        curved, n = isinstance(head.geometry, PoincareBall), gallery.shape[1]
        names = {"rule": rule, "fold": head.split.fold, "method": "mapper" if head.network else "no mapper"}
        for codec in codecs.CODECS if curved else FLAT_CODECS:
            c = float(getattr(head.geometry, "c", 0.0))
            stored = codecs.decode(codecs.encode(gallery, codec, c), codec, c)
            classes = labels[head.split.test], labels[head.split.train]
            answers = retrieval.evaluate(query, stored, *classes, head.geometry, ks)
            pooled.setdefault((head.method.name, codec), []).append(answers)
            kept = overlap(*(nearest(query, g, max(ks), head.geometry)[1] for g in (stored, gallery)))
            rows.append(
                names
                | {"pooled": (head.method.name, codec), "numbers": n}
                | {"codec": codec if curved else codec.removesuffix(" tangent")}
                | {"bytes": n * (4 if codec == "float32" else 2)}
                | of_metric(answers, SCORES)
                | {"recall": 100 * kept}
                | _moved(query, stored, gallery, codec, head.geometry)
                | vars(head.health)
            )
    alike = {key: of_metric(retrieval.together(parts), CLASS_MEANS) for key, parts in pooled.items()}
    return pd.DataFrame([row | alike[row.pop("pooled")] for row in rows])


def of_metric(answers: retrieval.PerQuery, names: Mapping[str, str]) -> dict[str, float]:
    """Some scores of AP@k for every k, in percent."""
    means = answers.mean().query("metric == 'ap_min'").set_index("k")
    return {f"{name}_{k}": 100 * means[column][k] for column, name in names.items() for k in means.index}


def _moved(query: Tensor, stored: Tensor, gallery: Tensor, codec: codecs.Codec, space: Geometry) -> dict[str, float]:
    if isinstance(space, Euclidean):
        return {"moved": math.nan, "bound": math.nan}
    query, stored, gallery = query.double(), stored.double(), gallery.double()
    change = (space.pairwise(query, stored) - space.pairwise(query, gallery)).abs().max().item()
    radius = math.sqrt(space.c) * gallery.norm(dim=1).max().item()
    return {"moved": change, "bound": codecs.largest_move(radius, gallery.shape[1], codec, space.c)}


def overlap(rows: Tensor, truth: Tensor) -> float:
    """The share of ``truth: (q, k)`` that is in ``rows: (q, k)``, row by row.

    >>> import torch
    >>> overlap(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[2, 1], [4, 5]]))
    0.75
    """
    return (rows.unsqueeze(2) == truth.unsqueeze(1)).any(1).double().mean().item()


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the folds of :func:`codec_rows`, the spread of the longest MAP, and the worst move, rim and steps."""
    keys = ["rule", "method", "numbers", "codec", "bytes"]
    rows = rows.assign(spread=rows[f"map_{ends(rows)[-1]}"]).drop(columns="fold")
    how = {"moved": "max", "bound": "max", "spread": "std"} | scores.HEALTH
    measures = {name: how.get(name, "mean") for name in rows.columns.drop(keys)}
    return rows.groupby(keys, sort=False, as_index=False).agg(measures)


def figure_storage(rows: pd.DataFrame) -> Figure:
    """MAP over the bytes of a stored image, the shortest and the longest list; from :func:`summary` of one rule."""
    shown = rows.assign(line=rows["method"] + ", " + rows["codec"], x=rows["bytes"]).drop(columns="spread")
    parts = [shown.assign(panel=f"MAP@{k}", y=shown[f"map_{k}"]) for k in ends(rows)]
    every = pd.concat(parts).sort_values(["panel", "x"], kind="stable")
    return lines(every, xlabel="bytes per stored image", ylabel="MAP@k (%)", log=True)


def index_rows(galleries: Mapping[str, tuple[Tensor, Tensor, Geometry]], k: int) -> pd.DataFrame:
    """Every index structure on every gallery, against the exact search.

    galleries: name → query (q, d), gallery (m, d) and their space. Columns gallery, size, structure, recall and own
    (percent; own: what the index measured on its own gallery when it was built, where it is least by radius). Both are
    NaN where the build was refused, as where classes lie so close together that short codes cannot tell images apart.
    """
    rows = []
    for name, (query, gallery, space) in galleries.items():
        truth = nearest(query, gallery, k, space)[1]
        for structure in STRUCTURES:
            row = {"gallery": name, "size": len(gallery), "structure": structure.kind}
            try:
                index = structure.build(gallery, space, name)
            except InputError as refused:
                rows.append(row | {"recall": np.nan, "own": np.nan})
                print(refused)
                continue
            shares = {"recall": overlap(index.search(query, k)[1], truth), "own": index.provenance.recall}
            rows.append(row | {column: 100 * share for column, share in shares.items()})
    return pd.DataFrame(rows)


def figure_latency(rows: pd.DataFrame) -> Figure:
    """Milliseconds of a query, alone and in a batch, and seconds to build, over the number of stored codes.

    rows: columns structure, size, single_ms, batch_ms, build_s.
    """
    panels = {"single_ms": "one query (ms)", "batch_ms": "a query among 200 (ms)", "build_s": "building the index (s)"}
    with style.house():
        figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 3.0))
        for axis, (column, label) in zip(axes, panels.items(), strict=True):
            for number, (structure, line) in enumerate(rows.groupby("structure", sort=False)):
                line = line[line[column] > 0].sort_values("size")
                axis.plot(line["size"], line[column], label=structure, **look(number))
            axis.set(xscale="log", yscale="log", xlabel="codes in the gallery", ylabel=label)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure


def at_a_billion(times: pd.DataFrame, dims: Sequence[int], size: int = 10**9) -> pd.DataFrame:
    """Bytes and time of an exact search in a gallery that nobody built, in proportion to its codes and their numbers.

    times: of ``reports/bench/latency.csv``. A code takes 2 bytes a number where it is only stored.
    """
    exact = times[times["structure"] == "exact"]
    row = exact.loc[exact["size"].idxmax()]
    rows = []
    for d in dims:
        more = size * d / row["numbers"]
        sizes = {"stored in float16 (GB)": 2 * d * size / 1e9, "to be searched (GB)": row["bytes"] * more / 1e9}
        took = {"one query (s)": row["single_ms"], "a query among 200 (s)": row["batch_ms"]}
        rows.append({"numbers": d} | sizes | {name: ms * more / row["size"] / 1e3 for name, ms in took.items()})
    return pd.DataFrame(rows)
