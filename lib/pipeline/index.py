"""The state of every table and figure, as one matrix a paper: what lies in ``reports/``, and what a run still needs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from lib import files, paths
from lib.datasets.catalogue import DATASETS
from lib.encoders.models import MODELS
from lib.pipeline import profiles
from lib.results import saved
from lib.results.markdown import markdown_table
from lib.results.papers import PAPERS

NUMBERED = {
    "hyper_dino/retrieval/table_1": "Table 1",
    "hyper_dino/retrieval/table_2": "Table 2, Kather 2016",
    "hyper_dino/retrieval/table_3": "Table 3, BreakHis 40X",
    "hyper_dino/retrieval/table_4": "Table 4, BreakHis 100X",
    "hyper_dino/retrieval/table_5": "Table 5, BreakHis 200X",
    "hyper_dino/retrieval/table_6": "Table 6, BreakHis 400X",
    "hyper_dino/mapper/figure_2": "Fig. 2",
    "hyper_dino/retrieval/figure_3": "Fig. 3",
    "hyper_dino/queries/figure_4": "Fig. 4, Kather 2016",
    "hyper_dino/queries/figure_5": "Fig. 5, BreakHis 40X",
    "hyp_vit/hyperbolicity/table_1": "Table 1",
    "hyp_vit/retrieval/table_2": "Table 2",
    "hyp_vit/retrieval/table_3": "Table 3",
    "hyp_vit/hyperparameters/table_4": "Table 4",
    "hyp_vit/hyperparameters/table_5": "Table 5",
    "hyp_vit/disk/figure_2": "Fig. 2",
    "acir/network/figure_2": "Fig. 2",
    "acir/hashing/table_1": "Table 1",
    "acir/hashing/table_2": "Table 2, ranking",
    "acir/ablations/table_2": "Table 2",
    "acir/novelty/table_3": "Table 3",
    "acir/ablations/table_4": "Table 4",
    "acir/ablations/table_5": "Table 5",
    "acir/hashing/table_6": "Table 6",
    "acir/ranking/table_6": "Table 6, network",
    "acir/cost/table_7": "Table 7",
    "acir/hashing/figure_3": "Fig. 3",
    "acir/novelty/figure_4": "Fig. 4",
    "acir/novelty/figure_5": "Fig. 5",
    "acir/ranking/figure_6": "Fig. 6",
    "linear_prototypes/retrieval/table_1": "Table I",
    "linear_prototypes/retrieval/figure_2": "Fig. 2",
    "linear_prototypes/significance/figure_3": "Fig. 3",
    "linear_prototypes/space/figure_4": "Fig. 4",
    "label_tree/results/table_1": "Table 1, BreakHis",
    "label_tree/results/table_2": "Table 2, ODIR and HAM10000",
    "label_tree/results/table_3": "Table 3, In-Shop and iNaturalist",
    "label_tree/taxonomies/figure_trees": "Fig. 1, tree of BreakHis",
    "label_tree/sweeps/figure_2": "Fig. 2",
}
"""Paper, section and file name → what the paper calls it, in the paper's order; everything else is our addition."""
DIAGRAM = "Fig. 1 is a diagram of the method; notebook [{0:.2}](../notebooks/{0}.ipynb) explains its parts."
NOT_DRAWN = {
    "hyper_dino": DIAGRAM.format("12_hyper_dino_mapper"),
    "hyp_vit": DIAGRAM.format("20_hyp_vit_loss"),
    "acir": "Fig. 1 sketches four difficulties and holds no data, so it is not drawn again; what it names is measured: "
    "representation in notebook [30](../notebooks/30_acir_network.ipynb), classes whose images differ in "
    "[31](../notebooks/31_acir_hashing.ipynb), foreign images in [33](../notebooks/33_acir_novelty.ipynb), "
    "recommendation by content in [34](../notebooks/34_acir_ranking.ipynb).",
    "linear_prototypes": DIAGRAM.format("40_linear_prototypes_plane"),
}
"""Why a paper's Fig. 1 has no row."""
COLUMNS = ["paper", "section", "name", "profile", "dataset", "notebook", "title", "images", "encoder", "link"]
ABOUT = """\
# Every saved table and figure

For each paper, what it numbers comes first, and then what we add. **demo**: drawn tiles, never the paper's numbers. \
**sample**: real images, but fewer than the paper had, or another encoder. **gpu**: the same images, encoder and head \
trained together at the paper's size. **paper**: the paper's own images, encoder \
and epochs. **needs …**: what a run on a dataset lacks. Below each table stand its images and its encoder. Numbers \
like HD-11 or LP-9 are points that a paper leaves open: see the [errata](errata.md). This page is made from `reports/` \
by notebook 00. Speed: [bench](bench/bench.md). Other processors: [bits](bench/bits.md)."""
NOT_HERE = "No dataset is part of this project. Only small tiles of Kather 2016 are shown."
DEMO = "demo"
"""Column of everything made from embedded tiles or from no images at all."""


def written(profile: str) -> Iterator[dict[str, Any]]:
    """The records of all tables and figures of ``profile``, each with ``section`` and ``link`` added."""
    for file in sorted(paths.REPORTS.glob(f"*/{profile}/*/*/{saved.RECORD}"), key=_natural):
        page = file.with_name(saved.PAGE).relative_to(paths.REPORTS).as_posix()
        for name, record in saved.records(file.read_text(encoding="utf-8")).items():
            yield record | {"section": file.parts[-2], "link": f"{page}#{name}"}


def _natural(path: Path) -> str:
    """Sorts numbers in names by their size: tissue_40x before tissue_100x."""
    return re.sub(r"\d+", lambda found: found.group().zfill(4), path.as_posix())


def lacking(built: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """What runs of the sample and the paper profile would make that is not in ``built``.

    A run makes what the demo's run of its notebook makes; ``table`` and ``figure`` stand for the run's own names.
    """
    notebooks, demo = profiles.notebooks(), profiles.runs("demo")
    made = set(zip(built["profile"], built["dataset"], built["notebook"], strict=True))
    for profile in ("sample", "paper"):
        for stage, datasets in profiles.runs(profile).items():
            first, example = next(iter(demo[stage].items()), ("", {}))
            of_demo = (built["profile"] == "demo") & (built["dataset"] == first)
            shown = built[of_demo & (built["notebook"] == notebooks[stage])]
            for dataset, run in datasets.items():
                if (profile, dataset, notebooks[stage]) in made:
                    continue
                own = {example[kind]: run.get(kind, example[kind]) for kind in ("table", "figure") if kind in example}
                for row in shown.to_dict("records"):
                    name = own.get(row["name"], row["name"])
                    yield (
                        row
                        | {"profile": profile, "dataset": dataset, "name": name, "link": "", "encoder": ""}
                        | {"images": f"needs {wanted(dataset, run)}"}
                    )


def wanted(dataset: str, run: dict[str, Any]) -> str:
    """What a run needs that the repository does not hold: images, and weights that have to be downloaded."""
    title = DATASETS[dataset].title if dataset in DATASETS else "a run"
    return f"{title}, weights of {run['encoder']}" if run.get("encoder") in MODELS else title


def overview() -> pd.DataFrame:
    """One row per table or figure and run: :data:`COLUMNS`, label, and whether the paper numbers it.

    What is not there has no link, and ``images`` says what it needs. What the paper numbers comes first, in its order.
    """
    records = [record for profile in ("demo", "sample", "gpu", "paper") for record in written(profile)]
    built = pd.DataFrame(records, columns=COLUMNS)
    rows = pd.concat([built, pd.DataFrame(list(lacking(built)))], ignore_index=True)[COLUMNS]
    key = _key(rows)
    ranks = {known: rank for rank, known in enumerate(NUMBERED)}
    rows = rows.assign(label=key.map(label), numbered=key.isin(ranks), rank=key.map(ranks).fillna(len(ranks)))
    order = ["rank", "notebook", "name"]
    return rows.sort_values(order, kind="stable", ignore_index=True).drop(columns="rank")


def _key(rows: pd.DataFrame) -> pd.Series:
    return rows["paper"] + "/" + rows["section"] + "/" + rows["name"]


def label(key: str) -> str:
    """How the paper calls a table or figure, given as in :data:`NUMBERED`; what we add goes by its word.

    >>> label("hyper_dino/retrieval/table_5"), label("hyper_dino/beyond/figure_leakage")
    ('Table 5, BreakHis 200X', 'Figure: leakage')
    """
    kind, _, rest = key.rpartition("/")[2].partition("_")
    return NUMBERED.get(key, f"{kind.title()}: {rest.replace('_', ' ')}")


def matrix(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per table or figure of one paper, one column for the demo and each dataset.

    What no run has made yet is folded: one row for all of a notebook.
    """
    column = rows["dataset"].where(rows["profile"] != "demo", DEMO)
    columns = [name for name in (DEMO, *DATASETS) if name in set(column)]
    there = rows["link"].ne("").groupby([rows["notebook"], rows["name"]]).transform("any")
    rows = rows.assign(column=column, row=rows["name"].where(there, ""))
    made = set(rows.loc[rows["link"] != "", ["notebook", "column"]].itertuples(index=False, name=None))
    lines = []
    for (notebook, _), block in rows.groupby(["notebook", "row"], sort=False):
        cells = {title_of(c): _cell(block[block["column"] == c], (notebook, c) in made) for c in columns}
        link = f"[{notebook[:2]}](../notebooks/{notebook}.ipynb)"
        named = {"": " · ".join(dict.fromkeys(block["label"])), "what it shows": _about(block.iloc[0])}
        lines.append(named | cells | {"notebook": link})
    return pd.DataFrame(lines)


def title_of(dataset: str) -> str:
    """How the papers call a dataset."""
    return DATASETS[dataset].title if dataset in DATASETS else dataset


def _cell(block: pd.DataFrame, made: bool) -> str:
    """Links, the best profile last; else what is needed, in short; else nothing.

    made: this notebook has a report on this dataset, where nothing is needed that would add the missing one.

    The second table of one profile in a cell goes by its dataset.
    """
    there = block[block["link"] != ""]
    names = there["profile"].where(~there["profile"].duplicated(), there["dataset"])
    links = [f"[{name}]({link})" for name, link in zip(names, there["link"], strict=True)]
    if links or block.empty:
        return " · ".join(links) or "–"
    if made:
        return "not in this report"
    return "needs images, weights" if "weights" in block["images"].iloc[0] else "needs images"


def _about(row: pd.Series) -> str:
    """The title without the names of paper, table and dataset, which head the matrix, the row and the column."""
    title = re.sub(rf",? (on|in|of) ({'|'.join(DATASETS)})\b", "", row["title"])
    return re.sub(r"^(Table|Fig\.) \w+[:,] ", "", title.removeprefix(f"{PAPERS.get(row['paper'], '')}, "))


def missing(rows: pd.DataFrame) -> list[str]:
    """One line for each need: the tables and figures that it would fill."""
    lines = []
    for need, block in rows[rows["link"] == ""].groupby("images", sort=False):
        named = list(dict.fromkeys(block.loc[block["numbered"], "label"]))
        added = len(block.loc[~block["numbered"], ["notebook", "name"]].drop_duplicates())
        ours = [f"{added} that we add"] if added else []
        where = " and ".join(sorted(set(block["profile"])))
        lines.append(f"- {need} (profile {where}): {'; '.join([*named, *ours])}")
    return lines


def matrices(rows: pd.DataFrame) -> str:
    """A matrix for each paper in ``rows``."""
    parts = []
    for paper, title in PAPERS.items():
        block = rows[rows["paper"] == paper]
        if len(block):
            parts += [f"## {title}", *filter(None, [NOT_DRAWN.get(paper)])]
            parts.append(markdown_table(matrix(block)))
        if lines := missing(block):
            parts += ["Not here yet; `make plan PROFILE=paper` says how to get it:", "\n".join(lines)]
    return "\n\n".join(parts)


def licences() -> str:
    """The datasets of the papers, each once, with its licence and address."""
    rows = [
        {
            "dataset": facts.title,
            "licence": facts.licence,
            "address": f"https://doi.org/{facts.doi}" if facts.doi else facts.page,
        }
        for name, facts in DATASETS.items()
        if name not in paths.DRAWN and facts.licence
    ]
    return markdown_table(pd.DataFrame(rows).drop_duplicates("address"))


def markdown(rows: pd.DataFrame) -> str:
    """``reports/index.md``: a matrix for each paper, what is missing below it, and the licences of the datasets."""
    return f"{ABOUT}\n\n{matrices(rows)}\n\n## Datasets and their licences\n\n{NOT_HERE}\n\n{licences()}\n"


def write() -> pd.DataFrame:
    """Write ``reports/index.md``; returns the overview."""
    rows = overview()
    _write(markdown(rows), paths.REPORTS / "index.md")
    return rows


def write_own(name: str) -> Path:
    """Write ``reports/own-<name>.md``, a list of what there is for the own dataset ``name``; returns its path."""
    rows = pd.DataFrame([record for record in written("own") if record["dataset"] == name])
    rows["label"] = _key(rows).map(label)
    lines = [f"- [{row['label']}, {row['title']}]({row['link']})" for row in rows.to_dict("records")]
    target = paths.REPORTS / f"own-{name}.md"
    about = "Tables and figures of your own images. None of this is under version control."
    _write("\n".join([f"# {name}", "", about, "", *lines, ""]), target)
    return target


def _write(text: str, target: Path) -> None:
    with files.whole(target) as draft:
        draft.write_text(text, encoding="utf-8")
