"""mAP of lists that end at the rim of a Hamming ball, whose radius the paper does not give (AC-22)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.errors import InputError
from lib.metrics import hashing
from lib.papers.acir.hashing.experiment import ACIR, TOP
from lib.papers.acir.ranking.experiment import Coder, Scene
from lib.results.markdown import markdown_table, percent

DENOMINATORS = {"ap_hits": "hits", "ap_min": "min"}
KINDS = {"ap_hits": "hits", "ap_min": f"min({TOP}, R)"}


def table(coders: Sequence[Coder], scene: Scene, bits: int, several: Sequence[int]) -> pd.DataFrame:
    """A row per training and radius: method, repeat, radius, ap_hits, ap_min (percent), empty (balls, percent).

    Means over the queries that have an image of their class in the archive. A radius of ``bits`` is no ball: everything
    is answered. Raises InputError for a larger one.
    """
    if max(several) > bits:
        raise InputError(f"radius {max(several)}: codes of {bits} bits are never further apart than {bits}")
    relevant = scene.relevant
    asked = relevant.any(axis=1)
    rows = []
    for one in coders:
        if one.bits != bits:
            continue
        distance = hashing.hamming(*(hashing.pack(one.h[part]) for part in (scene.queries, scene.gallery)))
        for radius in several:
            values = {
                name: 100 * float(np.nanmean(hashing.average_precision_in_ball(distance, relevant, radius, TOP, z)))
                for name, z in DENOMINATORS.items()
            }
            empty = 100 * float((distance[asked].min(axis=1) > radius).mean())
            rows.append({"method": one.method, "repeat": one.repeat, "radius": radius} | values | {"empty": empty})
    return pd.DataFrame(rows)


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over trainings: columns method, radius, ap_hits, ap_min, empty."""
    return rows.groupby(["method", "radius"], sort=False)[[*KINDS, "empty"]].mean().reset_index()


def layout(rows: pd.DataFrame) -> str:
    """The same as Markdown: a row per radius, for each method ``hits / min(100, R)``, and balls without any image."""
    by = means(rows)
    cells = by.assign(cell=[f"{percent(row.ap_hits)} / {percent(row.ap_min)}" for row in by.itertuples()])
    wide = cells.pivot_table(index="radius", columns="method", values="cell", aggfunc="first", sort=False)
    empty = by.groupby("radius")["empty"]
    wide["empty balls"] = [f"{low:.1f} to {high:.1f} %" for low, high in zip(empty.min(), empty.max(), strict=True)]
    return markdown_table(wide.rename_axis("R").reset_index())


def sentences(rows: pd.DataFrame) -> list[str]:
    """How much the radius that nobody gives can move a value and a place, by both denominators."""
    by = means(rows)
    lines = []
    for name, what in KINDS.items():
        wide = by.pivot(index="radius", columns="method", values=name)
        best = wide.idxmax(axis=1)
        first = "; ".join(f"{of} at R = {_listed(best.index[best == of])}" for of in dict.fromkeys(best))
        low, high = wide[ACIR].min(), wide[ACIR].max()
        lines.append(f"AP over {what}: ACIR from {low:.1f} to {high:.1f} by the radius; first is {first}")
    return lines


def _listed(radii: Sequence[int]) -> str:
    return ", ".join(map(str, radii))
