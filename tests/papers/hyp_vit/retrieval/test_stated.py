"""What the text says of Tables 2 and 3, on a toy table that is worked by hand, and on the published ones."""

import pandas as pd
import pytest

from lib.papers.hyp_vit.published import recall
from lib.papers.hyp_vit.retrieval import stated

SAID = pd.DataFrame(
    {
        "hv-09": ("lead", "10", "RIVAL"),
        "hv-12": ("DeiT is last", None, "others"),
        "hv-13": ("DeiT beats CNNs", None, "CNNs"),
        "hv-14": ("Hyp- beats Sph-", None, "Sph-"),
    },
    index=["claim", "value", "compares_to"],
).T


def toy(**values):
    """Recall@1 on CUB and SOP, and a Recall@2 that nobody should look at; ``values`` are put in place, as CUB, SOP."""
    encoders = {"old CNN": "GoogleNet", "new CNN": "ResNet-50", "RIVAL": "DeiT", "ViT-S": "ViT-S"}
    of = {"old CNN": (50, 50), "new CNN": (40, 60), "RIVAL": (70, 70), "ViT-S": (65, 20)}
    of |= {"Hyp-DeiT": (55, 65), "Hyp-ViT": (80, 80), "Hyp-DINO": (75, 75)}
    of |= {"Sph-DeiT": (54, 64), "Sph-ViT": (79, 79), "Sph-DINO": (74, 74)}
    of |= {name.replace("_", "-"): pair for name, pair in values.items()}
    rows = [
        (method, encoders.get(method, "ViT-S"), dataset, k, float(value) if k == 1 else 99.0)
        for method, pair in of.items()
        for dataset, value in zip(("cub", "sop"), pair, strict=True)
        for k in (1, 2)
    ]
    return pd.DataFrame(rows, columns=["method", "encoder", "dataset", "k", "value"])


def told(theirs):
    """All lines but those of HV-13, which have a test of their own."""
    lines = [line.strip() for line in stated.sentences(theirs, SAID)]
    return lines[: next(number for number, line in enumerate(lines) if line.startswith("HV-13, the text: Hyp- beats"))]


def test_a_text_that_the_tables_bear_out_fits():
    assert told({2: toy()}) == [
        "HV-11, the text: Hyp-ViT leads RIVAL by 10 % on CUB-200; Recall@1:",
        "Table 2: 80.0 − 70.0 = 10.0 points, fits",
        "Table 2: ViT-S before any training 65.0, not above RIVAL",
        "HV-12, the text: DeiT beats CNNs; Recall@1:",
        "Hyp-DeiT is below the best CNN in 0 of 2 cells",
        "Sph-DeiT is below the best CNN in 0 of 2 cells",
        "HV-12, the text: DeiT is last; Recall@1:",
        "Hyp-DeiT is above Hyp-ViT or Hyp-DINO in 0 of 4 pairs",
        "Sph-DeiT is above Sph-ViT or Sph-DINO in 0 of 4 pairs",
    ]


def test_a_lead_is_told_table_by_table():
    lines = told({2: toy(Hyp_ViT=(81, 80)), 3: toy(ViT_S=(71, 20))})
    assert "Table 2: 81.0 − 70.0 = 11.0 points, does not fit" in lines
    assert "Table 3: 80.0 − 70.0 = 10.0 points, fits" in lines
    assert "Table 3: ViT-S before any training 71.0, above RIVAL" in lines


def test_the_best_cnn_of_each_dataset_counts_and_a_transformer_is_none():
    """RIVAL, with DeiT, is above both versions everywhere; of the CNNs another is best on each dataset."""
    lines = told({3: toy(Hyp_DeiT=(49, 59), Sph_DeiT=(50, 60))})
    assert (
        "Hyp-DeiT is below the best CNN in 2 of 2 cells: Table 3, CUB-200 (49.0, old CNN 50.0); "
        "Table 3, SOP (59.0, new CNN 60.0)"
    ) in lines
    assert "Sph-DeiT is below the best CNN in 0 of 2 cells" in lines


def test_a_version_is_compared_with_its_own_head_and_a_tie_is_not_above():
    lines = told({2: toy(Sph_DeiT=(74, 76))})
    assert "Sph-DeiT is above Sph-ViT or Sph-DINO in 1 of 4 pairs: Table 2, SOP (76.0, Sph-DINO 74.0)" in lines
    assert "Hyp-DeiT is above Hyp-ViT or Hyp-DINO in 0 of 4 pairs" in lines


@pytest.fixture(scope="module")
def lines():
    return [line.strip() for line in stated.sentences({table: recall(table) for table in (2, 3)})]


def test_the_published_lead_is_that_of_table_3_alone(lines):
    """Read off the CUB columns of the two tables."""
    assert lines[1:4] == [
        "Table 2: 84.0 − 72.6 = 11.4 points, does not fit",
        "Table 3: 85.6 − 76.6 = 9.0 points, fits",
        "Table 3: ViT-S before any training 83.1, above IRT_R",
    ]


def test_the_published_cells_that_contradict_the_text(lines):
    """Read off the columns of K = 1; the cells of Hyp-DeiT are those that the erratum names."""
    below, above = ([line for line in lines if word in line] for word in ("below the best CNN", "is above"))
    assert sum("94 of 96 cells" in line for line in lines) == 1
    assert below == [
        "Hyp-DeiT is below the best CNN in 4 of 8 cells: Table 2, Cars-196 (82.1, MIC 82.6); "
        "Table 2, In-Shop (90.9, XBM 91.3); Table 3, Cars-196 (86.4, ProxyNCA++ 86.5); "
        "Table 3, In-Shop (90.5, Proxy-Anchor 91.5)",
        "Sph-DeiT is below the best CNN in 4 of 8 cells: Table 2, Cars-196 (77.3, MIC 82.6); "
        "Table 2, In-Shop (89.3, XBM 91.3); Table 3, Cars-196 (81.7, ProxyNCA++ 86.5); "
        "Table 3, In-Shop (89.6, Proxy-Anchor 91.5)",
    ]
    assert above[0] == "Hyp-DeiT is above Hyp-ViT or Hyp-DINO in 0 of 16 pairs"
    assert above[1].startswith("Sph-DeiT is above Sph-ViT or Sph-DINO in 3 of 16 pairs: Table 2, SOP (82.5, ")
