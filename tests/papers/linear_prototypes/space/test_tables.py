"""What is said about the space follows from the values of its images."""

import numpy as np
import pandas as pd
import pytest

from lib.papers.linear_prototypes.space import tables
from lib.papers.linear_prototypes.space.measures import IMAGES, MEASURES, Measured, Space
from lib.results.store import Run

ABOUT = {"folds": 3, "epochs": 7, "groups": "patient", "seeds": 2}
RUN = Run("43_linear_prototypes_space", "demo", "tissue", "images", "abc", "texture", ABOUT)


def space_of(level: float, repeat: int = 0, fold: int = 0, noise: float = 2.0) -> Measured:
    """A space whose images of ten groups all have about this value, a fold and a training a little more each."""
    rng = np.random.default_rng([fold, repeat])
    groups = [f"fold {fold}, patient {i // 4}" for i in range(40)]
    shared = level + 10 * fold + repeat + noise * rng.normal(size=40)
    values = {name: shared + (name == "kernel") * noise * rng.normal(size=40) for name in IMAGES}
    images = pd.DataFrame({"label": np.arange(40) % 2, "group": groups, **values})
    return Measured(fold, repeat, {name: level + 10 * fold + repeat for name in MEASURES}, images)


def spaces(**levels: float) -> dict[str, list[Measured]]:
    return {
        name: [space_of(level, repeat, fold) for repeat in range(2) for fold in range(3)]
        for name, level in levels.items()
    }


def test_rows_are_means_and_both_spreads():
    rows = tables.rows(spaces(frozen=40.0)).set_index("measure")
    assert len(rows) == len(MEASURES) and set(rows["n_seeds"]) == {2}
    one = rows.loc["silhouette"]
    assert one["ours"] == pytest.approx(50.5)
    assert one["spread"] == pytest.approx(10.0) and one["seeds_spread"] == pytest.approx(0.5**0.5)


def test_sentences_follow_from_tests_over_groups_and_trainings():
    tested = tables.tests(spaces(frozen=40.0, head=60.0, linear=50.0))
    assert tested["n_units"].tolist() == [30] * 5 and tested["n_seeds"].tolist() == [2] * 5
    np.testing.assert_allclose(tested["difference"], [20.0, 20.0, 0.0, 0.0, -10.0], atol=0.5)
    said = tables.verdicts(tested)
    assert said[0].startswith("silhouette: head is better than frozen (+20.00 points, ")
    assert said[1].startswith("linear classifier: head is better than frozen (+20.00 points, ")
    assert said[3].startswith("head: kernel classifier is not clearly different from linear classifier (")
    assert said[4].startswith("nearest centroid: linear is worse than head (-10.00 points, ")


def test_the_answer_follows_from_the_first_three_tests():
    tested = tables.tests(spaces(frozen=40.0, head=60.0, linear=50.0))
    kernel, head = tables.came_out(tested)
    assert kernel.startswith("A kernel adds nothing") and "could have shown" in kernel
    assert head == "With the head, classes are tighter, and more separable by a line."
    tested.loc[[1, 2], "difference"] = [-3.0, 5.0]
    tested.loc[0, "p_holm"], tested.loc[[1, 2], "p_holm"] = 0.9, 0.01
    kernel, head = tables.came_out(tested)
    assert kernel.startswith("A kernel finds more")
    assert head == "With the head, classes are not clearly tighter or looser, and less separable by a line."
    tested.loc[0, "p_holm"] = 0.01
    assert tables.came_out(tested)[1] == "With the head, classes are tighter, but less separable by a line."
    other = tables.came_out(tested.assign(difference=-tested["difference"]))[1]
    assert other == "With the head, classes are looser, but more separable by a line."
    tested.loc[1, "p_holm"] = 0.9
    assert tables.came_out(tested)[1].endswith("tighter, and not clearly more or less separable by a line.")
    worse = tables.came_out(tested.assign(difference=[1.0, 1.0, -5.0, 0.0, 0.0]))[0]
    assert worse.endswith("this cannot be told here.")  # a probe that loses to a line sees nothing


def test_where_nothing_was_measured_nothing_is_said():
    empty = space_of(0.0).images.iloc[:0]
    nothing = Measured(0, 0, dict.fromkeys(MEASURES, np.nan), empty)
    found = {name: [nothing] for name in ("frozen", "head", "linear")}
    assert "–" in tables.layout(tables.rows(found))
    assert all("cannot" in line for line in tables.verdicts(tables.tests(found)))
    assert tables.came_out(tables.tests(found)) == ["There are too few groups to answer."]


def test_tables_and_figure_say_whom_they_show():
    found = spaces(frozen=40.0, head=60.0, linear=50.0)
    table, tested = tables.table(RUN, tables.rows(found)), tables.table_tests(RUN, tables.tests(found))
    assert "3 folds by patient" in table.caption and "2 trainings" in table.caption
    assert "| 50.50 ± 10.00 (0.71) |" in table.markdown and table.markdown.count("\n| ") == 4
    assert tested.markdown.count("\n| ") == 6 and "patients that were held out" in tested.caption
    rng = np.random.default_rng(0)
    x, y, groups = rng.normal(size=(90, 3)), np.arange(90) % 3, np.arange(90).astype(str)
    several = {name: Space(x, x, y, y, groups, groups) for name in ("frozen", "head")}
    figure = tables.figure_4(RUN, several, np.array(["fat", "gland", "muscle"])[y])
    assert "patients that were held out; heads trained for 7 epochs" in figure.caption
    assert "a class that outnumbers all others together is small and pale" in figure.caption
    assert figure.rows.groupby("method", sort=False).size().to_dict() == {"frozen": 90, "head": 90}
    assert set(figure.free) == set(tables.AXES) and len(figure.figure.axes) == 4


def test_whether_the_probe_could_see_is_said_of_every_space():
    rows = pd.DataFrame({"method": ["frozen", "head"], "linear": [50.2, 49.0], "kernel": [93.1, 55.0]})
    can, hardly = tables.control_said(rows)
    assert can == "frozen: the linear classifier 50.2 %, the kernel classifier 93.1 %, so the test can see"
    assert hardly.endswith("so the test can hardly see")


def test_the_control_of_every_space_is_a_row():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(n, 6)) for n in (120, 60)]
    labels, groups = ([np.arange(n) % k for n in (120, 60)] for k in (2, 10))
    space = Space(*parts, *labels, *(one.astype(str) for one in groups))
    shown = tables.table_control(RUN, {"frozen": space, "head": space})
    assert shown.rows["method"].tolist() == ["frozen", "head"]
    assert shown.rows.iloc[0, 1:].tolist() == shown.rows.iloc[1, 1:].tolist()
    assert "shuffled held-out part" in shown.caption and "Guessing gives 50" in shown.caption
    assert "| method | linear classifier, % | kernel classifier, % |" in shown.markdown
