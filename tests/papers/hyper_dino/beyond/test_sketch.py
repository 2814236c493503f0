"""The drawing shows what it is there to show: one query, more wrong answers in the open gallery."""

from lib.papers.hyper_dino.beyond import sketch


def test_the_same_query_finds_other_tissues_in_the_open_gallery_alone():
    rows = sketch.points()
    asks = rows[rows["role"] == "query"]
    assert len(asks) == 2 and len(asks[["x", "y"]].drop_duplicates()) == 1
    right = rows[rows["role"] == "nearest"].groupby("side")["tissue"].agg(lambda found: (found == "A").mean())
    assert right["closed"] == 1 and 0 < right["open"] < 1
    assert (rows["x"] ** 2 + rows["y"] ** 2 < 1).all()


def test_each_gallery_is_a_disk_with_its_own_title():
    left, right = sketch.closed_open(sketch.points()).axes
    assert "learnt from" in left.get_title() and "nobody" in right.get_title()
    filled = {str(line.get_markerfacecolor()) for line in right.lines if line.get_label().startswith("tissue")}
    assert filled == {"white"}
