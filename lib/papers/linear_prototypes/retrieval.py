"""PT against TL, other heads, and how many labels: the tables and figures of section III, Table I and Fig. 2."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib import checks, files, paths
from lib.datasets.drawing import of_each_class
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.figures.lines import lines, with_level
from lib.papers.linear_prototypes import tuning
from lib.papers.linear_prototypes.published import DATASETS, PT, SCALED, TL, published
from lib.study import answers, paired
from lib.study.columns import HEALTH, Column, Layout
from lib.study.scores import HEALTH as HEALTHY
from lib.study.scores import Answers, of_answers
from lib.study.store import Run
from lib.training.episodes import Episodes
from lib.training.experiment import ask, fit
from lib.training.methods import Answer, Method
from lib.training.splits import Split

Answered = Mapping[str, Answers]
"""Gallery → method → its answer on each split."""

SPREAD = "mean over folds and seeds ± one standard deviation over the folds, ± seeds: over the trainings"
SIDES = {PT: "PT, as they are", SCALED: "PT, scaled", TL: "TL: prototype head"}
"""The panels of Fig. 2."""
FROZEN = "frozen features, scaled"


def values(results: Answered) -> pd.DataFrame:
    """Mean and spread over the splits, encoder and method apart; columns as :func:`lib.study.answers.values`.

    n_classes: of how many classes a query has an answer in the gallery.
    """
    table = of_answers(results).means().rename(columns={"rule": "gallery", "method": "name"})
    table[["encoder", "method"]] = table["name"].str.split(", ", n=1, expand=True)
    return answers.counted(table, results, "gallery")


def scores(results: Answered, images: ImageTable) -> pd.DataFrame:
    """The value of every query, so that any two methods can be compared later.

    Columns gallery, method, fold, repeat, image_id, label, group, k, ap_min (AP@k over min(k, relevant), percent) and
    precision (percent); NaN where the gallery has no relevant image.
    """
    values = 100 * of_answers(results, np.asarray(images.groups), rule="gallery").values[["ap_min", "precision"]]
    rows = values.stack("k", future_stack=True).reset_index().rename_axis(columns=None)
    ids, labels = images.rows["image_id"].to_numpy(), np.asarray(images.labels)
    query = rows.pop("query")
    return rows.assign(image_id=ids[query], label=labels[query])


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

    Ours have class_mean_PT and class_mean_TL (over classes), chance, and the health of TL's training: loss,
    rim, steps. A dataset that the paper does not have gets all of the paper's rows.
    """
    printed = published()
    if dataset in DATASETS:
        printed = printed[printed["dataset"] == DATASETS[dataset]]
    theirs = printed.pivot(index=["dataset", "backbone"], columns="variant", values="value").reset_index()
    order = pd.concat(rows[["dataset", "backbone"]] for _, rows in printed.groupby("dataset", sort=False))
    theirs = (
        order.drop_duplicates()
        .merge(theirs)
        .assign(source=lambda rows: "published, " + rows.pop("dataset"), k="not stated")
    )
    ours = table[(table["gallery"] == "closed") & (table["metric"] == "ap_min") & table["k"].isin(ks)]
    ours = ours.set_index(["encoder", "k"])
    plain, head = (ours[ours["method"] == method] for method in (PT, TL))
    lines = head[["chance", *HEALTHY]].assign(source="ours", PT=plain["ours"], TL=head["ours"])
    lines = lines.assign(class_mean_PT=plain["class_mean"], class_mean_TL=head["class_mean"]).reset_index()
    lines = lines.rename(columns={"encoder": "backbone"}).astype({"k": str})
    columns = ["source", "k", "backbone", "PT", "TL", "class_mean_PT", "class_mean_TL", "chance", *HEALTHY]
    rows = pd.concat([theirs, lines], ignore_index=True).reindex(columns=columns)
    return rows.assign(gained=rows["TL"] - rows["PT"])


TRAINED = (
    "heads trained {seeds} times for {epochs} epochs (published: once for 100) with K = {K} on {views} views of each "
    "image, "
)
OF_VARIANTS = (
    "but for the row without augmented views; NCA is fitted once, and it and the linear classifiers learn from the "
    "same labels without prototypes. Temperature of the cosine head, temperature and curvature of the Poincaré head: "
    "each fold's own choice"
)
OF_ENCODERS = "the first of which is the image itself (encoders beside the first: the image alone)"
"""How heads were trained: the other heads and the opponents, and those of every encoder."""


def caption(run: Run, printed: str = "mean over folds and seeds", heads: str = OF_ENCODERS) -> str:
    """What the numbers are, and why they differ from the published ones.

    printed: what stands there. heads: how those of this table were trained.
    """
    ours = (
        f"MAP@k in percent, AP divided by min(k, relevant); {printed}; {{folds}} folds by {{groups}}; class-balanced "
        "queries of {groups}s that nothing was fitted on; cosine search where no other is named; "
        f"{TRAINED}{heads}."
    ).format(**run.parameters)
    why = {
        "demo": "Ours are procedural tiles and another encoder: nothing but the layout can be compared.",
        "sample": "Published: other encoders, other queries, and a k that is not stated (LP-9, LP-10).",
        "paper": "Published: other queries, and a k that is not stated (LP-9, LP-10).",
        "own": "Published: other images, encoders and queries, and a k that is not stated (LP-9, LP-10).",
    }
    return f"{ours} {why[run.profile]}"


STEPS, EPOCHS = "equal steps", "equal epochs"
"""How long a head with few labels is trained: with as many steps as one with all labels, or for as many epochs."""

BySize = Mapping[int, Mapping[tuple[str, str], Sequence[Answer]]]
"""Size → (head, STEPS or EPOCHS) → its answer on each split."""


def supports(
    views: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    splits: Sequence[Split],
    sizes: Sequence[int],
    head: Method,
    ks: Sequence[int],
) -> BySize:
    """Answers of ``head`` with K support images of each class, K of ``sizes``; all training images have labels.

    An epoch has as many episodes with any K, so that all take the same number of steps.
    """
    checks.values(supports=sizes, ks=ks)
    methods = [replace(head, name=f"K = {k}", schedule=replace(head.schedule, k=k)) for k in sizes]
    fitted = fit(views, labels, methods, splits, what="support")
    answers = ask(fitted, views[0], labels, ks, groups=groups, what="support, queries")
    return {k: {(head.name, STEPS): answers[f"K = {k}"]} for k in sizes}


def label_efficiency(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    splits: Sequence[Split],
    sizes: Sequence[int],
    heads: Sequence[Method],
    ks: Sequence[int],
) -> BySize:
    """Answers of heads with ``sizes`` labelled images per class; all training images are searched, labelled or not.

    All heads get the same images, the original ones, ``x: (n, dim)``; every split draws those with labels by its own
    seed. K of an episode is that of its head, or one less than there are labels, so that a query is left; one labelled
    image per class makes neither a query nor a positive pair, so 2 is the smallest size.
    """
    checks.values(labelled=sizes, ks=ks)
    whole, results = min(len(split.train) for split in splits), {}
    for size in sizes:
        few = [
            replace(split, labelled=of_each_class(labels, split.seed, rows=split.train, per_class=size))
            for split in splits
        ]
        n = min(len(split.labelled) for split in few)
        methods = {
            (head.name, steps): _scheduled(head, size, n, whole, steps) for head in heads for steps in (STEPS, EPOCHS)
        }
        fitted = fit(x, labels, list(methods.values()), few, what=f"{size} labels per class")
        answers = ask(fitted, x, labels, ks, groups=groups, what=f"{size} labels per class, queries")
        results[size] = {key: answers[method.name] for key, method in methods.items()}
    return results


def _scheduled(head: Method, size: int, n: int, whole: int, steps: str) -> Method:
    """``head`` for ``n`` labelled images of ``whole``, ``size`` of each class."""
    schedule = head.schedule
    if isinstance(schedule, Episodes):
        schedule = replace(schedule, k=min(schedule.k, size - 1))
    schedule = schedule.equal_steps(n, whole) if steps == STEPS else schedule
    return replace(head, name=f"{head.name}, {steps}", schedule=schedule)


def size_rows(results: BySize, k: int, sweep: str, everything: int = 0) -> pd.DataFrame:
    """MAP@k over the size: means of the answers, and length (STEPS or EPOCHS), size and sweep.

    ``everything`` is the size that is written as 0, for "all".
    """
    frames = [
        of_answers({"": {head: answers}}).means().assign(length=length, size=0 if size == everything else size)
        for size, methods in results.items()
        for (head, length), answers in methods.items()
    ]
    rows = pd.concat(frames, ignore_index=True).query("metric == 'ap_min' and k == @k")
    return rows.drop(columns="rule").assign(sweep=sweep)


def _of_ends(rows: pd.DataFrame) -> pd.DataFrame:
    """The shortest and the longest list."""
    rows = answers.ends(rows)
    rows = rows.drop(columns="method").rename(columns={"name": "method"}) if "name" in rows else rows
    return OF_GALLERY.prepare(rows.rename(columns={"gallery": "rule"}))


OF_GALLERY = answers.layout("gallery")
ENDS = replace(OF_GALLERY, prepare=_of_ends)
BOTH = {"class_mean_PT": "class mean, PT", "class_mean_TL": "class mean, TL", "chance": "chance"}
LAYOUTS = {
    "table_1": Layout(
        [
            *map(Column, ("model", "timm")),
            Column("embedding", "dim", "0", brackets="published_dim"),
            Column("parameters, M", "parameters_millions", "1", brackets="published_parameters_millions"),
            *map(Column, ("learning", "data", "licence")),
            Column("gated", form=lambda gated: "yes" if gated else "no"),
            Column("weights", "weights_here", lambda here: "here" if here else "not here"),
        ],
        by=("model",),
    ),
    "table_results": ENDS,
    "table_variants": ENDS,
    **{f"table_{name}": paired.by_length("gallery") for name in ("tests", "variant_tests")},
    "table_choice": tuning.LAYOUT,
    "table_published": Layout(
        [
            *map(Column, ("source", "k", "backbone", "PT", "TL")),
            Column("TL − PT, points", "gained"),
            *(Column(title, name) for name, title in BOTH.items()),
            *HEALTH,
        ],
        by=("source", "k", "backbone"),
    ),
}


def overview(tested: Mapping[str, pd.DataFrame]) -> str:
    """The clear differences of each pair at each k, on each dataset (title → its paired tests), as Markdown."""
    return paired.sizes(tested, list(paired.METHODS), "k")


def encoders(tables: Mapping[str, pd.DataFrame]) -> str:
    """MAP of TL on each encoder at the ends of the lists, closed gallery, as Markdown.

    tables: title of a dataset → its rows of :func:`values`.
    """
    shown = "gallery == 'closed' and metric == 'ap_min' and method == @TL"
    rows = pd.concat([answers.ends(rows.query(shown)).assign(title=title) for title, rows in tables.items()])
    columns = [Column("k", form="0"), Column("encoder, with the head", "encoder")]
    columns += [Column("{}", "ours", "1", pm="spread", over="title")]
    return Layout(columns, by=("k", "encoder"))(rows.sort_values("k", kind="stable"))


def figure_2(closed: pd.DataFrame) -> Figure:
    """MAP@k over k, a panel for each family of methods, chance as a line of its own (Fig. 2).

    closed: rows of :func:`values` in the closed gallery, AP by min(k, relevant).
    """
    shown = closed[closed["method"].isin(list(SIDES))].rename(columns={"encoder": "line", "k": "x", "ours": "y"})
    shown = with_level(shown.assign(panel=shown["method"].map(SIDES)))
    panels = list(SIDES.values())
    return lines(shown, xlabel="k (length of the list)", ylabel="MAP@k (%)", panels=panels, height=3.4)


def shots_figure(sizes: pd.DataFrame, baseline: float, k: int) -> Figure:
    """MAP@k over the size of the support and over the number of labels; baseline: of the frozen features, scaled."""
    panels = {"support": "smaller support", "labels": "fewer labels"}
    xlabels = {"smaller support": "support images per class, K", "fewer labels": "labelled images per class"}
    rows = sizes.assign(line=sizes["method"] + ", " + sizes["length"], y=sizes["ours"])
    rows = rows.assign(x=sizes["size"].map(lambda size: str(size or "all")), panel=sizes["sweep"].map(panels))
    rows = with_level(with_level(rows.assign(**{FROZEN: baseline}), FROZEN))
    return lines(rows, xlabel=xlabels, ylabel=f"MAP@{k} (%)", height=3.8)
