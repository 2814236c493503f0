"""The texts that :mod:`lib.pipeline.readme` writes: the README's generated parts and the page of all findings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib import files, paths
from lib.pipeline import citing, curvature, findings, index, profiles, scores
from lib.results import paired, saved
from lib.results.markdown import markdown_table

START, END = "<!-- made from reports/ -->", "<!-- end of what is made from reports/ -->"
PAPERS_START, PAPERS_END = "<!-- made from CITATION.cff -->", "<!-- end of what is made from CITATION.cff -->"
PICTURES = (("sample", "bh200x"), ("demo", "tissue"))  # the first that is there
PAGE = paths.REPORTS / "findings.md"
PLACE = (
    "Points are of MAP@20 unless *first answer* (MAP@1) is said. *Clear*: p ≤ 0.05 after Holm's correction. *Could "
    "have shown X*: no difference below X points could have come out clear, and a larger one may still be missed. "
    "Only a set that could have shown a difference counts as a no. The differences, and one table a paper: "
    "[reports/findings.md](reports/findings.md)."
)
BRACKETS = """\
**Bold**: clear, p ≤ 0.05 after Holm's correction. (3.1): not clear, and nothing below 3.1 points could have been. \
(none): not clear, and with so few groups no difference, however large, could have been. Differences are averaged per \
group first, scores over queries: two scores here do not subtract to a difference."""
COUNTED = f"""\
A cell is points at MAP@{findings.FIRST}/MAP@{findings.LIST}, AP divided by min(k, R), R the images of the query's \
class. *Own group*: with images of the query's group in the archive, minus without. *A, not B*: A minus B. {BRACKETS} \
(rim): over {paired.MOST_AT_RIM:g} % of the head's images lie at the rim; shown, but no win or loss. 2 to 4 are by \
group (birds: by image); 1 to 3 in the archive that the head learnt from. *Flat*: uncurved, half the margin, as the \
ball's distance is twice the flat one near the centre. *Classifier*: linear, compared by class probability. Notebooks \
[16](../notebooks/16_hyper_dino_beyond.ipynb) (1, 2, 4), [13](../notebooks/13_hyper_dino_retrieval.ipynb) (3), \
[90](../notebooks/90_beyond_factors.ipynb) (margins, 5). A lesion of HAM10000 is not a patient: other lesions of the \
same person stay in the archive."""
OLDER = "HXE weighs fine levels more here: from before its levels were turned round (LT-20)."
"""What captions of real images say whose HXE is the earlier one."""
WAITS = {
    "own-group rows average over all groups, also those with a single image": (findings.LEAKAGE, "n_queries"),
    "macro F1 is missing, which notebook 13 computes anew": (findings.VOTES, "archive"),
    "class means average each fold first": (findings.SCORES, "class_chance"),
    "with classes alike, a class is the mean of its groups, not of its queries": (findings.BY_CLASS, "metric"),
    "the best learning rate is taken, not the middle one of the best": (("acir", "hashing", "table_rates"), "within"),
}
"""What a report of real images may be older than → the table, and the column that newer ones have."""
SCORED = """\
Plain features → with the head, percent, over folds and five trainings. Findings average over groups first, this over \
queries: signs may differ. *First*: MAP@1. *List*: MAP@20 (prototypes: MAP@15, balanced queries). *Published*: best \
printed; other encoders, all images, patient rule unknown."""
CURVED = """\
Curved heads against the same head in flat space or on the sphere, over datasets and list lengths, by min(k, R). The \
tests are not independent: measures, margins and lengths of the same heads. *Even*: not clear, on a set that could \
have shown a difference. *Untold*: on one that could not. """ + "; ".join(
    f"{'/'.join(section)} is left out: {why}" for section, why in curvature.LEFT_OUT.items()
)
CLAIMED = {
    "hyp_vit": "Another photograph of a species or lesion that nobody learnt from, not diagnosis. Sph: the sphere.",
    "acir": "16-bit codes. CSQ: fixed codes. Untested: means over queries.",
    "label_tree": "By its claim first: PC-Order, of which violations are the complement but for ties. SupCon: no tree. "
    "Birds by image, others by group.",
}


def picture() -> tuple[Path, dict[str, Any]]:
    """What the query's own group is worth: the file and where it comes from."""
    choices = [paths.report("hyper_dino", *run, "beyond") / "figure_leakage.png" for run in PICTURES]
    file = next(path for path in choices if path.exists())
    return file, saved.record(file)


def part() -> str:
    """The README's generated results, markers included."""
    file, record = picture()
    drawn = pd.read_csv(file.with_suffix(".csv"))
    by_group = np.allclose(drawn["by_group"] - drawn["by_image"], drawn["difference"], atol=0.01)
    caption = (
        "*MAP@k with (dot) and without (square) images of the query's own group. No mapper: principal components. "
        f"Averaged over {'groups first' if by_group else 'images; the findings below over groups first'}. "
        f"{profiles.PROFILES[record['profile']].capitalize()}, {record['images'].partition(',')[0]}.*"
    )
    texts = findings.findings()
    texts[1] = f"{texts[1]} {curvature.sentence()}"
    numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1))
    image = f"![{record['title']}]({file.relative_to(paths.ROOT).as_posix()})"
    place = f"{PLACE} Some reports are older than the definitions of today: that page says which." if waits() else PLACE
    return "\n\n".join([START, image, caption, numbered, place, END])


def waits() -> list[str]:
    """In what reports of real images are older than the code, and which: what the next build of the sample mends."""
    lines = []
    for clause, (place, column) in WAITS.items():
        old = older(place, column)
        lines += [f"{clause} ({', '.join(old)})"] * bool(old)
    places = paths.REPORTS.glob("label_tree/sample/*/results/table_tests.csv")
    old = [file.parts[-3] for file in sorted(places) if OLDER in saved.record(file)["caption"]]
    names = ", ".join(index.title_of(name).partition(" ")[0] for name in old)
    return lines + [f"HXE weighs fine levels more ({names})"] * bool(old)


def older(place: tuple[str, str, str], column: str) -> list[str]:
    """The datasets whose committed table of real images lacks a column that newer ones have."""
    rows = findings.read(place)
    return list(rows["title"][rows[column].isna() if column in rows else slice(None)].unique())


def page() -> str:
    """The page of all findings: the differences, and one table a paper."""
    rows = scores.table()
    parts = ["# What the committed reports of real images show"]
    if old := waits():
        parts.append(f"Older than the code, until `make reproduce PROFILE=sample` makes them anew: {'; '.join(old)}.")
    parts += ["## Hyper-DINO: the findings' differences", _table(findings.differences(), ""), COUNTED]
    for paper in scores.TABLES_OF:
        of_paper = rows[rows["paper"] == index.PAPERS[paper]].drop(columns="paper")
        parts += [f"## {index.PAPERS[paper]}: scores", _table(of_paper), SCORED]
    for paper, text in CLAIMED.items():
        parts += [f"## {index.PAPERS[paper]}", _table(scores.claims(paper), "method", "measure"), f"{text} {BRACKETS}"]
    parts += ["## Curvature, loss by loss", _table(curvature.table(), "loss"), f"{CURVED}."]
    return "\n\n".join(parts) + "\n"


def _table(rows: pd.DataFrame, *columns: str) -> str:
    return markdown_table(once(rows, list(columns)))


def once(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The rows without what a cell of these columns repeats from the row above.

    >>> once(pd.DataFrame({"paper": ["ACIR", "ACIR", "Hyp-ViT"], "k": [1, 1, 1]}), ["paper"])["paper"].to_list()
    ['ACIR', '', 'Hyp-ViT']
    """
    return rows.assign(**{name: rows[name].astype(str).mask(rows[name] == rows[name].shift(), "") for name in columns})


def papers() -> str:
    """The generated list of papers and notebooks, markers included."""
    return "\n\n".join([PAPERS_START, citing.listed(), PAPERS_END])


def filled(text: str) -> str:
    """``text`` of the README with its generated parts made anew.

    >>> before = f"results {START} old {END} papers {PAPERS_START} old {PAPERS_END} after"
    >>> filled(before) == f"results {part()} papers {papers()} after"
    True
    """
    return _anew(_anew(text, START, END, part), PAPERS_START, PAPERS_END, papers)


def _anew(text: str, start: str, end: str, made: Callable[[], str]) -> str:
    """``text`` with what stands from ``start`` to ``end`` made anew."""
    before, _, rest = text.partition(start)
    return before + made() + rest.partition(end)[2]


def update() -> None:
    """Bring the README's generated parts and the page of findings up to date."""
    readme = paths.ROOT / "README.md"
    for file, text in {readme: filled(readme.read_text(encoding="utf-8")), PAGE: page()}.items():
        with files.whole(file) as draft:
            draft.write_text(text, encoding="utf-8")
