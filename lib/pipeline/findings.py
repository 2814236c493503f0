"""What Hyper-DINO's committed tests say: five findings, and the differences that they rest on."""

from dataclasses import dataclass

import pandas as pd

from lib import paths
from lib.pipeline import index, profiles
from lib.pipeline.scores import PLAIN, gain_cell
from lib.results import denominators, paired
from lib.results.markdown import percent, points

Place = tuple[str, str, str]
"""Paper, section and name of a table."""
CLASSIFIER = "linear classifier, probability"
FIRST, LIST = 1, 20
"""The list lengths of the findings: the first answer, and the whole list."""
SHOWN = {FIRST: "first answer", LIST: f"list of {LIST}"}
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
SCORES = ("hyper_dino", "retrieval", "table_opponents")
FACTORS, FACTORS_BY_CLASS, MARGINS = (
    ("beyond", "factors", f"table_{name}") for name in ("factors_tests", "factors_tests_by_class", "margins_tests")
)
AGAIN = "in notebook 90"
APART, LARGER, FLAT = "rule != 'by image' and ", f"first == 'ball, m0 = {LARGE}' and ", "second == 'flat, half margin'"
CLOSED, NEW = (f"archive.str.startswith('{archive}') and " for archive in ("closed", "open"))
HEAD_ON = "factor.str.startswith('head: ball, not "
TEXTURE = "factor.str.startswith('encoder: pretrained, not texture') and archive.str.startswith('closed')"
COMPARED = {
    "own": Compared(1, "own group in the archive, minus without: head", LEAKAGE, "method == 'ball'", -1),
    "own_again": Compared(1, f"the same, {AGAIN}", FACTORS, "factor.str.startswith('own ')"),
    "own_plain": Compared(
        1, "own group in the archive, minus without: plain features", LEAKAGE, f"method == '{PLAIN}'", -1
    ),
    "curved": Compared(2, "ball minus flat", CONTROL, f"{APART}first == 'ball' and {FLAT}"),
    "larger": Compared(2, f"ball minus flat, margin {LARGE}", MARGINS, f"{LARGER}rule.str.startswith('closed')"),
    "larger_new": Compared(
        2, f"ball minus flat, margin {LARGE}, open archive", MARGINS, f"{LARGER}rule.str.startswith('open')"
    ),
    "plain": Compared(3, "head minus plain features", TESTS, f"{APART}second == '{PLAIN}'"),
    "plain_alike": Compared(3, "head minus plain features, classes alike", BY_CLASS, f"{APART}second == '{PLAIN}'"),
    "classifier": Compared(3, "head minus linear classifier", TESTS, f"{APART}second == '{CLASSIFIER}'"),
    "classifier_alike": Compared(
        3, "head minus linear classifier, classes alike", BY_CLASS, f"{APART}second == '{CLASSIFIER}'"
    ),
    "plain_again": Compared(3, f"head minus plain features, {AGAIN}", FACTORS, f"{CLOSED}{HEAD_ON}none')"),
    "classifier_again": Compared(3, f"head minus linear classifier, {AGAIN}", FACTORS, f"{CLOSED}{HEAD_ON}linear')"),
    "new": Compared(4, "head minus plain features", GALLERY, f"rule == 'open' and second == '{PLAIN}'"),
    "new_again": Compared(4, f"the same, {AGAIN}", FACTORS, f"{NEW}{HEAD_ON}none')"),
    "new_flat": Compared(4, "head minus flat head", GALLERY, f"rule == 'open' and {FLAT}"),
    "new_flat_again": Compared(4, f"the same, {AGAIN}", FACTORS, f"{NEW}factor.str.startswith('curvature')"),
    "new_logits": Compared(
        4,
        "head minus linear classifier, by its raw scores",
        GALLERY,
        "rule == 'open' and second.str.endswith('logits')",
    ),
    "new_classifier": Compared(4, f"head minus linear classifier, {AGAIN}", FACTORS, f"{NEW}{HEAD_ON}linear')"),
    "new_classifier_alike": Compared(
        4, f"the same, {AGAIN}, classes alike", FACTORS_BY_CLASS, f"{NEW}{HEAD_ON}linear')"
    ),
    "texture": Compared(5, "texture minus network (linear classifier on both)", FACTORS, TEXTURE, -1),
}
"""Every difference that a finding rests on, in the order of the table."""
VOTED = {1: "first answer", 3: "majority of 3", 5: "majority of 5"}
ARCHIVES = {"closed": (3, "closed archive"), "whole": (4, "whole archive")}
"""The archives of macro F1: the finding that each belongs to, and what is searched."""


def read(place: Place) -> pd.DataFrame:
    """A table of every dataset of the sample that has it; ``title``: the dataset's first name."""
    paper, section, name = place
    files = {
        dataset: paths.report(paper, "sample", dataset, section) / f"{name}.csv"
        for dataset in profiles.profile("sample")["datasets"]
    }
    tables = [
        pd.read_csv(file).assign(title=index.title_of(dataset).partition(" ")[0])
        for dataset, file in files.items()
        if file.exists()
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def older(place: Place, column: str) -> list[str]:
    """The datasets whose committed table of real images lacks a column that newer ones have."""
    rows = read(place)
    return list(rows["title"][rows[column].isna() if column in rows else slice(None)].unique())


def tests(*names: str, ks: tuple[int, ...] = (FIRST, LIST)) -> pd.DataFrame:
    """The tests of some of :data:`COMPARED` at these list lengths; none where a table is not there."""
    parts = [rows for name in names if len(rows := _signed(COMPARED[name]))]
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["title", "k", "difference"])
    return rows[rows["k"].isin(ks)]


def _signed(of: Compared) -> pd.DataFrame:
    """The tests of a comparison by min(k, R), differences as its name has them."""
    if (rows := read(of.place)).empty:
        return rows
    rows = denominators.by_min(rows).query(of.rows)
    return rows.assign(difference=of.sign * rows["difference"])


def differences() -> pd.DataFrame:
    """The table behind the findings: two rows per comparison, a column per dataset; a clear difference is bold."""
    lines = []
    for name, of in COMPARED.items():
        for k, rows in tests(name).groupby("k"):
            cells = {test.title: gain_cell(test) for test in rows.itertuples()}
            lines.append({"finding": of.finding, "difference": of.name, "of": SHOWN[k]} | cells)
        lines += {"plain": [_by_hits()], "plain_alike": _voted("closed"), "new_again": _voted("whole")}.get(name, [])
    return pd.DataFrame(lines).fillna("–")


def hits() -> pd.DataFrame:
    """The head's gain over the plain features at the longest list, AP divided by the hits: title, difference.

    Over queries, by group.
    """
    rows = read(SCORES).query(f"rule != 'by image' and metric == 'ap_hits' and k == {LIST}")
    heads = rows[rows["method"].str.startswith("Hyper-DINO(")].set_index("title")["ours"]
    plain = rows[rows["method"] == PLAIN].set_index("title")["ours"]
    return (heads - plain[heads.index]).rename("difference").reset_index()


def _by_hits() -> dict[str, str | int]:
    cells = {row.title: points(row.difference) for row in hits().itertuples()}
    return {"finding": 3, "difference": "÷ hits, over queries, untested", "of": SHOWN[LIST]} | cells


def votes(archive: str) -> pd.DataFrame:
    """Macro F1 of the votes in an archive with the query's group left out, in percent: title, k, plain, head.

    Nothing where the table is from before the archive was named: it searched all other groups, and counted classes
    that cannot be answered.
    """
    if (rows := read(VOTES)).empty or "archive" not in rows:
        return pd.DataFrame(columns=["title", "k", "plain", "head"])
    rows = rows[rows["archive"] == archive]
    heads, plain = rows[rows["method"].str.startswith("Hyper-DINO(")], rows[rows["method"] == PLAIN]
    pairs = heads.merge(plain, on=["title", "k"], suffixes=("_head", "_plain"))
    return pairs.rename(columns={"macro_f1_head": "head", "macro_f1_plain": "plain"})[["title", "k", "plain", "head"]]


def _voted(archive: str) -> list[dict[str, str | int]]:
    """The rows of :func:`votes`, which nothing tests."""
    finding, searched = ARCHIVES[archive]
    lines = []
    for k, rows in votes(archive).groupby("k"):
        cells = {row.title: f"{percent(row.plain)} → {percent(row.head)}" for row in rows.itertuples()}
        lines.append({"finding": finding, "difference": f"F1, {searched}: plain → head", "of": VOTED[k]} | cells)
    return lines


def findings() -> list[str]:
    """Five findings; how many datasets say so follows from the tests, as do all numbers."""
    return [_own(), _curvature(), _gain(), _unseen(), _texture()]


def _own() -> str:
    own, again = (tests(name, ks=(LIST,)) for name in ("own", "own_again"))
    return (
        "**Part of the head's score comes from other images of the query's own group: clearly on "
        f"{wins(own)}**{paired.unclear(own)}. With other folds and components ({AGAIN}): on {wins(again)}."
    )


def _curvature() -> str:
    curved, larger = tests("curved", ks=(LIST,)), tests("larger", "larger_new")
    return (
        f"**With Hyper-DINO's loss, curved space helps on {wins(curved)}**{paired.unclear(curved)}. At the published "
        f"margin the images lie where space is hardly curved: a step there is {rulers()} times as long as at the "
        f"centre (median images, by group). At a larger margin ({LARGE}) the ball wins "
        f"{wins(larger, 'comparison')} and loses {losses(larger)}{where(larger, -1)}."
    )


def rulers() -> str:
    """How many times longer a step is at the median norm of an archive, with the published margin: least to most.

    The ruler at norm r is 1/(1 - r²) times that at the centre (curvature 1).
    """
    rests = read(REST).query("head == 'ball' and m0 == @MARGIN and k == @LIST and archive.str.startswith('closed')")
    rests = rests[rests["archive"] != "closed, by image"]
    scale = 1 / (1 - rests["norm"] ** 2)
    return f"{percent(scale.min())} to {percent(scale.max())}"


def _gain() -> str:
    first, first_alike = (tests(name, ks=(FIRST,)) for name in ("plain", "plain_alike"))
    long, alike, fair, even = (
        tests(name, ks=(LIST,)) for name in ("plain", "plain_alike", "classifier", "classifier_alike")
    )
    by_hits = ", ".join(f"{points(row.difference)} on {row.title}" for row in hits().itertuples())
    return (
        f"**The head beats the plain features on {wins(long)} over a list of {LIST}, and on {wins(first)} for the "
        f"first answer**{paired.unclear(first)}. If all classes count alike, it does so on {count(alike)} and "
        f"{count(first_alike)}. These scores divide by min(k, R). If they are divided by hits, the gain over the list "
        f"is {by_hits}; these are means over queries and untested. Over the list, a linear classifier beats the head "
        f"on {losses(fair)} and loses on {count(fair)}{where(fair, 1)}. If all classes count alike, it beats the head "
        f"on {losses(even)}{where(even, -1)} and loses on {count(even)}."
    )


def _unseen() -> str:
    first, long = (tests("new", ks=(k,)) for k in (FIRST, LIST))
    flat, again, fair = (tests(name, ks=(LIST,)) for name in ("new_flat", "new_flat_again", "new_classifier"))
    return (
        f"**In an open archive, the head beats the plain features on {wins(long)} over the list and loses on "
        f"{losses(long)}{where(long, -1)}.** For the first answer, it wins on {count(first)} and loses on "
        f"{losses(first)}{where(first, -1)}. Over the list, flat space beats it on {losses(flat)}{where(flat, -1)} and "
        f"loses on {count(flat)}; {AGAIN} on {losses(again)} and {count(again)} of "
        f"{paired.tally(again, 'dataset')[2]}. The linear classifier ({AGAIN}) beats it on {losses(fair)}"
        f"{where(fair, -1)} and loses on {count(fair)}{where(fair, 1)}."
    )


def clearly(rows: pd.DataFrame, sign: int) -> list[str]:
    """The datasets on which a clear difference has this sign, each once."""
    clear = [test for test in paired.counted(rows).itertuples() if paired.relation(test) in paired.CLEAR]
    return list(dict.fromkeys(test.title for test in clear if sign * test.difference > 0))


def where(rows: pd.DataFrame, sign: int) -> str:
    """:func:`clearly` in brackets, to be added to a number: `` (Kather, HAM10000)``."""
    titles = clearly(rows, sign)
    return f" ({', '.join(titles)})" if titles else ""


def _texture() -> str:
    rows = tests("texture", ks=(FIRST,))
    gains = ", ".join(f"{points(row.difference)} on {row.title}" for row in rows.itertuples())
    return (
        "**A descriptor of colour and texture (156 numbers), in place of the network,** changes the first answer of a "
        f"linear classifier by {gains}. Clear gains: {count(rows)}; clear losses: {losses(rows)}{where(rows, -1)}"
        f"{paired.unclear(rows)}."
    )


def count(rows: pd.DataFrame) -> int:
    """How many differences are above 0 and clear."""
    return paired.tally(rows)[0]


def losses(rows: pd.DataFrame) -> int:
    """How many differences are below 0 and clear."""
    return paired.tally(rows)[1]


def wins(rows: pd.DataFrame, what: str = "dataset") -> str:
    """:func:`count`, of how many ``what`` that could have shown a difference.

    >>> test = {"difference": 2.0, "p_holm": 0.01, "p_floor": 0.002, "n_units": 10, "n_tests": 8}
    >>> wins(pd.DataFrame([test, test | {"p_holm": 0.2}]))
    '1 of 2 datasets'
    """
    better, _, of = paired.tally(rows, what)
    return f"{better} of {of}"
