"""The generated part of the README: one picture, one table, every number read from ``reports/``.

``python -m lib.pipeline.readme`` writes it.
"""

import json
from pathlib import Path

import pandas as pd

from lib import files, paths
from lib.papers.hyper_dino.retrieval import FAMILIES
from lib.pipeline import profiles
from lib.results.markdown import markdown_table, percent

START, END = "<!-- made from reports/ -->", "<!-- end of what is made from reports/ -->"
STAGE = "hyper_dino_retrieval"
PROTOTYPES = "linear_prototypes_retrieval"
PROTOTYPES_NOTE = (
    "Linear prototypes, MAP@k in percent by cosine, queries of groups that nothing was fitted on against the training "
    "images. PT: frozen features, as they are (the paper's baseline) and standardised; TL: the trained head of 128 "
    "numbers. The paper's encoders and its k are others, so its values stand in the tables of notebook 41 only."
)
PICTURES = (("sample", "bh200x"), ("demo", "tissue"))  # the first that is there


def rows() -> pd.DataFrame:
    """Every built table of a known dataset at full PCA length: a row per fold rule and k, ours and the published."""
    lines = []
    for profile in ("sample", "demo"):
        for dataset, run in profiles.runs(profile)[STAGE].items():
            folder = paths.report("hyper_dino", profile, dataset, "retrieval")
            for name in (run["table"], "table_beside"):
                if (folder / f"{name}.csv").exists():
                    lines += _lines(folder / f"{name}.csv", profile)
    return pd.DataFrame(lines)


def _lines(file: Path, profile: str) -> list[dict[str, str]]:
    """The rows of one table at its full PCA length."""
    record = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    table = pd.read_csv(file).query("metric == 'ap_min' and source == 'PCA'")
    table = table[table["dim_in"] == table["dim_in"].max()]
    lines = []
    for (rule, k), block in table[table["k"].isin([1, table["k"].max()])].groupby(["rule", "k"], sort=False):
        cells = block.set_index("family")
        theirs = float("nan") if profile == "demo" else cells["published"]["32"]
        lines.append(
            {"profile": profiles.PROFILES[profile], "images": record["images"], "encoder": record["encoder"].split()[0]}
            | {"folds": rule, "k": k}
            | {label: percent(cells["ours"][family]) for family, label in FAMILIES.items()}
            | {"published (·, 32)": percent(theirs)}
        )
    return lines


def prototype_rows() -> pd.DataFrame:
    """The linear prototypes in every built table: a row per encoder and k, closed gallery, frozen features and head."""
    lines = []
    for profile in ("sample", "demo"):
        for dataset in profiles.runs(profile)[PROTOTYPES]:
            file = paths.report("linear_prototypes", profile, dataset, "retrieval") / "table_results.csv"
            if not file.exists():
                continue
            images = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))["images"]
            table = pd.read_csv(file).query("metric == 'ap_min' and gallery == 'closed'")
            ends = table[table["k"].isin([table["k"].min(), table["k"].max()])]
            for (encoder, k), block in ends.groupby(["encoder", "k"], sort=False):
                cells = block.set_index("method")["ours"].map(percent)
                lines.append(
                    {"profile": profiles.PROFILES[profile], "images": images, "encoder": encoder, "k": k}
                    | cells.to_dict()
                )
    return pd.DataFrame(lines)


def part() -> str:
    """The generated part, markers included."""
    pictures = [paths.report("hyper_dino", *run, "retrieval") / "figure_3.png" for run in PICTURES]
    picture = next(path for path in pictures if path.exists())
    record = json.loads(picture.with_suffix(".json").read_text(encoding="utf-8"))
    state, encoder = profiles.PROFILES[record["profile"]], record["encoder"]
    caption = f"*{record['title']}. {record['caption']} Ours: {state}, {record['images']}, encoder {encoder}.*"
    note = (
        "MAP@k in percent, AP divided by min(k, relevant), all principal components of the encoder's numbers going in "
        "(as many as the training images allow); mean over five folds, test images against training images. Published: "
        "Hyper-DINO(·, 32) from as many components where the paper has that length, else from all 384 numbers, of DINO "
        "ViT-S/16 on the whole dataset, the better of PCA and NCA, folds without a stated patient rule; it "
        "differs from ours in encoder, number of images and folds."
    )
    return "\n\n".join(
        [
            START,
            f"![{record['title']}]({picture.relative_to(paths.ROOT).as_posix()})",
            caption,
            markdown_table(rows()),
            note,
            markdown_table(prototype_rows()),
            PROTOTYPES_NOTE,
            END,
        ]
    )


def filled(text: str) -> str:
    """``text`` of the README with its generated part made anew.

    >>> filled(f"before {START} old {END} after") == f"before {part()} after"
    True
    """
    before, _, rest = text.partition(START)
    return before + part() + rest.partition(END)[2]


def update() -> None:
    """Bring the README's generated part up to date."""
    readme = paths.ROOT / "README.md"
    text = filled(readme.read_text(encoding="utf-8"))
    with files.whole(readme) as draft:
        draft.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    update()
