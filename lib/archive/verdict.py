"""Which method serves these images? A fixed rule decides.

**The score.** Images of some patients ask an archive of all others, from which alone a method has learnt. The score is
precision@k of the longest list, the share of right images in it, as a mean over patients: of each patient's images
first, so that differences of scores are what is tested. It is not AP, which rewards a list of one class, right or
wrong: on classes dealt at random a linear classifier is clearly better than plain features by AP, and not by precision.
Until that was noticed the score was AP; otherwise the rule is as it was written before any method was tried.

**The rule.** Each method is compared with plain features of the first encoder by a paired test over patients and
trainings, with Holm's correction for the number of methods.

1. Of the methods that are clearly better (p ≤ 0.05), the one with the highest score is recommended. A head that is held
   at the rim of its space is no evidence and does not count.
2. If none is, and so few patients took part that no difference could have been clear: nothing can be told.
3. If none is, and a difference could have been clear: nothing beats plain features here.

Where a folder tells patients that no folds can keep apart, nothing can be told of new patients, whatever the images
say. Where it tells none, every image counts as a patient of its own.

None of a user's images has chosen a setting: all are fixed in :mod:`lib.archive.methods`, the steps by Kather, BreakHis
and the birds. What is recommended is the best of several on the images that are reported, so that its gain is a little
flattered.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np
import pandas as pd

from lib.archive import methods
from lib.archive.trials import Measured, spoken
from lib.datasets.table import ImageTable
from lib.metrics.significance import could_tell
from lib.study import paired
from lib.study.paired import LEVEL

BETTER, NOTHING, CANNOT = "use it", "nothing beats plain features", "cannot tell"
"""The outcomes of the rule."""


@dataclass(frozen=True)
class Verdict:
    """What the rule decides.

    outcome: :data:`BETTER`, :data:`NOTHING` or :data:`CANNOT`. key: the method's name in
    :data:`lib.archive.methods.METHODS`. method, encoder: what to use; plain features of the first encoder where nothing
    is better. sentence: for a page, how sure that is and what it costs. further: what else to know, in sentences.
    """

    outcome: str
    key: str
    method: str
    encoder: str
    sentence: str
    further: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.method}"

    @property
    def rows(self) -> pd.DataFrame:
        """One row, as the reports keep it."""
        return pd.DataFrame([vars(self)])


def decide(measured: Measured, given: ImageTable, used: ImageTable) -> Verdict:
    """The rule of this module.

    measured: what every method got. given: the images as their folder tells them; used: as folds could use them.
    """
    lost = given.group_kind != "image" and used.group_kind == "image"
    tests = paired.counted(measured.tests)
    clear = tests[(tests["p_holm"] <= LEVEL) & (tests["difference"] > 0)].set_index("first")
    kind, n_units, n_given = given.group_kind, int(measured.tests["n_units"].max()), given.rows["group"].nunique()
    if lost or (clear.empty and not could_tell(measured.tests, LEVEL).any()):
        outcome, best = CANNOT, measured.base
    elif clear.empty:
        outcome, best = NOTHING, measured.base
    else:
        outcome, best = BETTER, _best(measured, clear.index)
    row, units = measured.of(best), counted(n_units, kind)
    if outcome == BETTER:
        sentence = _better(measured, row, clear, units, kind)
    elif outcome == NOTHING:
        sentence = _nothing(measured, row, units)
    elif lost:
        sentence = _lost(row, counted(n_given, kind), kind)
    else:
        sentence = _cannot(row, n_units, n_given, kind, len(measured.tests))
    further = [_answers(measured, best), _learnt_on(measured), _at_rim(measured.tests)] * (outcome != CANNOT)
    further.append(_unknown(given))
    return Verdict(outcome, row["key"], best, row["encoder"], sentence, " ".join(filter(None, further)))


def _best(measured: Measured, names: Iterable[str]) -> str:
    """The method of these ``names`` with the highest score."""
    return max(names, key=lambda name: measured.of(name)["group_mean"])


def _better(measured: Measured, row: pd.Series, clear: pd.DataFrame, units: str, kind: str) -> str:
    base, test = measured.of(measured.base), clear.loc[row["method"]]
    new, averaged = ("a new image", "") if kind == "image" else (f"images of a new {kind}", f" (averaged per {kind})")
    return (
        f"Use {_on(row)}: for {new}, {row['group_mean']:.1f} % of the first {measured.k} answers show the right "
        f"class{averaged}, with plain features {base['group_mean']:.1f} %. The gain is clear: "
        f"{test['difference']:+.1f} points with {units} (95 % interval {test['low']:+.1f} to {test['high']:+.1f}; "
        f"p = {test['p_holm']:.4f}, corrected for {counted(int(test['n_tests']), 'method')})."
        f"{_as_good(measured, clear.index.drop(row['method']))} It {_training(row)}, and "
        f"its code alone has {row['bytes']:,} bytes an image instead of {base['bytes']:,}; an archive keeps the "
        "features as well."
    )


def _as_good(measured: Measured, others: pd.Index) -> str:
    """How many ``others`` are clearly better too, by nearly as much."""
    if others.empty:
        return ""
    other, n = _best(measured, others), len(others)
    return (
        f" {counted(n, 'other method').capitalize()} {'is' if n == 1 else 'are'} clearly better than "
        f"plain features as well, the best of them {other} with {measured.of(other)['group_mean']:.1f} %; they were "
        "not tested against each other."
    )


def _nothing(measured: Measured, row: pd.Series, units: str) -> str:
    least = float(measured.tests["could_show"].replace(np.inf, np.nan).max())
    shown = f", for which a gain had to be at least {least:.1f} points" if np.isfinite(least) else ""
    return (
        f"Nothing beats plain features here: use {row['method']}, of whose first {measured.k} answers "
        f"{row['group_mean']:.1f} % show the right class. With {units} no method is clearly better{shown}. "
        f"They {_plain(row)}."
    )


def _cannot(row: pd.Series, n_units: int, n_given: int, kind: str, n_tests: int) -> str:
    units, enough = (text[0].upper() + text[1:] for text in (counted(n_units, kind), counted(would_do(n_tests), kind)))
    rest = f" (of {n_given}: the others have no class that another {kind} has)" if n_units < n_given else ""
    return (
        f"{units}{rest} cannot tell which method serves your images: no difference, however large, could be clear. "
        f"{enough} or more would do, several of them with images of each class. "
        f"Until then use {row['method']}, which {_plain(row)}."
    )


def _lost(row: pd.Series, units: str, kind: str) -> str:
    return (
        f"Nothing can be told of new {kind}s: your folder has {units}, and no folds keep them apart, with two classes "
        f"to learn from and something to find. Each class needs images of several {kind}s. Until then use "
        f"{row['method']}, which {_plain(row)}."
    )


def _plain(row: pd.Series) -> str:
    return f"need no training, and {row['bytes']:,} bytes an image (the features alone)"


def _training(row: pd.Series) -> str:
    """What it takes to train: nothing, for plain features of another encoder, and for texture."""
    return "needs no training" if np.isnan(row["seconds"]) else f"takes {spoken(row['seconds'])} to train"


def _at_rim(tests: pd.DataFrame) -> str:
    """Which gain does not count."""
    held = tests.drop(paired.counted(tests).index).query("p_holm <= @LEVEL and difference > 0")
    return " ".join(
        f"{name} gains more than chance, but lies at the rim of its space: that is no evidence, and does not count."
        for name in held["first"]
    )


def _on(row: pd.Series) -> str:
    """A method and what it is learnt on."""
    return row["method"] if row["key"] == methods.PLAIN else f"{row['method']} on features of {row['encoder']}"


def _answers(measured: Measured, best: str) -> str:
    """The first answer, what is right in an archive of new images, and the vote; beside plain features and the best."""

    def right(archive: str, k: int, what: str = "ours") -> str:
        rows = measured.rows[(measured.rows["archive"] == archive) & (measured.rows["k"] == k)]
        shares = rows.set_index("method")[what]
        beside = [f"plain features {shares[measured.base]:.1f} %"] * (best != measured.base)
        if (most := shares.idxmax()) not in (best, measured.base):
            beside.append(f"best of all {most}, {shares[most]:.1f} %")
        beside = "; ".join(beside)
        return f"{shares[best]:.1f} %" + (f" ({beside})" if beside else "")

    unseen = measured.strict.replace("closed", "open")
    parts = [f"The first answer is right for {right(measured.strict, 1)}."]
    if unseen in set(measured.rows["archive"]):
        parts.append(f"In an archive of images that no method has learnt from, it is right for {right(unseen, 1)}.")
        parts.append(f"Of the first {measured.k} answers there, {right(unseen, measured.k)} are right.")
    votes = f"If the five nearest vote, macro F1 is {right(measured.strict, 1, 'f1_5')}; every class counts alike."
    return " ".join([*parts, votes, "These numbers were not tested."])


def _learnt_on(measured: Measured) -> str:
    """Which encoder's features were learnt on, where there are several."""
    encoder = measured.of(measured.base)["encoder"]
    return (
        f"What is trained was tried on features of {encoder} alone." if measured.rows["encoder"].nunique() > 1 else ""
    )


def _unknown(given: ImageTable) -> str:
    if given.group_kind != "image":
        return ""
    return (
        "Your folder tells no patients, so that every image counts as one. If several images come from one patient, "
        "all numbers are too good: put them into a sub-folder of their class that is named after the patient."
    )


def would_do(n_tests: int) -> int:
    """The fewest patients with which a difference can be clear beside ``n_tests`` of them.

    All patients agree in one of 2ⁿ patterns of signs, and in its opposite: p cannot be smaller than 2/2ⁿ.

    >>> would_do(1), would_do(8)
    (6, 9)
    """
    return next(n for n in count(2) if n_tests * 2 / 2**n <= LEVEL)


def counted(n: int, kind: str) -> str:
    """So many of a kind, small numbers in words.

    >>> counted(3, "patient"), counted(42, "slide"), counted(1, "image")
    ('three patients', '42 slides', 'one image')
    """
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return f"{words[n] if n < len(words) else f'{n:,}'} {kind}{'s' * (n != 1)}"


def class_counts(given: ImageTable, used: ImageTable) -> pd.DataFrame:
    """What is in the folder: columns class, images, groups (patients, or what a group is), used and queries (images).

    queries: a class of one group is learnt and searched, but nothing of another group could answer its images.
    """
    by_class, groups = given.rows.groupby("label"), used.rows.groupby("label")["group"].nunique()
    counts = {"images": by_class.size(), "groups": by_class["group"].nunique()}
    rows = pd.DataFrame(counts).assign(used=used.rows["label"].value_counts()).fillna({"used": 0})
    return rows.assign(queries=rows["used"].where(groups > 1, 0)).rename_axis("class").reset_index()


def left_out(given: ImageTable, used: ImageTable, lacking: Mapping[str, str]) -> pd.DataFrame:
    """Columns what and why: files and classes that were not used, images that could not be read, methods not run."""
    ids = given.rows.loc[given.rows["label"].isin(used.classes), "image_id"]
    rows = [*used.skipped, *((name, "cannot be read as an image") for name in ids[~ids.isin(used.rows["image_id"])])]
    rows += [(methods.METHODS[name].title, f"method not run: {why}") for name, why in lacking.items()]
    return pd.DataFrame(rows, columns=["what", "why"])
