"""α, and codes that are long: tables and what they say."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.papers.acir import published
from lib.papers.acir.ablations import scores
from lib.papers.acir.ablations.parts import FULL, LAYER, PLAIN_RANKING
from lib.papers.acir.ablations.scores import Scored
from lib.papers.acir.ablations.tables import chance, counted, first, health, score, suffers_sentence
from lib.papers.acir.choices import few
from lib.results import paired
from lib.results.markdown import markdown_table

FORMS = {"ours": "L_Q, ours", "printed": "L_Q as printed", "code": "L_Q of the authors' code"}


def alpha_rows(found: Mapping[tuple[str, float], Sequence[Scored]]) -> pd.DataFrame:
    """Columns form, alpha, then those of :func:`.scores.rows`."""
    frames = [scores.rows({FULL: several}).assign(form=form, alpha=alpha) for (form, alpha), several in found.items()]
    rows = pd.concat(frames, ignore_index=True)
    return rows[["form", "alpha", *(name for name in rows.columns if name not in ("form", "alpha"))]]


def alpha_layout(rows: pd.DataFrame) -> str:
    """A row per α: ours over trainings, the two other forms of the first training, and the published values."""
    theirs = published.alphas().set_index("alpha")
    lines = []
    for alpha in sorted({*rows["alpha"], *theirs.index}):
        part, cells = rows[rows["alpha"] == alpha], {"α": f"{alpha:g}"}
        known = theirs.loc[alpha] if alpha in theirs.index else None
        cells |= {"published": "not printed (AC-12)" if known is None else f"{known['mAP']:.1f} ({known['maAP']:.1f})"}
        for form, title in FORMS.items():
            of_form = part[part["form"] == form]
            if of_form.empty:
                cells |= {title if form == "ours" else f"{title}, one training": "–"}
                continue
            mean = scores.means(of_form.drop(columns=["form", "alpha"])).iloc[0]
            cells |= {title if form == "ours" else f"{title}, one training": score(mean)}
            if form == "ours":
                cells |= {"min(k, R)": score(mean, "_min")} | health(mean)
        lines.append(cells)
    random = {title: cell for title, cell in chance(rows, FORMS["ours"]).items() if title != "first answer"}
    return markdown_table(pd.DataFrame([*lines, {"α": "chance"} | random]).fillna("–"))


def alpha_sentences(rows: pd.DataFrame, chosen: float) -> list[str]:
    """Whether forms without a gradient differ from α = 0, and where our own is best."""
    numbers = ["mAP", "maAP", "mAP_min", "maAP_min", "first"]
    first = rows[rows["repeat"] == 0].set_index(["form", "alpha"])[numbers]
    none = first.loc[("ours", 0.0)]
    same = all((first.loc[form] == none).all(axis=None) for form in ("printed", "code"))
    mean = rows[rows["form"] == "ours"].groupby("alpha")["mAP_min"].mean()
    theirs = published.alphas().set_index("alpha")["mAP"]
    return [
        f"as printed and as in the authors' code the largest α is {'' if same else 'not '}α = 0, to the last digit; "
        f"the paper reports {theirs[0.0]:.1f} at 0 and {theirs[0.5]:.1f} at 0.5",
        f"ours, min(k, R): {', '.join(f'{value:.1f} at α = {alpha:g}' for alpha, value in mean.items())}"
        f"{few(rows['repeat'].nunique())}; groups set aside chose {chosen:g}",
    ]


def alpha_tests(
    found: Mapping[tuple[str, float], Sequence[Scored]], groups: np.ndarray, seed: int = 0, *, by_class: bool = False
) -> pd.DataFrame:
    """Our term at each α against α = 0, where none pulls: paired tests of mAP (min(k, R)), corrected together.

    found: of :func:`.experiment.by_alpha`; groups: (q,) of the queries. by_class: of maAP, where each class counts
    alike. A column alpha has that of the first.
    """
    ours = {alpha: several for (form, alpha), several in found.items() if form == "ours"}
    names = {_alpha(alpha): several for alpha, several in ours.items()}
    more = [alpha for alpha in ours if alpha]
    tests = scores.tests(names, [(_alpha(one), _alpha(0.0)) for one in more], groups, seed, by_class=by_class)
    return tests.assign(alpha=more)


def _alpha(value: float) -> str:
    return f"α = {value:g}"


def alpha_verdicts(tests: pd.DataFrame, chosen: float) -> list[str]:
    """What the α that patients set aside ``chosen`` is worth, or what the others would be where they chose none."""
    asked = tests[tests["alpha"] == chosen] if chosen else tests
    head = f"groups set aside chose {_alpha(chosen)}" + ("" if chosen else ", no term at all; the others")
    told = "; ".join(
        f"{'it' if chosen else row.first} {paired.relation(row)} {row.second} ({paired.size(row)})"
        for row in asked.itertuples()
    )
    return [f"{head}: {told}"]


def codes_layout(table: pd.DataFrame, lengths: Sequence[int]) -> str:
    """Table 5 as Markdown: a row per method and length, bytes of an image, published beside ours; floats last.

    table: of :func:`.scores.means`. Published values of 16 and 64 bits are those of Table 1 on RadIN-CT.
    """
    theirs = pd.concat([published.maps().query("dataset == 'radin_ct'"), published.long_codes()])
    theirs = theirs.set_index(["method", "bits"])
    by = {row["name"]: row for _, row in table.iterrows()}
    lines = []
    for method in ("QSMIH", FULL, "ViT-LLaMa"):
        for bits in lengths:
            known = theirs.loc[(method, bits)] if (method, bits) in theirs.index else None
            cells = {"method": method, "bits": bits, "bytes": f"{bits / 8:g}"}
            cells |= {"published": "–" if known is None else f"{known['mAP']:.1f} ({known['maAP']:.1f})"}
            ours = by.get(f"{method}, {bits} bits")
            lines.append(cells | ({"ours": "published only"} if ours is None else _cells(ours)))
    for name, row in by.items():
        if not name.endswith(" bits"):
            lines.append(
                {"method": name, "bits": "no code", "bytes": f"{row['size']:g}", "published": "–"} | _cells(row)
            )
    return markdown_table(pd.DataFrame([*lines, {"method": "chance"} | chance(table)]).fillna("–"))


def _cells(row: pd.Series) -> dict[str, str]:
    cells = {"ours": score(row), "min(k, R)": score(row, "_min"), "first answer": first(row)}
    return cells | {name: text for name, text in health(row).items() if name != "steps"}


def codes_sentences(table: pd.DataFrame, lengths: Sequence[int], n_images: float = 1e6) -> list[str]:
    """Is it still necessary to compress: what length brings, and bytes of an archive of a million images."""
    by = table.set_index("name")
    short, long = min(lengths), max(lengths)
    lines = []
    for method in ("QSMIH", FULL):
        value = [by.loc[f"{method}, {bits} bits", "mAP_min"] for bits in lengths]
        told = ", ".join(f"{v:.1f} at {bits}" for v, bits in zip(value, lengths, strict=True))
        n = by.loc[f"{method}, {short} bits", "n_seeds"]
        lines.append(f"{method}, mAP (min(k, R)) by bits: {told}{few(int(n))}")
    made = by[[str(name).startswith("what") for name in by.index]].iloc[0]
    told = {"the shortest code": by.loc[f"{FULL}, {short} bits"], "the longest": by.loc[f"{FULL}, {long} bits"]}
    told |= {f"what {FULL} makes its code of": made}
    sizes = "; ".join(
        f"{name} {row['size'] * n_images / 1e6:,.0f} MB, mAP {row['mAP_min']:.1f}" for name, row in told.items()
    )
    return [*lines, f"a million images: {sizes}"]


def longer_layout(table: pd.DataFrame) -> str:
    """Short and long training as Markdown; table: of :func:`.scores.means`, names as of :func:`.experiment.longer`."""
    lines = []
    for name, part in table.assign(row=_parted(table)[0]).groupby("row", sort=False):
        cells = {"row": name}
        for _, one in part.iterrows():
            epochs = one["name"].rsplit(", ", 1)[1]
            change = f"{one['loss_last']:.3f} / {one['loss_first']:.3f}"
            cells |= {epochs: score(one), f"min(k, R), {epochs}": score(one, "_min"), f"last / first, {epochs}": change}
        lines.append(cells)
    random = chance(table)
    cells = {
        title: random["ours" if title == epochs else "min(k, R)"]
        for epochs in _parted(table)[1].unique()
        for title in (epochs, f"min(k, R), {epochs}")
    }
    return markdown_table(pd.DataFrame([*lines, {"row": "chance"} | cells]).fillna("–"))


def longer_sentence(table: pd.DataFrame) -> str:
    """How far the whole is from the best of the other rows, after short and after long training."""
    row, epochs = _parted(table)
    value = pd.Series(table["mAP_min"].to_numpy(), index=[row, epochs])
    told = []
    for length in dict.fromkeys(epochs):
        others = value.xs(length, level=1).drop(PLAIN_RANKING)
        gap = value[PLAIN_RANKING, length] - others.max()
        told.append(f"after {length} {PLAIN_RANKING} is {gap:+.1f} points from {others.idxmax()}")
    return f"{'; '.join(told)} (mAP, min(k, R)){few(1)}"


def _parted(table: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    parted = table["name"].str.rsplit(", ", n=1, expand=True)
    return parted[0], parted[1]


def chosen(tried: pd.DataFrame) -> float:
    """The α that :func:`.experiment.choose_alpha` chose."""
    return float(tried.loc[np.flatnonzero(tried["chosen"])[0], "alpha"])


def answered(
    gains: pd.DataFrame,
    swept: pd.DataFrame,
    costs: pd.DataFrame,
    codes: pd.DataFrame,
    lengths: Sequence[int],
    longer: str,
    weight: str,
) -> list[str]:
    """The five questions of the notebook, each with what was measured.

    gains: of :func:`.tables.gains`; swept: of :func:`alpha_rows`; costs: of :func:`.tables.suffers`; codes: means of
    Table 5; longer: :func:`longer_sentence`; weight: of :func:`alpha_verdicts`.
    """
    out = gains[gains["where"] == "off"]
    needed = out[(out["p_holm"] <= 0.05) & (out["difference"] > 0)]["part"].tolist()
    harmful = out[(out["p_holm"] <= 0.05) & (out["difference"] < 0)]["part"].tolist()
    told = f"of the parts taken out {_names(needed)} clearly missed, and {_names(harmful)} better left out"
    told += paired.unclear(out)
    opponents = gains[(gains["where"] == "ours") & gains["second"].str.startswith(LAYER)]
    simple = "; ".join(f"it {paired.relation(row)} {row.second} ({paired.size(row)})" for row in opponents.itertuples())
    printed = alpha_sentences(swept, 0.0)[0].split(";")[0]
    by = codes.set_index("name")["mAP_min"]
    ends = [by[f"{FULL}, {bits} bits"] for bits in (min(lengths), max(lengths))]
    made = by[[str(name).startswith("what") for name in by.index]].iloc[0]
    return [
        f"1. {counted(gains)}; {told}",
        f"2. the whole without ranking by content: {simple}; {longer}",
        f"3. {weight}; {printed}",
        f"4. {suffers_sentence(costs)}",
        f"5. {FULL}, mAP from {min(lengths)} to {max(lengths)} bits: {ends[0]:.1f} to {ends[1]:.1f}; what it makes "
        f"its code of: {made:.1f}{few(int(codes['n_seeds'].max()))}",
    ]


def _names(parts: Sequence[str]) -> str:
    """A list of parts in a sentence.

    >>> _names(["PiT", "KAN"]), _names(["PiT"]), _names([])
    ('PiT, KAN are', 'PiT is', 'none is')
    """
    return f"{', '.join(parts) or 'none'} {'are' if len(parts) > 1 else 'is'}"
