"""The sentences of notebook 21 say what the numbers do."""

import pandas as pd

from lib.papers.hyp_vit.hyperbolicity import sentences, tables
from lib.results.store import Run

RUN = Run(
    "21_hyp_vit_hyperbolicity",
    "demo",
    "tissue",
    "120 images",
    "abc",
    "two encoders",
    {"draws": 3, "size": 60, "folds": 5, "rule": "by patient"},
)
OURS = pd.DataFrame(
    {"encoder": ["net", "texture"], "dim": [384, 2], "relative": [0.24, 0.36], "low": [0.2, 0.3], "high": [0.28, 0.4]}
)
LADDER = OURS.drop(columns="dim").assign(size=60)
KNOWN = pd.DataFrame(
    {
        "control": [
            "random tree",
            "hyperbolic disk, radius 5",
            "Gaussian cloud, 2 numbers",
            "Gaussian cloud, 384 numbers",
        ],
        "dim": [0, 2, 2, 384],
        "relative": [0.0, 0.144, 0.4, 0.3],
    }
)


def beside(dataset: str, ladder: pd.DataFrame = LADDER) -> pd.DataFrame:
    return tables.beside_published(OURS, dataset, ladder, 60)


def test_birds_are_told_beside_the_papers_birds():
    assert sentences.beside_printed(beside("cub").round(4)) == [
        "CUB-200 in the paper, 3 encoders: δ from 0.280 to 0.315, c(X) from 0.21 to 0.26; ours: net 0.240 (c(X) 0.36; "
        "not clearly outside that), texture 0.360 (c(X) 0.16; not clearly outside that)"
    ]


def test_other_images_are_told_beside_all_cells_and_by_the_largest_draws():
    larger = pd.concat([LADDER, LADDER.assign(size=2000, relative=[0.2, 0.36], low=[0.1, 0.35], high=0.37)])
    (line,) = sentences.beside_printed(beside("tissue", larger))
    assert line == (
        "not in the paper; its 12 cells: δ from 0.270 to 0.343, c(X) from 0.18 to 0.28; ours, 2,000 images a "
        "draw: net 0.200 (c(X) 0.52; not clearly outside that), texture 0.360 (c(X) 0.16; above that)"
    )


def test_the_published_cells_give_the_range_of_erratum_hv_3():
    published, ours = sentences.curvature_range(beside("tissue"))
    assert published == (
        "published: c(X) runs from 0.176 to 0.284, mean 0.223, median 0.210; of 12, 8 lie above 0.2 and 12 lie above "
        "0.1"
    )
    assert ours.startswith("ours: c(X) runs from 0.160 to 0.360") and ours.endswith(
        "1 lie above 0.2 and 2 lie above 0.1"
    )


def test_what_a_procedure_changes_is_told_as_a_factor(procedures):
    assert sentences.procedures(procedures) == [
        "net: 0.250; L2-normalised × 1.20; without the factor 2 × 0.50; 20 instead of 60 images × 0.80; 2 images, the "
        "worst of all base points × 1.20 of the first; c(X) from 0.23 to 0.52, without the factor 2 1.33"
    ]


def test_a_copy_is_more_or_less_like_a_tree_only_where_its_interval_says_so(changed):
    lowered, raised, unclear = sentences.copies(changed)
    assert lowered == (
        "net, shuffled: lowers relative δ, from 0.200 to 0.100 (-0.100, -0.120 to -0.080): more like a tree; "
        "directions from 3.0 to 30.0"
    )
    assert "raises" in raised and "less like a tree" in raised
    assert "does not clearly change" in unclear and "neither" in unclear


def test_a_sentence_from_the_csv_says_what_the_table_says(changed):
    """The csv keeps four digits; 0.25847 must not be 0.258 in the table and, read as 0.2585, 0.259 in the sentence."""
    exact = changed.head(1).assign(own_relative=0.25847, high=0.136453)
    (told,), (kept,) = sentences.copies(exact), sentences.copies(exact.round(4))
    assert told == kept and "from 0.259 to" in told and "to +0.137)" in told
    assert "| 0.259 |" in tables.table_copies(RUN, exact).markdown


def test_encoders_are_placed_among_the_controls():
    assert sentences.yardstick(KNOWN, OURS) == [
        "random tree: 0.000; Gaussian cloud, 384 numbers: 0.300",
        "published: 0.270 to 0.343, mean 0.308; the nearest of our Gaussian clouds has 384 numbers (0.300), in draws "
        "of our size",
        "net: 0.240; nearest control: Gaussian cloud, 384 numbers (0.300)",
        "texture: 0.360; nearest control: Gaussian cloud, 2 numbers (0.400)",
    ]
    assert sentences.disks(KNOWN).endswith("radius 5 c(X) = 1.00")


def test_encoders_are_compared_on_the_same_draws():
    values = {"net": [0.3, 0.4, 0.5], "plain": [0.2, 0.3, 0.4], "wild": [0.9, 0.1, 0.5]}
    lines = [
        (name, draw, r + draw * 1e-3 * (name == "plain")) for name in values for draw, r in enumerate(values[name])
    ]
    plain, wild = sentences.encoders(pd.DataFrame(lines, columns=["encoder", "draw", "relative"]))
    assert plain == "plain minus net: -0.099 (-0.101 to -0.097), more like a tree"
    assert wild.endswith("no clear difference")


def test_what_came_out_counts_and_names(changed, searched):
    lines = sentences.came_out(KNOWN, OURS, changed, searched)
    assert lines == [
        "relative δ of the encoders: from 0.240 (net) to 0.360 (texture); 2 of 2 lie below a Gaussian cloud of their "
        "own length (2 numbers: 0.400, 384 numbers: 0.300)",
        "shuffled: δ clearly lower than the features' with 1 of 2 encoders, higher with 1",
        "other: δ clearly lower than the features' with 0 of 1 encoders, higher with 0",
        "hyperbolic distance with the c of δ, against Euclidean: better in 0, worse in 1 of 2 comparisons; -3.00 to "
        "+0.50 points of MAP@k",
    ]
