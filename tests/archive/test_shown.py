"""An answer on a terminal and as a strip: names are text, whatever they hold."""

import re

import numpy as np

from lib.archive import shown
from tests.archive.conftest import MARKUP, tile


def test_a_terminal_shows_rank_class_distance_patient_image_votes_and_accuracy(archive, table):
    row = table.rows[table.rows["label"] == MARKUP].iloc[0]
    answer = archive.ask(row["image_id"], k=4, leave_out=row["group"])
    text = shown.text(archive, answer)
    head, first, *_ = text.splitlines()
    assert head.split() == ["rank", "class", "distance", "patient", "image"]
    label = re.escape(MARKUP)
    assert re.fullmatch(rf"1 +{label} +0\.\d{{3}} +patient_\d +{label}/patient_\d/tile_\d+.png", first)
    right = f"Of all votes of 3, {100 * archive.accuracy[3]:.0f} in 100 are right here."
    assert f"Vote of 3: {MARKUP} (3 of 3). {right}" in text and "Vote of 5" in text
    assert "24 images of this archive, own patient left out" in text and "Unlike" not in text
    text = shown.text(archive, archive.ask(row["image_id"], only=[MARKUP, "normal"]))
    assert "in 100" not in text and "measured with all classes, and not with those that you chose" in text
    answer = archive.ask(np.zeros((9, 9, 3), dtype=np.uint8) + np.array([250, 0, 120], dtype=np.uint8))
    assert shown.text(archive, answer).startswith("Unlike anything here: by the encoder's features, its nearest image")


def test_a_strip_frames_answers_where_the_class_of_the_query_is_known(archive, table):
    name = table.rows["image_id"].iloc[0]
    for query, framed in ((name, True), (tile(MARKUP, 999), False)):
        figure = shown.strip(archive, query, archive.ask(query, k=6), "query")
        titles = [axis.get_title() for axis in figure.axes]
        assert sum(title.startswith("0.") for title in titles) == 6
        assert any("<img src=x" in title for title in titles)
        assert any(axis.patches for axis in figure.axes) is framed
        assert all(axis.images for axis in figure.axes[:7])


def test_a_strip_says_that_a_query_is_unlike_all(archive):
    pink = np.full((9, 9, 3), (250, 0, 120), dtype=np.uint8)
    figure = shown.strip(archive, pink, archive.ask(pink), "pink.png")
    assert figure.axes[0].get_title() == "pink.png\nUnlike anything here"
