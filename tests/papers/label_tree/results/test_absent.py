"""Published rows of what is not here: all of them, as printed, and what ours need."""

from lib.papers.label_tree import published
from lib.papers.label_tree.results import absent


def test_what_has_a_report_or_is_the_run_is_not_absent():
    assert absent.datasets("tissue", ["bh200x", "ham10000", "odir"]) == ["in_shop", "inaturalist"]
    assert absent.datasets("inaturalist", ["bh200x", "ham10000", "odir"]) == ["in_shop"]
    assert absent.datasets("tissue", ["cub"]) == list(published.DATASETS)


def test_every_published_row_stands_and_ours_say_what_they_need():
    lines = absent.layout(absent.rows(["in_shop", "inaturalist"])).splitlines()
    assert lines[0] == "| dataset | method | whose | HF1 | PC-Order | Violations | Top-1 | R@5 |"
    assert len(lines) == 2 + 2 * (len(published.METHODS) + 1)
    assert "| InShop | HWC+LAM (Hyperbolic) | published | 59.50 | 83.30 | 19.00 ~ | – | 96.20 |" in lines
    assert "| iNaturalist | SimCLR (Euclidean) | published | 44.10 ✗ | 64.00 | 33.00 ✗ | 62.00 | – |" in lines
    shop, species = "needs In-Shop", "needs iNaturalist"
    assert lines[11] == f"| InShop | all of ours | ours | {shop} | {shop} | {shop} | – | {shop} |"
    assert lines[-1] == f"| iNaturalist | all of ours | ours | {species} | {species} | {species} | {species} | – |"


def test_measures_that_no_dataset_has_have_no_column():
    assert list(absent.rows(["in_shop"]).columns) == ["dataset", "method", "HF1", "PC-Order", "Violations", "R@5"]
