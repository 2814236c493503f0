"""The texts that :mod:`lib.pipeline.readme` writes: the README's generated parts and the page of all findings."""

from collections.abc import Callable

import pandas as pd

from lib import files, paths
from lib.pipeline import citing, curvature, findings, front, index, scores
from lib.results import paired
from lib.results.markdown import markdown_table

START, END = "<!-- findings -->", "<!-- /findings -->"
PAPERS_START, PAPERS_END = "<!-- papers -->", "<!-- /papers -->"
PAGE = paths.REPORTS / "findings.md"
WORDS = f"""\
* **Plain features**: the numbers that the frozen network (the *encoder*) gives an image, compared by their angle \
(cosine). **Head**: the small trained network on top. **Linear classifier**: a single trained layer; images are \
compared by its class probabilities.
* **First answer** (MAP@{findings.FIRST}): how often the nearest image has the query's class, in percent. **List of \
{findings.LIST}** (MAP@{findings.LIST}): how many of the nearest {findings.LIST} have it, and how early they come.
* **÷ min(k, R)**: the average precision of a list of k is divided by min(k, R), where R is how many images of the \
query's class there are. Images that the list missed cost points. **÷ hits**: it is divided by the right images in the \
list, so missing ones cost nothing. If neither is named, it is ÷ min(k, R).
* **Group**: all images of one patient (BreakHis), slide (Kather) or lesion (HAM10000). Other lesions of the same \
person stay in the archive. **By image**: the query's own group may be in the archive. **By group**: it never is.
* **Closed archive**: the training images. **Open archive**: images of other groups, which nothing was trained on. \
**Whole archive**: all images of other groups.
* **Difference**: in points (percentage points), averaged per group first. Scores are means over queries, so two \
scores do not subtract to a difference. **Classes alike**: averaged per class first, so a rare class counts as much as \
a frequent one. **Untested**: no test was made.
* **Clear**, printed **bold**: p ≤ 0.05 after Holm's correction for the number of tests. A bold minus is a clear loss.
* **Could have shown**, in brackets: (3.1) says that the difference is not clear, and that about 3.1 points would be \
the least to be so: the first step of Holm's correction asks for that, later ones for a little less. (none): with so \
few groups for so many tests, no difference could have been clear. Such a dataset does not count as a no.
* **Ball**: curved (hyperbolic) space, drawn inside a ball. **Flat**: the same head in ordinary space, with half the \
margin, as distances in the ball are twice as long near its centre. **Sphere**: the same head on a sphere.
* **Rim**: the edge of the ball, where a head gets stuck. (rim): over {paired.MOST_AT_RIM:g} % of its training images \
lie there. The difference is shown but counts as neither win nor loss.
* **F1** (macro F1): how well classes are told apart by the first answer, or by the majority of the nearest 3 or 5."""
LEAKAGE = """\
![MAP@k of BreakHis at 200X with and without the query's own group](hyper_dino/sample/bh200x/beyond/figure_leakage.png)

*Finding 1 on BreakHis at 200X: MAP@k with (dot) and without (square) images of the query's own group, averaged per \
group first. No mapper: principal components without a head.*"""
DIFFERENCES = """\
Each row is one difference, ÷ min(k, R) if nothing else is said. Findings 1 to 3 are about the closed archive, finding \
4 about the open one. Findings 2 to 4 are by group (birds: by image). From notebooks \
[16](../notebooks/16_hyper_dino_beyond.ipynb) (findings 1, 2, 4), [13](../notebooks/13_hyper_dino_retrieval.ipynb) (3) \
and [90](../notebooks/90_beyond_factors.ipynb) (larger margins, 5)."""
WAITS = {
    "own-group rows average over all groups, also those with a single image": ("n_queries", findings.LEAKAGE),
    "in notebook 90 likewise, if there are own-group rows": ("n_queries", findings.FACTORS),
    "macro F1 is missing, which notebook 13 computes anew": ("archive", findings.VOTES),
    "class means average each fold first": ("class_chance", findings.SCORES),
    "with classes alike, a class is the mean of its groups, not of its queries": (
        "metric",
        *(findings.BY_CLASS, findings.FACTORS_BY_CLASS, ("acir", "hashing", "table_tests_by_class")),
    ),
    "in notebooks 22, 23 and 24 a learning rate is the best of one training, not the middle of the best of three": (
        "within",
        *(("hyp_vit", section, "table_rates") for section in ("retrieval", "hyperparameters", "disk")),
    ),
    "in 30, 31 and 32 likewise": (
        "within",
        *(("acir", section, "table_rates") for section in ("network", "hashing", "ablations")),
    ),
}
"""What a report of real images may be older than → the column that newer ones have, and the tables."""
SCORED = """\
A cell reads: plain features → with the head, percent, averaged over queries, folds and five trainings. The findings \
average per group first, so signs may differ. **Published**: the best printed values, with other encoders and all \
images; how they kept patients apart is not known."""
BALANCED = " Its list is MAP@15, from balanced queries: as many of every class."
CURVED = """\
How often the ball is better or worse than the same head in flat space or on the sphere. A test is one dataset, list \
length and head, ÷ min(k, R). The tests are not independent: many are of the same heads. **Not clear**: no clear \
difference, though the dataset could have shown one. **Could not tell**: no difference could have been clear. Class \
means and heads at the rim are not counted."""
LEFT_OUT = "\n".join(f"* {'/'.join(section)} is left out: {why}." for section, why in curvature.LEFT_OUT.items())
CLAIMED = {
    "hyp_vit": "Recall@1: how often the nearest image shows the same species or lesion, none of which was trained on. "
    "It is not a diagnosis. Sph: the same head on the sphere.",
    "acir": "Codes of 16 bits. CSQ: a rival loss with fixed codes for the classes. Untested: a difference of means "
    "over queries.",
    "label_tree": "The paper's own claim comes first: PC-Order, how often the mean of an image's own branch is nearer "
    "than that of any other branch. (Its violations are the rest, except for ties.) Top-1: how often a linear "
    "classifier of the embeddings names the class. HF1: F1 of the branches and class that it names, so a near relative "
    "costs less. SupCon: a loss without a tree. Birds by image, others by group.",
}


def part() -> str:
    """The README's generated findings, markers included, and the images that they are of."""
    texts = "\n".join(f"{n}. {text}" for n, text in enumerate(front.four(), start=1))
    return "\n\n".join([START, texts, f"*{front.images()}.*", END])


def waits() -> list[str]:
    """In what reports of real images are older than the code, and which: what the next build of the sample mends."""
    lines = []
    for clause, (column, *places) in WAITS.items():
        old = dict.fromkeys(title for place in places for title in findings.older(place, column))
        lines += [f"{clause} ({', '.join(old)})"] * bool(old)
    return lines


def page() -> str:
    """The page of all findings: the words, the findings in full, and the tables of each paper."""
    parts = ["# What the committed reports of real images show", "## The words", WORDS, "## Hyper-DINO"]
    texts = findings.findings()
    texts[1] = f"{texts[1]} {curvature.sentence()}"
    parts.append("\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1)))
    parts += [
        "### The differences behind these findings",
        DIFFERENCES,
        _table(findings.differences(), "finding", "difference"),
    ]
    parts += _scored("hyper_dino", SCORED)
    parts += ["## Linear prototypes", *_scored("linear_prototypes", SCORED + BALANCED)]
    for paper, text in CLAIMED.items():
        columns = ["method and measure", "images", "method's score"]
        parts += [f"## {index.PAPERS[paper]}", text, _table(scores.claims(paper), *columns)]
    parts += ["## Curved space, loss by loss", CURVED, LEFT_OUT, _table(curvature.table(), "loss")]
    if old := waits():
        again = "Some reports are older than the code. `make reproduce PROFILE=sample` makes them anew. Until then:"
        parts += ["## Reports that are older than the code", again, "\n".join(f"* {clause}" for clause in old)]
    return "\n\n".join(parts) + "\n"


def _scored(paper: str, text: str) -> list[str]:
    """A paper's scores, without columns in which nothing stands; the encoder, which is one, in the text."""
    rows = scores.table().query("paper == @index.PAPERS[@paper]")
    (encoder,) = rows["encoder"].unique()
    rows = rows.drop(columns=["paper", "encoder"])
    return [f"### Scores of {encoder}", text, _table(rows.loc[:, (rows != "–").any()])]


def _table(rows: pd.DataFrame, *columns: str) -> str:
    return markdown_table(once(rows, list(columns)))


def once(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The rows without what a cell of these columns repeats from the row above, if all columns before it repeat too.

    >>> rows = pd.DataFrame({"paper": ["ACIR", "ACIR", "Hyp-ViT"], "k": [1, 1, 1]})
    >>> once(rows, ["paper", "k"]).to_numpy().tolist()
    [['ACIR', '1'], ['', ''], ['Hyp-ViT', '1']]
    """
    texts = rows[columns].astype(str)
    again = (texts == texts.shift()).cummin(axis=1)
    return rows.assign(**texts.mask(again, ""))


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
