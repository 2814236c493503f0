"""What an image costs in an archive, and what is found for it: every method of one encoder, bytes against MAP."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import figure as mpl
from matplotlib.axes import Axes

from lib.figures import style
from lib.papers.beyond.factors import health
from lib.papers.beyond.factors.experiment import (
    BALL,
    FLAT,
    LOGITS,
    NCA,
    NONE,
    PROBABILITY,
    PROTOTYPES,
    STANDARDISED,
    Results,
)
from lib.papers.beyond.factors.heads import ACIR, CENTRES, HYPERBOLIC, PAPERS, SPHERICAL, SUPCON, TREE
from lib.results import answers, denominators, paired
from lib.results.markdown import markdown_table
from lib.results.shown import Figure, Table
from lib.training import hashing
from lib.training.methods import Answer, Method

ABOUT = (
    "MAP: AP divided by min(k, relevant), percent, means over folds and trainings. Bytes of one stored image: two for "
    "each number of a feature or an embedding (float16), one for eight bits of a code. closed: the archive is the "
    "training images; open: images of other groups that nothing was fitted on."
)
PAIRS = (
    *((name, PROBABILITY) for name in PAPERS),
    (HYPERBOLIC, BALL),
    (TREE, BALL),
    (TREE, SUPCON),
    (HYPERBOLIC, SPHERICAL),
    (ACIR, CENTRES),
    (ACIR, NONE),
)
"""Which method is compared with which."""


def stored(method: Method) -> int:
    """Bytes of one image in the archive of a method.

    >>> from lib.training.recipes import Recipe
    >>> stored(Method("code", Recipe("PCA", 128, 64), hashing.Settings()))
    8
    """
    numbers = method.recipe.dim_out or method.recipe.dim_in
    packed = isinstance(method.head, hashing.Settings) and method.head.binary
    return -(-numbers // 8) if packed else 2 * numbers


def of_encoder(found: Results, encoder: str, *others: Results) -> Results:
    """The answers of one encoder without its name, and those of ``others`` after them, archive by archive."""
    first = f"{encoder}, "
    return {
        archive: {name.removeprefix(first): several for name, several in by_method.items() if name.startswith(first)}
        | {name: several for other in others for name, several in other[archive].items()}
        for archive, by_method in found.items()
    }


def rows(found: Results) -> pd.DataFrame:
    """:func:`lib.results.answers.values` of AP@k with bytes: archive, method, bytes, k, ours, spread ... steps."""
    table = answers.values(found).query("metric == 'ap_min'").drop(columns="metric").rename(columns={"rule": "archive"})
    bytes_of = {name: stored(several[0].method) for by_method in found.values() for name, several in by_method.items()}
    table.insert(2, "bytes", table["method"].map(bytes_of))
    return table.sort_values("bytes", kind="stable", ascending=False).reset_index(drop=True)


def tested(
    found: Mapping[str, Mapping[str, Sequence[Answer]]], groups: np.ndarray, ks: Sequence[int], seed: int = 0
) -> pd.DataFrame:
    """Paired tests of :data:`PAIRS`, as far as both were trained; as :func:`lib.results.denominators.compare`."""
    trained = set.intersection(*(set(by_method) for by_method in found.values()))
    pairs = [pair for pair in PAIRS if trained.issuperset(pair)]
    return denominators.compare(found, groups, pairs, ks, seed=seed)


def layout(table: pd.DataFrame) -> str:
    """A row per method, the largest first, a column per archive and k, as Markdown; the last row is chance."""
    lines = []
    for (method, size), part in table.groupby(["method", "bytes"], sort=False):
        cells = {"method": method, "bytes per image": str(size)}
        for row in part.sort_values("k", kind="stable").itertuples():
            spread = "" if np.isnan(row.spread) else f" ± {row.spread:.1f}"
            cells[f"MAP@{row.k}, {row.archive}"] = f"{row.ours:.1f}{spread} ({row.class_mean:.1f})"
        lines.append(cells | health.cells(part))
    chance = {"method": "chance"} | answers.chance_cells(table)
    return markdown_table(pd.DataFrame([*lines, dict.fromkeys(lines[0], "–") | chance]))


def table_costs(table: pd.DataFrame) -> Table:
    """:func:`rows` as a table."""
    text = f"{ABOUT} ± over folds; in brackets the class mean, chance as well. {answers.CLASS_MEAN} {health.SAID}"
    return Table("what an image costs, and what is found for it", table, text, markdown=layout(table))


def figure_costs(table: pd.DataFrame, archives: Sequence[str]) -> Figure:
    """MAP over bytes in ``archives``, as a figure."""
    part = table[table["archive"].isin(archives)]
    text = (
        "MAP over the bytes of a stored image; bars: standard deviation over folds. Methods of equal bytes are drawn "
        f"side by side, on one grey band; bands go from the fewest bytes to the most, not to scale. {ABOUT}"
    )
    kept = ["archive", "method", "bytes", "k", "ours", "spread"]
    title = "what an image costs, and what is found for it"
    return Figure(title, part[kept], text, figure=drawn(part, archives))


def drawn(table: pd.DataFrame, archives: Sequence[str]) -> mpl.Figure:
    """MAP@k over bytes, a column per k and a row per archive; columns archive, method, bytes, k, ours, spread."""
    ks, bands = sorted(table["k"].unique()), _bands(table)
    with style.house():
        size = style.WIDTH, 2.3 * len(archives) + 1.3
        figure, axes = plt.subplots(len(archives), len(ks), figsize=size, sharex=True, squeeze=False)
        for line, archive in zip(axes, archives, strict=True):
            for axis, k in zip(line, ks, strict=True):
                part = table[table["archive"].eq(archive) & table["k"].eq(k)].set_index("method")
                for method, place in (found for places in bands.values() for found in places.items()):
                    spread = part["spread"].fillna(0)[method]
                    axis.errorbar(place, part["ours"][method], yerr=spread, label=method, **LOOKS[method])
                _ticks(axis, bands)
                axis.set_title(f"{'the first answer' if k == 1 else f'a list of {k}'}, {archive}")
                axis.set_ylabel(f"MAP@{k} (%)")
        for axis in axes[-1]:
            axis.set_xlabel("bytes per stored image (a band each)")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _bands(table: pd.DataFrame) -> dict[int, dict[str, int]]:
    """Bytes, the fewest first → where each method of as many stands: side by side, a gap between the bands.

    On a true scale 64 and 100 bytes are too near for the methods of both to stand beside each other.
    """
    size_of = table.groupby("method")["bytes"].first()
    bands, place = {}, 0
    for size in sorted(size_of.unique()):
        methods = sorted(size_of.index[size_of == size], key=list(LOOKS).index)
        bands[int(size)] = dict(zip(methods, range(place, place + len(methods)), strict=True))
        place += len(methods) + 1
    return bands


def _ticks(axis: Axes, bands: Mapping[int, Mapping[str, int]]) -> None:
    """A tick for every size, and a band below the methods that have it."""
    edges = [(min(places.values()) - 0.5, max(places.values()) + 0.5) for places in bands.values()]
    for edge in edges:
        axis.axvspan(*edge, color="0.93", zorder=0, linewidth=0)
    axis.set_xticks([sum(edge) / 2 for edge in edges], [str(size) for size in bands])
    axis.set_xlim(edges[0][0] - 0.5, edges[-1][1] + 0.5)
    axis.grid(False, axis="x")


def _look(color: object, marker: str, *, full: bool) -> dict[str, object]:
    look = {"color": color, "marker": marker, "markerfacecolor": color if full else "white", "linestyle": ""}
    return look | {"markersize": 5.5, "elinewidth": 0.8, "capsize": 1.5}


DARK = [tuple(0.75 * part for part in color) for color in style.PALETTE]
"""The house's colours, dark enough for a small sign on a grey band."""

LOOKS = {
    NONE: _look("black", "o", full=True),
    STANDARDISED: _look("black", "o", full=False),
    NCA: _look("0.4", "X", full=True),
    LOGITS: _look(DARK[3], "D", full=False),
    PROBABILITY: _look(DARK[3], "D", full=True),
    PROTOTYPES: _look(DARK[4], "P", full=True),
    FLAT: _look(DARK[0], "s", full=False),
    BALL: _look(DARK[0], "s", full=True),
    HYPERBOLIC: _look(DARK[2], "^", full=True),
    SPHERICAL: _look(DARK[2], "^", full=False),
    SUPCON: _look(DARK[4], "p", full=True),
    TREE: _look(DARK[4], "p", full=False),
    ACIR: _look(DARK[5], "v", full=True),
    CENTRES: _look(DARK[5], "v", full=False),
}
"""How each method is drawn, the same whichever others are there: a colour for what is akin, and a sign of its own."""


def cheapest(table: pd.DataFrame, archive: str, k: int, within: float = 1.0) -> str:
    """The best method of an archive, and the one with the fewest bytes that is at most ``within`` points below it."""
    part = table[(table["archive"] == archive) & (table["k"] == k)]
    best = part.loc[part["ours"].idxmax()]
    enough = part[part["ours"] >= best["ours"] - within].sort_values(["bytes", "ours"], ascending=[True, False])
    least = enough.iloc[0]
    start = f"MAP@{k}, {archive}: highest is {_named(best)}"
    if least["method"] == best["method"]:
        return f"{start}; nothing smaller comes within {within:g} point of it"
    return f"{start}; the smallest within {within:g} point of it is {_named(least)}"


def _named(row: pd.Series) -> str:
    return f"{row['method']} ({row['ours']:.1f}, {row['bytes']} bytes)"


def came_out(tests: pd.DataFrame) -> list[str]:
    """How often each method of the other papers is clearly better, or worse, than what it is compared with."""
    lines = []
    of_pairs = tests.groupby(["first", "second"], sort=False)
    each = ((*pair, how, part) for pair, both in of_pairs for how, part in denominators.ways(both).items())
    for first, second, how, part in each:
        better, worse, of = paired.tally(part)
        low, high = part["difference"].min(), part["difference"].max()
        told = f"of {of} {better} better, {worse} worse ({low:+z.1f} to {high:+z.1f} points){paired.unclear(part)}"
        lines.append(f"{first} against {second}{how}: {told}")
    return lines
