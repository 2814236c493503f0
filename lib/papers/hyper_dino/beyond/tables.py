"""Tables beyond the Hyper-DINO paper: flat control, leakage, galleries, switches, definitions, choice of the length."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.optimize import brentq

from lib.geometry import Geometry
from lib.metrics.significance import paired_permutation
from lib.results import paired
from lib.results.answers import Answers, compare, health, values
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Table
from lib.results.store import Run
from lib.training.fit import Schedule
from lib.training.methods import Answer


def leakage(by_image: Answers, by_group: Answers, groups: np.ndarray, ks: Sequence[int], seed: int = 0) -> pd.DataFrame:
    """What is lost when no image of the query's own group is in the gallery; the same images ask both times.

    Returns:
        One row per method and k: method, k, by_image, by_group (percent, mean over the groups of their means over the
        images that can be answered both times), chance (the same in random order, folds by group), difference (by group
        minus by image), then as :func:`lib.results.answers.compare`.
    """
    lines = []
    guessed = {k: _guessed(next(iter(by_group.values())), k, len(groups)) for k in ks}
    for method in by_image:
        for k in ks:
            a, b = (_by_image(answers[method], k, len(groups)) for answers in (by_group, by_image))
            both = ~np.isnan(a) & ~np.isnan(b)
            test = paired_permutation(a[both], b[both], groups[both], seed=seed)
            parts = {"by_image": b, "by_group": a, "chance": guessed[k]}
            means = {name: pd.Series(x[both]).groupby(groups[both]).mean().mean() for name, x in parts.items()}
            lines.append({"method": method, "k": k} | means | asdict(test))
    return paired.together(lines)


def _by_image(answers: Sequence[Answer], k: int, n: int) -> np.ndarray:
    """AP@k in percent of every image when it asked, NaN where it could not be answered."""
    found = np.full(n, np.nan)
    for answer in answers:
        found[answer.split.test] = 100 * answer.per_query.values["ap_min", k].to_numpy()
    return found


def _guessed(answers: Sequence[Answer], k: int, n: int) -> np.ndarray:
    """AP@k in percent of every image when it asked a gallery in random order, NaN where it could not be answered."""
    found = np.full(n, np.nan)
    for answer in answers:
        found[answer.split.test] = 100 * answer.per_query.chance["ap_min", k].to_numpy()
    return found


def leakage_layout(table: pd.DataFrame, group_kind: str) -> str:
    """The table of :func:`leakage` as Markdown; the difference is by group minus by image."""
    lines = [
        {
            "method": row.method,
            "k": row.k,
            "MAP@k, folds by image": percent(row.by_image),
            f"folds by {group_kind}": percent(row.by_group),
            "chance": percent(row.chance),
        }
        | paired.cells(row, f"by {group_kind} − by image, points")
        for row in table.itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def leakage_verdicts(table: pd.DataFrame, group_kind: str) -> list[str]:
    """A sentence for each row of :func:`leakage`."""
    return [
        f"{row.method}, k = {row.k}: MAP with folds by {group_kind} {paired.relation(row)} that with folds by image"
        for row in table.itertuples()
    ]


def gallery_values(found: Mapping[tuple[float, str, str], Sequence[Answer]]) -> pd.DataFrame:
    """The answers of :func:`.experiment.galleries` as rows, with the number of images learnt from."""
    frames = []
    for (fraction, gallery, method), done in found.items():
        n_train = int(np.mean([len(answer.split.train) for answer in done]))
        frames.append(values({gallery: {method: done}}).assign(fraction=fraction, n_train=n_train))
    rows = pd.concat(frames, ignore_index=True).rename(columns={"rule": "gallery"})
    return rows[rows["metric"] == "ap_min"].drop(columns="metric")


def gallery_layout(table: pd.DataFrame) -> str:
    """A row per number of images learnt from, a column per gallery, method and k, as Markdown."""
    lines = []
    for n_train, rows in table.groupby("n_train"):
        cells: dict[str, object] = {"learnt from": n_train}
        for row in rows.sort_values(["k", "gallery"], kind="stable").itertuples():
            cells[f"{row.gallery}, {row.method}, MAP@{row.k}"] = percent(row.ours)
        lines.append(cells)
    return markdown_table(pd.DataFrame(lines))


def switch_rows(found: Answers, groups: np.ndarray, ks: Sequence[int], seed: int = 0) -> pd.DataFrame:
    """Every method beside the first: columns method, k, ours, spread, and the test against the first (percent)."""
    default, *others = found
    table = values({"": found}).query("metric == 'ap_min'").drop(columns=["rule", "metric", "n_seeds"])
    compared = compare({"": found}, groups, [(other, default) for other in others], ks, seed=seed)
    return table[table["k"].isin(ks)].merge(
        compared.rename(columns={"first": "method"}).drop(columns=["rule", "second"]), how="left", on=["method", "k"]
    )


def switch_layout(table: pd.DataFrame) -> str:
    """The table of :func:`switch_rows` as Markdown."""
    lines = []
    for _, row in table.iterrows():
        cells = {"what is changed": row.method, "k": row.k, "MAP@k": f"{percent(row.ours)} ± {percent(row.spread)}"}
        lines.append(cells | paired.cells(row, "minus default, points") | health(row))
    return markdown_table(pd.DataFrame(lines))


def definition_rows(found: Mapping[str, Answers], first: str, second: str, k: int) -> pd.DataFrame:
    """MAP@k of two methods under three definitions, and the gain of the second: columns rule, definition, ... ."""
    names = {"ap_min": "÷ min(k, relevant)", "ap_hits": "÷ hits found", "ap_k": "÷ k"}
    table = values(found).query("k == @k and metric in @names").set_index(["rule", "metric", "method"])["ours"]
    lines = [
        {"rule": rule, "definition": label, first: table[rule, metric, first], second: table[rule, metric, second]}
        for rule in found
        for metric, label in names.items()
    ]
    rows = pd.DataFrame(lines)
    return rows.assign(gain=rows[second] - rows[first])


def settled_radius(geometry: Geometry, m0: float, alpha: float, classes: int) -> float:
    """Norm of class points in which the loss of negative pairs has just become 0 (HD-8).

    ``classes`` points at equal distance D of each other around the centre, D being the margin that they cause:
    D = m0 + alpha · D · (classes − 1)/classes.

    >>> from lib.geometry import PoincareBall
    >>> round(settled_radius(PoincareBall(), 0.5, 0.1, 8), 3)
    0.178
    """
    distance = m0 / (1 - alpha * (classes - 1) / classes)
    simplex = torch.eye(classes, dtype=torch.float64) - 1 / classes
    simplex = simplex / simplex[0].norm()
    return brentq(lambda r: float(geometry.between(r * simplex[0], r * simplex[1])) - distance, 1e-6, 1 - 1e-9)


def common(run: Run) -> str:
    """What the captions of all tables of MAP@k say."""
    return (
        "MAP@k in percent, AP divided by min(k, relevant); ± one standard deviation over the splits. Mappers were "
        f"trained for {run.parameters['epochs']} epochs (published: {Schedule().epochs})."
    )


def retrieval(run: Run, title: str, rows: pd.DataFrame, markdown: str, text: str = "", **tolerance: Any) -> Table:
    """A table of MAP@k; ``text`` is added to what all their captions say. tolerance: ``free`` and ``of``."""
    return Table(title, rows, f"{common(run)} {text}".strip(), markdown=markdown, **tolerance)


def norm_rows(found: Answers, bins: int = 60) -> pd.DataFrame:
    """Histogram of the norms of the gallery's embeddings: columns method, norm (middle of the bin), share (percent)."""
    largest = max(answer.norms.max() for done in found.values() for answer in done)
    edges = np.linspace(0, 1.05 * largest, bins + 1)
    frames = []
    for method, done in found.items():
        counts, _ = np.histogram(np.concatenate([answer.norms for answer in done]), edges)
        middle = (edges[1:] + edges[:-1]) / 2
        frames.append(pd.DataFrame({"method": method, "norm": middle, "share": 100 * counts / counts.sum()}))
    return pd.concat(frames, ignore_index=True)
