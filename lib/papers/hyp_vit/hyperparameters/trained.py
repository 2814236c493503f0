"""Encoder and head trained together under some of the settings: the column of Table 5 that a frozen encoder lacks."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from IPython.display import Markdown

from lib.datasets.categories import Halves
from lib.datasets.table import ImageTable
from lib.errors import InputError, suggestion
from lib.papers.hyp_vit.hyperparameters import tables
from lib.papers.hyp_vit.hyperparameters.changes import Change
from lib.papers.hyp_vit.hyperparameters.tables import PLACES
from lib.papers.hyp_vit.names import BEFORE, END
from lib.papers.hyp_vit.retrieval import end_to_end
from lib.papers.hyp_vit.retrieval import tables as recalls
from lib.papers.hyp_vit.retrieval.end_to_end import EndToEnd
from lib.results import paired
from lib.results.shown import Table
from lib.results.store import Run
from lib.training.methods import Answer

Found = dict[str, list[Answer]]


def chosen(changes: Sequence[Change], settings: Sequence[str]) -> list[Change]:
    """The rows of Table 5 with these settings (:attr:`.changes.Change.setting`), in their order.

    Raises InputError for a setting that no row has, with what was meant.
    """
    known = {one.setting: one for one in changes if one.of != "room"}
    if unknown := [name for name in settings if name not in known]:
        raise InputError(f"end_to_end: there is no setting {unknown[0]!r}: {suggestion(unknown[0], known)}")
    return [known[name] for name in settings]


def plan_of(change: Change, plan: EndToEnd) -> EndToEnd:
    """The plan with the length of the embedding and the batch of a row; steps are those of the plan in every row."""
    schedule = replace(plan.settings, batch_size=change.method.schedule.batch_size)
    return replace(plan, dim_out=change.method.recipe.dim_out, settings=schedule)


def answers(
    images: ImageTable, parts: Halves, changes: Sequence[Change], plan: EndToEnd, ks: Sequence[int], **options: Any
) -> tuple[Found, pd.DataFrame]:
    """:func:`.end_to_end.end_to_end` of every row under its name, Hyp alone: answers, and the course of all trainings.

    options: n_seeds, seed and store of it. Without ``changes`` nothing is trained, and both are empty.
    """
    found: Found = {}
    courses = [pd.DataFrame()]
    for one in changes:
        kinds = {one.method.name: one.method.head}
        of_one, course = end_to_end.end_to_end(images, parts, kinds, plan_of(one, plan), ks, **options)
        found |= of_one
        courses.append(course)
    return found, pd.concat(courses, ignore_index=True)


def pairs(changes: Sequence[Change]) -> list[tuple[str, str]]:
    """What is tested: head and encoder of every row against those of the first, and its encoder against the untrained.

    The first row is that with the default settings.
    """
    names = [one.method.name for one in changes]
    first = names[:1]
    others = [(f"{name}{END}{place}", f"{one}{END}{place}") for one in first for name in names[1:] for place in PLACES]
    return [*others, *((f"{name}{END}encoder", BEFORE) for name in names)]


def show(run: Run, found: Found, how: str) -> Table | Markdown:
    """Save Recall@K of heads and encoders of :func:`answers`, and of the encoder before; how: of :func:`says`."""
    if not found:
        return Markdown(NOTHING)
    rows = recalls.recall(found)
    theirs = pd.DataFrame(columns=["method", "encoder", "dim", "k", "value"])  # Table 5 is of another dataset
    text = f"{recalls.ABOUT} {how}"
    return run.save("table_together", Table(TITLE, rows, text, markdown=recalls.layout(rows, theirs)))


def show_tests(
    run: Run, found: Found, changes: Sequence[Change], parts: Halves, k: int, seed: int = 0
) -> Table | Markdown:
    """Save the paired tests of :func:`pairs`; changes: the rows that were trained; k: of Recall@k."""
    if not found:
        return Markdown(NOTHING)
    tested = tables.tests(found, parts.names, {"end to end": pairs(changes)}, k, seed)
    text = f"Recall@{k}. {recalls.SAYS} All were trained at the same rates."
    layout = paired.tests_layout(tested, recalls.TEST_NAMES)
    return run.save("table_tests_together", Table(f"paired tests of the {TITLE}", tested, text, markdown=layout))


TITLE = "settings of the head, end to end"
NOTHING = "No setting was trained end to end in this run, so that the encoder's own column has no rows."


def says(plan: EndToEnd, changes: Sequence[Change], n_trainings: int) -> str:
    """How the rows were trained, for captions; empty where none was."""
    if not changes:
        return ""
    schedule, preparation = plan.settings, plan.preparation
    listed = "; ".join(one.method.name for one in changes)
    return (
        f"Encoder and head together: {plan.encoder}, {n_trainings} trainings each of at most {schedule.steps} steps at "
        f"{preparation.size} px, from three quarters of the training categories; the others choose the step. Rate of "
        f"the encoder {schedule.lr:g}, of the head {schedule.head_lr or schedule.lr:g}, the same for every setting. "
        f"Trained so: {listed}."
    )
