"""The state of every table and figure: what params.yaml says should be there, and what is."""

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import yaml

from lib import paths
from lib.datasets.catalogue import DATASETS
from lib.encoders.zoo import MODELS
from lib.results.store import markdown_table

DONE = {"demo": "demo", "sample": "real sample", "paper": "published setting"}


def params() -> dict[str, Any]:
    """params.yaml."""
    return yaml.safe_load((paths.ROOT / "params.yaml").read_text(encoding="utf-8"))


def expected(settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every table and figure that some profile makes: enumerated from ``settings``, never from what lies around.

    Yields:
        paper, profile, dataset, notebook, name (file name without suffix) and the run's own settings.
    """
    for stage, artefact in settings["artefacts"].items():
        for profile in DONE:
            for dataset, run in settings[profile].get(stage, {}).items():
                for item in artefact["items"]:
                    yield {
                        "paper": artefact["paper"],
                        "profile": profile,
                        "dataset": dataset,
                        "notebook": artefact["notebook"],
                        "name": run.get(item, item),
                        "run": run,
                    }


def overview(settings: dict[str, Any] | None = None) -> pd.DataFrame:
    """One row per expected table or figure.

    Args:
        settings: the content of params.yaml; read if not given.

    Returns:
        Columns paper, profile, dataset, name, title, state, images, encoder, notebook, parameters, link. What is
        not there has the state ``needs <dataset>`` and no images.
    """
    rows = []
    for item in expected(params() if settings is None else settings):
        folder = paths.report(item["paper"], item["profile"], item["dataset"])
        record = folder / f"{item['name']}.json"
        keys = {key: item[key] for key in ("paper", "profile", "dataset", "name", "notebook")}
        if record.exists():
            known = json.loads(record.read_text(encoding="utf-8"))
            shown = next(path for path in (folder / f"{item['name']}.{s}" for s in ("md", "png")) if path.exists())
            found = {name: known[name] for name in ("title", "images", "encoder")}
            found |= {"state": DONE[item["profile"]], "link": shown.relative_to(paths.REPORTS).as_posix()}
            found |= {"parameters": ", ".join(f"{k} {v}" for k, v in known["parameters"].items())}
        else:
            found = {"title": "", "images": "", "encoder": item["run"].get("encoder", ""), "parameters": "", "link": ""}
            found |= {"state": f"needs {wanted(item['dataset'], item['run'])}"}
        rows.append(keys | found)
    columns = ["paper", "profile", "dataset", "name", "title", "state", "images", "encoder", "notebook", "parameters"]
    return pd.DataFrame(rows)[[*columns, "link"]]


def wanted(dataset: str, run: dict[str, Any]) -> str:
    """What a run needs that the repository does not hold: images, and weights that have to be downloaded."""
    title = DATASETS[dataset].title if dataset in DATASETS else "a run"
    return f"{title}, weights of {run['encoder']}" if run.get("encoder") in MODELS else title


def markdown(rows: pd.DataFrame) -> str:
    """``reports/index.md``: the overview with links, grouped by paper and profile."""
    parts = [
        "# Every table and figure",
        "Made from `params.yaml` and `reports/` by `00_start_here`. *demo*: procedural tiles, never the paper's "
        "numbers. *real sample*: real images, fewer than the paper had. *published setting*: the paper's own images, "
        "encoder and epochs. *needs …*: `make plan PROFILE=paper` says what is missing and how to get it.",
    ]
    for (paper, profile), block in rows.groupby(["paper", "profile"], sort=False):
        linked = [
            f"[{name}]({link})" if link else name for name, link in zip(block["name"], block["link"], strict=True)
        ]
        shown = block.assign(**{"table or figure": linked})
        columns = ["table or figure", "title", "dataset", "state", "images", "encoder", "notebook", "parameters"]
        parts += [f"## {paper}, profile {profile}", markdown_table(shown[columns])]
    return "\n\n".join(parts) + "\n"


def write() -> pd.DataFrame:
    """Write ``reports/index.md``; returns the overview."""
    rows = overview()
    with paths.whole(paths.REPORTS / "index.md") as draft:
        draft.write_text(markdown(rows), encoding="utf-8")
    return rows
