"""What a stored embedding costs: bytes against MAP@k and exact neighbours; indexes against the exact search."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.geometry import Euclidean, Geometry, PoincareBall
from lib.metrics import retrieval
from lib.papers.beyond.storage import figures
from lib.progress import track
from lib.results.answers import CLASS_MEAN, HEALTH, health
from lib.results.markdown import markdown_table, percent
from lib.results.shown import Figure, Table
from lib.search import codecs, nearest
from lib.search.index import FaissFlat, FaissHnsw, Index, Qdrant
from lib.training.methods import Fitted

STRUCTURES: tuple[type[Index], ...] = (FaissFlat, FaissHnsw, Qdrant)
FLAT_CODECS: tuple[codecs.Codec, ...] = ("float32", "float16 tangent")  # flat space is its own tangent space


def codec_rows(
    fitted: Mapping[str, Sequence[Fitted]], x: np.ndarray, labels: np.ndarray, rule: str, ks: Sequence[int]
) -> pd.DataFrame:
    """Every recipe's gallery in every codec, searched by queries that are not stored and stay float32.

    Args:
        fitted: method → one per split; their heads do not round (``half`` is false).
        x, labels: (n, dim) features and (n,) classes of all images.
        rule: the name of the fold rule, handed through.
        ks: list lengths; the longest is that of the neighbours.

    Returns:
        One row per recipe, split and codec: rule, method, numbers, codec, bytes, fold; for each k map_k (percent, min),
        chance_k (a gallery in random order) and class_mean_k (of all splits, the same in each of their rows); recall
        (percent of the nearest items that are still found), moved and bound (largest change of a distance, and what it
        cannot exceed; NaN in flat space); and the health of the training: loss, rim, steps.
    """
    lines, answered = [], {}
    flat = [one for of_splits in fitted.values() for one in of_splits]
    for one in track(flat, total=len(flat), what=f"codecs, folds {rule}", unit="galleries"):
        gallery, query = one.embed(x[one.split.train]), one.embed(x[one.split.test])
        names = {"rule": rule, "fold": one.split.fold, "method": "mapper" if one.network else "no mapper"}
        curved = isinstance(one.geometry, PoincareBall)
        for codec in codecs.CODECS if curved else FLAT_CODECS:
            stored = _stored(gallery, codec, one.geometry)
            classes = labels[one.split.test], labels[one.split.train]
            found = retrieval.evaluate(query, stored, *classes, one.geometry, ks)
            answered.setdefault((one.method.name, codec), []).append(found)
            lines.append(
                names
                | {"stored": (one.method.name, codec)}
                | {"numbers": gallery.shape[1], "codec": codec if curved else codec.removesuffix(" tangent")}
                | {"bytes": gallery.shape[1] * (4 if codec == "float32" else 2)}
                | _scores(found, SCORES)
                | {"recall": 100 * _kept(query, stored, gallery, max(ks), one.geometry)}
                | _moved(query, stored, gallery, codec, one.geometry)
                | vars(one.health)
            )
    alike = {stored: _scores(retrieval.together(parts), CLASS_MEANS) for stored, parts in answered.items()}
    return pd.DataFrame([line | alike[line.pop("stored")] for line in lines])


SCORES, CLASS_MEANS = {"value": "map", "chance": "chance"}, {"class_mean": "class_mean"}
"""What :meth:`lib.metrics.retrieval.PerQuery.mean` calls a score of one fold, or of all of them, and how the columns
of it begin here."""


def _scores(found: retrieval.PerQuery, names: Mapping[str, str]) -> dict[str, float]:
    """Some scores of AP@k for every k, in percent."""
    means = found.mean().query("metric == 'ap_min'").set_index("k")
    return {f"{name}_{k}": 100 * means[column][k] for column, name in names.items() for k in means.index}


def _stored(gallery: Tensor, codec: codecs.Codec, space: Geometry) -> Tensor:
    c = float(getattr(space, "c", 0.0))
    return codecs.decode(codecs.encode(gallery, codec, c), codec, c)


def _kept(query: Tensor, stored: Tensor, gallery: Tensor, k: int, space: Geometry) -> float:
    return overlap(nearest(query, stored, k, space)[1], nearest(query, gallery, k, space)[1])


def _moved(query: Tensor, stored: Tensor, gallery: Tensor, codec: codecs.Codec, space: Geometry) -> dict[str, float]:
    if isinstance(space, Euclidean):
        return {"moved": math.nan, "bound": math.nan}
    wide = query.double(), stored.double(), gallery.double()
    change = (space.pairwise(wide[0], wide[1]) - space.pairwise(wide[0], wide[2])).abs().max().item()
    radius = math.sqrt(space.c) * wide[2].norm(dim=1).max().item()
    return {"moved": change, "bound": codecs.largest_move(radius, gallery.shape[1], codec, space.c)}


def overlap(found: Tensor, truth: Tensor) -> float:
    """The share of ``truth: (q, k)`` that is in ``found: (q, k)``, row by row.

    >>> overlap(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[2, 1], [4, 5]]))
    0.75
    """
    return (found.unsqueeze(2) == truth.unsqueeze(1)).any(1).double().mean().item()


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the folds of :func:`codec_rows`, ``spread`` (standard deviation of MAP at the longest list, NaN for
    one fold), and the largest ``moved``, ``bound``, ``rim`` and ``steps``."""
    keys = ["rule", "method", "numbers", "codec", "bytes"]
    worst = {"moved": "max", "bound": "max", "spread": "std"} | HEALTH
    rows = rows.assign(spread=rows[f"map_{max(_ks(rows))}"]).drop(columns="fold")
    values = {name: worst.get(name, "mean") for name in rows.columns.drop(keys)}
    return rows.groupby(keys, sort=False, as_index=False).agg(values)


def _ks(rows: pd.DataFrame) -> list[int]:
    """The list lengths of :func:`codec_rows`, or of their summary."""
    return [int(name[4:]) for name in rows.columns if name.startswith("map_")]


def storage_layout(rows: pd.DataFrame) -> str:
    """:func:`summary` as Markdown, a table per fold rule: a line per method, length and codec, the last is chance."""
    return "\n\n".join(f"## Folds {rule}\n\n{_of_rule(part)}" for rule, part in rows.groupby("rule", sort=False))


def _of_rule(rows: pd.DataFrame) -> str:
    """One fold rule of :func:`storage_layout`: the shortest and the longest list."""
    ends = sorted({min(_ks(rows)), max(_ks(rows))})
    lines = []
    for _, row in rows.iterrows():
        line = {name: row[name] for name in ("method", "numbers", "codec")} | {"bytes per image": row["bytes"]}
        line |= {f"MAP@{k}": percent(row[f"map_{k}"]) for k in ends}
        line |= {f"class mean@{k}": percent(row[f"class_mean_{k}"]) for k in ends}
        line["neighbours kept (%)"] = percent(row["recall"])
        line |= {name: "–" if math.isnan(row[name]) else f"{row[name]:.1g}" for name in ("moved", "bound")}
        lines.append(line | health(row))
    chance = {f"MAP@{k}": percent(rows[f"chance_{k}"].mean()) for k in ends}
    return markdown_table(pd.DataFrame([*lines, dict.fromkeys(lines[0], "–") | {"method": "chance"} | chance]))


def exchanged(rows: pd.DataFrame) -> list[str]:
    """Which float16 codec exchanges fewer neighbours of the mapper, counted over the lengths of each fold rule.

    rows: of :func:`summary`.
    """
    mapper, lines = rows[rows["method"] == "mapper"], []
    for rule, part in mapper.groupby("rule", sort=False):
        kept = part.pivot_table(index="numbers", columns="codec", values="recall")
        ball, tangent = (kept[f"float16 {name}"].round(4) for name in ("ball", "tangent"))
        fewer, more = int((tangent > ball).sum()), int((tangent < ball).sum())
        alike = len(kept) - fewer - more
        counts = f"fewer neighbours than the ball codec at {fewer} of {len(kept)} lengths, more at {more}"
        least = [f"{column.min():.2f} % ({name})" for name, column in (("tangent", tangent), ("ball", ball))]
        lines.append(
            f"folds {rule}: the tangent codec exchanges {counts}{f', as many at {alike}' if alike else ''}; "
            f"kept are at least {' and '.join(least)}"
        )
    return lines


def storage(rows: pd.DataFrame, k: int) -> Table:
    """:func:`summary` as a table; ``k`` is the length of the list of which neighbours are counted."""
    return Table("what a stored embedding costs", rows, _about(k), markdown=storage_layout(rows))


def figure_storage(rows: pd.DataFrame, rule: str, k: int) -> Figure:
    """MAP@k and neighbours kept over the bytes of a stored image, for one fold ``rule``."""
    part = rows[rows["rule"] == rule]
    drawn = figures.storage(part, k)
    return Figure("what a stored embedding costs", part, f"{_about(k)} Folds {rule}.", figure=drawn)


def _about(k: int) -> str:
    return (
        f"Bytes per stored image against MAP (AP divided by min(k, relevant)), means over the folds. The gallery is "
        f"stored, queries are not. Neighbours kept: of the {k} nearest before coding. moved: largest change of a "
        "distance, bound: what it cannot exceed. No mapper: principal components in flat space. Every mapper was "
        f"trained once. {CLASS_MEAN} Chance: a gallery in random order. At the rim: worst fold."
    )


def index_rows(galleries: Mapping[str, tuple[Tensor, Tensor, Geometry]], k: int, most: int = 20_000) -> pd.DataFrame:
    """Every index structure on every gallery, against the exact search.

    Args:
        galleries: name → query (q, d), gallery (m, d) and their space.
        k: length of the lists.
        most: Qdrant's embedded mode, meant for trials, is left out of larger galleries.

    Returns:
        gallery, size, structure, proposed (how many candidates the structure hands to the re-rank), recall (percent).
    """
    lines = []
    for name, (query, gallery, space) in galleries.items():
        truth = nearest(query, gallery, k, space)[1]
        for structure in STRUCTURES:
            if structure is Qdrant and len(gallery) > most:
                continue
            index = structure.build(gallery, space, name)
            for proposed in (k, 4 * k + 16):
                found = index.search(query, k, candidates=proposed)[1]
                line = {"gallery": name, "size": len(gallery), "structure": structure.kind, "proposed": proposed}
                lines.append(line | {"recall": 100 * overlap(found, truth)})
    return pd.DataFrame(lines)


def indexes(rows: pd.DataFrame, k: int) -> Table:
    """:func:`index_rows` as a table; ``k`` is the length of the lists."""
    few, more = rows["proposed"].min(), rows["proposed"].max()
    text = (
        f"Share of the exact {k} nearest that each structure finds (percent), when it proposes {few} candidates, as "
        f"many as are asked for, and when it proposes {more} (4 k + 16). Candidates are sorted by their true distance. "
        "Galleries: the training images of one fold as the mapper embeds them, under their dataset's name, and codes "
        "of a made-up hierarchy."
    )
    return Table("recall of index structures", rows, text, markdown=index_layout(rows))


def recalls(rows: pd.DataFrame) -> list[str]:
    """What the table of :func:`index_rows` tells of the structures, the worst recall of each after the re-rank.

    >>> rows = {"structure": ["a", "b"], "proposed": 96, "size": [800, 10_000], "recall": 100.0}
    >>> recalls(pd.DataFrame(rows))
    ['every structure finds all exact neighbours in galleries of up to 10,000 codes: nothing tells them apart here']
    """
    if (rows["recall"] == 100).all():
        most = f"galleries of up to {rows['size'].max():,} codes"
        return [f"every structure finds all exact neighbours in {most}: nothing tells them apart here"]
    reranked = rows[rows["proposed"] == rows["proposed"].max()]
    worst = reranked.groupby("structure", sort=False)["recall"].min()
    return [f"{name}: recall at least {recall:.1f} % after the re-rank" for name, recall in worst.items()]


def index_layout(rows: pd.DataFrame) -> str:
    """:func:`index_rows` as a Markdown table: a line per gallery and structure, a column per number of candidates."""
    wide = rows.pivot(index=["gallery", "size", "structure"], columns="proposed", values="recall").map(percent)
    wide.columns = [f"recall, {proposed} proposed" for proposed in wide.columns]
    return markdown_table(wide.reset_index())


def smallest_within(rows: pd.DataFrame, rule: str, k: int, points: float) -> pd.Series:
    """The mapper's row with the fewest bytes whose MAP@k is at most ``points`` below the mapper's best."""
    shown = rows[(rows["rule"] == rule) & (rows["method"] == "mapper")]
    enough = shown[shown[f"map_{k}"] >= shown[f"map_{k}"].max() - points]
    return enough.sort_values(["bytes", f"map_{k}"], ascending=[True, False]).iloc[0]


def codec_at_radii(radii: Sequence[float], dim: int, n: int, seed: int) -> pd.DataFrame:
    """How far the codecs move ``n`` random points at each radius √c‖x‖, c = 1.

    Columns radius, distance (from the centre), codec, moved (the farthest), bound.
    """
    ball = PoincareBall(1.0)
    directions = torch.nn.functional.normalize(
        torch.randn(n, dim, generator=torch.Generator().manual_seed(seed)), dim=1
    )
    lines = []
    for radius in radii:
        points = (radius * directions.double()).float()
        distance = 2 * math.atanh(radius)
        for codec in codecs.CODECS:
            stored = codecs.decode(codecs.encode(points, codec, 1.0), codec, 1.0)
            moved = ball.between(points.double(), stored.double()).max().item()
            lines.append({"radius": radius, "distance": distance, "codec": codec, "moved": moved})
            lines[-1]["bound"] = codecs.largest_move(points.double().norm(dim=1).max().item(), dim, codec)
    return pd.DataFrame(lines)
