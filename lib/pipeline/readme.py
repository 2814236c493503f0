"""The generated part of the README: one picture, four findings, two tables, every number read from ``reports/``.

``python -m lib.pipeline.readme`` writes it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib import files, paths
from lib.papers.hyper_dino.published import TABLES, headlines, published
from lib.papers.linear_prototypes.published import DATASETS as THEIR_NAMES
from lib.papers.linear_prototypes.published import PT, TL, gains
from lib.pipeline import index, profiles
from lib.results.markdown import markdown_table, percent, points

START, END = "<!-- made from reports/ -->", "<!-- end of what is made from reports/ -->"
PICTURES = (("sample", "bh200x"), ("demo", "tissue"))  # the first that is there
OTHER_MAGNIFICATIONS = paths.DRAWN[1:]
TABLES_OF = {"hyper_dino": "table_opponents", "linear_prototypes": "table_results"}
PLAIN, CLASSIFIER, LOGITS = "raw features, cosine", "linear classifier, probability", "linear classifier, logits"
LEVEL = 0.05
CELLS = [f"{where}: {what}" for where in ("by image", "by group", "published") for what in ("first", "list")]
COUNTED = (
    "Hyper-DINO on real images, points averaged per group first; 2 to 4 by group, 1 to 3 in an archive that the head "
    f"learnt from. A lesion mostly has one image. A dataset counts where p ≤ {LEVEL} over groups and trainings, after "
    "Holm: [16](notebooks/16_hyper_dino_beyond.ipynb) (1, 2, 4), [13](notebooks/13_hyper_dino_retrieval.ipynb) (3)."
)
NOTE = (
    "Plain features → with the head, percent, over images and five trainings (above: over groups first; signs may "
    "differ). *First*: MAP@1. *List*: MAP@20 (prototypes: MAP@15, balanced queries). *Published*: the best printed; "
    "other encoders, all images, patient rule unknown."
)
MORE = (
    "The other papers by their own measures, by group, five trainings: Recall@1 of categories (HAM10000: lesions) that "
    "nobody learnt, MAP@100 of codes of 16 bits, HF1 (mistakes inside the family cost less). HWC+LAM: our form, on the "
    "sphere. *Difference*: averaged per group first; *by class*: each class alike (– untested); bold: clear after Holm."
)


@dataclass(frozen=True)
class Claim:
    """What a paper's README row shows: a measure, and its method, features as they are, and the rival that it names.

    Rows are those of the section's table where the columns of ``where`` have these values; ``of`` are those of its
    ``table_tests`` (first, second, and columns), ``by_class`` of its tests of class means, and ``classes`` their table.
    """

    section: str
    tables: tuple[str, ...]
    measure: str
    where: Mapping[str, Any]
    plain: str
    ours: str
    rival: str
    of: Mapping[str, Any] = field(default_factory=dict)
    classes: str = "table_tests"
    by_class: Mapping[str, Any] = field(default_factory=dict)


CLAIMS = {
    "hyp_vit": Claim(
        "retrieval",
        ("table_2",),
        "Recall@1",
        {"k": 1},
        "no head",
        "Hyp",
        "Sph",
        {"first": "Hyp", "second": "Sph", "k": 1},
    ),
    "acir": Claim(
        "hashing",
        ("table_1_min",),
        "MAP@100",
        {"gallery": "closed", "bits": [16, np.nan]},
        "features, no code",
        "ACIR",
        "CSQ",
        {"first": "ACIR-16bit", "second": "CSQ-16bit"},
        "table_tests_by_class",
        {"first": "ACIR-16bit", "second": "CSQ-16bit"},
    ),
    "label_tree": Claim(
        "results",
        ("table_1", "table_2", "table_3", "table_results"),
        "HF1",
        {"measure": "hf1"},
        "no head",
        "HWC+LAM (Euclidean)",
        "SupCon (Euclidean)",
        {"first": "HWC+LAM (Euclidean)", "second": "SupCon (Euclidean)", "measure": "HF1"},
        by_class={"first": "HWC+LAM (Euclidean)", "second": "SupCon (Euclidean)", "measure": "HF1, class mean"},
    ),
}


def table() -> pd.DataFrame:
    """One row for each paper and dataset that is built: paper, images, encoder and :data:`CELLS`.

    Drawn tiles stand only where a paper has no real images.
    """
    lines = []
    for paper in TABLES_OF:
        lines += _rows(paper, "sample") or _rows(paper, "demo")
    return pd.DataFrame(lines)


def _rows(paper: str, profile: str) -> list[dict[str, str]]:
    lines = []
    for dataset in profiles.runs(profile)[f"{paper}_retrieval"]:
        file = paths.report(paper, profile, dataset, "retrieval") / f"{TABLES_OF[paper]}.csv"
        if file.exists() and dataset not in OTHER_MAGNIFICATIONS:
            record = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
            named, count, *_, groups = record["images"].split(", ")
            encoder = record["encoder"].partition(" (")[0]  # the first, which leads
            shown = named if paper != next(iter(TABLES_OF)) and profile == "sample" else f"{named}, {count}, {groups}"
            about = {"paper": index.PAPERS[paper], "images": shown, "encoder": encoder}
            ours = _ours(paper, pd.read_csv(file).query("metric == 'ap_min'"), encoder)
            theirs = _published(paper, dataset) if profile == "sample" else {}
            lines.append(about | dict.fromkeys(CELLS, "–") | ours | theirs)
    return lines


def others() -> pd.DataFrame:
    """One row for each of :data:`CLAIMS` and real dataset that is built."""
    lines = []
    for paper, claim in CLAIMS.items():
        for dataset in profiles.runs("sample")[f"{paper}_{claim.section}"]:
            folder = paths.report(paper, "sample", dataset, claim.section)
            files_of = [file for name in claim.tables if (file := folder / f"{name}.csv").exists()]
            if files_of:
                record = json.loads(files_of[0].with_suffix(".json").read_text(encoding="utf-8"))
                rows = chosen(pd.read_csv(files_of[0]), claim.where).set_index("method")["ours"]
                gains = {"difference": ("table_tests", claim.of), "by class": (claim.classes, claim.by_class)}
                about = {"paper": index.PAPERS[paper], "images": record["images"].partition(",")[0]}
                names = {"plain": claim.plain, _named("ours"): claim.ours, _named("rival"): claim.rival}
                cells = {"measure": claim.measure} | {column: percent(rows[name]) for column, name in names.items()}
                lines.append(about | cells | {column: _gain(folder, *of) for column, of in gains.items()})
    return pd.DataFrame(lines)


def _gain(folder: Path, name: str, of: Mapping[str, Any]) -> str:
    """The difference of the only test of a table where the columns have these values, bold if clear; a dash if none."""
    tests = chosen(pd.read_csv(folder / f"{name}.csv"), of)
    if not of or tests.empty:
        return "–"
    (test,) = tests.to_dict("records")
    gain = points(test["difference"])
    return f"**{gain}**" if test["p_holm"] <= LEVEL else gain


def _named(which: str) -> str:
    """The methods of all papers, without their geometry: the head of a column."""
    return ", ".join(getattr(claim, which).removesuffix(" (Euclidean)") for claim in CLAIMS.values())


def chosen(rows: pd.DataFrame, where: Mapping[str, Any]) -> pd.DataFrame:
    """The rows that have these values; of a list of values any (NaN among them: where there is none).

    >>> chosen(pd.DataFrame({"bits": [16, 64, float("nan")]}), {"bits": [16, float("nan")]}).index.to_list()
    [0, 2]
    """
    for column, value in where.items():
        rows = rows[rows[column].isin(np.atleast_1d(value))]
    return rows


def _ours(paper: str, rows: pd.DataFrame, encoder: str) -> dict[str, str]:
    """The features as they are, compared by cosine, and with the paper's head.

    Hyper-DINO: test images of both fold rules; linear prototypes: queries of groups that nothing was fitted on.
    """
    if paper == "hyper_dino":
        head = next(name for name in rows["method"] if name.startswith("Hyper-DINO("))
        ways, where = rows["method"].map({PLAIN: "plain", head: "head"}), rows["rule"]
    else:
        rows = rows.query("gallery == 'closed' and encoder == @encoder")
        ways, where = rows["method"].map({PT: "plain", TL: "head"}), pd.Series("by group", rows.index)
    where = where.where(where == "by image", "by group")
    values = rows.assign(way=ways, where=where).pivot_table(index=["where", "k"], columns="way", values="ours")
    return {f"{rule}: {what}": arrow(**best) for rule in set(where) for what, best in _ends(values.loc[rule])}


def _ends(values: pd.DataFrame) -> list[tuple[str, dict[str, float]]]:
    """The rows of the smallest and of the largest k."""
    return [("first", dict(values.loc[values.index.min()])), ("list", dict(values.loc[values.index.max()]))]


def _published(paper: str, dataset: str) -> dict[str, str]:
    """The best published rows for a dataset; nothing where the paper has none."""
    if paper == "hyper_dino" and dataset in TABLES:
        best = published(dataset).pivot_table(index="k", columns="family", values="published", aggfunc="max")
        best = best.reindex(columns=["baseline", "32"]).set_axis(["plain", "head"], axis=1)
        in_text = headlines().set_index("dataset")["baseline"]  # the table of BreakHis 200X has no baseline
        best["plain"] = best["plain"].fillna(pd.Series({20: in_text[dataset]}))
        return {f"published: {what}": arrow(**cells) for what, cells in _ends(best)}
    if paper == "linear_prototypes" and dataset in THEIR_NAMES:
        best = gains().set_index("dataset").loc[THEIR_NAMES[dataset]]
        return {"published: list": arrow(best["pt"], best["tl"])}
    return {}


def arrow(plain: float, head: float) -> str:
    """``plain → head``, or only the second where the first is not printed.

    >>> arrow(88.46, 94.61), arrow(float("nan"), 78.91)
    ('88.46 → 94.61', '78.91')
    """
    return percent(head) if np.isnan(plain) else f"{percent(plain)} → {percent(head)}"


def paired(section: str, name: str) -> pd.DataFrame:
    """A table of a section of Hyper-DINO, of all real datasets that have it; ``title``: its first name."""
    found = []
    for dataset in profiles.runs("sample")[f"hyper_dino_{section}"]:
        file = paths.report("hyper_dino", "sample", dataset, section) / f"{name}.csv"
        if file.exists():
            found.append(pd.read_csv(file).assign(title=index.title_of(dataset).partition(" ")[0]))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def findings() -> list[str]:
    """Four sentences; how many datasets say so follows from the tests, as do all numbers."""
    leak, control = paired("beyond", "table_leakage"), paired("beyond", "table_control_tests")
    leak, gains = leak.assign(difference=-leak["difference"]), paired("retrieval", "table_tests")
    head, plain = (leak[(leak["method"] == method) & (leak["k"] == 20)] for method in ("ball", "no mapper"))
    by_group = "rule != 'by image' and k == 20"
    curved = control.query(f"{by_group} and first == 'ball' and second == 'flat, half margin'")
    first = gains.query("rule != 'by image' and k == 1 and second == @PLAIN")
    long, fair = (gains.query(f"{by_group} and second == @who") for who in (PLAIN, CLASSIFIER))
    unseen = paired("beyond", "table_gallery_tests").query("rule == 'open' and k == 20")
    bare, flat, logit = (unseen[unseen["second"] == name] for name in ("no mapper", "flat, half margin", LOGITS))
    alike = even = ""
    if len(rare := paired("retrieval", "table_tests_by_class")):
        same, other = (rare.query(f"{by_group} and second == @who") for who in (PLAIN, CLASSIFIER))
        alike = f" With every class counting alike, on {wins(same)}: {listed(same)}."
        even = f"; every class alike, on {wins(other)} and {losses(other)}: {listed(other)}"
    return [
        f"**Part of the head's score comes from other images of the query's own group, on {wins(head)} datasets.** "
        f"What they add to MAP@20 of the head and of principal components: {listed(head, plain)}.",
        f"**Curvature helps on {wins(curved)} datasets.** MAP@20 in the ball minus that of the same head in flat "
        f"space: {listed(curved)}.",
        f"**The head beats the plain features on {wins(long)} datasets over a list of 20, on {wins(first)} for the "
        f"first answer.** Its gain in MAP@20, and in MAP@1: {listed(long, first)}.{alike} Against a linear "
        f"classifier's probabilities it wins on {wins(fair)} and loses on {losses(fair)}: {listed(fair)}{even}."
        f"{voted()}",
        f"**In an archive that nobody learnt from, the head helps on {wins(bare)} datasets.** Its gain in MAP@20 over "
        f"principal components: {listed(bare)}. Against flat space it wins on {wins(flat)} and loses on "
        f"{losses(flat)}, against a classifier's logits on {wins(logit)} and {losses(logit)}: {listed(flat, logit)}.",
    ]


def voted() -> str:
    """Macro F1 of the first answer with the query's group left out, of the head and of plain features; not tested."""
    if (found := paired("retrieval", "table_patients")).empty:
        return ""
    first = found[found["k"] == found["k"].min()]
    heads, plain = first[first["method"].str.startswith("Hyper-DINO(")], first[first["method"] == PLAIN]
    values = zip(heads["macro_f1"], plain["macro_f1"], heads["title"], strict=True)
    told = ", ".join(f"{ours:.1f} (plain: {theirs:.1f}) on {title}" for ours, theirs, title in values)
    return f" Untested, the group left out, macro F1 of the first answer: {told}."


def wins(rows: pd.DataFrame) -> str:
    """On how many datasets the difference is above 0 and clear (p after Holm at most :data:`LEVEL`).

    >>> wins(pd.DataFrame({"difference": [2.0, 1.0, -3.0], "p_holm": [0.01, 0.2, 0.01]}))
    '1 of 3'
    """
    return f"{((rows['difference'] > 0) & (rows['p_holm'] <= LEVEL)).sum()} of {len(rows)}"


def losses(rows: pd.DataFrame) -> str:
    """On how many the difference is below 0 and clear, as :func:`wins`."""
    return wins(rows.assign(difference=-rows["difference"])).partition(" of ")[0]


def listed(*tests: pd.DataFrame) -> str:
    """The differences of one or two kinds of tests on each dataset.

    >>> listed(pd.DataFrame({"title": ["Kather"], "difference": [1.5]}), pd.DataFrame({"difference": [-2.0]}))
    '+1.50 and -2.00 on Kather'
    """
    values = zip(*(rows["difference"].map(points) for rows in tests), strict=True)
    return ", ".join(
        f"{' and '.join(found)} on {title}" for found, title in zip(values, tests[0]["title"], strict=True)
    )


def picture() -> tuple[Path, dict[str, Any]]:
    """What the query's own group is worth: the file and where it comes from."""
    choices = [paths.report("hyper_dino", *run, "beyond") / "figure_leakage.png" for run in PICTURES]
    file = next(path for path in choices if path.exists())
    return file, json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))


def part() -> str:
    """The generated part, markers included."""
    (file, record), rows = picture(), table()
    drawn = pd.read_csv(file.with_suffix(".csv"))
    by_group = np.allclose(drawn["by_group"] - drawn["by_image"], drawn["difference"], atol=0.01)
    caption = (
        "*MAP@k with (dot) and without (square) images of the query's own group. No mapper: principal "
        "components. Ball: Hyper-DINO. Flat: its head, not curved. "
        f"Averaged over {'groups first, as below' if by_group else 'images; the findings below over groups first'}. "
        f"{profiles.PROFILES[record['profile']].capitalize()}, {record['images']}, encoder "
        f"{record['encoder']}.*"
    )
    return "\n\n".join(
        [
            START,
            f"![{record['title']}]({file.relative_to(paths.ROOT).as_posix()})",
            caption,
            "\n".join(f"{number}. {finding}" for number, finding in enumerate(findings(), start=1)),
            COUNTED,
            markdown_table(rows.drop(columns="encoder") if rows["encoder"].nunique() == 1 else rows),
            NOTE,
            markdown_table(others()),
            MORE,
            END,
        ]
    )


def filled(text: str) -> str:
    """``text`` of the README with its generated part made anew.

    >>> filled(f"before {START} old {END} after") == f"before {part()} after"
    True
    """
    before, _, rest = text.partition(START)
    return before + part() + rest.partition(END)[2]


def update() -> None:
    """Bring the README's generated part up to date."""
    readme = paths.ROOT / "README.md"
    text = filled(readme.read_text(encoding="utf-8"))
    with files.whole(readme) as draft:
        draft.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    update()
