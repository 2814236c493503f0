"""Tables beyond the Hyper-DINO paper: flat control, leakage, galleries, switches, definitions, choice of the length."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from lib.metrics.classes import over_classes
from lib.metrics.significance import paired_permutation
from lib.papers.hyper_dino.beyond import figures
from lib.results import differences, intervals, own_group, paired
from lib.results.answers import CLASS_MEAN, HEALTH, Answers, compare, ended, health, values
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Figure, Table
from lib.results.store import Run
from lib.training.fit import Schedule
from lib.training.methods import Answer
from lib.training.splits import has_own


def leakage(
    by_image: Answers, by_group: Answers, groups: np.ndarray, ks: Sequence[int], *, kind: str = "group", seed: int = 0
) -> pd.DataFrame:
    """What is lost when no image of the query's own group is in the gallery; the same images ask both times.

    Only what can be lost is tested: the images whose group, a ``kind``, has another image in the gallery by image.

    Returns:
        One row per method and k: method, k, group_kind, n_queries (images that are tested), by_image, by_group
        (percent, mean over the groups of their means over the tested images that can be answered both times),
        class_mean_by_image, class_mean_by_group (of the same images, over classes), chance (in random order, folds by
        group), all_by_image, all_by_group (as by_image, over all n_all images that can be answered both times), the
        health of both trainings (loss_by_image, ...), difference (by group minus by image), then as
        :func:`lib.results.answers.compare`.
    """
    sides = {"by_image": by_image, "by_group": by_group}
    touched = np.zeros(len(groups), dtype=bool)
    for answer in next(iter(by_image.values())):
        touched[answer.split.test] = has_own(answer.split, groups)
    lines = []
    for method in by_image:
        classes = _classes(by_group[method], len(groups))
        health = {
            f"{name}_{side}": value
            for side, found in sides.items()
            for name, value in ended([answer.health for answer in found[method]]).items()
        }
        for k in ks:
            parts = {
                "by_image": _by_image(by_image[method], k, len(groups)),
                "by_group": _by_image(by_group[method], k, len(groups)),
                "chance": _by_image(by_group[method], k, len(groups), "chance"),
            }
            answered = ~np.isnan(parts["by_image"]) & ~np.isnan(parts["by_group"])
            everyone = np.broadcast_to(groups, answered.shape)[answered]
            over_all = {f"all_{side}": _mean_of(parts[side][answered], everyone) for side in sides}
            both = answered & touched
            counts = {"n_queries": int(both.any(axis=0).sum()), "n_all": int(answered.any(axis=0).sum())}
            unit, training = np.broadcast_to(groups, both.shape)[both], np.nonzero(both)[0]
            parts = {name: values[both] for name, values in parts.items()}
            label = np.broadcast_to(classes, both.shape)[both]
            by_class = {f"class_mean_{side}": over_classes(pd.Series(parts[side]), label) for side in sides}
            test = paired_permutation(parts["by_group"], parts["by_image"], unit, training, seed=seed)
            means = {name: _mean_of(values, unit) for name, values in parts.items()}
            names = {"method": method, "k": k, "group_kind": kind}
            lines.append(names | counts | means | by_class | over_all | health | asdict(test))
    return differences.together(lines)


def _classes(answers: Sequence[Answer], n: int) -> np.ndarray:
    """The class (n,) of every image that asked; None of the others."""
    found = np.full(n, None, dtype=object)
    for answer in answers:
        found[answer.split.test] = answer.per_query.classes
    return found


def _mean_of(values: np.ndarray, groups: np.ndarray) -> float:
    """The mean over groups of their means."""
    return pd.Series(values).groupby(groups).mean().mean()


def _by_image(answers: Sequence[Answer], k: int, n: int, what: str = "values") -> np.ndarray:
    """AP@k in percent of every image when it asked, a row per training; NaN where it could not be answered.

    what: "values", or "chance" for a gallery in random order.
    """
    found = np.full((1 + max(answer.split.repeat for answer in answers), n), np.nan)
    for answer in answers:
        values = getattr(answer.per_query, what)["ap_min", k]
        found[answer.split.repeat, answer.split.test] = 100 * values.to_numpy()
    return found


def leakage_layout(table: pd.DataFrame) -> str:
    """The table of :func:`leakage` as Markdown; the difference is by group minus by image.

    Below it a table of how the trainings ended, a row per method and fold rule.
    """
    group_kind = table["group_kind"].iloc[0]
    names = {"by_image": "by image", "by_group": f"by {group_kind}"}
    lines = [
        {
            "method": row.method,
            "k": row.k,
            "MAP@k, folds by image": percent(row.by_image),
            f"folds by {group_kind}": percent(row.by_group),
            "class mean by image": percent(row.class_mean_by_image),
            f"class mean by {group_kind}": percent(row.class_mean_by_group),
            "chance": percent(row.chance),
        }
        | paired.cells(row, f"by {group_kind} − by image, points")
        | {"queries": row.n_queries}
        | {f"all queries, {name}": percent(getattr(row, f"all_{side}")) for side, name in names.items()}
        for row in table.itertuples()
    ]
    ends = [
        {"method": row["method"], "folds": name} | health(row[[f"{one}_{side}" for one in HEALTH]].set_axis(HEALTH))
        for _, row in table.drop_duplicates("method").iterrows()
        for side, name in names.items()
    ]
    parts = markdown_table(pd.DataFrame(lines)), "How the trainings ended:", markdown_table(pd.DataFrame(ends))
    return "\n\n".join(parts)


def table_leakage(run: Run, rows: pd.DataFrame) -> Table:
    """:func:`leakage` as a table."""
    text = (
        f"{common(run)} {BESIDE} Tested {own_group.asked(rows)}. All queries: the same means over all "
        f"{rows['n_all'].max():,} "
        f"images that can be answered both times. {paired.SAYS}"
    )
    return Table(KNOWING, rows, text, markdown=leakage_layout(rows))


def figure_leakage(rows: pd.DataFrame) -> Figure:
    """:func:`leakage` as a figure."""
    kind = rows["group_kind"].iloc[0]
    text = (
        f"MAP@k with images of the query's own {kind} in the gallery (by image) and without, averaged over {kind}s. At "
        f"the right: the points lost and their 95 % interval. Dotted: chance. Tested {own_group.asked(rows)}."
    )
    return Figure(KNOWING, rows, text, figure=figures.leakage(rows, kind))


KNOWING = "what knowing the group is worth"
"""The title of both."""


def gallery_values(found: Mapping[tuple[float, str, str, str], Sequence[Answer]]) -> pd.DataFrame:
    """The answers of :func:`.experiment.galleries` as rows: how long, and the number of images learnt from, added."""
    frames = []
    for (fraction, length, gallery, method), done in found.items():
        n_train = int(np.mean([len(answer.split.train) for answer in done]))
        rows = values({gallery: {method: done}})
        frames.append(rows.assign(fraction=fraction, length=length, n_train=n_train))
    rows = pd.concat(frames, ignore_index=True).rename(columns={"rule": "gallery"})
    return rows[rows["metric"] == "ap_min"].drop(columns="metric")


def switch_rows(found: Answers, groups: np.ndarray, ks: Sequence[int], seed: int = 0) -> pd.DataFrame:
    """Every method beside the first: the columns of :func:`values`, and the test against the first (percent)."""
    default, *others = found
    table = values({"": found}).query("metric == 'ap_min' and k in @ks").drop(columns=["metric", "n_seeds"])
    compared = compare({"": found}, groups, [(other, default) for other in others], ks, seed=seed)
    return table.merge(compared.rename(columns={"first": "method"}), how="left", on=["rule", "method", "k"])


def switch_layout(table: pd.DataFrame) -> str:
    """The table of :func:`switch_rows` as Markdown."""
    lines = []
    for _, row in table.iterrows():
        cells = {"what is changed": row.method, "k": row.k, "MAP@k": percent(row.ours)}
        cells |= {"class mean": percent(row.class_mean), "chance": percent(row.chance)}
        lines.append(cells | paired.cells(row, "minus default, points") | health(row))
    return markdown_table(pd.DataFrame(lines))


def definition_rows(found: Mapping[str, Answers], first: str, second: str, k: int) -> pd.DataFrame:
    """MAP@k of two methods under three definitions, and the gain of the second.

    Returns:
        Columns rule, definition; two of the names of the methods; the same names and ", class mean" (over classes
        first); chance (a gallery in random order); gain; and the health of the second: loss, rim, steps.
    """
    names = {"ap_min": "÷ min(k, relevant)", "ap_hits": "÷ hits found", "ap_k": "÷ k"}
    table = values(found).query("k == @k and metric in @names").set_index(["rule", "metric", "method"])
    lines = []
    for rule in found:
        for metric, label in names.items():
            before, after = (table.loc[(rule, metric, name)] for name in (first, second))
            scores = {first: before["ours"], second: after["ours"]}
            by_class = {f"{first}, class mean": before["class_mean"], f"{second}, class mean": after["class_mean"]}
            line = {"rule": rule, "definition": label} | scores | by_class | {"chance": after["chance"]}
            lines.append(line | {"gain": after["ours"] - before["ours"]} | after[list(HEALTH)].to_dict())
    return pd.DataFrame(lines)


def definition_layout(rows: pd.DataFrame) -> str:
    """The table of :func:`definition_rows` as Markdown; the gain stands before the health of the second method."""
    scores = [name for name in rows if name not in ("rule", "definition", *HEALTH)]
    shown = rows[["rule", "definition"]].rename(columns={"rule": "folds"}).join(rows[scores].map(percent))
    return markdown_table(shown.join(pd.DataFrame([health(row) for _, row in rows.iterrows()])))


def choice_layout(rows: pd.DataFrame) -> str:
    """The table of :func:`.experiment.choose` as Markdown."""
    names = {"value": "MAP@k", "class_mean": "class mean", "chance": "chance"}
    shown = rows[["choice", "k", "lengths"]].reset_index(drop=True)
    shown = shown.join(rows[list(names)].reset_index(drop=True).map(percent).rename(columns=names))
    return markdown_table(shown.join(pd.DataFrame([health(row) for _, row in rows.iterrows()])))


SPREAD = "± one standard deviation over the folds; ± seeds: over the trainings, at the largest k."


BESIDE = f"Scores: means over the folds. {CLASS_MEAN} Chance: a gallery in random order. At the rim: worst training."
"""What stands beside a score, for the captions of tables that show it."""


def common(run: Run) -> str:
    """What the captions of all tables of MAP@k say."""
    about = run.parameters
    return (
        "MAP@k in percent, AP divided by min(k, relevant). Heads were trained "
        f"{about['n_seeds']} times for {about['epochs']} epochs (published: {Schedule().epochs})."
    )


def retrieval(
    run: Run, title: str, rows: pd.DataFrame, markdown: str, text: str = "", free: Collection[str] = ()
) -> Table:
    """A table of MAP@k; ``text`` is added to what all their captions say."""
    return Table(title, rows, f"{common(run)} {BESIDE} {text}".strip(), free, markdown=markdown)


def figure_differences(title: str, rows: pd.DataFrame, what: str, text: str, more: str = "") -> Figure:
    """:func:`.figures.differences` as a figure; ``text`` says whose differences they are, ``more`` follows."""
    about = f"{text}, with 95 % intervals over groups and trainings. {intervals.UNCORRECTED} {more}"
    return Figure(title, rows, about.strip(), figure=figures.differences(rows, f"{what}, MAP@k (points)"))


def rest(found: Answers, settled: Mapping[str, float]) -> list[str]:
    """Where the embeddings of each method rest, beside the norm at which its classes are exactly at the margin.

    settled: method → that norm, of :func:`lib.papers.hyper_dino.ball.tables.radius_at_rest`.
    """
    medians = {name: np.median(np.concatenate([answer.norms for answer in found[name]])) for name in settled}
    return [
        f"{name}: median norm {medians[name]:.3f}, classes exactly at the margin at {radius:.3f}"
        for name, radius in settled.items()
    ]


def norm_limit(found: Answers, settled: Mapping[str, float]) -> float:
    """Where a picture of the norms ends: behind the farthest embedding, unless that is one of a few far from the rest.

    settled: as of :func:`rest`.
    """
    norms = [np.concatenate([answer.norms for answer in done]) for done in found.values()]
    limit = 1.1 * max([*(np.quantile(one, 0.999) for one in norms), *settled.values()])
    farthest = max(one.max() for one in norms)
    return float(limit if farthest > 1.5 * limit else 1.05 * farthest)


def farther(found: Answers, limit: float) -> str:
    """How many embeddings lie beyond ``limit``, for a caption; nothing where none does."""
    beyond = {name: np.concatenate([answer.norms for answer in done]) > limit for name, done in found.items()}
    told = ", ".join(f"{name} {one.sum():,} of {len(one):,}" for name, one in beyond.items())
    cut = any(one.any() for one in beyond.values())
    return f"The axis ends at {limit:.2f}; embeddings beyond: {told}." if cut else ""


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
