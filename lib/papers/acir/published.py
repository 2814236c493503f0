"""What the paper prints, in percent."""

import pandas as pd

from lib import paths

DATASETS = {"radin_ct": "RadIN-CT", "bps": "BPS"}
"""Ours → the datasets of the paper's tables."""


def maps() -> pd.DataFrame:
    """Table 1: columns method, dataset (ours, see :data:`DATASETS`), bits, mAP, maAP.

    >>> table = maps().set_index(["method", "dataset", "bits"])
    >>> table.loc[("ACIR", "radin_ct", 16)].tolist()
    [70.1, 68.0]
    """
    return _wide("acir_table1_map.csv", ["method", "dataset", "bits"])


def radii() -> pd.DataFrame:
    """Table 6, 16 bits: columns method, dataset, radius, accuracy, precision, recall.

    Its caption does not name the images; dataset, RadIN-CT, is a reading of it.

    >>> table = radii().set_index(["method", "radius"])
    >>> table.loc[("CSQ", 0), ["accuracy", "precision", "recall"]].tolist()
    [71.5, 82.0, 71.5]
    """
    rows = _wide("acir_table6_radius.csv", ["method", "dataset", "hamming_radius"])
    return rows.rename(columns={"hamming_radius": "radius"})


PARTS = ["backbone", "l_wsc", "darf", "kan", "cgr"]
"""What a row of Table 2 is made of: CNN, ViT or Hybrid, and what is switched on beside it."""


def ablation() -> pd.DataFrame:
    """Table 2: columns :data:`PARTS`, mAP, maAP; its length is that of 16 bits (AC-12).

    >>> ablation().set_index(PARTS).loc[("ViT", True, False, False, False)].tolist()
    [63.2, 59.4]
    """
    return _wide("acir_table2_ablation.csv", PARTS)


def pretraining() -> pd.DataFrame:
    """Table 4: columns method, bits, pretrained, mAP, maAP.

    >>> pretraining().set_index(["method", "pretrained"]).loc[("ACIR", False)].tolist()
    [128.0, 62.7, 60.3]
    """
    return _wide("acir_table4_pretraining.csv", ["method", "bits", "pretrained"])


def long_codes() -> pd.DataFrame:
    """Table 5, whose dataset is not named: columns method, bits, mAP, maAP.

    >>> long_codes().set_index(["method", "bits"]).loc[("QSMIH", 512)].tolist()
    [70.2, 67.3]
    """
    return _wide("acir_table5_long_codes.csv", ["method", "bits"])


def alphas() -> pd.DataFrame:
    """What the text says of α (Section 4.3): columns alpha, mAP, maAP; α = 0.25 was run and is not printed (AC-12).

    >>> alphas()["alpha"].tolist()
    [0.0, 0.5, 0.75, 1.0]
    """
    rows = pd.read_csv(paths.PUBLISHED / "claims.csv")
    rows = rows[rows["id"].str.startswith("ac-") & rows["claim"].str.match(r"alpha = [\d.]+")]
    rows = rows.assign(
        alpha=rows["claim"].str.extract(r"alpha = ([\d.]+)", expand=False).astype(float),
        value=(100 * rows["value"].astype(float)).round(1),
    )
    return rows.pivot(index="alpha", columns="quantity", values="value").reset_index().rename_axis(None, axis=1)


def costs() -> pd.DataFrame:
    """Table 7: columns method, macs (G; the paper's GFLOPs), parameters (M), seconds (an image).

    >>> costs().set_index("method").loc["ACIR"].tolist()
    [12.44, 151.33, 0.08]
    """
    rows = pd.read_csv(paths.PUBLISHED / "acir_table7_cost.csv")
    names = {"FLOPs": "macs", "trainable parameters": "parameters", "inference time": "seconds"}
    wide = rows.pivot_table(index="method", columns="metric", values="value", sort=False)
    return wide.rename(columns=names).reset_index().rename_axis(None, axis=1)[["method", *names.values()]]


def novelty() -> pd.DataFrame:
    """Table 3: columns method, variant, bits, precision and recall (macro, percent), detected (of 500 OOD images).

    >>> table = novelty().set_index(["method", "variant"])
    >>> table.loc[("ACIR", "full"), ["precision", "recall", "detected"]].tolist()
    [90.8, 90.1, 402.0]
    """
    rows = pd.read_csv(paths.PUBLISHED / "acir_table3_ood.csv")
    names = {"macro precision": "precision", "macro recall": "recall", "OOD images detected": "detected"}
    rows = rows.assign(metric=rows["metric"].map(names)).dropna(subset="metric")
    wide = rows.pivot_table(index=["method", "variant", "bits"], columns="metric", values="value", sort=False)
    wide[["precision", "recall"]] = (100 * wide[["precision", "recall"]]).round(1)
    return wide.reset_index().rename_axis(None, axis=1)


def _wide(name: str, keys: list[str]) -> pd.DataFrame:
    """A column per metric, in percent, from a file with a row per number."""
    rows = pd.read_csv(paths.PUBLISHED / name)
    rows["value"] = (100 * rows["value"]).round(1)
    ours = {title: dataset for dataset, title in DATASETS.items()}
    rows["dataset"] = rows["dataset"].map(ours)
    return (
        rows.pivot_table(index=keys, columns="metric", values="value", sort=False)
        .reset_index()
        .rename_axis(None, axis=1)
    )
