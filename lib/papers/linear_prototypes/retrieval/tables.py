"""Tables of the linear prototypes: PT against TL, the published values, other heads, fewer labels."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from lib import files, paths
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.papers.linear_prototypes.published import DATASETS, PT, TL, published
from lib.papers.linear_prototypes.retrieval.experiment import words
from lib.results import answers, paired
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Table
from lib.results.store import Run
from lib.training.linear_prototypes import Settings
from lib.training.methods import Answer

Results = Mapping[str, answers.Answers]
"""Gallery → method → its answer on each split."""


def named(encoder: str, method: str) -> str:
    """How a method of an encoder is called in tables.

    >>> named("texture", TL)
    'texture, TL'
    """
    return f"{encoder}, {method}"


def values(results: Results) -> pd.DataFrame:
    """Mean and spread over the splits, encoder and method apart; columns as :func:`lib.results.answers.values`."""
    table = answers.values(results).rename(columns={"rule": "gallery", "method": "name"})
    table[["encoder", "method"]] = table["name"].str.split(", ", n=1, expand=True)
    return table


def layout(table: pd.DataFrame, gallery: str, metric: str = "ap_min") -> str:
    """A row per encoder and method, a column per k, as Markdown; left out: queries without any relevant image."""
    part = table[(table["gallery"] == gallery) & (table["metric"] == metric)]
    lines = []
    for (encoder, method), rows in part.groupby(["encoder", "method"], sort=False):
        cells = {"encoder": encoder, "method": method}
        cells |= {f"k = {row.k}": f"{percent(row.ours)} ± {percent(row.spread)}" for row in rows.itertuples()}
        cells |= {"queries": rows["n_queries"].iloc[0], "left out": rows["n_without_relevant"].iloc[0]}
        lines.append(cells | answers.health(rows.iloc[0]))
    return markdown_table(pd.DataFrame(lines))


def scores(results: Results, images: ImageTable) -> pd.DataFrame:
    """The value of every query, so that any two methods can be compared later.

    Columns gallery, method, fold, image_id, label, group, k, ap_min (AP@k over min(k, relevant), percent) and
    precision (percent); NaN where the gallery has no relevant image.
    """
    ids, labels, groups = images.rows["image_id"].to_numpy(), np.asarray(images.labels), np.asarray(images.groups)
    frames = []
    for gallery, methods in results.items():
        for method, of_splits in methods.items():
            for answer in of_splits:
                queries = answer.split.test
                about = {"gallery": gallery, "method": method, "fold": answer.split.fold}
                about |= {"image_id": ids[queries], "label": labels[queries], "group": groups[queries]}
                both = 100 * answer.per_query.values[["ap_min", "precision"]]
                for k in both.columns.levels[1]:
                    values_at_k = {name: both[name, k].to_numpy() for name in ("ap_min", "precision")}
                    frames.append(pd.DataFrame(about | {"k": k} | values_at_k))
    return pd.concat(frames, ignore_index=True)


def store_scores(run: Run, table: pd.DataFrame) -> None:
    """Write the table of :func:`scores`, and beside it what the run was, where notebook 42 reads both."""
    file = scores_file(run.profile, run.dataset)
    with files.whole(file) as draft:
        table.to_csv(draft, index=False, float_format="%.6g", lineterminator="\n")
    with files.whole(file.with_suffix(".json")) as draft:
        draft.write_text(json.dumps(asdict(run), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load_scores(profile: str, dataset: str) -> tuple[pd.DataFrame, Run]:
    """The table of :func:`scores` and the run that made it; InputError if notebook 41 has not run yet."""
    file = scores_file(profile, dataset)
    if not file.exists():
        raise InputError(f"{file} is not there: run notebook 41 first, or make reproduce PROFILE={profile}")
    run = Run(**json.loads(file.with_suffix(".json").read_text(encoding="utf-8")))
    return pd.read_csv(file, dtype={"image_id": str, "label": str, "group": str}), run


def scores_file(profile: str, dataset: str) -> Path:
    """Where the values of single queries are."""
    return paths.BUILD / "scores" / profile / dataset / "linear_prototypes.csv"


def beside(table: pd.DataFrame, dataset: str, ks: Sequence[int]) -> pd.DataFrame:
    """Published rows of a dataset and ours at each of ``ks``: columns source, k, backbone, PT, TL and gained.

    A dataset that the paper does not have gets the ranges of all of its datasets instead.
    """
    chosen = published()
    if dataset in DATASETS:
        chosen = chosen[chosen["dataset"] == DATASETS[dataset]]
    lines = []
    for theirs, printed in chosen.groupby("dataset", sort=False):
        for backbone, rows in printed.groupby("backbone", sort=False):
            cells = rows.set_index("variant")["value"]
            lines.append({"source": f"published, {theirs}", "k": "not stated", "backbone": backbone} | cells.to_dict())
    ours = table[(table["gallery"] == "closed") & (table["metric"] == "ap_min") & table["k"].isin(ks)]
    for (encoder, k), rows in ours.groupby(["encoder", "k"], sort=False):
        cells = rows.set_index("method")["ours"]
        lines.append({"source": "ours", "k": str(k), "backbone": encoder, "PT": cells[PT], "TL": cells[TL]})
    rows = pd.DataFrame(lines)
    return rows.assign(gained=rows["TL"] - rows["PT"])


def beside_layout(rows: pd.DataFrame) -> str:
    """The table of :func:`beside` as Markdown."""
    shown = rows.rename(columns={"gained": "TL − PT, points"})
    for name in ("PT", "TL", "TL − PT, points"):
        shown[name] = shown[name].map(percent)
    return markdown_table(shown)


def definitions(table: pd.DataFrame, k: int) -> Table:
    """The same rankings as MAP@k and as the precision that the paper describes (LP-10)."""
    names = {"ap_min": f"MAP@{k}, ÷ min(k, relevant)", "ap_hits": f"MAP@{k}, ÷ hits", "precision": f"precision@{k}"}
    part = table[(table["gallery"] == "closed") & (table["k"] == k) & table["metric"].isin(list(names))]
    wide = part.pivot_table(index=["encoder", "method"], columns="metric", values="ours", sort=False)
    markdown = markdown_table(wide[list(names)].map(percent).rename(columns=names).reset_index())
    text = f"The same rankings of the closed gallery, k = {k}, percent."
    return Table("definitions of MAP@k", part, text, markdown=markdown)


def shot_rows(results: Mapping[int, Sequence[Answer]], k: int, everything: int | None = None) -> pd.DataFrame:
    """MAP@k over a size: columns size, ours, spread (percent); ``everything`` is written as 0, for "all"."""
    table = answers.values({str(size): {"": of_splits} for size, of_splits in results.items()})
    table = table[(table["metric"] == "ap_min") & (table["k"] == k)]
    sizes = table["rule"].astype(int)
    return table.assign(size=sizes.where(sizes != everything, 0))[["size", "ours", "spread"]].reset_index(drop=True)


def label_rows(results: Mapping[int, answers.Answers], k: int, everything: int) -> pd.DataFrame:
    """The same for several methods: columns method, size, ours, spread."""
    methods = next(iter(results.values()))
    frames = [
        shot_rows({size: done[method] for size, done in results.items()}, k, everything).assign(method=method)
        for method in methods
    ]
    return pd.concat(frames, ignore_index=True)[["method", "size", "ours", "spread"]]


def shots(run: Run, supports: pd.DataFrame, labels: pd.DataFrame, k: int) -> Table:
    """Both sweeps; ``supports`` as :func:`shot_rows` and ``labels`` as :func:`label_rows` makes them."""
    of = run.parameters
    heads = (
        f"heads trained for {of['epochs']} epochs (published: 100). Support: K as the rows say, all labels, "
        f"{of['views']} views of each image. Labels: K = {of['K']} or one less than there are labels, the images "
        "themselves without augmented views; Hyper-DINO's mapper is searched by its own distance"
    )
    rows, markdown = shot_table(supports, labels), shots_layout(supports, labels, k)
    return Table("support and labels", rows, caption(run, heads), markdown=markdown)


def shot_table(supports: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Both sweeps as one table: columns sweep ("support", "labels"), method, size (0 stands for all), ours, spread."""
    supports = supports.assign(sweep="support", method="linear prototypes")
    columns = ["sweep", "method", "size", "ours", "spread"]
    return pd.concat([supports, labels.assign(sweep="labels")], ignore_index=True)[columns]


def shots_layout(supports: pd.DataFrame, labels: pd.DataFrame, k: int) -> str:
    """Both tables as Markdown."""
    first = pd.DataFrame(
        {
            "K, support images per class": supports["size"],
            f"MAP@{k}, all labels known": [
                f"{percent(row.ours)} ± {percent(row.spread)}" for row in supports.itertuples()
            ],
        }
    )
    cells = labels.assign(cell=[f"{percent(row.ours)} ± {percent(row.spread)}" for row in labels.itertuples()])
    second = cells.pivot_table(index="size", columns="method", values="cell", aggfunc="first", sort=False)
    second.index = pd.Index([str(size or "all") for size in second.index], name="labelled images per class")
    return f"{markdown_table(first)}\n\n{markdown_table(second.reset_index())}"


def table_1(zoo: pd.DataFrame) -> Table:
    """Table I: what the paper states, what timm builds, licence, gate, and whether the weights are here.

    zoo: of :func:`lib.encoders.zoo.table`.
    """
    text = (
        "What timm builds, in brackets what Table I prints. Counted without the classifier, which the printed 25.6 of "
        "ResNet-50 includes. A gate: the terms have to be accepted on the model's page before it gives the weights."
    )
    dims = zip(zoo["dim"], zoo["published_dim"], strict=True)
    parameters = zip(zoo["parameters_millions"], zoo["published_parameters_millions"], strict=True)
    layout = pd.DataFrame(
        {
            "model": zoo["model"],
            "timm": zoo["timm"],
            "embedding": [f"{ours} ({theirs:.0f})" for ours, theirs in dims],
            "parameters, M": [f"{ours:.1f} ({theirs:g})" for ours, theirs in parameters],
            "learning": zoo["learning"],
            "data": zoo["data"],
            "licence": zoo["licence"],
            "gated": zoo["gated"].map({True: "yes", False: "no"}),
            "weights": zoo["weights_here"].map({True: "here", False: "not here"}),
        }
    )
    return Table("Table I, the backbones", zoo, text, markdown=markdown_table(layout), free=["weights_here"])


def caption(run: Run, heads: str = "") -> str:
    """What the numbers are, and why they differ from the published ones; ``heads``: how those of this table differ."""
    of = run.parameters
    heads = heads or (
        f"heads trained for {of['epochs']} epochs (published: 100) with K = {of['K']} on {of['views']} views of each "
        "image, the first of which is the image itself"
    )
    ours = (
        f"MAP@k in percent, AP divided by min(k, relevant); mean ± standard deviation over {of['folds']} folds by "
        f"{of['groups']}; class-balanced queries of {of['groups']}s that nothing was fitted on; cosine search; "
        f"{heads}."
    )
    why = {
        "demo": "Ours are procedural tiles and another encoder: nothing but the layout can be compared.",
        "sample": "Published: other encoders, other queries, and a k that is not stated (LP-9, LP-10).",
        "paper": "Published: other queries, and a k that is not stated (LP-9, LP-10).",
        "own": "Published: other images, encoders and queries, and a k that is not stated (LP-9, LP-10).",
    }
    return f"{ours} {why[run.profile]}"


def pretrained_and_trained(run: Run, numbers: pd.DataFrame) -> Table:
    """PT and TL in each gallery; numbers: as :func:`values` makes them."""
    parts = [f"## Gallery {gallery}\n\n{layout(numbers, gallery)}" for gallery in numbers["gallery"].unique()]
    return Table("PT and TL", numbers, caption(run), markdown="\n\n".join(parts))


def choice_layout(candidates: pd.DataFrame) -> str:
    """The candidates of :func:`lib.papers.linear_prototypes.retrieval.experiment.choose` as Markdown."""
    shown = pd.DataFrame(
        {
            "comparison": candidates["comparison"],
            "curvature c": candidates["c"].map(lambda c: "–" if pd.isna(c) else f"{c:g}"),
            "temperature": candidates["temperature"].map("{:g}".format),
            "validation MAP": candidates["validation"].map(percent),
            "chosen": candidates["chosen"].map({True: "yes", False: ""}),
        }
    )
    return markdown_table(shown)


def choice(run: Run, candidates: pd.DataFrame, k: int) -> Table:
    """How temperature and curvature were chosen."""
    text = (
        f"MAP@{k} in percent, AP divided by min(k, relevant), of class-balanced queries from a quarter of the groups "
        "that the first fold learns from, against the other three quarters, searched as in training; heads trained for "
        f"{run.parameters['epochs']} epochs without augmented views. No query of the other tables is among them."
    )
    markdown = choice_layout(candidates)
    return Table("temperature and curvature", candidates, text, markdown=markdown, free=["chosen"], of=100)


def variants(run: Run, numbers: pd.DataFrame, tests: pd.DataFrame, chosen: Mapping[str, Settings]) -> Table:
    """The other distances and heads, and their tests against the paper's; ``chosen``: comparison → its settings."""
    of = run.parameters
    heads = (
        f"heads trained for {of['epochs']} epochs (published: 100) with K = {of['K']} on {of['views']} views of each "
        "image, but for the row without augmented views"
    )
    best = "; ".join(f"{name}: {words(settings)}" for name, settings in chosen.items())
    text = f"{caption(run, heads)} Chosen on validation images ({best}). Tests: {paired.SAYS}"
    markdown = f"{answers.layout(numbers, 'gallery')}\n\n{paired.tests_layout(tests, 'gallery')}"
    return Table("other distances and heads", numbers, text, markdown=markdown)
