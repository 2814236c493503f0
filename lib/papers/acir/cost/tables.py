"""Table 7 in the paper's layout, the sizes that give it, and what a search costs."""

import numpy as np
import pandas as pd

from lib.papers.acir.cost.networks import DEEP, SHALLOW, Cost
from lib.results.markdown import markdown_table

SECONDS = "seconds"
"""Of one image, as printed; ours are of one machine and moment, and stand as ratios in the notebook alone."""

CSQ = "ResNet-50, 16 bits (CSQ)"
"""The network that all ratios are to."""

FLOATS = 4
"""Bytes of a float32."""


def layout(ours: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """Table 7 as Markdown, published rows first; theirs: of :func:`lib.papers.acir.published.costs`."""
    lines = [
        {"network": row.method, "whose": "published", "pixels": "–", **_numbers(row), "of CSQ's": _ratio(row, theirs)}
        | {SECONDS: f"{row.seconds:.3f}"}
        for row in theirs.itertuples()
    ]
    base = ours.set_index("network").loc[CSQ]
    for row in ours.itertuples():
        ratio = f"{row.macs / base['macs']:.2f} / {row.parameters / base['parameters']:.2f}"
        cells = {"network": row.network, "whose": row.whose, "pixels": row.pixels, **_numbers(row), "of CSQ's": ratio}
        lines.append(cells | {SECONDS: "–"})
    return markdown_table(pd.DataFrame(lines))


def _numbers(row: object) -> dict[str, str]:
    return {"multiplications (G)": f"{row.macs:.2f}", "parameters (M)": f"{row.parameters:.2f}"}


def _ratio(row: object, theirs: pd.DataFrame) -> str:
    base = theirs.set_index("method").loc["CSQ"]
    return f"{row.macs / base['macs']:.2f} / {row.parameters / base['parameters']:.2f}"


def sizes_layout(found: pd.DataFrame, n: int = 8) -> str:
    """The nearest sizes as Markdown."""
    lines = [
        {
            "width of a token": row.width,
            "its hidden layer": f"{row.ratio} ×",
            "layers": row.layers,
            "decoder": row.decoder or "none",
            "multiplications (G)": f"{row.macs:.2f}",
            "parameters (M)": f"{row.parameters:.2f}",
            "off by": f"{row.off:.1f} %",
        }
        for row in found.head(n).itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def sentences(ours: pd.DataFrame, theirs: pd.DataFrame, found: pd.DataFrame) -> list[str]:
    """What the published numbers are, looked up in ours; ours: with the rows of :func:`.authors.costs`."""
    own, printed = ours.set_index("network"), theirs.set_index("method")
    thousand, codes = own.loc["ResNet-50, 1000 classes"], own.loc[CSQ]
    acir, best = own.loc["ResNet-50, ACIR's network"], found.iloc[0]
    near = int((found["off"] < 3).sum())
    return [
        f"CSQ, {printed.loc['CSQ', 'parameters']:.2f} M, published: a ResNet-50 with its 1000 classes of ImageNet has "
        f"{thousand['parameters']:.2f} M, with 16 bits in their place {codes['parameters']:.2f} M",
        f"CSQ, {printed.loc['CSQ', 'macs']:.2f} GFLOPs, published: {codes['macs']:.2f} G multiplications, or "
        f"{2 * codes['macs']:.2f} G if additions count as well: the paper counts them as one",
        f"ACIR, {printed.loc['ACIR', 'parameters']:.2f} M and {printed.loc['ACIR', 'macs']:.2f} G, published: nearest "
        f"is PiT of {best['layers']:.0f} layers of width {best['width']:.0f}, hidden layer {best['ratio']:.0f} times as"
        f" wide, with {_decoder(best['decoder'])}: {best['parameters']:.2f} M and {best['macs']:.2f} G, off by "
        f"{best['off']:.1f} %; {near} of {len(found)} sizes are within 3 %",
        f"this project's network at full width has {acir['parameters']:.2f} M and {acir['macs']:.2f} G",
        authors_sentence(ours, theirs),
    ]


def authors_sentence(ours: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """What the authors' code comes to, in each of its rows, and which row is nearest to what is published for ACIR."""
    rows, wanted = ours[ours["whose"] == "authors' code"], target(theirs)
    off = np.maximum((rows["macs"] / wanted.macs - 1).abs(), (rows["parameters"] / wanted.parameters - 1).abs())
    counted = "; ".join(f"{row.network} {row.parameters:.2f} M and {row.macs:.2f} G" for row in rows.itertuples())
    return f"{counted}. Nearest to both: {rows['network'][off.idxmin()]}, off by {100 * off.min():.2f} % at most"


def _decoder(width: float) -> str:
    return f"a decoder of width {width:.0f}" if width else "no decoder"


def storage(lengths: tuple[int, ...] = (16, 64, 128), dim: int = DEEP) -> pd.DataFrame:
    """What an image costs in an archive: columns what, bytes, operations (per query and image).

    Of codes: an exclusive or, a count of bits and an addition for each word of 64 bits. Of numbers: a multiplication
    and an addition each. Content: the mean features of ACIR's four levels on a ResNet-50, which only ties ask for.
    """
    levels = SHALLOW + 3 * DEEP
    rows = [{"what": f"code of {bits} bits", "bytes": bits // 8, "operations": 3 * -(-bits // 64)} for bits in lengths]
    rows.append({"what": f"feature of {dim} numbers, float32", "bytes": FLOATS * dim, "operations": 2 * dim})
    rows.append({"what": "content: ACIR's four levels, float32", "bytes": FLOATS * levels, "operations": 2 * levels})
    return pd.DataFrame(rows)


def storage_layout(rows: pd.DataFrame) -> str:
    """The same as Markdown, with the size of an archive of a million images."""
    lines = [
        {
            "what is kept of an image": row.what,
            "bytes": f"{row.bytes:,}",
            "a million images": f"{row.bytes / 1000:,.1f} GB" if row.bytes >= 1000 else f"{row.bytes:,} MB",
            "operations for a query and an image": f"{row.operations:,}",
        }
        for row in rows.itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def storage_sentence(rows: pd.DataFrame) -> str:
    """What content costs beside the code that it orders."""
    by = rows.set_index("what")
    content, code = by.loc["content: ACIR's four levels, float32"], by.iloc[0]
    feature = by.loc[next(name for name in by.index if name.startswith("feature"))]
    return (
        f"ranking by content keeps {content['bytes']:,} bytes of every image beside {code['bytes']} bytes of its code, "
        f"{content['bytes'] / feature['bytes']:.1f} times what the pooled feature alone takes"
    )


def time_sentences(seconds: pd.Series, theirs: pd.DataFrame) -> list[str]:
    """How long one image takes, as ratios to CSQ's network; of this machine, and free to differ on yours.

    seconds: of :func:`.networks.times`, with a row for :data:`CSQ`.
    """
    printed = theirs.set_index("method")["seconds"]
    told = ", ".join(f"{name} {printed[name] / printed['CSQ']:.1f}" for name in printed.index.drop("CSQ"))
    ours = [f"  {name}: {value / seconds[CSQ]:.2f}" for name, value in seconds.items() if name != CSQ]
    return [f"one image, times that of {CSQ}:", *ours, f"published, times that of CSQ: {told}"]


def target(theirs: pd.DataFrame) -> Cost:
    """What the paper prints for ACIR."""
    row = theirs.set_index("method").loc["ACIR"]
    return Cost(float(row["macs"]), float(row["parameters"]))
