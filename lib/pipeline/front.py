"""What the README says was found: four findings for who reads nothing else, from the committed tests."""

from collections.abc import Sequence

import numpy as np

from lib import paths
from lib.metrics.significance import could_show
from lib.pipeline import findings
from lib.pipeline.findings import FIRST, LIST, clearly, tests, wins
from lib.results import paired, saved
from lib.results.markdown import percent

NOTEBOOK = {"own": "16_hyper_dino_beyond", "plain": "13_hyper_dino_retrieval"}
NOTEBOOK |= {"curved": NOTEBOOK["own"], "new": NOTEBOOK["own"]}
"""A comparison of :data:`lib.pipeline.findings.COMPARED` → the notebook that a finding links to."""


def four() -> list[str]:
    """The four findings: what a reader can believe, its limit, and where it is shown."""
    said = {"own": _own(), "curved": _curved(), "plain": _gain(), "new": _unseen()}
    return [f"{text} [Notebook {NOTEBOOK[name][:2]}](notebooks/{NOTEBOOK[name]}.ipynb)." for name, text in said.items()]


def images() -> str:
    """Which images the findings are of, and how many."""
    files = sorted(paths.REPORTS.glob("hyper_dino/sample/*/retrieval/table_tests.csv"))
    parts = [saved.record(file)["images"].replace(" of ", "/").split(", ") for file in files]
    return "; ".join(f"{name}: {count}, {groups}" for name, count, _, groups in parts)


def only(titles: Sequence[str]) -> str:
    """These names and no other: ``HAM10000 only``, ``no dataset``."""
    return f"{listed(titles)} only" if titles else "no dataset"


def listed(titles: Sequence[str]) -> str:
    """Names as English lists them.

    >>> listed(["Kather"]), listed(["Kather", "BreakHis", "HAM10000"])
    ('Kather', 'Kather, BreakHis and HAM10000')
    """
    *before, last = titles
    return f"{', '.join(before)} and {last}" if before else last


def _own() -> str:
    rows = tests("own", ks=(FIRST,))
    clear = rows[rows["title"].isin(clearly(rows, 1))]
    parts = ["**Part of the score can come from other images of the same patient.**"]
    if clear.empty:
        return f"{parts[0]} A loss without them is clear on {wins(rows)}."
    most = clear.loc[clear["difference"].idxmax()]
    parts.append(
        f"On {most['title']}, the first answer loses {percent(most['difference'])} points if they are neither searched "
        "nor trained on."
    )
    if most["title"] in clearly(tests("own_plain", ks=(FIRST,)), 1):
        parts.append("Plain features lose points, too.")
    older = findings.older(findings.LEAKAGE, "n_queries")
    if few := [title for title in rows["title"] if title not in {*clear["title"], *older}]:
        parts.append(f"On {listed(few)}, a loss could not be told from chance.")
    if older:
        parts.append(f"The table of {listed(older)} is older than the code and may change.")
    return " ".join(parts)


def _curved() -> str:
    rows = tests("curved", ks=(LIST,))
    unseen = [could_show(test) for test in rows.itertuples() if paired.relation(test) == paired.NOT_CLEAR]
    limit = (
        f" Small gains (below about {np.ceil(np.nanmax(unseen)):.0f} points) may have stayed unseen." if unseen else ""
    )
    return f"**With Hyper-DINO's loss, curved space beats flat space on {wins(rows)}.**{limit}"


def _gain() -> str:
    first, long, fair = tests("plain", ks=(FIRST,)), tests("plain", ks=(LIST,)), tests("classifier", ks=(LIST,))
    by_hits, by_min = (rows.set_index("title")["difference"] for rows in (findings.hits(), long))
    smaller = " The gain is smaller if missed images cost nothing."
    turned = clearly(tests("classifier_alike", ks=(LIST,)), -1)
    alike = f" If all classes count alike, the classifier is better on {listed(turned)}."
    return (
        f"**Over a list of {LIST} from the archive that it was trained on, the head beats plain features on "
        f"{wins(long)}.**{smaller if (by_hits < by_min[by_hits.index]).all() else ''} Its first answer is better on "
        f"{only(clearly(first, 1))}. It beats a simple linear classifier on {only(clearly(fair, 1))}."
        f"{alike * bool(turned)}"
    )


def _unseen() -> str:
    rows = tests("new", ks=(LIST,))
    worse = clearly(rows, -1)
    limit = f" It is worse on {listed(worse)}." if worse else ""
    return f"**In an archive of new patients, the head beats plain features over the list on {wins(rows)}.**{limit}"
