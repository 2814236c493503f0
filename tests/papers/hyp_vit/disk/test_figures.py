"""The marks of a picture are told apart, and its legend leaves it its room."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib.papers.hyp_vit.disk import figures


@pytest.mark.parametrize(("pictures", "alike"), [(2, False), (3, True)])
def test_every_entry_of_a_legend_is_inside_the_figure_and_below_its_own_disk(pictures, alike):
    names = [f"{letter} throated Blue Warbler of the East" for letter in "abcdefghij"]
    rows = pd.DataFrame({"x": 0.1, "y": np.linspace(-0.9, 0.9, 20), "kind": np.repeat(names, 2)})
    several = [rows.assign(picture=f"picture {n}") for n in range(pictures)]
    if not alike:
        several = [part.assign(kind=f"{n} " + part["kind"]) for n, part in enumerate(several)]
    figure = figures.disks(pd.concat(several), {"picture 0": 0.621})
    assert sorted(patch.radius for patch in figure.axes[0].patches) == [0.621, 1]
    figure.draw_without_rendering()
    shown = [axis.legend_ for axis in figure.axes if axis.legend_] + figure.legends
    boxes = [legend.get_window_extent() for legend in shown]
    assert len(boxes) == (1 if alike else pictures) and all(len(one.get_texts()) == figures.SHOWN for one in shown)
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)
    assert all(box.y1 <= axis.get_window_extent().y0 + 1 for box in boxes for axis in figure.axes)
    plt.close(figure)


def test_marks_differ_without_colour():
    looks = [(look["marker"], look.get("markerfacecolor") == "white") for look in figures.LOOKS]
    assert len({shape for shape, _ in looks}) == figures.SHOWN
    assert 0 < sum(hollow for _, hollow in looks) < figures.SHOWN
