"""Encoders side by side: table and paired tests."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from lib.metrics.retrieval import PerQuery
from lib.metrics.significance import paired_permutation
from lib.results import paired
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Table
from lib.results.store import Run

PAIRS = (
    ("domain_vit", "demo_vit"),
    ("domain_vit", "texture"),
    ("demo_vit", "demo_vit-untrained"),
    ("demo_vit", "texture"),
)
"""The questions: does it help to train on the images at hand, to train at all, and is it better than the classic?"""

Results = Mapping[str, Mapping[str, PerQuery]]
"""Encoder → gallery → values per query."""


def values(results: Results, dims: Mapping[str, int]) -> pd.DataFrame:
    """One row per gallery, encoder, metric and k: ours (mean over queries, percent), dim, counts of queries."""
    frames = [
        per_query.mean().assign(gallery=gallery, encoder=encoder, dim=dims[encoder])
        for encoder, galleries in results.items()
        for gallery, per_query in galleries.items()
    ]
    rows = pd.concat(frames, ignore_index=True)
    rows["ours"] = 100 * rows.pop("value")
    return rows[["gallery", "encoder", "dim", "metric", "k", "ours", "n_queries", "n_without_relevant"]]


def layout(rows: pd.DataFrame, metric: str = "ap_min") -> str:
    """Rows by encoder, for each gallery the list lengths, as Markdown."""
    part = rows[rows["metric"] == metric]
    lines = []
    for (encoder, dim), of_encoder in part.groupby(["encoder", "dim"], sort=False):
        values = {f"{row.gallery}, k = {row.k}": percent(row.ours) for row in of_encoder.itertuples()}
        lines.append({"encoder": encoder, "numbers": dim} | values)
    return markdown_table(pd.DataFrame(lines))


def tests(results: Results, groups: np.ndarray, ks: Sequence[int], *, seed: int) -> pd.DataFrame:
    """Paired permutation tests of MAP@k (min(k, relevant)) for :data:`PAIRS`, groups of queries are the unit.

    Args:
        results: what each encoder retrieved.
        groups: (q,) group of each query.
        ks: list lengths.
        seed: of the random sign flips.

    Returns:
        One row per gallery, pair and k with both encoders and the fields of
        :class:`lib.metrics.significance.PairedTest`; differences are first minus second, in percentage points.
    """
    lines = []
    for first, second in PAIRS:
        if first not in results or second not in results:
            continue
        for gallery in results[first]:
            for k in ks:
                a, b = (100 * results[name][gallery].values["ap_min", k].to_numpy() for name in (first, second))
                test = paired_permutation(a, b, groups=groups, seed=seed)
                lines.append({"gallery": gallery, "first": first, "second": second, "k": k} | asdict(test))
    return paired.together(lines)


def table_encoders(run: Run, rows: pd.DataFrame) -> Table:
    """The comparison, from the rows of :func:`values`."""
    at_most = rows.groupby("gallery")["n_without_relevant"].max()
    left_out = ", ".join(f"{gallery}: {n}" for gallery, n in at_most.items())
    text = (
        "MAP@k in percent, AP divided by min(k, relevant); Euclidean distance of features standard-scaled on the "
        f"training groups. Queries are the images of fold 0 of {run.parameters['folds']} by group. Closed: they search "
        "the training groups; open: they search each other, without the query's own group. The two galleries differ "
        f"in size. Queries without any relevant image, left out: {left_out}."
    )
    if "domain_vit" in set(rows["encoder"]):
        text += f" domain_vit was trained on the training groups for {run.parameters['steps']} steps without labels."
    return Table("encoders", rows, text, markdown=layout(rows))
