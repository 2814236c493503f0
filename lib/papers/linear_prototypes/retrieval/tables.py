"""Tables of the linear prototypes: PT against TL, the published values, other heads, and what came out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from lib import files, paths
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.papers.linear_prototypes import figures
from lib.papers.linear_prototypes.published import DATASETS, PT, SCALED, TL, gains, published
from lib.papers.linear_prototypes.retrieval.experiment import LINEAR, NO_VIEWS, OPPONENTS
from lib.papers.linear_prototypes.retrieval.sweeps import EPOCHS, STEPS
from lib.results import answerable, answers, denominators, intervals
from lib.results.markdown import markdown_table, percent, points
from lib.results.shown import Figure, Table
from lib.results.store import Run

Answered = Mapping[str, answers.Answers]
"""Gallery → method → its answer on each split."""

SPREAD = "mean over folds and seeds ± one standard deviation over the folds, ± seeds: over the trainings"
SIDES = {PT: "PT, as they are", SCALED: "PT, scaled", TL: "TL: prototype head"}
"""The panels of Fig. 2."""


def named(encoder: str, method: str) -> str:
    """How a method of an encoder is called in tables.

    >>> named("texture", TL)
    'texture, TL'
    """
    return f"{encoder}, {method}"


def values(results: Answered) -> pd.DataFrame:
    """Mean and spread over the splits, encoder and method apart; columns as :func:`lib.results.answers.values`.

    n_classes: of how many classes a query has an answer in the gallery.
    """
    table = answers.values(results).rename(columns={"rule": "gallery", "method": "name"})
    table[["encoder", "method"]] = table["name"].str.split(", ", n=1, expand=True)
    return answerable.counted(table, results, "gallery")


def layout(table: pd.DataFrame) -> str:
    """A row per gallery, encoder and method, the shortest and the longest list, as Markdown."""
    ends = table[table["k"].isin([table["k"].min(), table["k"].max()])]
    return answers.layout(ends.drop(columns="method").rename(columns={"gallery": "rule", "name": "method"}), "gallery")


def scores(results: Answered, images: ImageTable) -> pd.DataFrame:
    """The value of every query, so that any two methods can be compared later.

    Columns gallery, method, fold, repeat, image_id, label, group, k, ap_min (AP@k over min(k, relevant), percent) and
    precision (percent); NaN where the gallery has no relevant image.
    """
    ids, labels, groups = images.rows["image_id"].to_numpy(), np.asarray(images.labels), np.asarray(images.groups)
    frames = []
    for gallery, methods in results.items():
        for method, of_splits in methods.items():
            for answer in of_splits:
                queries = answer.split.test
                about = {"gallery": gallery, "method": method}
                about |= {"fold": answer.split.fold, "repeat": answer.split.repeat}
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


BESIDE = {"PT": PT, "TL": TL}
"""Columns of :func:`beside`, and what the methods are called elsewhere."""


def beside(table: pd.DataFrame, dataset: str, ks: Sequence[int]) -> pd.DataFrame:
    """Published rows of a dataset and ours at each of ``ks``: columns source, k, backbone, PT, TL and gained.

    Ours have class_mean_PT and class_mean_TL (over classes), chance, and the health of TL's training: loss,
    rim, steps. A dataset that the paper does not have gets the ranges of all of its datasets instead.
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
        cells = rows.set_index("method")
        line = {"source": "ours", "k": str(k), "backbone": encoder}
        line |= {name: cells["ours"][method] for name, method in BESIDE.items()}
        line |= {f"class_mean_{name}": cells["class_mean"][method] for name, method in BESIDE.items()}
        lines.append(line | cells.loc[TL, ["chance", *answers.HEALTH]].to_dict())
    rows = pd.DataFrame(lines)
    return rows.assign(gained=rows["TL"] - rows["PT"])


def beside_layout(rows: pd.DataFrame) -> str:
    """The table of :func:`beside` as Markdown."""
    names = {"PT": "PT", "TL": "TL", "gained": "TL − PT, points"}
    names |= {"class_mean_PT": "class mean, PT", "class_mean_TL": "class mean, TL", "chance": "chance"}
    shown = rows[["source", "k", "backbone"]].join(rows[list(names)].map(percent).rename(columns=names))
    ends = [answers.health(row.fillna({"steps": 0})) for _, row in rows.iterrows()]
    return markdown_table(shown.join(pd.DataFrame(ends)))


GAINS = {
    "dataset": "dataset",
    "best_pt": "best frozen model",
    "pt": "its PT (%)",
    "best_tl": "best trained model",
    "tl": "its TL (%)",
    "follows": "gain that follows, points",
    "printed": "gain that is printed, points",
    "own_pt": "PT of the best trained model (%)",
}
"""How the columns of :func:`lib.papers.linear_prototypes.published.gains` are headed."""


def published_gains() -> Table:
    """What follows from the printed values, beside the gain that the paper prints; a dash where it prints none."""
    printed = gains()
    shown = printed.assign(
        **{name: printed[name].map(percent) for name in ("pt", "tl", "follows", "printed", "own_pt")}
    )
    text = (
        "Of the printed values alone: best TL minus best PT (follows), beside the gain that the paper's Fig. 3 prints; "
        "last the PT of the best trained model's own backbone, where it is printed."
    )
    return Table("published gains", printed, text, markdown=markdown_table(shown[list(GAINS)].rename(columns=GAINS)))


def definitions(table: pd.DataFrame, k: int) -> Table:
    """The same rankings as MAP@k and as the precision that the paper describes (LP-10)."""
    names = {"ap_min": f"MAP@{k}, ÷ min(k, relevant)", "ap_hits": f"MAP@{k}, ÷ hits", "precision": f"precision@{k}"}
    part = table[(table["gallery"] == "closed") & (table["k"] == k) & table["metric"].isin(list(names))]
    wide = part.pivot_table(index=["encoder", "method"], columns="metric", values="ours", sort=False)
    markdown = markdown_table(wide[list(names)].map(percent).rename(columns=names).reset_index())
    text = f"The same rankings of the closed gallery, k = {k}, percent."
    return Table("definitions of MAP@k", part, text, markdown=markdown)


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


def caption(run: Run, printed: str = "", heads: str = "") -> str:
    """What the numbers are, and why they differ from the published ones.

    printed: what stands there, if not the mean over folds and seeds; heads: how those of this table differ.
    """
    of = run.parameters
    heads = heads or (
        f"heads trained {of['seeds']} times for {of['epochs']} epochs (published: once for 100) with K = {of['K']} on "
        f"{of['views']} views of each image, the first of which is the image itself (encoders beside the first: the "
        "image alone)"
    )
    ours = (
        f"MAP@k in percent, AP divided by min(k, relevant); {printed or 'mean over folds and seeds'}; {of['folds']} "
        f"folds by {of['groups']}; class-balanced queries of {of['groups']}s that nothing was fitted on; cosine search "
        f"where no other is named; {heads}."
    )
    why = {
        "demo": "Ours are procedural tiles and another encoder: nothing but the layout can be compared.",
        "sample": "Published: other encoders, other queries, and a k that is not stated (LP-9, LP-10).",
        "paper": "Published: other queries, and a k that is not stated (LP-9, LP-10).",
        "own": "Published: other images, encoders and queries, and a k that is not stated (LP-9, LP-10).",
    }
    return f"{ours} {why[run.profile]}"


def figure_2(run: Run, numbers: pd.DataFrame) -> Figure:
    """Fig. 2: MAP@k over k in the closed gallery; numbers: as :func:`values` makes them."""
    closed = numbers[(numbers["gallery"] == "closed") & (numbers["metric"] == "ap_min")]
    printed = (
        "closed gallery; points: mean over folds and seeds, bars: one standard deviation over the folds, thin line: a "
        "gallery in random order"
    )
    return Figure("MAP@k over k", closed, caption(run, printed), figure=figures.by_k(closed, SIDES))


def pretrained_and_trained(run: Run, numbers: pd.DataFrame) -> Table:
    """PT and TL in each gallery; numbers: as :func:`values` makes them."""
    text = f"{caption(run, SPREAD)} The lists between are in the figure and the csv."
    return Table("PT and TL", numbers, text, markdown=layout(numbers))


def variants(run: Run, numbers: pd.DataFrame) -> Table:
    """The other distances and heads, and the opponents, as :func:`lib.results.answers.values` has them."""
    ends = numbers[numbers["k"].isin([numbers["k"].min(), numbers["k"].max()])]
    markdown = answers.layout(ends, "gallery")
    return Table("other distances and heads", numbers, caption(run, SPREAD, _variant_heads(run)), markdown=markdown)


def _variant_heads(run: Run) -> str:
    """How the other heads and the opponents were trained."""
    of = run.parameters
    return (
        f"heads trained {of['seeds']} times for {of['epochs']} epochs (published: once for 100) with K = {of['K']} on "
        f"{of['views']} views of each image, but for the row without augmented views; NCA is fitted once, and it and "
        "the linear classifiers learn from the same labels without prototypes. Temperature of the cosine head, "
        "temperature and curvature of the Poincaré head: each fold's own choice"
    )


def variant_tests(run: Run, tests: pd.DataFrame) -> Table:
    """Every other head, and every opponent, against the paper's; tests: of :func:`lib.results.denominators.compare`."""
    text = caption(run, "first against second", _variant_heads(run))
    return denominators.table(tests, "other distances and heads, paired", text, "gallery")


def figure_variants(run: Run, tests: pd.DataFrame) -> Figure:
    """What every other head, and every opponent, gains or loses against the paper's head.

    tests: paired tests of them, as :func:`lib.results.denominators.compare` has them; drawn are those by min(k, R).
    """
    tests = denominators.by_min(tests)
    k = ", ".join(str(k) for k in tests["k"].unique())
    about = caption(run, "averaged per group first", _variant_heads(run))
    text = f"Difference of MAP@{k} from the paper's head with its 95 % interval: {about} {intervals.UNCORRECTED}"
    return Figure("other heads against the paper's", tests, text, figure=figures.differences(tests))


def baseline(numbers: pd.DataFrame, encoder: str, k: int) -> float:
    """MAP@k of the frozen features of an encoder, scaled, in the closed gallery; numbers: of :func:`values`."""
    mine = (numbers["name"] == named(encoder, SCALED)) & (numbers["gallery"] == "closed") & (numbers["k"] == k)
    return numbers[mine & (numbers["metric"] == "ap_min")]["ours"].item()


def came_out(gains: pd.DataFrame, others: pd.DataFrame, sizes: pd.DataFrame, encoder: str, frozen: float) -> list[str]:
    """The questions of the notebook, and what the tables answer.

    Args:
        gains, others: paired tests of TL against PT, and of other heads and opponents against the paper's head.
        sizes: of :func:`lib.papers.linear_prototypes.retrieval.sweeps.label_rows`.
        encoder: the leading one; frozen: of :func:`baseline`.
    """
    parts = {LINEAR: "part", NO_VIEWS: "part"} | dict.fromkeys(OPPONENTS, "opponent")
    kinds = others["first"].map(parts).fillna("distance")
    questions = {
        "Does the head beat the frozen features?": gains[gains["first"] == named(encoder, TL)],
        "Does another distance, in training or in search, do better than the paper's?": others[kinds == "distance"],
        "Does it need the hidden layer, and augmented views?": others[kinds == "part"],
        "Do opponents without prototypes do as well?": others[kinds == "opponent"],
    }
    lines = [
        line
        for question, tests in questions.items()
        for line in (question, *(f"  {sentence}" for sentence in denominators.sentences(tests)))
    ]
    labels = [*_label_sentences(sizes, frozen), *_step_sentences(sizes)]
    return [*lines, "How many labels does it need? (means, not tested)", *(f"  {line}" for line in labels)]


def _label_sentences(sizes: pd.DataFrame, frozen: float) -> list[str]:
    """Every number of labels beside the ``frozen`` features, and which heads stay below these."""
    lines = [f"frozen features, scaled, without any label: {percent(frozen)}"]
    for size, rows in sizes.groupby("size", sort=False):
        below = rows["ours"] < frozen
        heads = [f"{row.method}, {row.length} {percent(row.ours)}" for row in rows.itertuples()]
        which = "all" if below.all() else f"{below.sum()} of {len(rows)}" if below.any() else "none"
        lines.append(f"{size or 'all'} per class: {'; '.join(heads)}; below the frozen features: {which}")
    return lines


def _step_sentences(sizes: pd.DataFrame) -> list[str]:
    """What more steps with the same few labels change."""
    few = sizes[sizes["size"] > 0]
    wide = few.pivot_table(index=["method", "size"], columns="length", values="ours", sort=False)
    more = (wide[STEPS] - wide[EPOCHS]).dropna()
    return [
        f"{method}, equal steps minus equal epochs: "
        + "; ".join(f"{points(gain)} points with {size} per class" for (_, size), gain in part.items())
        for method, part in more.groupby("method", sort=False)
    ]
