"""The figures draw what they are given: values above, what is earned below."""

import pandas as pd

from lib.papers.beyond.factors import figures

ARCHIVES = ["closed, by image", "closed, by patient", "open, by patient"]


def test_every_archive_has_its_sign_and_every_factor_its_place():
    values = pd.DataFrame(
        [
            {
                "archive": a,
                "method": m,
                "k": k,
                "ours": 50 + 10 * i + k,
                "spread": 1.0,
                "class_mean": 40.0,
                "chance": 20.0,
                "class_chance": 12.5,
            }
            for a in ARCHIVES
            for i, m in enumerate(["no head", "ball"])
            for k in (1, 20)
        ]
    )
    earned = pd.DataFrame(
        [
            {"archive": a, "factor": f, "k": k, "difference": 3.0 - 4 * i, "low": -2.0 - i, "high": 5.0}
            for a in ARCHIVES[1:]
            for i, f in enumerate(["head", "curvature"])
            for k in (1, 20)
        ]
    )
    figure = figures.factors(values, earned)
    above, _, below, _ = figure.axes
    signs = [container.lines[0] for container in above.containers]
    assert [sign.get_marker() for sign in signs] == ["o", "s", "^"]
    assert [sign.get_xdata().tolist() for sign in signs] == [[51, 61]] * 3
    assert [label.get_text() for label in below.get_yticklabels()] == ["head", "curvature"]
    first = below.containers[0]
    assert first.lines[0].get_xdata().tolist() == [3.0, -1.0]
    ends = [segment[:, 0].tolist() for segment in first.lines[2][0].get_segments()]
    assert ends == [[-2.0, 5.0], [-3.0, 5.0]]
    levels = {line.get_linestyle(): line.get_xdata()[0] for line in above.lines if len(set(line.get_xdata())) == 1}
    assert (levels[":"], levels["--"]) == (20.0, 12.5)
    names = [*ARCHIVES, "averaged over classes", "chance", "chance, averaged over classes"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == names


def test_labels_of_neighbouring_panels_leave_each_other_room():
    values = pd.DataFrame(
        {"archive": "open", "method": ["no head", "ball"] * 2, "k": [1, 1, 20, 20], "ours": 50.0, "spread": 1.0}
    ).assign(class_mean=40.0, chance=20.0, class_chance=12.5)
    rows = {"archive": "open", "factor": ["encoder: pretrained, not texture (linear classifier, probability)"] * 2}
    earned = pd.DataFrame(rows | {"k": [1, 20], "difference": 3.0, "low": 2.0, "high": 4.0})
    figure = figures.factors(values, earned)
    figure.canvas.draw()
    *_, left, right = figure.axes
    assert left.xaxis.label.get_window_extent().x1 < right.xaxis.label.get_window_extent().x0
    assert left.title.get_window_extent().x1 < right.title.get_window_extent().x0
    assert "\n" in left.get_yticklabels()[0].get_text()


def test_margins_have_a_line_per_head_and_the_norms_beside():
    rows = pd.DataFrame(
        [
            {"head": h, "m0": m0, "k": k, "ours": 10 * m0 + k, "spread": 1.0, "norm": m0 / 10}
            for h in ("ball", "flat head")
            for m0 in (0.5, 4.0)
            for k in (1, 20)
        ]
    )
    *maps, norms = figures.margins(rows, [1, 20]).axes
    assert [axis.containers[0].lines[0].get_ydata().tolist() for axis in maps] == [[6.0, 41.0], [25.0, 60.0]]
    assert [line.get_ydata().tolist() for line in norms.lines] == [[0.05, 0.4]] * 2
    assert {line.get_marker() for line in norms.lines} == {"o", "s"}
