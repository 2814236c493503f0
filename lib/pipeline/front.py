"""What the README says was found: four findings for who reads nothing else, from the committed tests."""

from collections.abc import Sequence

from lib.pipeline import findings
from lib.pipeline.findings import FIRST, LIST, clearly, tests, wins
from lib.results.markdown import percent

NOTEBOOK = {"own": "16_hyper_dino_beyond", "plain": "13_hyper_dino_retrieval"}
NOTEBOOK |= {"curved": NOTEBOOK["own"], "new": NOTEBOOK["own"]}
"""A comparison of :data:`lib.pipeline.findings.COMPARED` → the notebook that a finding links to."""


def four() -> list[str]:
    """The four findings: what a reader can believe, its limit, and where it is shown."""
    said = {"own": _own(), "curved": _curved(), "plain": _gain(), "new": _unseen()}
    return [f"{text} [Notebook {NOTEBOOK[name][:2]}](notebooks/{NOTEBOOK[name]}.ipynb)." for name, text in said.items()]


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
    parts.append(f"On {most['title']}, the first answer loses {percent(most['difference'])} points without them.")
    plain = tests("own_plain", ks=(FIRST,))
    if most["title"] in clearly(plain, 1):
        parts.append("Plain features lose points, too.")
    if rest := [title for title in rows["title"] if title not in set(clear["title"])]:
        parts.append(f"On {listed(rest)}, no loss of the head is clear.")
    if most["title"] in findings.older(findings.LEAKAGE, "n_queries"):
        parts.append("This table is older than the code, so the number may still change.")
    return " ".join(parts)


def _curved() -> str:
    rows = tests("curved", ks=(LIST,))
    limit = " A small gain may have stayed unseen." if len(clearly(rows, 1)) < len(rows) else ""
    return f"**With Hyper-DINO's loss, curved space beats flat space on {wins(rows)}.**{limit}"


def _gain() -> str:
    first, long, fair = tests("plain", ks=(FIRST,)), tests("plain", ks=(LIST,)), tests("classifier", ks=(LIST,))
    by_hits, by_min = (rows.set_index("title")["difference"] for rows in (findings.hits(), long))
    smaller = " The list's gain is smaller if images missing from it cost nothing."
    return (
        f"**Over a list of {LIST}, the head beats plain features on {wins(long)}.** Its first answer is better on "
        f"{only(clearly(first, 1))}. It beats a simple linear classifier on {only(clearly(fair, 1))}."
        f"{smaller if (by_hits < by_min[by_hits.index]).all() else ''}"
    )


def _unseen() -> str:
    rows = tests("new", ks=(LIST,))
    worse = clearly(rows, -1)
    limit = f" It is worse on {listed(worse)}." if worse else ""
    new = "In an archive of new patients, on which nothing was trained"
    return f"**{new}, the head beats plain features over the list on {wins(rows)}.**{limit}"
