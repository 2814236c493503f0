"""What the README finds: four sentences and the differences behind them, from the committed tests."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lib import paths
from lib.pipeline import index, profiles
from lib.pipeline.scores import LEVEL, PLAIN, marked
from lib.results.markdown import percent

Place = tuple[str, str, str]
"""Paper, section and name of a table."""
CLASSIFIER, LOGITS = "linear classifier, probability", "linear classifier, logits"
FIRST, LIST = 1, 20
"""The list lengths that are told: the first answer, and the whole list."""
HEAD = f"MAP@{FIRST}/MAP@{LIST}"
MARGIN, LARGE = 0.5, 4
"""The base margin of the paper, and the largest of notebook 90."""


@dataclass(frozen=True)
class Compared:
    """A difference: the number of its finding and its name; the table of its tests and which of these they are.

    sign: -1 where the table subtracts the other way round.
    """

    finding: int
    name: str
    place: Place
    rows: str
    sign: int = 1


LEAKAGE, CONTROL, GALLERY = (
    ("hyper_dino", "beyond", f"table_{name}") for name in ("leakage", "control_tests", "gallery_tests")
)
TESTS, BY_CLASS = (("hyper_dino", "retrieval", f"table_tests{name}") for name in ("", "_by_class"))
VOTES, REST = ("hyper_dino", "retrieval", "table_patients"), ("beyond", "factors", "table_margins")
FACTORS, MARGINS = (("beyond", "factors", f"table_{name}_tests") for name in ("factors", "margins"))
APART, LARGER, FLAT = "rule != 'by image' and ", f"first == 'ball, m0 = {LARGE}' and ", "second == 'flat, half margin'"
COMPARED = {
    "own": Compared(1, "own group in archive: head", LEAKAGE, "method == 'ball'", -1),
    "own_again": Compared(1, "in notebook 90", FACTORS, "factor.str.startswith('own ')"),
    "own_plain": Compared(1, "plain features", LEAKAGE, f"method == '{PLAIN}'", -1),
    "curved": Compared(2, "ball, not flat", CONTROL, f"{APART}first == 'ball' and {FLAT}"),
    "larger": Compared(2, f"margin {LARGE}", MARGINS, f"{LARGER}rule.str.startswith('closed')"),
    "larger_new": Compared(2, "4, new archive", MARGINS, f"{LARGER}rule.str.startswith('open')"),
    "plain": Compared(3, "head, not plain features", TESTS, f"{APART}second == '{PLAIN}'"),
    "plain_alike": Compared(3, "classes alike", BY_CLASS, f"{APART}second == '{PLAIN}'"),
    "classifier": Compared(3, "head, not classifier", TESTS, f"{APART}second == '{CLASSIFIER}'"),
    "classifier_alike": Compared(3, "classes alike", BY_CLASS, f"{APART}second == '{CLASSIFIER}'"),
    "new": Compared(4, "head, not plain features", GALLERY, f"rule == 'open' and second == '{PLAIN}'"),
    "new_flat": Compared(4, "head, not flat head", GALLERY, f"rule == 'open' and {FLAT}"),
    "new_logits": Compared(4, "head, not classifier", GALLERY, f"rule == 'open' and second == '{LOGITS}'"),
}
"""Every difference that a finding rests on, in the order of the table."""


def read(place: Place) -> pd.DataFrame:
    """A table of every real dataset that has it and on which Hyper-DINO was compared; ``title``: its first name."""
    found = []
    for dataset in profiles.runs("sample")["hyper_dino_retrieval"]:
        compared, file = (_file(of, dataset) for of in (TESTS, place))
        if compared.exists() and file.exists():
            found.append(pd.read_csv(file).assign(title=index.title_of(dataset).partition(" ")[0]))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def _file(place: Place, dataset: str) -> Path:
    paper, section, name = place
    return paths.report(paper, "sample", dataset, section) / f"{name}.csv"


def tests(*names: str, ks: tuple[int, ...] = (FIRST, LIST)) -> pd.DataFrame:
    """The tests of some of :data:`COMPARED` at these list lengths; none where a table is not there."""
    found = [_signed(COMPARED[name]) for name in names]
    there = [rows for rows in found if len(rows)]
    rows = (
        pd.concat(there, ignore_index=True) if there else pd.DataFrame(columns=["title", "k", "difference", "p_holm"])
    )
    return rows[rows["k"].isin(ks)]


def _signed(of: Compared) -> pd.DataFrame:
    """The tests of a comparison, differences as its name has them."""
    if (rows := read(of.place)).empty:
        return rows
    rows = rows.query(of.rows)
    return rows.assign(difference=of.sign * rows["difference"])


def differences() -> pd.DataFrame:
    """The table behind the findings: a row per comparison, a column per dataset; a clear difference is bold."""
    lines = []
    for name, of in COMPARED.items():
        cells: dict[str, str] = {}
        for test in tests(name).sort_values("k", kind="stable").itertuples():
            cells[test.title] = "/".join(filter(None, [cells.get(test.title), marked(test.difference, test.p_holm)]))
        lines += [{"": of.finding, HEAD: of.name} | cells] * bool(cells)
        lines += _voted() if name == "plain_alike" else []
    return pd.DataFrame(lines).fillna("–")


def votes() -> pd.DataFrame:
    """Macro F1 of the first answer with the query's group left out, in percent: columns title, plain, head."""
    if (found := read(VOTES)).empty:
        return pd.DataFrame(columns=["title", "plain", "head"])
    first = found[found["k"] == found["k"].min()]
    heads, plain = first[first["method"].str.startswith("Hyper-DINO(")], first[first["method"] == PLAIN]
    values = {"plain": plain["macro_f1"], "head": heads["macro_f1"]}
    return pd.DataFrame({"title": heads["title"].tolist()} | {name: of.tolist() for name, of in values.items()})


def _voted() -> list[dict[str, str | int]]:
    """The row of :func:`votes`, which nothing tests."""
    cells = {row.title: f"{row.plain:.1f} → {row.head:.1f}" for row in votes().itertuples()}
    return [{"": 3, HEAD: "F1, plain → head"} | cells] * bool(cells)


def findings() -> list[str]:
    """Four findings; how many datasets say so follows from the tests, as do all numbers."""
    return [_own(), _curvature(), _gain(), _unseen()]


def _own() -> str:
    own, again = (tests(name, ks=(LIST,)) for name in ("own", "own_again"))
    return (
        "**Part of the head's score comes from other images of the query's own group, clearly on "
        f"{wins(own)} datasets**, on {wins(again)} in notebook 90 (other folds and components)."
    )


def _curvature() -> str:
    larger = tests("larger", "larger_new")
    return (
        f"**Curvature helps on {wins(tests('curved', ks=(LIST,)))} datasets.** At the published margin the images rest "
        f"where there is hardly any: a step counts {rulers()} times as much as at the centre. At a larger one "
        f"({LARGE}) the ball wins {wins(larger)} comparisons and loses {losses(larger)}."
    )


def rulers() -> str:
    """How many times longer a step is at the median norm of an archive, with the published margin: least to most.

    The ruler at norm r is 1/(1 - r²) times that at the centre (curvature 1).
    """
    rests = read(REST).query("head == 'ball' and m0 == @MARGIN and k == @LIST and archive.str.startswith('closed')")
    rests = rests[rests["archive"] != "closed, by image"]
    found = 1 / (1 - rests["norm"] ** 2)
    return f"{percent(found.min())} to {percent(found.max())}"


def _gain() -> str:
    first, first_alike = (tests(name, ks=(FIRST,)) for name in ("plain", "plain_alike"))
    long, alike, fair, even = (
        tests(name, ks=(LIST,)) for name in ("plain", "plain_alike", "classifier", "classifier_alike")
    )
    return (
        f"**The head beats the plain features on {wins(long)} datasets over a list of {LIST}, on {wins(first)} for the "
        f"first answer** (all classes counting alike: {count(alike)} and {count(first_alike)}; F1 is lower on "
        f"{int((votes()['head'] < votes()['plain']).sum())}). Over the list, a "
        f"linear classifier beats it on {losses(fair)} and loses on {count(fair)} (alike: {losses(even)} "
        f"and {count(even)})."
    )


def _unseen() -> str:
    first, long = (tests("new", ks=(k,)) for k in (FIRST, LIST))
    flat, logit = (tests(name, ks=(LIST,)) for name in ("new_flat", "new_logits"))
    return (
        f"**In an archive that nobody learnt from, the head beats the plain features on {wins(long)} datasets and "
        f"loses on {losses(long)} over the list; first answer: {count(first)} and {losses(first)}.** Over the list, "
        f"flat space beats it on {losses(flat)} and loses on {count(flat)}, the classifier on {losses(logit)} and "
        f"{count(logit)}."
    )


def count(rows: pd.DataFrame) -> int:
    """How many differences are above 0 and clear (p after Holm's correction at most :data:`LEVEL`).

    >>> count(pd.DataFrame({"difference": [2.0, 1.0, -3.0], "p_holm": [0.01, 0.2, 0.01]}))
    1
    """
    return int(((rows["difference"] > 0) & (rows["p_holm"] <= LEVEL)).sum())


def wins(rows: pd.DataFrame) -> str:
    """:func:`count`, of how many datasets.

    >>> wins(pd.DataFrame({"difference": [2.0, 1.0, -3.0], "p_holm": [0.01, 0.2, 0.01]}))
    '1 of 3'
    """
    return f"{count(rows)} of {len(rows)}"


def losses(rows: pd.DataFrame) -> int:
    """How many differences are below 0 and clear, as :func:`count`."""
    return count(rows.assign(difference=-rows["difference"]))
