"""Tables 4 and 5 in the paper's layout, their paired tests, and what the figure draws."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.papers.hyp_vit.hyperparameters.changes import DEFAULT, PUBLISHED_BATCH, SAME_ALL, Change
from lib.papers.hyp_vit.hyperparameters.stated import SEARCHED
from lib.papers.hyp_vit.names import END, HYP, NONE, SPH, UNTRAINED
from lib.papers.hyp_vit.retrieval import tables as recalls
from lib.papers.hyp_vit.retrieval.frozen import BY_COSINE
from lib.results import answers, paired
from lib.results.markdown import markdown_table, percent
from lib.training.methods import Answer, Method

SEEN = "seen"
PLACES = ("head", "encoder")
"""What is searched after a training end to end."""
NAMES = {"none": "default", "c": "c", "head_dim": "numbers", "batch_size": "batch", "room": "room"}
"""Which setting differs, in words."""


def settings(
    found: Mapping[str, Sequence[Answer]],
    changes: Sequence[Change],
    chosen: pd.DataFrame,
    theirs: pd.DataFrame,
    k: int,
    trained: Mapping[str, Sequence[Answer]] | None = None,
) -> pd.DataFrame:
    """Recall@k of every changed setting, beside what the paper has for it; percent.

    found: of :func:`.changes.answers`; trained: of :func:`.trained.answers`, of some of the rows or none.

    Columns of, value, method, batch (ours); encoder, head (published, NaN where there is none); frozen and
    frozen_class_mean (our encoder alone, the same in every row), hyp, cosine (our head on it by D_hyp and by D_cos),
    seeds_spread, class_mean and chance (of D_hyp); trained_encoder, trained_head and their spreads (end to end, NaN
    where nothing was); room (how far out clipping lets points come, percent of the radius), clipped (unseen images that
    rest there, percent), lr (chosen), loss, rim, steps.
    """
    at_k, together = (_at(k, several) for several in (found, trained or {}))
    lr = chosen[chosen["chosen"]].set_index("method")["lr"]
    printed = theirs.set_index(["of", "value"])[["encoder", "head"]]
    lines = []
    for change in changes:
        name, head = change.method.name, change.method.head
        known = printed.loc[[(change.of, change.value)]].iloc[0] if change.of != "room" else printed.iloc[0] * np.nan
        ours = at_k.loc[name, ["seeds_spread", "class_mean", "chance", "loss", "rim", "steps"]]
        cells = {"of": change.of, "value": change.value, "method": name, "batch": change.method.schedule.batch_size}
        cells |= known.to_dict() | ours.to_dict()
        cells |= {"frozen": at_k.loc[NONE, "ours"], "frozen_class_mean": at_k.loc[NONE, "class_mean"]}
        cells |= {"hyp": at_k.loc[name, "ours"], "cosine": at_k.loc[name + BY_COSINE, "ours"]}
        for place in PLACES:
            both = together["ours"], together["seeds_spread"]
            value, spread = (column.get(f"{name}{END}{place}", np.nan) for column in both)
            cells |= {f"trained_{place}": value, f"trained_{place}_spread": spread}
        at_bound = np.mean([recalls.clipped(head, answer.norms) for answer in found[name]])
        lines.append(cells | {"room": recalls.bound(head), "clipped": at_bound, "lr": lr[name]})
    return pd.DataFrame(lines)


def _at(k: int, found: Mapping[str, Sequence[Answer]]) -> pd.DataFrame:
    """Recall@k and health by method."""
    if not found:
        return pd.DataFrame({"ours": [], "seeds_spread": []})
    return recalls.recall(found).query("k == @k").set_index("method")


def settings_layout(rows: pd.DataFrame) -> str:
    """Table 5 as Markdown: what is changed, the published pair, encoder and head, ours, and health; chance last.

    The pair of ours that was trained end to end has columns where some row was.
    """
    together = [place for place in reversed(PLACES) if rows[f"trained_{place}"].notna().any()]
    lines = []
    for _, row in rows.iterrows():
        value = "" if np.isnan(row["value"]) else f"{row['value']:g}"
        cells = {"changed": NAMES[row["of"]], "published value": value or "–"}
        cells |= {f"published {place}": f"{row[place]:.1f}" if row[place] > 0 else "–" for place in ("encoder", "head")}
        cells |= {"ours": row["method"]}
        cells |= {
            f"end to end: {place}": _spread(row[f"trained_{place}"], row[f"trained_{place}_spread"])
            for place in together
        }
        cells |= {"frozen encoder: head, D_hyp": _spread(row["hyp"], row["seeds_spread"])}
        cells |= {"class mean, D_hyp": percent(row["class_mean"]), "head, D_cos": percent(row["cosine"])}
        cells |= {"outermost allowed radius": f"{row['room']:.1f} %", "images at it": f"{row['clipped']:.1f} %"}
        lines.append(cells | {"rate": f"{row['lr']:g}"} | answers.health(row))
    chance = percent(rows["chance"].iloc[0])  # one and the same gallery, searched by encoders and heads
    found = [f"end to end: {place}" for place in together] + ["frozen encoder: head, D_hyp", "head, D_cos"]
    lines.append(dict.fromkeys(lines[0], "–") | {"changed": "chance"} | dict.fromkeys(found, chance))
    return markdown_table(pd.DataFrame(lines))


def _spread(value: float, spread: float) -> str:
    """A recall with its spread over trainings, where there are several.

    >>> _spread(70.0, 1.0), _spread(70.0, np.nan), _spread(np.nan, np.nan)
    ('70.00 ± 1.00', '70.00', '–')
    """
    return percent(value) + (f" ± {percent(spread)}" if spread >= 0 else "")


def frozen_says(rows: pd.DataFrame) -> str:
    """What the frozen encoder finds by itself, for captions: no setting changes it. rows: of :func:`settings`."""
    row = rows.iloc[0]
    return (
        f"Frozen encoder alone, without a head, by D_cos: {percent(row['frozen'])} (class mean "
        f"{percent(row['frozen_class_mean'])}); no setting of a head changes it."
    )


def sees(theirs: pd.DataFrame) -> pd.DataFrame:
    """Table 4 of the paper as :func:`lib.papers.hyp_vit.retrieval.tables.layout` takes published rows.

    theirs: of :func:`lib.papers.hyp_vit.published.patches`. A row's name says what is searched and how large patches
    are.
    """
    patch, place = theirs["patch"].map(", patches of {:g}, ".format), theirs["dim"].map(SEARCHED)
    return theirs.assign(method=theirs["method"].where(theirs["patch"].isna(), theirs["method"] + patch + place))


def questions(
    changes: Sequence[Change], sizes: Mapping[str, Sequence[Answer]], own: str
) -> dict[str, list[tuple[str, str]]]:
    """What was changed → what is tested: every setting against the default, but for what is the default rescaled.

    sizes: of :func:`.changes.sizes`, tested against those of the size ``own``; then the encoder against the untrained
    one, and the heads on that.
    """
    rows = [one for one in changes if one.method.name not in (DEFAULT, SAME_ALL)]
    several = {TESTED[of]: [(one.method.name, DEFAULT) for one in rows if one.of == of] for of in TESTED}
    names = [name.partition(", ") for name in sizes]
    several[SIZES] = [(f"{size}, {place}", f"{own}, {place}") for size, _, place in names if size != own]
    several[PRETRAINED] = [(DEFAULT, f"{UNTRAINED}{HYP}"), (f"{own}, encoder", f"{UNTRAINED}{NONE}")]
    several[ALONE] = [(f"{UNTRAINED}{HYP}", f"{UNTRAINED}{name}") for name in (NONE, SPH)]
    return {question: pairs for question, pairs in several.items() if pairs}


TESTED = {"c": "curvature", "head_dim": "length", "batch_size": "batch", "room": "c taken apart"}
SIZES, PRETRAINED, ALONE = "what the network sees", "pretraining", "head without pretraining"


def tests(
    found: Mapping[str, Sequence[Answer]],
    names: np.ndarray,
    asked: Mapping[str, Sequence[tuple[str, str]]],
    k: int,
    seed: int = 0,
) -> pd.DataFrame:
    """Paired tests of Recall@k over categories (``names: (n,)`` of all images) and trainings.

    asked: what was changed → pairs of methods; it is the column changed.
    """
    between = [pair for pairs in asked.values() for pair in pairs]
    table = answers.compare({recalls.UNSEEN: found}, names, between, [k], metric=recalls.METRIC, seed=seed)
    changed = [what for what, pairs in asked.items() for _ in pairs]
    return table.rename(columns={"rule": "changed"}).assign(changed=changed)


TEST_NAMES = {"changed": "changed"} | paired.METHODS | {"k": "K"}
"""What names a test of :func:`tests`, for :func:`lib.results.paired.tests_layout`."""


def marked(tested: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The tests with the learning rate behind the name of every row that has another one than the default.

    rows: of :func:`settings`.
    """
    return tested.assign(first=tested["first"].replace(with_rates(rows)))


def with_rates(rows: pd.DataFrame) -> dict[str, str]:
    """Method → its name with its learning rate, of the rows trained at another one than the default."""
    lr = rows.set_index("method")["lr"]
    return {name: f"{name} (rate {rate:g})" for name, rate in lr[lr != lr[DEFAULT]].items()}


def drawn(rows: pd.DataFrame, sizes: pd.DataFrame, one: Method, own: str, k: int) -> pd.DataFrame:
    """Differences from the default, for the figure: columns of, value (as text), line, difference (points), spread.

    rows: of :func:`settings`, the default first; sizes: Recall@K of heads and encoders at each size; ``one``: the
    default; ``own``: its size. A batch's value is the published one, and ours.
    """
    defaults = {"c": one.head.geometry.c, "head_dim": one.recipe.dim_out, "batch_size": PUBLISHED_BATCH}
    lines = []
    for of, value in defaults.items():
        part = pd.concat([rows.head(1).assign(of=of, value=float(value)), rows[rows["of"] == of]])
        told = part["value"].map("{:g}".format) + (part["batch"].map(" ({})".format) if of == "batch_size" else "")
        for line, (column, spread) in LINES.items():
            frame = pd.DataFrame({"of": of, "value": told, "line": line, "difference": part[column]})
            frame["difference"] -= part[column].iloc[0]
            frame["spread"] = part[spread] if spread else np.nan
            lines.append(frame.dropna(subset="difference"))
    at_k = sizes[sizes["k"] == k].set_index("method")
    for name, row in at_k.iterrows():
        size, _, place = name.partition(", ")
        line, spread = ("hyp", row["seeds_spread"]) if place == "head" else ("frozen", np.nan)
        cells = {"of": SEEN, "value": size, "line": line, "spread": spread}
        lines.append(pd.DataFrame([cells | {"difference": row["ours"] - at_k.loc[f"{own}, {place}", "ours"]}]))
    several = [frame for frame in lines if len(frame) > 1 or frame["of"].eq(SEEN).any()]  # a line has two ends
    return pd.concat(several, ignore_index=True)


LINES = {
    "published_head": ("head", None),
    "published_encoder": ("encoder", None),
    "hyp": ("hyp", "seeds_spread"),
    "cosine": ("cosine", None),
    "trained": ("trained_encoder", "trained_encoder_spread"),
}
"""Line of the figure → its column in :func:`settings`, and that of its spread."""
