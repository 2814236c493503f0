"""How many directions features use, and encoders side by side: tables and paired tests."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
import torch

from lib.metrics.retrieval import PerQuery
from lib.metrics.significance import paired_permutation
from lib.results import differences
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Table
from lib.results.store import Run
from lib.training.distillation import effective_rank, spectrum

Results = Mapping[str, Mapping[str, PerQuery]]
"""Encoder → gallery → values per query."""


HELD = 98
"""Percent of the variance: how many directions hold so much?"""


def spectra(scaled: Mapping[str, torch.Tensor]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How many directions the features of unseen images use.

    Args:
        scaled: encoder → (n, dim) features of images that nothing was fitted on.

    Returns:
        Columns encoder, direction (from 1), held (percent of the variance that the first directions hold together);
        and a row per encoder: encoder, numbers (dim), rank (effective rank), directions (that hold :data:`HELD`).
    """
    curves, ranks = [], []
    for encoder, features in scaled.items():
        held = 100 * spectrum(features).cumsum(0).numpy()
        curves.append(pd.DataFrame({"encoder": encoder, "direction": np.arange(1, len(held) + 1), "held": held}))
        facts = {"encoder": encoder, "numbers": features.shape[1], "rank": effective_rank(features).item()}
        ranks.append(facts | {"directions": int(np.searchsorted(held, HELD) + 1)})
    return pd.concat(curves, ignore_index=True), pd.DataFrame(ranks)


def spectra_layout(ranks: pd.DataFrame) -> str:
    """The ranks of :func:`spectra` as Markdown."""
    names = {"rank": "effective rank", "directions": f"directions that hold {HELD} % of the variance"}
    return markdown_table(ranks.rename(columns=names).round(1))


def half_collapsed(ranks: pd.DataFrame) -> str:
    """What became of ``demo_vit``, from the ranks of :func:`spectra`: fewer directions than untrained, or not."""
    of = ranks.set_index("encoder")
    trained, untrained = of.loc["demo_vit"], of.loc["demo_vit-untrained"]
    fewer = trained["rank"] < untrained["rank"] and trained["directions"] < untrained["directions"]
    return (
        f"demo_vit holds {HELD} % of the variance in {trained['directions']:.0f} of {trained['numbers']:.0f} "
        f"directions (effective rank {trained['rank']:.1f}), its untrained self in {untrained['directions']:.0f} "
        f"({untrained['rank']:.1f}): its dimensions have {'' if fewer else 'not '}collapsed in training"
    )


def values(results: Results, dims: Mapping[str, int]) -> pd.DataFrame:
    """One row per gallery, encoder, metric and k; percent.

    Columns: ours (mean over queries), class_mean (averaged per class first), chance (a gallery in random order), dim,
    counts of queries.
    """
    frames = [
        per_query.mean().assign(gallery=gallery, encoder=encoder, dim=dims[encoder])
        for encoder, galleries in results.items()
        for gallery, per_query in galleries.items()
    ]
    rows = pd.concat(frames, ignore_index=True)
    rows["ours"] = rows.pop("value")
    shares = ["ours", "class_mean", "chance"]
    rows[shares] *= 100
    return rows[["gallery", "encoder", "dim", "metric", "k", *shares, "n_queries", "n_without_relevant"]]


def layout(rows: pd.DataFrame, ks: Sequence[int]) -> str:
    """Rows by encoder, for each gallery MAP@k and the mean over classes, as Markdown; the last row is chance."""
    part = rows[(rows["metric"] == "ap_min") & rows["k"].isin(ks)]
    lines = []
    for (encoder, dim), of_encoder in part.groupby(["encoder", "dim"], sort=False):
        lines.append({"encoder": encoder, "numbers": dim} | _cells(of_encoder, ours="MAP", class_mean="class mean"))
    lines.append({"encoder": "chance", "numbers": "–"} | _cells(part[part["encoder"] == encoder], chance="MAP"))
    return markdown_table(pd.DataFrame(lines).fillna("–"))


def _cells(rows: pd.DataFrame, **columns: str) -> dict[str, str]:
    """Columns of one encoder's rows as cells: column → what its heading calls it."""
    return {
        f"{row['gallery']}, {name}@{row['k']}": percent(row[column])
        for _, row in rows.iterrows()
        for column, name in columns.items()
    }


def tests(
    results: Results, groups: np.ndarray, pairs: Sequence[tuple[str, str]], ks: Sequence[int], *, seed: int
) -> pd.DataFrame:
    """Paired permutation tests of MAP@k (min(k, relevant)) between encoders, groups of queries are the unit.

    Args:
        results: what each encoder retrieved.
        groups: (q,) group of each query.
        pairs: which encoder is compared with which.
        ks: list lengths.
        seed: of the random sign flips.

    Returns:
        One row per gallery, pair and k with both encoders and the fields of
        :class:`lib.metrics.significance.PairedTest`; differences are first minus second, in percentage points.
    """
    lines = []
    for first, second in pairs:
        for gallery in results[first]:
            for k in ks:
                a, b = (100 * results[name][gallery].values["ap_min", k].to_numpy() for name in (first, second))
                names = {"gallery": gallery, "first": first, "second": second, "k": k}
                lines.append(names | asdict(paired_permutation(a, b, groups, seed=seed)))
    return differences.together(lines)


def table_encoders(run: Run, rows: pd.DataFrame, ks: Sequence[int]) -> Table:
    """The comparison, from the rows of :func:`values`."""
    at_most = rows.groupby("gallery")["n_without_relevant"].max()
    left_out = ", ".join(f"{gallery}: {n}" for gallery, n in at_most.items())
    text = (
        "MAP@k in percent, AP divided by min(k, relevant), and its mean over classes; Euclidean distance of features "
        "standard-scaled on the training groups, or, by cosine, of features as they are. Queries are the images of "
        f"fold 0 of {run.parameters['folds']} by group. Closed: they search the training groups; open: each other, "
        "without the query's own group. The two galleries differ in size. Queries without any relevant image, left "
        f"out: {left_out}. One training of each network."
    )
    if "domain_vit" in set(rows["encoder"]):
        text += f" domain_vit was trained on the training groups for {run.parameters['steps']} steps without labels."
    return Table("encoders", rows, text, markdown=layout(rows, ks))
