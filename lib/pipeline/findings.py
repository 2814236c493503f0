"""What committed tests of real images say, as declared tables: a row is a question and the tests that it rests on.

The words around these tables are written by hand, in README.md and ``reports/findings.md`` (:mod:`lib.pipeline.pages`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lib import paths
from lib.datasets.catalogue import facts
from lib.metrics.significance import could_show
from lib.pipeline import profiles
from lib.study import measures, paired
from lib.study.markdown import percent, points
from lib.study.real import GPU, PROFILE

Place = tuple[str, str, str]
"""Paper, section and name of a table."""
PLAIN, CLASSIFIER = "raw features, cosine", "linear classifier, probability"
FIRST, LIST = 1, 20
"""The list lengths of the findings: the first answer, and the whole list."""
SHOWN = {FIRST: "first answer", LIST: f"list of {LIST}"}
MARGIN, LARGE = 0.5, 4
"""The base margin of Hyper-DINO, and the largest of notebook 90."""


@dataclass(frozen=True)
class Compared:
    """A difference: what it answers or belongs to, and its name; the table of its tests and which of these they are.

    sign: -1 where the table subtracts the other way round. profile: whose reports; ``gpu`` trains encoders along.
    metric: by what the list is measured.
    """

    about: str
    name: str
    place: Place
    rows: str
    sign: int = 1
    profile: str = PROFILE
    metric: str = "ap_min"


LEAKAGE, CONTROL, GALLERY, ALONG, DEALT, DEALT_BY_CLASS = (
    ("hyper_dino", "beyond", f"table_{name}")
    for name in ("leakage", "control_tests", "gallery_tests", "end_to_end_tests", "dealt", "dealt_by_class")
)
TESTS, BY_CLASS = (("hyper_dino", "retrieval", f"table_{name}") for name in ("tests", "tests_by_class"))
FACTORS, FACTORS_BY_CLASS, MARGINS, REST = (
    ("beyond", "factors", f"table_{name}")
    for name in ("factors_tests", "factors_tests_by_class", "margins_tests", "margins")
)
AGAIN = "in notebook 90"
APART, LARGER, FLAT = "rule != 'by image' and ", f"first == 'ball, m0 = {LARGE}' and ", "second == 'flat, half margin'"
OVER_PLAIN, OVER_CLASSIFIER = (f"{APART}second == '{method}'" for method in (PLAIN, CLASSIFIER))
BALL_APART = f"{APART}first == 'ball'"
CLOSED, NEW = (f"archive.str.startswith('{archive}') and " for archive in ("closed", "open"))
TRAINED = "first == 'ball, end to end, head' and second.str.startswith('flat')"
HEAD_ON = "factor.str.startswith('head: ball, not "
TEXTURE = "factor.str.startswith('encoder: pretrained, not texture') and archive.str.startswith('closed')"
OWN = "1. Does part of the score come from the query's own group?"
CURVED = "2. Does curved space help?"
GAIN = "3. Does the head help in the closed archive?"
UNSEEN = "4. Does it help in an open archive?"
ENCODER = "5. Does the network beat colours and textures?"
ALIKE, LUCK = "classes alike", "classes dealt at random"
COMPARED = {
    "own": Compared(OWN, "own group in the archive, minus without: head", LEAKAGE, "method == 'ball'", -1),
    "own_again": Compared(OWN, f"the same, {AGAIN}", FACTORS, "factor.str.startswith('own ')"),
    "own_plain": Compared(
        OWN, "own group in the archive, minus without: plain features", LEAKAGE, f"method == '{PLAIN}'", -1
    ),
    "curved": Compared(CURVED, "ball minus flat", CONTROL, f"{APART}first == 'ball' and {FLAT}"),
    "along": Compared(CURVED, "ball minus flat, encoder trained along", ALONG, f"{APART}{TRAINED}", profile=GPU),
    "larger": Compared(CURVED, f"ball minus flat, margin {LARGE}", MARGINS, f"{LARGER}rule.str.startswith('closed')"),
    "larger_new": Compared(
        CURVED, f"ball minus flat, margin {LARGE}, open archive", MARGINS, f"{LARGER}rule.str.startswith('open')"
    ),
    "plain": Compared(GAIN, "head minus plain features", TESTS, OVER_PLAIN),
    "plain_hits": Compared(GAIN, "÷ hits", TESTS, OVER_PLAIN, metric="ap_hits"),
    "plain_right": Compared(GAIN, "precision", TESTS, OVER_PLAIN, metric="precision"),
    "dealt": Compared(GAIN, f"÷ min(k, R), {LUCK}", DEALT, BALL_APART),
    "dealt_hits": Compared(GAIN, f"÷ hits, {LUCK}", DEALT, BALL_APART, metric="ap_hits"),
    "dealt_right": Compared(GAIN, f"precision, {LUCK}", DEALT, BALL_APART, metric="precision"),
    "dealt_alike": Compared(GAIN, f"÷ min(k, R), {LUCK}, {ALIKE}", DEALT_BY_CLASS, BALL_APART),
    "dealt_right_alike": Compared(GAIN, f"precision, {LUCK}, {ALIKE}", DEALT_BY_CLASS, BALL_APART, metric="precision"),
    "plain_alike": Compared(GAIN, f"head minus plain features, {ALIKE}", BY_CLASS, OVER_PLAIN),
    "plain_right_alike": Compared(GAIN, f"precision, {ALIKE}", BY_CLASS, OVER_PLAIN, metric="precision"),
    "classifier": Compared(GAIN, "head minus linear classifier", TESTS, OVER_CLASSIFIER),
    "classifier_alike": Compared(GAIN, f"head minus linear classifier, {ALIKE}", BY_CLASS, OVER_CLASSIFIER),
    "plain_again": Compared(GAIN, f"head minus plain features, {AGAIN}", FACTORS, f"{CLOSED}{HEAD_ON}none')"),
    "classifier_again": Compared(GAIN, f"head minus linear classifier, {AGAIN}", FACTORS, f"{CLOSED}{HEAD_ON}linear')"),
    "new": Compared(UNSEEN, "head minus plain features", GALLERY, f"rule == 'open' and second == '{PLAIN}'"),
    "new_again": Compared(UNSEEN, f"the same, {AGAIN}", FACTORS, f"{NEW}{HEAD_ON}none')"),
    "new_flat": Compared(UNSEEN, "head minus flat head", GALLERY, f"rule == 'open' and {FLAT}"),
    "new_flat_again": Compared(UNSEEN, f"the same, {AGAIN}", FACTORS, f"{NEW}factor.str.startswith('curvature')"),
    "new_logits": Compared(
        UNSEEN,
        "head minus linear classifier, by its raw scores",
        GALLERY,
        "rule == 'open' and second.str.endswith('logits')",
    ),
    "new_classifier": Compared(UNSEEN, f"head minus linear classifier, {AGAIN}", FACTORS, f"{NEW}{HEAD_ON}linear')"),
    "new_classifier_alike": Compared(
        UNSEEN, f"the same, {AGAIN}, {ALIKE}", FACTORS_BY_CLASS, f"{NEW}{HEAD_ON}linear')"
    ),
    "texture": Compared(ENCODER, "network minus texture (linear classifier on both)", FACTORS, TEXTURE),
}
"""Every difference that the findings about Hyper-DINO rest on."""
FRONT = (
    ("The patient's own other images flatter the first answer", "own", FIRST, 16),
    ("Curved space beats flat space", "curved", LIST, 16),
    ("The same, archive of new patients", "new_flat", LIST, 16),
    ("The head beats plain features", "plain", LIST, 13),
    ("The same, first answer", "plain", FIRST, 13),
    ("The same, counting right images, classes alike", "plain_right_alike", LIST, 13),
    ("So does a head on shuffled classes", "dealt", LIST, 16),
    ("The same, counting right images, classes alike", "dealt_right_alike", LIST, 16),
    ("The head beats a simple linear classifier", "classifier", LIST, 13),
    ("The same, classes alike", "classifier_alike", LIST, 13),
    ("The head beats plain features, archive of new patients", "new", LIST, 16),
)
"""What the README says or denies: the difference that decides it, at which list length, from which notebook."""


def read(place: Place, profile: str = PROFILE) -> pd.DataFrame:
    """A table of every dataset of a profile that has it; ``title``: the dataset's first name."""
    paper, section, name = place
    parts = []
    for dataset in profiles.profile(profile)["datasets"]:
        file = paths.report(paper, profile, dataset, section) / f"{name}.csv"
        if file.exists():
            parts.append(pd.read_csv(file).assign(title=facts(dataset).title.partition(" ")[0]))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def tests(comparison: Compared) -> pd.DataFrame:
    """The tests of a comparison on all datasets, differences as its name has them."""
    if (rows := read(comparison.place, comparison.profile)).empty:
        return rows
    rows = measures.by(rows, comparison.metric).query(comparison.rows)
    return rows.assign(difference=comparison.sign * rows["difference"])


def cell(test: Any) -> str:
    """A test's difference in points: bold where clear, else with the smallest one that its set could have shown.

    "rim": of a head that is held at the rim, and is not counted; "equal": the two methods differ in nothing.

    test: a row of :func:`lib.study.differences.together`.

    >>> from types import SimpleNamespace as Test
    >>> test = {"p_floor": 0.002, "n_units": 3, "n_tests": 1, "low": -4.302653, "high": 4.302653}
    >>> cell(Test(difference=1.5, p_holm=0.01, **test)), cell(Test(difference=-2.0, p_holm=0.2, **test))
    ('**+1.50**', '-2.00 (4.3)')
    >>> cell(Test(difference=-2.0, p_holm=0.2, **test | {"n_tests": 100}))
    '-2.00 (none)'
    """
    gain = points(test.difference)
    if getattr(test, "at_rim", 0) > paired.MOST_AT_RIM:
        return f"{gain} (rim)"
    if paired.relation(test) in paired.CLEAR:
        return f"**{gain}**"
    least = could_show(test)
    return f"{gain} ({'equal' if np.isnan(least) else f'{least:.1f}' if np.isfinite(least) else 'none'})"


ANSWERS = dict(zip(paired.CLEAR, ("yes", "no"), strict=True))


def answer(test: Any) -> str:
    """:func:`cell`, after whether the first method is better."""
    return f"{ANSWERS.get(paired.relation(test), 'unclear')}: {cell(test)}"


def front() -> pd.DataFrame:
    """The README's table: a row per line of :data:`FRONT`, which links to its notebook, a column per dataset."""
    lines = []
    for question, name, k, number in FRONT:
        rows = tests(COMPARED[name])
        cells = {test.title: answer(test) for test in rows[rows["k"] == k].itertuples()}
        (notebook,) = paths.NOTEBOOKS.glob(f"{number}_*.ipynb")
        lines.append({"points": f"[{question}](notebooks/{notebook.name})"} | cells)
    return pd.DataFrame(lines).fillna("–")


def differences() -> pd.DataFrame:
    """The table behind the findings: two rows per comparison, a column per dataset; a clear difference is bold."""
    lines = []
    for name, comparison in COMPARED.items():
        rows = tests(comparison)
        for k, part in rows[rows["k"].isin(SHOWN)].groupby("k") if len(rows) else ():
            cells = {test.title: cell(test) for test in part.itertuples()}
            lines.append({"question": comparison.about, "difference": comparison.name, "of": SHOWN[k]} | cells)
        lines += rulers() if name == "larger_new" else []
    return pd.DataFrame(lines).fillna("–")


def rulers() -> Iterator[dict[str, str]]:
    """How many times longer a step is at the median norm of a closed archive than at the centre, at the paper's margin.

    The ruler at norm r is 1/(1 - r²) times that at the centre (curvature 1).
    """
    rows = read(REST).query(f"head == 'ball' and m0 == {MARGIN} and k == {LIST} and archive.str.startswith('closed')")
    rows = rows[rows["archive"] != "closed, by image"].set_index("title")
    cells = {title: percent(scale) for title, scale in (1 / (1 - rows["norm"] ** 2)).items()}
    yield {"question": CURVED, "difference": "length of a step, times that at the centre", "of": "median image"} | cells


FACTORS_OF, RESULTS, HYP_VIT = ("beyond", "factors"), ("label_tree", "results"), ("hyp_vit", "retrieval", "table_tests")
BALL = f"first == 'ball' and {FLAT}"
IN_THE_BALL = "first.str.contains('(Hyperbolic)', regex=False) and second.str.contains('(Euclidean)', regex=False)"
TREES_TWINS = f"{IN_THE_BALL} and first.str.partition(' (')[0] == second.str.partition(' (')[0]"
TWINS = (
    Compared("Hyper-DINO", "flat: encoder trained along", ALONG, f"{APART}{TRAINED}", profile=GPU),
    Compared(
        "Hyper-DINO", "flat: encoder trained along, by image", ALONG, f"rule == 'by image' and {TRAINED}", profile=GPU
    ),
    Compared("Hyper-DINO", "flat: closed archive", CONTROL, f"{APART}{BALL}"),
    Compared("Hyper-DINO", "flat: by image", CONTROL, f"rule == 'by image' and {BALL}"),
    Compared("Hyper-DINO", "flat: open archive", GALLERY, f"rule == 'open' and {BALL}"),
    Compared("Hyper-DINO", "flat: closed archive, half of the groups", GALLERY, f"rule == 'closed' and {BALL}"),
    Compared("Hyper-DINO", "flat: margins 0.5 to 4", MARGINS, "first.str.startswith('ball, m0')"),
    Compared("Hyper-DINO", "flat: even push", (*FACTORS_OF, "table_push_tests"), "second == 'flat head, even push'"),
    Compared(
        "Hyper-DINO", "flat: relatives of the class", (*FACTORS_OF, "table_tree_tests"), "second.str.contains('flat')"
    ),
    Compared("Hyp-ViT", "flat", HYP_VIT, "first == 'Hyp' and second == 'flat'"),
    Compared("Hyp-ViT", "sphere", HYP_VIT, "first == 'Hyp' and second == 'Sph'"),
    Compared("Hyp-ViT", "sphere: end to end, few steps", HYP_VIT, "second.str.startswith('Sph, end')"),
    Compared(
        "Hyp-ViT", "sphere: in notebook 90", (*FACTORS_OF, "table_costs_tests"), "second == 'Hyp-ViT head, sphere'"
    ),
    *(
        Compared(
            "Label tree",
            f"sphere: {measure}{more}",
            (*RESULTS, table),
            f"{TREES_TWINS} and measure == '{measure}' and not first.str.endswith('encoder')",
            profile=profile,
        )
        for table, more, profile in (
            ("table_tests", "", PROFILE),
            ("table_longer_tests", ", five times the steps", PROFILE),
            ("table_other_tree_tests", ", another tree", PROFILE),
            ("table_tests_end_to_end", ", encoder trained along", GPU),
        )
        for measure in ("HF1", "PC-Order", "R@5", "Top-1")
    ),
)
"""Every comparison of a curved head with the same head in flat space or on the sphere that the sample tests."""


def curvature() -> pd.DataFrame:
    """A row per comparison of :data:`TWINS`: over datasets, heads and list lengths, how often the ball is better.

    Not clear: on a set that could have shown a difference; could not tell: on one that could not. Heads that are held
    at the rim are not counted.
    """
    lines = []
    for twins in TWINS:
        if len(rows := tests(twins)):
            rows = paired.counted(rows)
            counts = {word: _where(rows, word) for word in ("better", "worse", "not clear", "could not tell")}
            lines.append({"loss": twins.about, "ball compared with": twins.name, "tests": len(rows)} | counts)
    return pd.DataFrame(lines)


def outcome(test: Any) -> str:
    """What came out of a test, as a column of :func:`curvature` calls it."""
    text = paired.OUTCOMES.get(paired.relation(test), "could not tell")
    return "not clear" if text == paired.OUTCOMES[paired.NOT_CLEAR] else text


def _where(rows: pd.DataFrame, word: str) -> str:
    """How many tests came out so; for clear ones also on which datasets: ``8 (CUB-200-2011 7, HAM10000 1)``."""
    titles = pd.Series([test.title for test in rows.itertuples() if outcome(test) == word], dtype=object)
    named = ", ".join(f"{title} {n}" for title, n in titles.value_counts(sort=False).items())
    return f"{len(titles)}" + f" ({named})" * (word in ("better", "worse") and len(titles) > 0)
