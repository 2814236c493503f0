"""The generated parts of the README: what it shows, every number read from ``reports/``, and what is to be cited.

``python -m lib.pipeline.readme`` writes them.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib import errors, files, paths
from lib.pipeline import citing, profiles, scores
from lib.pipeline.findings import LARGE, differences, findings
from lib.results.markdown import markdown_table

START, END = "<!-- made from reports/ -->", "<!-- end of what is made from reports/ -->"
PAPERS_START, PAPERS_END = "<!-- made from CITATION.cff -->", "<!-- end of what is made from CITATION.cff -->"
PICTURES = (("sample", "bh200x"), ("demo", "tissue"))  # the first that is there
COUNTED = (
    f"Points gained by Hyper-DINO, averaged per group first. **Bold**: clear, p ≤ {scores.LEVEL} after Holm's "
    "correction; only that counts above. 2 to 4 by group; 1 to 3 in the archive that the head learnt "
    "from. *Flat*: uncurved. *Classifier*: linear, compared by probabilities "
    "(3) or raw scores (4). *F1*: first answer, hits and false alarms in one, classes alike, untested. Notebooks "
    "[16](notebooks/16_hyper_dino_beyond.ipynb) (1,2,4), [13](notebooks/13_hyper_dino_retrieval.ipynb) (3), "
    f"[90](notebooks/90_beyond_factors.ipynb) (margin {LARGE})."
)
NOTE = (
    "Plain features → with the head, percent, over folds and five trainings. Findings average over groups first, this "
    "over queries: signs may differ. *First*: MAP@1. *List*: MAP@20 (prototypes: MAP@15, balanced queries). "
    "*Published*: best printed; other encoders, all images, patient rule unknown."
)
MORE = (
    "Hyp-ViT: another photograph of an unlearnt species or lesion (not diagnosis). ACIR, label tree: birds by image, "
    "others by group. MAP@100: 16-bit codes, ACIR's loss, over min(100, R); /: linear classifier. HF1: family counts; "
    "/: commonest class. Sph: sphere; CSQ: fixed codes; SupCon: no tree. *Over plain*, *difference* to rival: groups "
    "first; *by class*: alike (– untested)."
)


def picture() -> tuple[Path, dict[str, Any]]:
    """What the query's own group is worth: the file and where it comes from."""
    choices = [paths.report("hyper_dino", *run, "beyond") / "figure_leakage.png" for run in PICTURES]
    file = next(path for path in choices if path.exists())
    return file, json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))


def part() -> str:
    """The generated results, markers included."""
    (file, record), rows = picture(), scores.table()
    drawn = pd.read_csv(file.with_suffix(".csv"))
    by_group = np.allclose(drawn["by_group"] - drawn["by_image"], drawn["difference"], atol=0.01)
    caption = (
        "*MAP@k with (dot) and without (square) images of the query's own group. No mapper: principal components. "
        f"Averaged over {'groups first' if by_group else 'images; the findings below over groups first'}. "
        f"{profiles.PROFILES[record['profile']].capitalize()}, {record['images'].partition(',')[0]}.*"
    )
    return "\n\n".join(
        [
            START,
            f"![{record['title']}]({file.relative_to(paths.ROOT).as_posix()})",
            caption,
            "\n".join(f"{number}. {finding}" for number, finding in enumerate(findings(), start=1)),
            COUNTED,
            markdown_table(once(differences(), [""])),
            markdown_table(once(rows.drop(columns="encoder") if rows["encoder"].nunique() == 1 else rows, ["paper"])),
            NOTE,
            markdown_table(once(scores.others(), ["paper", "measure"])),
            MORE,
            END,
        ]
    )


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
    """Bring the README's generated parts up to date."""
    readme = paths.ROOT / "README.md"
    text = filled(readme.read_text(encoding="utf-8"))
    with files.whole(readme) as draft:
        draft.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    errors.one_message(update)
