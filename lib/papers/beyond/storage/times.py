"""How long an answer takes and what an index holds: what ``make bench`` measured, read from its rows."""

from collections.abc import Sequence

import pandas as pd

from lib.papers.beyond.storage import figures
from lib.results.markdown import markdown_table
from lib.results.shown import Figure, Table

LATENCY = {
    "structure": "structure",
    "build_s": "build (s)",
    "bytes": "bytes per code on disk",
    "single_ms": "one query alone (ms)",
    "batch_ms": "a query among 200 (ms)",
    "recall": "recall",
}
"""How the columns of ``reports/bench/latency.csv`` are headed."""


def figure_latency(times: pd.DataFrame, where: str) -> Figure:
    """Times and sizes of ``reports/bench/latency.csv`` over the size of the gallery, measured on the machine ``where``.

    The caption names structures that were not asked for the largest gallery.
    """
    most = times.groupby("structure", sort=False)["size"].max()
    ends = [
        f"{name} ends at {size:,} codes: {SHORT.get(name, 'it was not asked for more')}."
        for name, size in most.items()
        if size < most.max()
    ]
    text = (
        "Over the number of codes in the gallery: milliseconds for a query alone and for one of 200 at once, seconds "
        f"to build the index. Measured by make bench on {where}. {' '.join(ends)}"
    )
    return Figure("latency", times, text.rstrip(), figure=figures.latency(times))


SHORT = {"Qdrant, embedded": "its embedded mode is meant for trials and compares all vectors in Python"}
"""Why :mod:`lib.bench.latency` asks a structure for small galleries alone."""


def largest(times: pd.DataFrame) -> Table:
    """The rows of the largest gallery of ``reports/bench/latency.csv``."""
    part = times[times["size"] == times["size"].max()]
    text = (
        f"{part['size'].iloc[0]:,} codes. Recall: share of the exact neighbours, after the re-rank. FAISS flat keeps "
        "d + 2 numbers for the inner products and the code itself; HNSW its graph as well."
    )
    return Table(
        "the largest gallery", part, text, markdown=markdown_table(part[list(LATENCY)].rename(columns=LATENCY))
    )


def at_scale(times: pd.DataFrame) -> list[str]:
    """How the time of one query grows up to the largest gallery, and where recall is not 1.

    times: of ``reports/bench/latency.csv``, structure, size, single_ms, batch_ms and recall.
    """
    before, last = sorted(times["size"].unique())[-2:]
    grown = {}
    for how, column in {"alone": "single_ms", "among 200": "batch_ms"}.items():
        took = times.pivot(index="structure", columns="size", values=column)
        grown[how] = (took[last] / took[before]).dropna()
    lines = [f"from {before:,} to {last:,} codes, {last / before:g} times as many, a query takes"]
    for name in grown["alone"].index:
        told = (f"{of[name]:.1f} times as long {how} ({_pace(of[name], last / before)})" for how, of in grown.items())
        lines.append(f"  {name}: {', '.join(told)}")
    short = times[times["recall"] < 1]
    found = "; ".join(f"{row.structure} at {row.size:,} codes, {row.recall:g}" for row in short.itertuples(index=False))
    return [*lines, f"recall is below 1 for {found}" if found else "recall is 1 everywhere"]


NEAR = 1.5
"""Growth within this factor of the gallery's is called about in proportion."""


def _pace(grown: float, gallery: float) -> str:
    """How the time of a query that has ``grown`` so many times compares with the growth of the ``gallery``.

    >>> _pace(8.0, 10.0), _pace(3.0, 10.0), _pace(24.0, 10.0)
    ('about in proportion', 'more slowly than the gallery', 'faster than the gallery')
    """
    if grown > NEAR * gallery:
        return "faster than the gallery"
    return "about in proportion" if grown * NEAR >= gallery else "more slowly than the gallery"


def at_a_billion(times: pd.DataFrame, dims: Sequence[int], size: int = 10**9) -> list[str]:
    """Bytes and time of an exact search in a gallery that nobody built, by proportion from the largest that was.

    times: of ``reports/bench/latency.csv``. dims: lengths of an embedding. A code takes 2 bytes a number; FAISS flat
    holds :func:`flat_bytes`, and compares d + 2 numbers of each code.
    """
    flat = times[times["structure"] == "FAISS flat"]
    if flat.empty:
        return []
    row = flat.loc[flat["size"].idxmax()]
    measured = _length(row["bytes"])
    lines = [
        f"{size:,} codes, by proportion from {row['size']:,} codes of {measured} numbers; an extrapolation, nothing "
        "was measured there, and an archive that memory does not hold takes longer:"
    ]
    for d in dims:
        alone, among = (row[name] * size / row["size"] * (d + 2) / (measured + 2) for name in ("single_ms", "batch_ms"))
        lines.append(
            f"  {d} numbers: {2 * d * size / 1e9:,.0f} GB stored in float16; exact search (FAISS flat): "
            f"{flat_bytes(d) * size / 1e9:,.0f} GB in memory, {alone / 1e3:.1f} s for a query alone, "
            f"{among / 1e3:.1f} s for one of 200"
        )
    return lines


def flat_bytes(d: int) -> int:
    """Bytes of a code of ``d`` numbers in FAISS flat: d + 2 numbers for the inner products and the code, in float32.

    >>> flat_bytes(32)
    264
    """
    return 4 * (d + 2 + d)


def _length(size: float) -> int:
    """How many numbers a code has that takes ``size`` bytes in FAISS flat, of which a file's head is a small part."""
    return round((size / 4 - 2) / 2)


def machine(text: str) -> str:
    """Where ``reports/bench/latency.md`` was measured.

    >>> machine("Some table. Measured on 2 processors (x86_64), no GPU, torch 2.15.0 with 2 threads.")
    '2 processors (x86_64), no GPU'
    """
    return text.partition("Measured on ")[2].partition(", torch")[0]
