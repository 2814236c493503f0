"""Numbers and tables as Markdown shows them."""

import re
from decimal import ROUND_HALF_UP, Decimal

import pandas as pd


def percent(value: float) -> str:
    """A percentage with two decimals, a dash where there is none.

    >>> percent(94.614), percent(float("nan"))
    ('94.61', '–')
    """
    return "–" if pd.isna(value) else f"{_rounded(value):.2f}"


def _rounded(value: float) -> Decimal:
    """Two decimals, half away from 0, of the four that a csv has: a table and who reads its csv show the same.

    >>> [str(_rounded(value)) for value in (21.485, 21.48504, 21.48496, 21.4849, -0.125)]
    ['21.49', '21.49', '21.49', '21.48', '-0.13']
    """
    return Decimal(f"{value:.4f}").quantize(Decimal("0.01"), ROUND_HALF_UP)


def literal(text: str) -> str:
    """``text`` that may hold the name of a file or class, so that Markdown shows it and no HTML or formula begins.

    >>> literal("class <img src=x>, p < 0.05, $y$")
    'class &lt;img src=x>, p < 0.05, \\\\$y\\\\$'
    """
    return re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", text).replace("$", r"\$")


def markdown_table(frame: pd.DataFrame) -> str:
    """``frame`` as a Markdown table; every cell as it prints, on one line, columns as they stand.

    >>> print(markdown_table(pd.DataFrame({"k": [1], "a|b\\nc": ["94.61"]})))
    | k | a\\|b c |
    | --- | --- |
    | 1 | 94.61 |
    """
    rows = [map(_cell, frame.columns), ["---"] * frame.shape[1]]
    rows += [map(_cell, row) for row in frame.itertuples(index=False)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cell(value: object) -> str:
    return " ".join(literal(str(value)).replace("|", r"\|").splitlines())


def points(difference: float) -> str:
    """A difference in percentage points with its sign, a dash where there is none.

    >>> points(1.5), points(-0.001), points(float("nan"))
    ('+1.50', '+0.00', '–')
    """
    return "–" if pd.isna(difference) else f"{_rounded(difference):+z.2f}"
